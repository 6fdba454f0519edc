// SPDX-License-Identifier: GPL-2.0-or-later

//! Values that a handler computes early: parts of the keys of elements whose stripes it takes, such as `task_tid($next)`,
//! although the script computes them later, after effects, or perhaps not at all. They depend only on registers, the task
//! and memory that the script does not write. The script can tell an early value from its own only by the moment at
//! which memory is read; so wherever the script computes the value, it gets the early one. If that could not be computed,
//! no stripe is of use, and the error is raised where the script computes the value, if it does.

use super::Builder;
use crate::plan::code::*;
use crate::plan::error::Planned;
use crate::program::LongExpr;
use crate::program::element_uses::{EarlyValue, KnownValues};

/// What the routine has computed early.
#[derive(Default)]
pub(super) struct EarlyValues<'p> {
    values: Vec<Computed>,
    known: Option<&'p KnownValues>,
    /// The code that follows is the script's.
    checked: bool,
    /// Takes the messages of errors, which nothing reads.
    message: Option<(BufferId, TextId)>,
}

struct Computed {
    value: EarlyValue,
    /// 0 if it could not be computed.
    is_there: LongId,
    number: LongId,
}

impl<'p> Builder<'p, '_> {
    /// Computes the value of the expression.
    pub(in crate::plan) fn compute_early(
        &mut self,
        value: EarlyValue,
        expr: &LongExpr,
        known: &'p KnownValues,
    ) -> Planned<()> {
        let (is_there, number) = (self.temporary(), self.temporary());
        self.push(Instr::SetLong(is_there, Value::Const(0)));
        self.push(Instr::SetLong(number, Value::Const(0)));
        let (caught, done) = (self.label(), self.label());
        let outer = std::mem::replace(&mut self.failed, caught);
        let computed = self.computed(expr)?;
        self.failed = outer;
        self.push(Instr::SetLong(number, computed));
        self.push(Instr::SetLong(is_there, Value::Const(1)));
        self.push(Instr::Goto(done));
        self.push(Instr::Label(caught));
        let (buffer, to) = self.early.message.unwrap_or_else(|| self.temporary_text());
        self.early.message = Some((buffer, to));
        self.push(Instr::Catch { buffer, to, uncaught: outer });
        self.push(Instr::Label(done));
        self.early.values.push(Computed { value, is_there, number });
        self.early.known = Some(known);
        Ok(())
    }

    /// The script's own code follows.
    pub(in crate::plan) fn early_values_are_checked(&mut self) {
        self.early.checked = true;
    }

    /// The value, if it has been computed early.
    pub(super) fn early_value(&mut self, expr: &LongExpr) -> Planned<Option<Value>> {
        let Some(known) = self.early.known else { return Ok(None) };
        let Some(value) = EarlyValue::of(expr, known) else { return Ok(None) };
        let Some(computed) = self.early.values.iter().find(|computed| computed.value == value) else { return Ok(None) };
        let (is_there, number) = (computed.is_there, computed.number);
        if self.early.checked {
            // Fails in the same way again; if memory can be read only now, the run does not have the stripe.
            let ((), otherwise) = self.apart(|builder| {
                builder.computed(expr)?;
                let text = Text::Literal(b"a key could not be computed when the probe was hit".to_vec());
                let location = Some(builder.location(expr.span));
                let (callee, arguments) = (Callee::Builtin("error"), vec![Argument::Text(text)]);
                builder.push(Instr::Call { callee, arguments, outcome: Outcome::None, location });
                builder.check();
                Ok(())
            })?;
            self.push(Instr::If {
                condition: Value::Not(Box::new(Value::Long(is_there))),
                then: otherwise,
                otherwise: Vec::new(),
            });
        }
        Ok(Some(Value::Long(number)))
    }
}
