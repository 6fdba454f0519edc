// SPDX-License-Identifier: GPL-2.0-or-later

//! Types of one unit: what its code means by a name that other units have for another type. The index has the first one of
//! all units.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use gimli::AttributeValue;

use super::Dwarf;
use super::entry::{Entries, Entry};
use super::index::{is_in, split};
use super::scan;
use super::store::{Die, EntryError, Store, Unit, die_at, flag};
use crate::facts::{FunctionId, TypeTag};

/// What was asked: unit, kind and name, with the definition.
#[derive(Default)]
pub(super) struct UnitTypes(Mutex<HashMap<(usize, TypeTag, String), Option<Die>>>);

impl Dwarf {
    /// The definition of the type in the function's unit, or in one that it imports.
    pub(super) fn find_type_of_unit(
        &self,
        id: FunctionId,
        tag: TypeTag,
        name: &str,
    ) -> Result<Option<Die>, EntryError> {
        let slot = self.store.slot_of(id.die())?;
        let key = (slot, tag, name.to_string());
        let known = || self.unit_types.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&key) {
            return Ok(*found);
        }
        let (scope, last) = split(name.as_bytes());
        let mut search = Search { store: &self.store, tag, scope, last, searched: HashSet::new(), found: None };
        search.unit(slot)?;
        search.signed(slot)?;
        let found = search.found;
        known().insert(key, found);
        Ok(found)
    }
}

struct Search<'s> {
    store: &'s Store,
    tag: TypeTag,
    /// The end of the namespaces and types around it, as far as given.
    scope: Option<&'s str>,
    last: &'s [u8],
    /// Units that were begun.
    searched: HashSet<usize>,
    found: Option<Die>,
}

impl Search<'_> {
    fn unit(&mut self, slot: usize) -> Result<(), EntryError> {
        let mut slots = vec![slot];
        while let Some(slot) = slots.pop().filter(|_| self.found.is_none()) {
            if !self.searched.insert(slot) {
                continue;
            }
            let unit = self.store.unit(slot)?;
            let Some(root) = Entries::of(unit)?.next()? else { continue };
            let nests = scan::nests(&root);
            let mut around = vec![root];
            for _ in 0..=scan::MOST_SCOPES {
                let mut inner = Vec::new();
                for entry in &around {
                    entry.each_child(unit, |child| self.see(unit, child, nests, &mut inner, &mut slots))?;
                }
                if inner.is_empty() || self.found.is_some() {
                    break;
                }
                around = inner;
            }
        }
        Ok(())
    }

    /// Types in units of their own that the unit refers to by their signatures, also by way of others.
    fn signed(&mut self, slot: usize) -> Result<(), EntryError> {
        let mut seen = HashSet::new();
        let mut slots = vec![slot];
        while let Some(slot) = slots.pop().filter(|_| self.found.is_none() && self.store.has_type_units()) {
            let unit = self.store.unit(slot)?;
            let mut entries = Entries::of(unit)?;
            while let Some(entry) = entries.next()? {
                for name in [gimli::DW_AT_type, gimli::DW_AT_signature, gimli::DW_AT_containing_type] {
                    let value = entry.attr_value(name);
                    let Some(value @ AttributeValue::DebugTypesRef(_)) = value else { continue };
                    let Some(die) = self.store.reference(unit, value)?.filter(|die| seen.insert(*die)) else {
                        continue;
                    };
                    let (own, entry) = self.store.entry(die)?;
                    if scan::type_tag(entry.tag()) == Some(self.tag) && self.is_wanted(own, &entry)? {
                        self.found = Some(die);
                        return Ok(());
                    }
                    slots.push(self.store.slot_of(die)?);
                }
            }
        }
        Ok(())
    }

    /// Looks at an entry. `inner`: those in which there are more types, `slots`: units that are imported.
    fn see(
        &mut self,
        unit: &Unit,
        entry: Entry,
        nests: bool,
        inner: &mut Vec<Entry>,
        slots: &mut Vec<usize>,
    ) -> Result<(), EntryError> {
        if self.found.is_some() {
            return Ok(());
        }
        if entry.tag() == gimli::DW_TAG_imported_unit {
            let imported = self.store.reference_attr(unit, &entry, gimli::DW_AT_import)?;
            slots.extend(imported.map(|die| self.store.slot_of(die)).transpose()?);
        } else if scan::type_tag(entry.tag()) == Some(self.tag) && self.is_wanted(unit, &entry)? {
            self.found = Some(die_at(unit, entry.offset())?);
        } else if nests && scan::has_names(entry.tag()) {
            inner.push(entry);
        }
        Ok(())
    }

    fn is_wanted(&self, unit: &Unit, entry: &Entry) -> Result<bool, EntryError> {
        let name = entry.attr_value(gimli::DW_AT_name).and_then(|value| self.store.string(unit, value));
        if name != Some(self.last) || flag(entry, gimli::DW_AT_declaration) {
            return Ok(false);
        }
        let Some(wanted) = self.scope else { return Ok(true) };
        let scope = scan::scope_around(self.store, die_at(unit, entry.offset())?)?;
        Ok(scope.is_some_and(|scope| is_in(Some(wanted), scope.as_bytes())))
    }
}
