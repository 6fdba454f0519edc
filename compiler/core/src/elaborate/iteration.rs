// SPDX-License-Identifier: GPL-2.0-or-later

//! Rejects changes to an array while a `foreach` iterates over it, in the loop's body or in a function called there.
//! `delete` of the whole array is allowed in the body: it ends the loop.

use super::error::{ArrayError, Error};
use crate::program::uses::{Access, CodeSummary, Uses, function_uses};
use crate::program::{FunctionBody, GlobalId, Iterated, Program, Stmt, StmtKind};
use spile_source::Span;

/// The errors, in program order.
pub(super) fn check(program: &Program) -> Vec<Error> {
    let summaries = CodeSummary::of_functions(program);
    let mut check = Check { program, functions: function_uses(&summaries), errors: Vec::new() };
    for probe in &program.probes {
        check.statements(&probe.body);
    }
    for function in &program.functions {
        if let FunctionBody::Script(statements) = &function.body {
            check.statements(statements);
        }
    }
    check.errors
}

struct Check<'p> {
    program: &'p Program,
    functions: Vec<Uses>,
    errors: Vec<Error>,
}

impl Check<'_> {
    fn statements(&mut self, statements: &[Stmt]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Block(statements) => self.statements(statements),
            StmtKind::If { then, otherwise, .. } => {
                self.statement(then);
                otherwise.iter().for_each(|otherwise| self.statement(otherwise));
            }
            StmtKind::Loop { body, .. } => self.statement(body),
            StmtKind::Try { body, handler, .. } => {
                self.statements(body);
                self.statements(handler);
            }
            StmtKind::Foreach(foreach) => {
                let id = match &foreach.over {
                    Iterated::Array(id) => *id,
                    // The buckets are a copy.
                    Iterated::Histogram(_) => return self.statement(&foreach.body),
                };
                self.body(id, &foreach.body, statement.span);
                self.statement(&foreach.body);
            }
            _ => {}
        }
    }

    fn body(&mut self, id: GlobalId, body: &Stmt, foreach: Span) {
        let summary = CodeSummary::of(std::slice::from_ref(body));
        let name = || self.program.globals[id.index()].name.clone();
        let error = if let Some(&span) = summary.changes.get(&id) {
            ArrayError::ChangedInForeach { name: name(), function: None, span, foreach }.into()
        } else {
            let changes = |uses: &Uses| uses.get(&id).is_some_and(|access| *access != Access::Read);
            let Some(callee) = summary.calls.iter().find(|callee| changes(&self.functions[callee.index()])) else {
                return;
            };
            let function = &self.program.functions[callee.index()];
            ArrayError::ChangedInForeach {
                name: name(),
                function: Some(function.name.clone()),
                span: function.span,
                foreach,
            }
            .into()
        };
        self.errors.push(error);
    }
}
