// SPDX-License-Identifier: GPL-2.0-or-later

//! What a handler that cannot run again ([`super::restart`]) is going to read of the process's memory, as a routine of its own
//! that does nothing else: it runs before the handler, where a page that is not there can be waited for (runtime-c/fault_in.c).
//!
//! It is the part of the handler's code that leads to such reads from registers, saved values and constants. What depends on
//! globals, elements of arrays or functions of the script is left out: such a read fails where its page is not there, as
//! everywhere else. Branches are not taken: both sides are read, as far as the reads before them succeed.

use std::collections::HashSet;

use super::code::{Argument, Callee, Instr, LongId, OUT, Outcome, Part, Routine, Text, TextId, Value, Variable};
use super::code::{sets_long, sets_text};
use crate::builtin;

/// None: the routine reads nothing of the process's memory that is known before it runs.
pub(super) fn of(routine: &Routine, symbol: String) -> Option<Routine> {
    let mut reader = Reader { longs: routine.longs.clone(), ..Reader::default() };
    reader.code(&routine.code);
    let code = needed(reader.candidates);
    if code.is_empty() {
        return None;
    }
    Some(Routine {
        symbol,
        comment: format!("{}: memory that it reads", routine.comment),
        parameters: Vec::new(),
        returns: None,
        longs: reader.longs,
        texts: routine.texts.clone(),
        buffers: routine.buffers.clone(),
        iterators: Vec::new(),
        frame: routine.frame,
        spilled: routine.spilled,
        code,
    })
}

/// An instruction that can run ahead, and whether it reads memory of the process.
struct Candidate {
    instr: Instr,
    reads: bool,
}

#[derive(Default)]
struct Reader {
    longs: Vec<Variable>,
    candidates: Vec<Candidate>,
    /// Variables that have their values when the routine runs ahead.
    known_longs: HashSet<LongId>,
    known_texts: HashSet<TextId>,
}

impl Reader {
    fn code(&mut self, code: &[Instr]) {
        for instr in code {
            match instr {
                Instr::If { then, otherwise, .. } => {
                    self.code(then);
                    self.code(otherwise);
                }
                Instr::Loop(body) => self.code(body),
                Instr::Foreach(foreach) => self.code(&foreach.body),
                _ => self.step(instr),
            }
        }
    }

    fn step(&mut self, instr: &Instr) {
        let can = match instr {
            Instr::SetLong(_, value) => self.knows(value),
            Instr::Read { address, .. } => self.knows(address),
            Instr::SetText(_, text) | Instr::Copy { from: text, .. } => self.knows_text(text),
            Instr::Call { callee: Callee::Builtin(symbol), arguments, .. } => {
                is_pure(symbol) && arguments.iter().all(|argument| self.knows_argument(argument))
            }
            Instr::Record { parts, .. } | Instr::Format { parts, .. } => {
                parts.iter().for_each(|part| self.part(part));
                false
            }
            _ => false,
        };
        self.known_longs.retain(|id| !sets_long(instr, *id));
        self.known_texts.retain(|id| !sets_text(instr, *id));
        if !can {
            return;
        }
        match instr {
            Instr::SetLong(to, _) | Instr::Read { to, .. } => _ = self.known_longs.insert(*to),
            Instr::Call { outcome: Outcome::Long(to), .. } => _ = self.known_longs.insert(*to),
            Instr::SetText(to, _) | Instr::Copy { to, .. } => _ = self.known_texts.insert(*to),
            Instr::Call { outcome: Outcome::Text(_, to), .. } => _ = self.known_texts.insert(*to),
            _ => {}
        }
        let reads = match instr {
            Instr::Read { user, .. } => *user,
            Instr::Call { callee: Callee::Builtin(symbol), .. } => reads_user(symbol),
            _ => false,
        };
        self.candidates.push(Candidate { instr: instr.clone(), reads });
    }

    /// An object of which a record has the bytes: at least its beginning.
    fn part(&mut self, part: &Part) {
        let (Part::Pretty { address, .. } | Part::Memory { address, user: true, .. }) = part else { return };
        if !self.knows(address) {
            return;
        }
        let to = LongId(self.longs.len() as u32);
        self.longs.push(Variable { name: format!("ahead_{}", to.0), parameter: false });
        let location = super::code::LocationId(0);
        let instr = Instr::Read { to, address: address.clone(), size: 1, user: true, location };
        self.candidates.push(Candidate { instr, reads: true });
    }

    fn knows(&self, value: &Value) -> bool {
        match value {
            Value::Const(_)
            | Value::Register(_)
            | Value::Saved(_)
            | Value::KernelAddress { .. }
            | Value::ModuleAddress { .. } => true,
            Value::Long(id) => self.known_longs.contains(id),
            Value::Own(_) | Value::Global(_) => false,
            Value::Negate(inner)
            | Value::Not(inner)
            | Value::Complement(inner)
            | Value::SignExtend(inner, _)
            | Value::Bits(inner, _) => self.knows(inner),
            Value::Binary(_, left, right) => self.knows(left) && self.knows(right),
            Value::Compare(_, left, right) => self.knows_text(left) && self.knows_text(right),
            Value::Conditional(a, b, c) => [a, b, c].iter().all(|value| self.knows(value)),
            Value::Length(text) => self.knows_text(text),
        }
    }

    fn knows_text(&self, text: &Text) -> bool {
        match text {
            Text::Literal(_) | Text::Saved(_) => true,
            Text::Variable(id) => self.known_texts.contains(id),
            Text::Own(_) | Text::Global(_) => false,
        }
    }

    fn knows_argument(&self, argument: &Argument) -> bool {
        match argument {
            Argument::Long(value) => self.knows(value),
            Argument::Text(text) => self.knows_text(text),
            Argument::Bytes(_) => false,
        }
    }
}

fn is_pure(symbol: &str) -> bool {
    builtin::all()
        .any(|builtin| builtin.symbol == symbol && builtin.pure && !builtin.groups && !builtin.names && !builtin.lines)
}

pub(super) fn reads_user(symbol: &str) -> bool {
    (symbol.starts_with("user_") && symbol != "user_mode")
        || ["long_arg", "longlong_arg", "ulong_arg", "kernel_or_user_string_quoted"].contains(&symbol)
}

/// Those that read, and those whose results they need; after each that reads, the rest is left if it failed.
fn needed(candidates: Vec<Candidate>) -> Vec<Instr> {
    let (mut longs, mut texts) = (HashSet::new(), HashSet::new());
    let mut code = Vec::new();
    for Candidate { instr, reads } in candidates.into_iter().rev() {
        let wanted =
            reads || longs.iter().any(|id| sets_long(&instr, *id)) || texts.iter().any(|id| sets_text(&instr, *id));
        if !wanted {
            continue;
        }
        operands(&instr, &mut longs, &mut texts);
        if reads || matches!(instr, Instr::Read { .. }) {
            code.push(Instr::Check(OUT));
        }
        code.push(instr);
    }
    code.reverse();
    code
}

fn operands(instr: &Instr, longs: &mut HashSet<LongId>, texts: &mut HashSet<TextId>) {
    match instr {
        Instr::SetLong(_, value) | Instr::Read { address: value, .. } => in_value(value, longs, texts),
        Instr::SetText(_, text) | Instr::Copy { from: text, .. } => in_text(text, texts),
        Instr::Call { arguments, .. } => arguments.iter().for_each(|argument| match argument {
            Argument::Long(value) => in_value(value, longs, texts),
            Argument::Text(text) => in_text(text, texts),
            Argument::Bytes(_) => {}
        }),
        _ => {}
    }
}

fn in_text(text: &Text, texts: &mut HashSet<TextId>) {
    if let Text::Variable(id) = text {
        texts.insert(*id);
    }
}

fn in_value(value: &Value, longs: &mut HashSet<LongId>, texts: &mut HashSet<TextId>) {
    match value {
        Value::Long(id) => _ = longs.insert(*id),
        Value::Negate(inner)
        | Value::Not(inner)
        | Value::Complement(inner)
        | Value::SignExtend(inner, _)
        | Value::Bits(inner, _) => in_value(inner, longs, texts),
        Value::Binary(_, left, right) => [left, right].into_iter().for_each(|value| in_value(value, longs, texts)),
        Value::Compare(_, left, right) => [left, right].into_iter().for_each(|text| in_text(text, texts)),
        Value::Conditional(a, b, c) => [a, b, c].into_iter().for_each(|value| in_value(value, longs, texts)),
        Value::Length(text) => in_text(text, texts),
        Value::Const(_)
        | Value::Own(_)
        | Value::Global(_)
        | Value::Register(_)
        | Value::Saved(_)
        | Value::KernelAddress { .. }
        | Value::ModuleAddress { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::tests::routine;
    use super::super::code::{BufferId, LocationId};
    use super::*;

    fn read(to: u32, address: Value) -> Instr {
        Instr::Read { to: LongId(to), address, size: 8, user: true, location: LocationId(0) }
    }

    fn string(address: Value) -> Instr {
        Instr::Call {
            callee: Callee::Builtin("user_string"),
            arguments: vec![Argument::Long(address)],
            outcome: Outcome::Text(BufferId(0), TextId(0)),
            location: Some(LocationId(0)),
        }
    }

    #[test]
    fn what_leads_to_a_read_runs_ahead_and_nothing_else() {
        let code = vec![
            Instr::SetLong(LongId(3), Value::Const(1)),
            read(0, Value::Register(112)),
            Instr::SetLong(LongId(1), Value::Long(LongId(0))),
            Instr::If {
                condition: Value::Long(LongId(3)),
                then: vec![string(Value::Long(LongId(1)))],
                otherwise: vec![],
            },
        ];
        let ahead = of(&routine("h", code), "ahead".into()).expect("it reads");
        let check = Instr::Check(OUT);
        let expected = vec![
            read(0, Value::Register(112)),
            check.clone(),
            Instr::SetLong(LongId(1), Value::Long(LongId(0))),
            string(Value::Long(LongId(1))),
            check,
        ];
        assert_eq!(ahead.code, expected);
    }

    #[test]
    fn what_is_not_known_before_is_left_out() {
        let unknown = Instr::TakeNext(LongId(0));
        let code = vec![read(0, Value::Register(112)), unknown, string(Value::Long(LongId(0)))];
        let ahead = of(&routine("h", code), "ahead".into()).expect("it reads");
        assert_eq!(ahead.code, vec![read(0, Value::Register(112)), Instr::Check(OUT)]);
        assert!(of(&routine("h", vec![Instr::SetLong(LongId(0), Value::Register(8))]), "ahead".into()).is_none());
    }
}
