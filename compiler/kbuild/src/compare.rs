// SPDX-License-Identifier: GPL-2.0-or-later

//! Compares two modules: whether the kernel would load the same.
//!
//! Compares all sections that are loaded or read by the module loader, with their types, flags, bytes and relocations,
//! and the symbols with their places and sizes. Ignores debug information, the build-id's bytes, and the order of
//! `.modinfo`'s strings and of the versions, which the kernel searches linearly.
//!
//! Where only one module's tables were written into its object (sites/), constant data is in another order: of that the
//! tables of probes and of fingerprints are compared, word by word, with what they refer to.

use std::collections::{BTreeMap, BTreeSet};

use object::read::elf::{ElfFile64, ElfSymbol64};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags, SymbolFlags};

type File<'data> = ElfFile64<'data, Endianness>;

/// The differences, one a line; empty if there are none. Err: one file is not a module.
pub fn differences(one: &[u8], other: &[u8]) -> Result<Vec<String>, String> {
    let parse = |bytes| File::parse(bytes).map_err(|error| format!("no module: {error}"));
    let (one, other) = (Described::new(&parse(one)?)?, Described::new(&parse(other)?)?);
    let mut lines = Vec::new();
    let (mut one, mut other) = (one, other);
    if one.has_short_form != other.has_short_form {
        [&mut one, &mut other].into_iter().for_each(Described::leave_out_constants);
        diff(&mut lines, "probes", &one.probes, &other.probes);
        diff(&mut lines, "fingerprints", &one.fingerprints, &other.fingerprints);
    }
    diff(&mut lines, "section", &one.sections, &other.sections);
    diff(&mut lines, "relocations of", &one.relocations, &other.relocations);
    diff(&mut lines, "symbol", &one.symbols, &other.symbols);
    Ok(lines)
}

/// Properties, by names that are the same in both.
struct Described {
    sections: BTreeMap<String, String>,
    relocations: BTreeMap<String, String>,
    symbols: BTreeMap<String, String>,
    /// The words of the table of probes, by their numbers.
    probes: BTreeMap<String, String>,
    /// Of the table of fingerprints.
    fingerprints: BTreeMap<String, String>,
    /// The table was written into the object.
    has_short_form: bool,
}

impl Described {
    /// Leaves out what differs where the table was written into one object.
    fn leave_out_constants(&mut self) {
        let is_constant = |name: &str| name.starts_with(".rodata");
        self.sections.retain(|name, _| !is_constant(name));
        self.relocations.retain(|name, text| {
            // Their offsets in constant data differ.
            *text = text.lines().filter(|line| !line.contains(" .rodata")).collect::<Vec<_>>().join("\n");
            !is_constant(name)
        });
        self.symbols.retain(|_, text| !text.starts_with("in .rodata") && !text.starts_with("in .spile.meta"));
        // Where nothing but constant data was referred to by name.
        self.relocations.retain(|_, text| !text.is_empty());
    }

    fn new(file: &File) -> Result<Described, String> {
        let failed = |error: object::Error| format!("damaged module: {error}");
        let written = file.symbol_by_name("spile_probes");
        let has_short_form = written.is_some();
        let table = written.or_else(|| file.symbol_by_name("probes"));
        let code = file.symbol_by_name("spile_fingerprints").or_else(|| file.symbol_by_name("fingerprints"));
        let mut described = Described {
            sections: BTreeMap::new(),
            relocations: BTreeMap::new(),
            symbols: BTreeMap::new(),
            probes: table.map(|table| words(file, &table, &no_counts)).transpose()?.unwrap_or_default(),
            fingerprints: code.map(|table| words(file, &table, &fingerprint_counts)).transpose()?.unwrap_or_default(),
            has_short_form,
        };
        for section in file.sections() {
            let name = section.name().map_err(failed)?;
            // .BTF is generated if there is a vmlinux beside the headers; only tools read it.
            let left_out = [".debug_", ".rela", ".symtab", ".strtab", ".shstrtab", ".BTF"];
            if left_out.iter().any(|start| name.starts_with(start)) {
                continue;
            }
            let data = section.data().map_err(failed)?;
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            let contents = match name {
                ".note.gnu.build-id" | spile_abi::seal::SECTION => format!("{} bytes", data.len()),
                ".modinfo" | ".comment" => format!("{:?}", strings(data)),
                "__versions" => format!("{:?}", data.chunks(64).collect::<BTreeSet<_>>()),
                _ => format!("{} bytes, digest {}", section.size(), digest(data)),
            };
            let text = format!("{:?}, flags {sh_flags:?}, aligned to {}: {contents}", section.kind(), section.align());
            described.sections.insert(name.to_string(), text);
            let relocations: Result<Vec<String>, String> = section
                .relocations()
                .map(|(offset, relocation)| {
                    Ok(format!(
                        "{offset:#x} {:?} {:+} {}",
                        relocation.flags(),
                        relocation.addend(),
                        target(file, relocation.target())?
                    ))
                })
                .collect();
            let relocations = relocations?;
            if !relocations.is_empty() {
                described.relocations.insert(name.to_string(), relocations.join("\n"));
            }
        }
        for symbol in file.symbols() {
            let name = symbol.name().map_err(failed)?;
            let section = section_name(file, &symbol)?;
            if name.is_empty() || section.starts_with(".debug_") {
                continue;
            }
            // Their offsets are part of the set that is compared.
            let value = if section == ".modinfo" { 0 } else { symbol.address() };
            let SymbolFlags::Elf { st_info, st_other } = symbol.flags() else { continue };
            let text = format!("in {section} at {value:#x}, {} bytes, info {st_info:?}, {st_other:?}", symbol.size());
            // A local name may occur twice.
            described
                .symbols
                .entry(name.to_string())
                .and_modify(|all| all.push_str(&format!("; {text}")))
                .or_insert(text);
        }
        Ok(described)
    }
}

/// The size of what a word of a table's element refers to, where the next word has how many there are. None: it has not.
type Counts = dyn Fn(u64) -> Option<usize>;

fn no_counts(_: u64) -> Option<usize> {
    None
}

/// In `struct spile_fingerprint` (runtime-c/script.h): the code, and the spans that may differ.
fn fingerprint_counts(word: u64) -> Option<usize> {
    match word % 8 {
        4 => Some(1),
        6 => Some(8),
        _ => None,
    }
}

/// The words of a table, each as its number or as what it refers to: a function, or constant data with its bytes.
fn words(file: &File, table: &ElfSymbol64<Endianness>, counts: &Counts) -> Result<BTreeMap<String, String>, String> {
    // A table of locks has one element of four bytes at least.
    const SHOWN: usize = 4;
    let failed = |error: object::Error| format!("damaged module: {error}");
    let index = table.section_index().ok_or("the table of probes is undefined")?;
    let section = file.section_by_index(index).map_err(failed)?;
    let data = section.data().map_err(failed)?;
    let inside = table.address()..table.address() + table.size();
    let relocated: BTreeMap<u64, _> = section.relocations().filter(|(offset, _)| inside.contains(offset)).collect();
    let mut words = BTreeMap::new();
    for offset in inside.clone().step_by(8) {
        let at = usize::try_from(offset).map_err(|error| error.to_string())?;
        let number = data.get(at..at + 8).ok_or("the table of probes is outside of its section")?;
        let word = (offset - inside.start) / 8;
        let text = match (relocated.get(&offset), counts(word)) {
            (relocation, Some(size)) => {
                let count = data.get(at + 8..at + 12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
                let length = size * count.map_or(0, |count| count as usize);
                relocation.map(|relocation| bytes_at(file, relocation, length)).transpose()?.unwrap_or_default()
            }
            (Some(relocation), None) => referred(file, relocation, SHOWN)?,
            (None, None) => hex::encode(number),
        };
        words.insert(format!("word {word:06}"), text);
    }
    Ok(words)
}

/// As many bytes as a relocation refers to.
fn bytes_at(file: &File, relocation: &object::Relocation, length: usize) -> Result<String, String> {
    let failed = |error: object::Error| format!("damaged module: {error}");
    let RelocationTarget::Symbol(index) = relocation.target() else { return Ok(format!("{:?}", relocation.target())) };
    let symbol = file.symbol_by_index(index).map_err(failed)?;
    let section = symbol.section_index().ok_or("a table refers to an undefined symbol")?;
    let data = file.section_by_index(section).and_then(|section| section.data()).map_err(failed)?;
    let place = usize::try_from(symbol.address().wrapping_add_signed(relocation.addend())).ok();
    let bytes = place.and_then(|place| data.get(place..place.checked_add(length)?));
    Ok(hex::encode(bytes.ok_or("a table refers to bytes outside of their section")?))
}

/// What a relocation refers to: a function's name, or a text up to its end, or as many bytes of other data.
fn referred(file: &File, relocation: &object::Relocation, shown: usize) -> Result<String, String> {
    let failed = |error: object::Error| format!("damaged module: {error}");
    let RelocationTarget::Symbol(index) = relocation.target() else { return Ok(format!("{:?}", relocation.target())) };
    let symbol = file.symbol_by_index(index).map_err(failed)?;
    let Some(section) = symbol.section_index() else { return Ok(symbol.name().unwrap_or_default().to_string()) };
    let place = symbol.address().wrapping_add_signed(relocation.addend());
    let function = file.symbols().find(|function| {
        function.kind() == object::SymbolKind::Text
            && function.section_index() == Some(section)
            && function.address() == place
    });
    if let Some(function) = function {
        return Ok(function.name().unwrap_or_default().to_string());
    }
    let section = file.section_by_index(section).map_err(failed)?;
    let data = section.data().map_err(failed)?;
    let from = usize::try_from(place).ok().and_then(|place| data.get(place..)).unwrap_or_default();
    let text = from.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_text = text.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    Ok(match is_text {
        true => format!("{:?}", String::from_utf8_lossy(text)),
        false => hex::encode(from.get(..shown.min(from.len())).unwrap_or_default()),
    })
}

fn section_name(file: &File, symbol: &ElfSymbol64<Endianness>) -> Result<String, String> {
    let Some(index) = symbol.section_index() else { return Ok(format!("{:?}", symbol.section())) };
    let section = file.section_by_index(index).map_err(|error| format!("damaged module: {error}"))?;
    Ok(section.name().unwrap_or_default().to_string())
}

fn target(file: &File, target: RelocationTarget) -> Result<String, String> {
    let RelocationTarget::Symbol(index) = target else { return Ok(format!("{target:?}")) };
    let symbol = file.symbol_by_index(index).map_err(|error| format!("damaged module: {error}"))?;
    match symbol.name().unwrap_or_default() {
        "" => section_name(file, &symbol),
        name => Ok(name.to_string()),
    }
}

fn strings(data: &[u8]) -> BTreeSet<String> {
    data.split(|byte| *byte == 0)
        .filter(|text| !text.is_empty())
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect()
}

fn digest(data: &[u8]) -> String {
    use sha2::Digest;
    let mut text = hex::encode(sha2::Sha256::digest(data));
    text.truncate(16);
    text
}

fn diff(lines: &mut Vec<String>, what: &str, one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for name in names {
        match (one.get(name), other.get(name)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => {
                let first = a.lines().zip(b.lines()).find(|(a, b)| a != b);
                let (a, b) = first
                    .unwrap_or_else(|| (a.lines().last().unwrap_or_default(), b.lines().last().unwrap_or_default()));
                lines.push(format!("{what} {name}: {a} / {b}"));
            }
            (Some(_), None) => lines.push(format!("{what} {name}: only in the first")),
            (None, _) => lines.push(format!("{what} {name}: only in the second")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write;
    use object::{Architecture, BinaryFormat, SectionKind, SymbolKind, SymbolScope};

    fn module(text: &[u8], modinfo: &[u8], symbol: &str) -> Vec<u8> {
        let mut object = write::Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let code = object.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
        object.append_section_data(code, text, 16);
        let info = object.add_section(Vec::new(), b".modinfo".to_vec(), SectionKind::ReadOnlyData);
        object.append_section_data(info, modinfo, 1);
        object.add_symbol(write::Symbol {
            name: symbol.into(),
            value: 0,
            size: text.len() as u64,
            kind: SymbolKind::Text,
            scope: SymbolScope::Linkage,
            weak: false,
            section: write::SymbolSection::Section(code),
            flags: object::SymbolFlags::None,
        });
        object.write().unwrap()
    }

    #[test]
    fn what_is_different_is_said() {
        let one = module(b"\x90\xc3", b"license=GPL\0name=a\0", "f");
        assert_eq!(differences(&one, &one).unwrap(), [] as [String; 0]);
        assert_eq!(differences(&one, &module(b"\x90\xc3", b"name=a\0license=GPL\0", "f")).unwrap(), [] as [String; 0]);
        assert!(
            differences(&one, &module(b"\x91\xc3", b"license=GPL\0name=a\0", "f")).unwrap()[0]
                .starts_with("section .text: ")
        );
        assert!(differences(&one, &module(b"\x90\xc3", b"license=GPL\0name=b\0", "f")).unwrap()[0].contains("name=b"));
        let names = differences(&one, &module(b"\x90\xc3", b"license=GPL\0name=a\0", "g")).unwrap();
        assert_eq!(names, ["symbol f: only in the first", "symbol g: only in the second"]);
        assert!(differences(&one, b"junk").is_err());
    }
}
