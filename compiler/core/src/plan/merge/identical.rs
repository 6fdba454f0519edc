// SPDX-License-Identifier: GPL-2.0-or-later

//! Routines that are equal.

use std::collections::HashMap;

use super::{Behaviour, note_more};
use crate::plan::code::Routine;

/// Routines by what they do.
#[derive(Default)]
pub(in crate::plan) struct Identical {
    /// Index of the routine that does it.
    known: HashMap<Behaviour, usize>,
    /// By index of a routine: how many more do the same.
    more: HashMap<usize, usize>,
}

impl Identical {
    /// Adds the routine, unless one that does the same is there. Gives the symbol of the one that is there then.
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

    /// Says in the routines' comments for how many more sites they are.
    pub fn comment(self, routines: &mut [Routine]) {
        for (index, more) in self.more {
            note_more(&mut routines[index], more);
        }
    }
}
