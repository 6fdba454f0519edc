// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions of programs in Go by the table that they need at run time, `.gopclntab`: it is there when the symbol table has been
//! stripped, as in all of Debian's. Its layout is in Go's src/runtime/symtab.go (`pcHeader`, `functab`, `_func`).

use super::elf::Elf;
use super::elf_writer::{self, Kind, Section};
use spile_abi::go::{TABLES, functions};

/// Section without meaning: the writer puts one behind the symbols.
const LAST: &str = ".spile.go";

/// A file with the program's sections and these functions as symbols; None: it has no such table, or an unknown one.
pub(crate) fn symbols(own: &Elf) -> Option<Vec<u8>> {
    let table = TABLES.iter().find_map(|name| own.section_bytes(name))?;
    let mut sections = vec![Section::plain("", 0, Vec::new())];
    // By the index in the new file.
    let mut code: Vec<(u16, std::ops::Range<u64>)> = Vec::new();
    for loaded in own.loaded().ok()? {
        if loaded.executable {
            let end = loaded.address.saturating_add(loaded.size);
            code.push((u16::try_from(sections.len()).ok()?, loaded.address..end));
        }
        sections.push(Section::loaded(&loaded.name, loaded.executable, loaded.address, loaded.size, loaded.note));
    }
    let (mut symbols, mut names) = elf_writer::no_symbols();
    let mut found = false;
    for function in functions(table)? {
        let Some((index, _)) = code.iter().find(|(_, range)| range.contains(&function.at)) else { continue };
        let place = (*index, function.at, function.size);
        elf_writer::add_symbol(&mut symbols, &mut names, function.name, place, true, object::elf::STT_FUNC);
        found = true;
    }
    found.then(|| elf_writer::with_symbols(Kind::Program, sections, (symbols, names), (LAST, vec![0])))
}
