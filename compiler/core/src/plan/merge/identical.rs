// SPDX-License-Identifier: GPL-2.0-or-later

//! Merges equal routines.

use std::collections::HashMap;

use super::{Behaviour, count_other_sites};
use crate::plan::code::Routine;

/// Routines by their code.
#[derive(Default)]
pub(in crate::plan) struct IdenticalHandlers {
    /// Index of the routine with this behaviour.
    known: HashMap<Behaviour, usize>,
    /// By index of a routine: how many more behave the same.
    more: HashMap<usize, usize>,
}

impl IdenticalHandlers {
    /// Adds the routine, unless one with the same behaviour exists. Gives the symbol of the one to use.
    pub fn add(&mut self, routines: &mut Vec<Routine>, routine: Routine) -> String {
        use std::collections::hash_map::Entry;
        match self.known.entry(Behaviour::of(&routine)) {
            Entry::Vacant(entry) => {
                let symbol = routine.symbol.clone();
                entry.insert(routines.len());
                routines.push(routine);
                symbol
            }
            Entry::Occupied(entry) => {
                *self.more.entry(*entry.get()).or_default() += 1;
                routines[*entry.get()].symbol.clone()
            }
        }
    }

    /// Writes into the routines' comments how many other sites use them.
    pub fn comment(self, routines: &mut [Routine]) {
        for (index, more) in self.more {
            count_other_sites(&mut routines[index], more);
        }
    }
}
