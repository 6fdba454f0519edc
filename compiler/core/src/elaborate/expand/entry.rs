// SPDX-License-Identifier: GPL-2.0-or-later

//! Probes at the entries of functions whose parameters have their values only behind the first instructions: they are placed
//! there, unless the handler asks for what the caller has put into registers and on the stack.

use std::collections::HashSet;

use crate::builtin;
use crate::elaborate::names::Names;
use crate::probe::Site;
use spile_syntax::{ast, visit};

/// The site where the handler runs: at the function's first instruction if it reads registers.
pub(super) fn placed(names: &Names, site: Site, body: &[&ast::Stmt], conditions: &[&ast::Expr]) -> Site {
    let Some((attachment, context)) = site.context.at_entry() else { return site };
    let read = Reads::of(names, body, conditions);
    let is_lost = |name: &String| site.context.variable(name).is_ok() && context.variable(name).is_err();
    match read.entry && !read.variables.iter().any(is_lost) {
        true => Site { attachment, context, ..site },
        false => site,
    }
}

/// What a handler reads, with the functions that it calls.
#[derive(Default)]
struct Reads {
    /// Registers as they are at a function's entry.
    entry: bool,
    /// Variables of the probed code.
    variables: Vec<String>,
}

impl Reads {
    fn of(names: &Names, body: &[&ast::Stmt], conditions: &[&ast::Expr]) -> Reads {
        let mut reads = Reads::default();
        let mut seen = HashSet::new();
        let mut waiting: Vec<(&ast::Name, usize)> = Vec::new();
        let mut found = Vec::new();
        conditions.iter().for_each(|condition| visit::in_expression(condition, &mut |expr| found.push(expr)));
        body.iter().for_each(|statement| visit::in_statement(statement, &mut |expr| found.push(expr)));
        loop {
            for expr in found.drain(..) {
                reads.add(expr);
                if let ast::ExprKind::Call(name, arguments) = &expr.kind {
                    waiting.push((name, arguments.len()));
                }
            }
            let Some((name, arity)) = waiting.pop() else { return reads };
            for id in names.overloads(name.span, &name.text, arity).into_iter().filter(|id| seen.insert(*id)) {
                if let Some(ast::FunctionBody::Script(block)) = names.functions.get(id.index()).map(|named| &named.body)
                {
                    visit::expressions(block, &mut |expr| found.push(expr));
                }
            }
        }
    }

    fn add(&mut self, expr: &ast::Expr) {
        match &expr.kind {
            ast::ExprKind::Call(name, _) => self.entry |= builtin::is_of_entry(&name.text),
            ast::ExprKind::Register { .. } => self.entry = true,
            ast::ExprKind::Target(name) => self.variables.extend(name.strip_prefix('$').map(str::to_string)),
            _ => {}
        }
    }
}
