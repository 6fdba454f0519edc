// SPDX-License-Identifier: GPL-2.0-or-later

//! A checksum over the parts of a module's file that the kernel loads: it is unchanged when packagers run `strip -g`,
//! which removes debug information and rewrites all tables.
//!
//! Covers the loaded sections (SHF_ALLOC), each with its name, and their relocations, each with the name and value of
//! its symbol; independent of order, which tools change. Does not cover file offsets, numbers of sections and symbols,
//! symbols without relocations, and everything that is not loaded. Layouts: elf.h (`Elf64_Ehdr`, `Elf64_Shdr`,
//! `Elf64_Sym`, `Elf64_Rela`).
//!
//! The tables are read here, not by the crate object as elsewhere: this crate has no dependencies, because it is part of
//! everything, and it must compute the same number for the same file in every later version.

use std::ops::Range;

use super::Sum;

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const HEADER_BYTES: u64 = 64;
const SYMBOL_BYTES: u64 = 24;
const RELOCATION_BYTES: usize = 24;
const SHT_RELA: u32 = 4;
const SHT_NOBITS: u32 = 8;
const SHF_ALLOC: u64 = 2;
/// Low bits of `st_info`: a section symbol.
const STT_SECTION: u8 = 3;
/// From here on `st_shndx` is not a section number.
const SHN_LORESERVE: u16 = 0xff00;

/// A section header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section<'f> {
    name: &'f [u8],
    kind: u32,
    flags: u64,
    offset: u64,
    bytes: u64,
    link: u32,
    info: u32,
    align: u64,
}

/// A file with valid section headers.
pub(super) struct Elf<'f> {
    file: &'f [u8],
    sections: Vec<Section<'f>>,
}

impl<'f> Elf<'f> {
    /// The sections of the ELF file; `None` if its tables are damaged.
    pub(super) fn read(file: &'f [u8]) -> Option<Elf<'f>> {
        if !file.starts_with(MAGIC) || u16_at(file, 58)? as u64 != HEADER_BYTES {
            return None;
        }
        let table = u64_at(file, 40)?;
        let header = |index: u16| slice(file, table.checked_add(u64::from(index) * HEADER_BYTES)?, HEADER_BYTES);
        let names = header(u16_at(file, 62)?)?;
        let names = slice(file, u64_at(names, 24)?, u64_at(names, 32)?)?;
        let section = |index: u16| {
            let header = header(index)?;
            Some(Section {
                name: text_at(names, u32_at(header, 0)?)?,
                kind: u32_at(header, 4)?,
                flags: u64_at(header, 8)?,
                offset: u64_at(header, 24)?,
                bytes: u64_at(header, 32)?,
                link: u32_at(header, 40)?,
                info: u32_at(header, 44)?,
                align: u64_at(header, 48)?,
            })
        };
        let sections = (0..u16_at(file, 60)?).map(section).collect::<Option<Vec<_>>>()?;
        Some(Elf { file, sections })
    }

    /// The file range of the section of that name.
    pub(super) fn place(&self, name: &str) -> Option<Range<usize>> {
        let section =
            self.sections.iter().find(|section| section.name == name.as_bytes() && section.kind != SHT_NOBITS)?;
        let start = usize::try_from(section.offset).ok()?;
        let end = start.checked_add(usize::try_from(section.bytes).ok()?)?;
        (end <= self.file.len()).then_some(start..end)
    }

    fn contents(&self, section: &Section) -> Option<&'f [u8]> {
        slice(self.file, section.offset, section.bytes)
    }

    /// With zeros in `hole`, a file range. `None`: a reference is invalid.
    pub(super) fn sum(&self, hole: &Range<usize>) -> Option<u64> {
        // e_type, e_machine.
        let mut total = Sum::new().and(self.file.get(16..20)?).0;
        for section in &self.sections {
            let of_section = match section.kind {
                SHT_RELA => self.relocations(section)?,
                _ if section.flags & SHF_ALLOC != 0 => self.loaded(section, hole)?,
                _ => 0,
            };
            total = total.wrapping_add(of_section);
        }
        Some(total)
    }

    fn loaded(&self, section: &Section, hole: &Range<usize>) -> Option<u64> {
        let sum = Sum::new()
            .and(section.name)
            .number(section.kind.into())
            .number(section.flags)
            .number(section.bytes)
            .number(section.align);
        if section.kind == SHT_NOBITS {
            return Some(sum.0);
        }
        let start = usize::try_from(section.offset).ok()?;
        let own = hole.start.saturating_sub(start)..hole.end.saturating_sub(start);
        Some(sum.and_but(self.contents(section)?, &own).0)
    }

    fn relocations(&self, section: &Section) -> Option<u64> {
        let target = self.sections.get(section.info as usize)?;
        if target.flags & SHF_ALLOC == 0 {
            return Some(0);
        }
        let symbols = self.sections.get(section.link as usize)?;
        let names = self.contents(self.sections.get(symbols.link as usize)?)?;
        let symbols = self.contents(symbols)?;
        let mut total = 0u64;
        for relocation in self.contents(section)?.chunks(RELOCATION_BYTES) {
            let symbol = slice(symbols, u64::from(u32_at(relocation, 12)?) * SYMBOL_BYTES, SYMBOL_BYTES)?;
            let sum = Sum::new()
                .and(target.name)
                .number(u64_at(relocation, 0)?)
                .number(u32_at(relocation, 8)?.into())
                .number(u64_at(relocation, 16)?);
            total = total.wrapping_add(self.symbol(sum, symbol, names)?.0);
        }
        Some(total)
    }

    fn symbol(&self, sum: Sum, symbol: &[u8], names: &[u8]) -> Option<Sum> {
        let (&info, index) = (symbol.get(4)?, u16_at(symbol, 6)?);
        let sum = sum.number(info.into()).number(u64_at(symbol, 8)?);
        let sum = match index {
            0 | SHN_LORESERVE.. => sum.number(index.into()),
            _ => sum.and(self.sections.get(usize::from(index))?.name),
        };
        // A section symbol may have the section's name or none.
        Some(if info & 15 == STT_SECTION { sum } else { sum.and(text_at(names, u32_at(symbol, 0)?)?) })
    }
}

fn slice(bytes: &[u8], at: u64, count: u64) -> Option<&[u8]> {
    let end = usize::try_from(at.checked_add(count)?).ok()?;
    bytes.get(usize::try_from(at).ok()?..end)
}

fn text_at(names: &[u8], at: u32) -> Option<&[u8]> {
    names.get(at as usize..)?.split(|byte| *byte == 0).next()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
