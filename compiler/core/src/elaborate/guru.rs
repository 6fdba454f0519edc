// SPDX-License-Identifier: GPL-2.0-or-later

//! What only guru mode and the library may use: embedded C, and operators that read raw memory or contain C.

use super::environment::Environment;
use super::error::Error;
use super::mark::has_mark;
use spile_source::Span;
use spile_source::diagnostic::Diagnostic;
use spile_syntax::{ast, visit};

/// The operator, if it is one of those.
fn raw_operator(expr: &ast::Expr) -> Option<(&'static str, Span)> {
    let what = match &expr.kind {
        ast::ExprKind::Const(_) => "@const",
        ast::ExprKind::Register { user: true, .. } => "@uregister",
        ast::ExprKind::Register { user: false, .. } => "@kregister",
        ast::ExprKind::Deref { user: true, .. } => "@uderef",
        ast::ExprKind::Deref { user: false, .. } => "@kderef",
        _ => return None,
    };
    Some((what, expr.span))
}

/// Errors in a user's script that is compiled without guru mode: embedded C and raw operators anywhere. They can be seen in
/// the text alone, so pass 1 reports them, as in SystemTap.
pub fn needs_guru(script: &ast::Script) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let code = |code: &ast::EmbeddedC| ("embedded C", code.span);
    let in_expression = |expr: &ast::Expr, found: &mut Vec<(&'static str, Span)>| match &expr.kind {
        ast::ExprKind::EmbeddedC(embedded) => found.push(code(embedded)),
        _ => found.extend(raw_operator(expr)),
    };
    for item in &script.items {
        let (points, blocks): (&[ast::ProbePoint], Vec<&ast::Block>) = match item {
            ast::Item::Global(_) => continue,
            ast::Item::EmbeddedC(embedded) => {
                found.push(code(embedded));
                continue;
            }
            ast::Item::Probe(probe) => (&probe.points, vec![&probe.body]),
            ast::Item::Alias(alias) => (&alias.points, alias.prologue.iter().chain(&alias.epilogue).collect()),
            ast::Item::Function(function) => match &function.body {
                ast::FunctionBody::Script(block) => (&[], vec![block]),
                ast::FunctionBody::EmbeddedC(embedded) => {
                    found.push(code(embedded));
                    continue;
                }
            },
        };
        for condition in points.iter().filter_map(|point| point.condition.as_deref()) {
            visit::in_expression(condition, &mut |expr| in_expression(expr, &mut found));
        }
        for block in blocks {
            visit::expressions(block, &mut |expr| in_expression(expr, &mut found));
        }
    }
    found.into_iter().map(|(what, span)| Error::Guru { what, span }.diagnostic()).collect()
}

/// Reports the raw operators of a block, including those that never run or whose value is unused.
pub(super) fn check_block(env: &mut Environment, block: &ast::Block) {
    let mut found = Vec::new();
    visit::expressions(block, &mut |expr| found.extend(raw_operator(expr)));
    refuse(env, found, block.span);
}

/// The same for a probe point's condition, which is in no block.
pub(super) fn check_condition(env: &mut Environment, condition: &ast::Expr) {
    let mut found = Vec::new();
    visit::in_expression(condition, &mut |expr| found.extend(raw_operator(expr)));
    refuse(env, found, condition.span);
}

fn refuse(env: &mut Environment, found: Vec<(&'static str, Span)>, whole: Span) {
    if !env.options.guru && !env.is_library(whole.file) {
        found.into_iter().for_each(|(what, span)| env.report(Error::Guru { what, span }));
    }
}

/// Embedded C is for guru mode and library files.
pub(super) fn check_embedded(env: &mut Environment, code: &ast::EmbeddedC) {
    if !env.options.guru && !env.is_library(code.span.file) {
        env.report(Error::Guru { what: "embedded C", span: code.span });
    }
}

/// A call of a library function whose C is marked `/* guru */` needs guru mode as well.
pub(super) fn check_call(env: &mut Environment, function: &ast::Function, call: Span) {
    if let ast::FunctionBody::EmbeddedC(code) = &function.body
        && !env.options.guru
        && has_mark(&code.text, "guru")
    {
        env.report(Error::Guru { what: "this function", span: call });
    }
}
