// SPDX-License-Identifier: GPL-2.0-or-later

//! One section of a 64-bit little-endian ELF file, by its name, and notes as the kernel shows them.
//!
//! Files are read with the crate object, as the compiler does it: every number is checked before it is used. It makes
//! the program 6 KB larger (`read_core` and `elf` alone, optimised for size). Notes in `/sys` are not in an ELF file:
//! they are read here, without a copy.

use std::fmt;

use object::elf::{FileHeader64, SHF_ALLOC, SHT_NOBITS};
use object::read::elf::{FileHeader, SectionHeader};
use object::{LittleEndian, SectionIndex};

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// No ELF file, or neither 64-bit nor little-endian.
    NotElf,
    /// A header points outside of the file.
    Damaged,
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::NotElf => write!(f, "it is no 64-bit little-endian ELF file"),
            ElfError::Damaged => write!(f, "the ELF file is damaged or cut"),
        }
    }
}

impl std::error::Error for ElfError {}

const MAGIC: &[u8] = b"\x7fELF\x02\x01";

/// Bytes of the first section of that name, `None` if the file has none, or one without bytes in the file.
pub fn section<'f>(file: &'f [u8], name: &str) -> Result<Option<&'f [u8]>, ElfError> {
    Ok(sections(file, name, 1, false)?.first().map(|(bytes, _)| *bytes))
}

/// Bytes of the section of that name that is loaded. `None`: there is none, or another one has that name: kernels before 6.4
/// skip those that are not loaded, others refuse the file.
pub fn loaded_section<'f>(file: &'f [u8], name: &str) -> Result<Option<&'f [u8]>, ElfError> {
    match sections(file, name, 2, true)?[..] {
        [(bytes, true)] => Ok(Some(bytes)),
        _ => Ok(None),
    }
}

/// The first `most` of that name, and whether each is loaded. `without_bytes`: also those that have none in the file (SHT_NOBITS),
/// as if they were not loaded; kernels before 6.4 take the first, whatever it is.
fn sections<'f>(
    file: &'f [u8],
    name: &str,
    most: usize,
    without_bytes: bool,
) -> Result<Vec<(&'f [u8], bool)>, ElfError> {
    if !file.starts_with(MAGIC) {
        return Err(ElfError::NotElf);
    }
    let damaged = |_| ElfError::Damaged;
    let header = FileHeader64::<LittleEndian>::parse(file).map_err(damaged)?;
    let sections = header.sections(LittleEndian, file).map_err(damaged)?;
    let mut found = Vec::new();
    if sections.is_empty() {
        return Ok(found);
    }
    let names = header.shstrndx(LittleEndian, file).and_then(|index| sections.section(SectionIndex(index as usize)));
    let names = names.and_then(|names| names.data(LittleEndian, file)).map_err(damaged)?;
    for section in sections.iter() {
        // Only as long as the name: all sections of a hostile file can have one of the size of the file.
        let at = section.sh_name(LittleEndian) as usize;
        let rest = names.get(at..).ok_or(ElfError::Damaged)?;
        let is_named = rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(&[0]));
        let has_bytes = section.sh_type(LittleEndian) != SHT_NOBITS;
        if is_named && (has_bytes || without_bytes) {
            let is_loaded = has_bytes && section.sh_flags(LittleEndian).0 & SHF_ALLOC.0 != 0;
            found.push((section.data(LittleEndian, file).map_err(damaged)?, is_loaded));
            if found.len() == most {
                break;
            }
        }
    }
    Ok(found)
}

fn range(bytes: &[u8], at: u64, count: u64) -> Result<&[u8], ElfError> {
    let end = at.checked_add(count).ok_or(ElfError::Damaged)?;
    let (at, end) = (usize::try_from(at), usize::try_from(end));
    let (Ok(at), Ok(end)) = (at, end) else { return Err(ElfError::Damaged) };
    bytes.get(at..end).ok_or(ElfError::Damaged)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], ElfError> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.copied().ok_or(ElfError::Damaged)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, ElfError> {
    Ok(u32::from_le_bytes(array_at(bytes, at)?))
}

/// Description bytes of the first note of that owner and type (`Elf64_Nhdr`: sizes of name and description, type; both
/// padded to 4). Notes of the kernel and of modules are to be read in `/sys`.
pub fn note<'n>(mut notes: &'n [u8], owner: &[u8], kind: u32) -> Option<&'n [u8]> {
    let padded = |bytes: u32| (u64::from(bytes)).next_multiple_of(4);
    loop {
        let (name_bytes, description_bytes) = (u32_at(notes, 0).ok()?, u32_at(notes, 4).ok()?);
        let name = range(notes, 12, u64::from(name_bytes)).ok()?;
        let description_at = 12 + padded(name_bytes);
        let description = range(notes, description_at, u64::from(description_bytes)).ok()?;
        if u32_at(notes, 8).ok()? == kind && name.strip_suffix(b"\0") == Some(owner) {
            return Some(description);
        }
        let next = usize::try_from(description_at + padded(description_bytes)).ok()?;
        notes = notes.get(next..)?;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A file with these sections, followed by the table of their names.
    pub fn with_sections(sections: &[(&str, &[u8])]) -> Vec<u8> {
        let mut names = vec![0u8];
        let mut headers = vec![[0u8; 64]];
        let mut file = MAGIC.to_vec();
        file.resize(64, 0);
        // EV_CURRENT
        file[6] = 1;
        let mut header = |name: usize, at: usize, bytes: usize| {
            let mut header = [0u8; 64];
            header[..4].copy_from_slice(&(name as u32).to_le_bytes());
            header[4] = 1;
            header[8] = SHF_ALLOC.0 as u8;
            header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes as u64).to_le_bytes());
            headers.push(header);
        };
        for (name, bytes) in sections {
            header(names.len(), file.len(), bytes.len());
            file.extend(*bytes);
            names.extend(name.bytes().chain([0]));
        }
        header(0, file.len(), names.len());
        file.extend(names);
        let table = file.len() as u64;
        file.extend(headers.concat());
        file[40..48].copy_from_slice(&table.to_le_bytes());
        file[58..60].copy_from_slice(&64u16.to_le_bytes());
        file[60..62].copy_from_slice(&(headers.len() as u16).to_le_bytes());
        file[62..64].copy_from_slice(&(headers.len() as u16 - 1).to_le_bytes());
        file
    }

    #[test]
    fn a_file_may_have_no_sections() {
        let mut file = with_sections(&[(".a", b"x")]);
        file[40..48].fill(0);
        file[60..64].fill(0);
        assert_eq!(section(&file, ".a"), Ok(None));
    }

    #[test]
    fn a_section_that_is_loaded_is_the_only_one_of_its_name() {
        let file = |kind: u8| {
            let mut file = with_sections(&[(".a", b"no"), (".a", b"yes")]);
            let table = u64::from_le_bytes(*file[40..].first_chunk().unwrap()) as usize;
            file[table + 64 + 4] = kind;
            file
        };
        let nobits = SHT_NOBITS.0 as u8;
        assert_eq!((loaded_section(&file(1), ".a"), loaded_section(&file(nobits), ".a")), (Ok(None), Ok(None)));
        assert_eq!(section(&file(nobits), ".a"), Ok(Some(&b"yes"[..])));
        let one = with_sections(&[(".a", b"yes")]);
        assert_eq!(loaded_section(&one, ".a"), Ok(Some(&b"yes"[..])));
    }

    #[test]
    fn sections_are_found_by_their_whole_name() {
        let file = with_sections(&[(".spile.meta2", b"no"), (".spile.meta", b"yes")]);
        assert_eq!(section(&file, ".spile.meta"), Ok(Some(&b"yes"[..])));
        assert_eq!(section(&file, ".spile"), Ok(None));
    }

    #[test]
    fn this_program_can_be_read() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(section(&file, ".text").unwrap().unwrap().len() > 1000);
        assert_eq!(section(&file, ".bss"), Ok(None), "it has no bytes in the file");
    }

    #[test]
    fn damaged_files_are_errors_or_other_sections() {
        assert_eq!(section(b"#!/bin/sh\n", ".x"), Err(ElfError::NotElf));
        let file = with_sections(&[(".spile.meta", b"contents")]);
        for end in 6..file.len() {
            assert_eq!(section(&file[..end], ".spile.meta"), Err(ElfError::Damaged), "{end}");
        }
        for at in 0..file.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = value;
                let _ = section(&damaged, ".spile.meta");
            }
        }
    }

    #[test]
    fn notes_are_walked() {
        let mut notes = Vec::new();
        for (name, kind, description) in
            [("Linux\0", 3u32, &b"ab"[..]), ("GNU\0", 1, b""), ("GNU\0", 3, b"\x0a\x0b\x0c")]
        {
            notes.extend((name.len() as u32).to_le_bytes());
            notes.extend((description.len() as u32).to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(name.bytes());
            notes.resize(notes.len().next_multiple_of(4), 0);
            notes.extend(description);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(note(&notes, b"GNU", 3), Some(&b"\x0a\x0b\x0c"[..]));
        assert_eq!(note(&notes, b"GNU", 2), None);
        for end in 0..notes.len() - 1 {
            assert_eq!(note(&notes[..end], b"GNU", 3), None, "{end}");
        }
        assert_eq!(note(&[0xff; 64], b"GNU", 3), None);
    }
}
