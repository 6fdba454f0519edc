// SPDX-License-Identifier: GPL-2.0-or-later

//! What only guru mode and the library may use: embedded C, and operators that read the kernel's raw memory or registers or
//! contain C.

use super::environment::Environment;
use super::error::StatementError;
use super::mark::has_mark;
use spile_source::Span;
use spile_syntax::{ast, visit};

/// The operator, if it is one of those.
pub(super) fn raw_operator(expr: &ast::Expr) -> Option<(&'static str, Span)> {
    let what = match &expr.kind {
        ast::ExprKind::Const(_) => "@const",
        ast::ExprKind::Register { user: false, .. } => "@kregister",
        ast::ExprKind::Deref { user: false, .. } => "@kderef",
        _ => return None,
    };
    Some((what, expr.span))
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
        found.into_iter().for_each(|(what, span)| env.report(StatementError::Guru { what, span }));
    }
}

/// Embedded C is for guru mode and library files.
pub(super) fn check_embedded(env: &mut Environment, code: &ast::EmbeddedC) {
    if !env.options.guru && !env.is_library(code.span.file) {
        env.report(StatementError::Guru { what: "embedded C", span: code.span });
    }
}

/// A call of a library function whose C is marked `/* guru */` needs guru mode as well.
pub(super) fn check_call(env: &mut Environment, function: &ast::Function, call: Span) {
    if let ast::FunctionBody::EmbeddedC(code) = &function.body
        && !env.options.guru
        && has_mark(&code.text, "guru")
    {
        env.report(StatementError::Guru { what: "this function", span: call });
    }
}
