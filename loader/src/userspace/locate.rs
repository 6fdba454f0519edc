// SPDX-License-Identifier: GPL-2.0-or-later

//! Opens the files that the module has seen mapped.
//!
//! A file is opened by its path within its file system, if that is mounted for this process; otherwise through a
//! process: by `/proc/PID/map_files`, which also has deleted files, or by the path below `/proc/PID/root`, which may be
//! another mount namespace. The inode is compared. All of this uses the rights of this process: addresses in files that
//! it may not read have no names.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::{self, OFlag, openat};
use nix::libc;
use nix::sys::stat::Mode;
use spile_abi::device;

use crate::userspace::look::{self, in_time};
use crate::userspace::mounts::{self, At, unescaped};

/// A file that was found.
#[derive(Debug)]
pub struct FoundFile {
    /// Open for reading.
    pub file: File,
    /// Its path as its processes know it.
    pub shown: PathBuf,
    /// Can be opened again by that path.
    pub stays: bool,
}

/// A line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after its last byte.
    pub end: u64,
    /// May be executed.
    pub is_code: bool,
    /// Major and minor number.
    pub device: (u32, u32),
    /// Of the file; 0: none.
    pub inode: u64,
    /// Without " (deleted)"; empty: none.
    pub path: PathBuf,
}

impl Mapping {
    /// From a line; `None`: not one.
    pub fn parse(line: &str) -> Option<Mapping> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let is_code = fields.next()?.as_bytes().get(2) == Some(&b'x');
        let _offset = fields.next()?;
        let (major, minor) = fields.next()?.split_once(':')?;
        let inode = fields.next()?.parse().ok()?;
        let path = fields.next().unwrap_or_default().trim_start();
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let number = |text| u32::from_str_radix(text, 16).ok();
        Some(Mapping {
            start: hex(start)?,
            end: hex(end)?,
            is_code,
            device: (number(major)?, number(minor)?),
            inode,
            path: unescaped(path.strip_suffix(" (deleted)").unwrap_or(path)),
        })
    }
}

/// Calls with each mapping of a process until it gives something; none if it is gone, or another user's. Waits for it: see
/// [`in_time`].
fn find_mapping<T>(process: u32, mut wanted: impl FnMut(Mapping) -> Option<T>) -> Option<T> {
    let mut found = None;
    look::lines(&format!("/proc/{process}/maps"), |line| {
        found = Mapping::parse(line).and_then(&mut wanted);
        found.is_none()
    });
    found
}

/// The code of files that a process has mapped, of [`MOST_CODE`] parts at most.
pub fn code_of(process: u32) -> Vec<Mapping> {
    let mut found = Vec::new();
    find_mapping(process, |mapping| {
        if mapping.is_code && mapping.inode != 0 {
            found.push(mapping);
        }
        (found.len() >= MOST_CODE).then_some(())
    });
    found
}

/// Browsers have some hundred.
const MOST_CODE: usize = 1024;

/// The path that the module has seen, up to the NUL.
pub fn path_of(file: &device::File) -> &Path {
    let text = file.path.split(|byte| *byte == 0).next().unwrap_or_default();
    Path::new(OsStr::from_bytes(text))
}

/// Opens a regular file without waiting for anything.
pub fn open(path: &Path) -> Option<File> {
    readable(fcntl::open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok()?)
}

/// Opens what O_PATH has found for reading, if it is a regular file. To open anything else may already do harm: a
/// watchdog starts, a tape rewinds.
fn readable(found: OwnedFd) -> Option<File> {
    let found = File::from(found);
    found.metadata().ok()?.is_file().then_some(())?;
    let again = format!("/proc/self/fd/{}", found.as_raw_fd());
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(again).ok()
}

/// Opens a regular file whose path another user has chosen: without following links, and not on a file system that
/// another user serves, or that the kernel makes up ([`mounts`]).
pub fn open_foreign(path: &Path) -> Option<File> {
    let Some((process, _)) = below_root(path) else { return open_answering(path) };
    let path = path.to_path_buf();
    in_time(process, move || open_answering(&path))
}

fn open_answering(path: &Path) -> Option<File> {
    open_answering_with(path, |_| {})
}

/// One name after the other. What is mounted somewhere may change at any time, so a directory is opened first, which asks only the
/// file system of the one before, and nothing of its own if it is the root of a mount; then that mount is looked at, which the
/// descriptor holds. `before`: is called with each name, for tests.
fn open_answering_with(path: &Path, before: impl Fn(&OsStr)) -> Option<File> {
    let (process, top, inner) = match below_root(path) {
        Some((process, inner)) => (Some(process), PathBuf::from(format!("/proc/{process}/root")), inner),
        None => (None, PathBuf::from("/"), path.strip_prefix("/").ok()?),
    };
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let mut found = fcntl::open(&top, flags | OFlag::O_DIRECTORY, Mode::empty()).ok()?;
    let look = |id| Some(mounts::at(process, id)).filter(|at| *at != At::Served);
    let mut mount = mounts::id_of(&found)?;
    let mut at = look(mount)?;
    for part in inner.components() {
        let Component::Normal(name) = part else { return None };
        before(name);
        // A link is not followed, and has nothing below it.
        found = openat(&found, name, flags | OFlag::O_NOFOLLOW, Mode::empty()).ok()?;
        let id = mounts::id_of(&found)?;
        if id != mount {
            (mount, at) = (id, look(id)?);
        }
    }
    (at == At::Files).then(|| readable(found))?
}

/// `/proc/PID/root/INNER`
fn below_root(path: &Path) -> Option<(u32, &Path)> {
    let inner = path.strip_prefix("/proc").ok()?;
    let process = inner.iter().next()?;
    let inner = inner.strip_prefix(process).ok()?.strip_prefix("root").ok()?;
    Some((process.to_str()?.parse().ok()?, inner))
}

fn open_inode(path: &Path, inode: u64) -> Option<File> {
    open_answering(path).filter(|file| file.metadata().is_ok_and(|found| found.ino() == inode))
}

/// Finds the file; `None` if it is gone, or not accessible.
pub fn find(wanted: &device::File) -> Option<FoundFile> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let by_path = by_mount(&mounts, wanted).or_else(|| {
        let path = path_of(wanted);
        path.is_absolute().then(|| path.to_path_buf())
    });
    if let Some(path) = by_path
        && let Some(file) = open_inode(&path, wanted.inode)
    {
        return Some(FoundFile { file, shown: path, stays: true });
    }
    let wanted = *wanted;
    in_time(wanted.process, move || of_process(&wanted))
}

/// Its path for this process.
fn by_mount(mounts: &str, wanted: &device::File) -> Option<PathBuf> {
    let path = path_of(wanted);
    let (major, minor) = (wanted.device >> 8 & 0xfff, (wanted.device & 0xff) | (wanted.device >> 12 & 0xfff00));
    let number = format!("{major}:{minor}");
    let places = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(2);
        (fields.next()? == number).then_some(())?;
        let (root, place) = (unescaped(fields.next()?), unescaped(fields.next()?));
        Some(place.join(path.strip_prefix(root).ok()?))
    });
    let places: Vec<PathBuf> = places.collect();
    places.into_iter().find(|place| open_inode(place, wanted.inode).is_some())
}

fn of_process(wanted: &device::File) -> Option<FoundFile> {
    if wanted.process == 0 {
        return None;
    }
    let holds =
        |mapping: &Mapping| (mapping.start..mapping.end).contains(&wanted.address) && mapping.inode == wanted.inode;
    let mapping = find_mapping(wanted.process, |mapping| holds(&mapping).then_some(mapping))?;
    mounts::answers(wanted.process, mapping.device).then_some(())?;
    let process = PathBuf::from(format!("/proc/{}", wanted.process));
    let exactly = process.join(format!("map_files/{:x}-{:x}", mapping.start, mapping.end));
    let below_root = process.join("root").join(mapping.path.strip_prefix("/").unwrap_or(&mapping.path));
    // The link in map_files is the file itself, wherever that is.
    let is_it = |file: &File| file.metadata().is_ok_and(|found| found.ino() == wanted.inode);
    let exact = fcntl::open(&exactly, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok();
    // Meanwhile another file may be there.
    let exact = exact.filter(|found| is_of_mapping(wanted.process, found, &mapping));
    let file = exact.and_then(readable).filter(is_it).or_else(|| open_inode(&below_root, wanted.inode))?;
    Some(FoundFile { file, shown: mapping.path, stays: false })
}

/// Whether the file is on a file system that answers: the mapping's own, if it is not mounted any more.
fn is_of_mapping(process: u32, found: &OwnedFd, mapping: &Mapping) -> bool {
    match mounts::id_of(found).map(|id| mounts::known_at(process, id)) {
        Some(Some(at)) => at != At::Served,
        Some(None) => mounts::identity(found).is_some_and(|(major, minor, _)| (major, minor) == mapping.device),
        None => false,
    }
}

/// Of `file` in a directory, and of `link/file`, each also below the root of this process: which are opened. For tests.
#[cfg(test)]
pub fn opened_of_four(directory: &Path) -> [bool; 4] {
    let (file, linked) = (directory.join("file"), directory.join("link/file"));
    let below = |path: &Path| PathBuf::from(format!("/proc/{}/root{}", std::process::id(), path.display()));
    [&file, &linked, &below(&file), &below(&linked)].map(|path| open_answering(path).is_some())
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, CString};
    use std::os::fd::FromRawFd;

    use super::*;

    fn wanted(path: &str, device: u32, inode: u64) -> device::File {
        let mut file = device::File {
            id: 1,
            flags: 0,
            inode,
            device,
            generation: 0,
            process: std::process::id(),
            reserved: 0,
            address: 0,
            path: [0; device::FILE_PATH],
        };
        file.path[..path.len()].copy_from_slice(path.as_bytes());
        file
    }

    #[test]
    fn lines_of_maps() {
        let line =
            "7f00aa000000-7f00aa001000 r-xp 00001000 fe:01 42                         /a\\040b/libx.so (deleted)";
        let expected = Mapping {
            start: 0x7f00_aa00_0000,
            end: 0x7f00_aa00_1000,
            is_code: true,
            device: (0xfe, 1),
            inode: 42,
            path: "/a b/libx.so".into(),
        };
        assert_eq!(Mapping::parse(line), Some(expected));
        assert_eq!(Mapping::parse("7f00-7f01 rw-p 00000000 00:00 0").map(|mapping| mapping.path), Some(PathBuf::new()));
        assert_eq!(Mapping::parse("none"), None);
    }

    #[test]
    fn a_file_is_found_by_its_path_or_through_a_process() {
        let own = code_of(std::process::id()).remove(0);
        let path = own.path.to_str().unwrap();
        assert_eq!(find(&wanted(path, 0, own.inode)).map(|found| found.shown), Some(own.path.clone()));
        let by_process = device::File { address: own.start, ..wanted("not/whole", 0, own.inode) };
        assert_eq!(find(&by_process).map(|found| (found.shown, found.stays)), Some((own.path.clone(), false)));
        assert!(find(&wanted(path, 0, own.inode + 1)).is_none(), "another inode");
    }

    #[test]
    fn what_is_mounted_while_a_path_is_opened_is_looked_at() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("in")).unwrap();
        fs::write(directory.path().join("in/file"), "x").unwrap();
        let path = directory.path().join("in/file");
        assert!(open_answering(&path).is_some());
        // Another user serves nothing here; a file system that the kernel makes up is one that is refused, too.
        let mount = |from: &CStr, to: &CStr, flags| {
            // SAFETY: C strings; the other arguments are not used for these flags.
            let done = unsafe { libc::mount(from.as_ptr(), to.as_ptr(), std::ptr::null(), flags, std::ptr::null()) };
            assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        };
        let mounts_there = |name: &OsStr| {
            if name == "in" {
                let place = CString::new(directory.path().join("in").as_os_str().as_bytes()).unwrap();
                mount(c"/proc/self", &place, libc::MS_BIND);
            }
        };
        // Of this thread alone.
        // SAFETY: takes numbers.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return println!("skipped: may not mount");
        }
        mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE);
        assert!(open_answering_with(&directory.path().join("in/status"), mounts_there).is_none());
    }

    #[test]
    fn links_in_paths_of_others_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "x").unwrap();
        std::os::unix::fs::symlink(directory.path(), directory.path().join("link")).unwrap();
        assert!(open(&directory.path().join("link/file")).is_some());
        assert!(open_foreign(&directory.path().join("link")).is_none() && open_foreign(directory.path()).is_none());
        assert_eq!(opened_of_four(directory.path()), [true, false, true, false]);
        assert_eq!(below_root(Path::new("/proc/17/root/a/b")), Some((17, Path::new("a/b"))));
        assert_eq!(below_root(Path::new("/proc/17/maps")), None);
    }

    #[test]
    fn only_regular_files_are_ever_opened() {
        let directory = tempfile::tempdir().unwrap();
        let (fifo, file) = (directory.path().join("fifo"), directory.path().join("file"));
        nix::unistd::mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
        fs::write(&file, "x").unwrap();
        // SAFETY: takes a number.
        let events = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        let watched = std::ffi::CString::new(directory.path().as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string.
        assert!(unsafe { libc::inotify_add_watch(events, watched.as_ptr(), libc::IN_OPEN) } > 0);
        // SAFETY: nobody else has the number.
        let mut events = File::from(unsafe { OwnedFd::from_raw_fd(events) });
        assert!(open(&fifo).is_none() && open_foreign(&fifo).is_none());
        let mut event = [0; 4096];
        let error = std::io::Read::read(&mut events, &mut event).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "it was opened");
        assert!(open(&file).is_some() && std::io::Read::read(&mut events, &mut event).unwrap() > 0);
    }

    #[test]
    fn files_that_the_kernel_makes_up_are_not_read() {
        assert!(open(Path::new("/proc/self/maps")).is_some());
        let below = format!("/proc/{}/root/proc/version", std::process::id());
        assert!(open_foreign(Path::new("/proc/version")).is_none() && open_foreign(Path::new(&below)).is_none());
    }

    #[test]
    fn mounts_are_distinguished_by_their_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let inode = file.as_file().metadata().unwrap().ino();
        let directory = file.path().parent().unwrap();
        let mounts = format!("30 1 254:300 /sub {} rw - ext4 /dev/vdb rw", directory.display());
        let inside = format!("/sub/{}", file.path().file_name().unwrap().to_str().unwrap());
        let device = 254 << 8 | (300 & 0xff) | (300 & !0xff) << 12;
        assert_eq!(by_mount(&mounts, &wanted(&inside, device, inode)), Some(file.path().to_path_buf()));
        assert_eq!(by_mount(&mounts, &wanted(&inside, device + 1, inode)), None);
    }
}
