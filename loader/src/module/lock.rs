// SPDX-License-Identifier: GPL-2.0-or-later

//! The loaders' locks: of all loaders, of each module name, and the claims of services to their names.

use std::fs;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;

use crate::host::byte_lock;

/// The lock file: a file of the kernel that has always existed and that only root may open (0200). Nothing is written
/// to it.
const LOCK: &str = "/sys/module/kernel/uevent";
/// Used if sysfs is read-only or does not have it: a directory created for root only.
const LOCK_DIRECTORY: &str = "/run/spile";
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// Held from counting what users' sessions take until the own device is open. Nobody waits for anything else with it, least
/// of all for a module to go: the kernel waits for whoever reads the module's files in sysfs then, however long he gets no
/// CPU time. Only root can open the lock file and block others.
#[derive(Debug)]
pub enum Lock {
    /// Until it is dropped.
    Held(Flock<fs::File>),
    /// Another spilerun held it until the timeout: leftovers stay.
    Busy,
    /// This host has no lock file.
    Missing,
}

impl Lock {
    /// Waits at most ten seconds.
    pub fn take() -> Lock {
        let Some(mut file) = open_lock() else { return Lock::Missing };
        for _ in 0..TRIES {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Lock::Held(lock),
                Err((back, Errno::EAGAIN | Errno::EINTR)) => file = back,
                Err(_) => return Lock::Missing,
            }
            std::thread::sleep(PAUSE);
        }
        Lock::Busy
    }

    /// Whether no other loader can hold it.
    pub fn is_held(&self) -> bool {
        matches!(self, Lock::Held(_))
    }
}

/// Of one module name: held by who loads such a module, until its device is open, so that nobody mistakes it for a leftover;
/// and by who removes one. A byte of the lock file.
#[derive(Debug)]
pub struct NameLock {
    byte: i64,
    /// `None`: there is no lock file, so others may have it, too.
    file: Option<fs::File>,
}

/// Bytes of names begin behind all those of users' memory (`crowd::Share`).
const NAMES: i64 = 1 << 49;

impl NameLock {
    /// `None`: another loader has it. Where there is no lock file, nobody is kept out.
    pub fn take(name: &str) -> Option<NameLock> {
        let byte = NAMES + i64::from(hash(name));
        let Some(file) = open_lock() else { return Some(NameLock { byte, file: None }) };
        match byte_lock::lock(&file, byte) {
            Ok(()) => Some(NameLock { byte, file: Some(file) }),
            Err(errno) if byte_lock::is_taken(errno) => None,
            Err(_) => Some(NameLock { byte, file: None }),
        }
    }

    /// Waits at most ten seconds.
    pub(crate) fn wait(name: &str) -> Option<NameLock> {
        NameLock::wait_while(name, || true)
    }

    /// The same, as long as the condition holds.
    pub(crate) fn wait_while(name: &str, mut waits: impl FnMut() -> bool) -> Option<NameLock> {
        for _ in 0..TRIES {
            let taken = NameLock::take(name);
            if taken.is_some() || !waits() {
                return taken;
            }
            std::thread::sleep(PAUSE);
        }
        None
    }

    /// False where there is no lock file: others may have it, too.
    pub(crate) fn is_held(&self) -> bool {
        self.file.is_some()
    }

    /// Whether it is the lock of that name.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        self.byte == NAMES + i64::from(hash(name))
    }
}

/// Claims begin behind the names.
const CLAIMS: i64 = 1 << 50;

/// Until this process ends, no user may start a module of this name. Those that are loading one may still do so: then it is
/// there as soon as the name's lock can be taken.
pub fn claim(name: &str) {
    if let Some(file) = open_lock()
        && byte_lock::lock(&file, CLAIMS + i64::from(hash(name))).is_ok()
    {
        let _stays_open = file.into_raw_fd();
    }
}

/// Whether a service that starts now has claimed the name. Asked with the name's lock held.
pub(crate) fn is_claimed(name: &str) -> bool {
    open_lock().is_some_and(|file| byte_lock::is_locked(&file, CLAIMS + i64::from(hash(name))))
}

/// FNV-1a. Two names of the same number share a lock, which does no harm.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Opens the lock file; `None`: there is none, or others may open it.
pub(crate) fn open_lock() -> Option<fs::File> {
    let file = fs::OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(LOCK).ok();
    file.filter(is_root_s_alone).or_else(|| open_lock_directory(Path::new(LOCK_DIRECTORY)))
}

/// A file in the directory: of a directory single bytes cannot be locked, so it is used only where it is read-only. Uses an
/// existing directory unchanged, unless others may open it.
fn open_lock_directory(path: &Path) -> Option<fs::File> {
    // It may exist, also on a read-only file system.
    let _ = fs::DirBuilder::new().mode(0o700).create(path);
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok().filter(is_root_s_alone)?;
    let mut file = fs::OpenOptions::new();
    file.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    Some(file.open(path.join("lock")).ok().filter(is_root_s_alone).unwrap_or(directory))
}

fn is_root_s_alone(file: &fs::File) -> bool {
    file.metadata().is_ok_and(|status| status.uid() == 0 && status.mode() & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_that_others_cannot_open_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let [new, loose, link] = ["new", "loose", "link"].map(|name| directory.path().join(name));
        fs::DirBuilder::new().mode(0o755).create(&loose).unwrap();
        std::os::unix::fs::symlink("/root", &link).unwrap();
        assert!(open_lock_directory(&loose).is_none() && open_lock_directory(&link).is_none());
        assert_eq!(open_lock_directory(&new).is_some(), nix::unistd::geteuid().is_root());
        assert_eq!(fs::metadata(&new).unwrap().mode() & 0o777, 0o700);
        if nix::unistd::geteuid().is_root() {
            let (one, other) = (open_lock_directory(&new).unwrap(), open_lock_directory(&new).unwrap());
            byte_lock::lock(&one, 5).unwrap();
            assert!(byte_lock::lock(&other, 5).is_err_and(byte_lock::is_taken));
            assert!(
                byte_lock::is_locked(&other, 5) && !byte_lock::is_locked(&one, 5) && !byte_lock::is_locked(&other, 6)
            );
        }
    }
}
