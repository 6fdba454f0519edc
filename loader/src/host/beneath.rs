// SPDX-License-Identifier: GPL-2.0-or-later

//! Files of a system below a directory (`spilerun service --root DIR`). Symbolic links, also absolute ones, are
//! resolved below that directory and never lead out of it.
//!
//! openat2(2) with RESOLVE_IN_ROOT, from Linux 5.6 on. Where the kernel lacks it, links are refused.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Maximum number of attempts: if a directory is renamed meanwhile, openat2(2) fails with EAGAIN.
const TRIES: usize = 64;
/// Modules are the largest files that are read.
const MOST_BYTES: u64 = 256 << 20;

/// A directory with a system. Paths include it, as messages show them.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'r> {
    root: &'r Path,
}

impl<'r> Tree<'r> {
    /// The system below this directory; `/`: the host itself.
    pub fn new(root: &'r Path) -> Tree<'r> {
        Tree { root }
    }

    /// The path to open, and the directory it must stay below. For `/`, which is the running system, there is nothing
    /// to escape from.
    fn open(self, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
        let flags = flags | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o666);
        if self.root == Path::new("/") {
            return Ok(open(path, flags, mode)?);
        }
        let mode = if flags.contains(OFlag::O_CREAT) { mode } else { Mode::empty() };
        let top = open(self.root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        let path = self.inner(path);
        for _ in 0..TRIES {
            match openat2(&top, &path, OpenHow::new().flags(flags).mode(mode).resolve(ResolveFlag::RESOLVE_IN_ROOT)) {
                Err(Errno::EAGAIN) => {}
                // System call filters return EPERM.
                Err(Errno::ENOSYS | Errno::EPERM) => return without_links(top, &path, flags, mode),
                other => return Ok(other?),
            }
        }
        Err(Errno::EAGAIN.into())
    }

    /// Relative to the directory.
    fn inner(self, path: &Path) -> PathBuf {
        let inner = path.strip_prefix(self.root).unwrap_or(path);
        let inner: PathBuf =
            inner.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir)).collect();
        if inner.as_os_str().is_empty() { PathBuf::from(".") } else { inner }
    }

    /// The open parent directory of the path, and the name in it.
    fn parent(self, path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.open(path.parent().unwrap_or(self.root), OFlag::O_RDONLY | OFlag::O_DIRECTORY)?, name))
    }

    /// Whether the path exists.
    pub fn exists(self, path: &Path) -> bool {
        self.open(path, OFlag::O_PATH).is_ok()
    }

    /// Whether the path is a directory.
    pub fn is_dir(self, path: &Path) -> bool {
        self.open(path, OFlag::O_PATH | OFlag::O_DIRECTORY).is_ok()
    }

    /// The contents of a regular file of at most [`MOST_BYTES`].
    pub fn read(self, path: &Path) -> io::Result<Vec<u8>> {
        // Opening a FIFO would block.
        let file = fs::File::from(self.open(path, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > MOST_BYTES {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(bytes),
        }
    }

    /// The whole file, as UTF-8.
    pub fn read_text(self, path: &Path) -> io::Result<String> {
        String::from_utf8(self.read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// The entries of a directory; none if it cannot be read.
    pub fn names(self, path: &Path) -> Vec<OsString> {
        let directory = self
            .open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)
            .ok()
            .and_then(|directory| Dir::from_fd(directory).ok());
        let entries = directory.into_iter().flat_map(std::iter::IntoIterator::into_iter).flatten();
        let names = entries.map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()));
        names.filter(|name| name != "." && name != "..").collect()
    }

    /// Creates the directory and its missing parents; only their owner can write there, whatever the umask.
    pub fn create_dir_all(self, path: &Path) -> io::Result<()> {
        if self.is_dir(path) {
            return Ok(());
        }
        if let Some(parent) = path.parent().filter(|parent| parent.starts_with(self.root)) {
            self.create_dir_all(parent)?;
        }
        let (parent, name) = self.parent(path)?;
        match mkdirat(&parent, name, Mode::from_bits_truncate(0o755)) {
            // Another process has created it.
            Err(Errno::EEXIST) if self.is_dir(path) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Writes the file atomically: after a crash it is complete or absent. Creates missing directories. Only its owner can
    /// write it.
    pub fn write(self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Some(directory) = path.parent() {
            self.create_dir_all(directory)?;
        }
        let (directory, name) = self.parent(path)?;
        let mut new = name.to_owned();
        new.push(".new");
        // A file left by a crash, or a link that another user has created: only a new file is written.
        let _ = unlinkat(&directory, new.as_os_str(), UnlinkatFlags::NoRemoveDir);
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&directory, new.as_os_str(), flags, Mode::from_bits_truncate(0o644));
        let written = file.map_err(io::Error::from).map(fs::File::from).and_then(|mut file| {
            file.write_all(bytes)?;
            // The next boot needs the file, also after a power failure.
            file.sync_all()?;
            Ok(renameat(&directory, new.as_os_str(), &directory, name)?)
        });
        if written.is_err() {
            // Removes the incomplete file; if that fails, it is harmless.
            let _ = unlinkat(&directory, new.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
        written
    }

    /// Removes one file.
    pub fn remove_file(self, path: &Path) -> io::Result<()> {
        let (directory, name) = self.parent(path)?;
        Ok(unlinkat(&directory, name, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Removes one empty directory.
    pub fn remove_dir(self, path: &Path) -> io::Result<()> {
        let (directory, name) = self.parent(path)?;
        Ok(unlinkat(&directory, name, UnlinkatFlags::RemoveDir)?)
    }

    /// A path to an open file that works in the running system, for interfaces that only take paths.
    pub fn outer(self, path: &Path) -> PathBuf {
        let there = || {
            let file = self.open(path, OFlag::O_PATH).ok()?;
            fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
        };
        match self.root == Path::new("/") {
            true => path.to_path_buf(),
            false => there().unwrap_or_else(|| path.to_path_buf()),
        }
    }
}

/// Opens what is at this path below a directory, one component at a time; none may be a link, and none `..`. For kernels and filters
/// of system calls that refuse openat2(2).
pub fn without_links(top: OwnedFd, path: &Path, flags: OFlag, mode: Mode) -> io::Result<OwnedFd> {
    let mut at = top;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let name = match part {
            Component::Normal(name) => name,
            Component::CurDir => OsStr::new("."),
            _ => return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it leads out of the directory")),
        };
        let step = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let flags = if parts.peek().is_some() { step } else { flags };
        at = match openat(&at, name, flags | OFlag::O_NOFOLLOW, mode) {
            // A link itself can be opened with O_PATH.
            Ok(next) if flags.contains(OFlag::O_PATH) && is_link(&next)? => return Err(refused_link()),
            Err(Errno::ELOOP) => return Err(refused_link()),
            other => other?,
        };
    }
    Ok(at)
}

fn is_link(file: &OwnedFd) -> io::Result<bool> {
    Ok(fs::File::from(file.try_clone()?).metadata()?.is_symlink())
}

fn refused_link() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "there is a link in its path, which this kernel cannot keep from leading out of the directory",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_in_it() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), "theirs").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let tree = Tree::new(root);
        fs::create_dir(root.join("usr")).unwrap();
        symlink("/usr", root.join("lib")).unwrap();
        tree.write(&root.join("lib/modules/x"), b"x").unwrap();
        assert_eq!(fs::read(root.join("usr/modules/x")).unwrap(), b"x");
        assert_eq!(
            (tree.read_text(&root.join("lib/modules/x")).unwrap(), tree.outer(&root.join("lib/modules/x"))),
            ("x".to_string(), root.canonicalize().unwrap().join("usr/modules/x"))
        );
        assert_eq!(tree.names(&root.join("lib/modules")), ["x"]);

        symlink(outside.path(), root.join("etc")).unwrap();
        symlink(outside.path().join("file"), root.join("usr/out")).unwrap();
        let up = format!("{}{}", "../".repeat(40), outside.path().strip_prefix("/").unwrap().display());
        symlink(up, root.join("up")).unwrap();
        for wrong in ["etc/file", "usr/out", "up/file", "up"] {
            let path = root.join(wrong);
            assert!(
                tree.read(&path).is_err() && !tree.exists(&path) && !tree.is_dir(&path) && tree.outer(&path) == path,
                "{wrong}"
            );
        }
        for directory in ["etc", "up"] {
            let path = root.join(directory).join("file");
            assert!(tree.remove_file(&path).is_err() && tree.names(&root.join(directory)).is_empty(), "{directory}");
            // Something can be created in the directory that a link leads to.
            let _ = (
                tree.create_dir_all(&root.join(directory).join("new")),
                tree.write(&path, b"ours"),
                tree.remove_dir(&root.join(directory)),
            );
        }
        // A file replaces a link.
        symlink(outside.path().join("file"), root.join("usr/x.new")).unwrap();
        tree.write(&root.join("usr/x"), b"y").unwrap();
        tree.write(&root.join("usr/out"), b"z").unwrap();
        assert_eq!(fs::read(root.join("usr/out")).unwrap(), b"z");
        let left: Vec<_> = fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(
            (left, fs::read(outside.path().join("file")).unwrap()),
            (vec![OsString::from("file")], b"theirs".to_vec())
        );
        tree.remove_file(&root.join("usr/out")).unwrap();
        assert!(!tree.exists(&root.join("usr/out")));
    }

    #[test]
    fn without_openat2_links_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("usr")).unwrap();
        fs::write(root.join("usr/file"), "x").unwrap();
        symlink("usr", root.join("lib")).unwrap();
        symlink("file", root.join("usr/link")).unwrap();
        let open = |path: &str, flags| {
            let top = open(root, OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty()).unwrap();
            without_links(top, Path::new(path), flags, Mode::empty())
        };
        for flags in [OFlag::O_RDONLY, OFlag::O_PATH] {
            assert!(open("usr/file", flags).is_ok() && open(".", flags).is_ok());
            for wrong in ["lib/file", "usr/link", "../x", "usr/../usr/file"] {
                assert!(open(wrong, flags).is_err(), "{wrong}");
            }
        }
    }

    #[test]
    fn the_running_system_needs_no_restriction() {
        let tree = Tree::new(Path::new("/"));
        assert!(tree.is_dir(Path::new("/etc")) && tree.exists(Path::new("/proc/self/exe")));
        assert_eq!(tree.outer(Path::new("/proc/self/exe")), Path::new("/proc/self/exe"));
    }
}
