// SPDX-License-Identifier: GPL-2.0-or-later

//! Which patterns have to record where their groups match: those of handlers that ask for that, and of functions that these call.

use std::collections::HashSet;

use crate::builtin::Builtin;
use crate::program::parts::{self, Part, Visitor};
use crate::program::{FunctionBody, FunctionId, LongExpr, LongKind, Program, RegexId, StringExpr, StringKind};

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
        let all = parts::reached(&own, &functions, |found| &found.calls);
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

impl Found {
    fn of<'p>(parts: impl Iterator<Item = Part<'p>>) -> Found {
        let mut found = Found::default();
        parts.for_each(|part| found.part(part));
        found
    }

    fn builtin(&mut self, builtin: &Builtin) {
        self.asks |= builtin.groups;
    }
}

impl<'p> Visitor<'p> for Found {
    fn long(&mut self, expr: &'p LongExpr) {
        match &expr.kind {
            LongKind::Matches { regex, .. } => self.patterns.push(*regex),
            LongKind::Call(function, _) => self.calls.push(*function),
            LongKind::Builtin(builtin, _) => self.builtin(builtin),
            _ => {}
        }
        parts::of_long(expr, &mut |part| self.part(part));
    }

    fn string(&mut self, expr: &'p StringExpr) {
        match &expr.kind {
            StringKind::Call(function, _) => self.calls.push(*function),
            StringKind::Builtin(builtin, _) => self.builtin(builtin),
            _ => {}
        }
        parts::of_string(expr, &mut |part| self.part(part));
    }
}
