// SPDX-License-Identifier: GPL-2.0-or-later

//! Handlers that read all they need of the process's memory before their first effect. Where a page is missing such a handler
//! ends, the page is faulted in, and the handler runs again (runtime-c/fault_in.c). So nothing has to be read before it runs
//! ([`super::ahead`]).

use std::collections::{HashMap, HashSet};

use super::ahead::reads_user;
use super::code::{Callee, Instr, LabelId, MapOp, OUT, Part, Routine, each};
use crate::builtin;

/// Whether the handler is such a one. If so, it leaves after each of these reads that has to be repeated.
pub(super) fn prepare(routine: &mut Routine, functions: &[Routine]) -> bool {
    let functions = functions.iter().map(|function| (function.symbol.as_str(), function)).collect();
    let mut path = Path { functions, at: Some(State::Untouched), labels: HashMap::new(), restarts: true };
    if !jumps_forward(&routine.code) {
        return false;
    }
    path.code(&routine.code);
    if path.restarts {
        routine.code = with_checks(std::mem::take(&mut routine.code));
    }
    path.restarts
}

/// What has happened before a place of the handler, on some way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// Nothing that outlives the run.
    Untouched,
    /// An effect.
    Changed,
}

struct Path<'r> {
    functions: HashMap<&'r str, &'r Routine>,
    /// None: no way leads here.
    at: Option<State>,
    labels: HashMap<LabelId, State>,
    restarts: bool,
}

impl Path<'_> {
    fn code(&mut self, code: &[Instr]) {
        code.iter().for_each(|instr| self.step(instr));
    }

    fn step(&mut self, instr: &Instr) {
        match instr {
            Instr::If { then, otherwise, .. } => {
                let before = self.at;
                self.code(then);
                let after = std::mem::replace(&mut self.at, before);
                self.code(otherwise);
                self.at = self.at.max(after);
            }
            Instr::Loop(body) => {
                self.repeated(body);
                // It ends by a jump.
                self.at = None;
            }
            Instr::Foreach(foreach) => {
                let before = self.at;
                self.repeated(&foreach.body);
                self.at = self.at.max(before);
            }
            Instr::Goto(label) => {
                self.jump(*label);
                self.at = None;
            }
            Instr::Check(label) | Instr::CheckCall { failed: label, .. } | Instr::Catch { uncaught: label, .. } => {
                self.jump(*label);
            }
            Instr::Label(label) => self.at = self.at.max(self.labels.get(label).copied()),
            _ => self.simple(instr),
        }
    }

    fn jump(&mut self, label: LabelId) {
        if let Some(at) = self.at {
            let state = self.labels.entry(label).or_insert(at);
            *state = at.max(*state);
        }
    }

    /// The second time after the effects of the first one.
    fn repeated(&mut self, body: &[Instr]) {
        let before = self.at;
        self.code(body);
        self.at = self.at.max(before);
        self.code(body);
    }

    fn simple(&mut self, instr: &Instr) {
        if self.reads(instr) && (self.at == Some(State::Changed) || !is_repeatable(instr)) {
            self.restarts = false;
        }
        if self.at.is_some() && self.has_effect(instr) {
            self.at = Some(State::Changed);
        }
    }

    fn reads(&self, instr: &Instr) -> bool {
        // Embedded C may read, too, after effects of its own.
        self.called(instr).iter().any(|code| reads(code) || any(code, &is_embedded))
    }

    fn has_effect(&self, instr: &Instr) -> bool {
        self.called(instr).iter().any(|code| any(code, &has_effect))
    }

    /// The instruction, and the code of all functions that it calls.
    fn called<'i>(&'i self, instr: &'i Instr) -> Vec<&'i [Instr]> {
        let mut found = vec![std::slice::from_ref(instr)];
        let mut seen = HashSet::new();
        let mut next = 0;
        while let Some(code) = found.get(next).copied() {
            super::code::calls(code, &mut |symbol| {
                if let Some(function) = self.functions.get(symbol)
                    && seen.insert(symbol)
                {
                    found.push(&function.code);
                }
            });
            next += 1;
        }
        found
    }
}

fn is_embedded(instr: &Instr) -> bool {
    matches!(instr, Instr::Call { callee: Callee::Embedded(_), .. })
}

/// No jump repeats code but the end of a loop.
fn jumps_forward(code: &[Instr]) -> bool {
    let mut passed = HashSet::new();
    let mut forward = true;
    each(code, &mut |instr| match instr {
        Instr::Label(label) => _ = passed.insert(*label),
        Instr::Goto(label)
        | Instr::Check(label)
        | Instr::CheckCall { failed: label, .. }
        | Instr::Catch { uncaught: label, .. } => forward &= !passed.contains(label),
        _ => {}
    });
    forward
}

/// Whether the code reads memory of the process that can be faulted in.
pub(super) fn reads(code: &[Instr]) -> bool {
    any(code, &reads_memory)
}

fn any(code: &[Instr], test: &dyn Fn(&Instr) -> bool) -> bool {
    let mut found = false;
    each(code, &mut |instr| found |= test(instr));
    found
}

fn reads_memory(instr: &Instr) -> bool {
    match instr {
        Instr::Read { user, .. } => *user,
        Instr::Call { callee: Callee::Builtin(symbol), .. } => reads_user(symbol),
        Instr::Record { parts, .. } | Instr::Format { parts, .. } => {
            parts.iter().any(|part| matches!(part, Part::Pretty { .. } | Part::Memory { user: true, .. }))
        }
        _ => false,
    }
}

/// Of instructions that read: whether the run can be ended there. A function of the script has no checks for that, and a part of
/// a record that cannot be read is left out of it.
fn is_repeatable(instr: &Instr) -> bool {
    matches!(instr, Instr::Read { .. } | Instr::Call { callee: Callee::Builtin(_), .. })
}

/// Whether it changes anything that outlives the run. No variant is left to a default: one that is forgotten here would
/// have its effect twice.
fn has_effect(instr: &Instr) -> bool {
    match instr {
        Instr::SetGlobalLong(..)
        | Instr::SetGlobalText(..)
        | Instr::Count { .. }
        | Instr::Write { .. }
        | Instr::SetRegister(..)
        | Instr::Record { .. }
        | Instr::Call { callee: Callee::Embedded(_), .. }
        // It may drop an element of an array that wraps.
        | Instr::Hold { drops: true, .. } => true,
        Instr::Call { callee: Callee::Builtin(symbol), .. } => {
            !builtin::all().any(|builtin| builtin.symbol == *symbol && builtin.pure)
        }
        Instr::Map { op, .. } => match op {
            MapOp::SetLong(_)
            | MapOp::SetText(_)
            | MapOp::Add(..)
            | MapOp::Count(_)
            | MapOp::Delete
            | MapOp::Clear
            | MapOp::Feed(_) => true,
            MapOp::Long(_)
            | MapOp::Text(..)
            | MapOp::Has(_)
            | MapOp::Extract(..)
            | MapOp::Bucket(..)
            | MapOp::HasBucket(..) => false,
        },
        Instr::Comment(_)
        | Instr::SetLong(..)
        | Instr::SetText(..)
        | Instr::Copy { .. }
        | Instr::Concatenate { .. }
        // The same place again.
        | Instr::SaveLong(..)
        | Instr::SaveText(..)
        | Instr::Divide { .. }
        | Instr::Read { .. }
        | Instr::Match { .. }
        | Instr::Call { callee: Callee::Routine(_), .. }
        | Instr::Format { .. }
        | Instr::If { .. }
        | Instr::Hold { drops: false, .. }
        | Instr::HoldWhole { .. }
        | Instr::Foreach(_)
        | Instr::IteratorLong(..)
        | Instr::IteratorText(..)
        | Instr::Loop(_)
        | Instr::Label(_)
        | Instr::Goto(_)
        | Instr::Filter
        | Instr::Rearm
        | Instr::Check(_)
        | Instr::CheckCall { .. }
        | Instr::Charge { .. }
        | Instr::Catch { .. }
        | Instr::TakeNext(_)
        | Instr::SayNext
        | Instr::ReturnLong(_)
        | Instr::ReturnText(_)
        | Instr::ReturnWritten(_) => false,
    }
}

/// Adds checks after reads that cannot fail otherwise.
fn with_checks(code: Vec<Instr>) -> Vec<Instr> {
    let mut checked = Vec::with_capacity(code.len());
    for mut instr in code {
        match &mut instr {
            Instr::If { then, otherwise, .. } => {
                *then = with_checks(std::mem::take(then));
                *otherwise = with_checks(std::mem::take(otherwise));
            }
            Instr::Loop(body) => *body = with_checks(std::mem::take(body)),
            Instr::Foreach(foreach) => foreach.body = with_checks(std::mem::take(&mut foreach.body)),
            _ => {}
        }
        let ends = reads_memory(&instr) && matches!(instr, Instr::Call { location: None, .. });
        checked.push(instr);
        if ends {
            checked.push(Instr::Check(OUT));
        }
    }
    checked
}

#[cfg(test)]
mod tests {
    use super::super::code::tests::routine;
    use super::super::code::{
        Argument, BufferId, FormatId, LocationId, LongId, MapRef, NumberAccess, NumberRef, Outcome, TextId, Value,
    };
    use super::*;
    use crate::program::GlobalId;

    fn read() -> Instr {
        Instr::Read { to: LongId(0), address: Value::Register(112), size: 8, user: true, location: LocationId(0) }
    }

    fn string(location: Option<LocationId>) -> Instr {
        Instr::Call {
            callee: Callee::Builtin(if location.is_some() { "user_string" } else { "user_string2" }),
            arguments: vec![Argument::Long(Value::Register(112))],
            outcome: Outcome::Text(BufferId(0), TextId(0)),
            location,
        }
    }

    fn record(parts: Vec<Part>) -> Instr {
        Instr::Record { format: FormatId(0), parts, objects: Value::Const(0), location: None }
    }

    fn count() -> Instr {
        let global = NumberRef { id: GlobalId(0), symbol: "global_n".into(), access: NumberAccess::Counter(0) };
        Instr::Count { counter: 0, global, value: Value::Const(1) }
    }

    fn call(symbol: &str) -> Instr {
        let (callee, arguments) = (Callee::Routine(symbol.into()), Vec::new());
        Instr::Call { callee, arguments, outcome: Outcome::None, location: Some(LocationId(0)) }
    }

    fn branch(then: Vec<Instr>, otherwise: Vec<Instr>) -> Instr {
        Instr::If { condition: Value::Register(8), then, otherwise }
    }

    fn restarts(code: Vec<Instr>) -> bool {
        let functions = [
            routine("counts", vec![count()]),
            routine("outer", vec![call("counts")]),
            routine("computes", vec![Instr::ReturnLong(Value::Const(1))]),
            routine("reads", vec![read()]),
        ];
        prepare(&mut routine("h", code), &functions)
    }

    #[test]
    fn reads_before_effects_are_repeated() {
        assert!(restarts(vec![read(), string(Some(LocationId(0))), record(Vec::new())]));
        assert!(!restarts(vec![count(), read()]));
        assert!(!restarts(vec![record(Vec::new()), read()]));
        let quoted = Instr::Call {
            callee: Callee::Builtin("kernel_or_user_string_quoted"),
            arguments: vec![Argument::Long(Value::Register(112))],
            outcome: Outcome::Text(BufferId(0), TextId(0)),
            location: None,
        };
        assert!(!restarts(vec![read(), count(), quoted]));
        let map = MapRef { id: GlobalId(0), symbol: "global_a".into(), counted: false, striped: false };
        let on_map = |op| Instr::Map { map: map.clone(), keys: Vec::new(), op, location: None };
        assert!(restarts(vec![on_map(MapOp::Long(LongId(1))), read()]));
        assert!(!restarts(vec![on_map(MapOp::Feed(Value::Const(1))), read()]));
    }

    #[test]
    fn each_way_counts_for_itself() {
        let next = || Instr::Goto(OUT);
        assert!(restarts(vec![branch(vec![count()], vec![read()])]));
        assert!(!restarts(vec![branch(vec![count()], vec![]), read()]));
        assert!(restarts(vec![branch(vec![count(), next()], vec![]), read()]));
        let (done, caught) = (LabelId(1), LabelId(2));
        let tried = vec![
            read(),
            Instr::Check(caught),
            count(),
            Instr::Goto(done),
            Instr::Label(caught),
            read(),
            Instr::Label(done),
        ];
        assert!(restarts(tried.clone()));
        assert!(!restarts([tried, vec![read()]].concat()));
    }

    #[test]
    fn a_loop_reads_after_the_effects_of_its_turn_before() {
        let next = || branch(vec![Instr::Goto(LabelId(1))], vec![]);
        assert!(!restarts(vec![Instr::Loop(vec![next(), read(), count()]), Instr::Label(LabelId(1))]));
        assert!(restarts(vec![Instr::Loop(vec![next(), read()]), Instr::Label(LabelId(1)), count()]));
        assert!(!restarts(vec![Instr::Label(LabelId(1)), read(), Instr::Goto(LabelId(1))]));
    }

    #[test]
    fn what_functions_do_counts_where_they_are_called() {
        assert!(restarts(vec![call("computes"), read(), call("counts")]));
        assert!(!restarts(vec![call("outer"), read()]));
        assert!(!restarts(vec![call("reads")]));
        let embedded = Instr::Call {
            callee: Callee::Embedded("f".into()),
            arguments: Vec::new(),
            outcome: Outcome::None,
            location: None,
        };
        assert!(!restarts(vec![read(), embedded]));
    }

    #[test]
    fn parts_of_records_are_not_repeated() {
        let memory = Part::Memory { address: Value::Register(112), bytes: Value::Const(8), most: 8, user: true };
        assert!(!restarts(vec![record(vec![memory])]));
    }

    #[test]
    fn a_read_that_gives_a_default_is_followed_by_a_check() {
        let mut handler = routine("h", vec![branch(vec![string(None)], vec![]), string(Some(LocationId(0)))]);
        assert!(prepare(&mut handler, &[]));
        let expected = vec![branch(vec![string(None), Instr::Check(OUT)], vec![]), string(Some(LocationId(0)))];
        assert_eq!(handler.code, expected);
    }
}
