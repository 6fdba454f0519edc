// SPDX-License-Identifier: GPL-2.0-or-later

//! Which variables are in scope at an address of a function: those of a body or an inlined instance of it, of the lexical
//! blocks around the address, and of calls inlined there.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Dwarf;
use super::quick::Quick;
use super::store::{Die, Entry, EntryError, Origins, die_at, flag};
use crate::Address;
use crate::facts::FunctionId;

/// Nesting of blocks and inlined calls; deeper is damage.
const MAX_DEPTH: usize = 128;

/// The entries that surround an address, outermost first.
pub(super) struct Scopes {
    /// The body or inlined instance of the function itself, its lexical blocks, and parts of it that were split off and put back.
    pub own: Vec<Die>,
    /// Calls inlined there, with their blocks.
    pub inner: Vec<Die>,
    /// The body that the code is in: has the frame base.
    pub subprogram: Option<Die>,
    /// The address is the first of the function's own body.
    pub is_entry: bool,
}

/// What begins at an address.
type ByStart = Arc<HashMap<u64, Die, foldhash::fast::RandomState>>;

/// Where the copies and the inlined instances of functions begin, read once for each function: there can be any number of them,
/// and each is asked for.
#[derive(Default)]
pub(super) struct Starts(Mutex<HashMap<(Die, bool), ByStart, Quick>>);

impl Starts {
    /// Those of one function: its copies, or its inlined instances. Of several that begin at one address, the first.
    fn of(
        &self,
        function: Die,
        copies: bool,
        read: impl FnOnce() -> Result<Vec<(Option<u64>, Die)>, EntryError>,
    ) -> Result<ByStart, EntryError> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(starts) = known().get(&(function, copies)) {
            return Ok(starts.clone());
        }
        let mut starts = HashMap::default();
        for (start, die) in read()? {
            if let Some(start) = start {
                starts.entry(start).or_insert(die);
            }
        }
        let starts = Arc::new(starts);
        known().insert((function, copies), starts.clone());
        Ok(starts)
    }
}

impl Dwarf {
    /// The scopes around an address of the function, innermost first; `None` if the function has no code there.
    pub(super) fn scopes(&self, id: FunctionId, at: u64) -> Result<Option<Scopes>, EntryError> {
        let Some((begins, root, is_body)) = self.outermost(id, at)? else {
            return Ok(None);
        };
        let mut scopes = Scopes { own: vec![root], inner: Vec::new(), subprogram: None, is_entry: begins && is_body };
        self.descend(id, root, at, begins, &mut scopes)?;
        scopes.subprogram = if is_body { Some(root) } else { self.subprogram_around(root)? };
        Ok(Some(scopes))
    }

    /// The copy of the function, or else the inlined instance of it, that begins at the address, or else contains it: whether it
    /// begins there, and whether it is a copy.
    fn outermost(&self, id: FunctionId, at: u64) -> Result<Option<(bool, Die, bool)>, EntryError> {
        if let Some((die, is_body)) = self.starting(id, at)? {
            return Ok(Some((true, die, is_body)));
        }
        let contains = |die: Die| -> Result<bool, EntryError> {
            let (unit, entry) = self.store.entry(die)?;
            Ok(self.code_ranges(unit, &entry)?.iter().any(|range| range.contains(&at)))
        };
        for die in self.copies(id)? {
            if contains(die)? {
                return Ok(Some((false, die, true)));
            }
        }
        for die in self.instances_of(id)? {
            if contains(die)? {
                return Ok(Some((false, die, false)));
            }
        }
        Ok(None)
    }

    /// The first copy of the function that begins at the address, or else the first inlined instance. Where a copy begins its
    /// unit need not be searched for instances.
    fn starting(&self, id: FunctionId, at: u64) -> Result<Option<(Die, bool)>, EntryError> {
        let bodies = self.starts.of(id.die(), true, || {
            self.copies(id)?.into_iter().map(|die| Ok((self.body_entry(die)?, die))).collect()
        })?;
        if let Some(die) = bodies.get(&at) {
            return Ok(Some((*die, true)));
        }
        Ok(self.instance_starts(id)?.get(&at).map(|die| (*die, false)))
    }

    /// The inlined instances of the function by where they begin.
    pub(super) fn instance_starts(&self, id: FunctionId) -> Result<ByStart, EntryError> {
        self.starts.of(id.die(), false, || {
            let flat = |address: Option<Address>| address.and_then(|address| self.elf.flat(address));
            self.instances_of(id)?.into_iter().map(|die| Ok((flat(self.instance_address(die)?), die))).collect()
        })
    }

    /// Where a copy begins.
    pub(super) fn body_entry(&self, die: Die) -> Result<Option<u64>, EntryError> {
        let body = self.body(die, "")?;
        Ok(body.and_then(|body| self.elf.flat(body.entry)))
    }

    /// Adds the blocks and inlined calls under `root` that contain the address. Where the function is inlined into itself, the
    /// variables are those of the innermost call, but for the place where `root` begins.
    fn descend(&self, id: FunctionId, root: Die, at: u64, begins: bool, scopes: &mut Scopes) -> Result<(), EntryError> {
        let mut next = Some((root, false));
        for _ in 0..MAX_DEPTH {
            let Some((die, inlined)) = next.take() else {
                return Ok(());
            };
            let (unit, children) = self.children(die)?;
            for entry in children.iter() {
                let call = entry.tag() == gimli::DW_TAG_inlined_subroutine;
                if !call && entry.tag() != gimli::DW_TAG_lexical_block {
                    continue;
                }
                if self.code_ranges(unit, entry)?.iter().any(|range| range.contains(&at)) {
                    let die = die_at(unit, entry.offset())?;
                    let is_part = self.is_part(id, unit, entry)?;
                    let origin = self.store.reference_attr(unit, entry, gimli::DW_AT_abstract_origin)?;
                    let recursive = call && !is_part && !begins && origin == Some(id.die());
                    if recursive {
                        scopes.own.clear();
                        scopes.inner.clear();
                    }
                    let inlined = !recursive && (inlined || call && !is_part);
                    if inlined {
                        scopes.inner.push(die);
                    } else {
                        scopes.own.push(die);
                    }
                    next = Some((die, inlined));
                    break;
                }
            }
        }
        Ok(())
    }

    /// The function whose call is inlined innermost at an address of another one; that one where none is.
    pub(super) fn innermost(&self, id: FunctionId, at: u64) -> Result<FunctionId, EntryError> {
        let Some(scopes) = self.scopes(id, at)? else { return Ok(id) };
        for die in scopes.inner.iter().rev() {
            let (unit, entry) = self.store.entry(*die)?;
            if entry.tag() == gimli::DW_TAG_inlined_subroutine {
                let origin = self.store.reference_attr(unit, &entry, gimli::DW_AT_abstract_origin)?;
                return Ok(origin.map_or(Ok(None), |origin| self.definition_of(origin))?.unwrap_or(id));
            }
        }
        Ok(id)
    }

    /// The innermost function that an entry is in.
    pub(super) fn subprogram_around(&self, inner: Die) -> Result<Option<Die>, EntryError> {
        self.instances.subprogram_around(&self.store, inner)
    }

    /// Formal parameters and variables directly in a scope, with the entries that describe them, each entry's own
    /// attributes first.
    pub(super) fn variables_in(&self, scope: Die) -> Result<Vec<Declared<'_>>, EntryError> {
        let (unit, children) = self.children(scope)?;
        let is_parameter = |entry: &Entry| entry.tag() == gimli::DW_TAG_formal_parameter;
        let declares = |entry: &&Entry| is_parameter(entry) || entry.tag() == gimli::DW_TAG_variable;
        let mut variables = Vec::with_capacity(children.iter().filter(declares).count());
        for entry in children.iter().filter(declares) {
            let parameter = is_parameter(entry);
            let origins = self.store.origins_of(die_at(unit, entry.offset())?, unit, entry.clone())?;
            let name = origins.iter().find_map(|(_, unit, entry)| self.store.name_in_place(unit, entry));
            if let Some(name) = name {
                variables.push(Declared { name, parameter, origins });
            }
        }
        Ok(variables)
    }
}

impl Declared<'_> {
    /// It is defined outside of the function: `extern int x;`.
    pub fn is_elsewhere(&self) -> bool {
        let has = |name| self.origins.iter().any(|(.., entry)| entry.attr_value(name).is_some());
        self.origins.iter().any(|(.., entry)| flag(entry, gimli::DW_AT_declaration))
            && !has(gimli::DW_AT_location)
            && !has(gimli::DW_AT_const_value)
    }
}

/// A variable as a scope declares it.
pub(super) struct Declared<'s> {
    /// DW_AT_name.
    pub name: Cow<'static, str>,
    /// It is a parameter, not a local variable.
    pub parameter: bool,
    /// The entry itself, then its abstract origins, each with its unit.
    pub origins: Origins<'s>,
}
