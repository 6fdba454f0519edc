// SPDX-License-Identifier: GPL-2.0-or-later

//! The third phase: types. Visits every handler and every function they reach, and derives types from each use.

mod arrays;
mod check;
mod dead;
mod expressions;
mod flow;
mod functions;
mod statements;

use super::counter::Counters;
use super::environment::Environment;
use super::error::StatementError;
use super::lookup::Lookup;
use super::names::Names;
use super::typed::Typed;
use super::types::{Conflict, TypeVar};
use super::unit::{Handler, Local, Unit};
use crate::program::Type;
use flow::Flow;
use spile_source::Span;
use spile_syntax::ast;

/// The traversal of all code.
pub(super) struct Inference<'e, 'a> {
    /// The input and the problems.
    pub env: &'e mut Environment<'a>,
    /// The declarations of scripts and tapset.
    pub names: &'e Names<'a>,
    counters: &'e Counters,
    /// The result.
    pub typed: Typed<'a>,
    flows: Vec<Flow<'a>>,
    /// Calls whose results are printed: they need a type.
    printed_calls: Vec<(TypeVar, &'a ast::Name)>,
    /// Number of loops around the statement.
    loops: usize,
    /// Nesting depth of code that never runs.
    pub dead: usize,
}

/// The types of everything that the handlers reach; reports contradictions and missing types.
pub(super) fn infer<'a>(
    env: &mut Environment<'a>,
    names: &Names<'a>,
    counters: &Counters,
    handlers: &mut [Handler<'a>],
) -> Typed<'a> {
    let mut inference = Inference::new(env, names, counters);
    inference.walk(handlers);
    inference.find_pointees(handlers);
    inference.check_globals();
    inference.check_types(handlers);
    inference.typed
}

/// The same without the checks of the whole program: parts of it may be missing.
pub(super) fn infer_for_survey<'a>(
    env: &mut Environment<'a>,
    names: &Names<'a>,
    handlers: &mut [Handler<'a>],
) -> Typed<'a> {
    let counters = Counters::default();
    let mut inference = Inference::new(env, names, &counters);
    inference.walk(handlers);
    inference.find_pointees(handlers);
    inference.typed
}

/// What an expression does with a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Written,
    None,
}

impl<'e, 'a> Inference<'e, 'a> {
    fn new(env: &'e mut Environment<'a>, names: &'e Names<'a>, counters: &'e Counters) -> Inference<'e, 'a> {
        let typed = Typed::new(names);
        Inference { env, names, counters, typed, flows: Vec::new(), printed_calls: Vec::new(), loops: 0, dead: 0 }
    }

    /// For target expressions, with the types known so far.
    pub fn lookup(&mut self) -> Lookup<'_, 'a> {
        Lookup::new(self.env, self.names, &mut self.typed)
    }

    pub(super) fn set(&mut self, var: TypeVar, ty: Type, span: Span) {
        if let Err(conflict) = self.typed.types.set(var, ty, span) {
            self.env.report(StatementError::Types(conflict));
        }
    }

    /// Unifies the type of a place with that of the expression at `span`.
    pub(super) fn equate_at(&mut self, place: TypeVar, value: TypeVar, span: Span) {
        if let Err(Conflict { first, second }) = self.typed.types.equate(place, value) {
            self.env.report(StatementError::Types(Conflict { first, second: (second.0, span) }));
        }
    }

    /// Requires that type of the expression.
    pub fn want(&mut self, unit: &mut Unit, expr: &'a ast::Expr, ty: Type) {
        let var = self.infer(unit, expr);
        match self.typed.types.decided(var) {
            Some(found) if found.0 != ty => {
                let first = (ty, expr.span);
                let conflict = Conflict { first, second: (found.0, expr.span) };
                let mut diagnostic = StatementError::Types(conflict).diagnostic();
                diagnostic.labels.truncate(1);
                if found.1 != expr.span {
                    diagnostic = diagnostic.also(found.1, format!("it is a {} because of this", found.0.name()));
                }
                self.env.add(diagnostic);
            }
            _ => self.set(var, ty, expr.span),
        }
    }

    /// The variable of that name: a global, a local, or a new local.
    pub(super) fn variable(&mut self, unit: &mut Unit, name: &ast::Name, used: Use) -> TypeVar {
        let (read, written) = (used == Use::Read && self.dead == 0, used == Use::Written);
        if let Some(id) = unit.find_local(self.names, name.span, &name.text) {
            let local = &mut unit.locals[id.index()];
            local.assigned |= written;
            local.read |= read;
            return local.ty;
        }
        if let Some(id) = self.names.find_global(name.span, &name.text) {
            let global = &mut self.typed.globals[id.index()];
            if written {
                global.written = true;
            } else if used == Use::Read {
                global.read = true;
            }
            global.shape.scalar.get_or_insert(name.span);
            return global.ty;
        }
        let ty = self.typed.types.fresh();
        unit.add(Local { name: name.text.clone(), ty, span: name.span, assigned: written, read });
        ty
    }
}
