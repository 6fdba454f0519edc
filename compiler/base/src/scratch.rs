// SPDX-License-Identifier: GPL-2.0-or-later

//! The scratch directory of a run: below the system's temporary directory, private, and removed at the end.
//!
//! A run that is killed cannot remove its directory, so the next run does: the directory holds a lock for as long as
//! the run or a program that it started lives.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};
use tempfile::TempDir;

const PREFIX: &str = "spile-";
const LOCK: &str = ".lock";

/// A private directory for temporary files; dropping it removes it.
pub struct Scratch {
    // Fields are dropped in this order: the directory must not be seen unlocked while it exists.
    directory: TempDir,
    _lock: Option<Flock<File>>,
}

impl Scratch {
    /// Creates one in `place`, and removes those of killed runs.
    pub fn below(place: &Path) -> std::io::Result<Scratch> {
        remove_strays(place);
        // Whatever the umask is: what becomes a module is made in it.
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let directory = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(place)?;
        // It appears locked: others take one that nobody holds for a dead run's.
        let unnamed = directory.path().join(format!("{LOCK}.new"));
        let lock = File::create(&unnamed).ok();
        let lock = lock.and_then(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock).ok());
        let lock = lock.filter(|_| std::fs::rename(&unnamed, directory.path().join(LOCK)).is_ok());
        Ok(Scratch { directory, _lock: lock })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// While programs started now run, the directory counts as used.
    pub fn share_with_programs(&self, share: bool) {
        if let Some(lock) = &self._lock {
            let flags = if share { FdFlag::empty() } else { FdFlag::FD_CLOEXEC };
            let _ = fcntl(&**lock, FcntlArg::F_SETFD(flags));
        }
    }

    /// Preserves the directory after the run.
    pub fn keep(self) -> PathBuf {
        let _ = std::fs::remove_file(self.path().join(LOCK));
        self.directory.keep()
    }
}

/// Directories without a lock file were preserved or are being created: they stay, except for empty ones that are old.
fn remove_strays(place: &Path) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        // The name first: /tmp may have thousands of others' files.
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let own = std::os::unix::fs::MetadataExt::uid;
        let ours = entry
            .metadata()
            .is_ok_and(|metadata| metadata.is_dir() && own(&metadata) == nix::unistd::geteuid().as_raw());
        if !ours {
            continue;
        }
        let path = entry.path();
        match File::open(path.join(LOCK)) {
            Ok(file) => {
                if Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok() {
                    let _ = std::fs::remove_dir_all(path);
                }
            }
            Err(_) => {
                let old = |metadata: std::fs::Metadata| metadata.modified().ok()?.elapsed().ok();
                if entry.metadata().ok().and_then(old).is_some_and(|age| age > Duration::from_secs(60)) {
                    let _ = std::fs::remove_dir(path);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_reads_it() {
        let place = tempfile::tempdir().unwrap();
        let scratch = Scratch::below(place.path()).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&scratch.path().metadata().unwrap()) & 0o777, 0o700);
    }

    #[test]
    fn what_a_killed_run_left_goes_with_the_next() {
        let place = tempfile::tempdir().unwrap();
        let stray = place.path().join("spile-dead");
        std::fs::create_dir_all(stray.join("deep")).unwrap();
        std::fs::write(stray.join(LOCK), "").unwrap();
        let foreign = place.path().join("other");
        std::fs::create_dir(&foreign).unwrap();
        let alive = Scratch::below(place.path()).unwrap();
        assert!(!stray.exists() && foreign.exists());
        let kept = Scratch::below(place.path()).unwrap();
        std::fs::write(kept.path().join("file"), "").unwrap();
        let kept = kept.keep();
        let third = Scratch::below(place.path()).unwrap();
        assert!(alive.path().exists() && kept.join("file").exists());
        let gone = third.path().to_path_buf();
        drop(third);
        assert!(!gone.exists());
    }

    #[test]
    fn a_program_that_outlives_its_run_keeps_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let dead = Scratch::below(place.path()).unwrap();
        let path = dead.path().to_path_buf();
        dead.share_with_programs(true);
        let mut sleep = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        dead.share_with_programs(false);
        // As if the run had been killed: the lock is released, the directory stays.
        let Scratch { directory, _lock } = dead;
        let _ = directory.keep();
        let lock = _lock.unwrap();
        nix::unistd::close(std::os::fd::AsRawFd::as_raw_fd(&*lock)).unwrap();
        std::mem::forget(lock);
        let next = Scratch::below(place.path()).unwrap();
        let there = path.exists();
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        drop(next);
        let _next = Scratch::below(place.path()).unwrap();
        assert!(there && !path.exists());
    }
}
