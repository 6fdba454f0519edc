// SPDX-License-Identifier: GPL-2.0-or-later

//! The scratch directory of a run: below the system's temporary directory, private, and removed at the end.
//!
//! A run that is killed cannot remove its directory, so the next run does: the directory itself is locked (flock(2)) for
//! as long as the run or a program that it started lives. One that is preserved for the user holds a file that says so.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};

use super::cache::check_scratch_parent;
use super::unfinished::{SCRATCH_PREFIX as PREFIX, Unfinished};

/// Of one that is preserved and cannot be marked.
const KEPT_PREFIX: &str = "spile-kept-";
const KEPT: &str = ".kept";

/// A private directory for temporary files; dropping it removes it.
pub struct Scratch {
    // Fields are dropped in this order: the directory must not be seen unlocked while it exists.
    directory: Directory,
    lock: Option<Flock<File>>,
}

struct Directory {
    path: PathBuf,
    /// None: it stays.
    unfinished: Option<Unfinished>,
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.unfinished.is_some() {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

impl Scratch {
    /// Creates one in the system's temporary directory, if nobody else can replace what is there.
    pub fn new() -> io::Result<Scratch> {
        let place = std::env::temp_dir();
        check_scratch_parent(&place).map_err(io::Error::other)?;
        Scratch::below(&place)
    }

    /// Creates one in `place`, and removes those of killed runs.
    pub fn below(place: &Path) -> io::Result<Scratch> {
        remove_strays(place);
        loop {
            let mut unfinished = None;
            let make = |path: &Path| {
                unfinished = Some(Unfinished::new(path));
                std::fs::DirBuilder::new().mode(0o700).create(path)
            };
            let made = tempfile::Builder::new().prefix(PREFIX).make_in(place, make)?;
            let path = made.into_temp_path().keep()?;
            let directory = Directory { path, unfinished };
            // Whatever the umask is: what becomes a module is made in it.
            let private = std::fs::set_permissions(&directory.path, std::fs::Permissions::from_mode(0o700));
            // Until it is locked another run may take it for a dead run's, and remove it.
            let opened = match private.and_then(|()| File::open(&directory.path)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            // File systems that lock no directories: nobody will take this one for a dead run's there.
            let lock = locked(opened);
            if lock.as_ref().is_none_or(|lock| is_at(lock, &directory.path)) {
                return Ok(Scratch { directory, lock });
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.directory.path
    }

    /// While programs started now run, the directory counts as used.
    pub fn share_with_programs(&self, share: bool) {
        if let Some(lock) = &self.lock {
            let flags = if share { FdFlag::empty() } else { FdFlag::FD_CLOEXEC };
            let _ = fcntl(&**lock, FcntlArg::F_SETFD(flags));
        }
    }

    /// Preserves the directory after the run.
    pub fn keep(mut self) -> PathBuf {
        let is_marked = File::create(self.path().join(KEPT)).is_ok();
        self.directory.unfinished = None;
        let path = self.path().to_path_buf();
        let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(PREFIX));
        match name.filter(|_| !is_marked) {
            // On a full disk there is room for another name.
            Some(name) => {
                let other = path.with_file_name(format!("{KEPT_PREFIX}{name}"));
                if std::fs::rename(&path, &other).is_ok() { other } else { path }
            }
            None => path,
        }
    }
}

/// Waits for the lock; None where there is none.
fn locked(mut file: File) -> Option<Flock<File>> {
    loop {
        match Flock::lock(file, FlockArg::LockExclusive) {
            Ok(lock) => return Some(lock),
            Err((same, Errno::EINTR)) => file = same,
            Err(_) => return None,
        }
    }
}

/// Whether the opened directory is the one at `path`.
fn is_at(opened: &File, path: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    opened.metadata().ok().map(identity) == std::fs::symlink_metadata(path).ok().map(identity)
}

/// Removes what nobody holds and nobody preserved.
fn remove_strays(place: &Path) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        // The name first: /tmp may have thousands of others' files.
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let own = nix::unistd::geteuid().as_raw();
        if !entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == own) {
            continue;
        }
        let path = entry.path();
        let Ok(opened) = File::open(&path) else { continue };
        // Held until it is gone: its maker finds out when it has the lock.
        let Ok(lock) = Flock::lock(opened, FlockArg::LockExclusiveNonblock) else { continue };
        if is_at(&lock, &path) && !path.join(KEPT).exists() {
            let _ = std::fs::remove_dir_all(path);
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
        // Of a run that was killed when it had just made its directory, and of one that used or removed it.
        let strays = ["made", "used"].map(|name| place.path().join(format!("{PREFIX}{name}")));
        strays.iter().for_each(|stray| std::fs::create_dir(stray).unwrap());
        std::fs::create_dir(strays[1].join("deep")).unwrap();
        std::fs::write(strays[1].join("deep/file"), "").unwrap();
        let foreign = place.path().join("spile-old");
        std::fs::create_dir(&foreign).unwrap();
        let alive = Scratch::below(place.path()).unwrap();
        assert!(strays.iter().all(|stray| !stray.exists()) && foreign.exists());
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
        let Scratch { mut directory, lock } = dead;
        directory.unfinished = None;
        let lock = lock.unwrap();
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

    #[test]
    fn runs_that_begin_at_once_do_not_take_each_others_directory() {
        let place = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let scratch = Scratch::below(place.path()).unwrap();
                        std::fs::write(scratch.path().join("file"), "").unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
