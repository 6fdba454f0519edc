// SPDX-License-Identifier: GPL-2.0-or-later

//! Files that only root can write: approved modules, certificates, limits, configurations.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::libc;
use nix::sys::stat::Mode;
use nix::sys::statvfs::{FsFlags, fstatvfs};

use crate::error::Error;
use crate::host::kernel::{is_module_name, running_release};

const DIRECTORIES: [&str; 2] = ["spile", "systemtap"];
/// Mode bits that let users other than the owner write.
const OTHERS_WRITE: u32 = 0o022;
/// Maximum file size in bytes, as in [`crate::module::file`].
const MAX_BYTES: u64 = 256 << 20;

/// Finds an approved module by name, or by path if that is an approved path. Returns the path, the bytes and what `reserve`
/// returned for their number; these bytes are loaded, whatever happens to the file afterwards.
pub fn read_module<T>(
    module: &Path,
    reserve: impl Fn(u64) -> Result<T, Error>,
) -> Result<(PathBuf, Vec<u8>, T), Error> {
    let refused = || Error::NotApproved { path: module.to_path_buf() };
    let release = running_release();
    let name = module
        .file_name()
        .and_then(OsStr::to_str)
        .map(|name| name.strip_suffix(".ko").unwrap_or(name))
        .ok_or_else(refused)?;
    if !is_module_name(name) || release.is_empty() || release.contains('/') || release.starts_with('.') {
        return Err(refused());
    }
    let places = DIRECTORIES.map(|directory| PathBuf::from(format!("/lib/modules/{release}/{directory}/{name}.ko")));
    // A path means exactly that file; a name means the first match.
    let is_bare = module.components().count() == 1 && module.extension().is_none();
    for place in places.iter().filter(|place| is_bare || place.as_path() == module) {
        let unreadable = |error| Error::Unreadable { path: place.clone(), error };
        let Some(file) = open(place).map_err(unreadable)? else { continue };
        let reserved = reserve(size(&file).map_err(unreadable)?)?;
        return Ok((place.clone(), contents(file).map_err(unreadable)?, reserved));
    }
    Err(if is_bare { Error::NotFound { name: module.to_path_buf(), looked: places.to_vec() } } else { refused() })
}

/// The files of a directory, each with its contents, or with the reason why others than root can write it.
pub fn certificates(directory: &Path) -> Vec<(PathBuf, std::io::Result<Vec<u8>>)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    // Removed meanwhile: skipped.
    paths.into_iter().filter_map(|path| Some((path.clone(), read(&path).transpose()?))).collect()
}

/// The contents of the file, opened as [`open`] does. None: it does not exist.
pub fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    open(path)?.map(contents).transpose()
}

/// In bytes. Nobody can change it now.
fn size(file: &OwnedFd) -> std::io::Result<u64> {
    Ok(std::fs::File::from(file.try_clone()?).metadata()?.len())
}

fn contents(file: OwnedFd) -> std::io::Result<Vec<u8>> {
    let most = size(&file)?.min(MAX_BYTES);
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "it is too large")),
        false => Ok(bytes),
    }
}

/// Opens the file directory by directory from the root, following no link except root's own `/lib`. Each component is
/// checked on the descriptor from which the next one is opened, so nothing can be exchanged in between. None: it does
/// not exist.
fn open(path: &Path) -> std::io::Result<Option<OwnedFd>> {
    let not_approved = || {
        std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            "it, or a directory above it, does not belong to root, or others can write to it",
        )
    };
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let mut at: OwnedFd = std::fs::File::open("/")?.into();
    let names: Vec<&OsStr> = path
        .components()
        .filter_map(|part| if let Component::Normal(name) = part { Some(name) } else { None })
        .collect();
    for (depth, name) in names.iter().enumerate() {
        // Only root can create entries in /.
        let follow = if depth == 0 { OFlag::empty() } else { OFlag::O_NOFOLLOW };
        at = match openat(at.as_fd(), *name, flags | follow, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP) => return Err(not_approved()),
            Err(errno) => return Err(errno.into()),
        };
        let status = std::fs::File::from(at.try_clone()?).metadata()?;
        let is_last = depth + 1 == names.len();
        if status.uid() != 0
            || status.mode() & OTHERS_WRITE != 0
            || status.is_file() != is_last
            || status.is_dir() == is_last
        {
            return Err(not_approved());
        }
    }
    let denied = |why| Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, why));
    match writers(&at) {
        Writers::None => {}
        Writers::Some => {
            return denied("a process has it open for writing: try again when it is complete");
        }
        // Nobody can write there.
        Writers::Unknown if is_read_only(&at) => {}
        Writers::Unknown => {
            return denied(
                "its file system has no leases and cannot tell whether a process has it open for writing: use a local file system, or mount this one read-only",
            );
        }
    }
    Ok(Some(at))
}

/// Whether the file is open for writing.
#[derive(Debug, PartialEq, Eq)]
enum Writers {
    None,
    Some,
    /// The file system does not support leases.
    Unknown,
}

/// Whether a descriptor for writing to the file is open anywhere; one opened before root became the owner can still
/// write. A read lease (fcntl(2)) is granted only if there is none. Copying the bytes first would not help: they may
/// have been changed before.
fn writers(file: &OwnedFd) -> Writers {
    use std::os::fd::AsRawFd;
    // SAFETY: takes numbers. The lease is released at once: nobody waits for it, as only root can open the file for
    // writing now.
    match Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) }) {
        Ok(_) => {
            // SAFETY: as above.
            let _ = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
            Writers::None
        }
        Err(Errno::EAGAIN) => Writers::Some,
        Err(_) => Writers::Unknown,
    }
}

/// Whether the file system is mounted read-only. (If root also mounts it elsewhere for writing, root knows who writes
/// there.)
fn is_read_only(file: &OwnedFd) -> bool {
    fstatvfs(file).is_ok_and(|status| status.flags().contains(FsFlags::ST_RDONLY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_only_root_can_write_are_opened() {
        assert!(read(Path::new("/etc/passwd")).unwrap().is_some());
        assert!(read(Path::new("/etc/no-such-file")).unwrap().is_none());
        // Everybody may write to /tmp.
        let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        assert!(read(file.path()).is_err());
        assert!(read(Path::new("/etc")).is_err());
        assert!(read(Path::new("/proc/self/exe")).is_err());
    }

    #[test]
    fn an_open_descriptor_for_writing_is_found() {
        let mut writer = tempfile::NamedTempFile::new().unwrap();
        let reader: OwnedFd = std::fs::File::open(writer.path()).unwrap().into();
        assert_eq!(writers(&reader), Writers::Some);
        std::io::Write::write_all(&mut writer, b"x").unwrap();
        let path = writer.into_temp_path();
        assert_eq!(writers(&reader), Writers::None);
        // A file system without leases that is not read-only.
        let device: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        assert_eq!((writers(&device), is_read_only(&device)), (Writers::Unknown, false));
        std::mem::drop(path);
    }

    #[test]
    fn certificates_that_others_can_write_are_ignored() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.der"), "x").unwrap();
        let found = certificates(directory.path());
        assert!(found.len() == 1 && found[0].1.is_err());
        assert!(certificates(Path::new("/etc/no-such-directory")).is_empty());
    }
}
