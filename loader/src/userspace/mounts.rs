// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds mounted file systems that a user serves (FUSE): a process of that user answers each call on them, or never
//! does. Files that others have mapped are not opened there, because open(2) may block forever.
//!
//! In a mount namespace of their own (a container without root) users also mount overlays of such file systems, which
//! look like any other overlay. There only what cannot have such a layer counts: the kernel's own file systems,
//! those of a disk, and what this process has mounted as well, as it has the overlays of containers that root has
//! started.

use std::ffi::{OsStr, c_int};
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::libc;

use crate::userspace::look;

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
    /// The same in all mount namespaces.
    id: u32,
    /// Major and minor number.
    device: (u32, u32),
    /// The user that serves it; `None`: the kernel does.
    user: Option<u32>,
    /// One of [`MADE_UP`].
    is_made_up: bool,
    /// Of a disk, or in memory: it has no layers.
    is_plain: bool,
}

impl Mount {
    fn parse(line: &str) -> Option<Mount> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        let id = fields.next()?.parse().ok()?;
        let (major, minor) = fields.nth(1)?.split_once(':')?;
        let mut kind = kind.split(' ');
        let name = kind.next()?;
        let is_made_up = MADE_UP.contains(&name);
        let is_served = name.starts_with("fuse") && !is_made_up;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        let is_plain = !is_served && (device.0 != 0 || ["tmpfs", "ramfs"].contains(&name));
        let user = |options: &str| options.split(',').find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
        // A mount without a user may be served by anybody.
        let user = is_served.then(|| kind.next_back().and_then(user).unwrap_or(u32::MAX));
        Some(Mount { id, device, user, is_made_up, is_plain })
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
pub struct Mounts {
    mounts: Vec<Mount>,
    /// Those of this process, if others may mount what they want in this namespace.
    known: Option<Vec<Mount>>,
}

/// Whether only root and this user can mount in the namespace of the process: it belongs to the user namespace of
/// this process, or to one that this user has made (ioctl_ns(2)).
pub fn are_trusted(process: u32) -> bool {
    const NS_GET_USERNS: libc::Ioctl = 0xb701;
    const NS_GET_OWNER_UID: libc::Ioctl = 0xb704;
    let number = |found: fs::Metadata| (found.dev(), found.ino());
    let same = |own: &str, file: &File| {
        let own = fs::metadata(format!("/proc/self/ns/{own}")).ok().map(number);
        own.is_some() && own == file.metadata().ok().map(number)
    };
    let Ok(mounts) = File::open(format!("/proc/{process}/ns/mnt")) else { return false };
    if same("mnt", &mounts) {
        return true;
    }
    // SAFETY: takes no argument.
    let owner = unsafe { libc::ioctl(mounts.as_raw_fd(), NS_GET_USERNS) };
    if owner < 0 {
        return false;
    }
    // SAFETY: it is new, and nobody else has its number.
    let owner = File::from(unsafe { OwnedFd::from_raw_fd(owner) });
    let own = nix::unistd::geteuid();
    let mut user: libc::uid_t = 0;
    // SAFETY: there is room for what it writes.
    let is_told = unsafe { libc::ioctl(owner.as_raw_fd(), NS_GET_OWNER_UID, &raw mut user) } == 0;
    same("user", &owner) || is_told && !own.is_root() && user == own.as_raw()
}

/// `None`: its file is too long, or cannot be read.
fn mounts_of(process: &str) -> Option<Vec<Mount>> {
    let mut mounts = Vec::new();
    let is_whole = look::lines(&format!("/proc/{process}/mountinfo"), |line| {
        mounts.extend(Mount::parse(line));
        true
    });
    is_whole.then_some(mounts)
}

impl Mounts {
    /// Those of this process; a test may have a mount namespace for its thread.
    pub fn own() -> Mounts {
        Mounts { mounts: mounts_of("thread-self").unwrap_or_default(), known: None }
    }

    /// Those of a process, with paths as it knows them; none if it is gone.
    pub fn of(process: u32) -> Mounts {
        let known = (!are_trusted(process)).then(|| Mounts::own().mounts);
        match mounts_of(&process.to_string()) {
            Some(mounts) => Mounts { mounts, known },
            // Nothing is known about where its files are.
            None => Mounts { mounts: Vec::new(), known: Some(Vec::new()) },
        }
    }

    fn is_answered(&self, mount: &Mount) -> bool {
        let Some(known) = &self.known else { return mount.answers() };
        known.iter().find(|known| known.device == mount.device).map_or(mount.is_plain, Mount::answers)
    }

    /// What is known about the mount with this number; `None`: it is not among these.
    fn at(&self, id: u32) -> Option<At> {
        let mount = self.mounts.iter().find(|mount| mount.id == id)?;
        Some(match (self.is_answered(mount), mount.is_made_up) {
            (false, _) => At::Served,
            (true, true) => At::MadeUp,
            (true, false) => At::Files,
        })
    }

    /// Whether no other user serves any of them.
    pub fn all_answer(&self) -> bool {
        self.mounts.iter().all(|mount| self.is_answered(mount))
    }

    /// Whether no other user serves the file system with this device number; `None`: it is not among these.
    pub fn covers(&self, device: (u32, u32)) -> Option<bool> {
        self.mounts.iter().find(|mount| mount.device == device).map(|mount| self.is_answered(mount))
    }
}

/// What a mounted file system is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// It has files, and no other user serves it.
    Files,
    /// The kernel makes it up.
    MadeUp,
    /// Another user serves it: a call on it may wait for ever.
    Served,
}

/// The number of the mount that an open file is on. No call of its file system.
pub fn id_of(file: &OwnedFd) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
}

/// Major and minor number of the device, and inode.
pub type Identity = (u32, u32, u64);

/// The identity of an open file as the kernel has it cached, without a request to the file system (statx(2)).
pub fn identity(file: &OwnedFd) -> Option<Identity> {
    let flags: c_int = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is a C string, and there is room for what the kernel writes.
    let result = unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, libc::STATX_INO, found.as_mut_ptr()) };
    Errno::result(result).ok()?;
    // SAFETY: numbers alone, of which all bits may be zero.
    let found = unsafe { found.assume_init() };
    Some((found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
}

/// The mount with this number, as a process has it, or this one (`None`). An open file on it keeps it what it is.
pub fn at(process: Option<u32>, id: u32) -> At {
    let Some(process) = process else { return Mounts::own().at(id).unwrap_or(At::Files) };
    // Above the root of the process it is not among its mounts.
    let unknown = || if are_trusted(process) { At::Files } else { At::Served };
    known_at(process, id).unwrap_or_else(unknown)
}

/// `None`: neither this process nor that one has it mounted.
pub fn known_at(process: u32, id: u32) -> Option<At> {
    Mounts::of(process).at(id).or_else(|| Mounts::own().at(id))
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

    impl Mounts {
        fn parse(text: &str) -> Mounts {
            Mounts { mounts: text.lines().filter_map(Mount::parse).collect(), known: None }
        }
    }

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
        let found = [1, 2, 3, 4, 5, 6, 7].map(|id| mounts.at(id).unwrap());
        use At::{Files, MadeUp, Served};
        assert_eq!(found, [Files, Served, Files, MadeUp, Files, Served, MadeUp]);
        assert_eq!(mounts.at(8), None);
        assert!(!mounts.all_answer() && Mounts::parse("3 1 0:41 / /mnt rw - ext4 /dev/vdb rw\n").all_answer());
        let known = [(254, 1), (0, 40), (0, 41), (0, 99)].map(|device| mounts.covers(device));
        assert_eq!(known, [Some(true), Some(false), Some(true), None]);
        let own = Mount::parse(&format!("2 1 0:40 / /a rw - fuse x rw,user_id={}", nix::unistd::geteuid())).unwrap();
        assert!(own.answers());
        let root: OwnedFd = File::open("/").unwrap().into();
        let proc: OwnedFd = File::open("/proc").unwrap().into();
        for process in [None, Some(std::process::id())] {
            assert_eq!([&root, &proc].map(|file| at(process, id_of(file).unwrap())), [Files, MadeUp]);
        }
        assert!(answers(std::process::id(), (254, 9999)) && !answers(std::process::id(), (0, 999_999)));
    }

    #[test]
    fn overlays_that_a_user_has_mounted_may_have_layers_that_never_answer() {
        let text = "1 0 254:1 / / rw - ext4 /dev/vda1 rw\n\
             2 1 0:50 / /tmp rw - overlay ovl rw,lowerdir=/f:/l\n\
             3 1 0:51 / /run rw - overlay overlay rw,lowerdir=/a\n\
             4 1 0:52 / /mem rw - tmpfs none rw\n\
             5 1 0:53 / /fuse rw - fuse x rw,user_id=0,group_id=0\n\
             6 1 7:1 / /blk rw - fuseblk /dev/loop1 rw,user_id=0,group_id=0\n";
        let answered = |mounts: &Mounts| [2, 3, 4, 5, 6, 1].map(|id| mounts.at(id) == Some(At::Files));
        // Root's namespace, as of most containers.
        assert_eq!(answered(&Mounts::parse(text)), [true; 6]);
        let own = "1 0 254:1 / / rw - ext4 /dev/vda1 rw\n9 1 0:51 / /var/lib/c/merged rw - overlay overlay rw\n";
        let foreign = Mounts { known: Some(Mounts::parse(own).mounts), ..Mounts::parse(text) };
        assert_eq!(answered(&foreign), [false, true, true, false, false, true]);
        assert_eq!([(0, 50), (0, 51), (0, 99)].map(|device| foreign.covers(device)), [Some(false), Some(true), None]);
        let none = Mounts { known: Some(Vec::new()), ..Mounts::default() };
        assert_eq!(none.at(1), None, "its mounts cannot be read");
    }

    #[test]
    fn namespaces_of_users_are_recognised() {
        use std::io::Read;
        use std::process::{Command, Stdio};
        assert!(are_trusted(std::process::id()) && !are_trusted(0));
        let start = |options: &str| {
            let mut unshare = Command::new("unshare");
            let unshare = unshare.args([options, "sh", "-c", "echo; exec cat"]);
            unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
        };
        for (options, trusted) in [("-m", true), ("-rm", !nix::unistd::geteuid().is_root())] {
            let Ok(mut child) = start(options) else { return };
            let begun = child.stdout.as_mut().is_some_and(|out| out.read_exact(&mut [0]).is_ok());
            let found = are_trusted(child.id());
            drop(child.stdin.take());
            child.wait().unwrap();
            assert!(!begun || found == trusted, "unshare {options}");
        }
    }
}
