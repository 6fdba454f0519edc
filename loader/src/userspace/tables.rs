// SPDX-License-Identifier: GPL-2.0-or-later

//! Passes the tables of files to the module: before the session starts for files that the target will run, later for
//! files that are found in stacks. The latter is done in a separate thread, because reading a large program takes long
//! and the rings must be read meanwhile.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use spile_abi::device::Unwind;

use crate::error::Error;
use crate::module::device::Device;
use crate::userspace::files::Files;
use crate::userspace::image::{self, Image};
use crate::userspace::look::in_time;
use crate::userspace::unwind::Table;
use crate::userspace::{libraries, locate};

/// Files of the system's processes whose tables are made before each session.
const MOST_SHARED: usize = 12;

/// What is known about the session's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownTarget<'o> {
    /// `-c`
    Command(&'o str),
    /// `-x`
    Process(u32),
    /// All processes.
    Nothing,
}

/// Before the session: the tables that it will need at once. Those of files that cannot be read are left out. Until
/// `is_over` is true: the session is to end.
pub fn prepare(device: &Device, ahead: KnownTarget<'_>, made: &mut LoadedTables, is_over: &dyn Fn() -> bool) {
    if let (Some(image), Some(address)) = (Image::vdso(), image::vdso_address()) {
        hand_over(device, &image, Path::new(""), address, is_over);
    }
    if let KnownTarget::Command(command) = ahead {
        let paths = libraries::programs(command).into_iter().flat_map(|path| libraries::of(&path, is_over));
        let wanted = paths.take_while(|_| !is_over());
        wanted.for_each(|path| made.hand_over(device, locate::open(&path), &path, is_over));
    }
    let of_process = if let KnownTarget::Process(process) = ahead { code_of(process) } else { Vec::new() };
    let foreign = of_process.into_iter().chain(shared_files()).take_while(|_| !is_over());
    foreign.for_each(|path| made.hand_over(device, locate::open_foreign(&path), &path, is_over));
}

/// Files that the process has mapped, below its root.
fn code_of(process: u32) -> Vec<PathBuf> {
    let root = PathBuf::from(format!("/proc/{process}/root"));
    let mappings = in_time(process, move || Some(locate::code_of(process))).unwrap_or_default();
    let paths = mappings.into_iter().map(|mapping| root.join(mapping.path.strip_prefix("/").unwrap_or(&mapping.path)));
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.dedup();
    paths
}

/// Those that most processes of root and of this user have mapped, the most common first: another user could run
/// processes with files of their own, for whose tables the module keeps no room ([`spile_abi::device::UNWIND`]).
fn shared_files() -> Vec<PathBuf> {
    let mut counts: HashMap<((u32, u32), u64), (usize, PathBuf)> = HashMap::new();
    let trusted = [0, nix::unistd::geteuid().as_raw()];
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter(|entry| entry.metadata().is_ok_and(|found| trusted.contains(&found.uid())));
    for process in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        // A process of root may be one that another user has started.
        for mapping in in_time(process, move || Some(locate::code_of(process))).unwrap_or_default() {
            counts.entry((mapping.device, mapping.inode)).or_insert((0, mapping.path)).0 += 1;
        }
    }
    let mut files: Vec<(usize, PathBuf)> = counts.into_values().collect();
    files.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    files.into_iter().take(MOST_SHARED).map(|(_, path)| path).collect()
}

/// Makes the tables that the module asks for, until `over` is readable.
pub fn serve(files: &Files<'_>, made: &mut LoadedTables, over: BorrowedFd<'_>) {
    let Some(events) = files.device().events() else { return };
    loop {
        let mut descriptors = [PollFd::new(over, PollFlags::POLLIN), PollFd::new(events, PollFlags::POLLRDBAND)];
        match poll(&mut descriptors, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
        let [is_over, asks] = descriptors.map(|descriptor| descriptor.revents().unwrap_or(PollFlags::empty()));
        if !is_over.is_empty() {
            return;
        }
        // A reading of large files must not delay the session's end.
        let is_over =
            || poll(&mut [PollFd::new(over, PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
        while !is_over()
            && let Some(wanted) = files.device().wanted()
        {
            if let Some(known) = files.get(wanted.id) {
                made.hand_over(files.device(), known.open(), &known.shown, &is_over);
            }
        }
        // A stopped session keeps reporting POLLHUP.
        if asks.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
            return;
        }
    }
}

/// A page of a file, mapped so that the module knows which one is meant. It is never read.
struct Mapped {
    at: NonNull<std::ffi::c_void>,
}

const PAGE: std::num::NonZero<usize> = std::num::NonZero::new(4096).unwrap();

impl Mapped {
    fn new(file: &fs::File) -> Option<Mapped> {
        // SAFETY: a new mapping, at no given address.
        let at = unsafe { mmap(None, PAGE, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE, file.as_fd(), 0) };
        at.ok().map(|at| Mapped { at })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody has a reference into it.
        let _ = unsafe { munmap(self.at, PAGE.get()) };
    }
}

/// Files whose tables the module has: each is read once.
#[derive(Debug, Default)]
pub struct LoadedTables {
    files: HashSet<FileState>,
}

/// Device, inode, and when that was last changed (seconds, nanoseconds): another file may get the number of one that is gone.
type FileState = (u64, u64, i64, i64);

fn state_of(found: &fs::Metadata) -> FileState {
    (found.dev(), found.ino(), found.ctime(), found.ctime_nsec())
}

impl LoadedTables {
    fn hand_over(&mut self, device: &Device, file: Option<fs::File>, path: &Path, is_over: &dyn Fn() -> bool) {
        let Some(file) = file else { return };
        let Ok(found) = file.metadata() else { return };
        let state = state_of(&found);
        if !self.files.insert(state) {
            return;
        }
        let Some(mapped) = Mapped::new(&file) else { return };
        if !hand_over(device, &Image::of(file), path, mapped.at.as_ptr() as u64, is_over) {
            self.files.remove(&state);
        }
    }
}

/// If a file has no table, for lack of information or room, the module uses frame pointers only. False: at the moment it
/// cannot take one, or one user's files have taken that user's share of the room; it may ask again when another one
/// has the file in a stack. Nor is one taken that is not complete because `is_over` has become true.
/// `path`: of the file.
fn hand_over(device: &Device, image: &Image, path: &Path, mapping: u64, is_over: &dyn Fn() -> bool) -> bool {
    let read = image.with(|elf| (Table::of(elf, path, is_over), elf.build_id()));
    if is_over() {
        return false;
    }
    let (table, build_id) = read.unwrap_or_default();
    let give = |table: &Table| device.unwind(&unwind_of(table, &build_id, mapping), &table.bytes());
    let mut given = give(&table);
    let is_later =
        |given: &Result<_, Error>| matches!(given, Err(Error::Device { errno: Errno::EUSERS | Errno::EAGAIN, .. }));
    if given.is_err() && !is_later(&given) && !table.rules.is_empty() {
        given = give(&Table::default());
    }
    !is_later(&given)
}

fn unwind_of(table: &Table, build_id: &[u8], mapping: u64) -> Unwind {
    let mut unwind =
        Unwind { mapping, rules: table.rules.len() as u32, places: table.places.len() as u32, ..Unwind::default() };
    if build_id.len() <= unwind.build_id.len() {
        unwind.build_id_bytes = build_id.len() as u32;
        unwind.build_id.iter_mut().zip(build_id).for_each(|(to, from)| *to = *from);
    }
    unwind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_the_inode_of_another_one_is_another_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let state = || state_of(&fs::metadata(file.path()).unwrap());
        let before = state();
        assert_eq!(before, state());
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(file.path(), "another").unwrap();
        assert_ne!(before, state());
    }

    #[test]
    fn files_of_a_process() {
        let own = code_of(std::process::id());
        let exe = fs::read_link("/proc/self/exe").unwrap();
        assert!(own.iter().any(|path| path.ends_with(exe.strip_prefix("/").unwrap())), "{own:?}");
        assert!(own.iter().all(|path: &PathBuf| Path::new(path).starts_with("/proc")));
        assert!(!shared_files().is_empty());
    }
}
