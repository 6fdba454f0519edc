// SPDX-License-Identifier: GPL-2.0-or-later

//! Files that are root's alone: approved modules, certificates, limits, configurations.

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
/// Bits of a mode that let others than the owner write.
const OTHERS_WRITE: u32 = 0o022;
/// A file that is larger is refused, in bytes: as [`crate::module::file`] does.
const MAX_BYTES: u64 = 256 << 20;

/// An approved module by its name, or by its path if that is the approved one: the path, and the bytes, which are those
/// that will be loaded whatever becomes of the file.
pub fn read_module(module: &Path) -> Result<(PathBuf, Vec<u8>), Error> {
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
    // A path means that very file, and a name the first that is there.
    let is_bare = module.components().count() == 1 && module.extension().is_none();
    for place in places.iter().filter(|place| is_bare || place.as_path() == module) {
        match read(place) {
            Ok(Some(bytes)) => return Ok((place.clone(), bytes)),
            Ok(None) => {}
            Err(why) => return Err(Error::Unreadable { path: place.clone(), error: why }),
        }
    }
    Err(if is_bare { Error::NotFound { name: module.to_path_buf(), looked: places.to_vec() } } else { refused() })
}

/// The files in a directory, each with what is in it, or why it is not root's alone.
pub fn certificates(directory: &Path) -> Vec<(PathBuf, std::io::Result<Vec<u8>>)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    // One that has gone meanwhile is none.
    paths.into_iter().filter_map(|path| Some((path.clone(), read(&path).transpose()?))).collect()
}

/// Opens it directory by directory, from the root on, following no link but root's own `/lib`; every step is looked at in
/// the descriptor that the next one starts from, so that nothing can be exchanged in between. None: it is not there.
pub fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let not_approved = || {
        std::io::Error::new(std::io::ErrorKind::PermissionDenied, "it, or a directory above it, is not root's alone")
    };
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let mut at: OwnedFd = std::fs::File::open("/")?.into();
    let names: Vec<&OsStr> = path
        .components()
        .filter_map(|part| if let Component::Normal(name) = part { Some(name) } else { None })
        .collect();
    for (depth, name) in names.iter().enumerate() {
        // Only root can have made what stands in /.
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
            return denied("somebody has it open for writing, root's alone though it is: try again when it is whole");
        }
        // Nobody writes to it there.
        Writers::Unknown if is_read_only(&at) => {}
        Writers::Unknown => {
            return denied(
                "its file system has no leases and cannot tell whether somebody has it open for writing: it can be used from a local file system, or from one that is mounted read-only",
            );
        }
    }
    let mut bytes = Vec::new();
    std::fs::File::from(at).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "it is too large")),
        false => Ok(Some(bytes)),
    }
}

/// Who has a file open for writing.
#[derive(Debug, PartialEq, Eq)]
enum Writers {
    None,
    Some,
    /// Its file system has no leases.
    Unknown,
}

/// Whether a descriptor for writing to the file is open anywhere: one from before it became root's writes on. A lease for reading
/// (fcntl(2)) is given only if there is none. Copying the bytes first would not do: they may have been changed before.
fn writers(file: &OwnedFd) -> Writers {
    use std::os::fd::AsRawFd;
    // SAFETY: takes numbers. The lease is given back at once: nobody can wait for it, and only root can open it for writing now.
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

/// Whether it is mounted read-only. (Root who mounts the same file system elsewhere for writing knows who writes there.)
fn is_read_only(file: &OwnedFd) -> bool {
    fstatvfs(file).is_ok_and(|status| status.flags().contains(FsFlags::ST_RDONLY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_root_s_alone_is_opened() {
        assert!(read(Path::new("/etc/passwd")).unwrap().is_some());
        assert!(read(Path::new("/etc/no-such-file")).unwrap().is_none());
        // Others may write in /tmp.
        let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        assert!(read(file.path()).is_err());
        assert!(read(Path::new("/etc")).is_err());
        assert!(read(Path::new("/proc/self/exe")).is_err());
    }

    #[test]
    fn a_descriptor_from_before_is_found() {
        let mut writer = tempfile::NamedTempFile::new().unwrap();
        let reader: OwnedFd = std::fs::File::open(writer.path()).unwrap().into();
        assert_eq!(writers(&reader), Writers::Some);
        std::io::Write::write_all(&mut writer, b"x").unwrap();
        let path = writer.into_temp_path();
        assert_eq!(writers(&reader), Writers::None);
        // What has no leases, and is not read-only.
        let device: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        assert_eq!((writers(&device), is_read_only(&device)), (Writers::Unknown, false));
        std::mem::drop(path);
    }

    #[test]
    fn certificates_that_anybody_may_have_put_there_are_none() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.der"), "x").unwrap();
        let found = certificates(directory.path());
        assert!(found.len() == 1 && found[0].1.is_err());
        assert!(certificates(Path::new("/etc/no-such-directory")).is_empty());
    }
}
