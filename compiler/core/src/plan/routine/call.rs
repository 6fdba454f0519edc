// SPDX-License-Identifier: GPL-2.0-or-later

//! Calls: of builtins, of the script's functions, of embedded C.

use super::{Builder, Evaluated, ExprRef};
use crate::plan::code::*;
use crate::plan::error::{InternalError, Planned};
use crate::program::{self, Expr, Type};
use spile_source::Span;

impl Builder<'_, '_> {
    /// The arguments of a call, evaluated in order. They must have the parameters' types.
    fn arguments(
        &mut self,
        arguments: &[Expr],
        parameters: impl Iterator<Item = Type>,
        span: Span,
    ) -> Planned<Vec<Argument>> {
        if !arguments.iter().map(Expr::ty).eq(parameters) {
            return Err(InternalError::new("arguments of other types than the function takes", span));
        }
        let exprs: Vec<ExprRef> = arguments.iter().map(ExprRef::from).collect();
        let results = self.in_order(&exprs)?.into_iter();
        let arguments = results.map(|result| match result {
            Evaluated::Long(value) => Argument::Long(value),
            Evaluated::Text(text) => Argument::Text(text),
        });
        Ok(arguments.collect())
    }

    /// Calls a builtin; gives its value if it has one.
    pub(super) fn builtin(
        &mut self,
        builtin: &'static crate::builtin::Builtin,
        arguments: &[Expr],
        span: Span,
    ) -> Planned<Option<Evaluated>> {
        self.tables.defers_names |= builtin.names;
        self.tables.user_stacks |= builtin.user_stacks;
        let parameters = builtin.parameters.iter().map(|(_, ty)| *ty);
        let arguments = self.arguments(arguments, parameters, span)?;
        let (outcome, result) = self.outcome(builtin.returns);
        let location = builtin.fails.then(|| self.location(span));
        self.push(Instr::Call { callee: Callee::Builtin(builtin.symbol), arguments, outcome, location });
        if builtin.fails {
            self.check();
        }
        Ok(result)
    }

    /// Where a result of that type goes, and the value to read it by.
    fn outcome(&mut self, returns: Option<Type>) -> (Outcome, Option<Evaluated>) {
        match returns {
            None => (Outcome::None, None),
            Some(Type::Long) => {
                let to = self.temporary();
                (Outcome::Long(to), Some(Evaluated::Long(Value::Long(to))))
            }
            Some(Type::String) => {
                let (buffer, to) = self.temporary_text();
                (Outcome::Text(buffer, to), Some(Evaluated::Text(Text::Variable(to))))
            }
        }
    }

    /// Calls a function of the script; gives its value if it has one.
    pub(super) fn call(
        &mut self,
        function: program::FunctionId,
        arguments: &[Expr],
        span: Span,
    ) -> Planned<Option<Evaluated>> {
        let name = &self.analysis.functions[function.index()];
        let (name, embedded) = (name.symbol.clone(), name.embedded);
        let declared = &self.analysis.program.functions[function.index()];
        let parameters = declared.locals.iter().take(declared.parameters).map(|local| local.ty);
        let mut arguments = self.arguments(arguments, parameters, span)?;
        for argument in &mut arguments {
            let Argument::Text(text) = argument else { continue };
            // The callee may change a global passed to it, or (embedded C) the bytes themselves.
            if embedded || matches!(text, Text::Global(_)) {
                let (buffer, to) = self.temporary_text();
                self.push(Instr::Copy { from: text.clone(), buffer, to });
                *argument = if embedded { Argument::Bytes(buffer) } else { Argument::Text(Text::Variable(to)) };
            }
        }
        let (outcome, result) = self.outcome(declared.returns);
        let location = self.location(span);
        let callee = if embedded { Callee::Embedded(name) } else { Callee::Routine(name) };
        self.push(Instr::Call { callee, arguments, outcome, location: Some(location) });
        match embedded {
            true => self.check(),
            false => self.push(Instr::CheckCall { location, failed: self.failed }),
        }
        Ok(result)
    }

    /// Embedded C in an expression, or as a statement (no type).
    pub(super) fn embedded(
        &mut self,
        code: &program::EmbeddedC,
        ty: Option<Type>,
        span: Span,
    ) -> Planned<Option<Evaluated>> {
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        for (name, local) in &code.arguments {
            let (argument, ty) = match self.read(program::Variable::Local(*local), span)? {
                Evaluated::Long(value) => (Argument::Long(value), Type::Long),
                // The C may change the bytes.
                Evaluated::Text(text) => {
                    let (buffer, to) = self.temporary_text();
                    self.push(Instr::Copy { from: text, buffer, to });
                    (Argument::Bytes(buffer), Type::String)
                }
            };
            parameters.push((name.clone(), ty));
            arguments.push(argument);
        }
        let symbol = self.tables.embedded_expression(code, parameters, ty);
        let (outcome, result) = self.outcome(ty);
        let location = Some(self.location(span));
        self.push(Instr::Call { callee: Callee::Embedded(symbol), arguments, outcome, location });
        self.check();
        Ok(result)
    }
}
