// SPDX-License-Identifier: GPL-2.0-or-later

//! Code that never runs, as the arm of a condition whose value is known: its names and types are checked like all others,
//! what it asks of the target is not, for it may be there for another kernel. Nothing is made of it.
//!
//! The library's own is not looked at: it has arms for functions and types of every kernel.

use super::types::TypeVar;
use super::{Elaborator, Handler, Unit};
use crate::program::Type;
use spile_source::{Origin, Span};
use spile_syntax::ast;

impl<'a> Elaborator<'a> {
    pub(super) fn infer_dead_statement(&mut self, unit: &mut Unit, statement: &'a ast::Stmt, function: Option<usize>) {
        self.without_effect(unit, statement.span, |this, unit| this.infer_statement(unit, statement, function));
    }

    /// The type of an expression that is not evaluated; None in the library.
    pub(super) fn infer_dead(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> Option<TypeVar> {
        self.without_effect(unit, expr.span, |this, unit| this.infer(unit, expr))
    }

    /// The condition whose value is known.
    pub(super) fn infer_dead_condition(&mut self, unit: &mut Unit, condition: &'a ast::Expr) {
        self.without_effect(unit, condition.span, |this, unit| this.want(unit, condition, Type::Long));
    }

    /// Types that only statements tell which are left out. What is wrong with these hurts nobody.
    pub(super) fn ask_elided(&mut self, handlers: &mut [Handler<'a>]) {
        let (problems, failed) = (self.problems.len(), self.failed);
        let uses: Vec<(bool, bool)> = self.globals.iter().map(|global| (global.read, global.written)).collect();
        for handler in handlers {
            let body = handler.body.clone();
            self.ask_all(&mut handler.unit, &body, None);
        }
        for index in 0..self.functions.len() {
            let ast::FunctionBody::Script(block) = &self.functions[index].ast.body else { continue };
            let mut unit = std::mem::take(&mut self.functions[index].unit);
            if unit.function.is_some() {
                self.ask_all(&mut unit, &block.statements.iter().collect::<Vec<_>>(), Some(index));
            }
            self.functions[index].unit = unit;
        }
        for (global, (read, written)) in self.globals.iter_mut().zip(uses) {
            (global.read, global.written) = (read, written);
        }
        self.problems.truncate(problems);
        self.failed = failed;
    }

    fn ask_all(&mut self, unit: &mut Unit, statements: &[&'a ast::Stmt], function: Option<usize>) {
        let elided = std::mem::take(&mut unit.elided);
        unit.dead += 1;
        for statement in
            statements.iter().filter(|statement| self.sources.file(statement.span.file).origin != Origin::Tapset)
        {
            self.infer_statement(unit, statement, function);
        }
        unit.dead -= 1;
        unit.elided = elided;
    }

    /// What uses nothing: neither functions are reached, nor variables read or written.
    fn without_effect<R>(
        &mut self,
        unit: &mut Unit,
        span: Span,
        infer: impl FnOnce(&mut Self, &mut Unit) -> R,
    ) -> Option<R> {
        // Where there are context variables, what hangs on them is settled before names are: an arm may be for another kernel.
        let settled = unit.context.as_ref().is_some_and(|context| context.has_variables());
        if settled || self.sources.file(span.file).origin == Origin::Tapset {
            return None;
        }
        let uses: Vec<(bool, bool)> = self.globals.iter().map(|global| (global.read, global.written)).collect();
        unit.dead += 1;
        let inferred = infer(self, unit);
        unit.dead -= 1;
        for (global, (read, written)) in self.globals.iter_mut().zip(uses) {
            (global.read, global.written) = (read, written);
        }
        Some(inferred)
    }
}
