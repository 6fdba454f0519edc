// SPDX-License-Identifier: GPL-2.0-or-later

//! Statements.

use super::{Builder, Local, Scalar};
use crate::plan::code::*;
use crate::plan::error::{InternalError, Planned};
use crate::program::{self, Expr, LongExpr, Stmt, StmtKind};
use spile_source::Span;

impl Builder<'_, '_> {
    pub(in crate::plan) fn statements(&mut self, statements: &[Stmt]) -> Planned<()> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt) -> Planned<()> {
        let span = statement.span;
        if !matches!(statement.kind, StmtKind::Block(_)) {
            self.comment(span);
        }
        self.hold(Some(statement), span)?;
        match &statement.kind {
            StmtKind::Block(statements) => self.statements(statements)?,
            StmtKind::Expr(expr) => self.effect(expr)?,
            StmtKind::If { condition, then, otherwise } => {
                let condition = self.value(condition)?;
                let ((), then) = self.apart(|builder| builder.arm(then, span))?;
                let ((), otherwise) = self.apart(|builder| match otherwise {
                    Some(otherwise) => builder.arm(otherwise, span),
                    None => Ok(()),
                })?;
                self.push(Instr::If { condition, then, otherwise });
            }
            StmtKind::Loop { condition, step, body } => {
                self.script_loop(condition.as_ref(), step.as_ref(), body, span)?;
            }
            StmtKind::Break => {
                let (_, out) = self.innermost(span)?;
                self.push(Instr::Goto(out));
            }
            StmtKind::Continue => {
                let (again, _) = self.innermost(span)?;
                self.push(Instr::Goto(again));
            }
            StmtKind::Next => self.push(Instr::Goto(OUT)),
            StmtKind::Filter => {
                self.push(Instr::Filter);
                self.push(Instr::Goto(OUT));
            }
            StmtKind::Return(value) => {
                match value {
                    Some(Expr::Long(value)) => {
                        let value = self.value(value)?;
                        self.push(Instr::ReturnLong(value));
                    }
                    Some(Expr::String(text)) => {
                        let text = self.text(text)?;
                        self.return_text(text);
                    }
                    None => {}
                }
                self.push(Instr::Goto(OUT));
            }
            StmtKind::Delete(variable) => self.delete(*variable, span)?,
            StmtKind::DeleteElements { global, keys } => self.delete_elements(*global, keys, span)?,
            StmtKind::Clear(global) => self.clear(*global, span)?,
            StmtKind::Foreach(foreach) => self.foreach(foreach, span)?,
            StmtKind::Try { body, message, handler } => self.script_try(body, *message, handler, span)?,
        }
        Ok(())
    }

    /// Emits a comment with the script's line, unless the previous statement is on the same one.
    fn comment(&mut self, span: Span) {
        let line = self.tables.line(span);
        if self.line != Some(line) {
            self.line = Some(line);
            let text = self.tables.line_text(line);
            self.push(Instr::Comment(text));
        }
    }

    /// Targets of `continue` and `break`.
    fn innermost(&self, span: Span) -> Planned<(LabelId, LabelId)> {
        self.loops.last().copied().ok_or(InternalError::new("`break` or `continue` outside of a loop", span))
    }

    fn is_local(&self, text: TextId) -> bool {
        self.locals.iter().any(|local| matches!(local, Local::Text(id, _) if *id == text))
    }

    /// Strings that are only made to be returned are written to the caller's memory.
    fn return_text(&mut self, text: Text) {
        if let Text::Variable(made) = text
            && let Some(last) = self.buffers.len().checked_sub(1)
            // After an error, a partial string must not stay there when a `catch` of this function continues without a
            // result.
            && self.failed == OUT
            && !self.is_local(made)
            && let Some(places) = written(&mut self.code, (BufferId(last as u32), made))
        {
            places.into_iter().for_each(|place| *place = BufferId::RESULT);
            self.buffers.pop();
            self.push(Instr::ReturnWritten(made));
        } else {
            self.push(Instr::ReturnText(text));
        }
    }

    fn script_loop(
        &mut self,
        condition: Option<&LongExpr>,
        step: Option<&Expr>,
        body: &Stmt,
        span: Span,
    ) -> Planned<()> {
        let (again, out) = (self.label(), self.label());
        let location = self.location(span);
        let ((), code) = self.apart(|builder| {
            builder.charge_loop(body, location);
            if let Some(condition) = condition {
                let condition = builder.value(condition)?;
                let then = vec![Instr::Goto(out)];
                builder.push(Instr::If { condition: Value::Not(Box::new(condition)), then, otherwise: Vec::new() });
            }
            builder.in_loop(again, out, body)?;
            step.map_or(Ok(()), |step| builder.effect(step))
        })?;
        self.push(Instr::Loop(code));
        self.push(Instr::Label(out));
        Ok(())
    }

    /// Statements of one iteration, charged at the start of the loop.
    pub(super) fn charge_loop(&mut self, body: &Stmt, location: LocationId) {
        self.push(Instr::Charge { statements: 1 + count_in_loop(body), location });
        self.check();
    }

    /// What a condition chooses. In a loop it is charged where it is chosen: a rare case must not cost in each iteration.
    fn arm(&mut self, statement: &Stmt, span: Span) -> Planned<()> {
        let statements = count_in_loop(statement);
        if !self.loops.is_empty() && statements > 0 {
            let location = self.location(span);
            self.push(Instr::Charge { statements, location });
            self.check();
        }
        self.statement(statement)
    }

    /// The body of a loop; `continue` jumps to its end.
    pub(super) fn in_loop(&mut self, again: LabelId, out: LabelId, body: &Stmt) -> Planned<()> {
        self.loops.push((again, out));
        self.statement(body)?;
        self.loops.pop();
        self.push(Instr::Label(again));
        Ok(())
    }

    fn script_try(
        &mut self,
        body: &[Stmt],
        message: Option<program::Variable>,
        handler: &[Stmt],
        span: Span,
    ) -> Planned<()> {
        let (caught, done) = (self.label(), self.label());
        let outer = std::mem::replace(&mut self.failed, caught);
        self.statements(body)?;
        self.failed = outer;
        self.push(Instr::Goto(done));
        self.push(Instr::Label(caught));
        let (buffer, to) = self.temporary_text();
        self.push(Instr::Catch { buffer, to, uncaught: outer });
        if let Some(variable) = message {
            self.store_text(variable, Text::Variable(to), span)?;
        }
        self.statements(handler)?;
        self.push(Instr::Label(done));
        Ok(())
    }

    fn delete(&mut self, variable: program::Variable, span: Span) -> Planned<()> {
        match self.scalar(variable, span)? {
            Scalar::LocalLong(_) | Scalar::Number(_) => self.store_long(variable, Value::Const(0), span),
            Scalar::LocalText(..) | Scalar::Text(_) => self.store_text(variable, Text::Literal(Vec::new()), span),
        }
    }
}

/// The buffer operand of the last instruction, if that one makes the string: one for each branch.
fn written(code: &mut [Instr], string: (BufferId, TextId)) -> Option<Vec<&mut BufferId>> {
    let end = code.iter().rposition(|instr| !matches!(instr, Instr::CheckCall { .. } | Instr::Check(_)))?;
    match code.get_mut(end)? {
        Instr::Copy { buffer, to, .. }
        | Instr::Concatenate { buffer, to, .. }
        | Instr::Format { buffer, to, .. }
        | Instr::IteratorText(buffer, to, ..)
        | Instr::Map { op: MapOp::Text(buffer, to), .. }
        | Instr::Call { outcome: Outcome::Text(buffer, to), .. }
            if (*buffer, *to) == string =>
        {
            Some(vec![buffer])
        }
        Instr::If { then, otherwise, .. } => {
            let mut places = written(then, string)?;
            places.extend(written(otherwise, string)?);
            Some(places)
        }
        _ => None,
    }
}

/// Statements outside loops, which are charged one by one.
pub(super) fn count(statements: &[Stmt]) -> u32 {
    statements.iter().map(count_one).sum()
}

fn count_one(statement: &Stmt) -> u32 {
    match &statement.kind {
        StmtKind::Block(statements) => count(statements),
        StmtKind::If { then, otherwise, .. } => {
            1 + count_one(then).max(otherwise.as_ref().map_or(0, |otherwise| count_one(otherwise)))
        }
        StmtKind::Try { body, handler, .. } => 1 + count(body) + count(handler),
        _ => 1,
    }
}

/// The same in a loop, without what conditions choose.
fn count_in_loop(statement: &Stmt) -> u32 {
    let all = |statements: &[Stmt]| statements.iter().map(count_in_loop).sum::<u32>();
    match &statement.kind {
        StmtKind::Block(statements) => all(statements),
        StmtKind::Try { body, handler, .. } => 1 + all(body) + all(handler),
        _ => 1,
    }
}
