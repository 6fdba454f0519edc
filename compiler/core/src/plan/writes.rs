// SPDX-License-Identifier: GPL-2.0-or-later

//! How much handlers write into the buffers, for the size that these have at the start.
//!
//! Errors do not count: a few end the session, and there is always some room.

use std::cell::RefCell;
use std::collections::HashMap;

use spile_abi::format::{STACK_FRAMES, string_part};

use super::Probe;
use super::code::{Callee, Instr, Outcome, Part, Routine, Value};
use crate::program::Runs;

/// Calls deeper than this are not followed: that ends recursion.
const MOST_DEPTH: u32 = 8;
/// Builtins that write no record, or the one with which the session ends.
const SILENT: [&str; 2] = ["error", "exit"];
/// Header of a record.
const HEADER: u64 = size_of::<spile_abi::record::Record>() as u64;

/// Bytes of records at most; `u32::MAX`: any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Of all begin probes.
    pub begin: u32,
    /// Of all end and error probes.
    pub end: u32,
    /// Probes write that are hit while others are armed.
    pub armed: bool,
}

impl Writes {
    /// What the handlers of these probes write.
    pub(super) fn of(probes: &[Probe], routines: &[Routine], string_bytes: u32) -> Writes {
        let sizes = Sizes::new(routines, string_bytes);
        let mut writes = Writes::default();
        for probe in probes {
            let bytes = |symbol: &str| sizes.of_call(symbol, 0);
            let all = bytes(&probe.handler).saturating_add(probe.entry_handler.as_deref().map_or(0, bytes));
            let bytes = u32::try_from(all).unwrap_or(u32::MAX);
            match probe.attachment.mechanism {
                mechanism if mechanism.runs != Runs::Alone => writes.armed |= bytes > 0,
                mechanism if mechanism.kind == "SPILE_PROBE_BEGIN" => writes.begin = writes.begin.saturating_add(bytes),
                _ => writes.end = writes.end.saturating_add(bytes),
            }
        }
        writes
    }
}

/// The largest payload of a record that the runtime makes itself: a message with a call chain, a printed stack.
pub(super) fn of_runtime(string_bytes: u32) -> u32 {
    string_part(string_bytes.max(1024)).saturating_add(string_part(STACK_FRAMES * 24))
}

/// The payload of a record at most.
pub(super) fn of_record(parts: &[Part], objects: &Value, string_bytes: u32) -> u64 {
    let objects = if let Value::Const(bytes) = objects { bytes.unsigned_abs() } else { u64::from(u32::MAX) };
    parts.iter().fold(objects, |sum, part| sum.saturating_add(of_part(part, string_bytes)))
}

fn of_part(part: &Part, string_bytes: u32) -> u64 {
    match part {
        Part::Long(_) => 8,
        // Among the objects.
        Part::Pretty { .. } => 0,
        Part::Items { longs, .. } => u64::from(*longs) * 8,
        Part::Text(_) => string_part(string_bytes).into(),
        Part::StoredStack(_) => u64::from(string_part(string_bytes)) + u64::from(string_part(STACK_FRAMES * 24)),
        Part::Memory { most, .. } => string_part(*most).into(),
        Part::UserStack | Part::Stack { .. } => string_part(STACK_FRAMES * 16).into(),
        Part::UserFrame(_) => string_part(16).into(),
        Part::Histogram { buckets, .. } => string_part(buckets * 8).into(),
    }
}

struct Sizes<'r> {
    by_symbol: HashMap<&'r str, &'r Routine>,
    string_bytes: u32,
    /// Those of routines at a depth: each is called from many places.
    known: RefCell<HashMap<(&'r str, u32), u64>>,
}

impl<'r> Sizes<'r> {
    fn new(routines: &'r [Routine], string_bytes: u32) -> Self {
        let by_symbol = routines.iter().map(|routine| (routine.symbol.as_str(), routine)).collect();
        Sizes { by_symbol, string_bytes, known: RefCell::default() }
    }

    fn of_call(&self, symbol: &str, depth: u32) -> u64 {
        let Some((symbol, routine)) = self.by_symbol.get_key_value(symbol) else { return 0 };
        if depth >= MOST_DEPTH {
            return u64::MAX;
        }
        if let Some(bytes) = self.known.borrow().get(&(*symbol, depth)) {
            return *bytes;
        }
        let bytes = self.of_code(&routine.code, depth + 1);
        self.known.borrow_mut().insert((*symbol, depth), bytes);
        bytes
    }

    fn of_code(&self, code: &[Instr], depth: u32) -> u64 {
        let mut sum = 0u64;
        for instr in code {
            sum = sum.saturating_add(self.of_instr(instr, depth));
            // What follows would only make it more: this ends the search where functions call each other.
            if sum > u64::from(u32::MAX) {
                break;
            }
        }
        sum
    }

    fn of_instr(&self, instr: &Instr, depth: u32) -> u64 {
        match instr {
            Instr::Record { parts, objects, .. } => HEADER + of_record(parts, objects, self.string_bytes),
            Instr::Call { callee: Callee::Routine(symbol), .. } => self.of_call(symbol, depth),
            // Guru mode: it may print as much as it likes.
            Instr::Call { callee: Callee::Embedded(_), .. } => u64::MAX,
            // Those with a value only warn.
            Instr::Call { callee: Callee::Builtin(name), outcome: Outcome::None, .. } if !SILENT.contains(name) => {
                HEADER + u64::from(of_runtime(self.string_bytes))
            }
            Instr::If { then, otherwise, .. } => self.of_code(then, depth).max(self.of_code(otherwise, depth)),
            Instr::Foreach(each) => repeated(self.of_code(&each.body, depth)),
            Instr::Loop(body) => repeated(self.of_code(body, depth)),
            _ => 0,
        }
    }
}

/// Any number of times.
fn repeated(bytes: u64) -> u64 {
    if bytes > 0 { u64::MAX } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::code::FormatId;
    use super::super::code::tests::routine;
    use super::*;

    fn record(parts: Vec<Part>) -> Instr {
        Instr::Record { format: FormatId(0), parts, objects: Value::Const(0), location: None }
    }

    fn call(callee: Callee) -> Instr {
        Instr::Call { callee, arguments: Vec::new(), outcome: Outcome::None, location: None }
    }

    fn of(routines: &[Routine], symbol: &str) -> u64 {
        Sizes::new(routines, 512).of_call(symbol, 0)
    }

    #[test]
    fn the_longer_branch_counts() {
        let number = || record(vec![Part::Long(Value::Const(1))]);
        let branches =
            Instr::If { condition: Value::Const(1), then: vec![number()], otherwise: vec![number(), number()] };
        assert_eq!(of(&[routine("branches", vec![branches, number()])], "branches"), 3 * (HEADER + 8));
        assert_eq!(of(&[], "absent"), 0);
    }

    #[test]
    fn loops_recursion_and_embedded_c_have_no_limit() {
        let routines = [
            routine("loop", vec![Instr::Loop(vec![record(Vec::new())])]),
            routine("silent", vec![Instr::Loop(vec![call(Callee::Builtin("exit"))])]),
            routine("again", vec![record(Vec::new()), call(Callee::Routine("again".into()))]),
            routine("embedded", vec![call(Callee::Embedded("f".into()))]),
        ];
        let unlimited = |symbol| of(&routines, symbol) > u64::from(u32::MAX);
        assert!(unlimited("loop") && unlimited("again") && unlimited("embedded"));
        assert_eq!(of(&routines, "silent"), 0);
    }

    #[test]
    fn functions_that_call_each_other_often_end() {
        let calls = |symbol: &str| (0..100).map(|_| call(Callee::Routine(symbol.into()))).collect();
        assert!(of(&[routine("again", calls("again"))], "again") > u64::from(u32::MAX));
    }

    /// Each level is called a hundred times by the one above it: nothing that is printed ends the search.
    #[test]
    fn functions_that_print_nothing_are_looked_at_once() {
        let level = |number: u32| {
            let calls = (0..100).map(|_| call(Callee::Routine(format!("f{}", number + 1)))).collect();
            routine(&format!("f{number}"), calls)
        };
        let routines: Vec<Routine> = (0..MOST_DEPTH - 1).map(level).chain([routine("f7", Vec::new())]).collect();
        assert_eq!(of(&routines, "f0"), 0);
    }

    #[test]
    fn builtins_that_print_count() {
        assert!(of(&[routine("log", vec![call(Callee::Builtin("log"))])], "log") > 512);
    }
}
