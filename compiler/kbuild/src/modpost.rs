// SPDX-License-Identifier: GPL-2.0-or-later

//! Adapts the part that the kernel's modpost adds to a module (`NAME.mod.o`) to another module.
//!
//! modpost writes C with `struct module`, the module's information and the CRCs of the symbols that the module uses,
//! and Kbuild compiles that with kernel headers. The object made for one module works for all others of the same kernel
//! once the name, the strings of `.modinfo` and the table `__versions` are replaced.

use std::collections::BTreeSet;
use std::path::Path;

use object::build::elf::{Builder, SectionData, SectionId};
use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Endianness, Object, ObjectSection, ObjectSymbol};

use super::symvers;

/// `struct modversion_info` (include/linux/module.h): `unsigned long crc; char name[64 - sizeof(unsigned long)]`.
const VERSION_BYTES: usize = 64;
const CRC_BYTES: usize = 8;
/// modpost adds it to every module; no object refers to it.
const LAYOUT: &str = "module_layout";

/// The properties of a module that modpost uses.
pub(super) struct Module<'a> {
    pub(super) name: &'a str,
    /// Its objects, or what they were linked to.
    pub(super) objects: &'a [Vec<u8>],
    /// For CONFIG_MODULE_SRCVERSION_ALL, a digest of the sources in hexadecimal.
    pub(super) source_version: &'a str,
}

/// The `.mod.o` of `module`, from that of the module `reference`. Err: why modpost itself is needed.
pub(super) fn describe(info: &[u8], reference: &str, module: &Module, symvers: &Path) -> Result<Vec<u8>, String> {
    let used = UndefinedSymbols::of_all(module.objects)?;
    let mut builder =
        Builder::read64(info).map_err(|error| format!("reading the reference module's description: {error}"))?;
    builder.sections.iter_mut().filter(|section| is_debug(&section.name)).for_each(|section| section.delete = true);
    let find = |builder: &Builder, name: &str| {
        builder.sections.iter().find(|section| *section.name == *name.as_bytes()).map(object::build::elf::Section::id)
    };
    if find(&builder, "__version_ext_crcs").is_some() {
        return Err("the kernel has extended module versions".into());
    }
    let versions = find(&builder, "__versions");
    let old = match versions {
        Some(id) => parse_versions(data(&mut builder, id)?)?,
        None => Vec::new(),
    };
    let (versions_now, depends) = choose_versions(&old, &used, symvers)?;
    if let Some(id) = versions {
        let bytes = put_versions(&versions_now);
        let length = bytes.len() as u64;
        *data(&mut builder, id)? = bytes;
        builder
            .symbols
            .iter_mut()
            .filter(|symbol| symbol.section == Some(id) && symbol.st_size > 0)
            .for_each(|symbol| symbol.st_size = length);
    }
    let modinfo = find(&builder, ".modinfo").ok_or("the reference module has no information")?;
    rewrite_modinfo(&mut builder, modinfo, |entry| match entry.split_once('=') {
        Some(("name", _)) => Ok(format!("name={}", module.name)),
        Some(("depends", "")) => Ok(format!("depends={}", depends.join(","))),
        Some(("depends", _)) => Err("the reference module depends on other modules".into()),
        Some(("srcversion", _)) => Ok(format!("srcversion={}", module.source_version)),
        _ => Ok(entry.to_string()),
    })?;
    let this = find(&builder, ".gnu.linkonce.this_module").ok_or("the reference module has no struct module")?;
    rename(data(&mut builder, this)?, reference, module.name)?;
    for symbol in &mut builder.symbols {
        let name = String::from_utf8_lossy(&symbol.name).into_owned();
        if let Some(rest) = name.strip_prefix(reference).filter(|rest| rest.starts_with('.')) {
            symbol.name = format!("{}{rest}", module.name).into_bytes().into();
        }
    }
    // LLVM stores section names with symbol names; the writer uses a table for each.
    if !builder.sections.iter().any(|section| matches!(section.data, SectionData::SectionString)) {
        let names = builder.sections.add();
        names.name = b".shstrtab"[..].into();
        names.sh_type = object::elf::SHT_STRTAB;
        names.sh_addralign = 1;
        names.data = SectionData::SectionString;
    }
    let mut out = Vec::new();
    builder.write(&mut out).map_err(|error| format!("writing the module's description: {error}"))?;
    Ok(out)
}

fn is_debug(name: &[u8]) -> bool {
    name.starts_with(b".debug_") || name.starts_with(b".rela.debug_")
}

fn data<'b>(builder: &'b mut Builder, id: SectionId) -> Result<&'b mut Vec<u8>, String> {
    match &mut builder.sections.get_mut(id).data {
        SectionData::Data(bytes) => Ok(bytes.to_mut()),
        _ => Err("the reference module has a section of an unknown kind".into()),
    }
}

/// The undefined symbols of a module.
struct UndefinedSymbols {
    needed: BTreeSet<String>,
    /// May stay undefined.
    weak: BTreeSet<String>,
}

impl UndefinedSymbols {
    /// What none of the objects defines. One that needs a symbol decides.
    fn of_all(objects: &[Vec<u8>]) -> Result<UndefinedSymbols, String> {
        let mut used = UndefinedSymbols { needed: BTreeSet::new(), weak: BTreeSet::new() };
        let mut defined = BTreeSet::new();
        for object in objects {
            used.add(object, &mut defined)?;
        }
        used.needed.retain(|name| !defined.contains(name));
        used.weak.retain(|name| !defined.contains(name) && !used.needed.contains(name));
        Ok(used)
    }

    /// Adds those of an object, and what it defines for others to `defined`.
    fn add(&mut self, object: &[u8], defined: &mut BTreeSet<String>) -> Result<(), String> {
        let file =
            ElfFile64::<Endianness>::parse(object).map_err(|error| format!("reading the module's objects: {error}"))?;
        let only_modpost = ["__ksymtab", "___ksymtab", ".export_symbol", ".gnu.linkonce.this_module"];
        let section = file
            .sections()
            .find(|section| only_modpost.iter().any(|start| section.name().is_ok_and(|name| name.starts_with(start))));
        if let Some(section) = section {
            return Err(format!("the module has a section {}", section.name().unwrap_or_default()));
        }
        for symbol in file.symbols() {
            let name = symbol.name().map_err(|error| format!("reading the module's symbols: {error}"))?;
            if name.starts_with("__mod_") && name.ends_with("_device_table") {
                return Err(format!("the module has a table of devices {name}"));
            }
            if symbol.is_undefined() && !name.is_empty() && !["__this_module", "_GLOBAL_OFFSET_TABLE_"].contains(&name)
            {
                let set = if symbol.is_weak() { &mut self.weak } else { &mut self.needed };
                set.insert(name.to_string());
            } else if symbol.is_global() && !symbol.is_undefined() {
                defined.insert(name.to_string());
            }
        }
        Ok(())
    }
}

/// A symbol and the CRC of its declaration.
type Version = (String, u64);

/// The table of versions, those of `old` in their order, and the names of the modules that export the others.
fn choose_versions(
    old: &[Version],
    used: &UndefinedSymbols,
    symvers: &Path,
) -> Result<(Vec<Version>, Vec<String>), String> {
    let is_used = |name: &str| name == LAYOUT || used.needed.contains(name) || used.weak.contains(name);
    let mut versions: Vec<(String, u64)> = old.iter().filter(|(name, _)| is_used(name)).cloned().collect();
    let known: BTreeSet<&str> = old.iter().map(|(name, _)| name.as_str()).collect();
    let new: Vec<&str> =
        used.needed.iter().chain(&used.weak).map(String::as_str).filter(|name| !known.contains(name)).collect();
    let exports = symvers::find(symvers, &new).ok_or_else(|| format!("there is no {}", symvers.display()))?;
    let mut depends: Vec<String> = Vec::new();
    for name in new {
        let Some(export) = exports.get(name) else {
            if used.weak.contains(name) {
                continue;
            }
            return Err(format!("the kernel does not export {name}"));
        };
        if !export.namespace.is_empty() {
            return Err(format!("the symbol {name} is in the namespace {}", export.namespace));
        }
        if export.module != "vmlinux" {
            let module = export.module.rsplit('/').next().unwrap_or_default().replace('-', "_");
            if !depends.contains(&module) {
                depends.push(module);
            }
        }
        // A symbol without a version is not in the table (add_versions in modpost.c).
        if export.crc != 0 && !old.is_empty() {
            versions.push((name.to_string(), export.crc.into()));
        }
    }
    Ok((versions, depends))
}

fn parse_versions(bytes: &[u8]) -> Result<Vec<(String, u64)>, String> {
    let entry = |entry: &[u8]| -> Option<(String, u64)> {
        let (crc, name) = entry.split_at_checked(CRC_BYTES)?;
        let name = name.split(|byte| *byte == 0).next()?;
        Some((std::str::from_utf8(name).ok()?.to_string(), u64::from_le_bytes(crc.try_into().ok()?)))
    };
    let entries: Option<Vec<_>> = bytes.chunks(VERSION_BYTES).map(entry).collect();
    entries
        .filter(|_| bytes.len().is_multiple_of(VERSION_BYTES))
        .ok_or_else(|| "the table of versions has an unknown form".into())
}

fn put_versions(versions: &[(String, u64)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(versions.len() * VERSION_BYTES);
    for (name, crc) in versions {
        let end = bytes.len() + VERSION_BYTES;
        bytes.extend(crc.to_le_bytes());
        // Longer names have no version (modpost reports an error and omits them; the symbol table has only shorter
        // ones).
        bytes.extend(name.bytes().take(VERSION_BYTES - CRC_BYTES - 1));
        bytes.resize(end, 0);
    }
    bytes
}

/// Replaces strings of `.modinfo`; symbols at the strings are moved along.
fn rewrite_modinfo(
    builder: &mut Builder,
    id: SectionId,
    change: impl Fn(&str) -> Result<String, String>,
) -> Result<(), String> {
    let old = data(builder, id)?.clone();
    let mut new = Vec::with_capacity(old.len());
    // Old offset, new offset, and length including the NUL.
    let mut moved = Vec::new();
    let mut at = 0;
    for text in old.split_inclusive(|byte| *byte == 0) {
        let entry = text.strip_suffix(&[0]).unwrap_or(text);
        let begin = new.len();
        if entry.is_empty() {
            new.extend(text);
        } else {
            let entry = std::str::from_utf8(entry).map_err(|_| "the reference module's information is not text")?;
            new.extend(change(entry)?.bytes().chain([0]));
        }
        moved.push((at as u64, begin as u64, (new.len() - begin) as u64));
        at += text.len();
    }
    *data(builder, id)? = new;
    for symbol in builder.symbols.iter_mut().filter(|symbol| symbol.section == Some(id) && symbol.st_size > 0) {
        let there = moved.iter().find(|(old, _, _)| *old == symbol.st_value);
        let (_, begin, length) = there.ok_or("a symbol of .modinfo stands at no string")?;
        (symbol.st_value, symbol.st_size) = (*begin, *length);
    }
    Ok(())
}

/// `char name[MODULE_NAME_LEN]` of struct module. The new name fits: options.rs checks names.
fn rename(bytes: &mut [u8], old: &str, new: &str) -> Result<(), String> {
    let with_nul: Vec<u8> = old.bytes().chain([0]).collect();
    let places: Vec<usize> =
        bytes.windows(with_nul.len()).enumerate().filter(|(_, window)| *window == with_nul).map(|(at, _)| at).collect();
    let [at] = places.as_slice() else { return Err("struct module does not have its name once".into()) };
    let length = old.len().max(new.len()) + 1;
    let room = bytes.get_mut(*at..*at + length).ok_or("struct module has no room for the name")?;
    if room.iter().skip(old.len()).any(|byte| *byte != 0) {
        return Err("struct module has no room for the name".into());
    }
    let padded = new.bytes().chain(std::iter::repeat(0));
    room.iter_mut().zip(padded).for_each(|(byte, new)| *byte = new);
    Ok(())
}

/// Whether an object is 64-bit little-endian ELF, the only format supported here.
pub(super) fn is_readable(object: &[u8]) -> bool {
    object::elf::FileHeader64::<Endianness>::parse(object)
        .is_ok_and(|header| header.endian().is_ok_and(|endian| endian == Endianness::Little))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_struct_module() {
        let mut bytes = [&[1u8; 24][..], b"spile_runtime", &[0; 43]].concat();
        rename(&mut bytes, "spile_runtime", "x").unwrap();
        assert_eq!(&bytes[24..], [b"x", &[0; 55][..]].concat());
        let longest = "n".repeat(55);
        rename(&mut bytes, "x", &longest).unwrap();
        assert_eq!(&bytes[24..79], longest.as_bytes());
        assert!(rename(&mut bytes, "x", "y").is_err());
        assert!(rename(&mut [b"a\0\0\0\0bbbb".as_slice()].concat(), "a", "abcdef").is_err());
    }

    #[test]
    fn versions_there_and_back() {
        let versions = vec![("memcpy".to_string(), 0x69ac_df38), (LAYOUT.to_string(), 1)];
        let bytes = put_versions(&versions);
        assert_eq!(bytes.len(), 128);
        assert_eq!(parse_versions(&bytes).unwrap(), versions);
        assert!(parse_versions(&bytes[..100]).is_err());
        let long = put_versions(&[("n".repeat(100), 2)]);
        assert_eq!(parse_versions(&long).unwrap(), [("n".repeat(55), 2)]);
    }

    #[test]
    fn versions_of_another_module() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("Module.symvers");
        std::fs::write(&file, "0x00000007\tnew\tvmlinux\tEXPORT_SYMBOL\t\n0x00000008\tput\tdrivers/a-b\tEXPORT_SYMBOL\t\n0x9\tns\tx\tEXPORT_SYMBOL\tN\n").unwrap();
        let old = [("memcpy".to_string(), 1), ("kfree".to_string(), 2), (LAYOUT.to_string(), 3)];
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<String>>();
        let used = |needed: &[&str], weak: &[&str]| UndefinedSymbols { needed: set(needed), weak: set(weak) };
        let (versions, depends) = choose_versions(&old, &used(&["memcpy", "new", "put"], &["gone"]), &file).unwrap();
        let expected = [("memcpy", 1), (LAYOUT, 3), ("new", 7), ("put", 8)];
        assert_eq!(versions, expected.map(|(name, crc)| (name.to_string(), crc)));
        assert_eq!(depends, ["a_b"]);
        assert!(choose_versions(&old, &used(&["gone"], &[]), &file).unwrap_err().contains("does not export gone"));
        assert!(choose_versions(&old, &used(&["ns"], &[]), &file).unwrap_err().contains("namespace N"));
        assert!(choose_versions(&old, &used(&["new"], &[]), Path::new("/nowhere")).is_err());
        assert_eq!(choose_versions(&[], &used(&["new"], &[]), &file).unwrap().0, []);
    }

    fn object_with(defined: &str, needed: &str, weak: &str) -> Vec<u8> {
        use object::write::{Object, Symbol, SymbolSection};
        let mut object = Object::new(object::BinaryFormat::Elf, object::Architecture::X86_64, Endianness::Little);
        let text = object.add_section(Vec::new(), b".text".to_vec(), object::SectionKind::Text);
        for (name, section, weak) in [
            (defined, SymbolSection::Section(text), false),
            (needed, SymbolSection::Undefined, false),
            (weak, SymbolSection::Undefined, true),
        ] {
            object.add_symbol(Symbol {
                name: name.into(),
                value: 0,
                size: 0,
                kind: object::SymbolKind::Text,
                scope: object::SymbolScope::Linkage,
                weak,
                section,
                flags: object::SymbolFlags::None,
            });
        }
        object.write().unwrap()
    }

    #[test]
    fn objects_that_define_what_others_need() {
        let objects = [object_with("run", "printk", "kfree"), object_with("spare", "run", "printk")];
        let used = UndefinedSymbols::of_all(&objects).unwrap();
        assert_eq!(used.needed, BTreeSet::from(["printk".to_string()]));
        assert_eq!(used.weak, BTreeSet::from(["kfree".to_string()]));
        let linked = UndefinedSymbols::of_all(&[object_with("run", "printk", "kfree")]).unwrap();
        assert_eq!((linked.needed, linked.weak), (used.needed, used.weak));
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        let module = Module { name: "x", objects: &[b"\x7fELF".to_vec()], source_version: "" };
        assert!(describe(b"junk", "r", &module, Path::new("/nowhere")).is_err());
        assert!(!is_readable(b"\x7fELF junk"));
    }
}
