// SPDX-License-Identifier: GPL-2.0-or-later

//! What the text of a command of `system()` is derived from.

use std::collections::BTreeSet;

use super::{Element, Expr, GlobalId, LongExpr, LongKind, Print, PrintPiece, StringExpr, StringKind, Variable};
use crate::builtin::Builtin;

/// What the text of a command is derived from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// The script's text, information from the kernel, and these globals.
    Of(BTreeSet<GlobalId>),
    /// Everything that its handler uses.
    Anything,
}

impl Text {
    /// Of the argument of `system()`.
    pub fn of(argument: &Expr) -> Text {
        let mut globals = BTreeSet::new();
        match is_plain(argument, &mut globals) {
            true => Text::Of(globals),
            false => Text::Anything,
        }
    }
}

/// Whether a value depends on nothing but these globals, as far as the script's variables are concerned.
fn is_plain(expr: &Expr, globals: &mut BTreeSet<GlobalId>) -> bool {
    match expr {
        Expr::Long(expr) => is_plain_long(expr, globals),
        Expr::String(expr) => is_plain_string(expr, globals),
    }
}

fn is_plain_long(expr: &LongExpr, globals: &mut BTreeSet<GlobalId>) -> bool {
    let mut all = |parts: &[&LongExpr]| parts.iter().all(|part| is_plain_long(part, globals));
    match &expr.kind {
        LongKind::Const(_) => true,
        LongKind::Register { .. } | LongKind::KernelAddress { .. } | LongKind::ModuleAddress { .. } => true,
        LongKind::Variable(variable) => is_plain_variable(*variable, globals),
        LongKind::Binary(_, left, right) => all(&[left, right]),
        LongKind::Compare(_, left, right) => is_plain_string(left, globals) && is_plain_string(right, globals),
        LongKind::Conditional(condition, then, otherwise) => all(&[condition, then, otherwise]),
        LongKind::Negate(value)
        | LongKind::Not(value)
        | LongKind::Complement(value)
        | LongKind::SignExtend(value, _)
        | LongKind::Bits { value, .. }
        | LongKind::Read { address: value, .. } => all(&[value]),
        LongKind::Matches { text, .. } => is_plain_string(text, globals),
        LongKind::Builtin(builtin, arguments) => is_plain_call(builtin, arguments, globals),
        LongKind::Element(element) | LongKind::Extract { aggregate: element, .. } => is_plain_element(element, globals),
        _ => false,
    }
}

fn is_plain_string(expr: &StringExpr, globals: &mut BTreeSet<GlobalId>) -> bool {
    match &expr.kind {
        StringKind::Literal(_) => true,
        StringKind::Variable(variable) => is_plain_variable(*variable, globals),
        StringKind::Concatenate(left, right) => is_plain_string(left, globals) && is_plain_string(right, globals),
        StringKind::Conditional(condition, then, otherwise) => {
            is_plain_long(condition, globals) && [then, otherwise].iter().all(|part| is_plain_string(part, globals))
        }
        StringKind::Pretty { address, .. } => is_plain_long(address, globals),
        StringKind::Builtin(builtin, arguments) => is_plain_call(builtin, arguments, globals),
        StringKind::Format(print) => is_plain_print(print, globals),
        StringKind::Element(element) | StringKind::Chart(element) => is_plain_element(element, globals),
        _ => false,
    }
}

fn is_plain_variable(variable: Variable, globals: &mut BTreeSet<GlobalId>) -> bool {
    match variable {
        Variable::Global(global) => {
            globals.insert(global);
            true
        }
        Variable::Local(_) => false,
    }
}

/// A builtin that is not pure, or uses groups, depends on earlier calls.
fn is_plain_call(builtin: &Builtin, arguments: &[Expr], globals: &mut BTreeSet<GlobalId>) -> bool {
    builtin.pure && !builtin.groups && arguments.iter().all(|argument| is_plain(argument, globals))
}

fn is_plain_element(element: &Element, globals: &mut BTreeSet<GlobalId>) -> bool {
    globals.insert(element.global);
    element.keys.iter().all(|key| is_plain(key, globals))
}

fn is_plain_print(print: &Print, globals: &mut BTreeSet<GlobalId>) -> bool {
    print.pieces.iter().all(|piece| match piece {
        PrintPiece::Literal(_) => true,
        PrintPiece::Directive { width, precision, argument, .. } => {
            width.iter().chain(precision).all(|expr| is_plain_long(expr, globals)) && is_plain(argument, globals)
        }
    })
}
