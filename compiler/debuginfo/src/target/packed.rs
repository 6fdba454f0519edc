// SPDX-License-Identifier: GPL-2.0-or-later

//! An exported index: what `--export-index` writes of a kernel's debug information, for hosts that have none.
//!
//! An [`Entry`] as in the cache, with the release, the configuration, and the kernel and modules as compressed ELF files
//! without code ([`DebugInfo::export`](crate::DebugInfo::export)).

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use spile_abi::budget::Budget;

use super::error::TargetError;
use super::kernel::Kernel;
use super::object::Object;
use crate::Elf;
use crate::debug_info::is_exported_index;
use spile_base::cache::Entry;

const RELEASE: &str = "release";
const CONFIG: &str = "config";
const KERNEL: &str = "kernel";
const MODULE: &str = "module/";

/// Unpacked, no part of an object is larger.
const MAX_OBJECT: u64 = 400 << 20;

/// An index file of `--export-index`.
#[derive(Debug)]
pub(super) struct Packed {
    pub path: PathBuf,
    entry: Entry,
}

impl Packed {
    /// Opens an index file. Error: it is none, or damaged.
    pub fn open(path: &Path) -> Result<Packed, TargetError> {
        let wrong = |message: &str| TargetError::NoIndex { path: path.into(), message: message.into() };
        // Opening a pipe would wait for its writer, and a device may never end.
        if !std::fs::metadata(path).is_ok_and(|file| file.is_file()) && path.exists() {
            return Err(wrong("not a regular file"));
        }
        let entry = Entry::load(path).map_err(|error| wrong(&error.to_string()))?;
        let entry = entry.ok_or_else(|| wrong("it is damaged, or was not made by --export-index"))?;
        let packed = Packed { path: path.into(), entry };
        match packed.entry.text(RELEASE) {
            Some(release) if !release.is_empty() => Ok(packed),
            _ => Err(wrong("it does not say which kernel it is of")),
        }
    }

    /// The kernel release that it describes.
    pub fn release(&self) -> &str {
        self.entry.text(RELEASE).unwrap_or_default()
    }

    /// The text of the kernel's configuration.
    pub fn config(&self) -> &str {
        self.entry.text(CONFIG).unwrap_or_default()
    }

    /// Names of the modules that it describes.
    pub fn modules(&self) -> Vec<String> {
        self.entry.below(MODULE).map(|(name, _)| name.to_string()).collect()
    }

    /// None: it has no such object. `module` None: the kernel.
    pub fn object(&self, module: Option<&str>) -> Option<Result<Elf, TargetError>> {
        let part = module.map_or_else(|| KERNEL.to_string(), |name| format!("{MODULE}{name}"));
        let packed = self.entry.part(&part)?;
        let wrong = |message: String| TargetError::NoIndex { path: self.path.clone(), message };
        let budget = Budget::unpacking("unpacked contents", packed.len() as u64, MAX_OBJECT);
        let read = budget.read_all(GzDecoder::new(packed)).map_err(|error| wrong(format!("{part}: {error}")));
        let made = read.and_then(|bytes| Ok(Elf::of_bytes(&self.path, bytes)?));
        // An index of another version would appear to be empty.
        Some(made.and_then(|elf| {
            if is_exported_index(&elf) { Ok(elf) } else { Err(wrong("it is of another version of spile".into())) }
        }))
    }
}

/// Writes the kernel and the modules of these names to a file, completely or not at all. Returns its size.
pub fn export(kernel: &Kernel, modules: &[String], path: &Path) -> Result<u64, TargetError> {
    let failed = |message: String| TargetError::NoIndex { path: path.into(), message };
    let pack = |bytes: Vec<u8>| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(&bytes).and_then(|()| packer.finish()).map_err(|error| failed(error.to_string()))
    };
    let mut config: Vec<String> =
        kernel.config().into_iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    config.sort();
    let release = kernel.release();
    let mut entry = Entry::new(&format!("debug information of {release}"));
    entry = entry.with(RELEASE, release.as_bytes()).with(CONFIG, config.concat().into_bytes());
    let exported = |object: &Object| Ok::<_, TargetError>(object.debug()?.export(object.reserved_places())?);
    // A missing module is found before the kernel is read, which takes long.
    let modules = modules.iter().map(|name| kernel.module(name)).collect::<Result<Vec<_>, TargetError>>()?;
    entry = entry.with(KERNEL, pack(exported(&*kernel.vmlinux()?)?)?);
    for object in modules {
        entry = entry.with(&format!("{MODULE}{}", object.name()), pack(exported(&object)?)?);
    }
    entry.save(path).map_err(|error| failed(error.to_string()))
}
