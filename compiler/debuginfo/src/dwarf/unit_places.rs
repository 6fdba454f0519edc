// SPDX-License-Identifier: GPL-2.0-or-later

//! The sections that entries are read from, their units, and the numbers of entries: those of the file's own `.debug_info` are
//! their offsets there, and those of other sections and files follow.

use std::sync::{Arc, OnceLock};

use gimli::{DebugInfoOffset, EndianSlice, LittleEndian, Section, SectionId, UnitOffset};
use spile_abi::budget::Exceeded;

use super::entry::{Bytes, Unit};
use crate::error::Error;
use crate::facts::registers::Machine;
use crate::object::{Contents, Elf};

/// Offset of an entry in `.debug_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Die(pub u32);

/// Units of a file: each takes 6 KB when it is parsed, and may be 30 bytes in the file. Linux 6.1 has 2,172, a program in Rust
/// with all its libraries 7,000.
const MAX_UNITS: usize = 1 << 16;

/// Entries outside the file's `.debug_info`. They are numbered as if they followed it, and the parts before.
#[derive(Clone)]
pub(super) struct Part {
    /// The number of the first entry.
    pub start: u32,
    /// The same of the part that references without a unit lead to.
    pub info_start: u32,
    /// The sections that the entries are in.
    pub sections: Arc<gimli::Dwarf<Bytes>>,
    /// They are in `.debug_types`, where DWARF 4 has units of one type.
    pub types: bool,
    /// The file, if it is another one.
    pub _file: Option<Arc<Elf>>,
}

/// Where one unit is; its header and the unit when they have been parsed.
pub(super) struct Slot {
    /// Its range in `.debug_info`.
    pub start: u32,
    /// The end of the range, excluded.
    pub end: u32,
    pub header: OnceLock<Result<gimli::UnitHeader<Bytes>, gimli::Error>>,
    /// Apart: it is large, and of most units nothing is asked.
    pub unit: OnceLock<Result<Box<Unit>, gimli::Error>>,
    /// Of a unit in a file of its own (`-gsplit-dwarf`): what the program has of it.
    pub skeleton: Option<Arc<Unit>>,
    pub nesting: OnceLock<Result<Nesting, EntryError>>,
}

/// Which namespaces and types are around the entries of a unit.
#[derive(Default)]
pub(super) struct Nesting {
    /// The entries of these, each with the number of the one around it; the first is the unit.
    pub scopes: Vec<(Die, u32)>,
    /// All entries that are directly in one of these, in order, with its number.
    pub inside: Vec<(Die, u32)>,
}

/// Why an entry could not be read, before it is known which file it is of.
#[derive(Clone, Debug)]
pub(super) struct EntryError {
    /// The entry; None if the error is not about a single one.
    pub die: Option<Die>,
    /// The reason, in words.
    pub message: String,
}

impl From<gimli::Error> for EntryError {
    fn from(error: gimli::Error) -> EntryError {
        EntryError { die: None, message: error.to_string() }
    }
}

impl From<Error> for EntryError {
    fn from(error: Error) -> EntryError {
        EntryError { die: None, message: error.to_string() }
    }
}

impl From<Exceeded> for EntryError {
    fn from(error: Exceeded) -> EntryError {
        EntryError { die: None, message: error.to_string() }
    }
}

impl EntryError {
    /// Damage of this entry.
    pub fn at(die: Die, message: impl Into<String>) -> EntryError {
        EntryError { die: Some(die), message: message.into() }
    }
}

pub(super) fn check_count(slots: &[Slot]) -> Result<(), EntryError> {
    match slots.len() > MAX_UNITS {
        true => Err(EntryError { die: None, message: format!("more than the {MAX_UNITS} units that are allowed") }),
        false => Ok(()),
    }
}

/// None: of another kind.
pub(super) fn slot(header: gimli::UnitHeader<Bytes>, machine: Machine) -> Result<Option<Slot>, EntryError> {
    let Some(DebugInfoOffset(start)) = header.debug_info_offset() else {
        return Ok(None);
    };
    let end = start.saturating_add(header.length_including_self());
    let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else {
        return Err(EntryError { die: None, message: "more than 4 GB of .debug_info".into() });
    };
    if header.address_size() != machine.word() {
        return Err(EntryError::at(Die(start), format!("a unit with addresses of {} bytes", header.address_size())));
    }
    Ok(Some(Slot { header: Ok(header).into(), ..Slot::at(start, end) }))
}

impl Slot {
    pub fn at(start: u32, end: u32) -> Slot {
        Slot { start, end, header: OnceLock::new(), unit: OnceLock::new(), skeleton: None, nesting: OnceLock::new() }
    }

    /// The same place with nothing parsed.
    pub fn again(&self) -> Slot {
        Slot { skeleton: self.skeleton.clone(), ..Slot::at(self.start, self.end) }
    }
}

/// The number of an entry that far from the first of its file.
pub(super) fn number_of(offset: usize) -> Result<u32, EntryError> {
    u32::try_from(offset).map_err(|_| EntryError { die: None, message: "more than 4 GB of debug information".into() })
}

/// The number of the first entry after `length` bytes of them from this number on.
pub(super) fn after(start: u32, length: usize) -> Result<u32, EntryError> {
    number_of((start as usize).saturating_add(length))
}

impl Part {
    /// Bytes of its entries.
    pub fn length(&self) -> usize {
        match self.types {
            true => self.sections.debug_types.reader().len(),
            false => self.sections.debug_info.reader().len(),
        }
    }

    /// The header of the unit that begins with this number.
    pub fn header(&self, start: u32) -> Result<gimli::UnitHeader<Bytes>, gimli::Error> {
        let local = start.saturating_sub(self.start) as usize;
        let header = if self.types {
            let mut rest = *self.sections.debug_types.reader();
            gimli::Reader::skip(&mut rest, local)?;
            gimli::DebugTypes::from(rest).units().next()?.ok_or(gimli::Error::MissingUnitDie)?
        } else {
            self.sections.debug_info.header_from_offset(DebugInfoOffset(local))?
        };
        // Entries of units know their numbers by it.
        Ok(gimli::UnitHeader::new(
            header.encoding(),
            header.unit_length(),
            header.type_(),
            header.debug_abbrev_offset(),
            SectionId::DebugInfo,
            gimli::UnitSectionOffset(start as usize),
            header.range_from(UnitOffset(header.header_size())..)?,
        ))
    }

    /// Adds its units.
    pub fn read_headers(&self, machine: Machine, slots: &mut Vec<Slot>) -> Result<(), EntryError> {
        let (mut at, end) = (self.start, after(self.start, self.length())?);
        while at < end {
            let header = self.header(at)?;
            at = after(at, header.length_including_self().max(1))?;
            slots.extend(slot(header, machine)?);
            check_count(slots)?;
        }
        Ok(())
    }
}

/// A section's bytes; what is not in the file itself is added to `owned`.
pub(super) fn load(elf: &Elf, section: &str, owned: &mut Vec<Vec<u8>>) -> Result<Bytes, Error> {
    let contents = elf.debug_section(section)?;
    Ok(kept(elf, contents, owned))
}

/// The same of all sections of that name.
pub(super) fn load_all(elf: &Elf, section: &str, owned: &mut Vec<Vec<u8>>) -> Result<Bytes, Error> {
    let contents = elf.debug_sections(section)?;
    Ok(kept(elf, contents, owned))
}

fn kept(elf: &Elf, contents: Contents, owned: &mut Vec<Vec<u8>>) -> Bytes {
    let bytes: &[u8] = match contents {
        Contents::InFile(range) => elf.bytes().get(range).unwrap_or_default(),
        Contents::Owned(contents) => {
            owned.push(contents);
            owned.last().map_or(&[], Vec::as_slice)
        }
    };
    // SAFETY: the bytes are those of a Vec's or map's allocation, which does not move when the Vec or map does. The Vec is
    // kept in the store unchanged, the map in its file, which the store or whoever has it keeps beside it; and no value with
    // this lifetime leaves `debuginfo`.
    let bytes: &'static [u8] = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
    EndianSlice::new(bytes, LittleEndian)
}
