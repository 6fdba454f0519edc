// SPDX-License-Identifier: GPL-2.0-or-later

//! Static variables of functions, by name. The index does not have them: they are looked for where no variable outside functions has
//! the name, and the symbol table shows that a function has one.

use gimli::AttributeValue;
use rayon::prelude::*;

use super::Dwarf;
use super::scope::{Declared, Scopes};
use super::store::{Bytes, Die, EntryError, Store};
use crate::facts::{FunctionId, Location, Op, Unavailable, path_fits};
use crate::source::VariableResult;

/// Functions that a message names.
const MOST_NAMED: usize = 4;

impl Dwarf {
    /// The static variable of that name of any function whose unit's path fits.
    pub(super) fn find_static_local(&self, name: &str, file: Option<&str>) -> Result<VariableResult, EntryError> {
        if !self.has_symbol_of_static_local(name) {
            return Ok(Err(Unavailable::Unknown));
        }
        let in_unit = |slot: usize| -> Result<Vec<Die>, EntryError> {
            if let Some(pattern) = file {
                let unit = self.store.unit(slot)?;
                let path = unit.name.as_ref().map(|name| String::from_utf8_lossy(name.slice()).into_owned());
                if !path.is_some_and(|path| path_fits(pattern, &path)) {
                    return Ok(Vec::new());
                }
            }
            variables_in(&self.store, slot, name.as_bytes())
        };
        let slots = (0..self.store.slots.len()).into_par_iter();
        // A damaged unit has variables that are not found.
        let mut found: Vec<Die> = slots.flat_map_iter(|slot| in_unit(slot).unwrap_or_default()).collect();
        found.sort_unstable();
        self.only_static(name, found)
    }

    /// The same of one function.
    pub(super) fn find_static_local_of(&self, id: FunctionId, name: &str) -> Result<VariableResult, EntryError> {
        let mut found = Vec::new();
        for copy in self.copies(id)? {
            for die in variables_in(&self.store, self.store.slot_of(copy)?, name.as_bytes())? {
                if self.instances.subprogram_around(&self.store, die)? == Some(copy) {
                    found.push(die);
                }
            }
        }
        self.only_static(name, found)
    }

    /// Of variables in functions the static one, if it is the only one.
    fn only_static(&self, name: &str, dies: Vec<Die>) -> Result<VariableResult, EntryError> {
        let scopes = Scopes { own: Vec::new(), inner: Vec::new(), subprogram: None, is_entry: false };
        let mut found: Vec<(Die, VariableResult)> = Vec::new();
        for die in dies {
            let origins = self.store.origins(die)?;
            let declared = Declared { name: name.to_string().into(), parameter: false, origins };
            let Ok(located) = self.locate(&declared, &scopes, 0)? else { continue };
            let Location::Memory(ops) = &located.location else { continue };
            let is_static = matches!(ops.as_slice(), [Op::Address(_)] | [.., Op::InThread]);
            let same = |other: &VariableResult| other.as_ref().is_ok_and(|other| other.location == located.location);
            if is_static && !found.iter().any(|(_, other)| same(other)) {
                found.push((die, Ok(located)));
            }
        }
        match found.len() {
            0 => Ok(Err(Unavailable::Unknown)),
            1 => Ok(found.pop().map_or(Err(Unavailable::Unknown), |(_, found)| found)),
            _ => Ok(Err(Unavailable::Unsupported(self.several(name, &found)?))),
        }
    }

    fn several(&self, name: &str, found: &[(Die, VariableResult)]) -> Result<String, EntryError> {
        let mut named = Vec::new();
        for (die, _) in found.iter().take(MOST_NAMED) {
            let (unit, _) = self.store.entry(*die)?;
            let file = unit.name.as_ref().map(|name| String::from_utf8_lossy(name.slice()).into_owned());
            let around = self.instances.subprogram_around(&self.store, *die)?;
            let function = match around {
                Some(around) => {
                    self.store.origins(around)?.iter().find_map(|(_, unit, entry)| self.store.name(unit, entry))
                }
                None => None,
            };
            named.push(format!("{} ({})", function.unwrap_or_default(), file.unwrap_or_default()));
        }
        if found.len() > MOST_NAMED {
            named.push(format!("{} more", found.len() - MOST_NAMED));
        }
        Ok(format!(
            "{} static variables of that name are in functions: {}; @var(\"{name}@FILE\") tells those of several files apart, and at a probe in the function it is that one's",
            found.len(),
            named.join(", ")
        ))
    }

    /// Whether a symbol is one of a static variable of a function: `name.0` by gcc, `function.name` by clang, and in C++
    /// `_ZZ...E4name`.
    fn has_symbol_of_static_local(&self, name: &str) -> bool {
        let mangled = format!("E{}{name}", name.len());
        let is_it = |symbol: &str| {
            let is_of_gcc = symbol.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
            is_of_gcc.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
                || symbol.strip_suffix(name).is_some_and(|before| before.ends_with('.'))
                || symbol.contains("_ZZ") && symbol.contains(&mangled)
        };
        self.elf.all_symbols().is_ok_and(|mut all| all.any(|symbol| !symbol.function && is_it(symbol.name)))
    }
}

/// The variables of that name in a unit, those outside functions included.
fn variables_in(store: &Store, slot: usize, wanted: &[u8]) -> Result<Vec<Die>, EntryError> {
    let (index, slot) = (slot, store.slot(slot)?);
    let header = store.header(slot)?;
    let abbreviations = store.abbreviations_of(slot, header)?;
    let failed = |error: gimli::Error| EntryError::at(Die(slot.start), error.to_string());
    let mut raw = header.entries_raw(&abbreviations, None).map_err(failed)?;
    let mut found = Vec::new();
    while !raw.is_empty() {
        let die = Die(slot.start.saturating_add(raw.next_offset().0 as u32));
        let Some(abbreviation) = raw.read_abbreviation().map_err(failed)? else { continue };
        let specs = abbreviation.attributes();
        let at = specs.iter().position(|spec| spec.name() == gimli::DW_AT_name);
        let at = at.filter(|_| abbreviation.tag() == gimli::DW_TAG_variable);
        let (before, from) = specs.split_at_checked(at.unwrap_or(specs.len())).unwrap_or_default();
        raw.skip_attributes(before).map_err(failed)?;
        let Some((spec, others)) = from.split_first() else { continue };
        let name = raw.read_attribute(*spec).map_err(failed)?.value();
        raw.skip_attributes(others).map_err(failed)?;
        if text(store, index, name)? == Some(wanted) {
            found.push(die);
        }
    }
    Ok(found)
}

/// A name; the unit need not be parsed as a whole where the form is an offset of a string.
fn text(store: &Store, slot: usize, name: AttributeValue<Bytes>) -> Result<Option<&'static [u8]>, EntryError> {
    Ok(match name {
        AttributeValue::String(text) => Some(text.slice()),
        AttributeValue::DebugStrRef(offset) => {
            store.sections(Die(store.slot(slot)?.start)).string(offset).ok().map(|text| text.slice())
        }
        name => store.string(store.unit(slot)?, name),
    })
}
