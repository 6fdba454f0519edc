// SPDX-License-Identifier: GPL-2.0-or-later

//! Writes ELF files of sections and symbols.
//!
//! Elf64_Ehdr, Elf64_Shdr and Elf64_Sym are those of the System V ABI (gABI 4.1, chapter 4). They are written here, not with
//! the `object` crate: its writer of relocatable files sets no section addresses, and the low-level one
//! (`write::elf::Writer`) requires every part to be reserved, and then written in the same order, which takes more
//! lines than the 45 of [`laid_out`].

use object::elf::{
    ET_EXEC, ET_REL, SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, SHT_NOTE, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB, STB_GLOBAL,
    SymbolType,
};

const HEADER: u64 = 64;
const SECTION_HEADER: u16 = 64;
const SYMBOL: u64 = 24;

/// What the file is (e_type).
pub(super) enum Kind {
    /// An object file.
    Relocatable,
    /// A program, of which nothing says where it begins to run.
    Program,
    /// As in another file: its e_type, and the address at which it begins to run.
    As {
        /// e_type
        kind: u16,
        /// e_entry
        entry: u64,
    },
}

/// A section to write.
pub(super) struct Section {
    pub(super) name: String,
    kind: u32,
    flags: u64,
    address: u64,
    size: u64,
    contents: Vec<u8>,
    link: u32,
    info: u32,
    entry: u64,
}

impl Section {
    /// One that is not loaded; kind 0 is that of the first section.
    pub(super) fn plain(name: &str, kind: u32, contents: Vec<u8>) -> Section {
        let size = contents.len() as u64;
        Section { name: name.into(), kind, flags: 0, address: 0, size, contents, link: 0, info: 0, entry: 0 }
    }

    /// One with its contents; with an address one that is loaded.
    pub(super) fn with_contents(name: &str, address: Option<u64>, contents: Vec<u8>) -> Section {
        let flags = if address.is_some() { SHF_ALLOC.0 } else { 0 };
        Section { flags, address: address.unwrap_or(0), ..Section::plain(name, SHT_PROGBITS.0, contents) }
    }

    /// One that is loaded; only a note has contents.
    pub(super) fn loaded(name: &str, executable: bool, address: u64, size: u64, note: Vec<u8>) -> Section {
        let flags = SHF_ALLOC.0 | if executable { SHF_EXECINSTR.0 } else { 0 };
        let kind = if note.is_empty() { SHT_NOBITS.0 } else { SHT_NOTE.0 };
        Section { flags, address, size, ..Section::plain(name, kind, note) }
    }
}

/// The bytes of a file with these sections, a table of symbols with its names, and one section more.
pub(super) fn with_symbols(
    kind: Kind,
    mut sections: Vec<Section>,
    (symbols, names): (Vec<u8>, Vec<u8>),
    (last, contents): (&str, Vec<u8>),
) -> Vec<u8> {
    let strings = sections.len() as u32;
    sections.push(Section::plain(".strtab", SHT_STRTAB.0, names));
    // By the ABI local symbols come first, and `info` is their number: one, the null symbol.
    sections.push(Section {
        link: strings,
        info: 1,
        entry: SYMBOL,
        ..Section::plain(".symtab", SHT_SYMTAB.0, symbols)
    });
    sections.push(Section::plain(last, SHT_PROGBITS.0, contents));
    laid_out(kind, sections)
}

/// A table of symbols that has none but the first, and its names.
pub(super) fn no_symbols() -> (Vec<u8>, Vec<u8>) {
    (vec![0; SYMBOL as usize], vec![0])
}

/// Adds a symbol: the index of its section, its address and size.
pub(super) fn add_symbol(
    table: &mut Vec<u8>,
    names: &mut Vec<u8>,
    name: &str,
    (section, address, size): (u16, u64, u64),
    is_global: bool,
    kind: SymbolType,
) {
    let global = STB_GLOBAL.0 << 4;
    table.extend((names.len() as u32).to_le_bytes());
    table.extend([if is_global { global } else { 0 } | kind.0, 0]);
    table.extend(section.to_le_bytes());
    table.extend(address.to_le_bytes());
    table.extend(size.to_le_bytes());
    names.extend(name.bytes().chain([0]));
}

fn laid_out(kind: Kind, mut sections: Vec<Section>) -> Vec<u8> {
    let mut names = Vec::new();
    let names_index = sections.len() as u16;
    sections.push(Section::plain(".shstrtab", SHT_STRTAB.0, Vec::new()));
    let mut name_at = Vec::new();
    for section in &sections {
        name_at.push(names.len() as u32);
        names.extend(section.name.bytes().chain([0]));
    }
    if let Some(last) = sections.last_mut() {
        (last.size, last.contents) = (names.len() as u64, names);
    }
    let mut contents = Vec::new();
    let mut headers = Vec::new();
    for (section, name) in sections.iter().zip(name_at) {
        // Aligned for the words of notes and tables.
        contents.resize(contents.len().next_multiple_of(8), 0);
        let at = HEADER + contents.len() as u64;
        headers.extend(name.to_le_bytes());
        headers.extend(section.kind.to_le_bytes());
        for word in [section.flags, section.address, at, section.size] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend(section.link.to_le_bytes());
        headers.extend(section.info.to_le_bytes());
        headers.extend(8u64.to_le_bytes());
        headers.extend(section.entry.to_le_bytes());
        contents.extend(&section.contents);
    }
    contents.resize(contents.len().next_multiple_of(8), 0);
    let (kind, entry) = match kind {
        Kind::Relocatable => (ET_REL.0, 0),
        Kind::Program => (ET_EXEC.0, 0),
        Kind::As { kind, entry } => (kind, entry),
    };
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend(kind.to_le_bytes());
    file.extend(object::elf::EM_X86_64.0.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    for word in [entry, 0, HEADER + contents.len() as u64] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    for half in [HEADER as u16, 0, 0, SECTION_HEADER, sections.len() as u16, names_index] {
        file.extend(half.to_le_bytes());
    }
    file.extend(contents);
    file.extend(headers);
    file
}
