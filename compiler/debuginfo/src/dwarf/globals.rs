// SPDX-License-Identifier: GPL-2.0-or-later

//! Variables outside functions, by name, and the values of enumerators.

use super::Dwarf;
use super::entry::Entries;
use super::scan;
use super::scope::{Declared, Scopes};
use super::store::{Die, EntryError, constant, die_at, flag};
use crate::error::Error;
use crate::facts::{Unavailable, path_fits};
use crate::object::demangle::{demangled, scope_fits, split_scope};
use crate::source::{GlobalPattern, VariableResult};

/// Classes that are searched for a static member.
const MOST_BASES: usize = 64;

impl Dwarf {
    /// The variable that matches; an external one comes before a static one, and that before a static one of a function.
    pub(super) fn find_global(
        &self,
        GlobalPattern { name, file, external }: GlobalPattern,
    ) -> Result<VariableResult, Error> {
        let found = self.find_named_global(name, file, external).map_err(|damage| self.failed(damage))?;
        if found != Err(Unavailable::Unknown) {
            return Ok(found);
        }
        // As linkers know a variable of C++ or Rust.
        if let Some(qualified) = demangled(name) {
            return self.find_global(GlobalPattern { name: &format!("::{qualified}"), file, external });
        }
        let of_function = || self.find_static_local(name, file).map_err(|damage| self.failed(damage));
        if let Some(file) = file {
            // The file may only declare it: `jiffies` of kernel/time/timer.c, which the linker defines.
            return match self.is_declared_in(name, file).map_err(|damage| self.failed(damage))? {
                true => self.find_global(GlobalPattern { name, file: None, external: true }),
                false if external => Ok(found),
                false => of_function(),
            };
        }
        // A name that the linker gave a variable besides its own (`jiffies = jiffies_64;` in vmlinux.lds.S).
        for other in self.same_place(name)? {
            let found = self.find_named_global(&other, None, external).map_err(|damage| self.failed(damage))?;
            if found != Err(Unavailable::Unknown) {
                return Ok(found);
            }
        }
        if external { Ok(Err(Unavailable::Unknown)) } else { of_function() }
    }

    /// The other names of the symbol's address; empty for a function.
    fn same_place(&self, name: &str) -> Result<Vec<String>, Error> {
        let Some(symbol) = self.elf.symbols_named(name)?.next().filter(|symbol| !symbol.function) else {
            return Ok(Vec::new());
        };
        let there = self.elf.symbols_before(symbol.at)?.take_while(|other| other.at == symbol.at);
        Ok(there.map(|other| other.name.to_string()).filter(|other| other != name).collect())
    }

    /// Whether a unit whose path fits has a variable of that name outside functions, be it without a place.
    fn is_declared_in(&self, name: &str, file: &str) -> Result<bool, EntryError> {
        for slot in 0..self.store.slots.len() {
            let unit = self.store.unit(slot)?;
            let path = unit.name.as_ref().map(|name| String::from_utf8_lossy(name.slice()).into_owned());
            if !path.is_some_and(|path| path_fits(file, &path)) {
                continue;
            }
            let mut found = false;
            let Some(root) = Entries::of(unit)?.next()? else { continue };
            root.each_child(unit, |entry| -> gimli::Result<()> {
                let is_named = |value| self.store.string(unit, value) == Some(name.as_bytes());
                found |=
                    entry.tag() == gimli::DW_TAG_variable && entry.attr_value(gimli::DW_AT_name).is_some_and(is_named);
                Ok(())
            })?;
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `only`: no static variable.
    fn find_named_global(&self, name: &str, file: Option<&str>, only: bool) -> Result<VariableResult, EntryError> {
        let mut best: Option<(bool, Die)> = None;
        for die in self.try_index()?.variables_named(name.as_bytes()) {
            let (unit, entry) = self.store.entry(die)?;
            if let Some(pattern) = file {
                let path = unit.name.as_ref().map(|name| String::from_utf8_lossy(name.slice()).into_owned());
                if !path.is_some_and(|path| path_fits(pattern, &path)) {
                    continue;
                }
            }
            if flag(&entry, gimli::DW_AT_declaration) || !self.has_place(die)? {
                continue;
            }
            let external = self.store.origins(die)?.iter().any(|(_, _, entry)| flag(entry, gimli::DW_AT_external));
            if (external || !only) && best.is_none_or(|(before, _)| external && !before) {
                best = Some((external, die));
            }
        }
        let Some((_, die)) = best else { return Ok(Err(Unavailable::Unknown)) };
        let origins = self.store.origins(die)?;
        let scopes = Scopes { own: Vec::new(), inner: Vec::new(), subprogram: None, is_entry: false };
        self.locate(&Declared { name: name.to_string().into(), parameter: false, origins }, &scopes, 0)
    }

    /// Paths of the units with a static variable of that name, in order; none where one is external.
    pub(super) fn find_units_of_static(&self, name: &str) -> Result<Vec<String>, EntryError> {
        let mut paths = Vec::new();
        for die in self.try_index()?.variables_named(name.as_bytes()) {
            let (unit, entry) = self.store.entry(die)?;
            if flag(&entry, gimli::DW_AT_declaration) || !self.has_place(die)? {
                continue;
            }
            if self.store.origins(die)?.iter().any(|(_, _, entry)| flag(entry, gimli::DW_AT_external)) {
                return Ok(Vec::new());
            }
            paths.extend(unit.name.as_ref().map(|name| String::from_utf8_lossy(name.slice()).into_owned()));
        }
        Ok(paths)
    }

    fn has_place(&self, die: Die) -> Result<bool, EntryError> {
        let origins = self.store.origins(die)?;
        let placed = |attribute| origins.iter().any(|(_, _, entry)| entry.attr_value(attribute).is_some());
        Ok(placed(gimli::DW_AT_location) || placed(gimli::DW_AT_const_value))
    }

    /// The value of the enumerator of that name, in whichever enumeration it is.
    pub(super) fn find_enumerator(&self, name: &str) -> Result<Option<i64>, EntryError> {
        if let Some((scope, last)) = split_scope(name) {
            return self.find_scoped_enumerator(scope, last);
        }
        for slot in 0..self.store.slots.len() {
            let found = self.find_enumerator_in(slot, name)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// That of an enumeration, or of one in a namespace or type: `Color::RED`, `ns::RED`.
    fn find_scoped_enumerator(&self, scope: &str, name: &str) -> Result<Option<i64>, EntryError> {
        for (qualified, die) in self.try_index()?.enumerations() {
            let around = split_scope(&qualified).map_or("", |(around, _)| around);
            if !scope_fits(scope, &qualified) && !scope_fits(scope, around) {
                continue;
            }
            let (unit, children) = self.children(die)?;
            for entry in children.iter().filter(|entry| entry.tag() == gimli::DW_TAG_enumerator) {
                if self.store.name(unit, entry).as_deref() == Some(name)
                    && let Some(value) = entry.attr_value(gimli::DW_AT_const_value)
                {
                    return Ok(constant(&value));
                }
            }
        }
        Ok(None)
    }

    /// A static member of a class, or of one of its bases.
    pub(super) fn find_static_member(&self, class: Die, name: &str) -> Result<VariableResult, EntryError> {
        let mut classes = vec![class];
        let mut seen = 0;
        while let Some(class) = classes.pop() {
            seen += 1;
            if seen > MOST_BASES {
                break;
            }
            // The type itself may be in a unit of its own.
            let (unit, entry) = self.unrestricted(class)?;
            let class = die_at(unit, entry.offset())?;
            if let (Some(scope), Some(own)) = (scan::scope_around(&self.store, class)?, self.store.name(unit, &entry)) {
                let around = if scope.is_empty() { own } else { format!("{scope}::{own}") };
                let found = self.find_named_global(&format!("::{around}::{name}"), None, false)?;
                if found != Err(Unavailable::Unknown) {
                    return Ok(found);
                }
            }
            let (unit, children) = self.children(class)?;
            for base in children.iter().filter(|entry| entry.tag() == gimli::DW_TAG_inheritance) {
                classes.extend(self.store.reference_attr(unit, base, gimli::DW_AT_type)?);
            }
        }
        Ok(Err(Unavailable::Unknown))
    }

    /// The same of one unit.
    pub(super) fn find_enumerator_in(&self, slot: usize, name: &str) -> Result<Option<i64>, EntryError> {
        let unit = self.store.unit(slot)?;
        let mut entries = Entries::of(unit)?;
        while let Some(entry) = entries.next()? {
            if entry.tag() != gimli::DW_TAG_enumerator {
                continue;
            }
            let Some(value) = entry.attr_value(gimli::DW_AT_name) else { continue };
            if self.store.string(unit, value) == Some(name.as_bytes())
                && let Some(value) = entry.attr_value(gimli::DW_AT_const_value)
            {
                return Ok(constant(&value));
            }
        }
        Ok(None)
    }
}
