// SPDX-License-Identifier: GPL-2.0-or-later

//! Which C type the values of variables point to: `x = $file` gives `x->f_path` a meaning.
//!
//! Inference records every place where a value is stored in a variable, parameter, result or element; once all are known,
//! the types of the values are found and propagated until nothing changes. Where two places disagree, the variable has no
//! such type.

use super::Inference;
use crate::elaborate::typed::Pointed;
use crate::elaborate::types::TypeVar;
use crate::elaborate::unit::{Handler, InstanceId, Unit};
use spile_syntax::ast::{self, ExprKind};

/// The unit that contains the place.
#[derive(Clone, Copy)]
enum Owner {
    Handler(u32),
    Function(InstanceId),
}

/// A value and where it is stored.
pub(super) struct Flow<'a> {
    value: &'a ast::Expr,
    owner: Owner,
    /// It is evaluated at the probed function's entry.
    at_entry: bool,
    to: TypeVar,
}

/// Rounds of propagation: longer chains of assignments against the order of the script lose their types.
const MAX_ROUNDS: usize = 16;

impl<'a> Inference<'_, 'a> {
    /// Records that the value is stored in a variable with the type variable `to`.
    pub(super) fn note_flow(&mut self, unit: &Unit, value: &'a ast::Expr, to: TypeVar) {
        let owner = match (unit.function, unit.at.site) {
            (Some(function), _) => Owner::Function(function),
            (None, Some(site)) => Owner::Handler(site),
            (None, None) => return,
        };
        if self.dead == 0 && passes_on(value) {
            let at_entry = self.typed.at_entry;
            self.flows.push(Flow { value, owner, at_entry, to });
        }
    }

    /// Finds what variables point to.
    pub(super) fn find_pointees(&mut self, handlers: &[Handler<'a>]) {
        let flows = std::mem::take(&mut self.flows);
        // Each round resolves one more step of a chain of assignments.
        for _ in 0..MAX_ROUNDS {
            let mut changed = false;
            for flow in &flows {
                self.typed.at_entry = flow.at_entry;
                let found = match flow.owner {
                    Owner::Handler(site) => match handlers.get(site as usize) {
                        Some(handler) => self.lookup().pointee(&handler.unit, flow.value),
                        None => Pointed::Unknown,
                    },
                    Owner::Function(index) => {
                        let unit = std::mem::take(&mut self.typed.functions[index.index()].unit);
                        let found = self.lookup().pointee(&unit, flow.value);
                        self.typed.functions[index.index()].unit = unit;
                        found
                    }
                };
                let root = self.typed.types.root(flow.to);
                let known = self.typed.pointees.get(&root).cloned().unwrap_or(Pointed::Unknown);
                let joined = match (known, found) {
                    (Pointed::Several, _) | (_, Pointed::Unknown) => continue,
                    (Pointed::To(before), Pointed::To(found)) if self.typed.is_same(&before, &found) => continue,
                    (Pointed::Unknown, found) => found,
                    (Pointed::To(_), _) => Pointed::Several,
                };
                self.typed.pointees.insert(root, joined);
                changed = true;
            }
            self.typed.at_entry = false;
            if !changed {
                break;
            }
        }
    }
}

/// Whether the value of such an expression can be a pointer.
fn passes_on(expr: &ast::Expr) -> bool {
    !matches!(
        expr.kind,
        ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Binary(..)
            | ExprKind::Unary(..)
            | ExprKind::Print(_)
            | ExprKind::Step { .. }
    )
}
