// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether a handler uses only one element of an array, whose keys are known before the handler begins.

use std::collections::BTreeMap;

use super::{BinaryOp, Comparison, Expr, GlobalId, LongExpr, LongKind, SavedId, StringExpr, StringKind};
use crate::builtin::Builtin;
use spile_source::Span;

/// A key that is constant throughout a run: evaluated at its beginning, it cannot fail, and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fixed {
    Long(i64),
    Text(Vec<u8>),
    Register(u32),
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

/// Whether the expression has the same value throughout a run, cannot fail and has no effect.
pub fn is_fixed(expr: &Expr) -> bool {
    Fixed::of(expr).is_some()
}

impl Fixed {
    fn of(expr: &Expr) -> Option<Fixed> {
        match expr {
            Expr::Long(expr) => Fixed::of_long(expr),
            Expr::String(expr) => Fixed::of_text(expr),
        }
    }

    fn of_text(expr: &StringExpr) -> Option<Fixed> {
        match &expr.kind {
            StringKind::Literal(bytes) => Some(Fixed::Text(bytes.clone())),
            StringKind::Builtin(builtin, arguments) => Fixed::of_builtin(builtin, arguments),
            _ => None,
        }
    }

    fn of_long(expr: &LongExpr) -> Option<Fixed> {
        match &expr.kind {
            LongKind::Const(value) => Some(Fixed::Long(*value)),
            LongKind::Register { offset } => Some(Fixed::Register(*offset)),
            LongKind::Saved(id) => Some(Fixed::Saved(*id)),
            LongKind::Builtin(builtin, arguments) => Fixed::of_builtin(builtin, arguments),
            LongKind::SignExtend(inner, bits) => Some(Fixed::SignExtend(Box::new(Fixed::of_long(inner)?), *bits)),
            LongKind::Bits { value, first, bits } => Some(Fixed::Bits(Box::new(Fixed::of_long(value)?), *first, *bits)),
            LongKind::Negate(inner) => Some(Fixed::Negate(Box::new(Fixed::of_long(inner)?))),
            LongKind::Not(inner) => Some(Fixed::Not(Box::new(Fixed::of_long(inner)?))),
            LongKind::Complement(inner) => Some(Fixed::Complement(Box::new(Fixed::of_long(inner)?))),
            // By anything else it might fail.
            LongKind::Binary(BinaryOp::Divide | BinaryOp::Modulo, _, right)
                if !matches!(right.kind, LongKind::Const(1..)) =>
            {
                None
            }
            LongKind::Binary(op, left, right) => {
                Some(Fixed::Binary(*op, Box::new(Fixed::of_long(left)?), Box::new(Fixed::of_long(right)?)))
            }
            LongKind::Compare(op, left, right) => {
                Some(Fixed::Compare(*op, Box::new(Fixed::of_text(left)?), Box::new(Fixed::of_text(right)?)))
            }
            _ => None,
        }
    }

    fn of_builtin(builtin: &Builtin, arguments: &[Expr]) -> Option<Fixed> {
        (builtin.plain && builtin.pure && arguments.is_empty()).then_some(Fixed::Builtin(builtin.symbol))
    }

    fn all(keys: &[Expr]) -> Option<Vec<Fixed>> {
        keys.iter().map(Fixed::of).collect()
    }
}

/// Why code may use more of an array than one element that is known when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// It iterates over the array, deletes it, or looks for any of several elements.
    Whole(Span),
    /// A key is computed from something that may change meanwhile, may fail, or is not known at the beginning.
    Computed(Span),
    /// It uses another element too.
    Another(Span),
    /// A function that it calls uses the array.
    Called,
    /// It may change the probed registers, from which keys are computed.
    Registers,
}

/// What code uses of arrays: the keys, if it is one element of each.
#[derive(Clone, Debug, Default)]
pub struct SameKeys(BTreeMap<GlobalId, Result<Vec<Expr>, More>>);

impl SameKeys {
    /// The code uses more of the array than one element. The first reason is kept.
    pub fn more(&mut self, array: GlobalId, why: More) {
        let known = self.0.entry(array).or_insert(Err(why));
        if known.is_ok() {
            *known = Err(why);
        }
    }

    /// The code uses this element, at that place.
    pub fn element(&mut self, array: GlobalId, keys: Vec<Expr>, span: Span) {
        let Some(fixed) = Fixed::all(&keys) else {
            return self.more(array, More::Computed(span));
        };
        match self.0.get(&array) {
            None => {
                self.0.insert(array, Ok(keys));
            }
            Some(Ok(before)) if Fixed::all(before) == Some(fixed) => {}
            Some(_) => self.more(array, More::Another(span)),
        }
    }

    /// Whether some keys are not known when the code begins.
    pub fn has_computed(&self) -> bool {
        self.0.values().any(|keys| matches!(keys, Err(More::Computed(_))))
    }

    /// The probed registers may change.
    pub fn registers_change(&mut self) {
        self.0.values_mut().filter(|keys| keys.is_ok()).for_each(|keys| *keys = Err(More::Registers));
    }

    /// The keys, if the code uses only one element of the array.
    pub fn of(&self, array: GlobalId) -> Option<&[Expr]> {
        self.0.get(&array)?.as_deref().ok()
    }

    /// Why it is more than one element, if it is.
    pub fn why_more(&self, array: GlobalId) -> Option<More> {
        self.0.get(&array)?.as_ref().err().copied()
    }
}
