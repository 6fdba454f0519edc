// SPDX-License-Identifier: GPL-2.0-or-later

//! The debug information of a module, in a file of its own that debuggers find by the module's build-id.
//!
//! It is the same module compiled with debug information. The two have different build-ids, for the linker computes them from
//! all bytes; the file gets the module's.

use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection};

use super::compare;

/// The file, and where it is below a directory of debug files (`.build-id/xx/yyyy.debug`; GDB manual, Separate Debug Files).
/// `with`: the module compiled with debug information. Err: they are not of the same code, or have no build-id.
pub fn debug_file(module: &[u8], mut with: Vec<u8>) -> Result<(PathBuf, Vec<u8>), String> {
    if let [first, others @ ..] = compare::differences(module, &with)?.as_slice() {
        return Err(format!("compiled with debug information it differs in {first} (and {} more)", others.len()));
    }
    let (id, _) = build_id(module)?;
    let (own, note) = build_id(&with)?;
    let place = with.get_mut(note).and_then(|note| {
        let at = note.windows(own.len()).rposition(|bytes| bytes == own)?;
        note.get_mut(at..at + own.len())
    });
    let place = place.filter(|place| place.len() == id.len()).ok_or("its build-ids differ in length")?;
    place.copy_from_slice(&id);
    let digits = hex::encode(&id);
    let (first, rest) = digits.split_at_checked(2).ok_or("its build-id is empty")?;
    Ok((Path::new(".build-id").join(first).join(format!("{rest}.debug")), with))
}

/// The build-id, and where its note is.
fn build_id(module: &[u8]) -> Result<(Vec<u8>, std::ops::Range<usize>), String> {
    let file = ElfFile64::<Endianness>::parse(module).map_err(|error| format!("no module: {error}"))?;
    let id = file.build_id().ok().flatten().filter(|id| !id.is_empty()).ok_or("it has no build-id")?;
    let range = file.section_by_name(".note.gnu.build-id").and_then(|section| section.file_range());
    let (start, size) = range.ok_or("its build-id is in another section")?;
    Ok((id.to_vec(), start as usize..(start + size) as usize))
}
