// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of addresses in programs that the user's scripts use as values: only the loader knows them, so such a value is the
//! address. What a print shows directly is named; `plan/deferred.rs` decides that, and this follows it.

use std::collections::HashSet;

use crate::elaborate::environment::Environment;
use crate::elaborate::error::Unneeded;
use spile_source::{Origin, Span};
use spile_syntax::ast::{self, Block, Expr, ExprKind, FunctionBody, Index, Item, Stmt, StmtKind};
use spile_syntax::visit;

/// What names an address, or those of a stack, in a print only.
const NAMING: [&str; 9] = [
    "usymname",
    "usymdata",
    "usymfile",
    "usymline",
    "usymfileline",
    "fold_ustack",
    "sprint_ubacktrace",
    "sprint_usyms",
    "sprint_ustack",
];

/// Warns of each use as a value in the user's scripts.
pub(in crate::elaborate) fn warn_of_names(env: &mut Environment, scripts: &[ast::Script]) {
    let sources = env.sources;
    let own: Vec<&ast::Script> =
        scripts.iter().filter(|script| sources.file(script.file).origin == Origin::User).collect();
    let declared: HashSet<&str> = own.iter().flat_map(|script| &script.items).filter_map(function_name).collect();
    let naming = NAMING.into_iter().filter(|name| !declared.contains(name)).collect();
    let mut found = Uses { naming, spans: Vec::new() };
    // Prints see through a function that does nothing else.
    for item in own.iter().flat_map(|script| &script.items) {
        if let Item::Function(function) = item
            && let FunctionBody::Script(block) = &function.body
            && let Some(Expr { kind: ExprKind::Call(name, _), .. }) = returned(block)
            && found.naming.contains(name.text.as_str())
        {
            found.naming.insert(&function.name.text);
        }
    }
    for item in own.iter().flat_map(|script| &script.items) {
        match item {
            Item::Probe(probe) => found.block(&probe.body),
            Item::Alias(alias) => alias.prologue.iter().chain(&alias.epilogue).for_each(|block| found.block(block)),
            Item::Function(function) => {
                if let FunctionBody::Script(block) = &function.body {
                    match returned(block) {
                        Some(value) => found.shown(value),
                        None => found.block(block),
                    }
                }
            }
            Item::Global(_) | Item::EmbeddedC(_) => {}
        }
    }
    for (name, span) in found.spans {
        env.report(Unneeded::Unnamed { name, span });
    }
}

fn function_name(item: &Item) -> Option<&str> {
    match item {
        Item::Function(function) => Some(&function.name.text),
        _ => None,
    }
}

/// The value of a function that only returns one.
fn returned(block: &Block) -> Option<&Expr> {
    match block.statements.as_slice() {
        [Stmt { kind: StmtKind::Return(Some(value)), .. }] => Some(value),
        _ => None,
    }
}

fn of_index(index: &Index) -> Option<&Expr> {
    if let Index::Expr(expr) = index { Some(expr) } else { None }
}

/// The expressions directly in a statement.
fn own_expressions(statement: &Stmt) -> Vec<&Expr> {
    match &statement.kind {
        StmtKind::Expr(expr) | StmtKind::Delete(expr) => vec![expr],
        StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => vec![condition],
        StmtKind::For { init, condition, step, .. } => [init, condition, step].into_iter().flatten().collect(),
        StmtKind::Foreach(foreach) => {
            foreach.slice.iter().flatten().filter_map(of_index).chain(&foreach.limit).collect()
        }
        StmtKind::Return(value) => value.iter().collect(),
        _ => Vec::new(),
    }
}

struct Uses<'n> {
    /// Functions that name addresses.
    naming: HashSet<&'n str>,
    /// Where their names are, and the names.
    spans: Vec<(String, Span)>,
}

impl Uses<'_> {
    fn block(&mut self, block: &Block) {
        visit::statements(block, &mut |statement| {
            own_expressions(statement).into_iter().for_each(|expr| self.value(expr));
        });
    }

    /// An expression whose value the script keeps, compares or computes with.
    fn value(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Call(name, _) if self.naming.contains(name.text.as_str()) => {
                self.spans.push((name.text.clone(), name.span));
            }
            ExprKind::Print(print) if !print.to_string => {
                print.arguments.iter().for_each(|argument| self.shown(argument));
                return;
            }
            _ => {}
        }
        visit::children(expr, &mut |child| self.value(child));
    }

    /// One that a print shows as it is.
    fn shown(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Call(..) => visit::children(expr, &mut |child| self.value(child)),
            ExprKind::Print(print) if print.to_string => {
                print.arguments.iter().for_each(|argument| self.shown(argument));
            }
            _ => self.value(expr),
        }
    }
}
