// SPDX-License-Identifier: GPL-2.0-or-later

//! Handlers of many sites that do the same are one routine: `probe module("nfs").function("*") { ... }` is compiled once.

use std::collections::HashMap;

use super::code::Routine;

/// Routines by what they do.
#[derive(Default)]
pub(super) struct Shared {
    known: HashMap<String, usize>,
    /// Of a routine: how many more do the same.
    more: HashMap<usize, usize>,
}

impl Shared {
    /// Adds the routine, unless one that does the same is there: gives its symbol.
    pub fn add(&mut self, routines: &mut Vec<Routine>, routine: Routine) -> String {
        let Routine { parameters, returns, longs, texts, buffers, iterators, frame, code, .. } = &routine;
        // Names of variables are part of it: they are spelled too.
        let does =
            format!("{parameters:?} {returns:?} {longs:?} {texts:?} {buffers:?} {iterators:?} {frame:?} {code:?}");
        let next = routines.len();
        let index = *self.known.entry(does).or_insert(next);
        if index == next {
            routines.push(routine);
        } else {
            *self.more.entry(index).or_default() += 1;
        }
        routines.get(index).map_or_else(String::new, |routine| routine.symbol.clone())
    }

    /// Says in the routines' comments for how many more sites they are.
    pub fn comment(self, routines: &mut [Routine]) {
        for (index, more) in self.more {
            if let Some(routine) = routines.get_mut(index) {
                routine.comment.push_str(&format!(", and {more} more"));
            }
        }
    }
}
