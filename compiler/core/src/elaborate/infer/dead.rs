// SPDX-License-Identifier: GPL-2.0-or-later

//! Code that never runs, such as a branch of a condition whose value is known. Its names and types are checked as
//! everywhere; its queries of the target are not, since the code may be meant for another kernel. Nothing is generated for
//! it.
//!
//! The library's code is exempt: it has branches for functions and types of every kernel.

use super::Inference;
use crate::elaborate::types::TypeVar;
use crate::elaborate::unit::{Handler, Unit};
use crate::program::Type;
use spile_source::Span;
use spile_syntax::ast;

impl<'a> Inference<'_, 'a> {
    pub(super) fn infer_dead_statement(&mut self, unit: &mut Unit, statement: &'a ast::Stmt) {
        self.without_effect(unit, statement.span, |this, unit| this.infer_statement(unit, statement));
    }

    /// The type of an expression that is not evaluated; None in the library.
    pub(super) fn infer_dead(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> Option<TypeVar> {
        self.without_effect(unit, expr.span, |this, unit| this.infer(unit, expr))
    }

    /// The condition whose value is known.
    pub(super) fn infer_dead_condition(&mut self, unit: &mut Unit, condition: &'a ast::Expr) {
        self.without_effect(unit, condition.span, |this, unit| this.want(unit, condition, Type::Long));
    }

    /// Infers types from statements that are left out, where nothing else determines them. Errors in these statements are
    /// not reported.
    pub(super) fn report_elided(&mut self, handlers: &mut [Handler<'a>]) {
        let before = self.env.mark();
        let uses: Vec<(bool, bool)> = self.typed.globals.iter().map(|global| (global.read, global.written)).collect();
        for handler in handlers {
            let body = handler.body.clone();
            self.ask_all(&mut handler.unit, &body);
        }
        for index in 0..self.typed.functions.len() {
            let ast::FunctionBody::Script(block) = &self.typed.functions[index].ast.body else { continue };
            let mut unit = std::mem::take(&mut self.typed.functions[index].unit);
            if unit.function.is_some() {
                self.ask_all(&mut unit, &block.statements.iter().collect::<Vec<_>>());
            }
            self.typed.functions[index].unit = unit;
        }
        for (global, (read, written)) in self.typed.globals.iter_mut().zip(uses) {
            (global.read, global.written) = (read, written);
        }
        self.env.forget(before);
    }

    fn ask_all(&mut self, unit: &mut Unit, statements: &[&'a ast::Stmt]) {
        let names = self.names;
        let elided = std::mem::take(&mut unit.elided);
        self.dead += 1;
        for statement in statements.iter().filter(|statement| !names.is_library(statement.span)) {
            self.infer_statement(unit, statement);
        }
        self.dead -= 1;
        unit.elided = elided;
    }

    /// Suppresses uses: no functions are reached, no variables read or written.
    fn without_effect<R>(
        &mut self,
        unit: &mut Unit,
        span: Span,
        infer: impl FnOnce(&mut Self, &mut Unit) -> R,
    ) -> Option<R> {
        // Where context variables exist, what depends on them is resolved before names are: a branch may be for another
        // kernel.
        let settled = unit.at.has_variables();
        if settled || self.names.is_library(span) {
            return None;
        }
        let uses: Vec<(bool, bool)> = self.typed.globals.iter().map(|global| (global.read, global.written)).collect();
        self.dead += 1;
        let inferred = infer(self, unit);
        self.dead -= 1;
        for (global, (read, written)) in self.typed.globals.iter_mut().zip(uses) {
            (global.read, global.written) = (read, written);
        }
        Some(inferred)
    }
}
