// SPDX-License-Identifier: GPL-2.0-or-later

//! 32-bit programs: a 64-bit ELF file that stands for one, with its sections, functions, build-id, and where in the file its
//! segments are. Everything else in this crate reads 64-bit files; variables of 32-bit programs are not known.

use object::read::elf::ElfFile32;
use object::{
    LittleEndian, Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SectionFlags, SymbolKind,
};

use super::elf_writer::{self, Section};

/// Section with three words for each segment that is loaded: address, place in the file, bytes there.
pub(super) const SEGMENTS: &str = ".spile.segments";

/// Whether the bytes are a 32-bit ELF file for x86 (e_ident[EI_CLASS], e_machine).
pub(super) fn is_narrow(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF\x01") && bytes.get(18..20) == Some(&[3, 0])
}

/// The 64-bit file that represents it.
pub(super) fn widened(bytes: &[u8]) -> Result<Vec<u8>, object::Error> {
    let elf = ElfFile32::<LittleEndian>::parse(bytes)?;
    let mut sections = vec![Section::plain("", 0, Vec::new())];
    // By the index in the file.
    let mut indices = std::collections::HashMap::new();
    for section in elf.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if sh_flags.0 & object::elf::SHF_ALLOC.0 == 0 {
            continue;
        }
        indices.insert(section.index(), sections.len() as u16);
        let name = section.name().unwrap_or_default();
        let note = name.starts_with(".note").then(|| section.data().ok()).flatten().unwrap_or_default();
        let executable = sh_flags.0 & object::elf::SHF_EXECINSTR.0 != 0;
        sections.push(Section::loaded(name, executable, section.address(), section.size(), note.to_vec()));
    }
    let (mut table, mut names) = elf_writer::no_symbols();
    let has_own = elf.section_by_name(".symtab").is_some();
    for symbol in if has_own { elf.symbols() } else { elf.dynamic_symbols() } {
        let kind = symbol.kind();
        let index = symbol.section_index().and_then(|index| indices.get(&index));
        let (Some(index), Ok(name)) = (index, symbol.name()) else { continue };
        if matches!(kind, SymbolKind::Text | SymbolKind::Data) && !name.is_empty() {
            let function = kind == SymbolKind::Text;
            let place = (*index, symbol.address(), symbol.size());
            elf_writer::add_symbol(&mut table, &mut names, name, place, symbol.is_global(), function);
        }
    }
    let mut segments = Vec::new();
    for segment in elf.segments() {
        let (start, length) = segment.file_range();
        for word in [segment.address(), start, length] {
            segments.extend(word.to_le_bytes());
        }
    }
    Ok(elf_writer::with_symbols(false, sections, (table, names), (SEGMENTS, segments)))
}

#[cfg(test)]
mod tests {
    use super::super::elf::Elf;
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
        let [(_, address)] = found.as_slice() else { panic!("{found:?}") };
        let at = elf.file_offset(address.offset).expect("is in the file");
        let bytes = std::fs::read(&program).expect("is there");
        // push %ebp, with or without an endbr32.
        assert!(bytes[at as usize] == 0x55 || bytes[at as usize..].starts_with(&[0xf3, 0x0f, 0x1e, 0xfb]));
    }

    #[test]
    fn a_cut_file_is_an_error_or_has_less() {
        let mut bytes = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
        assert!(is_narrow(&bytes) && widened(&bytes).is_err());
        bytes.resize(200, 0x41);
        let _ = widened(&bytes);
    }
}
