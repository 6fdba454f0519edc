// SPDX-License-Identifier: GPL-2.0-or-later

//! Queries about code: its changes, calls and references.

use std::collections::{HashMap, HashSet};

use super::{
    Argument, Callee, Instr, ItemsId, Key, LongId, Loop, MapOp, MapRef, Outcome, Part, Routine, Set, TableId, Text,
    TextId, Value,
};
use crate::program::{Extractor, GlobalId};

/// Whether running `code` can change what `value` reads.
pub fn changes_value(code: &[Instr], value: &Value) -> bool {
    match value {
        Value::Const(_)
        | Value::Own(_)
        | Value::Saved(_)
        | Value::KernelAddress { .. }
        | Value::ModuleAddress { .. } => false,
        Value::Long(id) => code.iter().any(|instr| sets_long(instr, *id)),
        Value::Global(global) => code.iter().any(|instr| sets_global(instr, global.id)),
        Value::Register(offset) => any(code, &|instr| match instr {
            Instr::SetRegister(to, _) => to == offset,
            instr => calls_script(instr),
        }),
        Value::Negate(inner)
        | Value::Not(inner)
        | Value::Complement(inner)
        | Value::SignExtend(inner, _)
        | Value::Bits(inner, _) => changes_value(code, inner),
        Value::Binary(_, left, right) => changes_value(code, left) || changes_value(code, right),
        Value::Compare(_, left, right) => changes_text(code, left) || changes_text(code, right),
        Value::Conditional(a, b, c) => [a, b, c].iter().any(|value| changes_value(code, value)),
        Value::Length(text) => changes_text(code, text),
    }
}

/// Whether running `code` can change the bytes of `text`, or which ones it refers to.
pub fn changes_text(code: &[Instr], text: &Text) -> bool {
    match text {
        Text::Literal(_) | Text::Own(_) | Text::Saved(_) => false,
        Text::Variable(id) => code.iter().any(|instr| sets_text(instr, *id)),
        Text::Global(global) => code.iter().any(|instr| sets_global(instr, global.id)),
    }
}

/// The instructions that take stripes, in order, including nested ones.
pub fn holds(code: &[Instr]) -> Vec<&Instr> {
    code.iter()
        .flat_map(|instr| match instr {
            Instr::Hold { .. } | Instr::HoldWhole { .. } => vec![instr],
            Instr::If { then, otherwise, .. } => [holds(then), holds(otherwise)].concat(),
            _ => Vec::new(),
        })
        .collect()
}

/// Whether `test` holds for an instruction, including nested ones.
fn any(code: &[Instr], test: &dyn Fn(&Instr) -> bool) -> bool {
    code.iter().any(|instr| {
        test(instr)
            || match instr {
                Instr::If { then, otherwise, .. } => any(then, test) || any(otherwise, test),
                Instr::Loop(body) => any(body, test),
                Instr::Foreach(foreach) => any(&foreach.body, test),
                _ => false,
            }
    })
}

/// Whether the instruction, or one in it, sets the variable.
pub fn sets_long(instr: &Instr, id: LongId) -> bool {
    any(std::slice::from_ref(instr), &|instr| instr.set() == Some(Set::Long(id)))
}

/// The same of a string.
pub fn sets_text(instr: &Instr, id: TextId) -> bool {
    any(std::slice::from_ref(instr), &|instr| instr.set() == Some(Set::Text(id)))
}

fn sets_global(instr: &Instr, id: GlobalId) -> bool {
    any(std::slice::from_ref(instr), &|instr| match instr {
        Instr::SetGlobalLong(to, _) | Instr::Count { global: to, .. } => to.id == id,
        Instr::SetGlobalText(to, _) => to.id == id,
        instr => calls_script(instr),
    })
}

/// A call of a function of the script or of embedded C, which may set globals and the probed registers.
fn calls_script(instr: &Instr) -> bool {
    matches!(instr, Instr::Call { callee: Callee::Routine(_) | Callee::Embedded(_), .. })
}

/// Whether a handler only adds to counters, depending only on numbers: it cannot fail, ends soon, and needs nothing of the
/// context but the registers.
pub fn only_counts(code: &[Instr]) -> bool {
    code.iter().all(|instr| match instr {
        Instr::Comment(_) | Instr::Label(_) | Instr::Goto(_) => true,
        Instr::SetLong(_, value) | Instr::Count { value, .. } => is_plain(value),
        Instr::If { condition, then, otherwise } => is_plain(condition) && only_counts(then) && only_counts(otherwise),
        Instr::Call { callee: Callee::Builtin(symbol), arguments, outcome, .. } => {
            arguments.is_empty() && !matches!(outcome, Outcome::Text(..)) && is_plain_builtin(symbol)
        }
        _ => false,
    })
}

/// The counter and the number added to it, if a handler does nothing else.
pub fn only_adds(code: &[Instr]) -> Option<(u32, i64)> {
    let mut added = None;
    for instr in code {
        match instr {
            Instr::Comment(_) | Instr::Label(_) => {}
            Instr::Count { counter, value: Value::Const(value), .. } if added.is_none() => {
                added = Some((*counter, *value));
            }
            _ => return None,
        }
    }
    added
}

/// Whether a routine is not charged for statements or steps, and everything in it that can fail sets its own location, so
/// that a run need not be set up for that.
pub fn is_simple(routine: &Routine) -> bool {
    routine.iterators.is_empty() && is_never_charged(&routine.code)
}

fn is_never_charged(code: &[Instr]) -> bool {
    code.iter().all(|instr| match instr {
        Instr::Comment(_)
        | Instr::Label(_)
        | Instr::Goto(_)
        | Instr::SetLong(..)
        | Instr::SetGlobalLong(..)
        | Instr::Count { .. }
        | Instr::SaveLong(..)
        | Instr::Filter
        | Instr::Rearm
        | Instr::Check(_)
        | Instr::Hold { .. }
        | Instr::HoldWhole { .. } => true,
        Instr::If { then, otherwise, .. } => is_never_charged(then) && is_never_charged(otherwise),
        Instr::Map { keys, location: None, .. } if keys.is_empty() => true,
        Instr::Map { map, keys, op, .. } => is_one_element(keys) && uses_one_cpu(map, op),
        Instr::Record { parts, location: None, .. } => {
            parts.iter().all(|part| matches!(part, Part::Long(_) | Part::Text(_)))
        }
        Instr::Call { callee: Callee::Builtin(symbol), arguments, outcome: Outcome::Text(..), location: None } => {
            arguments.is_empty() && is_plain_builtin(symbol)
        }
        Instr::Call { callee: Callee::Builtin(_), arguments, location: None, .. } => {
            arguments.iter().all(|it| matches!(it, Argument::Long(_)))
        }
        _ => false,
    })
}

fn is_one_element(keys: &[Key]) -> bool {
    !keys.is_empty() && !keys.contains(&Key::Any)
}

/// An operation on one element that does not visit all CPUs.
fn uses_one_cpu(map: &MapRef, op: &MapOp) -> bool {
    match op {
        MapOp::Count(_) | MapOp::Feed(_) | MapOp::Has(_) | MapOp::Delete => true,
        MapOp::Long(_) | MapOp::SetLong(_) | MapOp::SetText(_) | MapOp::Add(..) => !map.counted,
        MapOp::Text(..) | MapOp::Clear | MapOp::Extract(..) | MapOp::Bucket(..) | MapOp::HasBucket(..) => false,
    }
}

fn is_plain_builtin(symbol: &str) -> bool {
    crate::builtin::all().any(|builtin| builtin.symbol == symbol && builtin.plain)
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Const(_)
        | Value::Long(_)
        | Value::Global(_)
        | Value::Register(_)
        | Value::KernelAddress { per_cpu: false, .. } => true,
        Value::Negate(inner)
        | Value::Not(inner)
        | Value::Complement(inner)
        | Value::SignExtend(inner, _)
        | Value::Bits(inner, _) => is_plain(inner),
        Value::Binary(_, left, right) => is_plain(left) && is_plain(right),
        Value::Conditional(a, b, c) => is_plain(a) && is_plain(b) && is_plain(c),
        Value::Own(_)
        | Value::KernelAddress { per_cpu: true, .. }
        | Value::ModuleAddress { .. }
        | Value::Compare(..)
        | Value::Saved(_)
        | Value::Length(_) => false,
    }
}

/// The same code without [`Instr::Comment`], at any depth.
pub fn without_comments(code: &[Instr]) -> Vec<Instr> {
    let instructions = code.iter().filter(|instr| !matches!(instr, Instr::Comment(_)));
    instructions
        .map(|instr| match instr {
            Instr::If { condition, then, otherwise } => Instr::If {
                condition: condition.clone(),
                then: without_comments(then),
                otherwise: without_comments(otherwise),
            },
            Instr::Loop(body) => Instr::Loop(without_comments(body)),
            Instr::Foreach(foreach) => {
                Instr::Foreach(Box::new(Loop { body: without_comments(&foreach.body), ..(**foreach).clone() }))
            }
            _ => instr.clone(),
        })
        .collect()
}

/// Calls `see` for each instruction, including nested ones.
pub fn each<'c>(code: &'c [Instr], see: &mut dyn FnMut(&'c Instr)) {
    for instr in code {
        see(instr);
        match instr {
            Instr::If { then, otherwise, .. } => {
                each(then, see);
                each(otherwise, see);
            }
            Instr::Loop(body) => each(body, see),
            Instr::Foreach(inner) => each(&inner.body, see),
            _ => {}
        }
    }
}

/// Calls `see` for the symbol of each routine that the code calls, as often as it does.
pub fn calls<'c>(code: &'c [Instr], see: &mut dyn FnMut(&'c str)) {
    each(code, &mut |instr| {
        if let Instr::Call { callee: Callee::Routine(symbol), .. } = instr {
            see(symbol);
        }
    });
}

/// The aggregates whose least or greatest value is used.
pub(in crate::plan) fn asked_for_ends(routines: &[Routine]) -> HashSet<GlobalId> {
    let mut found = HashSet::new();
    for routine in routines {
        each(&routine.code, &mut |instr| {
            if let Instr::Map { map, op: MapOp::Extract(_, Extractor::Min | Extractor::Max), .. } = instr {
                found.insert(map.id);
            }
        });
    }
    found
}

/// The bytecode that the module interprets for the routines, apart from that of their tables of parts.
pub(in crate::plan) fn interpreted(routines: &[Routine]) -> HashSet<TableId> {
    let mut found = HashSet::new();
    for routine in routines {
        each(&routine.code, &mut |instr| {
            let (Instr::Record { parts, .. } | Instr::Format { parts, .. }) = instr else { return };
            found.extend(
                parts.iter().filter_map(|part| if let Part::Pretty { table, .. } = part { Some(*table) } else { None }),
            );
            if let Instr::Format { table, .. } = instr {
                found.insert(*table);
            }
        });
    }
    found
}

/// The tables of parts that the routines print by.
pub(in crate::plan) fn items(routines: &[Routine]) -> HashSet<ItemsId> {
    let mut found = HashSet::new();
    for routine in routines {
        each(&routine.code, &mut |instr| {
            let (Instr::Record { parts, .. } | Instr::Format { parts, .. }) = instr else { return };
            found.extend(
                parts.iter().filter_map(|part| if let Part::Items { items, .. } = part { Some(*items) } else { None }),
            );
        });
    }
    found
}

/// Drops routines that no root reaches by calls, because those calls were all replaced.
pub(in crate::plan) fn keep_called(routines: &mut Vec<Routine>, roots: HashSet<String>) {
    let by_symbol: HashMap<&str, &Routine> =
        routines.iter().map(|routine| (routine.symbol.as_str(), routine)).collect();
    let mut open: Vec<String> = roots.iter().cloned().collect();
    let mut called = roots;
    while let Some(symbol) = open.pop() {
        let code = by_symbol.get(symbol.as_str()).map_or(&[][..], |routine| &routine.code);
        calls(code, &mut |symbol| {
            if called.insert(symbol.to_string()) {
                open.push(symbol.to_string());
            }
        });
    }
    routines.retain(|routine| called.contains(&routine.symbol));
}

#[cfg(test)]
mod tests {
    use super::super::tests::routine;
    use super::super::{BufferId, FormatId, LabelId, LocationId, NumberAccess, NumberRef};
    use super::*;

    fn count(value: Value) -> Instr {
        let global = NumberRef { id: GlobalId(0), symbol: "global_n".into(), access: NumberAccess::Counter(3) };
        Instr::Count { counter: 3, global, value }
    }

    fn extract(id: u32, extractor: Extractor) -> Instr {
        let map = MapRef { id: GlobalId(id), symbol: "global_s".into(), counted: false, striped: false };
        Instr::Map { map, keys: Vec::new(), op: MapOp::Extract(LongId(0), extractor), location: Some(LocationId(1)) }
    }

    #[test]
    fn one_constant_added_to_one_counter_is_all() {
        let comment = || Instr::Comment("n += 2".into());
        assert_eq!(only_adds(&[comment(), count(Value::Const(2))]), Some((3, 2)));
        assert_eq!(only_adds(&[comment()]), None);
        assert_eq!(only_adds(&[count(Value::Register(96))]), None);
        assert_eq!(only_adds(&[count(Value::Const(1)), count(Value::Const(1))]), None);
        let conditional =
            Instr::If { condition: Value::Const(1), then: vec![count(Value::Const(1))], otherwise: vec![] };
        assert_eq!(only_adds(&[conditional]), None);
    }

    #[test]
    fn what_is_charged_or_fails_without_a_location_is_not_simple() {
        let simple = |code| is_simple(&routine("probe_0", code));
        let record = |location| Instr::Record {
            format: FormatId(0),
            parts: vec![Part::Long(Value::Const(1))],
            objects: Value::Const(0),
            location,
        };
        assert!(simple(vec![record(None)]));
        assert!(!simple(vec![record(Some(LocationId(1)))]));
        assert!(!simple(vec![Instr::Charge { statements: 1, location: LocationId(1) }]));
        assert!(!simple(vec![extract(0, Extractor::Count)]));
        let call = |callee| Instr::Call { callee, arguments: Vec::new(), outcome: Outcome::None, location: None };
        assert!(simple(vec![call(Callee::Builtin("pid"))]));
        assert!(!simple(vec![call(Callee::Routine("function_f".into()))]));
        let nested =
            Instr::If { condition: Value::Const(1), then: vec![], otherwise: vec![extract(0, Extractor::Sum)] };
        assert!(!simple(vec![nested]));
        let element = |keys, op| Instr::Map {
            map: MapRef { id: GlobalId(0), symbol: "global_a".into(), counted: true, striped: false },
            keys,
            op,
            location: Some(LocationId(1)),
        };
        let key = || Key::Long(Value::Const(1));
        assert!(simple(vec![element(vec![key()], MapOp::Count(Value::Const(1))), Instr::Check(LabelId(0))]));
        // Merges the counts of the CPUs, which is charged.
        assert!(!simple(vec![element(vec![key()], MapOp::SetLong(Value::Const(1)))]));
        assert!(!simple(vec![element(vec![key(), Key::Any], MapOp::Delete)]));
        let named = |symbol| Instr::Call {
            callee: Callee::Builtin(symbol),
            arguments: Vec::new(),
            outcome: Outcome::Text(BufferId(0), TextId(0)),
            location: None,
        };
        assert!(simple(vec![named("execname")]));
        assert!(!simple(vec![named("cmdline_str")]));
        assert!(!only_counts(&[named("execname")]));
    }

    #[test]
    fn a_called_function_may_set_globals_and_registers() {
        let call = |callee| Instr::Call { callee, arguments: Vec::new(), outcome: Outcome::None, location: None };
        for callee in [Callee::Routine("function_f".into()), Callee::Embedded("embedded_f".into())] {
            let code = [Instr::If { condition: Value::Const(1), then: vec![call(callee)], otherwise: vec![] }];
            assert!(changes_value(&code, &Value::Register(96)));
            assert!(!changes_value(&code, &Value::Saved(0)) && !changes_value(&code, &Value::Long(LongId(0))));
        }
        assert!(!changes_value(&[call(Callee::Builtin("pid"))], &Value::Register(96)));
        let set = [Instr::SetRegister(96, Value::Const(0))];
        assert!(changes_value(&set, &Value::Register(96)) && !changes_value(&set, &Value::Register(104)));
    }

    #[test]
    fn ends_are_kept_where_they_are_asked_for() {
        let routines = [
            routine("probe_0", vec![extract(0, Extractor::Min), extract(1, Extractor::Sum)]),
            routine("probe_1", vec![Instr::Loop(vec![extract(2, Extractor::Max)])]),
        ];
        assert_eq!(asked_for_ends(&routines), HashSet::from([GlobalId(0), GlobalId(2)]));
    }
}
