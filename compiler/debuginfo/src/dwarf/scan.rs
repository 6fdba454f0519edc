// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of an object's functions, types and variables, from the top-level entries of all units.
//!
//! One pass, in parallel over the units, that skips everything nested (`DW_AT_sibling`). Strings are not copied.

use std::collections::HashMap;

use gimli::{AttributeValue, DwTag, UnitOffset};
use rayon::prelude::*;

use super::store::{Bytes, Damage, Die, Slot, Store, Unit};
use crate::facts::TypeTag;

/// A name in a section, without its NUL.
pub(super) type Text = &'static [u8];

/// A function's entry that has a name and is no declaration: an ordinary function, or the abstract instance of one that
/// is inlined somewhere.
#[derive(Clone, Copy)]
pub(super) struct NamedFunction<'n> {
    pub name: &'n [u8],
    pub die: Die,
    /// DW_AT_decl_file, 0 if there is none.
    pub file: u32,
}

/// All that was found.
pub(super) struct Names {
    /// Sorted by name, then by entry.
    pub functions: Vec<NamedFunction<'static>>,
    /// Out-of-line copies (origin, copy), sorted.
    pub copies: Vec<(Die, Die)>,
    /// The first full definition of each, sorted.
    pub types: Vec<(TypeTag, Text, Die)>,
    /// Definitions of variables outside functions, sorted.
    pub variables: Vec<(Text, Die)>,
    /// A function's copies may be in other units than itself (link-time optimisation).
    pub crosses_units: bool,
}

/// What one thread has seen. Types are told apart by the position of their names' strings, which is cheap and nearly exact,
/// since the linker merges equal strings.
#[derive(Default)]
struct Partial {
    functions: Vec<NamedFunction<'static>>,
    copies: Vec<(Die, Die)>,
    types: HashMap<(TypeTag, usize), (Text, Die)>,
    variables: Vec<(Text, Die)>,
    crosses_units: bool,
}

impl Names {
    /// Reads all units, on all CPUs.
    pub fn read(store: &Store) -> Result<Names, Damage> {
        let one = |mut partial: Partial, slot: usize| -> Result<Partial, Damage> {
            scan(store, slot, &mut partial)?;
            Ok(partial)
        };
        let slots = (0..store.slots.len()).into_par_iter();
        let all = slots.try_fold(Partial::default, one).try_reduce(Partial::default, |a, b| Ok(a.merge(b)))?;
        let Partial { mut functions, mut copies, types, mut variables, crosses_units } = all;
        functions.par_sort_unstable_by(|a, b| (a.name, a.die).cmp(&(b.name, b.die)));
        copies.par_sort_unstable();
        variables.par_sort_unstable();
        let mut types: Vec<(TypeTag, Text, Die)> =
            types.into_iter().map(|((tag, _), (name, die))| (tag, name, die)).collect();
        types.par_sort_unstable();
        types.dedup_by_key(|(tag, name, _)| (*tag, *name));
        Ok(Names { functions, copies, types, variables, crosses_units })
    }
}

impl Partial {
    fn merge(mut self, mut other: Partial) -> Partial {
        if self.types.len() < other.types.len() {
            std::mem::swap(&mut self, &mut other);
        }
        self.functions.append(&mut other.functions);
        self.copies.append(&mut other.copies);
        self.variables.append(&mut other.variables);
        self.crosses_units |= other.crosses_units;
        for (key, (name, die)) in other.types {
            let (_, first) = self.types.entry(key).or_insert((name, die));
            *first = die.min(*first);
        }
        self
    }
}

/// The attributes that are read of a top-level entry.
#[derive(Default)]
struct Seen {
    name: Option<AttributeValue<Bytes>>,
    origin: Option<AttributeValue<Bytes>>,
    specification: Option<AttributeValue<Bytes>>,
    sibling: Option<usize>,
    declaration: bool,
    located: bool,
    file: u32,
}

fn scan(store: &Store, index: usize, partial: &mut Partial) -> Result<(), Damage> {
    let slot = store.slot(index)?;
    let header = &slot.header;
    let abbreviations = store.sections(Die(slot.start)).abbreviations(header)?;
    let failed = |error: gimli::Error| Damage::at(Die(slot.start), error.to_string());
    let mut raw = header.entries_raw(&abbreviations, None).map_err(failed)?;
    let Some(root) = raw.read_abbreviation().map_err(failed)? else {
        return Ok(());
    };
    raw.skip_attributes(root.attributes()).map_err(failed)?;
    // A unit shared by several others: functions from it may be inlined anywhere.
    partial.crosses_units |= root.tag() == gimli::DW_TAG_partial_unit;
    if !root.has_children() {
        return Ok(());
    }
    // Units of other kinds (skeletons, type units) have their entries elsewhere or are not needed.
    while !raw.is_empty() {
        let offset = raw.next_offset();
        let Some(abbreviation) = raw.read_abbreviation().map_err(failed)? else {
            break;
        };
        let tag = abbreviation.tag();
        let wanted = is_wanted(tag);
        let mut seen = Seen::default();
        let specs = abbreviation.attributes();
        let mut skipped = 0;
        for (at, spec) in specs.iter().enumerate() {
            let name = spec.name();
            let sibling = name == gimli::DW_AT_sibling && abbreviation.has_children();
            if !(sibling || wanted && is_read(name)) {
                continue;
            }
            raw.skip_attributes(specs.get(skipped..at).unwrap_or_default()).map_err(failed)?;
            let value = raw.read_attribute(*spec).map_err(failed)?.value();
            skipped = at + 1;
            seen.take(name, value);
        }
        raw.skip_attributes(specs.get(skipped..).unwrap_or_default()).map_err(failed)?;
        if wanted {
            add(store, slot, index, tag, offset, &seen, partial)?;
        }
        if abbreviation.has_children() {
            match seen.sibling {
                // Only forward: a backward reference would never end.
                Some(sibling) if sibling > raw.next_offset().0 => {
                    raw = header.entries_raw(&abbreviations, Some(UnitOffset(sibling))).map_err(failed)?;
                }
                _ => skip_children(&mut raw).map_err(failed)?,
            }
        }
    }
    Ok(())
}

fn is_wanted(tag: DwTag) -> bool {
    tag == gimli::DW_TAG_subprogram || tag == gimli::DW_TAG_variable || type_tag(tag).is_some()
}

fn type_tag(tag: DwTag) -> Option<TypeTag> {
    Some(match tag {
        gimli::DW_TAG_structure_type => TypeTag::Struct,
        gimli::DW_TAG_union_type => TypeTag::Union,
        gimli::DW_TAG_enumeration_type => TypeTag::Enum,
        gimli::DW_TAG_typedef | gimli::DW_TAG_base_type => TypeTag::Plain,
        _ => return None,
    })
}

fn is_read(name: gimli::DwAt) -> bool {
    matches!(
        name,
        gimli::DW_AT_name
            | gimli::DW_AT_abstract_origin
            | gimli::DW_AT_specification
            | gimli::DW_AT_declaration
            | gimli::DW_AT_location
            | gimli::DW_AT_const_value
            | gimli::DW_AT_decl_file
    )
}

impl Seen {
    fn take(&mut self, name: gimli::DwAt, value: AttributeValue<Bytes>) {
        match name {
            gimli::DW_AT_name => self.name = Some(value),
            gimli::DW_AT_abstract_origin => self.origin = Some(value),
            gimli::DW_AT_specification => self.specification = Some(value),
            gimli::DW_AT_declaration => self.declaration = matches!(value, AttributeValue::Flag(true)),
            gimli::DW_AT_location | gimli::DW_AT_const_value => self.located = true,
            gimli::DW_AT_decl_file => {
                if let AttributeValue::FileIndex(file) = value {
                    self.file = file as u32;
                }
            }
            gimli::DW_AT_sibling => {
                if let AttributeValue::UnitRef(offset) = value {
                    self.sibling = Some(offset.0);
                }
            }
            _ => {}
        }
    }
}

fn add(
    store: &Store,
    slot: &Slot,
    index: usize,
    tag: DwTag,
    offset: UnitOffset,
    seen: &Seen,
    partial: &mut Partial,
) -> Result<(), Damage> {
    let die = Die(slot.start.saturating_add(offset.0 as u32));
    if tag == gimli::DW_TAG_subprogram {
        let origin = match (seen.origin, seen.specification) {
            (Some(origin), _) => origin,
            // Another entry has declared it, and has the name.
            (None, Some(_)) => {
                let chain = store.origins(die)?;
                let name =
                    chain.iter().find_map(|(_, unit, entry)| store.string(unit, entry.attr_value(gimli::DW_AT_name)?));
                let Some(name) = name else { return Ok(()) };
                partial.functions.push(NamedFunction { name, die, file: seen.file });
                return Ok(());
            }
            (None, None) => {
                if let (Some(name), false) = (text(store, index, seen)?, seen.declaration) {
                    partial.functions.push(NamedFunction { name, die, file: seen.file });
                }
                return Ok(());
            }
        };
        let target = store.target(Die(slot.start), origin);
        partial.crosses_units |= target.is_some_and(|(_, leaves)| leaves);
        partial.copies.extend(target.map(|(origin, _)| (origin, die)));
        return Ok(());
    }
    if seen.declaration {
        return Ok(());
    }
    if tag == gimli::DW_TAG_variable && !seen.located {
        return Ok(());
    }
    let name = match (seen.name, seen.specification) {
        (None, Some(_)) => {
            let chain = store.origins(die)?;
            chain.iter().find_map(|(_, unit, entry)| store.string(unit, entry.attr_value(gimli::DW_AT_name)?))
        }
        _ => text(store, index, seen)?,
    };
    let Some(name) = name else { return Ok(()) };
    match type_tag(tag) {
        Some(tag) => {
            partial.types.entry((tag, name.as_ptr() as usize)).or_insert((name, die));
        }
        None => partial.variables.push((name, die)),
    }
    Ok(())
}

/// The name; the unit need not be parsed as a whole where the form is an offset of a string.
fn text(store: &Store, index: usize, seen: &Seen) -> Result<Option<Text>, Damage> {
    Ok(match seen.name {
        Some(AttributeValue::DebugStrRef(offset)) => {
            store.sections(Die(store.slot(index)?.start)).string(offset).ok().map(|text| text.slice())
        }
        Some(AttributeValue::String(text)) => Some(text.slice()),
        Some(value) => {
            let unit: &Unit = store.unit(index)?;
            store.string(unit, value)
        }
        None => None,
    })
}

fn skip_children(raw: &mut gimli::EntriesRaw<Bytes>) -> gimli::Result<()> {
    let mut depth = 1usize;
    while depth > 0 && !raw.is_empty() {
        match raw.read_abbreviation()? {
            None => depth -= 1,
            Some(abbreviation) => {
                raw.skip_attributes(abbreviation.attributes())?;
                depth += usize::from(abbreviation.has_children());
            }
        }
    }
    Ok(())
}
