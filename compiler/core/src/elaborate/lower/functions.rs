// SPDX-License-Identifier: GPL-2.0-or-later

//! Calls and functions: the targets of `next`, and the script functions around those that only say that they executed it.

use super::Lowering;
use crate::builtin;
use crate::elaborate::error::{Error, NameError};
use crate::elaborate::privilege;
use crate::elaborate::typed::{Callee, ProgramFunction};
use crate::elaborate::unit::{InstanceId, Local, Unit};
use crate::program::{
    self, Expr, FunctionBody, FunctionId, LocalId, LongExpr, LongKind, LongPlace, Stmt, StmtKind, StringExpr,
    StringKind, StringPlace, Type, Variable,
};
use spile_source::Span;
use spile_syntax::{ast, visit};

impl Lowering<'_, '_> {
    pub(super) fn lower_call(&mut self, unit: &Unit, name: &ast::Name, arguments: &[ast::Expr]) -> Result<Expr, Error> {
        let lowered: Result<Vec<Expr>, Error> = arguments.iter().map(|argument| self.lower(unit, argument)).collect();
        let lowered = lowered?;
        let span = name.span;
        Ok(match self.typed.find_callee(self.names, &unit.at, name, arguments.len())? {
            Callee::Builtin(builtin) => match self.symbol_of_hit(builtin, span) {
                Some(symbol) => symbol,
                None => privilege::if_own(self.env.options.privilege, builtin, lowered, span),
            },
            Callee::Function(index) => {
                let missing = NameError::UnknownFunction { name: name.text.clone(), span, near: Vec::new() };
                self.call(index, lowered, span).ok_or(missing)?
            }
        })
    }

    /// None for a function that inference did not reach.
    fn call(&mut self, index: InstanceId, arguments: Vec<Expr>, span: Span) -> Option<Expr> {
        let function = &self.typed.functions[index.index()];
        let id = function.wrapper.or(function.id)?;
        let returns = function.returns;
        let ty = self.typed.type_of(returns);
        Some(Expr::call(id, arguments, ty, span))
    }

    /// All functions that the handlers reach, by their numbers.
    pub(super) fn lower_functions(&mut self) -> Vec<program::Function> {
        (0..self.typed.reached.len()).map(|number| self.lower_reached(self.typed.reached[number])).collect()
    }

    pub(super) fn lower_reached(&mut self, reached: ProgramFunction) -> program::Function {
        match reached {
            ProgramFunction::Instance(index) => self.lower_function(index),
            ProgramFunction::Wrapper(index) => self.lower_wrapper(index),
        }
    }

    fn lower_function(&mut self, index: InstanceId) -> program::Function {
        let mut unit = std::mem::take(&mut self.typed.functions[index.index()].unit);
        self.typed.functions[index.index()].unit.at = unit.at.clone();
        let ast = self.typed.functions[index.index()].ast;
        let body = match &ast.body {
            ast::FunctionBody::Script(block) => {
                unit.function = Some(index);
                let copies = self.keep_arguments(&mut unit, index, ast, block);
                let mut statements = copies;
                statements.extend(self.lower_statements(&unit, &block.statements));
                FunctionBody::Script(statements)
            }
            ast::FunctionBody::EmbeddedC(code) => FunctionBody::EmbeddedC(self.lower_embedded(code)),
        };
        let returns = self.typed.functions[index.index()].returns;
        // A function that returns only its own recursive calls has no type, and its value is not used.
        let returns = self.typed.gives_value(index).then(|| self.typed.type_of(returns));
        program::Function {
            name: ast.name.text.clone(),
            parameters: ast.parameters.len(),
            locals: self.locals(&unit),
            returns,
            site: unit.at.site,
            body,
            span: ast.span,
        }
    }

    /// The overload after one with `next` gets the arguments of the call, even if those were assigned to since.
    fn keep_arguments(
        &mut self,
        unit: &mut Unit,
        index: InstanceId,
        ast: &ast::Function,
        body: &ast::Block,
    ) -> Vec<Stmt> {
        if self.typed.functions[index.index()].wrapper.is_some() {
            return Vec::new();
        }
        if !visit::any_statement(body, &|statement| matches!(statement.kind, ast::StmtKind::Next)) {
            return Vec::new();
        }
        let mut written: Vec<&str> = Vec::new();
        visit::statements(body, &mut |statement| match &statement.kind {
            ast::StmtKind::Foreach(foreach) => {
                written.extend(foreach.keys.iter().chain(&foreach.value).map(|name| name.text.as_str()));
            }
            ast::StmtKind::Try { message: Some(name), .. } => written.push(&name.text),
            ast::StmtKind::Delete(ast::Expr { kind: ast::ExprKind::Ident(name), .. }) => written.push(name),
            _ => {}
        });
        visit::expressions(body, &mut |expr| match &expr.kind {
            ast::ExprKind::Assign(_, target, _) | ast::ExprKind::Step { target, .. } => {
                if let ast::ExprKind::Ident(name) = &target.kind {
                    written.push(name);
                }
            }
            _ => {}
        });
        let (mut statements, mut arguments) = (Vec::new(), Vec::new());
        for (number, parameter) in ast.parameters.iter().enumerate() {
            let name = &parameter.name;
            let ty = unit.locals[number].ty;
            arguments.push((LocalId(number as u32), ty));
            if !written.contains(&name.text.as_str()) {
                continue;
            }
            let copy = LocalId(unit.locals.len() as u32);
            unit.locals.push(Local {
                name: format!("{}_given", name.text),
                ty,
                span: name.span,
                assigned: true,
                read: true,
            });
            arguments[number].0 = copy;
            let value = read(LocalId(number as u32), self.typed.type_of(ty), name.span);
            statements.push(assign(copy, value, name.span));
        }
        self.arguments = arguments;
        statements
    }

    /// `next` in a function.
    pub(super) fn lower_next(&mut self, function: InstanceId, span: Span) -> StmtKind {
        if self.typed.functions[function.index()].wrapper.is_some() {
            let says = LongExpr { kind: LongKind::TakesNext, span }.into();
            let statement = |kind| Stmt { kind, span };
            return StmtKind::Block(vec![statement(StmtKind::Expr(says)), statement(StmtKind::Return(None))]);
        }
        let arguments = self.arguments.clone();
        let arguments = arguments.into_iter().map(|(id, ty)| read(id, self.typed.type_of(ty), span)).collect();
        self.go_on(function, arguments, span)
    }

    /// Ends a function with the result of the next overload, or of the builtin of its name, or with an error if there is
    /// none.
    fn go_on(&mut self, function: InstanceId, arguments: Vec<Expr>, span: Span) -> StmtKind {
        let next = self.typed.functions[function.index()].next;
        let ending = |value: Expr, returned: bool| {
            let statement = |kind| Stmt { kind, span };
            if returned {
                return StmtKind::Return(Some(value));
            }
            StmtKind::Block(vec![statement(StmtKind::Expr(value)), statement(StmtKind::Return(None))])
        };
        if let Some(call) = next.and_then(|next| self.call(next, arguments.clone(), span)) {
            let valued = next.is_some_and(|next| self.typed.gives_value(next));
            return ending(call, valued);
        }
        if let Some(builtin) = self.names.builtin_after(self.typed.functions[function.index()].ast) {
            let call = privilege::if_own(self.env.options.privilege, builtin, arguments, span);
            return ending(call, builtin.returns.is_some());
        }
        match builtin::find("error", 1) {
            Some(error) => {
                let text = StringExpr::literal(b"all functions exhausted".to_vec(), span);
                ending(Expr::builtin(error, vec![text.into()], span), false)
            }
            None => StmtKind::Return(None),
        }
    }

    /// A function around embedded C, or around a script's function with `next` in a `try`: calls it, and continues with the
    /// next overload if it executed `next`.
    fn lower_wrapper(&mut self, index: InstanceId) -> program::Function {
        let ast = self.typed.functions[index.index()].ast;
        let span = ast.span;
        let vars = self.typed.functions[index.index()].parameters.clone();
        let types: Vec<Type> = vars.iter().map(|&var| self.typed.type_of(var)).collect();
        let mut locals: Vec<program::Local> = ast
            .parameters
            .iter()
            .zip(&types)
            .map(|(parameter, &ty)| program::Local { name: parameter.name.text.clone(), ty })
            .collect();
        let arguments: Vec<Expr> =
            types.iter().enumerate().map(|(id, &ty)| read(LocalId(id as u32), ty, span)).collect();
        let returns = self.typed.functions[index.index()].returns;
        // A function that returns only its own recursive calls has no type, and its value is not used.
        let returns = self.typed.gives_value(index).then(|| self.typed.type_of(returns));
        let id = self.typed.functions[index.index()].id.unwrap_or(FunctionId(0));
        let call = Expr::call(id, arguments.clone(), returns.unwrap_or(Type::Long), span);
        let mut statements = Vec::new();
        let result = returns.filter(|_| self.typed.functions[index.index()].has_value).map(|ty| {
            locals.push(program::Local { name: "result".into(), ty });
            LocalId(locals.len() as u32 - 1)
        });
        statements.push(match result {
            Some(result) => assign(result, call, span),
            None => Stmt { kind: StmtKind::Expr(call), span },
        });
        let asked = LongExpr { kind: LongKind::TookNext, span };
        let then = Box::new(Stmt { kind: self.go_on(index, arguments, span), span });
        statements.push(Stmt { kind: StmtKind::If { condition: asked, then, otherwise: None }, span });
        if let (Some(result), Some(ty)) = (result, returns) {
            statements.push(Stmt { kind: StmtKind::Return(Some(read(result, ty, span))), span });
        }
        program::Function {
            name: ast.name.text.clone(),
            parameters: ast.parameters.len(),
            locals,
            returns,
            site: self.typed.functions[index.index()].unit.at.site,
            body: FunctionBody::Script(statements),
            span,
        }
    }
}

fn read(id: LocalId, ty: Type, span: Span) -> Expr {
    Expr::variable(Variable::Local(id), ty, span)
}

fn assign(to: LocalId, value: Expr, span: Span) -> Stmt {
    let to = Variable::Local(to);
    let expr = match value {
        Expr::Long(value) => {
            let kind = LongKind::Assign(Box::new(LongPlace::Variable(to)), Box::new(value));
            LongExpr { kind, span }.into()
        }
        Expr::String(value) => {
            let kind = StringKind::Assign(Box::new(StringPlace::Variable(to)), Box::new(value));
            StringExpr { kind, span }.into()
        }
    };
    Stmt { kind: StmtKind::Expr(expr), span }
}
