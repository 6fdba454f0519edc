// SPDX-License-Identifier: GPL-2.0-or-later

//! Why the probes in a module are not armed: it is not loaded, or another build of it is. What is loaded is read from sysfs:
//! `/sys/module/NAME`, and its notes (elf(5)) below `notes/`.

use std::fs;
use std::path::Path;

use spile_abi::meta::Target;

use crate::error::Hex;

/// ELF notes: sizes of name and description, type, then both, each padded to 4 bytes.
const NOTE_HEADER: usize = 12;
const BUILD_ID: u32 = 3;
const OWNER: &[u8] = b"GNU\0";

/// A sentence for each of the modules whose probes cannot be armed now. `modules`: the directory `/sys/module`.
pub fn absent(targets: &[Target], modules: &Path) -> Vec<String> {
    targets.iter().filter(|target| !target.name.is_empty()).filter_map(|target| why(target, modules)).collect()
}

fn why(target: &Target, modules: &Path) -> Option<String> {
    let name = &target.name;
    let directory = modules.join(name);
    // Built-in code may have a directory, too, but is never a target.
    if !directory.exists() {
        return Some(format!("module {name} is not loaded"));
    }
    if target.build_id.is_empty() {
        return None;
    }
    let notes = fs::read_dir(directory.join("notes")).ok()?.flatten();
    let found = notes.filter_map(|note| build_id(&fs::read(note.path()).ok()?)).next();
    let expected = Hex(&target.build_id).to_string();
    match found {
        Some(found) if found == target.build_id => None,
        Some(found) => Some(format!(
            "module {name} is another build: the script was compiled for build-id {expected} ({}), loaded is {}",
            target.path,
            Hex(&found)
        )),
        None => Some(format!(
            "module {name} is another build: the script was compiled for build-id {expected} ({}), what is loaded has none",
            target.path
        )),
    }
}

/// The build-id among the notes.
fn build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    let word = |at: &[u8], index: usize| at.get(index * 4..index * 4 + 4)?.try_into().ok().map(u32::from_le_bytes);
    loop {
        let (name_size, size, kind) = (word(notes, 0)? as usize, word(notes, 1)? as usize, word(notes, 2)?);
        let start = NOTE_HEADER.checked_add(name_size.checked_next_multiple_of(4)?)?;
        let name = notes.get(NOTE_HEADER..NOTE_HEADER.checked_add(name_size)?)?;
        let description = notes.get(start..start.checked_add(size)?)?;
        if kind == BUILD_ID && name == OWNER {
            return Some(description.to_vec());
        }
        notes = notes.get(start.checked_add(size.checked_next_multiple_of(4)?)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8], description: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [name.len() as u32, description.len() as u32, kind] {
            bytes.extend(number.to_le_bytes());
        }
        for part in [name, description] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn modules_that_are_not_loaded_or_of_another_build() {
        let directory = tempfile::tempdir().unwrap();
        let modules = directory.path();
        for (name, id) in [("same", [1, 2]), ("other", [0xab, 0xcd])] {
            fs::create_dir_all(modules.join(name).join("notes")).unwrap();
            let notes = [note(1, b"Linux\0", b"x"), note(BUILD_ID, OWNER, &id)].concat();
            fs::write(modules.join(name).join("notes/.note.gnu.build-id"), notes).unwrap();
        }
        fs::create_dir_all(modules.join("none/notes")).unwrap();
        let target = |name: &str| Target { name: name.into(), build_id: vec![1, 2], path: "a.ko".into() };
        let targets = ["", "same", "other", "none", "gone"].map(target);
        assert_eq!(
            absent(&targets, modules),
            [
                "module other is another build: the script was compiled for build-id 0102 (a.ko), loaded is abcd",
                "module none is another build: the script was compiled for build-id 0102 (a.ko), what is loaded has none",
                "module gone is not loaded",
            ]
        );
        assert_eq!(build_id(&[0xff; 40]), None);
        assert_eq!(build_id(&note(BUILD_ID, OWNER, &[1, 2])[..10]), None);
    }
}
