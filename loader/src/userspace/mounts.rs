// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds mounted file systems that a user serves (FUSE): a process of that user answers each call on them, or never
//! does. Files that others have mapped are not opened there, because open(2) may block forever.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// File systems whose files the kernel makes up: no program is there, and reading one may take something away from
/// others (`/proc/kmsg`, `trace_pipe`), or have another effect.
const MADE_UP: [&str; 22] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "efivarfs",
    "fusectl",
    "mqueue",
    "nfsd",
    "nsfs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "smackfs",
    "sysfs",
    "tracefs",
];

/// A line of /proc/PID/mountinfo (proc(5)).
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// Major and minor number.
    device: (u32, u32),
    place: PathBuf,
    /// The user that serves it; `None`: the kernel does.
    user: Option<u32>,
    /// One of [`MADE_UP`].
    is_made_up: bool,
}

impl Mount {
    fn parse(line: &str) -> Option<Mount> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(2);
        let (major, minor) = fields.next()?.split_once(':')?;
        let place = unescaped(fields.nth(1)?);
        let mut kind = kind.split(' ');
        let name = kind.next()?;
        let is_made_up = MADE_UP.contains(&name);
        let is_served = name.starts_with("fuse") && !is_made_up;
        let user = |options: &str| options.split(',').find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
        // A mount without a user may be served by anybody.
        let user = is_served.then(|| kind.next_back().and_then(user).unwrap_or(u32::MAX));
        Some(Mount { device: (major.parse().ok()?, minor.parse().ok()?), place, user, is_made_up })
    }

    /// Whether root or this user serves it, or the kernel.
    fn answers(&self) -> bool {
        self.user.is_none_or(|user| user == 0 || user == nix::unistd::geteuid().as_raw())
    }
}

/// A path in /proc: the kernel writes blanks and the like as octal numbers.
pub fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let octal =
            more.first_chunk::<3>().filter(|digits| *first == b'\\' && digits.iter().all(|d| (b'0'..b'8').contains(d)));
        match octal {
            Some([a, b, c]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = more.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

/// The mounts of a mount namespace.
#[derive(Debug, Default)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// Those of this process.
    pub fn own() -> Mounts {
        Mounts::parse(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
    }

    /// Those of a process, with paths as it knows them; none if it is gone.
    pub fn of(process: u32) -> Mounts {
        Mounts::parse(&fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default())
    }

    fn parse(text: &str) -> Mounts {
        Mounts(text.lines().filter_map(Mount::parse).collect())
    }

    /// Whether the file system of an absolute path without links has files, and no other user serves it.
    pub fn has_files_at(&self, path: &Path) -> bool {
        let above = self.0.iter().filter(|mount| path.starts_with(&mount.place));
        // Of several mounts at one place the last one is visible.
        let seen = above.max_by_key(|mount| mount.place.components().count());
        seen.is_none_or(|mount| mount.answers() && !mount.is_made_up)
    }

    /// Whether no other user serves any of them.
    pub fn all_answer(&self) -> bool {
        self.0.iter().all(Mount::answers)
    }

    /// Whether no other user serves the file system with this device number; `None`: it is not among these.
    pub fn covers(&self, device: (u32, u32)) -> Option<bool> {
        self.0.iter().find(|mount| mount.device == device).map(Mount::answers)
    }
}

/// Whether a file that a process has mapped is on a file system that no other user serves.
pub fn answers(process: u32, device: (u32, u32)) -> bool {
    let known = Mounts::own().covers(device).or_else(|| Mounts::of(process).covers(device));
    // It is no longer mounted: file systems of the kernel have a block device.
    known.unwrap_or(device.0 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_that_another_user_serves_are_recognised() {
        let mounts = Mounts::parse(
            "1 0 254:1 / / rw - ext4 /dev/vda1 rw\n\
             2 1 0:40 / /home/u/a\\040b rw shared:5 - fuse.sshfs host rw,user_id=4000001,group_id=5,allow_other\n\
             3 1 0:41 / /mnt rw - fuseblk /dev/vdb rw,user_id=0,group_id=0\n\
             4 1 0:42 / /ctl rw - fusectl none rw\n\
             5 2 0:43 / /home/u/a\\040b/in rw - tmpfs none rw\n\
             6 1 0:44 / /odd rw - fuse x rw\n\
             7 5 0:45 /kmsg /home/u/a\\040b/in/map rw - proc proc rw\n\
             no mount\n",
        );
        for path in ["/home/u/a b", "/home/u/a b/x", "/odd/y", "/ctl", "/home/u/a b/in/map"] {
            assert!(!mounts.has_files_at(Path::new(path)), "{path}");
        }
        for path in ["/", "/home/u/a", "/home/u/a bc", "/mnt/x", "/home/u/a b/in/x"] {
            assert!(mounts.has_files_at(Path::new(path)), "{path}");
        }
        assert!(!mounts.all_answer() && Mounts::parse("3 1 0:41 / /mnt rw - ext4 /dev/vdb rw\n").all_answer());
        let known = [(254, 1), (0, 40), (0, 41), (0, 99)].map(|device| mounts.covers(device));
        assert_eq!(known, [Some(true), Some(false), Some(true), None]);
        let own = Mount::parse(&format!("2 1 0:40 / /a rw - fuse x rw,user_id={}", nix::unistd::geteuid())).unwrap();
        assert!(own.answers() && Mounts::own().has_files_at(Path::new("/")));
        assert!(answers(std::process::id(), (254, 9999)) && !answers(std::process::id(), (0, 999_999)));
    }
}
