// SPDX-License-Identifier: GPL-2.0-or-later

//! Temporary files of a test run in memory. Compilers, scripts and guests make some hundred thousand of them; creating one
//! on ext4 takes the longer the more were removed a short time ago (recently_deleted() in fs/ext4/ialloc.c), which was a
//! twelfth of the CPU time of a run.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::sys::statvfs::{FsFlags, statvfs};

const PLACE: &str = "/dev/shm";
const PREFIX: &str = "spile-test-";
/// What the file system must have free.
const ROOM: u64 = 6 << 30;
/// What must be available before the run: guests and compilers take the rest.
const MEMORY: u64 = 12 << 30;
/// Younger directories without a lock are being created.
const YOUNG: Duration = Duration::from_secs(60);

/// The directory of a run; dropping it removes it. It is locked (flock(2)) for as long as the run lives.
pub struct Temporary {
    path: PathBuf,
    _held: File,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes TMPDIR a directory in memory if there is enough, by executing this program again; a TMPDIR that is set stays.
/// The value is to be kept during the run. None: temporary files are where they usually are.
pub fn enter() -> Option<Temporary> {
    let place = Path::new(PLACE);
    let own = place.join(format!("{PREFIX}{}", std::process::id()));
    match env::var_os("TMPDIR") {
        Some(chosen) if Path::new(&chosen) == own => match create(&own) {
            Ok(temporary) => Some(temporary),
            Err(error) => {
                eprintln!("xtask: {}: {error}", own.display());
                None
            }
        },
        Some(_) => None,
        None => {
            remove_strays(place);
            if suits(place) {
                // exec() returns only if it fails.
                let mut again = Command::new(crate::tree::own_program());
                let error = again.args(env::args_os().skip(1)).env("TMPDIR", &own).exec();
                eprintln!("xtask: cannot execute itself again, temporary files stay on the disk: {error}");
            }
            None
        }
    }
}

fn create(path: &Path) -> io::Result<Temporary> {
    // Users of tests make files there, as in /tmp.
    fs::DirBuilder::new().mode(0o700).create(path)?;
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
    let held = File::open(path)?;
    held.try_lock().map_err(io::Error::from)?;
    Ok(Temporary { path: path.to_path_buf(), _held: held })
}

/// Whether `place` is in memory, large enough, and programs may be executed there.
fn suits(place: &Path) -> bool {
    let in_memory = statfs(place).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC);
    let has_room = statvfs(place).is_ok_and(|found| {
        let free = found.blocks_available() * found.fragment_size();
        free >= ROOM && !found.flags().intersects(FsFlags::ST_NOEXEC | FsFlags::ST_RDONLY)
    });
    in_memory && has_room && available().is_some_and(|bytes| bytes >= MEMORY)
}

/// Bytes that programs can have without swapping: MemAvailable of /proc/meminfo.
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Removes the directories of runs that were killed.
fn remove_strays(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw());
        if !ours {
            continue;
        }
        let path = entry.path();
        let old = |found: fs::Metadata| found.modified().ok()?.elapsed().ok();
        let Some(age) = entry.metadata().ok().and_then(old) else { continue };
        if age > YOUNG && File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn made_long_ago(path: &Path) {
        fs::create_dir(path).expect("a directory");
        fs::write(path.join("file"), "").expect("a file");
        File::open(path).and_then(|file| file.set_modified(SystemTime::now() - 2 * YOUNG)).expect("its time");
    }

    #[test]
    fn only_old_directories_that_nobody_holds_are_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let [stray, held, young, other] =
            ["spile-test-1", "spile-test-2", "spile-test-3", "others"].map(|name| place.path().join(name));
        made_long_ago(&stray);
        made_long_ago(&held);
        made_long_ago(&other);
        fs::create_dir(&young).expect("a directory");
        let lock = File::open(&held).expect("the directory");
        lock.try_lock().expect("nobody else has it");
        remove_strays(place.path());
        assert_eq!([&stray, &held, &young, &other].map(|path| path.exists()), [false, true, true, true]);
    }

    #[test]
    fn a_directory_is_locked_and_removed_at_the_end() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("own");
        let temporary = create(&path).expect("it is free");
        assert!(File::open(&path).expect("it is there").try_lock().is_err());
        assert!(create(&path).is_err());
        drop(temporary);
        assert!(!path.exists());
    }

    #[test]
    fn a_disk_does_not_suit() {
        assert!(!suits(Path::new("/proc")));
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
    }
}
