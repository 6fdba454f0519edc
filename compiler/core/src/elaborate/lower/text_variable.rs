// SPDX-License-Identifier: GPL-2.0-or-later

//! Context variables that are strings, such as `$value` of a procfs probe: read and written by builtins, in any mode.

use crate::builtin;
use crate::elaborate::error::{Error, StatementError, VariableError};
use crate::probe::TextVariable;
use crate::program::{Expr, StringExpr, StringKind};
use spile_source::Span;
use spile_syntax::ast::{AssignOp, BinaryOp};

/// Its value; an error of one that can only be written.
pub(super) fn read_text(variable: TextVariable, span: Span) -> Result<Expr, Error> {
    call(variable.read.ok_or(VariableError::WriteOnly { span })?, Vec::new(), span).map(Expr::String)
}

/// `$value = text`, `$value .= text`; the value of the expression is the right side's.
pub(super) fn write_text(
    variable: TextVariable,
    op: AssignOp,
    value: StringExpr,
    span: Span,
) -> Result<StringExpr, Error> {
    let name = match op {
        AssignOp::Set => variable.set,
        AssignOp::Compound(BinaryOp::Concatenate) => variable.append,
        _ => None,
    };
    call(name.ok_or(StatementError::NotAssignable { span })?, vec![value.into()], span)
}

fn call(name: &'static str, arguments: Vec<Expr>, span: Span) -> Result<StringExpr, Error> {
    // SANITY: families name existing builtins; a test compiles each.
    let builtin = builtin::internal(name).ok_or(StatementError::NotAssignable { span })?;
    Ok(StringExpr { kind: StringKind::Builtin(builtin, arguments), span })
}
