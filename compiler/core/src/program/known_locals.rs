// SPDX-License-Identifier: GPL-2.0-or-later

//! Locals whose value is known without running the code that assigns it: `t = tid()`, if nothing else assigns to `t`. In
//! what runs only after that, the local stands for the expression.

use std::collections::{BTreeMap, BTreeSet};

use super::{Expr, LocalId, LongExpr, LongKind, LongPlace, StringExpr, StringKind, StringPlace, Variable};

/// The locals of the code that is being walked.
#[derive(Clone, Debug, Default)]
pub struct KnownLocals {
    /// Locals that a walk before this one has found to be assigned at one place.
    once: BTreeSet<LocalId>,
    /// How many places assign to each.
    places: BTreeMap<LocalId, u32>,
    /// Expressions of those assigned before the place where the walk is. None of them names a known local.
    values: Values,
}

/// What is known at one place.
pub type Values = BTreeMap<LocalId, Expr>;

impl KnownLocals {
    /// Where these values are known.
    pub fn of(values: Values) -> KnownLocals {
        KnownLocals { values, ..KnownLocals::default() }
    }

    /// What something writes to.
    pub fn all_written(&self) -> impl Iterator<Item = LocalId> {
        self.places.keys().copied()
    }

    /// For another walk over the same code.
    pub fn again(&self) -> KnownLocals {
        let once = self.places.iter().filter(|&(_, &places)| places == 1).map(|(&local, _)| local);
        KnownLocals { once: once.collect(), ..KnownLocals::default() }
    }

    /// Something writes to this local.
    pub fn written(&mut self, local: LocalId) {
        *self.places.entry(local).or_insert(0) += 1;
    }

    /// The statement that has been walked; what comes after it runs only after it. `fixed`: whether an expression that the
    /// local is assigned has the same value throughout a run.
    pub fn statement(&mut self, expr: &Expr, fixed: impl Fn(LocalId, &Expr) -> bool) {
        let Some((local, value)) = assigned(expr) else { return };
        if self.once.contains(&local) {
            let value = self.resolved(&value);
            if fixed(local, &value) {
                self.values.insert(local, value);
            }
        }
    }

    /// What is known here; to be handed to [`KnownLocals::restore`] after code that may not run, or not to its end.
    pub fn here(&self) -> Values {
        self.values.clone()
    }

    /// Forgets what code since then has assigned.
    pub fn restore(&mut self, values: Values) {
        self.values = values;
    }

    /// The expression with known locals replaced.
    pub fn resolved(&self, expr: &Expr) -> Expr {
        match expr {
            _ if self.values.is_empty() => expr.clone(),
            Expr::Long(expr) => Expr::Long(self.long(expr)),
            Expr::String(expr) => Expr::String(self.text(expr)),
        }
    }

    fn boxed(&self, expr: &LongExpr) -> Box<LongExpr> {
        Box::new(self.long(expr))
    }

    /// Only in operators that keys may have (element_uses.rs).
    fn long(&self, expr: &LongExpr) -> LongExpr {
        let kind = match &expr.kind {
            LongKind::Variable(Variable::Local(local)) => match self.values.get(local) {
                Some(Expr::Long(known)) => return known.clone(),
                _ => return expr.clone(),
            },
            LongKind::SignExtend(inner, bits) => LongKind::SignExtend(self.boxed(inner), *bits),
            LongKind::Bits { value, first, bits } => {
                LongKind::Bits { value: self.boxed(value), first: *first, bits: *bits }
            }
            LongKind::Negate(inner) => LongKind::Negate(self.boxed(inner)),
            LongKind::Not(inner) => LongKind::Not(self.boxed(inner)),
            LongKind::Complement(inner) => LongKind::Complement(self.boxed(inner)),
            LongKind::Binary(op, left, right) => LongKind::Binary(*op, self.boxed(left), self.boxed(right)),
            LongKind::Compare(op, left, right) => {
                LongKind::Compare(*op, Box::new(self.text(left)), Box::new(self.text(right)))
            }
            _ => return expr.clone(),
        };
        LongExpr { kind, span: expr.span }
    }

    fn text(&self, expr: &StringExpr) -> StringExpr {
        match &expr.kind {
            StringKind::Variable(Variable::Local(local)) => match self.values.get(local) {
                Some(Expr::String(known)) => known.clone(),
                _ => expr.clone(),
            },
            _ => expr.clone(),
        }
    }
}

/// A local and what is assigned to it. A string that is not a builtin's may be longer than what the local takes.
fn assigned(expr: &Expr) -> Option<(LocalId, Expr)> {
    match expr {
        Expr::Long(LongExpr { kind: LongKind::Assign(place, value), .. }) => match **place {
            LongPlace::Variable(Variable::Local(local)) => Some((local, Expr::Long((**value).clone()))),
            _ => None,
        },
        Expr::String(StringExpr { kind: StringKind::Assign(place, value), .. }) => match (&**place, &value.kind) {
            (&StringPlace::Variable(Variable::Local(local)), StringKind::Builtin(..) | StringKind::Variable(_)) => {
                Some((local, Expr::String((**value).clone())))
            }
            _ => None,
        },
        Expr::Long(_) | Expr::String(_) => None,
    }
}
