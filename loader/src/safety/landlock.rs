// SPDX-License-Identifier: GPL-2.0-or-later

//! Restricts the files that the user part of a set-uid spilerun can open during its session: Landlock (Linux 5.13), by
//! its three system calls. On kernels without it (5.10, or not enabled) only the caller's own rights apply.
//!
//! By hand: the crate `landlock` negotiates rights, and depends on thiserror and enumflags2.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;

/// Access rights of include/uapi/linux/landlock.h.
const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
/// Since version 3.
const TRUNCATE: u64 = 1 << 14;
/// All rights of version 1: bits 0 to 12.
const FIRST: u64 = (1 << 13) - 1;
const _: () = assert!(FIRST & (EXECUTE | MAKE_SOCK) == EXECUTE | MAKE_SOCK);

const ASK_VERSION: u32 = 1;
const BENEATH: u32 = 1;

/// `struct landlock_ruleset_attr` as of version 1.
#[repr(C)]
struct Ruleset {
    handled: u64,
}

/// `struct landlock_path_beneath_attr`
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// Access to a file, or to the files below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Read and list.
    Read,
    /// Also write.
    Write,
    /// Create, write and remove files and sockets.
    Keep,
}

impl FileAccess {
    fn bits(self) -> u64 {
        match self {
            FileAccess::Read => READ_FILE | READ_DIR,
            FileAccess::Write => READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE,
            FileAccess::Keep => READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | REMOVE_FILE | MAKE_REG | MAKE_SOCK,
        }
    }
}

/// Restricts the calling thread, and threads that it starts later, to these paths permanently. Files that are already
/// open stay open; missing paths are skipped. False: this kernel has no Landlock. Must be called after
/// PR_SET_NO_NEW_PRIVS.
pub fn restrict<'p>(paths: impl IntoIterator<Item = (&'p Path, FileAccess)>) -> io::Result<bool> {
    // SAFETY: no structure is read with this flag.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0usize, 0usize, ASK_VERSION) };
    if version < 1 {
        return Ok(false);
    }
    let handled = if version >= 3 { FIRST | TRUNCATE } else { FIRST };
    let attributes = Ruleset { handled };
    // SAFETY: reads one structure of this size.
    let ruleset = Errno::result(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size_of::<Ruleset>(), 0)
    })?;
    // SAFETY: the descriptor is new, so nothing else owns it.
    let ruleset = unsafe { OwnedFd::from_raw_fd(ruleset as i32) };
    for (path, right) in paths {
        let Ok(parent) = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()) else { continue };
        let is_directory =
            nix::sys::stat::fstat(&parent).is_ok_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFDIR);
        let of_files = if is_directory { u64::MAX } else { EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE };
        let rule = PathBeneath { allowed: right.bits() & handled & of_files, parent: parent.as_raw_fd() };
        // SAFETY: reads one structure, with a descriptor that lives over the call.
        Errno::result(unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), BENEATH, &raw const rule, 0)
        })?;
    }
    // SAFETY: takes numbers.
    Errno::result(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_permitted_paths_are_opened() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("file"), "x").unwrap();
        // This restricts only the new thread.
        let restricted = std::thread::spawn(move || {
            nix::sys::prctl::set_no_new_privs().unwrap();
            let paths = [(inside.path(), FileAccess::Keep), (Path::new("/etc/passwd"), FileAccess::Read)];
            if !restrict(paths).unwrap() {
                return;
            }
            let file = inside.path().join("file");
            fs::write(&file, "x").unwrap();
            fs::write(&file, "y").unwrap();
            fs::rename(&file, inside.path().join("other")).unwrap();
            fs::remove_file(inside.path().join("other")).unwrap();
            assert!(fs::read("/etc/passwd").is_ok());
            assert!(
                fs::read(outside.path().join("file")).is_err() && fs::write(outside.path().join("new"), "").is_err()
            );
            assert!(fs::read("/etc/group").is_err() && fs::read_dir("/etc").is_err());
            assert!(fs::OpenOptions::new().write(true).open("/etc/passwd").is_err());
        });
        restricted.join().unwrap();
    }
}
