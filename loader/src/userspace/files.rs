// SPDX-License-Identifier: GPL-2.0-or-later

//! The files of a session by the module's numbers, for the thread that makes tables and the one that names frames. A
//! file that can only be opened through a process is kept open, so that it can be named after the process has ended.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use spile_abi::device;

use crate::host::clock;
use crate::module::device::Device;
use crate::userspace::image::Image;
use crate::userspace::locate;

/// Files that are kept open.
const MOST_OPEN: usize = 128;
/// Nanoseconds until a file that was not found is looked for again.
const AGAIN: u64 = 1_000_000_000;

/// A file whose code is in stacks.
#[derive(Debug)]
pub struct StackFile {
    /// Its path as its processes know it.
    pub shown: PathBuf,
    /// The vDSO.
    is_vdso: bool,
    /// A path by which it can be opened at any time.
    path: Option<PathBuf>,
    file: Option<File>,
}

impl StackFile {
    /// Opens it; `None`: it is gone.
    pub fn image(&self) -> Option<Image> {
        if self.is_vdso {
            return Image::vdso();
        }
        let again = || self.path.as_ref().and_then(|path| locate::open_foreign(path));
        let file = self.file.as_ref().and_then(|file| file.try_clone().ok()).or_else(again)?;
        Some(Image::of(file))
    }

    /// Opens it for the module; `None`: it is the vDSO, or gone.
    pub fn open(&self) -> Option<File> {
        let again = || self.path.as_ref().and_then(|path| locate::open_foreign(path));
        self.file.as_ref().and_then(|file| file.try_clone().ok()).or_else(again)
    }
}

#[derive(Debug)]
enum Entry {
    Known(Arc<StackFile>),
    /// It was not found at this time.
    Missing(u64),
}

/// All of a session.
#[derive(Debug)]
pub struct Files<'d> {
    device: &'d Device,
    entries: Mutex<HashMap<u32, Entry>>,
}

impl<'d> Files<'d> {
    /// `device`: of the session.
    pub fn new(device: &'d Device) -> Files<'d> {
        Files { device, entries: Mutex::new(HashMap::new()) }
    }

    /// The device of the session.
    pub fn device(&self) -> &'d Device {
        self.device
    }

    /// The file with that number; `None`: it cannot be opened.
    pub fn get(&self, id: u32) -> Option<Arc<StackFile>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.get(&id) {
            Some(Entry::Known(known)) => return Some(known.clone()),
            Some(Entry::Missing(at)) if clock::now().saturating_sub(*at) < AGAIN => return None,
            _ => {}
        }
        let open =
            entries.values().filter(|entry| matches!(entry, Entry::Known(known) if known.file.is_some())).count();
        let found = self.device.file(id).and_then(|file| find(&file, open));
        let found = found.map(Arc::new);
        let entry = found.clone().map_or_else(|| Entry::Missing(clock::now()), Entry::Known);
        entries.insert(id, entry);
        found
    }
}

fn find(file: &device::File, open: usize) -> Option<StackFile> {
    if file.inode == 0 && file.device == 0 {
        // That of 32-bit processes (generation 1, runtime-c/user_maps.h) is another one than this process has.
        let is_vdso = file.generation == 0;
        return Some(StackFile { shown: PathBuf::from("[vdso]"), is_vdso, path: None, file: None });
    }
    let found = locate::find(file)?;
    let path = found.stays.then(|| found.shown.clone());
    let keeps = !found.stays && open < MOST_OPEN;
    Some(StackFile { shown: found.shown, is_vdso: false, path, file: keeps.then_some(found.file) })
}
