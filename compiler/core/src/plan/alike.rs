// SPDX-License-Identifier: GPL-2.0-or-later

//! Handlers that do the same with other constants are one routine: `probe syscall.* { n[name]++ }` has 345 handlers that
//! differ in the call's name, and is compiled as one that finds the name with its probe.
//!
//! Takes the handlers as they are planned one by one, gives the routines that remain and, for each probe, which of them
//! it runs and the constants of its own. A constant is a number, a text, or the place that an error names.

use std::collections::HashMap;
use std::fmt::Write;

use crate::program::Constant;

use super::code::{Argument, Instr, Key, LocationId, MapOp, Part, Routine, Text, Value};

/// So many handlers have to be alike: fewer are better compiled each with its constants in it.
const FEWEST: usize = 4;

/// What a probe runs.
pub(super) struct Run {
    pub symbol: String,
    pub constants: Vec<Constant>,
}

/// Handlers by what they do.
#[derive(Default)]
pub(super) struct Alike {
    groups: Vec<Group>,
    known: HashMap<String, usize>,
}

struct Group {
    /// Of each handler that was added: the number of its probe, and its constants in the order of the code.
    members: Vec<(usize, Vec<Constant>)>,
    /// The first with each set of constants, as it would be compiled alone.
    routines: Vec<Routine>,
}

impl Alike {
    /// Adds the handler of that probe.
    pub fn add(&mut self, probe: usize, routine: Routine) {
        let mut blank = routine.code.clone();
        let mut constants = Vec::new();
        visit(&mut blank, &mut |hole| constants.push(hole.take()));
        let Routine { parameters, returns, longs, texts, buffers, iterators, frame, .. } = &routine;
        let mut does = String::new();
        // Names of variables are part of it: they are spelled too. Writing to a String does not fail.
        let _ = write!(
            does,
            "{parameters:?} {returns:?} {longs:?} {texts:?} {buffers:?} {iterators:?} {frame:?} {blank:?}"
        );
        let next = self.groups.len();
        let index = *self.known.entry(does).or_insert(next);
        if index == next {
            self.groups.push(Group { members: Vec::new(), routines: Vec::new() });
        }
        if let Some(group) = self.groups.get_mut(index) {
            if group.members.iter().all(|(_, known)| *known != constants) {
                group.routines.push(routine);
            }
            group.members.push((probe, constants));
        }
    }

    /// Adds the routines that remain, in the order of their first probes; what each probe runs, by its number.
    pub fn finish(self, routines: &mut Vec<Routine>) -> HashMap<usize, Run> {
        let mut runs = HashMap::new();
        for group in self.groups {
            group.finish(routines, &mut runs);
        }
        runs
    }
}

impl Group {
    fn finish(self, routines: &mut Vec<Routine>, runs: &mut HashMap<usize, Run>) {
        let first = routines.len();
        if self.routines.len() < FEWEST {
            let mut sets: Vec<&Vec<Constant>> = Vec::new();
            let mut counts = vec![0; self.routines.len()];
            routines.extend(self.routines);
            for (probe, constants) in &self.members {
                let index = sets.iter().position(|known| *known == constants).unwrap_or_else(|| {
                    sets.push(constants);
                    sets.len() - 1
                });
                counts[index] += 1;
                let symbol = routines.get(first + index).map_or_else(String::new, |routine| routine.symbol.clone());
                runs.insert(*probe, Run { symbol, constants: Vec::new() });
            }
            for (routine, count) in routines[first..].iter_mut().zip(counts) {
                comment(routine, count);
            }
            return;
        }
        let Some(mut routine) = self.routines.into_iter().next() else { return };
        let slots = Slots::of(&self.members);
        let mut number = 0;
        visit(&mut routine.code, &mut |hole| {
            if let Some(slot) = slots.of_hole.get(number).copied().flatten() {
                hole.put(slot);
            }
            number += 1;
        });
        comment(&mut routine, self.members.len());
        for (probe, constants) in self.members {
            let own = slots.holes.iter().filter_map(|&hole| constants.get(hole).cloned()).collect();
            runs.insert(probe, Run { symbol: routine.symbol.clone(), constants: own });
        }
        routines.push(routine);
    }
}

fn comment(routine: &mut Routine, count: usize) {
    if count > 1 {
        routine.comment.push_str(&format!(", and {} more", count - 1));
    }
}

/// Which of the code's constants are the probe's own.
struct Slots {
    /// Of each constant in the order of the code: which of the probe's own it is; None: the same for all.
    of_hole: Vec<Option<u32>>,
    /// Of each of the probe's own: the first constant of the code that is it.
    holes: Vec<usize>,
}

impl Slots {
    fn of(members: &[(usize, Vec<Constant>)]) -> Slots {
        let count = members.first().map_or(0, |(_, constants)| constants.len());
        let mut slots = Slots { of_hole: Vec::with_capacity(count), holes: Vec::new() };
        let mut known: HashMap<Vec<&Constant>, u32> = HashMap::new();
        for hole in 0..count {
            let column: Vec<&Constant> = members.iter().filter_map(|(_, constants)| constants.get(hole)).collect();
            if column.windows(2).all(|pair| pair[0] == pair[1]) {
                slots.of_hole.push(None);
                continue;
            }
            let next = slots.holes.len() as u32;
            let slot = *known.entry(column).or_insert(next);
            if slot == next {
                slots.holes.push(hole);
            }
            slots.of_hole.push(Some(slot));
        }
        slots
    }
}

/// A constant where it stands in the code.
enum Hole<'c> {
    Number(&'c mut Value),
    Text(&'c mut Text),
    Location(&'c mut LocationId),
}

impl Hole<'_> {
    /// The constant; what remains is the same for all of its kind.
    fn take(self) -> Constant {
        match self {
            Hole::Number(value) => match std::mem::replace(value, Value::Const(0)) {
                Value::Const(number) => Constant::Long(number),
                _ => Constant::Long(0),
            },
            Hole::Text(text) => match std::mem::replace(text, Text::Literal(Vec::new())) {
                Text::Literal(bytes) => Constant::String(bytes),
                _ => Constant::String(Vec::new()),
            },
            Hole::Location(location) => Constant::Long(std::mem::replace(location, LocationId(0)).0.into()),
        }
    }

    /// It is that one of the probe's own.
    fn put(self, slot: u32) {
        match self {
            Hole::Number(value) => *value = Value::Own(slot),
            Hole::Text(text) => *text = Text::Own(slot),
            Hole::Location(location) => *location = LocationId::own(slot),
        }
    }
}

type Visitor<'v> = dyn FnMut(Hole<'_>) + 'v;

/// All constants, always in the same order.
fn visit(code: &mut [Instr], see: &mut Visitor) {
    for instr in code {
        visit_instr(instr, see);
    }
}

fn visit_instr(instr: &mut Instr, see: &mut Visitor) {
    match instr {
        Instr::Comment(text) => text.clear(),
        Instr::SetLong(_, value)
        | Instr::SetGlobalLong(_, value)
        | Instr::Count(_, value)
        | Instr::SaveLong(_, value)
        | Instr::SetRegister(_, value)
        | Instr::ReturnLong(value) => visit_value(value, see),
        Instr::SetText(_, text)
        | Instr::Copy { from: text, .. }
        | Instr::SetGlobalText(_, text)
        | Instr::SaveText(_, text)
        | Instr::Match { text, .. }
        | Instr::ReturnText(text) => visit_text(text, see),
        Instr::Concatenate { left, right, .. } => {
            visit_text(left, see);
            visit_text(right, see);
        }
        Instr::Divide { left, right, location, .. } => {
            visit_value(left, see);
            visit_value(right, see);
            see(Hole::Location(location));
        }
        Instr::Read { address, location, .. } => {
            visit_value(address, see);
            see(Hole::Location(location));
        }
        Instr::Write { address, value, location, .. } => {
            visit_value(address, see);
            visit_value(value, see);
            see(Hole::Location(location));
        }
        Instr::Call { arguments, location, .. } => {
            for argument in arguments {
                match argument {
                    Argument::Long(value) => visit_value(value, see),
                    Argument::Text(text) => visit_text(text, see),
                    Argument::Bytes(_) => {}
                }
            }
            location.iter_mut().for_each(|location| see(Hole::Location(location)));
        }
        Instr::Record { parts, location, .. } => {
            visit_parts(parts, see);
            location.iter_mut().for_each(|location| see(Hole::Location(location)));
        }
        Instr::Format { parts, location, .. } => {
            visit_parts(parts, see);
            see(Hole::Location(location));
        }
        Instr::If { condition, then, otherwise } => {
            visit_value(condition, see);
            visit(then, see);
            visit(otherwise, see);
        }
        Instr::Map { keys, op, location, .. } => {
            visit_keys(keys, see);
            match op {
                MapOp::SetLong(value)
                | MapOp::Add(_, value)
                | MapOp::Feed(value)
                | MapOp::Bucket(_, value)
                | MapOp::HasBucket(_, value) => {
                    visit_value(value, see);
                }
                MapOp::SetText(text) => visit_text(text, see),
                MapOp::Long(_)
                | MapOp::Text(..)
                | MapOp::Has(_)
                | MapOp::Delete
                | MapOp::Clear
                | MapOp::Extract(..) => {}
            }
            location.iter_mut().for_each(|location| see(Hole::Location(location)));
        }
        Instr::Foreach(foreach) => {
            visit_keys(&mut foreach.keys, see);
            see(Hole::Location(&mut foreach.location));
            foreach.limit.iter_mut().for_each(|limit| visit_value(limit, see));
            visit(&mut foreach.body, see);
        }
        Instr::Loop(body) => visit(body, see),
        Instr::CalledFrom(location) | Instr::Charge { location, .. } => see(Hole::Location(location)),
        Instr::IteratorLong(..)
        | Instr::IteratorText(..)
        | Instr::Label(_)
        | Instr::Goto(_)
        | Instr::Filter
        | Instr::Rearm
        | Instr::Check(_)
        | Instr::Catch { .. }
        | Instr::TakeNext(_)
        | Instr::ReturnWritten(_) => {}
    }
}

fn visit_keys(keys: &mut [Key], see: &mut Visitor) {
    for key in keys {
        match key {
            Key::Long(value) => visit_value(value, see),
            Key::Text(text) => visit_text(text, see),
            Key::Any => {}
        }
    }
}

fn visit_parts(parts: &mut [Part], see: &mut Visitor) {
    for part in parts {
        match part {
            Part::Long(value) | Part::Pretty { address: value, .. } => visit_value(value, see),
            Part::Text(text) => visit_text(text, see),
            Part::Memory { address, bytes, .. } => {
                visit_value(address, see);
                visit_value(bytes, see);
            }
            Part::Stack { first, most, .. } => {
                visit_value(first, see);
                visit_value(most, see);
            }
            Part::Histogram { keys, .. } => visit_keys(keys, see),
        }
    }
}

fn visit_value(value: &mut Value, see: &mut Visitor) {
    match value {
        Value::Const(_) => see(Hole::Number(value)),
        Value::Negate(inner)
        | Value::Not(inner)
        | Value::Complement(inner)
        | Value::SignExtend(inner, _)
        | Value::Bits(inner, _) => {
            visit_value(inner, see);
        }
        Value::Binary(_, left, right) => {
            visit_value(left, see);
            visit_value(right, see);
        }
        Value::Compare(_, left, right) => {
            visit_text(left, see);
            visit_text(right, see);
        }
        Value::Conditional(condition, then, otherwise) => {
            for value in [condition, then, otherwise] {
                visit_value(value, see);
            }
        }
        Value::Length(text) => visit_text(text, see),
        Value::Own(_)
        | Value::Long(_)
        | Value::Global(_)
        | Value::KernelAddress { .. }
        | Value::ModuleAddress { .. }
        | Value::Register(_)
        | Value::Saved(_) => {}
    }
}

fn visit_text(text: &mut Text, see: &mut Visitor) {
    if matches!(text, Text::Literal(_)) {
        see(Hole::Text(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::code::{Frame, LongId, Variable};

    fn handler(name: &str, number: i64, place: u32) -> Routine {
        let variable = Variable { name: "t0".into(), parameter: false };
        let sum =
            Value::Binary(crate::program::BinaryOp::Add, Box::new(Value::Const(7)), Box::new(Value::Const(number)));
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
        let mut alike = Alike::default();
        for probe in 0..5 {
            alike.add(probe, handler(&format!("h{probe}"), 10 + probe as i64, 20 + probe as u32));
        }
        let mut routines = Vec::new();
        let runs = alike.finish(&mut routines);
        assert_eq!(routines.len(), 1);
        assert_eq!(routines[0].comment, "h0, and 4 more");
        // The number stands there twice and is kept once; 7 is the same for all.
        assert_eq!(runs[&3].constants, [Constant::Long(13), Constant::Long(23)]);
        assert_eq!(runs[&3].symbol, "h0");
        let sum = Value::Binary(crate::program::BinaryOp::Add, Box::new(Value::Const(7)), Box::new(Value::Own(0)));
        assert_eq!(routines[0].code[0], Instr::SetLong(LongId(0), sum));
        assert!(
            matches!(&routines[0].code[1], Instr::Divide { left: Value::Own(0), location, .. } if location.as_own() == Some(1))
        );
    }

    #[test]
    fn few_keep_their_constants() {
        let mut alike = Alike::default();
        for (probe, number) in [(0, 1), (1, 2), (2, 1)] {
            alike.add(probe, handler(&format!("h{probe}"), number, 5));
        }
        let mut routines = Vec::new();
        let runs = alike.finish(&mut routines);
        assert_eq!(
            routines.iter().map(|routine| routine.comment.as_str()).collect::<Vec<_>>(),
            ["h0, and 1 more", "h1"]
        );
        assert_eq!([&runs[&0].symbol, &runs[&1].symbol, &runs[&2].symbol], ["h0", "h1", "h0"]);
        assert!(runs.values().all(|run| run.constants.is_empty()));
    }
}
