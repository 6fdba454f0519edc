// SPDX-License-Identifier: GPL-2.0-or-later

//! Calls and functions: which functions the handlers reach, and the order in which overloads are tried.
//!
//! Functions of one name and number of parameters are tried in the order of their priority: `next` in one continues with
//! the following one, with the arguments of the call.

use super::Inference;
use crate::builtin::Builtin;
use crate::elaborate::error::StatementError;
use crate::elaborate::typed::{Callee, ProgramFunction};
use crate::elaborate::types::TypeVar;
use crate::elaborate::unit::{InstanceId, Unit};
use crate::elaborate::{guru, unneeded};
use crate::program::FunctionId;
use spile_source::Span;
use spile_syntax::{ast, visit};

impl<'a> Inference<'_, 'a> {
    /// Records that a function is called.
    fn reach(&mut self, index: InstanceId) {
        if self.typed.functions[index.index()].id.is_some() {
            return;
        }
        self.typed.functions[index.index()].id = Some(FunctionId(self.typed.reached.len() as u32));
        self.typed.reached.push(ProgramFunction::Instance(index));
        // All of one name agree on their types, even if they are never tried.
        self.reach_next(index);
        let apart = match &self.typed.functions[index.index()].ast.body {
            ast::FunctionBody::EmbeddedC(code) => code.text.contains("STAP_NEXT"),
            ast::FunctionBody::Script(block) => next_in_try(block),
        };
        if apart {
            self.typed.functions[index.index()].wrapper = Some(FunctionId(self.typed.reached.len() as u32));
            self.typed.reached.push(ProgramFunction::Wrapper(index));
        }
    }

    /// Records that a function continues with the next overload.
    fn reach_next(&mut self, index: InstanceId) {
        let ast = self.typed.functions[index.index()].ast;
        if let Some(builtin) = self.names.builtin_after(ast) {
            self.reach_builtin(index, builtin);
        }
        let Some(next) = self.names.overload_after(ast) else { return };
        let at = self.typed.functions[index.index()].unit.at.clone();
        let next = self.typed.in_context(self.names, next, &at);
        self.typed.functions[index.index()].next = Some(next);
        let (from, to) = (&self.typed.functions[index.index()], &self.typed.functions[next.index()]);
        let mut pairs: Vec<(TypeVar, TypeVar)> =
            from.parameters.iter().copied().zip(to.parameters.iter().copied()).collect();
        pairs.push((from.returns, to.returns));
        let span = to.ast.name.span;
        for (from, to) in pairs {
            self.equate_at(from, to, span);
        }
        self.reach(next);
    }

    /// Records that the last overload continues with a builtin of its name, which has its types.
    fn reach_builtin(&mut self, index: InstanceId, builtin: &'static Builtin) {
        let function = &self.typed.functions[index.index()];
        let (span, returns, parameters) = (function.ast.name.span, function.returns, function.parameters.clone());
        self.use_builtin(builtin, span);
        for (var, (_, ty)) in parameters.into_iter().zip(builtin.parameters) {
            self.set(var, *ty, span);
        }
        if let Some(ty) = builtin.returns {
            self.set(returns, ty, span);
            self.typed.functions[index.index()].has_value = true;
        }
    }

    fn use_builtin(&mut self, builtin: &Builtin, span: Span) {
        self.typed.groups_asked |= builtin.groups;
        self.typed.lines_asked |= builtin.lines;
        self.typed.followed_asked |= builtin.followed;
        if builtin.guru && !self.env.options.guru {
            self.env.report(StatementError::Guru { what: builtin.name, span });
        }
    }

    pub(super) fn infer_functions(&mut self) {
        let mut next = 0;
        while let Some(&reached) = self.typed.reached.get(next) {
            if let ProgramFunction::Instance(index) = reached {
                self.infer_function(index);
            }
            next += 1;
        }
    }

    fn infer_function(&mut self, index: InstanceId) {
        let ast = self.typed.functions[index.index()].ast;
        if let ast::FunctionBody::EmbeddedC(code) = &ast.body {
            self.infer_embedded(code);
        }
        if let ast::FunctionBody::Script(block) = &ast.body {
            let mut unit = std::mem::take(&mut self.typed.functions[index.index()].unit);
            unit.function = Some(index);
            unit.elided = unneeded::elided_of_function(self.env, self.names, block);
            // What `next` needs from the function's surroundings while its unit is being processed.
            self.typed.functions[index.index()].unit = Unit::new(unit.at.clone());
            self.infer_statements(&mut unit, &block.statements);
            self.typed.functions[index.index()].unit = unit;
        }
    }

    pub(super) fn infer_return(&mut self, unit: &mut Unit, function: InstanceId, value: &'a ast::Expr) {
        let ty = self.infer(unit, value);
        self.typed.functions[function.index()].has_value = true;
        let returns = self.typed.functions[function.index()].returns;
        self.note_flow(unit, value, returns);
        self.equate_at(returns, ty, value.span);
    }

    /// A `return` without a value, in a function that returns one elsewhere or whose result is used.
    pub(super) fn infer_bare_return(&mut self, function: InstanceId, span: Span) {
        if self.dead == 0 {
            self.typed.functions[function.index()].bare_return.get_or_insert(span);
        }
    }

    /// The type of the result; None if it has none.
    pub(super) fn infer_call(&mut self, unit: &mut Unit, name: &'a ast::Name, arguments: &'a [ast::Expr]) -> TypeVar {
        match self.typed.find_callee(self.names, &unit.at, name, arguments.len()) {
            Err(error) => {
                self.env.report(error);
                for argument in arguments {
                    self.infer(unit, argument);
                }
                self.typed.types.fresh()
            }
            Ok(Callee::Builtin(builtin)) => {
                self.use_builtin(builtin, name.span);
                for (argument, (_, ty)) in arguments.iter().zip(builtin.parameters) {
                    self.want(unit, argument, *ty);
                }
                match builtin.returns {
                    Some(ty) => self.typed.types.known(ty, name.span),
                    None => {
                        let result = self.typed.types.fresh();
                        self.without_result.push((result, name.span));
                        result
                    }
                }
            }
            Ok(Callee::Function(index)) => {
                guru::check_call(self.env, self.typed.functions[index.index()].ast, name.span);
                if self.dead == 0 {
                    self.reach(index);
                }
                for (number, argument) in arguments.iter().enumerate() {
                    let given = self.infer(unit, argument);
                    let parameter = self.typed.functions[index.index()].parameters[number];
                    self.note_flow(unit, argument, parameter);
                    self.equate_at(parameter, given, argument.span);
                }
                self.typed.functions[index.index()].returns
            }
        }
    }
}

/// Whether `next` is in the body of a `try`: errors of the next overload are not for its `catch`.
fn next_in_try(block: &ast::Block) -> bool {
    let is_next = |statement: &ast::Stmt| matches!(statement.kind, ast::StmtKind::Next);
    visit::any_statement(
        block,
        &|statement| matches!(&statement.kind, ast::StmtKind::Try { body, .. } if visit::any_statement(body, &is_next)),
    )
}
