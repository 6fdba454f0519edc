// SPDX-License-Identifier: GPL-2.0-or-later

//! Which variables statements read and which they write.

use std::collections::HashSet;

use crate::elaborate::names::Names;
use spile_source::Span;
use spile_syntax::ast::{self, Block, Expr, ExprKind, Index, Stmt, StmtKind};
use spile_syntax::visit;

/// Names of variables that are read, and those that are written, with the places.
#[derive(Default)]
pub(super) struct Accesses<'a> {
    /// Those whose value is used.
    pub read: HashSet<&'a str>,
    /// Those that are assigned to, and where.
    pub written: Vec<(&'a str, Span)>,
    /// Those of the written names whose new value depends on the old one: `+=`, `++`.
    pub updated: HashSet<&'a str>,
}

impl<'a> Accesses<'a> {
    /// Adds those of all statements of the block.
    pub fn block(&mut self, block: &'a Block) {
        block.statements.iter().for_each(|statement| self.statement(statement, &|_| false));
    }

    /// Adds those of a statement, except for nested statements that `skip` selects.
    pub fn statement(&mut self, statement: &'a Stmt, skip: &dyn Fn(&Stmt) -> bool) {
        // The target of an assignment is visited as its place and as an expression: the latter is not a read.
        let mut places: HashSet<*const Expr> = HashSet::new();
        each_value(statement, skip, &mut |expr, used| match &expr.kind {
            ExprKind::Assign(_, place, _) | ExprKind::Step { target: place, .. } => {
                if let ExprKind::Ident(name) = &place.kind {
                    places.insert(&**place);
                    self.written.push((name, place.span));
                    if !matches!(expr.kind, ExprKind::Assign(ast::AssignOp::Set | ast::AssignOp::Aggregate, ..)) {
                        self.updated.insert(name);
                    }
                    if used {
                        self.read.insert(name);
                    }
                }
            }
            ExprKind::Ident(name) if !places.contains(&std::ptr::from_ref(expr)) => {
                self.read.insert(name);
            }
            // It may read any of them.
            ExprKind::ProbeWrite(name) => {
                self.read.insert(name);
            }
            _ => {}
        });
    }
}

/// Calls `visit` with every expression of a statement, and whether its value is used; without the nested statements that
/// `skip` selects.
fn each_value<'a>(statement: &'a Stmt, skip: &dyn Fn(&Stmt) -> bool, visit: &mut dyn FnMut(&'a Expr, bool)) {
    if skip(statement) {
        return;
    }
    let mut within = |expr: &'a Expr, used: bool| {
        visit::in_expression(expr, &mut |inner| visit(inner, used || !std::ptr::eq(inner, expr)));
    };
    match &statement.kind {
        StmtKind::Empty | StmtKind::Break | StmtKind::Continue | StmtKind::Next => {}
        StmtKind::Block(block) => block.statements.iter().for_each(|statement| each_value(statement, skip, visit)),
        StmtKind::Expr(expr) | StmtKind::Delete(expr) => within(expr, false),
        StmtKind::If { condition, then, otherwise } => {
            within(condition, true);
            each_value(then, skip, visit);
            otherwise.iter().for_each(|otherwise| each_value(otherwise, skip, visit));
        }
        StmtKind::While { condition, body } => {
            within(condition, true);
            each_value(body, skip, visit);
        }
        StmtKind::For { init, condition, step, body } => {
            init.iter().chain(step).for_each(|expr| within(expr, false));
            condition.iter().for_each(|expr| within(expr, true));
            each_value(body, skip, visit);
        }
        StmtKind::Foreach(foreach) => {
            within(&foreach.array, true);
            let slice = foreach.slice.iter().flatten().filter_map(|index| match index {
                Index::Expr(expr) => Some(expr),
                Index::Any(_) => None,
            });
            slice.chain(&foreach.limit).for_each(|expr| within(expr, true));
            each_value(&foreach.body, skip, visit);
        }
        StmtKind::Return(value) => value.iter().for_each(|value| within(value, true)),
        StmtKind::Try { body, handler, .. } => {
            body.statements.iter().chain(&handler.statements).for_each(|statement| each_value(statement, skip, visit));
        }
    }
}

/// Local variables that a body assigns to and does not read; `read`: names read elsewhere.
pub(super) fn unread_in<'b>(names: &Names, block: &'b Block, read: Option<&HashSet<&str>>) -> HashSet<&'b str> {
    let mut accesses = Accesses::default();
    accesses.block(block);
    let unread = |(name, span): &(&'b str, Span)| {
        let elsewhere = read.is_some_and(|read| read.contains(name));
        let local = !accesses.read.contains(name) && !elsewhere && names.find_global(*span, name).is_none();
        local.then_some(*name)
    };
    accesses.written.iter().filter_map(unread).collect()
}
