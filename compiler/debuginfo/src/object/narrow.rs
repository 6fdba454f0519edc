// SPDX-License-Identifier: GPL-2.0-or-later

//! 32-bit programs: a 64-bit ELF file that stands for one, with its sections, functions, debug information, markers and notes,
//! and where in the file its segments are. Everything else in this crate reads 64-bit files. The code itself is left out,
//! so that nobody takes it for 64-bit code; what is found in it, or by relocations, is in sections of our own.

use object::elf::{SHT_NOTE, STT_FUNC, STT_GNU_IFUNC, STT_OBJECT};
use object::read::elf::ElfFile32;
use object::{
    LittleEndian, Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SectionFlags, SymbolKind,
};

use super::elf_writer::{self, Kind, Section};
use super::import_stubs;
use super::notes::next_note;
use super::symbol_table::is_indirect;
use super::thread_parts;
use spile_abi::budget::Budget;
use spile_abi::stubs::Code;

/// Section with three words for each segment that is loaded: address, place in the file, bytes there.
pub(super) const SEGMENTS: &str = ".spile.segments";

/// Section with the import stubs ([`import_stubs::packed`]).
pub(super) const IMPORTS: &str = ".spile.imports";

/// Section with what is known of variables of threads ([`thread_parts::Parts`]).
pub(super) const THREADS: &str = ".spile.threads";

/// The link-time address of the global offset table, in the file that stands for a 32-bit one.
pub(super) const TABLE: &str = ".spile.got";

/// The code, for who knows that it is not 64-bit code: of each section its address, its length, and its bytes.
pub(super) const CODE: &str = ".spile.code";

/// The dynamic section. Its entries are wider here, so it has no address: it would cover what follows it.
const DYNAMIC: &str = ".dynamic";

/// Section of markers, whose notes have words of an address's size.
const MARKERS: &str = ".note.stapsdt";

/// Sections that are kept as they are.
const KEPT: [&str; 6] = [".eh_frame", ".interp", ".dynstr", ".gnu_debuglink", ".gnu_debugaltlink", ".gnu_debugdata"];

/// Whether the bytes are a 32-bit ELF file for x86 (e_ident[EI_CLASS], e_machine).
pub(super) fn is_narrow(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF\x01") && bytes.get(18..20) == Some(&[3, 0])
}

/// The 64-bit file that represents it. `most`: bytes of unpacked sections.
pub(super) fn widened(bytes: &[u8], most: u64) -> Result<Vec<u8>, String> {
    let elf = ElfFile32::<LittleEndian>::parse(bytes).map_err(|error| error.to_string())?;
    let mut sections = vec![Section::plain("", 0, Vec::new())];
    let budget = Budget::unpacking("sections of a 32-bit program", bytes.len() as u64, most);
    let mut unpacked = 0;
    // By the index in the file.
    let mut indices = std::collections::HashMap::new();
    let mut code = Vec::new();
    for section in elf.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let name = section.name().unwrap_or_default();
        if let Some(contents) = contents_of(&section, name, |bytes| {
            unpacked = bytes.saturating_add(unpacked);
            budget.bytes(unpacked).map_err(|error| error.to_string())
        })? {
            let loaded = sh_flags.0 & object::elf::SHF_ALLOC.0 != 0 && name != DYNAMIC;
            indices.insert(section.index(), sections.len() as u16);
            sections.push(Section::with_contents(name, loaded.then(|| section.address()), contents));
            continue;
        }
        if sh_flags.0 & object::elf::SHF_ALLOC.0 == 0 {
            // Of a file without section headers: what is loaded around it is a section.
            if let (".note", Ok(note)) = (name, section.data()) {
                sections.push(Section::plain(name, SHT_NOTE.0, note.to_vec()));
            }
            continue;
        }
        indices.insert(section.index(), sections.len() as u16);
        let note = name.starts_with(".note").then(|| section.data().ok()).flatten().unwrap_or_default();
        let executable = sh_flags.0 & object::elf::SHF_EXECINSTR.0 != 0;
        if let Some(bytes) = section.data().ok().filter(|_| executable) {
            code.extend([section.address(), bytes.len() as u64].into_iter().flat_map(u64::to_le_bytes));
            code.extend(bytes);
        }
        sections.push(Section::loaded(name, executable, section.address(), section.size(), note.to_vec()));
    }
    let (mut table, mut names) = elf_writer::no_symbols();
    let has_own = elf.section_by_name(".symtab").is_some();
    for symbol in if has_own { elf.symbols() } else { elf.dynamic_symbols() } {
        let kind = symbol.kind();
        let index = symbol.section_index().and_then(|index| indices.get(&index));
        let (Some(index), Ok(name)) = (index, symbol.name()) else { continue };
        if matches!(kind, SymbolKind::Text | SymbolKind::Data) && !name.is_empty() {
            let place = (*index, symbol.address(), symbol.size());
            let kind = match kind {
                _ if is_indirect(&symbol) => STT_GNU_IFUNC,
                SymbolKind::Text => STT_FUNC,
                _ => STT_OBJECT,
            };
            elf_writer::add_symbol(&mut table, &mut names, name, place, symbol.is_global(), kind);
        }
    }
    let mut segments = Vec::new();
    for segment in elf.segments() {
        let (start, length) = segment.file_range();
        for word in [segment.address(), start, length] {
            segments.extend(word.to_le_bytes());
        }
    }
    sections.push(Section::with_contents(CODE, None, code));
    let kind = Code::Narrow { table: global_offset_table(&elf) };
    sections.push(Section::with_contents(IMPORTS, None, import_stubs::packed(&import_stubs::stubs_of(&elf, kind))));
    if let Some(table) = global_offset_table(&elf) {
        sections.push(Section::with_contents(TABLE, None, table.to_le_bytes().to_vec()));
    }
    if let Some(parts) = thread_parts::Parts::of(&elf, thread_parts::NARROW) {
        sections.push(Section::with_contents(THREADS, None, parts.packed()));
    }
    let kind = Kind::As { kind: elf.elf_header().e_type.get(LittleEndian).0, entry: elf.entry() };
    Ok(elf_writer::with_symbols(kind, sections, (table, names), (SEGMENTS, segments)))
}

/// Address and bytes of each section with code, from the contents of [`CODE`].
pub(super) fn code(mut packed: &[u8]) -> Vec<(u64, &[u8])> {
    let mut sections = Vec::new();
    while let Some(([address, length], rest)) = two_words(packed) {
        let Some((bytes, rest)) = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length)) else {
            break;
        };
        sections.push((address, bytes));
        packed = rest;
    }
    sections
}

fn two_words(bytes: &[u8]) -> Option<([u64; 2], &[u8])> {
    let (first, rest) = bytes.split_first_chunk()?;
    let (second, rest) = rest.split_first_chunk()?;
    Some(([u64::from_le_bytes(*first), u64::from_le_bytes(*second)], rest))
}

/// DT_PLTGOT of the dynamic section.
fn global_offset_table(elf: &ElfFile32<LittleEndian>) -> Option<u64> {
    const DT_PLTGOT: u32 = 3;
    let section = elf.section_by_name(DYNAMIC)?;
    // Elf32_Dyn: a tag and a value.
    let mut entries = section
        .data()
        .ok()?
        .as_chunks::<8>()
        .0
        .iter()
        .map(|[a, b, c, d, value @ ..]| (u32::from_le_bytes([*a, *b, *c, *d]), u32::from_le_bytes(*value)));
    entries.find(|(tag, _)| *tag == DT_PLTGOT).map(|(_, value)| value.into())
}

/// What is kept of a section in the 64-bit file; None: nothing but its place. `allow`: whether so many bytes more may be kept.
fn contents_of<'d>(
    section: &impl object::ObjectSection<'d>,
    name: &str,
    mut allow: impl FnMut(usize) -> Result<(), String>,
) -> Result<Option<Vec<u8>>, String> {
    let failed = |error: object::Error| format!("section {name}: {error}");
    if name == DYNAMIC {
        // Elf32_Dyn: a tag and a value.
        let words = section.data().map_err(failed)?.chunks_exact(4);
        return Ok(Some(words.flat_map(|word| [word, &[0; 4]].concat()).collect()));
    }
    if name == MARKERS {
        return Ok(Some(wide_markers(section.data().map_err(failed)?)));
    }
    if !name.starts_with(".debug_") && !KEPT.contains(&name) {
        return Ok(None);
    }
    let packed = section.compressed_data().map_err(failed)?;
    allow(usize::try_from(packed.uncompressed_size).unwrap_or(usize::MAX))?;
    Ok(Some(packed.decompress().map_err(failed)?.into_owned()))
}

/// The notes of markers with words of 8 bytes; what follows a damaged one is left out.
fn wide_markers(mut notes: &[u8]) -> Vec<u8> {
    const ADDRESSES: usize = 3;
    let mut wide = Vec::new();
    while let Some(note) = next_note(notes) {
        notes = note.rest;
        let Some((words, texts)) = note.contents.split_at_checked(4 * ADDRESSES) else { break };
        let contents: Vec<u8> =
            words.chunks_exact(4).flat_map(|word| [word, &[0; 4]].concat()).chain(texts.iter().copied()).collect();
        for word in [note.owner.len() as u32, contents.len() as u32, note.kind] {
            wide.extend(word.to_le_bytes());
        }
        wide.extend(note.owner);
        wide.resize(wide.len().next_multiple_of(4), 0);
        wide.extend(contents);
        wide.resize(wide.len().next_multiple_of(4), 0);
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::super::elf::{CodeSymbol, Elf};
    use super::*;

    #[test]
    fn functions_and_segments_of_a_32_bit_program() {
        let directory = tempfile::tempdir().expect("a directory");
        let (source, program) = (directory.path().join("x.c"), directory.path().join("x"));
        std::fs::write(&source, "int add(int a, int b) { return a + b; }\nvoid _start(void) { add(1, 2); }\n")
            .expect("written");
        let options = ["-m32", "-nostdlib", "-ffreestanding", "-static", "-Wl,--build-id=sha1", "-o"];
        let made = std::process::Command::new("gcc").args(options).arg(&program).arg(&source).output();
        if !made.is_ok_and(|made| made.status.success()) {
            return println!("skipped: gcc makes no 32-bit programs");
        }
        let elf = Elf::open_program(&program).expect("is read");
        assert_eq!(elf.build_id().len(), 20);
        let found = elf.functions_like("add");
        let [CodeSymbol { at: address, .. }] = found.as_slice() else { panic!("{found:?}") };
        let at = elf.file_offset(address.offset).expect("is in the file");
        let bytes = std::fs::read(&program).expect("is there");
        // push %ebp, with or without an endbr32.
        assert!(bytes[at as usize] == 0x55 || bytes[at as usize..].starts_with(&[0xf3, 0x0f, 0x1e, 0xfb]));
    }

    #[test]
    fn notes_of_markers_get_wide_words() {
        let mut notes = vec![8, 0, 0, 0, 16, 0, 0, 0, 3, 0, 0, 0];
        notes.extend(b"stapsdt\0\x01\0\0\0\x02\0\0\0\x03\0\0\0a\0b\0");
        let wide = wide_markers(&notes);
        let note = next_note(&wide).expect("is whole");
        assert_eq!((note.kind, note.owner), (3, &b"stapsdt\0"[..]));
        assert_eq!(note.contents, b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0a\0b\0");
        assert!(note.rest.is_empty() && wide_markers(&notes[..20]).is_empty());
    }

    #[test]
    fn a_cut_file_is_an_error_or_has_less() {
        let mut bytes = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
        assert!(is_narrow(&bytes) && widened(&bytes, 1 << 20).is_err());
        bytes.resize(200, 0x41);
        let _ = widened(&bytes, 1 << 20);
    }
}
