// SPDX-License-Identifier: GPL-2.0-or-later

//! The end of inference: contradictory uses of globals, and everything without a type.

use super::Inference;
use crate::elaborate::error::{AggregateError, ArrayError, Error, NameError, StatementError, Unneeded};
use crate::elaborate::typed::ProgramFunction;
use crate::elaborate::types::{Conflict, TypeVar};
use crate::elaborate::unit::{Handler, InstanceId};
use crate::program::Type;
use spile_source::Span;

impl<'a> Inference<'_, 'a> {
    /// Reports contradictions about the shape of globals.
    pub(super) fn check_globals(&mut self) {
        for index in 0..self.typed.globals.len() {
            let (ast, global) = (self.names.globals[index], &self.typed.globals[index]);
            let shape = &global.shape;
            let name = || ast.name.text.clone();
            let mut errors: Vec<Error> = Vec::new();
            if let (Some(scalar), Some((_, keys))) = (shape.scalar, &shape.keys) {
                errors.push(ArrayError::ArrayAsValue { name: name(), span: scalar, keys: Some(*keys) }.into());
            } else if let (Some(_), Some(scalar)) = (ast.size, shape.scalar) {
                errors.push(ArrayError::ArrayAsValue { name: name(), span: scalar, keys: None }.into());
            } else if ast.wrap && shape.scalar.is_some() {
                errors.push(ArrayError::WrappedScalar { name: name(), span: ast.span }.into());
            }
            if let Some((_, initial)) = &ast.initial {
                let what = match (&shape.keys, &shape.stats) {
                    (Some((_, span)), _) => Some(("an array", *span)),
                    (None, Some((_, span))) => Some(("an aggregate", *span)),
                    _ => None,
                };
                if let Some((what, used)) = what {
                    errors.push(ArrayError::InitialValue { name: name(), what, span: *initial, used }.into());
                }
            }
            if let (Some(_), Some(looped)) = (&shape.stats, shape.looped) {
                errors.push(AggregateError::ForeachAggregate { span: looped }.into());
            }
            let ty = global.ty;
            if let (Some((_, stats)), Some((_, value))) =
                (&self.typed.globals[index].shape.stats, self.typed.types.decided(ty))
            {
                let name = self.names.globals[index].name.text.clone();
                errors.push(AggregateError::AggregateAsValue { name, span: value, stats: Some(*stats) }.into());
            }
            errors.into_iter().for_each(|error| self.env.report(error));
        }
    }

    /// Warns of library files whose variables are the script's globals, perhaps because the script has taken their names.
    pub(super) fn check_foreign(&mut self) {
        for ((id, _), span) in std::mem::take(&mut self.foreign) {
            let declared = self.names.globals[id.index()].name.span;
            self.env.report(Unneeded::Foreign { name: self.names.global_name(id), span, declared });
        }
    }

    /// Gives a type to private globals of the library that a script only deletes (`delete_stopwatch` and nothing else of
    /// its file): they hold nothing, so any type will do, and the user could not declare one.
    fn settle_library_globals(&mut self) {
        for index in 0..self.typed.globals.len() {
            let global = &self.typed.globals[index];
            let declared = self.names.globals[index];
            let name = &declared.name;
            if !declared.private || !self.env.is_library(name.span.file) {
                continue;
            }
            let span = name.span;
            let keys: Vec<_> =
                global.shape.keys.iter().flat_map(|(keys, _)| keys.iter().copied()).chain([global.ty]).collect();
            for var in keys {
                if self.typed.types.get(var).is_none() {
                    // No conflict: it had no type.
                    let _ = self.typed.types.set(var, Type::Long, span);
                }
            }
        }
    }

    /// Whether a used variable, or a printed call, lacks a type.
    fn has_untyped(&mut self, handlers: &[Handler<'a>]) -> bool {
        let units = handlers
            .iter()
            .map(|handler| &handler.unit)
            .chain(self.typed.functions.iter().map(|function| &function.unit));
        let locals = units.flat_map(|unit| &unit.locals).filter(|local| local.read).map(|local| local.ty);
        let used = self.typed.globals.iter().filter(|global| global.read || global.written);
        let globals = used
            .flat_map(|global| global.shape.keys.iter().flat_map(|(keys, _)| keys.iter().copied()).chain([global.ty]));
        let all: Vec<TypeVar> = locals.chain(globals).chain(self.printed_calls.iter().map(|(ty, _)| *ty)).collect();
        all.into_iter().any(|var| self.typed.types.get(var).is_none())
    }

    /// Reports calls of builtins without a result that are used as strings.
    fn check_without_result(&mut self) {
        for (result, span) in std::mem::take(&mut self.without_result) {
            if let Some(first @ (Type::String, _)) = self.typed.types.decided(result) {
                self.env.report(StatementError::Types(Conflict { first, second: (Type::Long, span) }));
            }
        }
    }

    /// Reports everything that has no type.
    pub(super) fn check_types(&mut self, handlers: &mut [Handler<'a>]) {
        self.settle_library_globals();
        self.check_without_result();
        if !self.env.failed() && self.has_untyped(handlers) {
            self.report_elided(handlers);
        }
        let reached: Vec<InstanceId> = self
            .typed
            .reached
            .iter()
            .filter_map(|reached| if let ProgramFunction::Instance(index) = reached { Some(*index) } else { None })
            .collect();
        self.report_bare_returns(&reached);
        let mut untyped = self.untyped_calls();
        let unassigned = self.locals_without_value(handlers, &reached, &mut untyped);
        untyped.extend(self.untyped_globals());
        unassigned.into_iter().for_each(|warning| self.env.report(warning));
        // One mistake causes others: unknown types are not reported after an error.
        if !self.env.failed() {
            untyped.into_iter().for_each(|(name, span)| self.env.report(NameError::Unresolved { name, span }));
        }
    }

    /// Reports each `return` without a value in a function that has one.
    fn report_bare_returns(&mut self, reached: &[InstanceId]) {
        for &index in reached {
            let function = &self.typed.functions[index.index()];
            if let (Some(span), Some(ty)) = (function.bare_return, self.typed.types.get(function.returns)) {
                self.env.report(StatementError::BareReturn { ty, span });
            }
        }
    }

    /// Functions whose result is printed, and has no type.
    fn untyped_calls(&mut self) -> Vec<(String, Span)> {
        let mut untyped = Vec::new();
        for &(ty, name) in &self.printed_calls {
            if self.typed.types.get(ty).is_none() {
                untyped.push((name.text.clone(), name.span));
            }
        }
        untyped
    }

    /// Warnings for locals that are read and never assigned; those that have no type are added to `untyped`.
    fn locals_without_value(
        &mut self,
        handlers: &[Handler<'a>],
        reached: &[InstanceId],
        untyped: &mut Vec<(String, Span)>,
    ) -> Vec<Unneeded> {
        let mut unassigned = Vec::new();
        for unit in handlers
            .iter()
            .map(|handler| &handler.unit)
            .chain(reached.iter().map(|&index| &self.typed.functions[index.index()].unit))
        {
            for local in &unit.locals {
                if self.typed.types.get(local.ty).is_none() && local.read {
                    untyped.push((local.name.clone(), local.span));
                } else if !local.assigned && local.read {
                    let others = unit.locals.iter().filter(|other| other.assigned).map(|other| other.name.clone());
                    unassigned.push(Unneeded::NeverAssigned {
                        name: local.name.clone(),
                        near: others.chain(self.names.globals.iter().map(|global| global.name.text.clone())).collect(),
                        span: local.span,
                    });
                }
            }
        }
        unassigned
    }

    /// Globals that are used, and whose value or keys have no type.
    fn untyped_globals(&mut self) -> Vec<(String, Span)> {
        let mut untyped = Vec::new();
        for (declared, global) in self.names.globals.iter().zip(&self.typed.globals) {
            let (name, shape) = (&declared.name, &global.shape);
            if !(global.read || global.written) || shape.stats.is_some() {
                continue;
            }
            let keys = shape.keys.iter().flat_map(|(keys, _)| keys.iter().copied());
            if keys.chain([global.ty]).any(|var| self.typed.types.get(var).is_none()) {
                untyped.push((name.text.clone(), name.span));
            }
        }
        untyped
    }
}
