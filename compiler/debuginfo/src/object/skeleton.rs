// SPDX-License-Identifier: GPL-2.0-or-later

//! Writes an ELF file that represents an object without its contents: its loaded sections by name, place and size, its
//! symbols, its build-id, and one more section with an index of its debug information.

use std::collections::HashMap;

use object::elf::{STT_FUNC, STT_GNU_IFUNC, STT_OBJECT};

use super::elf::Elf;
use super::elf_writer::{Kind, Section, add_symbol, no_symbols, with_symbols};
use crate::error::Error;

/// Name of the section that [`crate::portable`] reads.
pub(crate) const SECTION: &str = ".spile.index";

/// The file's bytes; `tables` are the contents of [`SECTION`].
pub(crate) fn write(elf: &Elf, tables: Vec<u8>) -> Result<Vec<u8>, Error> {
    let mut sections = vec![Section::plain("", 0, Vec::new())];
    for loaded in elf.loaded()? {
        sections.push(Section::loaded(&loaded.name, loaded.executable, loaded.address, loaded.size, loaded.note));
    }
    let symbols = symbols(elf, &sections)?;
    Ok(with_symbols(
        if elf.is_relocatable() { Kind::Relocatable } else { Kind::Program },
        sections,
        symbols,
        (SECTION, tables),
    ))
}

fn symbols(elf: &Elf, sections: &[Section]) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let (mut table, mut names) = no_symbols();
    let mut numbers: HashMap<&str, usize, foldhash::fast::RandomState> = HashMap::default();
    for (number, section) in sections.iter().enumerate() {
        numbers.entry(section.name.as_str()).or_insert(number);
    }
    for symbol in elf.all_symbols()? {
        let Some(address) = elf.address(symbol.at) else { continue };
        let loaded = elf.section_of(address).map(|section| section.name.as_str());
        let Some(index) = loaded.and_then(|name| numbers.get(name)) else { continue };
        let place = (*index as u16, address.offset, symbol.size);
        let kind = match symbol.function {
            true if symbol.indirect => STT_GNU_IFUNC,
            true => STT_FUNC,
            false => STT_OBJECT,
        };
        add_symbol(&mut table, &mut names, symbol.name, place, symbol.global, kind);
    }
    Ok((table, names))
}
