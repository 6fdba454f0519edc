// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether all that a handler does with an array it does with one element, whose keys are known before the handler begins.

use std::collections::BTreeMap;

use super::{Expr, GlobalId, LongExpr, LongKind, SavedId, StringKind};
use crate::builtin::Builtin;

/// A key that is the same throughout a run: computed at its beginning, it cannot fail, and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fixed {
    Long(i64),
    Text(Vec<u8>),
    Register(u32),
    Saved(SavedId),
    /// What a builtin says of the task or the CPU.
    Builtin(&'static str),
    SignExtend(Box<Fixed>, u8),
    Bits(Box<Fixed>, u8, u8),
}

impl Fixed {
    fn of(expr: &Expr) -> Option<Fixed> {
        match expr {
            Expr::Long(expr) => Fixed::of_long(expr),
            Expr::String(expr) => match &expr.kind {
                StringKind::Literal(bytes) => Some(Fixed::Text(bytes.clone())),
                StringKind::Builtin(builtin, arguments) => Fixed::of_builtin(builtin, arguments),
                _ => None,
            },
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
            _ => None,
        }
    }

    fn of_builtin(builtin: &Builtin, arguments: &[Expr]) -> Option<Fixed> {
        (builtin.plain && builtin.pure && arguments.is_empty()).then_some(Fixed::Builtin(builtin.symbol))
    }

    fn all(keys: &[&Expr]) -> Option<Vec<Fixed>> {
        keys.iter().map(|key| Fixed::of(key)).collect()
    }
}

/// What code touches of arrays: the keys where it is one element of each.
#[derive(Clone, Debug, Default)]
pub struct SameKeys(BTreeMap<GlobalId, Option<Vec<Expr>>>);

impl SameKeys {
    /// The code uses more of the array than elements.
    pub fn whole(&mut self, array: GlobalId) {
        self.0.insert(array, None);
    }

    /// The code uses this element.
    pub fn element(&mut self, array: GlobalId, keys: &[&Expr]) {
        let fixed = Fixed::all(keys);
        let same = match self.0.get(&array) {
            None => fixed.is_some(),
            Some(Some(before)) => fixed.is_some() && Fixed::all(&before.iter().collect::<Vec<_>>()) == fixed,
            Some(None) => false,
        };
        self.0.insert(array, same.then(|| keys.iter().map(|&key| key.clone()).collect()));
    }

    /// What is done with each array may be done with other elements too.
    pub fn all_whole(&mut self) {
        self.0.values_mut().for_each(|keys| *keys = None);
    }

    /// The keys, where all is done with one element of the array.
    pub fn of(&self, array: GlobalId) -> Option<&[Expr]> {
        self.0.get(&array)?.as_deref()
    }
}
