//! Names at the top level of all units: functions that have code, and complete types.

use std::collections::HashMap;

use gimli::{AttributeValue, DwTag};
use rayon::prelude::*;

use super::units::DieRef;
use super::{DebugInfo, Entry, Error, Reader, Unit};

/// What kind of name a type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Tag {
    Struct,
    Union,
    Enum,
    /// A typedef or base type: a name without a word before it.
    Plain,
}

#[derive(Default)]
pub(super) struct Index {
    /// Functions with code, concrete or inlined: by name.
    pub functions: HashMap<&'static [u8], Vec<DieRef>>,
    /// The first complete type of a name.
    pub types: HashMap<(Tag, &'static [u8]), DieRef>,
}

impl Index {
    fn merge(mut self, other: Index) -> Index {
        if self.functions.len() < other.functions.len() && self.types.len() < other.types.len() {
            return other.merge(self);
        }
        for (name, dies) in other.functions {
            self.functions.entry(name).or_default().extend(dies);
        }
        for (name, die) in other.types {
            let first = self.types.entry(name).or_insert(die);
            // The same answer whatever thread was first.
            *first = (*first).min(die);
        }
        self
    }
}

impl DebugInfo {
    pub(super) fn index(&self) -> Result<&Index, Error> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let (dwarf, headers) = (&self.dwarf, &self.headers);
        let scan = |(number, header): (usize, &gimli::UnitHeader<Reader>)| scan(dwarf, number, *header);
        let fold = |index: Result<Index, Error>, unit| {
            let mut index = index?;
            scan_into(&mut index, scan(unit)?);
            Ok(index)
        };
        let merge = |a: Result<Index, Error>, b: Result<Index, Error>| Ok(a?.merge(b?));
        let units = headers.par_iter().enumerate();
        let mut index = units.fold(|| Ok(Index::default()), fold).reduce(|| Ok(Index::default()), merge)?;
        index.functions.values_mut().for_each(|dies| dies.sort_unstable());
        Ok(self.index.get_or_init(|| index))
    }
}

/// What one unit adds.
struct Found {
    functions: Vec<(&'static [u8], DieRef)>,
    types: Vec<((Tag, &'static [u8]), DieRef)>,
}

fn scan_into(index: &mut Index, found: Found) {
    for (name, die) in found.functions {
        index.functions.entry(name).or_default().push(die);
    }
    for (name, die) in found.types {
        let first = index.types.entry(name).or_insert(die);
        *first = (*first).min(die);
    }
}

fn scan(dwarf: &gimli::Dwarf<Reader>, number: usize, header: gimli::UnitHeader<Reader>) -> Result<Found, Error> {
    let unit = dwarf.unit(header)?;
    let mut found = Found { functions: Vec::new(), types: Vec::new() };
    let mut tree = unit.entries_tree(None)?;
    let mut children = tree.root()?.children();
    while let Some(child) = children.next()? {
        let entry = child.entry();
        let die = DieRef { unit: number, offset: entry.offset().0 };
        match entry.tag() {
            gimli::DW_TAG_subprogram if has_code(entry) => {
                if let Some(name) = function_name(dwarf, &unit, entry)? {
                    found.functions.push((name, die));
                }
            }
            tag => {
                let complete = entry.attr(gimli::DW_AT_declaration).is_none();
                if let (Some(tag), true) = (type_tag(tag), complete) {
                    if let Some(name) = own_name(dwarf, &unit, entry)? {
                        found.types.push(((tag, name), die));
                    }
                }
            }
        }
    }
    Ok(found)
}

fn type_tag(tag: DwTag) -> Option<Tag> {
    match tag {
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => Some(Tag::Struct),
        gimli::DW_TAG_union_type => Some(Tag::Union),
        gimli::DW_TAG_enumeration_type => Some(Tag::Enum),
        gimli::DW_TAG_typedef | gimli::DW_TAG_base_type => Some(Tag::Plain),
        _ => None,
    }
}

/// A definition with code of its own, or an abstract instance. Copies of the latter (DW_AT_abstract_origin) are found
/// through it.
fn has_code(entry: &Entry) -> bool {
    entry.attr(gimli::DW_AT_abstract_origin).is_none()
        && [gimli::DW_AT_low_pc, gimli::DW_AT_ranges, gimli::DW_AT_inline].iter().any(|&name| entry.attr(name).is_some())
}

fn own_name(dwarf: &gimli::Dwarf<Reader>, unit: &Unit, entry: &Entry) -> Result<Option<&'static [u8]>, Error> {
    match entry.attr_value(gimli::DW_AT_name) {
        Some(value) => Ok(Some(dwarf.attr_string(unit, value)?.slice())),
        None => Ok(None),
    }
}

/// The name, or that of the declaration which the definition completes.
fn function_name(dwarf: &gimli::Dwarf<Reader>, unit: &Unit, entry: &Entry) -> Result<Option<&'static [u8]>, Error> {
    if let Some(name) = own_name(dwarf, unit, entry)? {
        return Ok(Some(name));
    }
    match entry.attr_value(gimli::DW_AT_specification) {
        Some(AttributeValue::UnitRef(offset)) => own_name(dwarf, unit, &unit.entry(offset)?),
        _ => Ok(None),
    }
}
