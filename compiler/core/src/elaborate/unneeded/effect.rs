// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether running a statement has an effect: does it print, write a global, or call something that does?
//!
//! Writing a local variable that nothing reads is not an effect; a call has the effects of the function's body.

use std::collections::HashSet;

use super::access::unread_in;
use crate::builtin;
use crate::elaborate::names::{DeclaredId, Names};
use spile_syntax::ast::{AssignOp, BinaryOp, Block, Expr, ExprKind, FunctionBody, Name, PrintForm, Stmt, StmtKind};
use spile_syntax::visit;

/// Whether evaluating the expression has an effect, wherever it is.
pub(in crate::elaborate) fn expression_has_effect<'a>(names: &Names<'a>, expr: &'a Expr) -> bool {
    Effects { names, unread: HashSet::new(), within: Vec::new() }.changes(expr)
}

/// What is known while one body is examined.
pub(super) struct Effects<'e, 'a> {
    /// The declarations of scripts and tapset.
    pub names: &'e Names<'a>,
    /// Variables that are assigned to and never read.
    pub unread: HashSet<&'a str>,
    /// Functions being examined, each once.
    pub within: Vec<DeclaredId>,
}

impl<'a> Effects<'_, 'a> {
    /// Whether calling the function has an effect.
    pub fn call_has_any(names: &Names<'a>, name: &'a Name, arity: usize) -> bool {
        Effects { names, unread: HashSet::new(), within: Vec::new() }.call_changes(name, arity)
    }

    /// Whether one of the statements has an effect.
    pub fn any(&mut self, statements: &'a [Stmt]) -> bool {
        statements.iter().any(|statement| self.of(statement))
    }

    fn of(&mut self, statement: &'a Stmt) -> bool {
        match &statement.kind {
            StmtKind::Empty | StmtKind::Continue => false,
            StmtKind::Block(block) => self.any(&block.statements),
            StmtKind::Expr(expr) => self.changes(expr),
            StmtKind::If { condition, then, otherwise } => {
                self.changes(condition)
                    || self.of(then)
                    || otherwise.as_deref().is_some_and(|otherwise| self.of(otherwise))
            }
            StmtKind::While { condition, body } => self.changes(condition) || self.of(body),
            StmtKind::For { init, condition, step, body } => {
                [init, condition, step].into_iter().flatten().any(|expr| self.changes(expr)) || self.of(body)
            }
            StmtKind::Foreach(foreach) => {
                foreach.limit.as_ref().is_some_and(|limit| self.changes(limit)) || self.of(&foreach.body)
            }
            // An unneeded statement in the body may still fail and so run the handler.
            StmtKind::Try { body, handler, .. } => {
                self.any(&body.statements) || (self.may_fail(body) && self.any(&handler.statements))
            }
            // In a function, returning is the statement's purpose.
            StmtKind::Next => self.within.is_empty(),
            StmtKind::Return(value) => {
                self.within.is_empty() || value.as_ref().is_some_and(|value| self.changes(value))
            }
            // As in SystemTap, even though it only ends code without effect.
            StmtKind::Break | StmtKind::Delete(_) => true,
        }
    }

    /// Whether evaluating the expression has an effect.
    pub fn changes(&mut self, expr: &'a Expr) -> bool {
        let mut found = false;
        visit::in_expression(expr, &mut |inner| {
            found = found
                || match &inner.kind {
                    ExprKind::Assign(_, place, _) => !self.is_unread(place),
                    ExprKind::Step { .. } => true,
                    ExprKind::Call(name, arguments) => self.call_changes(name, arguments.len()),
                    ExprKind::EmbeddedC(code) => !code.text.contains("/* pure */"),
                    ExprKind::Matches { .. } => true,
                    ExprKind::Print(print) => !print.to_string || matches!(print.form, PrintForm::Char),
                    _ => false,
                };
        });
        found
    }

    /// Whether a statement of the block may raise an error; true where that is not known.
    fn may_fail(&self, block: &Block) -> bool {
        let mut found = false;
        visit::expressions(block, &mut |expr| {
            found |= match &expr.kind {
                ExprKind::Binary(op, ..) => matches!(op, BinaryOp::Divide | BinaryOp::Modulo),
                ExprKind::Assign(AssignOp::Compound(op), ..) => matches!(op, BinaryOp::Divide | BinaryOp::Modulo),
                ExprKind::Call(name, arguments) => {
                    let arity = arguments.len();
                    let own = !self.names.overloads(name.span, &name.text, arity).is_empty();
                    own || builtin::find(&name.text, arity).is_none_or(|builtin| builtin.fails)
                }
                ExprKind::Target(_)
                | ExprKind::Member(..)
                | ExprKind::Index(..)
                | ExprKind::Pretty(..)
                | ExprKind::Cast { .. }
                | ExprKind::Var { .. }
                | ExprKind::Deref { .. }
                | ExprKind::Extract { .. }
                | ExprKind::EmbeddedC(_)
                | ExprKind::Print(_) => true,
                _ => false,
            };
        });
        found
    }

    fn is_unread(&self, place: &Expr) -> bool {
        matches!(&place.kind, ExprKind::Ident(name) if self.unread.contains(name.as_str()))
    }

    fn call_changes(&mut self, name: &'a Name, arity: usize) -> bool {
        let functions = self.names.overloads_and_after(name.span, &name.text, arity);
        if functions.is_empty() {
            return builtin::find(&name.text, arity).is_none_or(|builtin| !builtin.pure);
        }
        let last = functions.last().map(|index| self.names.functions[index.index()]);
        if last.and_then(|last| self.names.builtin_after(last)).is_some_and(|builtin| !builtin.pure) {
            return true;
        }
        functions.into_iter().any(|index| {
            if self.within.contains(&index) {
                return false;
            }
            match &self.names.functions[index.index()].body {
                FunctionBody::EmbeddedC(code) => !code.text.contains("/* pure */"),
                FunctionBody::Script(block) => {
                    self.within.push(index);
                    let unread = unread_in(self.names, block, None);
                    let outer = std::mem::replace(&mut self.unread, unread);
                    let changes = self.any(&block.statements);
                    self.unread = outer;
                    changes
                }
            }
        })
    }
}
