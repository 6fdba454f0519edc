// SPDX-License-Identifier: GPL-2.0-or-later

//! Files that others may have put there, or named: only regular ones are opened. To open a device already does something: it
//! starts a watchdog, or rewinds a tape. So may reading what the kernel makes up: a file in `/sys` can be a device's registers.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc::{O_NOCTTY, O_NONBLOCK, O_PATH};
use nix::sys::statfs::fstatfs;

/// File systems whose files the kernel makes up, by their magic numbers (statfs(2), include/uapi/linux/magic.h).
const MADE_UP: [i64; 20] = [
    0x0000_0187, // autofs
    0x4249_4e4d, // binfmt_misc
    0xcafe_4a11, // bpf
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6265_6570, // configfs
    0x6462_6720, // debugfs
    0x0000_1cd1, // devpts
    0xde5e_81e4, // efivarfs
    0x6573_5543, // fusectl
    0x1980_0202, // mqueue
    0x6e66_7364, // nfsd
    0x6e73_6673, // nsfs
    0x0000_9fa0, // proc
    0x6165_676c, // pstore
    0x0765_5821, // resctrl
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0x6265_6572, // sysfs
    0x7472_6163, // tracefs
];
/// What is read of them: the kernel's types.
const TYPES: &str = "/sys/kernel/btf";

/// Opens the file for reading; links are followed.
///
/// # Errors
///
/// Those of open(2), and `InvalidInput` for what is no regular file, or one that the kernel makes up.
pub fn open(path: &Path) -> Result<File, Error> {
    let options = |flags| OpenOptions::new().read(true).custom_flags(flags).clone();
    // Such a descriptor only names the file, which nobody can exchange any more (open(2), O_PATH).
    let named = options(O_PATH).open(path)?;
    if !named.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let is_plain = path.components().all(|part| part != std::path::Component::ParentDir);
    let is_made_up = MADE_UP.contains(&fstatfs(&named)?.filesystem_type().0);
    if is_made_up && !(is_plain && path.starts_with(TYPES)) {
        return Err(Error::new(ErrorKind::InvalidInput, "a file that the kernel makes up"));
    }
    let again = format!("/proc/self/fd/{}", named.as_raw_fd());
    // A lease on it may keep open(2) waiting otherwise.
    options(O_NOCTTY | O_NONBLOCK).open(again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_the_kernel_makes_up_are_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/sys/kernel/notes", &link).unwrap();
        for path in ["/proc/self/maps", "/sys/kernel/notes", "/sys/kernel/btf/../notes", link.to_str().unwrap()] {
            let error = open(Path::new(path)).expect_err(path);
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path}");
        }
        assert!(open(Path::new("/proc/self/exe")).is_ok(), "a link to a file elsewhere");
        let types = Path::new("/sys/kernel/btf/vmlinux");
        assert!(!types.exists() || open(types).is_ok());
    }

    #[test]
    fn devices_and_pipes_are_not_opened() {
        // Each time that it is opened it makes another terminal.
        let terminals = || std::fs::read_dir("/dev/pts").map_or(0, Iterator::count);
        let before = terminals();
        for path in ["/dev/ptmx", "/dev/null", "/dev", "/proc/self/fd"] {
            let error = open(Path::new(path)).expect_err(path);
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path}");
        }
        assert_eq!(terminals(), before);

        let directory = tempfile::tempdir().unwrap();
        let [pipe, file, link] = ["pipe", "file", "link"].map(|name| directory.path().join(name));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(open(&pipe).is_err());
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(std::io::read_to_string(open(&link).unwrap()).unwrap(), "text");
    }
}
