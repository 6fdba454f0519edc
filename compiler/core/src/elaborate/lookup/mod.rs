// SPDX-License-Identifier: GPL-2.0-or-later

//! Target expressions: `$x->f[i]`, `&$x->f`, `@cast(...)->f`, `@var("v")` to objects of the debug information.
//!
//! Inference asks whether something exists ([`Lookup::is_defined`]) and what values point to ([`pointee`]); lowering asks
//! where it is ([`find`]). [`member`] goes from an object to one inside it, [`value`] from an object to its value.

mod fold;
pub(super) mod member;
pub(super) mod pointee;
pub(super) mod value;

use super::environment::Environment;
use super::error::{Error, TypeError, VariableError};
use super::names::Names;
use super::typed::Typed;
use super::unit::Unit;
use crate::probe::{Context, ContextError, Location, TypedLocation, is_shared_library, several_statics};
use crate::program::{BinaryOp, LongExpr, LongKind};
use pointee::{is_pointed, only_index};
use spile_debuginfo::target::Object;
use spile_debuginfo::{FoundVariable, Type as CType, TypeId, Unavailable};
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic};
use spile_syntax::ast;
use std::rc::Rc;
use value::{debug_error, load};

/// A `$$` word or a pretty-printed form whose value is a string: `$$vars`, `$$parms$`.
pub(super) fn is_text(name: &str) -> bool {
    name.starts_with("$$")
}

fn is_text_variable(expr: &ast::Expr) -> bool {
    matches!(&expr.kind, ast::ExprKind::Target(name) if is_text(name))
}

/// Whether such a word means something at the site.
fn has_text(unit: &Unit, name: &str) -> bool {
    let Some(context) = unit.at.context.as_ref().filter(|context| context.has_lists()) else { return false };
    match name {
        "$$vars" | "$$parms" | "$$locals" => true,
        "$$return" => context.is_return(),
        _ => context.text(name).is_some(),
    }
}

/// What is needed to find the meaning of target expressions.
pub(super) struct Lookup<'l, 'a> {
    /// The input and the problems.
    pub env: &'l mut Environment<'a>,
    /// The declarations of scripts and tapset.
    pub names: &'l Names<'a>,
    /// Results of inference.
    pub typed: &'l mut Typed<'a>,
    /// The question is only whether a variable exists, not why it does not.
    only_asked: bool,
}

/// Where [`find`] gets the values of indices and addresses.
pub(super) trait Operands<'a> {
    fn lookup(&mut self) -> Lookup<'_, 'a>;

    /// The value of an expression within a target expression.
    fn value(&mut self, expr: &ast::Expr) -> Result<LongExpr, Error>;

    /// A variable of the context, with the address that its place is known by.
    fn variable(&mut self, unit: &Unit, name: &str, found: TypedLocation) -> TypedLocation;
}

/// While nothing is lowered, operands that are not written as numbers are unknown ones. Which number it is says whether an element that is
/// held in a register exists.
impl<'a> Operands<'a> for Lookup<'_, 'a> {
    fn lookup(&mut self) -> Lookup<'_, 'a> {
        Lookup { env: self.env, names: self.names, typed: self.typed, only_asked: self.only_asked }
    }

    fn value(&mut self, expr: &ast::Expr) -> Result<LongExpr, Error> {
        let zero = || Box::new(LongExpr::constant(0, expr.span));
        let number = match &expr.kind {
            ast::ExprKind::Number(number) => LongKind::Const(*number),
            _ => LongKind::Binary(BinaryOp::Add, zero(), zero()),
        };
        Ok(LongExpr { kind: number, span: expr.span })
    }

    /// As the entry has it.
    fn variable(&mut self, unit: &Unit, name: &str, found: TypedLocation) -> TypedLocation {
        match result_at_entry(unit, name, &found) {
            Some(address) => TypedLocation { location: Location::Memory { address, bits: None }, ..found },
            None => found,
        }
    }
}

/// By the registers at the entry, the address of `$return` where the registers at the return do not have it.
pub(super) fn result_at_entry(unit: &Unit, name: &str, found: &TypedLocation) -> Option<LongExpr> {
    let context = unit.at.context.as_ref().filter(|_| name == "return" && unit.at.is_return())?;
    matches!(found.location, Location::Memory { bits: None, .. }).then(|| context.result_at_entry()).flatten()
}

/// The object that a target expression or cast refers to.
pub(super) fn find<'a>(
    operands: &mut dyn Operands<'a>,
    unit: &Unit,
    target: &ast::Expr,
) -> Result<TypedLocation, Error> {
    let is_element = |operands: &mut dyn Operands<'a>, expr: &ast::Expr| operands.lookup().names.is_element(expr);
    match &target.kind {
        ast::ExprKind::Target(name) => {
            let found = operands.lookup().find_variable(unit, name, target.span)?;
            Ok(operands.variable(unit, name.trim_start_matches('$'), found))
        }
        ast::ExprKind::Member(base, member) => {
            // `(&x)->m` is a member of x.
            let base = match &base.kind {
                ast::ExprKind::AddressOf(whole) => find(operands, unit, whole)?,
                _ => find(operands, unit, base)?,
            };
            let found = member::find_member(base.clone(), member);
            match found {
                Err(Error::Type(TypeError::NoMember { .. })) => {
                    let of_all = operands.lookup().find_static_member(unit, &base, member)?;
                    of_all.map_or(found, Ok)
                }
                found => found,
            }
        }
        ast::ExprKind::Index(base, indices) if !is_element(operands, target) => {
            let number = only_index(indices, target.span)?;
            // A cast and a typed value are pointers: an index counts from their target.
            let pointer =
                is_pointed(base) || is_element(operands, base) || matches!(base.kind, ast::ExprKind::Cast { .. });
            let base = find(operands, unit, base)?;
            let number = operands.value(number)?;
            if pointer {
                let Location::Memory { address, bits: None } = base.location else {
                    return Err(TypeError::NotIndexable { type_name: "a bit-field".into(), span: target.span }.into());
                };
                return member::element_at(base.object, address, base.type_id, number, target.span);
            }
            member::find_element(base, number, target.span)
        }
        ast::ExprKind::Var { name, module } => operands.lookup().find_var(unit, name, module.as_deref(), target.span),
        ast::ExprKind::Cast { value, type_name, module } => {
            let address = operands.value(value)?;
            operands.lookup().find_cast(unit, address, type_name, module.as_deref(), target.span)
        }
        _ if is_pointed(target) || is_element(operands, target) => pointee::find_pointed(operands, unit, target),
        _ => {
            let type_name = operands.lookup().env.sources.text(target.span).to_string();
            Err(TypeError::NotAStruct { type_name, span: target.span }.into())
        }
    }
}

/// The operand of `&`.
pub(super) fn find_addressed<'a>(
    operands: &mut dyn Operands<'a>,
    unit: &Unit,
    target: &ast::Expr,
) -> Result<TypedLocation, Error> {
    if let ast::ExprKind::Index(base, indices) = &target.kind
        && is_null_pointer_to_pointer(base)
    {
        let number = only_index(indices, target.span)?;
        let base = find(operands, unit, base)?;
        let number = operands.value(number)?;
        return member::pointer_from_zero(base, number, target.span);
    }
    find(operands, unit, target)
}

impl<'l, 'a> Lookup<'l, 'a> {
    /// A lookup that reports why a variable is not available.
    pub fn new(env: &'l mut Environment<'a>, names: &'l Names<'a>, typed: &'l mut Typed<'a>) -> Lookup<'l, 'a> {
        Lookup { env, names, typed, only_asked: false }
    }

    /// [`find`] with unknown numbers for operands: for the type, and for whether it exists.
    pub fn find(&mut self, unit: &Unit, target: &ast::Expr) -> Result<TypedLocation, Error> {
        find(self, unit, target)
    }

    /// Whether the operand of `@defined` can be resolved at this site.
    pub fn is_defined(&mut self, unit: &Unit, operand: &ast::Expr) -> bool {
        if !self.depends_on_pointee(operand) {
            return self.exists(unit, operand);
        }
        // What variables point to is known when types have been inferred: inference and lowering must agree.
        let question = self.typed.question(unit, operand);
        if let Some(&answer) = self.typed.answers.get(&question) {
            return answer;
        }
        let answer = self.exists(unit, operand);
        self.typed.answers.insert(question, answer);
        answer
    }

    /// The same as far as known now.
    pub fn exists(&mut self, unit: &Unit, operand: &ast::Expr) -> bool {
        Lookup { only_asked: true, ..self.lookup() }.has_value(unit, operand)
    }

    /// Whether the operand is a part of what a variable, an element or a result points to.
    pub fn depends_on_pointee(&self, operand: &ast::Expr) -> bool {
        let mut root = operand;
        while let ast::ExprKind::Member(base, _)
        | ast::ExprKind::Index(base, _)
        | ast::ExprKind::Pretty(base, _)
        | ast::ExprKind::AddressOf(base) = &root.kind
        {
            if self.names.is_element(root) {
                return true;
            }
            root = base;
        }
        is_pointed(root)
    }

    fn has_value(&mut self, unit: &Unit, operand: &ast::Expr) -> bool {
        match &operand.kind {
            ast::ExprKind::Pretty(base, _) if is_text_variable(base) => self.has_value(unit, base),
            ast::ExprKind::Pretty(base, _) => self.find(unit, base).is_ok(),
            ast::ExprKind::AddressOf(base) => {
                let found = find_addressed(self, unit, base);
                found.is_ok_and(|found| matches!(found.location, Location::Memory { .. }))
            }
            ast::ExprKind::Entry(inner) => self.has_value(unit, inner),
            ast::ExprKind::Target(name) if is_text(name) => {
                has_text(unit, name) && (name != "$$return" || !self.typed.is_at_entry(&unit.at))
            }
            _ => self.find(unit, operand).and_then(|found| load(&found, operand.span)).is_ok(),
        }
    }

    fn find_variable(&mut self, unit: &Unit, name: &str, span: Span) -> Result<TypedLocation, Error> {
        let plain = name.trim_start_matches('$');
        let Some(context) = &unit.at.context else {
            return Err(VariableError::NoContext { name: name.into(), point: None, span }.into());
        };
        if plain == "return" && self.typed.is_at_entry(&unit.at) {
            return Err(VariableError::NotAtEntry { name: name.into(), span }.into());
        }
        // A variable requested by name has a value, or reading it is a run-time error.
        let settled = |mut found: TypedLocation| {
            if let Location::KnownCallers { location, .. } = found.location {
                found.location = *location;
            }
            place_location(&mut found.location, span);
            found
        };
        let found = match context.variable(plain) {
            Err(ContextError::Unknown) => self.find_external(unit, plain, span)?.ok_or(ContextError::Unknown),
            found => found,
        };
        let context =
            unit.at.context.as_ref().ok_or(VariableError::NoContext { name: name.into(), point: None, span })?;
        if let (true, Some(why)) = (found.is_ok() && !self.only_asked, context.doubt(plain)) {
            let message = format!("`{name}` may be anything: the compiler may have removed the result");
            self.env.add_first(Diagnostic::warning(Code("W0113"), message).at(span, "").note(why));
        }
        found.map(settled).map_err(|error| self.unavailable(error, unit, context.as_ref(), name, span))
    }

    /// Why the variable `name` has no value in the context. The details are left out where only that is asked.
    fn unavailable(&self, error: ContextError, unit: &Unit, context: &dyn Context, name: &str, span: Span) -> Error {
        let plain = name.trim_start_matches('$');
        let names = || -> Vec<String> {
            // A variable that is optimised out there as well would not help.
            if self.only_asked {
                return Vec::new();
            }
            let returned = std::iter::once("return".to_string());
            let mut names: Vec<String> = returned.chain(context.parameters()).chain(context.locals()).collect();
            names.retain(|name| context.variable(name).is_ok());
            names.into_iter().map(|name| format!("${name}")).collect()
        };
        let other_lines = || if self.only_asked { None } else { context.other_lines(plain) };
        let (name, place) = (name.to_string(), context.place());
        match error {
            ContextError::None => VariableError::NoContext { name, point: Some(unit.at.point.clone()), span }.into(),
            ContextError::Unknown => VariableError::UnknownVariable { name, place, available: names(), span }.into(),
            ContextError::OptimizedOut => {
                let out = other_lines().map(|lines| format!("optimised out at {lines}"));
                let why = vec![out.unwrap_or_else(|| "the compiler has optimised it out".into())];
                VariableError::NoValueThere { name, place, why, available: names(), span }.into()
            }
            ContextError::NoValue(mut why) => {
                why.extend(other_lines().map(|lines| format!("no value at {lines}")));
                VariableError::NoValueThere { name, place, why, available: names(), span }.into()
            }
            ContextError::NotReturn => VariableError::NotReturnProbe { what: "$return", span }.into(),
            ContextError::Void => VariableError::VoidReturn { function: place, span }.into(),
            ContextError::DebugInfo(message) => Error::DebugInfo { message, span },
        }
    }

    /// The variable of the whole kernel or module that a name refers to in the probed code, `$jiffies`; also in assembler
    /// and inlined copies, which declare none. Not at returns, where a name refers to the function's entry.
    fn find_external(&mut self, unit: &Unit, name: &str, span: Span) -> Result<Option<TypedLocation>, Error> {
        let code = unit.at.context.as_ref().filter(|context| {
            context.has_registers() && matches!(context.variable("return"), Err(ContextError::NotReturn))
        });
        let Some(own) = code.and_then(|context| context.object()) else { return Ok(None) };
        let kernel = self.env.resolver.kernel().ok().filter(|_| !own.is_program());
        let kernel = kernel.and_then(|kernel| kernel.vmlinux().ok());
        for object in std::iter::once(own).chain(kernel) {
            let debug = object.debug().map_err(|error| debug_error(error, span))?;
            let Ok(found) = debug.external_global(name).map_err(|error| debug_error(error, span))? else { continue };
            self.env
                .resolver
                .uses(&object)
                .map_err(|error| Error::DebugInfo { message: error.diagnostic(span).message, span })?;
            let Ok(location) = crate::probe::locate(&found.location, &object) else { continue };
            return Ok(Some(TypedLocation { object, type_id: found.type_id, location }));
        }
        Ok(None)
    }

    /// `@var("name@file", "module")`, or a variable of the object that is probed.
    fn find_var(
        &mut self,
        unit: &Unit,
        name: &[u8],
        module: Option<&[u8]>,
        span: Span,
    ) -> Result<TypedLocation, Error> {
        let text = String::from_utf8_lossy(name).into_owned();
        let (name, file) = match text.split_once('@') {
            Some((name, file)) => (name, Some(file)),
            None => (text.as_str(), None),
        };
        let objects = self.objects(unit, module, span)?;
        for object in &objects {
            let found = match self.global_of(unit, object, name, file, span)? {
                Ok(found) => found,
                Err(Unavailable::Unknown) => continue,
                Err(reason) => {
                    let why = crate::probe::why_unavailable(reason);
                    let place = object.name().to_string();
                    return Err(VariableError::NoValueThere {
                        name: text.clone(),
                        place,
                        why,
                        available: Vec::new(),
                        span,
                    }
                    .into());
                }
            };
            self.env
                .resolver
                .uses(object)
                .map_err(|error| Error::DebugInfo { message: error.diagnostic(span).message, span })?;
            return self.located_outside(unit, object, &found, &text, span);
        }
        let searched = objects.iter().map(|object| object.name().to_string()).collect::<Vec<_>>().join(", ");
        Err(VariableError::UnknownGlobal { name: text, objects: searched, span }.into())
    }

    /// Where a variable outside functions is; it is used.
    fn located_outside(
        &mut self,
        unit: &Unit,
        object: &Rc<Object>,
        found: &FoundVariable,
        name: &str,
        span: Span,
    ) -> Result<TypedLocation, Error> {
        let own = unit.at.context.as_ref().and_then(|context| context.object());
        let is_anywhere = unit.at.context.as_ref().is_some_and(|context| context.is_anywhere());
        let elsewhere = object.is_program() && (is_anywhere || own.is_none_or(|own| own.path() != object.path()));
        let location = match elsewhere {
            true => {
                let program = self.env.resolver.program(object);
                crate::probe::locate_in_process(&found.location, object, program)
            }
            false => crate::probe::locate(&found.location, object),
        };
        let mut location = location.map_err(|why| {
            let (name, place) = (name.to_string(), object.name().to_string());
            VariableError::NoValueThere { name, place, why: vec![why], available: Vec::new(), span }
        })?;
        place_location(&mut location, span);
        Ok(TypedLocation { object: object.clone(), type_id: found.type_id, location })
    }

    /// A member that all objects of a class of C++ share.
    fn find_static_member(
        &mut self,
        unit: &Unit,
        base: &TypedLocation,
        member: &ast::Name,
    ) -> Result<Option<TypedLocation>, Error> {
        let (object, span) = (&base.object, member.span);
        let failed = |error| debug_error(error, span);
        let debug = object.debug().map_err(failed)?;
        let (mut id, ctype) = debug.resolve(base.type_id).map_err(failed)?;
        if let CType::Pointer(Some(target)) = ctype {
            id = debug.resolve(target).map_err(failed)?.0;
        }
        let Ok(found) = debug.static_member(id, &member.text).map_err(failed)? else { return Ok(None) };
        self.env
            .resolver
            .uses(object)
            .map_err(|error| Error::DebugInfo { message: error.diagnostic(span).message, span })?;
        self.located_outside(unit, object, &found, &member.text, span).map(Some)
    }

    /// The object's variable of that name: the one that the probed code means by it, if it is code of that object.
    fn global_of(
        &mut self,
        unit: &Unit,
        object: &Rc<Object>,
        name: &str,
        file: Option<&str>,
        span: Span,
    ) -> Result<Result<FoundVariable, Unavailable>, Error> {
        let failed = |error| debug_error(error, span);
        let debug = object.debug().map_err(failed)?;
        if file.is_none() {
            let code = unit.at.context.as_ref().and_then(|context| context.code());
            if let Some(code) = code.filter(|code| code.object.path() == object.path()) {
                let found = debug.global_for(code.function, name).map_err(failed)?;
                if !matches!(found, Err(Unavailable::Unknown)) {
                    return Ok(found);
                }
            }
            if !self.only_asked {
                let mut units = debug.units_of_static(name).map_err(failed)?;
                units.dedup();
                if units.len() > 1 {
                    let first = units.first().map_or("", String::as_str);
                    let warning = several_statics(name, &units).at(span, format!("that of {first}"));
                    let named = format!("`@var(\"{name}@{first}\")` tells which one is meant");
                    self.env.add_first(warning.note(named));
                }
            }
        }
        debug.global(name, file).map_err(failed)
    }

    /// The objects whose debug information is searched: those named, otherwise the probe's own and the kernel.
    pub(in crate::elaborate) fn objects(
        &mut self,
        unit: &Unit,
        module: Option<&[u8]>,
        span: Span,
    ) -> Result<Vec<Rc<Object>>, Error> {
        let modules = module.map(|list| String::from_utf8_lossy(list).into_owned()).unwrap_or_default();
        let mut objects = Vec::new();
        if modules.is_empty() {
            objects.extend(unit.at.context.as_ref().and_then(|context| context.object()));
            let kernel = self.env.resolver.kernel().ok().and_then(|kernel| kernel.vmlinux().ok());
            objects.extend(kernel);
        }
        // The first of several that has it counts, so missing ones are skipped.
        let mut missing = None;
        for module in modules.split(':').filter(|module| !module.is_empty()) {
            if is_of_program(module) {
                match self.env.resolver.module(module) {
                    Ok(object) => objects.push(object),
                    Err(error) => missing = missing.or(Some(Error::DebugInfo { message: error.to_string(), span })),
                }
                continue;
            }
            let kernel = self
                .env
                .resolver
                .kernel()
                .map_err(|_| Error::DebugInfo { message: "no kernel to take types from".into(), span })?;
            // Types of a header are not those that the kernel has by the same names: a `struct stat` differs.
            if module.starts_with(['<', '"']) && self.env.resolver.compiles_headers() {
                match self.env.resolver.header(module) {
                    Some(types) => objects.push(types),
                    None => {
                        let message = format!("gcc does not compile `#include {module}`: no types of it");
                        missing = missing.or(Some(Error::DebugInfo { message, span }));
                    }
                }
                continue;
            }
            // The headers that `kernel<linux/x.h>` or `kernel"linux/x.h"` names say nothing that the kernel's own types do not.
            let object = match module.split(['<', '"']).next() {
                Some("kernel" | "") | None => kernel.vmlinux(),
                Some(module) => self.env.resolver.module(module),
            };
            match object {
                Ok(object) => objects.push(object),
                Err(error) => missing = missing.or(Some(Error::DebugInfo { message: error.to_string(), span })),
            }
        }
        match missing {
            Some(missing) if objects.is_empty() => Err(missing),
            _ => Ok(objects),
        }
    }

    fn find_cast(
        &mut self,
        unit: &Unit,
        address: LongExpr,
        type_name: &[u8],
        module: Option<&[u8]>,
        span: Span,
    ) -> Result<TypedLocation, Error> {
        let type_name = String::from_utf8_lossy(type_name).into_owned();
        // No name finds `struct x**`.
        let is_pointer = type_name.trim_end().ends_with('*');
        let pointed = type_name.trim_end();
        let pointed = pointed.strip_suffix('*').unwrap_or(pointed).trim_end();
        let objects = self.objects(unit, module, span)?;
        for object in &objects {
            let debug = object.debug().map_err(|error| debug_error(error, span))?;
            let Some(id) = type_named(unit, object, pointed).map_err(|error| debug_error(error, span))? else {
                continue;
            };
            // `@cast(p, "struct x")` and `@cast(p, "struct x*")` both refer to the object that p points to, as does the name of
            // a pointer type.
            let type_id = match debug.resolve(id) {
                Ok((_, CType::Pointer(Some(target)))) if !is_pointer => target,
                _ => id,
            };
            return Ok(TypedLocation {
                object: object.clone(),
                type_id,
                location: Location::Memory { address, bits: None },
            });
        }
        let names = objects.iter().map(|object| match object.is_kernel() {
            true => "the kernel".to_string(),
            false => object.name().to_string(),
        });
        let mut searched: Vec<String> = names.collect();
        searched.dedup();
        let object = match (module, searched.is_empty()) {
            (Some(module), _) => String::from_utf8_lossy(module).into_owned(),
            (None, true) => "the kernel".into(),
            (None, false) => searched.join(" and "),
        };
        Err(TypeError::UnknownType { type_name, object, span }.into())
    }
}

/// The object's type of that name: the one that the probed code means by it, if it is code of that object.
pub(in crate::elaborate) fn type_named(
    unit: &Unit,
    object: &Object,
    name: &str,
) -> Result<Option<TypeId>, spile_debuginfo::Error> {
    let code = unit.at.context.as_ref().and_then(|context| context.code());
    match code.filter(|code| code.object.path() == object.path()) {
        Some(code) => object.debug()?.find_type_for(code.function, name),
        None => object.debug()?.find_type(name),
    }
}

fn is_of_program(module: &str) -> bool {
    // The name of a header has its path in brackets or quotes.
    let is_path = module.contains('/') && !module.contains(['<', '"']);
    is_path || is_shared_library(module)
}

/// `@cast_sizeof("struct x*")` is `&@cast(0, "struct x*")[1]`, the size of the pointer.
fn is_null_pointer_to_pointer(base: &ast::Expr) -> bool {
    let ast::ExprKind::Cast { value, type_name, .. } = &base.kind else { return false };
    matches!(value.kind, ast::ExprKind::Number(0)) && type_name.trim_ascii_end().ends_with(b"*")
}

fn place_location(location: &mut Location, span: Span) {
    if let Location::Value(value) | Location::Memory { address: value, .. } = location {
        place(value, span);
    }
}

/// Sets the place of the reads in an expression built from debug information to the place of its use.
fn place(value: &mut LongExpr, span: Span) {
    value.span = span;
    match &mut value.kind {
        LongKind::Read { address: inner, .. }
        | LongKind::SignExtend(inner, _)
        | LongKind::Bits { value: inner, .. }
        | LongKind::Negate(inner)
        | LongKind::Not(inner)
        | LongKind::Complement(inner) => place(inner, span),
        LongKind::Binary(_, left, right) => [left, right].into_iter().for_each(|inner| place(inner, span)),
        LongKind::Conditional(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().for_each(|inner| place(inner, span));
        }
        _ => {}
    }
}
