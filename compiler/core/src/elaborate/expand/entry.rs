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
    // Variables that have no value there are refused: behind the first instructions the registers may be anything.
    match reads_entry(names, body, conditions) {
        true => Site { attachment, context, ..site },
        false => site,
    }
}

/// Whether a handler, with the functions that it calls, reads registers as they are at a function's entry.
fn reads_entry(names: &Names, body: &[&ast::Stmt], conditions: &[&ast::Expr]) -> bool {
    let mut seen = HashSet::new();
    let mut waiting: Vec<(&ast::Name, usize)> = Vec::new();
    let mut found = Vec::new();
    conditions.iter().for_each(|condition| visit::in_expression(condition, &mut |expr| found.push(expr)));
    body.iter().for_each(|statement| visit::in_statement(statement, &mut |expr| found.push(expr)));
    loop {
        for expr in found.drain(..) {
            if is_of_entry(expr) {
                return true;
            }
            if let ast::ExprKind::Call(name, arguments) = &expr.kind {
                waiting.push((name, arguments.len()));
            }
        }
        let Some((name, arity)) = waiting.pop() else { return false };
        for id in names.overloads(name.span, &name.text, arity).into_iter().filter(|id| seen.insert(*id)) {
            match names.functions.get(id.index()).map(|named| &named.body) {
                Some(ast::FunctionBody::Script(block)) => visit::expressions(block, &mut |expr| found.push(expr)),
                Some(ast::FunctionBody::EmbeddedC(code)) if names_registers(&code.text) => return true,
                _ => {}
            }
        }
    }
}

fn is_of_entry(expr: &ast::Expr) -> bool {
    match &expr.kind {
        ast::ExprKind::Call(name, _) => builtin::is_of_entry(&name.text),
        ast::ExprKind::Register { .. } => true,
        ast::ExprKind::EmbeddedC(code) => names_registers(&code.text),
        _ => false,
    }
}

/// Whether embedded C may read registers: CONTEXT->uregs, task_pt_regs(), KSTK_ESP().
fn names_registers(text: &str) -> bool {
    ["regs", "KSTK_", "REG_"].iter().any(|word| text.contains(word))
}
