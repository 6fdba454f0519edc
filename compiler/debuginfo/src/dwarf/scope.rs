// SPDX-License-Identifier: GPL-2.0-or-later

//! Which variables are in scope at an address of a function: those of a body or an inlined instance of it, of the lexical
//! blocks around the address, and of calls inlined there.

use super::Dwarf;
use super::store::{Die, Entry, EntryError, Unit, die_at};
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

impl Dwarf {
    /// The scopes around an address of the function, innermost first; `None` if the function has no code there.
    pub(super) fn scopes(&self, id: FunctionId, at: u64) -> Result<Option<Scopes>, EntryError> {
        let mut best: Option<(bool, Die, bool)> = None;
        for die in self.copies(id)? {
            let (unit, entry) = self.store.entry(die)?;
            if !self.code_ranges(unit, &entry)?.iter().any(|range| range.contains(&at)) {
                continue;
            }
            let is_entry = self.body_entry(die)?.is_some_and(|entry| entry == at);
            if best.is_none_or(|(best, ..)| is_entry && !best) {
                best = Some((is_entry, die, true));
            }
        }
        // Where a body begins there is no better match, and its unit need not be searched.
        let instances = if best.is_some_and(|(begins, ..)| begins) { Vec::new() } else { self.instances_of(id)? };
        for die in instances {
            let (unit, entry) = self.store.entry(die)?;
            let begins = self.instance_address(die)?.and_then(|address| self.elf.flat(address)) == Some(at);
            let inside = begins || self.code_ranges(unit, &entry)?.iter().any(|range| range.contains(&at));
            if inside && best.is_none_or(|(best, ..)| begins && !best) {
                best = Some((begins, die, false));
            }
        }
        let Some((begins, root, is_body)) = best else {
            return Ok(None);
        };
        let mut scopes = Scopes { own: vec![root], inner: Vec::new(), subprogram: None, is_entry: begins && is_body };
        self.descend(id, root, at, &mut scopes)?;
        scopes.subprogram = if is_body { Some(root) } else { self.subprogram_around(root)? };
        Ok(Some(scopes))
    }

    fn body_entry(&self, die: Die) -> Result<Option<u64>, EntryError> {
        let body = self.body(die, "")?;
        Ok(body.and_then(|body| self.elf.flat(body.entry)))
    }

    /// Adds the blocks and inlined calls under `root` that contain the address.
    fn descend(&self, id: FunctionId, root: Die, at: u64, scopes: &mut Scopes) -> Result<(), EntryError> {
        let mut next = Some((root, false));
        for _ in 0..MAX_DEPTH {
            let Some((die, inlined)) = next.take() else {
                return Ok(());
            };
            let (unit, children) = self.children(die)?;
            for entry in &children {
                let call = entry.tag() == gimli::DW_TAG_inlined_subroutine;
                if !call && entry.tag() != gimli::DW_TAG_lexical_block {
                    continue;
                }
                if self.code_ranges(unit, entry)?.iter().any(|range| range.contains(&at)) {
                    let die = die_at(unit, entry.offset())?;
                    let inlined = inlined || call && !self.is_part(id, unit, entry)?;
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

    /// The top-level function that an entry is nested in.
    pub(super) fn subprogram_around(&self, inner: Die) -> Result<Option<Die>, EntryError> {
        let subprograms = self.instances.subprograms(&self.store, self.store.slot_of(inner)?)?;
        let before = subprograms.partition_point(|die| *die < inner);
        Ok(before.checked_sub(1).and_then(|at| subprograms.get(at)).copied())
    }

    /// Formal parameters and variables directly in a scope, with the entries that describe them, each entry's own
    /// attributes first.
    pub(super) fn variables_in(&self, scope: Die) -> Result<Vec<Declared<'_>>, EntryError> {
        let (unit, children) = self.children(scope)?;
        let mut variables = Vec::new();
        for entry in children {
            let parameter = entry.tag() == gimli::DW_TAG_formal_parameter;
            if !parameter && entry.tag() != gimli::DW_TAG_variable {
                continue;
            }
            let die = die_at(unit, entry.offset())?;
            let origins = self.store.origins(die)?;
            let name = origins.iter().find_map(|(_, unit, entry)| self.store.name(unit, entry));
            if let Some(name) = name {
                variables.push(Declared { name, parameter, origins });
            }
        }
        Ok(variables)
    }
}

/// A variable as a scope declares it.
pub(super) struct Declared<'s> {
    /// DW_AT_name.
    pub name: String,
    /// It is a parameter, not a local variable.
    pub parameter: bool,
    /// The entry itself, then its abstract origins, each with its unit.
    pub origins: Vec<(Die, &'s Unit, Entry)>,
}
