// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions: which ones a call refers to, and the copies of those that use context variables.
//!
//! A function that uses context variables, directly or through what it calls, is copied for each probe that calls it.

use super::Typed;
use crate::builtin::{self, Builtin};
use crate::elaborate::error::{Error, NameError};
use crate::elaborate::names::{DeclaredId, Names};
use crate::elaborate::types::{TypeVar, Types};
use crate::elaborate::unit::{InstanceId, Local, Unit, UnitContext};
use crate::program::{FunctionId, Type};
use spile_source::Span;
use spile_syntax::{ast, visit};
use std::collections::HashSet;

/// A declared function, or a copy of one for a probe.
pub(in crate::elaborate) struct Function<'a> {
    /// The declaration.
    pub ast: &'a ast::Function,
    /// Local variables and results of inference for the body.
    pub unit: Unit,
    /// Types of the parameters, in order.
    pub parameters: Vec<TypeVar>,
    /// Type of the result.
    pub returns: TypeVar,
    /// There is a `return` with a value, or the type is declared.
    pub has_value: bool,
    /// There is a `return` without one.
    pub bare_return: Option<Span>,
    /// Reached from a probe; numbered in the order of being reached.
    pub id: Option<FunctionId>,
    /// The target of `next`, once known.
    pub next: Option<InstanceId>,
    /// It is embedded C that can execute `next`, or does so in a `try`: calls go to a script function around it, with this
    /// number.
    pub wrapper: Option<FunctionId>,
    /// It uses context variables, directly or through what it calls; None: not determined yet.
    contextual: Option<bool>,
}

/// What is numbered as a function of the program.
#[derive(Clone, Copy)]
pub(in crate::elaborate) enum ProgramFunction {
    Instance(InstanceId),
    /// The script function around one that only says that it executed `next`.
    Wrapper(InstanceId),
}

/// What a name called with some arguments refers to.
pub(in crate::elaborate) enum Callee {
    Function(InstanceId),
    Builtin(&'static Builtin),
}

impl<'a> Typed<'a> {
    /// Adds a function with the text of `ast`; `unit` has its surroundings.
    pub(super) fn copy_function(&mut self, ast: &'a ast::Function, mut unit: Unit) -> InstanceId {
        let returns = declared(&mut self.types, ast.returns, ast.name.span);
        let mut parameters = Vec::new();
        for parameter in &ast.parameters {
            let ty = declared(&mut self.types, parameter.type_name, parameter.name.span);
            parameters.push(ty);
            let name = parameter.name.text.clone();
            unit.add(Local { name, ty, span: parameter.name.span, assigned: true, read: true });
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
        InstanceId(self.functions.len() as u32 - 1)
    }

    /// What a call refers to. A script's function takes precedence over a builtin of its name.
    pub fn find_callee(
        &mut self,
        names: &Names<'a>,
        at: &UnitContext,
        name: &ast::Name,
        arity: usize,
    ) -> Result<Callee, Error> {
        if let Some(&index) = names.overloads(name.span, &name.text, arity).first() {
            return Ok(Callee::Function(self.in_context(names, index, at)));
        }
        match builtin::find(&name.text, arity) {
            Some(builtin) => Ok(Callee::Builtin(builtin)),
            None => Err(no_callee(names, name, arity)),
        }
    }

    /// The function as called from there: itself, or its copy for the probe.
    pub fn in_context(&mut self, names: &Names<'a>, declared: DeclaredId, at: &UnitContext) -> InstanceId {
        // The declared functions come first, in order.
        let itself = InstanceId(declared.0);
        let Some(site) = at.site else { return itself };
        if !self.is_contextual(names, declared) {
            return itself;
        }
        // At the entry nothing is saved yet: there the function reads the variables themselves.
        let at_entry = self.is_at_entry(at);
        if let Some(&copy) = self.copies.get(&(declared, site, at_entry)) {
            return copy;
        }
        let at = UnitContext { at_entry, ..at.clone() };
        let copy = self.copy_function(names.functions[declared.index()], Unit::new(at));
        self.copies.insert((declared, site, at_entry), copy);
        copy
    }

    /// Whether a declared function uses context variables, directly or through what it calls.
    fn is_contextual(&mut self, names: &Names<'a>, declared: DeclaredId) -> bool {
        if let Some(known) = self.functions[declared.index()].contextual {
            return known;
        }
        let (mut seen, mut open) = (HashSet::from([declared]), vec![declared]);
        while let Some(at) = open.pop() {
            let (contextual, callees) = self.context_uses(names, at);
            if contextual || self.functions[at.index()].contextual == Some(true) {
                self.functions[declared.index()].contextual = Some(true);
                return true;
            }
            open.extend(callees.into_iter().filter(|callee| seen.insert(*callee)));
        }
        for at in seen {
            self.functions[at.index()].contextual = Some(false);
        }
        false
    }

    /// Whether a declared function itself uses context variables, and what it may continue in.
    fn context_uses(&self, names: &Names<'a>, declared: DeclaredId) -> (bool, Vec<DeclaredId>) {
        let ast = self.functions[declared.index()].ast;
        let ast::FunctionBody::Script(body) = &ast.body else { return (false, Vec::new()) };
        let mut calls = Vec::new();
        let mut contextual = false;
        visit::expressions(body, &mut |expr| match &expr.kind {
            ast::ExprKind::Target(_)
            | ast::ExprKind::Entry(_)
            | ast::ExprKind::Var { .. }
            | ast::ExprKind::Register { .. }
            | ast::ExprKind::Enum(_)
            | ast::ExprKind::EnumName { module: None, .. }
            | ast::ExprKind::Cast { module: None, .. } => contextual = true,
            // Which of several files' types is meant depends on the probed function; of the kernel's it hardly does.
            ast::ExprKind::EnumName { module: Some(module), .. } | ast::ExprKind::Cast { module: Some(module), .. } => {
                contextual |= names_other_than_kernel(module);
            }
            ast::ExprKind::Call(name, arguments) => calls.push((name, arguments.len())),
            _ => {}
        });
        let mut callees: Vec<DeclaredId> =
            calls.into_iter().flat_map(|(name, arity)| names.overloads(name.span, &name.text, arity)).collect();
        if visit::any_statement(body, &|statement| matches!(statement.kind, ast::StmtKind::Next)) {
            callees.extend(names.overload_after(ast));
        }
        (contextual, callees)
    }

    /// The type of the result of a call; None for a builtin, or an unknown name.
    pub fn result_type(&mut self, names: &Names<'a>, unit: &Unit, name: &ast::Name, arity: usize) -> Option<TypeVar> {
        match self.find_callee(names, &unit.at, name, arity) {
            Ok(Callee::Function(index)) => Some(self.functions[index.index()].returns),
            _ => None,
        }
    }

    /// Whether the function returns a value, itself or through the overloads that it continues with.
    pub fn gives_value(&self, index: InstanceId) -> bool {
        let mut at = Some(index);
        while let Some(index) = at {
            if self.functions[index.index()].has_value {
                return true;
            }
            at = self.functions[index.index()].next;
        }
        false
    }
}

/// Why a call has no meaning: another number of arguments, or no function of the name.
fn no_callee(names: &Names, name: &ast::Name, arity: usize) -> Error {
    let functions = names.functions_named(name.span, &name.text);
    let declared = functions.first().map(|&index| names.functions[index.index()].name.span);
    let mut takes: Vec<usize> =
        functions.iter().map(|&index| names.functions[index.index()].parameters.len()).collect();
    takes.extend(builtin::arities(&name.text));
    if !takes.is_empty() {
        takes.sort_unstable();
        takes.dedup();
        return NameError::Arity { name: name.text.clone(), takes, given: arity, span: name.span, declared }.into();
    }
    let mut near: Vec<String> = names.function_names().map(String::from).collect();
    near.extend(builtin::offered().map(|builtin| builtin.name.to_string()));
    near.extend(spile_syntax::print_words().map(String::from));
    near.extend(names.offered.functions.iter().cloned());
    near.sort();
    near.dedup();
    NameError::UnknownFunction { name: name.text.clone(), span: name.span, near }.into()
}

/// Whether a function's C sets its result. The calls determine its type.
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

/// Whether one of the modules of a cast or the like may be a program, a library or a kernel module.
fn names_other_than_kernel(modules: &[u8]) -> bool {
    let modules = String::from_utf8_lossy(modules);
    modules.split(':').any(|module| !matches!(module.split(['<', '"']).next(), Some("kernel" | "") | None))
}
