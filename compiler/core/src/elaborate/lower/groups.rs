// SPDX-License-Identifier: GPL-2.0-or-later

//! Which patterns have to record where their groups match: those of handlers that ask for that, and of functions that these call.

use std::collections::HashSet;

use crate::builtin::Builtin;
use crate::program::parts::{self, Part};
use crate::program::{FunctionBody, FunctionId, LongExpr, LongKind, Program, RegexId, Stmt, StringExpr, StringKind};

/// The patterns of all handlers that may ask for the groups of one.
pub(super) fn asked(program: &Program) -> HashSet<RegexId> {
    let functions: Vec<Found> = program
        .functions
        .iter()
        .map(|function| match &function.body {
            FunctionBody::Script(statements) => Found::of(statements.iter().map(Part::Statement)),
            FunctionBody::EmbeddedC(_) => Found::default(),
        })
        .collect();
    let mut asked = HashSet::new();
    for probe in &program.probes {
        let own = Found::of(probe.body.iter().map(Part::Statement).chain(probe.saved.iter().map(Part::from)));
        let all = reached(&own, &functions);
        if all.iter().any(|found| found.asks) {
            asked.extend(all.into_iter().flat_map(|found| &found.patterns));
        }
    }
    asked
}

/// What a handler or function does that is of interest here.
#[derive(Default)]
struct Found {
    /// It asks for the groups of the last match.
    asks: bool,
    patterns: Vec<RegexId>,
    calls: Vec<FunctionId>,
}

/// The code itself, and the functions that it calls, each once.
fn reached<'f>(own: &'f Found, functions: &'f [Found]) -> Vec<&'f Found> {
    let mut seen = HashSet::new();
    let mut all = vec![own];
    let mut open: Vec<FunctionId> = own.calls.clone();
    while let Some(id) = open.pop() {
        let Some(function) = functions.get(id.index()).filter(|_| seen.insert(id)) else { continue };
        open.extend(&function.calls);
        all.push(function);
    }
    all
}

impl Found {
    fn of<'p>(parts: impl Iterator<Item = Part<'p>>) -> Found {
        let mut found = Found::default();
        parts.for_each(|part| found.part(part));
        found
    }

    fn part(&mut self, part: Part) {
        match part {
            Part::Statement(statement) => self.statement(statement),
            Part::Long(expr) => self.long(expr),
            Part::String(expr) => self.string(expr),
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        parts::of_statement(statement, &mut |part| self.part(part));
    }

    fn builtin(&mut self, builtin: &Builtin) {
        self.asks |= builtin.groups;
    }

    fn long(&mut self, expr: &LongExpr) {
        match &expr.kind {
            LongKind::Matches { regex, .. } => self.patterns.push(*regex),
            LongKind::Call(function, _) => self.calls.push(*function),
            LongKind::Builtin(builtin, _) => self.builtin(builtin),
            _ => {}
        }
        parts::of_long(expr, &mut |part| self.part(part));
    }

    fn string(&mut self, expr: &StringExpr) {
        match &expr.kind {
            StringKind::Call(function, _) => self.calls.push(*function),
            StringKind::Builtin(builtin, _) => self.builtin(builtin),
            _ => {}
        }
        parts::of_string(expr, &mut |part| self.part(part));
    }
}
