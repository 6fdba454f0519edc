// SPDX-License-Identifier: GPL-2.0-or-later

//! Errors that follow from the text of a user's script. Pass 1 reports them, as in SystemTap, also in code that never
//! runs.

use super::error::{Error, LiteralError, StatementError};
use super::format;
use super::guru::raw_operator;
use spile_source::diagnostic::Diagnostic;
use spile_syntax::ast::{self, ExprKind, PrintForm};
use spile_syntax::visit;

/// Invalid format strings and, without guru mode, embedded C and raw operators.
pub fn check_text(script: &ast::Script, guru: bool) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let code = |code: &ast::EmbeddedC| StatementError::Guru { what: "embedded C", span: code.span }.into();
    let in_expression = |expr: &ast::Expr, found: &mut Vec<Error>| match &expr.kind {
        ExprKind::EmbeddedC(embedded) if !guru => found.push(code(embedded)),
        ExprKind::Print(print) => found.extend(format_error(print)),
        _ if !guru => found.extend(raw_operator(expr).map(|(what, span)| StatementError::Guru { what, span }.into())),
        _ => {}
    };
    for item in &script.items {
        let (points, blocks): (&[ast::ProbePoint], Vec<&ast::Block>) = match item {
            ast::Item::Global(_) => continue,
            ast::Item::EmbeddedC(embedded) => {
                found.extend((!guru).then(|| code(embedded)));
                continue;
            }
            ast::Item::Probe(probe) => (&probe.points, vec![&probe.body]),
            ast::Item::Alias(alias) => (&alias.points, alias.prologue.iter().chain(&alias.epilogue).collect()),
            ast::Item::Function(function) => match &function.body {
                ast::FunctionBody::Script(block) => (&[], vec![block]),
                ast::FunctionBody::EmbeddedC(embedded) => {
                    found.extend((!guru).then(|| code(embedded)));
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
    found.iter().map(Error::diagnostic).collect()
}

fn format_error(print: &ast::Print) -> Option<Error> {
    let PrintForm::Format(text, span) = &print.form else { return None };
    format::parse(text).err().map(|error| LiteralError::Format { kind: error.kind, span: *span }.into())
}
