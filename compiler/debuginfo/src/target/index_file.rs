// SPDX-License-Identifier: GPL-2.0-or-later

//! The file of `--export-index`: debug information of a kernel and of programs, for hosts that have none.
//!
//! An [`Entry`] as in the cache, with the release, the configuration, and the kernel, modules and programs as compressed ELF files
//! without code ([`DebugInfo::export`](crate::DebugInfo::export)).

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use rayon::prelude::*;
use spile_abi::budget::Budget;

use super::error::TargetError;
use crate::Elf;
use crate::debug_info::is_exported_index;
use spile_base::cache::Entry;

const RELEASE: &str = "release";
const CONFIG: &str = "config";
const KERNEL: &str = "kernel";
const MODULE: &str = "module/";
const PROGRAM: &str = "program/";

/// Unpacked, no part of an object is larger.
const MAX_OBJECT: u64 = 400 << 20;

/// Bytes of a member of a compressed part: members are compressed in parallel, and larger ones would gain less than 1 %.
const MEMBER: usize = 4 << 20;

/// An index file of `--export-index`.
#[derive(Debug)]
pub(super) struct IndexFile {
    /// The file's path.
    pub path: PathBuf,
    entry: Entry,
}

impl IndexFile {
    /// Opens an index file. Error: it is none, or damaged.
    pub fn open(path: &Path) -> Result<IndexFile, TargetError> {
        let wrong = |message: &str| TargetError::NoIndex { path: path.into(), message: message.into() };
        // Opening a pipe would wait for its writer, and a device may never end.
        if !std::fs::metadata(path).is_ok_and(|file| file.is_file()) && path.exists() {
            return Err(wrong("not a regular file"));
        }
        let entry = Entry::load(path).map_err(|error| wrong(&error.to_string()))?;
        let entry = entry.ok_or_else(|| wrong("it is damaged, or was not made by --export-index"))?;
        let file = IndexFile { path: path.into(), entry };
        match file.entry.text(RELEASE) {
            Some(release) if !release.is_empty() => Ok(file),
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
        self.entry.names_below(MODULE).map(str::to_string).collect()
    }

    /// None: it has no such object. `module` None: the kernel.
    pub fn object(&self, module: Option<&str>) -> Option<Result<Elf, TargetError>> {
        self.part(part_of(module))
    }

    /// The program or library with that build-id. None: it has none.
    pub fn program(&self, build_id: &[u8]) -> Option<Result<Elf, TargetError>> {
        let read = self.part(part_of_program(build_id))?;
        Some(read.and_then(|elf| match elf.build_id() == build_id {
            true => Ok(elf),
            false => {
                let message = format!("{} is of another build", part_of_program(build_id));
                Err(TargetError::NoIndex { path: self.path.clone(), message })
            }
        }))
    }

    fn part(&self, part: String) -> Option<Result<Elf, TargetError>> {
        let compressed = self.entry.part(&part)?;
        let wrong = |message: String| TargetError::NoIndex { path: self.path.clone(), message };
        let budget = Budget::unpacking("unpacked contents", compressed.len() as u64, MAX_OBJECT);
        let read = budget.read_all(MultiGzDecoder::new(compressed)).map_err(|error| wrong(format!("{part}: {error}")));
        let made = read.and_then(|bytes| Ok(Elf::of_bytes(&self.path, bytes)?));
        // An index of another version would appear to be empty.
        Some(made.and_then(|elf| {
            if is_exported_index(&elf) { Ok(elf) } else { Err(wrong("it is of another version of spile".into())) }
        }))
    }
}

/// An index file that is being made.
pub(super) struct Writer<'p> {
    path: &'p Path,
    entry: Entry,
}

impl<'p> Writer<'p> {
    /// One without objects; `config` is the text of the kernel's configuration.
    pub fn new(path: &'p Path, release: &str, config: String) -> Writer<'p> {
        let entry = Entry::new(&format!("debug information of {release}"));
        Writer { path, entry: entry.with(RELEASE, release.as_bytes()).with(CONFIG, config.into_bytes()) }
    }

    /// Adds an object as [`DebugInfo::export`](crate::DebugInfo::export) gives it. `module` None: the kernel.
    pub fn with(self, module: Option<&str>, bytes: &[u8]) -> Result<Writer<'p>, TargetError> {
        self.with_part(&part_of(module), bytes)
    }

    /// Adds a program or library in the same way.
    pub fn with_program(self, build_id: &[u8], bytes: &[u8]) -> Result<Writer<'p>, TargetError> {
        self.with_part(&part_of_program(build_id), bytes)
    }

    fn with_part(self, part: &str, bytes: &[u8]) -> Result<Writer<'p>, TargetError> {
        // The best level takes three times as long, for 1 % less.
        let packed = |piece: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(piece).and_then(|()| encoder.finish())
        };
        let members: std::io::Result<Vec<Vec<u8>>> = bytes.par_chunks(MEMBER).map(packed).collect();
        let compressed = members.map_err(|error| self.failed(&error.to_string()))?.concat();
        Ok(Writer { entry: self.entry.with(part, compressed), ..self })
    }

    /// Writes the file, completely or not at all. Returns its size in bytes.
    pub fn save(&self) -> Result<u64, TargetError> {
        self.entry.save(self.path).map_err(|error| self.failed(&error.to_string()))
    }

    fn failed(&self, message: &str) -> TargetError {
        TargetError::NoIndex { path: self.path.into(), message: message.into() }
    }
}

/// The name of an object's part of the file. None: the kernel.
fn part_of(module: Option<&str>) -> String {
    module.map_or_else(|| KERNEL.to_string(), |name| format!("{MODULE}{name}"))
}

/// The name of a program's part of the file: another build of it has other debug information.
fn part_of_program(build_id: &[u8]) -> String {
    format!("{PROGRAM}{}", hex::encode(build_id))
}
