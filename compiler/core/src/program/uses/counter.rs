// SPDX-License-Identifier: GPL-2.0-or-later

//! Statements that only add to a number.

use crate::program::{BinaryOp, Element, Expr, GlobalId, LongExpr, LongKind, LongPlace, Variable};
use spile_source::Span;

/// A number that is added to without being read.
#[derive(Clone, Copy, Debug)]
pub struct CounterUpdate<'e> {
    /// The global, or the array.
    pub global: GlobalId,
    /// Keys of the array's element.
    pub keys: &'e [Expr],
    /// The amount added or subtracted.
    pub value: &'e LongExpr,
    /// It is subtracted.
    pub subtract: bool,
    /// The global with its keys.
    pub span: Span,
}

/// `global += value`, `array[keys]++` and the like, as an expression whose value is not used.
pub fn counter_update(expr: &Expr) -> Option<CounterUpdate<'_>> {
    let Expr::Long(LongExpr { kind: LongKind::Update { left, op, value, .. }, span }) = expr else { return None };
    let subtract = match op {
        BinaryOp::Add => false,
        BinaryOp::Subtract => true,
        _ => return None,
    };
    match &**left {
        &LongPlace::Variable(Variable::Global(global)) => {
            Some(CounterUpdate { global, keys: &[], value, subtract, span: *span })
        }
        LongPlace::Element(Element { global, keys, span, .. }) => {
            Some(CounterUpdate { global: *global, keys, value, subtract, span: *span })
        }
        _ => None,
    }
}
