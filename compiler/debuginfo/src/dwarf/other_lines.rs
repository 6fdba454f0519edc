// SPDX-License-Identifier: GPL-2.0-or-later

//! Where a variable that has no value at an address does have one: the lines on which a statement probe can be placed.

use std::collections::BTreeMap;

use super::Dwarf;
use super::store::EntryError;
use crate::facts::{FunctionId, OtherLines};
use crate::object::Address;

impl Dwarf {
    /// Where else in the function the variable has a value, for a message; empty if nothing is known.
    pub(super) fn find_other_lines(&self, id: FunctionId, at: Address, name: &str) -> Result<OtherLines, EntryError> {
        let Some(here) = self.elf.flat(at) else { return Ok(OtherLines::default()) };
        let Some(root) = self.scopes(id, here)?.and_then(|scopes| scopes.own.first().copied()) else {
            return Ok(OtherLines::default());
        };
        let file = self.read_function(id)?.file;
        let mut first: BTreeMap<u32, u64> = BTreeMap::new();
        let mut line = None;
        for statement in self.statements_of(root)? {
            let Some(address) = self.elf.flat(statement.address).filter(|_| statement.file == file) else { continue };
            if address == here {
                line = Some(statement.line);
            }
            let lowest = first.entry(statement.line).or_insert(address);
            *lowest = (*lowest).min(address);
        }
        let lines = first.into_iter().map(|(line, address)| Ok((line, self.has_value(id, address, name)?)));
        Ok(OtherLines { line, lines: lines.collect::<Result<_, EntryError>>()? })
    }

    fn has_value(&self, id: FunctionId, at: u64, name: &str) -> Result<bool, EntryError> {
        let Some(address) = self.elf.address(at) else { return Ok(false) };
        Ok(self.find_local(id, address, name)?.is_some_and(|found| found.is_ok()))
    }
}
