// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of addresses in programs that the user's scripts use as values: only the loader knows them, so such a value is the
//! address. What a print shows directly is named; `plan/deferred.rs` decides that, and is asked here.

use std::collections::BTreeSet;

use crate::elaborate::environment::Environment;
use crate::elaborate::error::Unneeded;
use crate::plan::deferred::{flatten, format_of, handed_to, is_open, is_plain, returned};
use crate::program::parts::{self, Visitor};
use crate::program::{
    Expr, FunctionBody, FunctionId, LongExpr, LongKind, Print, PrintPiece, Program, StringExpr, StringKind,
};
use spile_source::{Origin, Span};

/// What names an address, or those of a stack, in a print only.
const NAMING: [&str; 8] = [
    "usymname",
    "usymdata",
    "usymfile",
    "usymline",
    "usymfileline",
    "fold_ustack",
    "__sprint_user_stack",
    "__sprint_user_addresses",
];

/// Warns of each use as a value in the user's scripts.
pub(in crate::elaborate) fn warn_of_names(env: &mut Environment, program: &Program) {
    let mut found = Uses { program, spans: BTreeSet::new() };
    for probe in &program.probes {
        probe.saved.iter().for_each(|value| found.expr(value));
        probe.body.iter().for_each(|statement| found.statement(statement));
    }
    for function in &program.functions {
        let FunctionBody::Script(statements) = &function.body else { continue };
        match returned(function) {
            // Prints see through it; other uses are told of where it is called.
            Some(Expr::String(StringExpr { kind: StringKind::Builtin(..), .. })) if handed_to(function).is_some() => {}
            Some(value) if is_open(function) && format_of(program, value, 1).is_some() => found.shown(value),
            _ => statements.iter().for_each(|statement| found.statement(statement)),
        }
    }
    let sources = env.sources;
    for (span, name) in found.spans {
        if sources.file(span.file).origin == Origin::User {
            env.report(Unneeded::Unnamed { name: name.to_string(), span });
        }
    }
}

struct Uses<'p> {
    program: &'p Program,
    /// Where they are, and what is called there.
    spans: BTreeSet<(Span, &'p str)>,
}

impl<'p> Uses<'p> {
    /// Whether the expression names addresses where it is the argument of a directive for text.
    fn calls_naming(&self, expr: &StringExpr) -> bool {
        let builtin = match &expr.kind {
            StringKind::Builtin(builtin, _) => Some(*builtin),
            StringKind::Call(id, _) => {
                let hands = self.program.functions.get(id.index()).and_then(handed_to);
                hands.map(|(builtin, _)| builtin)
            }
            _ => None,
        };
        builtin.is_some_and(|builtin| NAMING.contains(&builtin.symbol))
    }

    /// Whether a print shows what the function formats, with names in it.
    fn formats_names(&self, id: FunctionId) -> bool {
        let Some(function) = self.program.functions.get(id.index()).filter(|function| is_open(function)) else {
            return false;
        };
        let Some((pieces, _)) = returned(function).and_then(|value| format_of(self.program, value, 1)) else {
            return false;
        };
        let mut flat = Vec::new();
        flatten(self.program, pieces, &mut flat);
        flat.into_iter().any(|piece| match piece {
            PrintPiece::Directive { directive, argument: Expr::String(argument), .. } => {
                directive.conversion == b's' && self.calls_naming(argument)
            }
            _ => false,
        })
    }

    /// What a print shows as it formats it.
    fn shown(&mut self, expr: &'p Expr) {
        match expr {
            Expr::String(StringExpr { kind: StringKind::Format(print), .. }) => self.print(print),
            Expr::String(StringExpr { kind: StringKind::Call(_, given), .. }) => {
                given.iter().for_each(|argument| self.expr(argument));
            }
            _ => self.expr(expr),
        }
    }

    /// What the loader formats.
    fn print(&mut self, print: &'p Print) {
        for piece in &print.pieces {
            let PrintPiece::Directive { directive, width, precision, argument, .. } = piece else { continue };
            width.iter().chain(precision).for_each(|expr| self.long(expr));
            let Expr::String(text) = argument else {
                self.expr(argument);
                continue;
            };
            match &text.kind {
                _ if is_plain(piece) && format_of(self.program, argument, 0).is_some() => self.shown(argument),
                StringKind::Builtin(_, given) | StringKind::Call(_, given)
                    if directive.conversion == b's' && self.calls_naming(text) =>
                {
                    given.iter().for_each(|argument| self.expr(argument));
                }
                _ => self.string(text),
            }
        }
    }

    /// An expression whose value the script keeps, compares or computes with.
    fn expr(&mut self, expr: &'p Expr) {
        self.part(expr.into());
    }
}

impl<'p> Visitor<'p> for Uses<'p> {
    fn long(&mut self, expr: &'p LongExpr) {
        match &expr.kind {
            LongKind::Print(print) => self.print(print),
            _ => parts::of_long(expr, &mut |part| self.part(part)),
        }
    }

    fn string(&mut self, expr: &'p StringExpr) {
        match &expr.kind {
            StringKind::Builtin(builtin, _) if self.calls_naming(expr) => {
                self.spans.insert((expr.span, builtin.name));
            }
            StringKind::Call(id, _) if self.calls_naming(expr) || self.formats_names(*id) => {
                let function = self.program.functions.get(id.index());
                self.spans.extend(function.map(|function| (expr.span, function.name.as_str())));
            }
            _ => {}
        }
        // What is formatted as a value, the module formats.
        parts::of_string(expr, &mut |part| self.part(part));
    }
}
