// SPDX-License-Identifier: GPL-2.0-or-later

//! Sets the array `spile_stacks` (runtime-c/script.h) in a script's object: what handlers need of the stack is known only
//! when they are compiled, and compiling them again for it would double the time of a large script.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol};

const TABLE: &str = "spile_stacks";

/// Replaces the values in `object`. Err: why they cannot be set; the object is unchanged.
pub(super) fn set(object: &mut [u8], values: &[u32]) -> Result<(), String> {
    let place = place(object, values.len() * 4)?;
    let bytes = object.get_mut(place).ok_or("the table is outside of the file")?;
    for (place, value) in bytes.chunks_exact_mut(4).zip(values) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

/// Where the table is in the file.
fn place(object: &[u8], size: usize) -> Result<std::ops::Range<usize>, String> {
    let file = ElfFile64::<Endianness>::parse(object).map_err(|error| error.to_string())?;
    let symbol = file.symbol_by_name(TABLE).ok_or("there is no table of stacks")?;
    let index = symbol.section_index().ok_or("the table of stacks is undefined")?;
    let section = file.section_by_index(index).map_err(|error| error.to_string())?;
    let (begin, length) = section.file_range().ok_or("the table of stacks has no contents")?;
    let end = symbol.address().checked_add(symbol.size()).filter(|end| *end <= length);
    if symbol.size() != size as u64 || end.is_none() {
        return Err(format!("the table of stacks has {} bytes, not {size}", symbol.size()));
    }
    let begin = usize::try_from(begin + symbol.address()).map_err(|error| error.to_string())?;
    Ok(begin..begin + size)
}

#[cfg(test)]
mod tests {
    use object::write::{Object, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, SectionKind, SymbolFlags, SymbolKind, SymbolScope};

    use super::*;

    fn with_table(name: &str, values: &[u32]) -> Vec<u8> {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let section = object.add_section(Vec::new(), b".rodata".to_vec(), SectionKind::ReadOnlyData);
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        object.append_section_data(section, &[0xee; 8], 8);
        let value = object.append_section_data(section, &bytes, 4);
        object.append_section_data(section, &[0xee; 8], 8);
        object.add_symbol(Symbol {
            name: name.into(),
            value,
            size: bytes.len() as u64,
            kind: SymbolKind::Data,
            scope: SymbolScope::Linkage,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        });
        object.write().unwrap()
    }

    #[test]
    fn exactly_the_table_changes() {
        let mut object = with_table(TABLE, &[0, 0, 7]);
        set(&mut object, &[0x1000, 0, 0x0203_0405]).unwrap();
        assert_eq!(object, with_table(TABLE, &[0x1000, 0, 0x0203_0405]));
    }

    #[test]
    fn another_table_is_left_alone() {
        for (mut object, error) in [
            (with_table("others", &[0]), "there is no table of stacks"),
            (with_table(TABLE, &[0, 0]), "the table of stacks has 8 bytes, not 4"),
            (b"\x7fELF".to_vec(), "ELF header"),
        ] {
            let before = object.clone();
            assert!(set(&mut object, &[1]).unwrap_err().contains(error));
            assert_eq!(object, before);
        }
    }
}
