// SPDX-License-Identifier: GPL-2.0-or-later

//! Handlers that differ only in constants are one routine: `probe syscall.* { n[name]++ }` has 345 handlers that differ in
//! the call's name. They are compiled as one routine that gets the name from its probe.
//!
//! Takes the handlers one by one as they are planned. Gives the routines that remain and, for each probe, its routine and
//! its constants. A constant is a number, a string, the location that an error names, the format of a record, the
//! description of an object, or a table of what a record has in it: `probe module("nfs").function("*") { println($$vars$$)
//! }` has a routine for functions with as many objects and numbers, whatever they are and in which registers.

use std::collections::HashMap;

use super::constants::visit;
use super::{Behaviour, count_other_sites};
use crate::plan::code::{OwnConstant, Routine};

/// Below this number similar handlers are compiled separately, each with its own constants: that is faster to run.
const FEWEST: usize = 4;

/// The handler of a probe.
pub(in crate::plan) struct Run {
    /// Name in C of the routine.
    pub symbol: String,
    /// The number that its first own constant has among all of the probe.
    pub first: usize,
    /// Values of its constants for this probe.
    pub constants: Vec<OwnConstant>,
}

/// Handlers by behaviour, apart from their constants.
#[derive(Default)]
pub(in crate::plan) struct SimilarHandlers {
    groups: Vec<Group>,
    known: HashMap<Behaviour, usize>,
}

struct Group {
    /// Of each handler that was added: the number of its probe, and its constants in the order of the code.
    members: Vec<(usize, Vec<OwnConstant>)>,
    /// The first with each set of constants, as it would be compiled alone; [`FEWEST`] at most.
    routines: Vec<Routine>,
}

impl SimilarHandlers {
    /// Adds the handler of that probe.
    pub fn add(&mut self, probe: usize, routine: Routine) {
        let mut behaviour = Behaviour::of(&routine);
        let mut constants = Vec::new();
        visit(&mut behaviour.code, &mut |place| constants.push(place.take()));
        let next = self.groups.len();
        let index = *self.known.entry(behaviour).or_insert(next);
        if index == next {
            self.groups.push(Group { members: Vec::new(), routines: Vec::new() });
        }
        if let Some(group) = self.groups.get_mut(index) {
            // No more than these are compared: with tens of thousands of handlers each would be compared with all before it.
            if group.routines.len() < FEWEST && group.members.iter().all(|(_, known)| *known != constants) {
                group.routines.push(routine);
            }
            group.members.push((probe, constants));
        }
    }

    /// Adds the routines that remain, in the order of their first probes, and the handler of each probe, by its number.
    /// `taken`: how many constants a probe has already.
    pub fn finish(self, routines: &mut Vec<Routine>, taken: impl Fn(usize) -> usize) -> HashMap<usize, Run> {
        let mut runs = HashMap::new();
        for group in self.groups {
            let first = group.members.iter().map(|(probe, _)| taken(*probe)).max().unwrap_or(0);
            group.finish(routines, first, &mut runs);
        }
        runs
    }
}

impl Group {
    /// `first_constant`: the number of the first constant that differs between the probes.
    fn finish(self, routines: &mut Vec<Routine>, first_constant: usize, runs: &mut HashMap<usize, Run>) {
        let first = routines.len();
        if self.routines.len() < FEWEST {
            let mut sets: Vec<&Vec<OwnConstant>> = Vec::new();
            let mut counts = vec![0usize; self.routines.len()];
            routines.extend(self.routines);
            for (probe, constants) in &self.members {
                let index = sets.iter().position(|known| *known == constants).unwrap_or_else(|| {
                    sets.push(constants);
                    sets.len() - 1
                });
                counts[index] += 1;
                let symbol = routines.get(first + index).map_or_else(String::new, |routine| routine.symbol.clone());
                runs.insert(*probe, Run { symbol, first: 0, constants: Vec::new() });
            }
            for (routine, count) in routines[first..].iter_mut().zip(counts) {
                count_other_sites(routine, count.saturating_sub(1));
            }
            return;
        }
        let Some(mut routine) = self.routines.into_iter().next() else { return };
        let slots = Slots::of(&self.members);
        let mut number = 0;
        visit(&mut routine.code, &mut |place| {
            if let Some(slot) = slots.of_hole.get(number).copied().flatten() {
                place.put(first_constant as u32 + slot);
            }
            number += 1;
        });
        count_other_sites(&mut routine, self.members.len().saturating_sub(1));
        for (probe, constants) in self.members {
            let own = slots.holes.iter().filter_map(|&place| constants.get(place).cloned()).collect();
            runs.insert(probe, Run { symbol: routine.symbol.clone(), first: first_constant, constants: own });
        }
        routines.push(routine);
    }
}

/// Which of the code's constants differ between probes.
struct Slots {
    /// For each constant in the order of the code: its number among those that differ; None: the same for all.
    of_hole: Vec<Option<u32>>,
    /// For each of those that differ: the first constant of the code that is it.
    holes: Vec<usize>,
}

impl Slots {
    fn of(members: &[(usize, Vec<OwnConstant>)]) -> Slots {
        let count = members.first().map_or(0, |(_, constants)| constants.len());
        let mut slots = Slots { of_hole: Vec::with_capacity(count), holes: Vec::new() };
        let mut known: HashMap<Vec<&OwnConstant>, u32> = HashMap::new();
        for place in 0..count {
            let column: Vec<&OwnConstant> = members.iter().filter_map(|(_, constants)| constants.get(place)).collect();
            if column.windows(2).all(|pair| pair[0] == pair[1]) {
                slots.of_hole.push(None);
                continue;
            }
            let next = slots.holes.len() as u32;
            let slot = *known.entry(column).or_insert(next);
            if slot == next {
                slots.holes.push(place);
            }
            slots.of_hole.push(Some(slot));
        }
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::code::{Frame, Instr, LocationId, LongId, Operator, Value, Variable};

    fn handler(name: &str, number: i64, place: u32) -> Routine {
        let variable = Variable { name: "t0".into(), parameter: false };
        let sum = Value::binary(Operator::ADD, Value::Const(7), Value::Const(number));
        let code = vec![
            Instr::SetLong(LongId(0), sum),
            Instr::Divide {
                to: LongId(0),
                modulo: false,
                left: Value::Const(number),
                right: Value::Long(LongId(0)),
                location: LocationId(place),
            },
        ];
        Routine {
            symbol: name.into(),
            comment: name.into(),
            parameters: Vec::new(),
            returns: None,
            longs: vec![variable],
            texts: Vec::new(),
            buffers: Vec::new(),
            iterators: Vec::new(),
            frame: Frame::Handler,
            spilled: false,
            code,
        }
    }

    #[test]
    fn constants_that_differ_are_the_probes_own() {
        let mut similar = SimilarHandlers::default();
        for probe in 0..5 {
            similar.add(probe, handler(&format!("h{probe}"), 10 + probe as i64, 20 + probe as u32));
        }
        let mut routines = Vec::new();
        let runs = similar.finish(&mut routines, |_| 0);
        assert_eq!(routines.len(), 1);
        assert_eq!(routines[0].comment, "h0, and 4 more");
        // The number is used twice and stored once; 7 is the same for all.
        assert_eq!(runs[&3].constants, [OwnConstant::Long(13), OwnConstant::Long(23)]);
        assert_eq!(runs[&3].symbol, "h0");
        let sum = Value::binary(Operator::ADD, Value::Const(7), Value::Own(0));
        assert_eq!(routines[0].code[0], Instr::SetLong(LongId(0), sum));
        assert!(
            matches!(&routines[0].code[1], Instr::Divide { left: Value::Own(0), location, .. } if location.as_own() == Some(1))
        );
    }

    /// A probe's handler and its entry handler have different constants of their own.
    #[test]
    fn constants_come_after_those_that_a_probe_has() {
        let mut similar = SimilarHandlers::default();
        (0..5).for_each(|probe| similar.add(probe, handler("h", probe as i64, 5)));
        let mut routines = Vec::new();
        let runs = similar.finish(&mut routines, |probe| if probe == 2 { 3 } else { 1 });
        let sum = Value::binary(Operator::ADD, Value::Const(7), Value::Own(3));
        assert_eq!(routines[0].code[0], Instr::SetLong(LongId(0), sum));
        assert!(runs.values().all(|run| run.first == 3 && run.constants.len() == 1));
    }

    /// 60,000 probes took half a minute: each was compared with all others.
    #[test]
    fn a_great_many_are_no_more_than_that() {
        let mut similar = SimilarHandlers::default();
        (0..200_000).for_each(|probe| similar.add(probe, handler("h", probe as i64, 5)));
        assert_eq!(similar.groups.iter().map(|group| group.routines.len()).sum::<usize>(), FEWEST);
        let mut routines = Vec::new();
        assert_eq!(similar.finish(&mut routines, |_| 0)[&199_999].constants, [OwnConstant::Long(199_999)]);
        assert_eq!(routines.len(), 1);
    }

    #[test]
    fn few_keep_their_constants() {
        let mut similar = SimilarHandlers::default();
        for (probe, number) in [(0, 1), (1, 2), (2, 1)] {
            similar.add(probe, handler(&format!("h{probe}"), number, 5));
        }
        let mut routines = Vec::new();
        let runs = similar.finish(&mut routines, |_| 0);
        assert_eq!(
            routines.iter().map(|routine| routine.comment.as_str()).collect::<Vec<_>>(),
            ["h0, and 1 more", "h1"]
        );
        assert_eq!([&runs[&0].symbol, &runs[&1].symbol, &runs[&2].symbol], ["h0", "h1", "h0"]);
        assert!(runs.values().all(|run| run.constants.is_empty()));
    }
}
