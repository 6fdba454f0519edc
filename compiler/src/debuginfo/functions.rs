//! Functions: by name and file, with every body and inlined instance.

use std::collections::HashMap;

use gimli::AttributeValue;

use super::units::DieRef;
use super::{Address, DebugInfo, Error, TypeId, Unit};
use crate::syntax::glob;

/// A function of this object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionId(u32);

/// Which functions are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionPattern {
    /// With `*`, `?` and `[...]`.
    pub name: String,
    /// The end of a source file's path, likewise: `read_write.c` and `fs/*.c` both match `fs/read_write.c`.
    pub file: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Source file as the kernel's tree has it: `fs/read_write.c` (DW_AT_decl_file).
    pub file: String,
    /// Of the declaration (DW_AT_decl_line); 0 if unknown.
    pub line: u32,
    pub external: bool,
    /// None: void.
    pub return_type: Option<TypeId>,
    /// Copies with code of their own: one, or more where the compiler made `.isra`, `.constprop` or `.part` clones.
    pub bodies: Vec<Body>,
    pub inlined: Vec<InlinedInstance>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    pub entry: Address,
    /// Bytes of the range that begins at the entry.
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedInstance {
    /// Its first instruction (DW_AT_entry_pc, else the lowest of its ranges).
    pub address: Address,
}

/// Functions that were asked for.
#[derive(Default)]
pub(super) struct Known {
    dies: Vec<DieRef>,
    ids: HashMap<DieRef, FunctionId>,
}

/// Ranges of code, in the order of DWARF, as linear addresses.
type Ranges = Vec<(u64, u64)>;

impl DebugInfo {
    /// Functions that match, in the order of names and units.
    pub fn find_functions(&self, pattern: &FunctionPattern) -> Result<Vec<FunctionId>, Error> {
        let index = self.index()?;
        let mut dies: Vec<DieRef> = Vec::new();
        if glob::is_pattern(&pattern.name) {
            let mut names: Vec<&&[u8]> = index.functions.keys().collect();
            names.retain(|name| std::str::from_utf8(name).is_ok_and(|name| glob::matches(&pattern.name, name)));
            names.sort_unstable();
            dies.extend(names.into_iter().filter_map(|name| index.functions.get(*name)).flatten());
        } else {
            dies.extend(index.functions.get(pattern.name.as_bytes()).into_iter().flatten());
        }
        let mut found = Vec::new();
        for die in dies {
            let fits = match &pattern.file {
                None => true,
                Some(wanted) => tail_matches(wanted, &self.source_file(die)?),
            };
            if fits {
                found.push(self.function_id(die));
            }
        }
        Ok(found)
    }

    fn function_id(&self, die: DieRef) -> FunctionId {
        let mut known = self.functions.borrow_mut();
        let next = FunctionId(known.dies.len() as u32);
        let id = *known.ids.entry(die).or_insert(next);
        if id == next {
            known.dies.push(die);
        }
        id
    }

    pub(super) fn function_die(&self, id: FunctionId) -> Result<DieRef, Error> {
        self.functions.borrow().dies.get(id.0 as usize).copied().ok_or(Error::Damaged("no such function"))
    }

    /// Names of all functions that have code.
    pub fn function_names(&self) -> Result<Vec<String>, Error> {
        let names = self.index()?.functions.keys();
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    pub fn function(&self, id: FunctionId) -> Result<Function, Error> {
        let die = self.function_die(id)?;
        let return_type = self.type_of(die)?.map(|die| self.type_id(die));
        let mut function = Function {
            name: self.name(die)?.unwrap_or_default(),
            file: self.source_file(die)?,
            line: self.number(die, gimli::DW_AT_decl_line)?.unwrap_or(0) as u32,
            external: self.attribute(die, gimli::DW_AT_external)?.is_some(),
            return_type,
            bodies: Vec::new(),
            inlined: Vec::new(),
        };
        for (_, ranges) in self.concrete(die)? {
            if let Some(&(start, end)) = ranges.first() {
                if let Some(entry) = self.elf.address(start) {
                    function.bodies.push(Body { entry, size: end.saturating_sub(start) });
                }
            }
        }
        for instance in self.inlined_instances(die)? {
            if let Some(address) = self.entry_address(instance)? {
                function.inlined.push(InlinedInstance { address });
            }
        }
        function.inlined.sort_by_key(|instance| instance.address);
        function.inlined.dedup();
        Ok(function)
    }

    /// DIEs of the function's bodies with their ranges: itself, or copies that name it as their abstract origin.
    pub(super) fn concrete(&self, die: DieRef) -> Result<Vec<(DieRef, Ranges)>, Error> {
        let own = self.ranges(die)?;
        if !own.is_empty() {
            return Ok(vec![(die, own)]);
        }
        let unit = self.unit(die.unit)?;
        let mut found = Vec::new();
        let mut tree = unit.entries_tree(None)?;
        let mut children = tree.root()?.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            if entry.tag() != gimli::DW_TAG_subprogram || !self.copies(die, entry.attr_value(gimli::DW_AT_abstract_origin)) {
                continue;
            }
            let copy = DieRef { unit: die.unit, offset: entry.offset().0 };
            let ranges = self.ranges(copy)?;
            if !ranges.is_empty() {
                found.push((copy, ranges));
            }
        }
        Ok(found)
    }

    fn copies(&self, die: DieRef, origin: Option<AttributeValue<super::Reader>>) -> bool {
        origin.and_then(|origin| self.referred(die.unit, origin)) == Some(die)
    }

    /// DIEs of inlined copies, anywhere in the function's unit.
    pub(super) fn inlined_instances(&self, die: DieRef) -> Result<Vec<DieRef>, Error> {
        let unit = self.unit(die.unit)?;
        if self.entry(&unit, die.offset)?.attr(gimli::DW_AT_inline).is_none() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() == gimli::DW_TAG_inlined_subroutine && self.copies(die, entry.attr_value(gimli::DW_AT_abstract_origin)) {
                found.push(DieRef { unit: die.unit, offset: entry.offset().0 });
            }
        }
        Ok(found)
    }

    /// Ranges of code of a DIE: DW_AT_low_pc and DW_AT_high_pc, or DW_AT_ranges. The range of the entry comes first.
    pub(super) fn ranges(&self, die: DieRef) -> Result<Ranges, Error> {
        let unit = self.unit(die.unit)?;
        let entry = self.entry(&unit, die.offset)?;
        let mut ranges = Vec::new();
        let mut iter = self.dwarf.die_ranges(&unit, &entry)?;
        while let Some(range) = iter.next()? {
            if range.begin < range.end {
                ranges.push((range.begin, range.end));
            }
            if ranges.len() > 100_000 {
                return Err(Error::Damaged("a range list has no end"));
            }
        }
        if let Some(pc) = self.entry_pc(&unit, &entry)? {
            if let Some(at) = ranges.iter().position(|&(start, end)| (start..end).contains(&pc)) {
                ranges.swap(0, at);
            }
        }
        Ok(ranges)
    }

    fn entry_pc(&self, unit: &Unit, entry: &super::Entry) -> Result<Option<u64>, Error> {
        match entry.attr_value(gimli::DW_AT_entry_pc) {
            Some(AttributeValue::Addr(pc)) => Ok(Some(pc)),
            Some(AttributeValue::DebugAddrIndex(index)) => Ok(Some(self.dwarf.address(unit, index)?)),
            // DWARF 5, 2.18: a constant is an offset from the base address.
            Some(value) => Ok(match (value.udata_value(), entry.attr_value(gimli::DW_AT_low_pc)) {
                (Some(offset), Some(AttributeValue::Addr(low))) => low.checked_add(offset),
                _ => None,
            }),
            None => Ok(None),
        }
    }

    /// First instruction of a DIE's code.
    fn entry_address(&self, die: DieRef) -> Result<Option<Address>, Error> {
        let unit = self.unit(die.unit)?;
        let entry = self.entry(&unit, die.offset)?;
        let pc = match self.entry_pc(&unit, &entry)? {
            Some(pc) => Some(pc),
            None => self.ranges(die)?.iter().map(|range| range.0).min(),
        };
        Ok(pc.and_then(|pc| self.elf.address(pc)))
    }

    /// DW_AT_decl_file through the unit's line table, as a path from the top of the sources.
    fn source_file(&self, die: DieRef) -> Result<String, Error> {
        let Some((number, value)) = self.attribute(die, gimli::DW_AT_decl_file)? else { return Ok(String::new()) };
        let AttributeValue::FileIndex(index) = value else { return Ok(String::new()) };
        let unit = self.unit(number)?;
        let Some(program) = &unit.line_program else { return Ok(String::new()) };
        let Some(file) = program.header().file(index) else { return Ok(String::new()) };
        let text = |value| -> Result<String, Error> {
            Ok(String::from_utf8_lossy(self.dwarf.attr_string(&unit, value)?.slice()).into_owned())
        };
        let mut path = text(file.path_name())?;
        if !path.starts_with('/') {
            if let Some(directory) = file.directory(program.header()) {
                let directory = text(directory)?;
                if !directory.is_empty() && directory != "." {
                    path = format!("{directory}/{path}");
                }
            }
        }
        let compiled_in = unit.comp_dir.map(|dir| String::from_utf8_lossy(dir.slice()).into_owned()).unwrap_or_default();
        Ok(shortened(&path, &compiled_in))
    }
}

/// Without the build directory and the way from there to the sources.
fn shortened(path: &str, compiled_in: &str) -> String {
    let mut path = path;
    if !compiled_in.is_empty() {
        if let Some(inner) = path.strip_prefix(compiled_in) {
            path = inner.trim_start_matches('/');
        }
    }
    while let Some(inner) = path.strip_prefix("./").or_else(|| path.strip_prefix("../")) {
        path = inner;
    }
    path.to_string()
}

/// Whether the pattern matches the end of a path, from a directory on.
fn tail_matches(pattern: &str, path: &str) -> bool {
    if glob::matches(pattern, path) {
        return true;
    }
    path.match_indices('/').any(|(at, _)| glob::matches(pattern, &path[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_pattern_matches_the_end_of_a_path() {
        assert!(tail_matches("read_write.c", "fs/read_write.c"));
        assert!(tail_matches("fs/*.c", "fs/read_write.c"));
        assert!(!tail_matches("write.c", "fs/read_write.c"));
    }

    #[test]
    fn paths_begin_at_the_top_of_the_sources() {
        assert_eq!(shortened("/b/linux/fs/x.c", "/b/linux"), "fs/x.c");
        assert_eq!(shortened("../../../fs/x.c", "/b/linux"), "fs/x.c");
        assert_eq!(shortened("./fs/x.c", ""), "fs/x.c");
    }
}
