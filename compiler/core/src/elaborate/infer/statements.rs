// SPDX-License-Identifier: GPL-2.0-or-later

//! Statements: which of them run, and the types that they require of their expressions.

use super::{Inference, Use};
use crate::elaborate::error::{ArrayError, StatementError};
use crate::elaborate::guru;
use crate::elaborate::unit::{Handler, Unit};
use crate::elaborate::unneeded::{self, Elided};
use crate::program::Type;
use spile_source::Span;
use spile_syntax::ast::{self, ExprKind, StmtKind};
use spile_syntax::visit;

impl<'a> Inference<'_, 'a> {
    /// Infers the handlers, and then the functions that they reach.
    pub(super) fn walk(&mut self, handlers: &mut [Handler<'a>]) {
        let mut last: Option<(Vec<*const ast::Stmt>, Elided)> = None;
        for handler in handlers {
            // The sites of one probe share their statements.
            let same = |(statements, _): &(Vec<*const ast::Stmt>, Elided)| {
                statements.iter().copied().eq(handler.body.iter().map(|statement| std::ptr::from_ref(*statement)))
            };
            if !last.as_ref().is_some_and(same) {
                let statements = handler.body.iter().map(|statement| std::ptr::from_ref(*statement)).collect();
                last = Some((statements, unneeded::elided(self.env, self.names, &handler.body)));
            }
            handler.unit.elided = last.as_ref().map(|(_, elided)| elided.clone()).unwrap_or_default();
            for condition in &handler.condition {
                self.check_condition(condition);
                self.want(&mut handler.unit, condition, Type::Long);
            }
            for statement in &handler.body {
                self.infer_statement(&mut handler.unit, statement);
            }
        }
        self.infer_functions();
    }

    /// The condition of a probe point reads globals and has no effect.
    fn check_condition(&mut self, condition: &'a ast::Expr) {
        let mut errors = Vec::new();
        visit::in_expression(condition, &mut |expr| {
            let what = match &expr.kind {
                ExprKind::Ident(name) if self.names.find_global(expr.span, name).is_none() => {
                    "a variable that is not a global"
                }
                ExprKind::Assign(..) | ExprKind::Step { .. } => "an assignment",
                ExprKind::Call(..) => "a call",
                ExprKind::EmbeddedC(_) => "embedded C",
                ExprKind::Print(print) if !print.to_string => "a print",
                ExprKind::Target(_) | ExprKind::Var { .. } | ExprKind::Entry(_) => "a context variable",
                _ => return,
            };
            errors.push(StatementError::Condition { what, span: expr.span });
        });
        errors.into_iter().for_each(|error| self.env.report(error));
        guru::check_condition(self.env, condition);
    }

    pub(super) fn infer_statements(&mut self, unit: &mut Unit, statements: &'a [ast::Stmt]) {
        for statement in statements {
            self.infer_statement(unit, statement);
        }
    }

    /// Infers types in one statement, unless it is left out of the program.
    pub fn infer_statement(&mut self, unit: &mut Unit, statement: &'a ast::Stmt) {
        if unit.elided.has(statement) {
            return;
        }
        match &statement.kind {
            StmtKind::Empty | StmtKind::Next => {}
            StmtKind::Block(block) => self.infer_statements(unit, &block.statements),
            StmtKind::Expr(expr) => {
                self.infer_any(unit, expr);
            }
            StmtKind::If { condition, then, otherwise } => self.infer_if(unit, condition, then, otherwise.as_deref()),
            StmtKind::While { condition, body } => {
                self.want(unit, condition, Type::Long);
                self.infer_loop(unit, body);
            }
            StmtKind::For { init, condition, step, body } => {
                if let Some(init) = init {
                    self.infer_any(unit, init);
                }
                if let Some(condition) = condition {
                    self.want(unit, condition, Type::Long);
                }
                if let Some(step) = step {
                    self.infer_any(unit, step);
                }
                self.infer_loop(unit, body);
            }
            StmtKind::Foreach(foreach) => self.infer_foreach(unit, foreach, statement.span),
            StmtKind::Break => self.in_loop("break", statement.span),
            StmtKind::Continue => self.in_loop("continue", statement.span),
            StmtKind::Return(value) => match (unit.function, value) {
                // Rejected by the parser.
                (None, _) => {}
                (Some(index), None) => self.infer_bare_return(index, statement.span),
                (Some(index), Some(value)) => self.infer_return(unit, index, value),
            },
            StmtKind::Delete(expr) => {
                if !self.infer_delete(unit, expr) {
                    if let ast::ExprKind::Ident(name) = &expr.kind
                        && unit.find_variable(self.names, name, expr.span).is_none()
                    {
                        self.env.report(ArrayError::NotGlobal { what: "array", span: expr.span });
                    }
                    self.infer_written(unit, expr);
                }
            }
            StmtKind::Try { body, message, handler } => {
                self.infer_statements(unit, &body.statements);
                if let Some(name) = message {
                    let ty = self.variable(unit, name, Use::Written);
                    self.set(ty, Type::String, name.span);
                }
                self.infer_statements(unit, &handler.statements);
            }
        }
    }

    /// An `if`, of which one branch never runs if the condition is known.
    fn infer_if(
        &mut self,
        unit: &mut Unit,
        condition: &'a ast::Expr,
        then: &'a ast::Stmt,
        otherwise: Option<&'a ast::Stmt>,
    ) {
        let known = self.lookup().fold(unit, condition);
        match known {
            Some(_) => self.infer_dead_condition(unit, condition),
            None => self.want(unit, condition, Type::Long),
        }
        match known {
            Some(0) => self.infer_dead_statement(unit, then),
            _ => self.infer_statement(unit, then),
        }
        let Some(otherwise) = otherwise else { return };
        match known {
            None | Some(0) => self.infer_statement(unit, otherwise),
            Some(_) => self.infer_dead_statement(unit, otherwise),
        }
    }

    pub(super) fn infer_loop(&mut self, unit: &mut Unit, body: &'a ast::Stmt) {
        self.loops += 1;
        self.infer_statement(unit, body);
        self.loops -= 1;
    }

    fn in_loop(&mut self, word: &'static str, span: Span) {
        if self.loops == 0 {
            self.env.report(StatementError::OutsideLoop { word, span });
        }
    }
}
