// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds the files that a dynamically linked program needs: its interpreter and its shared libraries.
//!
//! Read from the ELF file, without running it as `ldd` does, and searched as by ld.so(8), without its cache
//! ([`spile_abi::libraries`]). A static program or a script needs nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, elf};
use spile_abi::libraries::{self, Asked, Places};
use spile_base::regular;

use super::error::Error;

/// Bytes of its dynamic section, and of the strings of that, which are read: a file with holes can have any size.
const MOST_BYTES: u64 = 64 << 20;
/// Libraries of one program, and files that are looked for.
const MOST: usize = 1000;
const MOST_TRIES: usize = 128 << 10;

/// Paths of all files that `program` needs to run, if this host has them.
pub(super) fn needed_files(program: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    let file = fs::File::open(program).map_err(Error::file("reading", program))?;
    let Some(asked) = asked_by(file) else { return Ok(BTreeSet::new()) };
    let system = libraries::system(Path::new("/etc"), false);
    let places = Places { system, most: MOST, tries: MOST_TRIES, ..Places::default() };
    let mut open = |path: &Path| asked_by(regular::open(path).ok()?);
    let found = libraries::find(program, asked, &places, &mut open, &|| false);
    match found.missing.first() {
        Some(name) => {
            let name = String::from_utf8_lossy(name).into_owned();
            Err(Error::NoLibrary { name, program: program.to_path_buf() })
        }
        None => Ok(found.files.into_iter().collect()),
    }
}

/// None for a file that is not a 64-bit ELF file for this architecture, or is damaged: running it reports the error.
fn asked_by(file: fs::File) -> Option<Asked> {
    asked_in(&ReadCache::new(file))
}

fn asked_in<'f>(file: impl ReadRef<'f>) -> Option<Asked> {
    let header = elf::FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    if header.e_machine(endian) != elf::EM_X86_64 {
        return None;
    }
    let segments = header.program_headers(endian, file).ok()?;
    let is_small = |segment: &&elf::ProgramHeader64<Endianness>| segment.p_filesz(endian) <= MOST_BYTES;
    let small = || segments.iter().filter(is_small);
    let interpreter = small().find_map(|segment| segment.interpreter(endian, file).ok().flatten());
    let dynamic = small().find_map(|segment| segment.dynamic(endian, file).ok().flatten()).unwrap_or_default();
    let entries = || dynamic.iter().map(|entry| (entry.d_tag(endian), entry.d_val(endian)));
    let table = entries().find(|(tag, _)| *tag == elf::DT_STRTAB).map(|(_, value)| value);
    let strings = table.and_then(|table| {
        let loaded = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
        loaded.into_iter().find_map(|segment| {
            let inside = table.checked_sub(segment.p_vaddr(endian))?;
            let length = segment.p_filesz(endian).checked_sub(inside)?.min(MOST_BYTES);
            file.read_bytes_at(segment.p_offset(endian).checked_add(inside)?, length).ok()
        })
    });
    let entries = entries().map(|(tag, value)| (tag.0, value));
    Some(Asked::read(entries, strings.unwrap_or_default(), interpreter.map(<[u8]>::to_vec)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_needs_libc_and_its_interpreter() {
        let program = std::env::current_exe().expect("a running program");
        let files = needed_files(&program).expect("all found, as it runs");
        let named = |part: &str| files.iter().any(|file| file.to_string_lossy().contains(part));
        assert!(named("libc.so") && named("ld-linux"), "{files:?}");
    }

    #[test]
    fn what_is_no_elf_file_needs_nothing() {
        assert_eq!(asked_in(&b"#!/bin/sh\n"[..]), None);
        assert_eq!(asked_in(&b"\x7fELF\x02\x01\x01"[..]), None);
    }

    #[test]
    fn damaged_files_are_read_without_a_panic() {
        let program = fs::read(std::env::current_exe().expect("a running program")).expect("readable");
        let head = &program[..program.len().min(4096)];
        for at in 0..head.len().min(1024) {
            let mut damaged = head.to_vec();
            damaged[at] ^= 0xff;
            asked_in(damaged.as_slice());
            asked_in(&head[..at]);
        }
    }
}
