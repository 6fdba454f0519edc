// SPDX-License-Identifier: GPL-2.0-or-later

//! Decides only whether a pattern matches: an ordinary deterministic automaton (subset construction, then minimised,
//! see [`smallest`]).
//!
//! Searches for a match that starts anywhere, and stops at the first byte that completes one.

use std::collections::HashMap;

use super::budget::{Budget, MAX_TRANSITIONS};
use super::error::ErrorKind;
use super::nfa::{Nfa, Step, StepId};
use super::set::Classes;

/// States are numbers; `next[state * classes + class]`. State [`DEAD`] cannot match any more, [`MATCHED`] has matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    /// The equivalence classes of bytes.
    pub classes: Classes,
    /// `[state * classes + class]`: the state after a byte.
    pub next: Vec<u16>,
    /// By state: a string that ends here matches.
    pub at_end: Vec<bool>,
    /// The initial state.
    pub start: u16,
}

/// The state in which a match is no longer possible.
pub const DEAD: u16 = 0;
/// The state in which the string has matched, whatever follows.
pub const MATCHED: u16 = 1;

/// Builds the deterministic automaton that only says whether a string matches. Error: it would be too large.
pub fn build(nfa: &Nfa) -> Result<Plain, ErrorKind> {
    let classes = Classes::new(nfa.byte_sets());
    let mut budget = Budget::default();
    let mut states =
        States { nfa, ids: HashMap::new(), sets: Vec::new(), at_end: Vec::new(), seen: vec![0; nfa.len()], pass: 0 };
    // DEAD and MATCHED.
    states.sets.extend([Vec::new(), Vec::new()]);
    states.at_end.extend([false, true]);
    states.ids.insert((Vec::new(), false), DEAD);
    let start = states.state(&[], true, &mut budget)?;
    let mut next = vec![DEAD; classes.count()];
    next.resize(2 * classes.count(), MATCHED);
    let mut number = 2;
    while number < states.sets.len() {
        let from = states.sets[number].clone();
        for &sample in &classes.samples {
            budget.spend(from.len())?;
            let targets: Vec<StepId> = from
                .iter()
                .filter_map(|&step| match nfa.step(step) {
                    Step::Bytes(set, target) if set.contains(sample) => Some(target),
                    _ => None,
                })
                .collect();
            next.push(states.state(&targets, false, &mut budget)?);
            if next.len() > MAX_TRANSITIONS {
                return Err(ErrorKind::TooLarge);
            }
        }
        number += 1;
    }
    Ok(Plain { classes, next, at_end: states.at_end, start })
}

struct States<'n> {
    nfa: &'n Nfa,
    ids: HashMap<(Vec<StepId>, bool), u16>,
    /// The steps that consume bytes, ascending.
    sets: Vec<Vec<StepId>>,
    at_end: Vec<bool>,
    /// By step: the last pass that visited it.
    seen: Vec<u32>,
    pass: u32,
}

impl States<'_> {
    /// The state after these steps; a match may also start here.
    fn state(&mut self, targets: &[StepId], at_start: bool, budget: &mut Budget) -> Result<u16, ErrorKind> {
        let (set, accepts) = self.closure(targets, at_start, false, budget)?;
        if accepts {
            return Ok(MATCHED);
        }
        let at_end = self.nfa.has_end && self.closure(targets, at_start, true, budget)?.1;
        if let Some(&id) = self.ids.get(&(set.clone(), at_end)) {
            return Ok(id);
        }
        let id = u16::try_from(self.sets.len()).map_err(|_| ErrorKind::TooLarge)?;
        self.sets.push(set.clone());
        self.at_end.push(at_end);
        self.ids.insert((set, at_end), id);
        Ok(id)
    }

    /// Steps that consume a byte, reachable from these without one, and whether the end of the pattern is.
    fn closure(
        &mut self,
        targets: &[StepId],
        at_start: bool,
        at_end: bool,
        budget: &mut Budget,
    ) -> Result<(Vec<StepId>, bool), ErrorKind> {
        self.pass += 1;
        let mut stack = targets.to_vec();
        stack.push(self.nfa.first);
        let mut set = Vec::new();
        let mut accepts = false;
        while let Some(step) = stack.pop() {
            budget.spend(1)?;
            if std::mem::replace(&mut self.seen[step.index()], self.pass) == self.pass {
                continue;
            }
            match self.nfa.step(step) {
                Step::Bytes(..) => set.push(step),
                Step::Split(first, second) => stack.extend([first, second]),
                Step::Mark(_, next) | Step::Tag(_, next) | Step::Clear(_, _, next) => stack.push(next),
                Step::Start(next) if at_start => stack.push(next),
                Step::End(next) if at_end => stack.push(next),
                Step::Start(_) | Step::End(_) => {}
                Step::Accept => accepts = true,
            }
        }
        set.sort_unstable();
        Ok((set, accepts))
    }
}
