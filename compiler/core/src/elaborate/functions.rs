// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions: which ones a call means, in which order overloads are tried, and the copies of those that use context
//! variables.
//!
//! Functions of one name and number of parameters are tried in the order of their priority: `next` in one goes on with the
//! one after it, with the arguments of the call. A function that uses context variables, itself or by what it calls, is
//! copied for each probe that calls it.

use super::error::Error;
use super::types::{TypeVar, Types};
use super::{Elaborator, Local, Unit};
use crate::builtin::{self, Builtin};
use crate::program::{self, Expr, ExprKind, FunctionBody, FunctionId, LValue, LocalId, Stmt, StmtKind, Type, Variable};
use spile_source::{FileId, Origin, Span};
use spile_syntax::{ast, visit};

/// A declared function, or a copy of one for a probe.
pub(super) struct Function<'a> {
    pub ast: &'a ast::Function,
    pub unit: Unit,
    pub parameters: Vec<TypeVar>,
    pub returns: TypeVar,
    /// A `return` with a value was seen, or a type is declared.
    has_value: bool,
    /// A `return` without one was seen.
    pub bare_return: Option<Span>,
    /// Reached from a probe; numbered in the order in which it was reached.
    pub id: Option<FunctionId>,
    /// What `next` leads to, once that was asked.
    next: Option<usize>,
    /// It is embedded C that can ask for the next overload: calls go to a script function around it, with this number.
    wrapper: Option<FunctionId>,
    /// It uses context variables, itself or by what it calls; None: not asked yet.
    contextual: Option<bool>,
}

/// What has a number among the functions of the program.
#[derive(Clone, Copy)]
pub(super) enum Reached {
    Function(usize),
    /// The script function around embedded C with `STAP_NEXT`.
    Wrapper(usize),
}

/// What a name called with some arguments is.
pub(super) enum Callee {
    /// Index into the elaborator's functions.
    Function(usize),
    Builtin(&'static Builtin),
}

impl<'a> Elaborator<'a> {
    pub(super) fn declare_function(&mut self, file: FileId, function: &'a ast::Function) {
        match &function.body {
            ast::FunctionBody::EmbeddedC(code) => self.check_embedded(code),
            ast::FunctionBody::Script(block) => self.check_guru(block),
        }
        let index = self.copy_function(function, Unit::default());
        let key = (function.private.then_some(file), function.name.text.as_str());
        self.function_names.entry(key).or_default().push(index);
    }

    /// A function of its own with the text of `ast`, in the surroundings that `unit` says.
    fn copy_function(&mut self, ast: &'a ast::Function, mut unit: Unit) -> usize {
        let returns = declared(&mut self.types, ast.returns, ast.name.span);
        let mut parameters = Vec::new();
        for parameter in &ast.parameters {
            let ty = declared(&mut self.types, parameter.type_name, parameter.name.span);
            parameters.push(ty);
            let name = parameter.name.text.clone();
            unit.names.insert(name.clone(), LocalId(unit.locals.len() as u32));
            unit.locals.push(Local { name, ty, span: parameter.name.span, assigned: true, read: true });
        }
        self.functions.push(Function {
            ast,
            unit,
            parameters,
            returns,
            has_value: ast.returns.is_some() || embedded_gives_value(ast),
            bare_return: None,
            id: None,
            next: None,
            wrapper: None,
            contextual: None,
        });
        self.functions.len() - 1
    }

    /// Declared functions of that name and number of parameters, in the order in which they are tried.
    pub(super) fn overloads(&self, file: FileId, name: &str, arity: usize) -> Vec<usize> {
        let private = self.function_names.get(&(Some(file), name));
        let mut found = private.or_else(|| self.function_names.get(&(None, name))).cloned().unwrap_or_default();
        found.retain(|&index| self.functions[index].ast.parameters.len() == arity);
        found.sort_by_key(|&index| {
            let ast = self.functions[index].ast;
            let library = self.sources.file(ast.span.file).origin == Origin::Tapset;
            ast.priority.unwrap_or(i64::from(library))
        });
        found
    }

    /// A script's own function wins over a builtin of its name.
    fn find_callee(&mut self, unit: &Unit, name: &ast::Name, arity: usize) -> Result<Callee, Error> {
        if let Some(&index) = self.overloads(name.span.file, &name.text, arity).first() {
            return Ok(Callee::Function(self.in_context(index, unit)));
        }
        if let Some(builtin) = builtin::find(&name.text, arity) {
            return Ok(Callee::Builtin(builtin));
        }
        let file = name.span.file;
        let private = self.function_names.get(&(Some(file), name.text.as_str()));
        let functions =
            private.or_else(|| self.function_names.get(&(None, name.text.as_str()))).cloned().unwrap_or_default();
        let declared = functions.first().map(|&index| self.functions[index].ast.name.span);
        let mut takes: Vec<usize> = functions.iter().map(|&index| self.functions[index].ast.parameters.len()).collect();
        takes.extend(builtin::arities(&name.text));
        if !takes.is_empty() {
            takes.sort_unstable();
            takes.dedup();
            let (name, span) = (name.text.clone(), name.span);
            return Err(Error::Arity { name, takes, given: arity, span, declared });
        }
        let mut near: Vec<String> = self.function_names.keys().map(|(_, name)| name.to_string()).collect();
        near.extend(builtin::all().map(|builtin| builtin.name.to_string()));
        near.sort();
        near.dedup();
        Err(Error::UnknownFunction { name: name.text.clone(), span: name.span, near })
    }

    /// The function as it is called from `unit`: itself, or its copy for the unit's probe.
    fn in_context(&mut self, index: usize, unit: &Unit) -> usize {
        let Some(site) = unit.site else { return index };
        if !self.is_contextual(index) {
            return index;
        }
        if let Some(&copy) = self.copies.get(&(index, site)) {
            return copy;
        }
        let surroundings =
            Unit { context: unit.context.clone(), point: unit.point.clone(), site: unit.site, ..Unit::default() };
        let copy = self.copy_function(self.functions[index].ast, surroundings);
        self.copies.insert((index, site), copy);
        copy
    }

    fn is_contextual(&mut self, index: usize) -> bool {
        if let Some(known) = self.functions[index].contextual {
            return known;
        }
        // Of functions that call each other in circles, any one that uses a variable itself settles it: what was asked
        // first is answered last.
        self.functions[index].contextual = Some(false);
        let ast = self.functions[index].ast;
        let ast::FunctionBody::Script(body) = &ast.body else { return false };
        let mut calls = Vec::new();
        let mut contextual = false;
        visit::expressions(body, &mut |expr| match &expr.kind {
            ast::ExprKind::Target(_)
            | ast::ExprKind::Entry(_)
            | ast::ExprKind::Var { .. }
            | ast::ExprKind::Register { .. }
            | ast::ExprKind::Cast { module: None, .. } => contextual = true,
            ast::ExprKind::Call(name, arguments) => calls.push((name, arguments.len())),
            _ => {}
        });
        for (name, arity) in calls {
            if contextual {
                break;
            }
            for callee in self.overloads(name.span.file, &name.text, arity) {
                contextual |= self.is_contextual(callee);
            }
        }
        if visit::any_statement(body, &|statement| matches!(statement.kind, ast::StmtKind::Next)) {
            if let Some(next) = self.overload_after(index) {
                contextual |= self.is_contextual(next);
            }
        }
        self.functions[index].contextual = Some(contextual);
        contextual
    }

    /// The declared overload that is tried after this one.
    fn overload_after(&self, index: usize) -> Option<usize> {
        let ast = self.functions[index].ast;
        let overloads = self.overloads(ast.name.span.file, &ast.name.text, ast.parameters.len());
        let at = overloads.iter().position(|&other| std::ptr::eq(self.functions[other].ast, ast))?;
        overloads.get(at + 1).copied()
    }

    /// Notes that a function is called.
    fn reach(&mut self, index: usize) {
        if self.functions[index].id.is_some() {
            return;
        }
        self.functions[index].id = Some(FunctionId(self.reached.len() as u32));
        self.reached.push(Reached::Function(index));
        // All of one name agree on their types, whether or not they are ever tried.
        self.reach_next(index);
        if let ast::FunctionBody::EmbeddedC(code) = &self.functions[index].ast.body {
            if code.text.contains("STAP_NEXT") {
                self.functions[index].wrapper = Some(FunctionId(self.reached.len() as u32));
                self.reached.push(Reached::Wrapper(index));
            }
        }
    }

    /// Notes that a function goes on with the next overload.
    fn reach_next(&mut self, index: usize) {
        let Some(next) = self.overload_after(index) else { return };
        let unit = &self.functions[index].unit;
        let surroundings =
            Unit { context: unit.context.clone(), point: unit.point.clone(), site: unit.site, ..Unit::default() };
        let next = self.in_context(next, &surroundings);
        self.functions[index].next = Some(next);
        let (from, to) = (&self.functions[index], &self.functions[next]);
        let mut pairs: Vec<(TypeVar, TypeVar)> =
            from.parameters.iter().copied().zip(to.parameters.iter().copied()).collect();
        pairs.push((from.returns, to.returns));
        let span = to.ast.name.span;
        for (from, to) in pairs {
            self.equate_at(from, to, span);
        }
        self.reach(next);
    }

    pub(super) fn infer_functions(&mut self) {
        let mut next = 0;
        while let Some(&reached) = self.reached.get(next) {
            if let Reached::Function(index) = reached {
                self.infer_function(index);
            }
            next += 1;
        }
    }

    fn infer_function(&mut self, index: usize) {
        let ast = self.functions[index].ast;
        if let ast::FunctionBody::EmbeddedC(code) = &ast.body {
            self.infer_embedded(code);
        }
        if let ast::FunctionBody::Script(block) = &ast.body {
            let mut unit = std::mem::take(&mut self.functions[index].unit);
            unit.function = Some(index);
            unit.elided = self.elided_of_function(block);
            // What `next` asks of the function's surroundings while its unit is being worked on.
            self.functions[index].unit =
                Unit { context: unit.context.clone(), point: unit.point.clone(), site: unit.site, ..Unit::default() };
            self.infer_statements(&mut unit, &block.statements, Some(index));
            self.functions[index].unit = unit;
        }
    }

    pub(super) fn infer_return(&mut self, unit: &mut Unit, function: usize, value: &'a ast::Expr) {
        let ty = self.infer(unit, value);
        self.functions[function].has_value = true;
        let returns = self.functions[function].returns;
        self.note_flow(unit, value, returns);
        self.equate_at(returns, ty, value.span);
    }

    /// A `return` without a value, in a function that gives one elsewhere or is asked for one.
    pub(super) fn infer_bare_return(&mut self, unit: &Unit, function: usize, span: Span) {
        if unit.dead == 0 {
            self.functions[function].bare_return.get_or_insert(span);
        }
    }

    /// The type of the result; None if it has none.
    pub(super) fn infer_call(&mut self, unit: &mut Unit, name: &'a ast::Name, arguments: &'a [ast::Expr]) -> TypeVar {
        match self.find_callee(unit, name, arguments.len()) {
            Err(error) => {
                self.report(error);
                for argument in arguments {
                    self.infer(unit, argument);
                }
                self.types.fresh()
            }
            Ok(Callee::Builtin(builtin)) => {
                self.regexes.groups_asked |= builtin.groups;
                self.lines_asked |= builtin.lines;
                if builtin.guru && !self.options.guru {
                    self.report(Error::Guru { what: builtin.name, span: name.span });
                }
                for (argument, (_, ty)) in arguments.iter().zip(builtin.parameters) {
                    self.want(unit, argument, *ty);
                }
                // One that gives nothing, as exit(), is 0 where a value is asked.
                self.types.known(builtin.returns.unwrap_or(Type::Long), name.span)
            }
            Ok(Callee::Function(index)) => {
                self.check_guru_function(self.functions[index].ast, name.span);
                if unit.dead == 0 {
                    self.reach(index);
                }
                for (number, argument) in arguments.iter().enumerate() {
                    let given = self.infer(unit, argument);
                    let parameter = self.functions[index].parameters[number];
                    self.note_flow(unit, argument, parameter);
                    self.equate_at(parameter, given, argument.span);
                }
                self.functions[index].returns
            }
        }
    }

    pub(super) fn lower_call(
        &mut self,
        unit: &mut Unit,
        name: &ast::Name,
        arguments: &[ast::Expr],
    ) -> Result<Expr, Error> {
        let lowered: Result<Vec<Expr>, Error> = arguments.iter().map(|argument| self.lower(unit, argument)).collect();
        let lowered = lowered?;
        let span = name.span;
        Ok(match self.find_callee(unit, name, arguments.len())? {
            Callee::Builtin(builtin) => {
                let ty = builtin.returns.unwrap_or(Type::Long);
                Expr { kind: ExprKind::Builtin(builtin, lowered), ty, span }
            }
            Callee::Function(index) => {
                let missing = Error::UnknownFunction { name: name.text.clone(), span, near: Vec::new() };
                self.call(index, lowered, span).ok_or(missing)?
            }
        })
    }

    /// None for a function that inference did not reach.
    fn call(&mut self, index: usize, arguments: Vec<Expr>, span: Span) -> Option<Expr> {
        let function = &self.functions[index];
        let id = function.wrapper.or(function.id)?;
        let returns = function.returns;
        let ty = self.types.get(returns).unwrap_or(Type::Long);
        Some(Expr { kind: ExprKind::Call(id, arguments), ty, span })
    }

    /// The type of the result of a call, for who knows that it resolves.
    pub(super) fn result_type(&mut self, unit: &Unit, name: &ast::Name, arity: usize) -> Option<TypeVar> {
        match self.find_callee(unit, name, arity) {
            Ok(Callee::Function(index)) => Some(self.functions[index].returns),
            _ => None,
        }
    }

    /// Whether the function gives a value, itself or by the overloads it goes on with.
    fn gives_value(&self, index: usize) -> bool {
        let mut at = Some(index);
        while let Some(index) = at {
            if self.functions[index].has_value {
                return true;
            }
            at = self.functions[index].next;
        }
        false
    }

    pub(super) fn lower_reached(&mut self, reached: Reached) -> program::Function {
        match reached {
            Reached::Function(index) => self.lower_function(index),
            Reached::Wrapper(index) => self.lower_wrapper(index),
        }
    }

    fn lower_function(&mut self, index: usize) -> program::Function {
        let mut unit = std::mem::take(&mut self.functions[index].unit);
        let ast = self.functions[index].ast;
        let body = match &ast.body {
            ast::FunctionBody::Script(block) => {
                unit.function = Some(index);
                let kept = self.keep_arguments(&mut unit, ast, block);
                let mut statements = kept;
                statements.extend(self.lower_statements(&mut unit, &block.statements));
                FunctionBody::Script(statements)
            }
            ast::FunctionBody::EmbeddedC(code) => FunctionBody::EmbeddedC(self.lower_embedded(code)),
        };
        let returns = self.functions[index].returns;
        // By recursion alone nothing may say which type: nobody uses the value then.
        let returns = self.gives_value(index).then(|| self.types.get(returns).unwrap_or(Type::Long));
        program::Function {
            name: ast.name.text.clone(),
            parameters: ast.parameters.len(),
            locals: self.locals(&unit),
            returns,
            site: unit.site,
            body,
            span: ast.span,
        }
    }

    /// The overload after one that says `next` gets the arguments of the call, whatever was assigned to them since.
    fn keep_arguments(&mut self, unit: &mut Unit, ast: &ast::Function, body: &ast::Block) -> Vec<Stmt> {
        if !visit::any_statement(body, &|statement| matches!(statement.kind, ast::StmtKind::Next)) {
            return Vec::new();
        }
        let mut written: Vec<&str> = Vec::new();
        visit::expressions(body, &mut |expr| match &expr.kind {
            ast::ExprKind::Assign(_, target, _) | ast::ExprKind::Step { target, .. } => {
                if let ast::ExprKind::Ident(name) = &target.kind {
                    written.push(name);
                }
            }
            _ => {}
        });
        let mut statements = Vec::new();
        for (number, parameter) in ast.parameters.iter().enumerate() {
            let name = &parameter.name;
            unit.arguments.push(LocalId(number as u32));
            if !written.contains(&name.text.as_str()) {
                continue;
            }
            let ty = unit.locals[number].ty;
            let kept = LocalId(unit.locals.len() as u32);
            unit.locals.push(Local {
                name: format!("{}_given", name.text),
                ty,
                span: name.span,
                assigned: true,
                read: true,
            });
            unit.arguments[number] = kept;
            let value = read(LocalId(number as u32), self.types.get(ty).unwrap_or(Type::Long), name.span);
            statements.push(assign(kept, value, name.span));
        }
        statements
    }

    /// `next` in a function.
    pub(super) fn lower_next(&mut self, unit: &mut Unit, function: usize, span: Span) -> StmtKind {
        let arguments: Vec<LocalId> = unit.arguments.clone();
        let typed: Vec<(LocalId, TypeVar)> = arguments.iter().map(|&id| (id, unit.locals[id.index()].ty)).collect();
        let arguments =
            typed.into_iter().map(|(id, ty)| read(id, self.types.get(ty).unwrap_or(Type::Long), span)).collect();
        self.go_on(function, arguments, span)
    }

    /// Ends a function with what the next overload gives, or with an error where there is none.
    fn go_on(&mut self, function: usize, arguments: Vec<Expr>, span: Span) -> StmtKind {
        let next = self.functions[function].next;
        let ending = |value: Expr, returned: bool| {
            let statement = |kind| Stmt { kind, span };
            if returned {
                return StmtKind::Return(Some(value));
            }
            StmtKind::Block(vec![statement(StmtKind::Expr(value)), statement(StmtKind::Return(None))])
        };
        if let Some(call) = next.and_then(|next| self.call(next, arguments, span)) {
            let valued = next.is_some_and(|next| self.gives_value(next));
            return ending(call, valued);
        }
        match builtin::find("error", 1) {
            Some(error) => {
                let text = Expr { kind: ExprKind::String(b"all functions exhausted".to_vec()), ty: Type::String, span };
                ending(Expr { kind: ExprKind::Builtin(error, vec![text]), ty: Type::Long, span }, false)
            }
            None => StmtKind::Return(None),
        }
    }

    /// A function around embedded C: calls it, and goes on with the next overload if it asked for that.
    fn lower_wrapper(&mut self, index: usize) -> program::Function {
        let ast = self.functions[index].ast;
        let span = ast.span;
        let vars = self.functions[index].parameters.clone();
        let types: Vec<Type> = vars.iter().map(|&var| self.types.get(var).unwrap_or(Type::Long)).collect();
        let mut locals: Vec<program::Local> = ast
            .parameters
            .iter()
            .zip(&types)
            .map(|(parameter, &ty)| program::Local { name: parameter.name.text.clone(), ty })
            .collect();
        let arguments: Vec<Expr> =
            types.iter().enumerate().map(|(id, &ty)| read(LocalId(id as u32), ty, span)).collect();
        let returns = self.functions[index].returns;
        // By recursion alone nothing may say which type: nobody uses the value then.
        let returns = self.gives_value(index).then(|| self.types.get(returns).unwrap_or(Type::Long));
        let id = self.functions[index].id.unwrap_or(FunctionId(0));
        let call = Expr { kind: ExprKind::Call(id, arguments.clone()), ty: returns.unwrap_or(Type::Long), span };
        let mut statements = Vec::new();
        let result = returns.filter(|_| self.functions[index].has_value).map(|ty| {
            locals.push(program::Local { name: "result".into(), ty });
            LocalId(locals.len() as u32 - 1)
        });
        statements.push(match result {
            Some(result) => assign(result, call, span),
            None => Stmt { kind: StmtKind::Expr(call), span },
        });
        let asked = Expr { kind: ExprKind::TookNext, ty: Type::Long, span };
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
            site: None,
            body: FunctionBody::Script(statements),
            span,
        }
    }
}

/// Whether a function's C sets its result: of which type is left to those who call it.
fn embedded_gives_value(function: &ast::Function) -> bool {
    match &function.body {
        ast::FunctionBody::EmbeddedC(code) => {
            ["STAP_RETVALUE", "STAP_RETURN", "__retvalue"].iter().any(|word| code.text.contains(word))
        }
        ast::FunctionBody::Script(_) => false,
    }
}

fn declared(types: &mut Types, declared: Option<ast::TypeName>, span: Span) -> TypeVar {
    match declared {
        None => types.fresh(),
        Some(ast::TypeName::Long) => types.known(Type::Long, span),
        Some(ast::TypeName::String) => types.known(Type::String, span),
    }
}

fn read(id: LocalId, ty: Type, span: Span) -> Expr {
    Expr { kind: ExprKind::Variable(Variable::Local(id)), ty, span }
}

fn assign(to: LocalId, value: Expr, span: Span) -> Stmt {
    let ty = value.ty;
    let kind = ExprKind::Assign(Box::new(LValue::Variable(Variable::Local(to))), Box::new(value));
    Stmt { kind: StmtKind::Expr(Expr { kind, ty, span }), span }
}
