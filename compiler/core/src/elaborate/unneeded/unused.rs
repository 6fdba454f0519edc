// SPDX-License-Identifier: GPL-2.0-or-later

//! Warnings about code without effect in the user's scripts: assignments that nothing reads, expressions whose value is
//! unused, probes that do nothing. `-u` leaves them out.
//!
//! Examines the trees as written, so that one mistake is reported once for all sites of a probe.

use std::collections::HashSet;

use super::access::{Accesses, unread_in};
use super::effect::Effects;
use crate::builtin;
use crate::elaborate::environment::Environment;
use crate::elaborate::error::Unneeded;
use crate::elaborate::mark::names_argument;
use crate::elaborate::names::{LIBRARY_PRIORITY, Names};
use crate::probe;
use spile_source::{Origin, Span};
use spile_syntax::ast::{self, Block, Expr, ExprKind, Item, PrintForm, Stmt, StmtKind};
use spile_syntax::{print, visit};

/// Warns of code without effect in the user's scripts.
pub(in crate::elaborate) fn warn<'a>(env: &mut Environment<'a>, names: &Names<'a>, scripts: &'a [ast::Script]) {
    // A body's variables include those of the aliases that it may be combined with.
    let mut shared = Accesses::default();
    for alias in names.aliases() {
        alias.prologue.iter().chain(&alias.epilogue).for_each(|block| shared.block(block));
    }
    let (mut does_something, mut first) = (false, None);
    let sources = env.sources;
    for script in scripts.iter().filter(|script| sources.file(script.file).origin == Origin::User) {
        for item in &script.items {
            match item {
                Item::Probe(probe) => {
                    warn_of_body(env, names, &probe.body, Some(&shared.read));
                    let unread = unread_in(names, &probe.body, Some(&shared.read));
                    let acts = Effects { names, unread, within: Vec::new() }.any(&probe.body.statements);
                    does_something |=
                        acts || !probe.points.iter().all(|point| probe::is_unconditional(&point.components));
                    first.get_or_insert(probe.span);
                    if !acts && !probe.points.iter().all(is_counter) {
                        let points: Vec<String> = probe.points.iter().map(print::point).collect();
                        let span = probe.points.first().map_or(probe.span, |point| point.span);
                        env.report(Unneeded::IdleProbe { points: points.join(", "), span });
                    }
                }
                Item::Function(function) => {
                    if let ast::FunctionBody::Script(block) = &function.body {
                        warn_of_body(env, names, block, None);
                    }
                    warn_of_unreached(env, names, function);
                }
                Item::Alias(alias) => {
                    alias.prologue.iter().chain(&alias.epilogue).for_each(|block| warn_of_idle(env, names, block));
                }
                Item::Global(_) | Item::EmbeddedC(_) => {}
            }
        }
    }
    if let (false, Some(span)) = (does_something, first) {
        env.report(Unneeded::NoProbes { span });
    }
}

/// An overload after one that never executes `next`, or after a builtin.
fn warn_of_unreached(env: &mut Environment, names: &Names, function: &ast::Function) {
    let arity = function.parameters.len();
    let overloads = names.overloads(function.name.span, &function.name.text, arity);
    if function.priority.is_some_and(|priority| priority > LIBRARY_PRIORITY)
        && builtin::find(&function.name.text, arity).is_some()
    {
        // The builtin is one of them.
        let (name, number) = (function.name.text.clone(), overloads.len() + 2);
        return env.report(Unneeded::NeverReached { name, number, span: function.name.span, before: None });
    }
    let all: Vec<&ast::Function> = overloads.into_iter().map(|index| names.functions[index.index()]).collect();
    let Some(at) = all.iter().position(|other| std::ptr::eq(*other, function)) else { return };
    if let Some(before) = all[..at].iter().find(|before| !visit::executes_next(before)) {
        let (name, before) = (function.name.text.clone(), before.name.span);
        env.report(Unneeded::NeverReached { name, number: at + 1, span: function.name.span, before: Some(before) });
    }
}

/// `read`: names that are read elsewhere.
fn warn_of_body(env: &mut Environment, names: &Names, block: &Block, read: Option<&HashSet<&str>>) {
    let mut accesses = Accesses::default();
    accesses.block(block);
    let codes = codes_in(block);
    for (name, span) in &accesses.written {
        let elsewhere = read.is_some_and(|read| read.contains(name));
        if !accesses.read.contains(name)
            && !elsewhere
            && names.find_global(*span, name).is_none()
            && !codes.iter().any(|code| names_argument(code, name))
        {
            env.report(Unneeded::UnreadAssignment { name: name.to_string(), span: *span });
        }
    }
    warn_of_idle(env, names, block);
}

fn warn_of_idle(env: &mut Environment, names: &Names, block: &Block) {
    let mut idle = Vec::new();
    idle_expressions(&block.statements, &mut idle);
    if idle.is_empty() {
        return;
    }
    let functions: HashSet<&str> =
        crate::builtin::offered().map(|builtin| builtin.name).chain(names.function_names()).collect();
    for span in idle {
        let text = env.sources.text(span).to_string();
        let function = functions.contains(text.as_str());
        env.report(Unneeded::IdleExpression { span, text, function });
    }
}

/// The C code among the statements.
fn codes_in(block: &Block) -> Vec<&str> {
    let mut codes = Vec::new();
    for statement in &block.statements {
        visit::in_statement(statement, &mut |expr| {
            if let ExprKind::EmbeddedC(code) = &expr.kind {
                codes.push(code.text.as_str());
            }
        });
    }
    codes
}

/// Whether the probe exists for others, which read its counter.
fn is_counter(point: &ast::ProbePoint) -> bool {
    point.components.last().is_some_and(|last| last.name == "counter")
}

/// Whether evaluating the expression has an effect.
fn changes(expr: &Expr) -> bool {
    let mut found = false;
    visit::in_expression(expr, &mut |inner| {
        found |= match &inner.kind {
            ExprKind::Assign(..)
            | ExprKind::Step { .. }
            | ExprKind::Call(..)
            | ExprKind::EmbeddedC(_)
            | ExprKind::Matches { .. } => true,
            ExprKind::Print(print) => !print.to_string || matches!(print.form, PrintForm::Char),
            _ => false,
        };
    });
    found
}

/// Places of expressions that are statements and have no effect.
fn idle_expressions(statements: &[Stmt], found: &mut Vec<Span>) {
    for statement in statements {
        match &statement.kind {
            StmtKind::Expr(expr) if !changes(expr) => found.push(expr.span),
            StmtKind::Block(block) => idle_expressions(&block.statements, found),
            StmtKind::If { then, otherwise, .. } => {
                idle_expressions(std::slice::from_ref(then), found);
                otherwise.iter().for_each(|otherwise| idle_expressions(std::slice::from_ref(otherwise), found));
            }
            StmtKind::While { body, .. } | StmtKind::For { body, .. } => {
                idle_expressions(std::slice::from_ref(body), found);
            }
            StmtKind::Foreach(foreach) => idle_expressions(std::slice::from_ref(&foreach.body), found),
            StmtKind::Try { body, handler, .. } => {
                idle_expressions(&body.statements, found);
                idle_expressions(&handler.statements, found);
            }
            _ => {}
        }
    }
}
