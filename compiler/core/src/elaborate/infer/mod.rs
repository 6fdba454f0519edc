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
use crate::program::{GlobalId, Type};
use flow::Flow;
use spile_source::{FileId, Origin, Span};
use spile_syntax::{ast, visit};
use std::collections::BTreeMap;

/// Most rounds of inference: a branch that is taken only in a later one may itself ask.
const MAX_WALKS: usize = 4;

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
    /// Globals of scripts that files of `-I` assign to, with the first place in each file.
    foreign: BTreeMap<(GlobalId, FileId), Span>,
    /// Calls of builtins without a result, such as exit(): 0 where something else needs a number.
    without_result: Vec<(TypeVar, Span)>,
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
    inference.walk_all(handlers);
    inference.check_globals();
    inference.check_foreign();
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
    inference.walk_all(handlers);
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
        Inference {
            env,
            names,
            counters,
            typed,
            flows: Vec::new(),
            printed_calls: Vec::new(),
            foreign: BTreeMap::new(),
            without_result: Vec::new(),
            loops: 0,
            dead: 0,
        }
    }

    /// Infers everything. Which branch of `if (@defined(p->m))` runs depends on what `p` points to, which is found last; then
    /// all is inferred again, with the answers. Those of the last round remain.
    fn walk_all(&mut self, handlers: &mut [Handler<'a>]) {
        let before = self.env.mark();
        for _ in 0..MAX_WALKS {
            self.walk(handlers);
            self.find_pointees(handlers);
            if !self.answer_again(handlers) {
                return;
            }
            self.env.forget(before);
            let answers = std::mem::take(&mut self.typed.answers);
            self.typed = Typed::new(self.names);
            self.typed.answers = answers;
            self.printed_calls.clear();
            self.foreign.clear();
            self.without_result.clear();
            for handler in handlers.iter_mut() {
                let user_writes = std::mem::take(&mut handler.unit.user_writes);
                handler.unit = Unit { user_writes, ..Unit::new(handler.unit.at.clone()) };
            }
        }
        self.walk(handlers);
        self.find_pointees(handlers);
    }

    /// Answers the questions about what variables point to, now that this is known; whether an answer is another one.
    fn answer_again(&mut self, handlers: &[Handler<'a>]) -> bool {
        if self.typed.answers.is_empty() {
            return false;
        }
        let mut changed = false;
        for handler in handlers {
            let mut asked = Vec::new();
            for condition in &handler.condition {
                visit::in_expression(condition, &mut |expr| asked.extend(operand_of(expr)));
            }
            for statement in &handler.body {
                visit::in_statement(statement, &mut |expr| asked.extend(operand_of(expr)));
            }
            changed |= self.answer(&handler.unit, &asked);
        }
        for index in 0..self.typed.functions.len() {
            let ast::FunctionBody::Script(block) = &self.typed.functions[index].ast.body else { continue };
            let mut asked = Vec::new();
            visit::expressions(block, &mut |expr| asked.extend(operand_of(expr)));
            let unit = std::mem::take(&mut self.typed.functions[index].unit);
            changed |= self.answer(&unit, &asked);
            self.typed.functions[index].unit = unit;
        }
        changed
    }

    /// The same for those of them that were asked in one unit.
    fn answer(&mut self, unit: &Unit, operands: &[&'a ast::Expr]) -> bool {
        let mut changed = false;
        for operand in operands {
            let question = self.typed.question(unit, operand);
            if let Some(&before) = self.typed.answers.get(&question) {
                let now = self.lookup().exists(unit, operand);
                changed |= now != before;
                self.typed.answers.insert(question, now);
            }
        }
        changed
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
                if self.dead == 0 && self.names.is_of_script(id) {
                    let file = self.env.sources.reader(name.span);
                    if self.env.sources.file(file).origin == Origin::Directory {
                        self.foreign.entry((id, file)).or_insert(name.span);
                    }
                }
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

/// The operand of `@defined`.
fn operand_of(expr: &ast::Expr) -> Option<&ast::Expr> {
    match &expr.kind {
        ast::ExprKind::Defined(operand) => Some(operand),
        _ => None,
    }
}
