// SPDX-License-Identifier: GPL-2.0-or-later

//! What a handler needs of an alias's prologue: a library alias sets all its variables, a script usually uses one.
//!
//! What is not used is neither resolved nor run. So an unused variable costs nothing, and a member that has another name on
//! some kernel is an error only where it is used.

use std::collections::{HashMap, HashSet};

use super::effect::Effects;
use crate::elaborate::error::Unneeded;
use crate::elaborate::names::Names;
use spile_source::Span;
use spile_syntax::ast::{self, AssignOp, Block, Expr, ExprKind, Index, Stmt, StmtKind};
use spile_syntax::visit;

/// Variables that statements mention, without globals.
#[derive(Default)]
struct Used<'a> {
    names: HashSet<&'a str>,
    /// Embedded C may use any variable.
    all: bool,
}

impl<'a> Used<'a> {
    fn add(&mut self, names: &Names, statement: &'a Stmt) {
        visit::in_statement(statement, &mut |expr| match &expr.kind {
            ExprKind::Ident(name)
                if !self.names.contains(name.as_str()) && names.find_global(expr.span, name).is_none() =>
            {
                self.names.insert(name);
            }
            ExprKind::EmbeddedC(_) => self.all = true,
            _ => {}
        });
    }
}

/// The statements of a handler in order: prologues, the body, epilogues; of the library's prologues only what later
/// statements use.
pub(in crate::elaborate) fn needed<'a>(
    names: &Names<'a>,
    prologues: &[&'a Block],
    body: &'a Block,
    epilogues: &[&'a Block],
) -> Vec<&'a Stmt> {
    let mut used = Used::default();
    let after: Vec<&'a Stmt> =
        body.statements.iter().chain(epilogues.iter().flat_map(|block| &block.statements)).collect();
    after.iter().for_each(|statement| used.add(names, statement));
    let mut needed = Vec::new();
    for statement in prologues.iter().flat_map(|block| &block.statements).rev() {
        let mut assigned = Vec::new();
        let plain = names.is_library(statement.span) && assigns(names, statement, &mut assigned);
        if !plain || used.all || assigned.iter().any(|name| used.names.contains(name)) {
            used.add(names, statement);
            needed.push(statement);
        }
    }
    needed.reverse();
    needed.extend(after);
    needed
}

/// The script's globals in the body that have the name of a variable which the compiler's own library sets before.
pub(in crate::elaborate) fn hidden<'a>(names: &Names<'a>, prologues: &[&'a Block], body: &'a Block) -> Vec<Unneeded> {
    let mut globals: HashMap<&str, Span> = HashMap::new();
    visit::expressions(body, &mut |expr| {
        if let ExprKind::Ident(name) = &expr.kind
            && names.find_global(expr.span, name).is_some()
        {
            globals.entry(name).or_insert(expr.span);
        }
    });
    let mut found = Vec::new();
    if globals.is_empty() {
        return found;
    }
    for block in prologues.iter().filter(|block| names.is_own_library(block.span)) {
        visit::expressions(block, &mut |expr| {
            if let ExprKind::Assign(_, target, _) = &expr.kind
                && let ExprKind::Ident(name) = &target.kind
                && names.find_global(target.span, name).is_none()
                && let Some(span) = globals.remove(name.as_str())
            {
                found.push(Unneeded::Hidden { name: name.clone(), span, set: target.span });
            }
        });
    }
    found
}

/// Whether the statement only assigns to local variables; adds their names.
fn assigns<'a>(names: &Names<'a>, statement: &'a Stmt, assigned: &mut Vec<&'a str>) -> bool {
    match &statement.kind {
        StmtKind::Empty => true,
        StmtKind::Block(block) => block.statements.iter().all(|statement| assigns(names, statement, assigned)),
        StmtKind::If { condition, then, otherwise } => {
            is_value(names, condition)
                && assigns(names, then, assigned)
                && otherwise.as_ref().is_none_or(|otherwise| assigns(names, otherwise, assigned))
        }
        StmtKind::Expr(Expr { kind: ExprKind::Assign(AssignOp::Set, left, right), .. }) => match &left.kind {
            ExprKind::Ident(name) if names.find_global(left.span, name).is_none() => {
                assigned.push(name);
                is_value(names, right)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether the compiler's own library calls a function of its own, for a value.
fn is_assumed(names: &Names, name: &ast::Name, arity: usize) -> bool {
    let called = names.overloads_and_after(name.span, &name.text, arity);
    names.is_own_library(name.span)
        && called.iter().all(|index| names.is_own_library(names.functions[index.index()].name.span))
}

/// Whether evaluating it has no effect; functions of the compiler's own library that it calls for a value are assumed to have
/// none.
fn is_value<'a>(names: &Names<'a>, expr: &'a Expr) -> bool {
    let value = |expr: &'a Expr| is_value(names, expr);
    let index = |index: &'a Index| match index {
        Index::Expr(expr) => value(expr),
        Index::Any(_) => true,
    };
    match &expr.kind {
        ExprKind::Number(_) | ExprKind::String(_) | ExprKind::Ident(_) | ExprKind::Target(_) | ExprKind::Defined(_) => {
            true
        }
        ExprKind::Var { .. } | ExprKind::Const(_) | ExprKind::Enum(_) => true,
        ExprKind::Member(base, _)
        | ExprKind::Pretty(base, _)
        | ExprKind::AddressOf(base)
        | ExprKind::Unary(_, base)
        | ExprKind::Entry(base)
        | ExprKind::EnumName { value: base, .. }
        | ExprKind::Cast { value: base, .. } => value(base),
        ExprKind::Index(base, indices) => value(base) && indices.iter().all(index),
        ExprKind::Call(name, arguments) => {
            arguments.iter().all(value)
                && (is_assumed(names, name, arguments.len()) || !Effects::call_has_any(names, name, arguments.len()))
        }
        ExprKind::Binary(_, left, right) => value(left) && value(right),
        ExprKind::Conditional(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().all(|expr| value(expr))
        }
        ExprKind::Print(print) => print.to_string && print.arguments.iter().all(value),
        _ => false,
    }
}
