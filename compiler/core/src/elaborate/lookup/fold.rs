// SPDX-License-Identifier: GPL-2.0-or-later

//! Conditions whose value is known at compile time: the branch not taken is neither typed nor resolved.

use super::Lookup;
use crate::elaborate::shown;
use crate::elaborate::unit::Unit;
use spile_syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

impl Lookup<'_, '_> {
    /// The value of an expression that consists of numbers, `@defined` and the like; None for all others.
    pub fn fold(&mut self, unit: &Unit, expr: &Expr) -> Option<i64> {
        match &expr.kind {
            ExprKind::Number(value) => Some(*value),
            ExprKind::ProbeWrite(name) => {
                let global = self.names.find_global(expr.span, name);
                let same = |(other, written): &(String, _)| other == name && *written == global;
                Some(i64::from(unit.user_writes.iter().any(same)))
            }
            ExprKind::Defined(operand) => Some(i64::from(self.is_defined(unit, operand))),
            ExprKind::Unary(UnaryOp::Not, operand) => self.fold(unit, operand).map(|value| i64::from(value == 0)),
            ExprKind::Unary(UnaryOp::Minus, operand) => self.fold(unit, operand).map(i64::wrapping_neg),
            ExprKind::Binary(op, left, right) => {
                if let Some(value) = self.decided(unit, *op, left) {
                    return Some(value);
                }
                let (left, right) = (self.fold(unit, left)?, self.fold(unit, right)?);
                binary(*op, left, right)
            }
            ExprKind::Call(..) => shown::value(self.env.shown.as_ref(), expr),
            _ => None,
        }
    }

    /// The value of `left && ...` or `left || ...` if the left side decides it.
    pub fn decided(&mut self, unit: &Unit, op: BinaryOp, left: &Expr) -> Option<i64> {
        match (op, self.fold(unit, left)?) {
            (BinaryOp::And, 0) => Some(0),
            (BinaryOp::Or, value) if value != 0 => Some(1),
            _ => None,
        }
    }
}

fn binary(op: BinaryOp, left: i64, right: i64) -> Option<i64> {
    let truth = match op {
        BinaryOp::And => left != 0 && right != 0,
        BinaryOp::Or => left != 0 || right != 0,
        BinaryOp::Equal => left == right,
        BinaryOp::NotEqual => left != right,
        BinaryOp::Less => left < right,
        BinaryOp::LessEqual => left <= right,
        BinaryOp::Greater => left > right,
        BinaryOp::GreaterEqual => left >= right,
        _ => return None,
    };
    Some(i64::from(truth))
}
