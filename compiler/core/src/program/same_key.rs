// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether a handler uses only one element of an array, whose keys are known when the handler takes its stripes: after its
//! lead-in (lead_in.rs).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    BinaryOp, Comparison, Expr, GlobalId, LocalId, LongExpr, LongKind, SavedId, StringExpr, StringKind, Variable,
};
use crate::builtin::Builtin;
use spile_source::Span;

/// A key that is the same for the rest of a run when its stripes are taken; evaluated there, it has no effect, and fails only
/// where the run would fail without one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fixed {
    Long(i64),
    Text(Vec<u8>),
    Local(LocalId),
    Register(u32),
    /// Of a variable: as in [`LongKind::KernelAddress`].
    Address(u64, bool),
    /// Of so many bytes, and whether in the address space of a process.
    Read(Box<Fixed>, u8, bool),
    Saved(SavedId),
    /// Builtins that describe the task or the CPU.
    Builtin(&'static str),
    SignExtend(Box<Fixed>, u8),
    Bits(Box<Fixed>, u8, u8),
    Negate(Box<Fixed>),
    Not(Box<Fixed>),
    Complement(Box<Fixed>),
    Binary(BinaryOp, Box<Fixed>, Box<Fixed>),
    Compare(Comparison, Box<Fixed>, Box<Fixed>),
}

/// What else is known when a run takes its stripes, besides what is the same throughout it.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Locals that nothing writes from there on.
    settled: BTreeSet<LocalId>,
    /// What the run reads from memory next, whatever happens, before it does anything else. A run that uses such a value as
    /// a key uses the value that was read first.
    read: Vec<Fixed>,
}

impl Known {
    /// Where these locals are not written any more.
    pub fn with(settled: BTreeSet<LocalId>) -> Known {
        Known { settled, read: Vec::new() }
    }

    /// The expression is evaluated next, and nothing that it depends on is memory that the run may write. Addresses and
    /// what they lead to are to be added from the inside to the outside.
    pub fn reads(&mut self, expr: &LongExpr) {
        let fixed = match &expr.kind {
            LongKind::Read { address, size, user } => Fixed::read(address, *size, *user, self),
            LongKind::KernelAddress { address, per_cpu } => Some(Fixed::Address(*address, *per_cpu)),
            _ => None,
        };
        self.read.extend(fixed);
    }

    /// The same without what is read from memory.
    fn without_memory(&self) -> Known {
        Known::with(self.settled.clone())
    }

    /// What was read, not anything else that may fail.
    fn if_read(&self, fixed: Fixed) -> Option<Fixed> {
        self.read.contains(&fixed).then_some(fixed)
    }

    /// Whether the expression has the same value for the rest of a run, and has no effect.
    pub fn has(&self, expr: &Expr) -> bool {
        Fixed::of(expr, self).is_some()
    }
}

impl Fixed {
    fn of(expr: &Expr, known: &Known) -> Option<Fixed> {
        match expr {
            Expr::Long(expr) => Fixed::of_long(expr, known),
            Expr::String(expr) => Fixed::of_text(expr, known),
        }
    }

    fn read(address: &LongExpr, size: u8, user: bool, known: &Known) -> Option<Fixed> {
        Some(Fixed::Read(Box::new(Fixed::of_long(address, known)?), size, user))
    }

    fn of_variable(variable: Variable, known: &Known) -> Option<Fixed> {
        match variable {
            Variable::Local(local) if known.settled.contains(&local) => Some(Fixed::Local(local)),
            _ => None,
        }
    }

    fn of_text(expr: &StringExpr, known: &Known) -> Option<Fixed> {
        match &expr.kind {
            StringKind::Literal(bytes) => Some(Fixed::Text(bytes.clone())),
            StringKind::Variable(variable) => Fixed::of_variable(*variable, known),
            StringKind::Builtin(builtin, arguments) => Fixed::of_builtin(builtin, arguments),
            _ => None,
        }
    }

    fn of_long(expr: &LongExpr, known: &Known) -> Option<Fixed> {
        match &expr.kind {
            LongKind::Const(value) => Some(Fixed::Long(*value)),
            LongKind::Variable(variable) => Fixed::of_variable(*variable, known),
            LongKind::Read { address, size, user } => known.if_read(Fixed::read(address, *size, *user, known)?),
            LongKind::KernelAddress { address, per_cpu } => known.if_read(Fixed::Address(*address, *per_cpu)),
            LongKind::Register { offset } => Some(Fixed::Register(*offset)),
            LongKind::Saved(id) => Some(Fixed::Saved(*id)),
            LongKind::Builtin(builtin, arguments) => Fixed::of_builtin(builtin, arguments),
            LongKind::SignExtend(inner, bits) => {
                Some(Fixed::SignExtend(Box::new(Fixed::of_long(inner, known)?), *bits))
            }
            LongKind::Bits { value, first, bits } => {
                Some(Fixed::Bits(Box::new(Fixed::of_long(value, known)?), *first, *bits))
            }
            LongKind::Negate(inner) => Some(Fixed::Negate(Box::new(Fixed::of_long(inner, known)?))),
            LongKind::Not(inner) => Some(Fixed::Not(Box::new(Fixed::of_long(inner, known)?))),
            LongKind::Complement(inner) => Some(Fixed::Complement(Box::new(Fixed::of_long(inner, known)?))),
            // By anything else it might fail.
            LongKind::Binary(BinaryOp::Divide | BinaryOp::Modulo, _, right)
                if !matches!(right.kind, LongKind::Const(1..)) =>
            {
                None
            }
            LongKind::Binary(op, left, right) => Some(Fixed::Binary(
                *op,
                Box::new(Fixed::of_long(left, known)?),
                Box::new(Fixed::of_long(right, known)?),
            )),
            LongKind::Compare(op, left, right) => Some(Fixed::Compare(
                *op,
                Box::new(Fixed::of_text(left, known)?),
                Box::new(Fixed::of_text(right, known)?),
            )),
            _ => None,
        }
    }

    fn of_builtin(builtin: &Builtin, arguments: &[Expr]) -> Option<Fixed> {
        (builtin.plain && builtin.pure && arguments.is_empty()).then_some(Fixed::Builtin(builtin.symbol))
    }

    fn all(keys: &[Expr], known: &Known) -> Option<Vec<Fixed>> {
        keys.iter().map(|key| Fixed::of(key, known)).collect()
    }
}

/// Why code may use more of an array than one element that is known when it takes its stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// It iterates over the array, deletes it, or looks for any of several elements.
    Whole(Span),
    /// A key is computed from something that may change meanwhile, or that is not known before the code has done
    /// something else.
    Computed(Span),
    /// It uses another element too.
    Another(Span),
    /// A function that it calls there does one of these, or calls itself.
    Called(Span),
    /// It may change the probed registers, from which keys are computed.
    Registers,
}

/// One element of an array.
#[derive(Clone, Debug)]
struct Element {
    keys: Vec<Expr>,
    fixed: Vec<Fixed>,
    /// The code itself names it.
    named: bool,
    /// Functions that it calls do.
    called: bool,
}

/// What code uses of arrays: the keys, if it is one element of each.
#[derive(Clone, Debug, Default)]
pub struct SameKeys(BTreeMap<GlobalId, Result<Element, More>>);

impl SameKeys {
    /// The code uses more of the array than one element. The first reason is kept.
    pub fn more(&mut self, array: GlobalId, why: More) {
        let element = self.0.entry(array).or_insert(Err(why));
        if element.is_ok() {
            *element = Err(why);
        }
    }

    /// The code uses this element, at that place.
    pub fn element(&mut self, array: GlobalId, keys: Vec<Expr>, known: &Known, span: Span) {
        match Fixed::all(&keys, known) {
            Some(fixed) => self.add(array, Element { keys, fixed, named: true, called: false }, span),
            None => self.more(array, More::Computed(span)),
        }
    }

    /// A function that the code calls uses this element. It evaluates the keys itself.
    pub fn called(&mut self, array: GlobalId, keys: Vec<Expr>, known: &Known, span: Span) {
        match Fixed::all(&keys, &known.without_memory()) {
            Some(fixed) => self.add(array, Element { keys, fixed, named: false, called: true }, span),
            None => self.more(array, More::Called(span)),
        }
    }

    fn add(&mut self, array: GlobalId, element: Element, span: Span) {
        match self.0.get_mut(&array) {
            None => {
                self.0.insert(array, Ok(element));
            }
            Some(Ok(before)) if before.fixed == element.fixed => {
                before.named |= element.named;
                before.called |= element.called;
            }
            Some(_) => self.more(array, More::Another(span)),
        }
    }

    /// Whether some keys are not known.
    pub fn has_computed(&self) -> bool {
        self.0.values().any(|element| matches!(element, Err(More::Computed(_))))
    }

    /// The probed registers may change.
    pub fn registers_change(&mut self) {
        self.0.values_mut().filter(|element| element.is_ok()).for_each(|element| *element = Err(More::Registers));
    }

    /// The keys, if the code uses only one element of the array; and whether functions that it calls use it too.
    pub fn of(&self, array: GlobalId) -> Option<(&[Expr], bool)> {
        let element = self.0.get(&array)?.as_ref().ok()?;
        Some((&element.keys, element.called))
    }

    /// Whether the code uses any of the array, besides what it calls.
    pub fn has(&self, array: GlobalId) -> bool {
        self.0.contains_key(&array)
    }

    /// Why it is more than one element, if it is.
    pub fn why_more(&self, array: GlobalId) -> Option<More> {
        self.0.get(&array)?.as_ref().err().copied()
    }
}
