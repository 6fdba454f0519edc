// SPDX-License-Identifier: GPL-2.0-or-later

//! Context variables: `$x->f[i]`, `&$x->f`, `@cast(...)->f` to fault-safe reads with the types of the debug information.

use super::autocast::{is_pointed, only_index};
use super::error::Error;
use super::{Elaborator, Unit};
use crate::probe::{BitRange, ContextError, Found, Location};
use crate::program::{BitField, Expr, ExprKind, LValue, Type};
use spile_debuginfo::target::Object;
use spile_debuginfo::{BaseEncoding, MemberError, Type as CType, TypeId};
use spile_source::Span;
use spile_syntax::ast::{self, BinaryOp};
use std::rc::Rc;

/// A `$$` word or a pretty form whose value is text: `$$vars`, `$$parms$`.
pub(super) fn is_text(name: &str) -> bool {
    name.starts_with("$$")
}

pub(super) fn long(value: i64, span: Span) -> Expr {
    Expr { kind: ExprKind::Long(value), ty: Type::Long, span }
}

pub(super) fn add(left: Expr, right: i64) -> Expr {
    if right == 0 {
        return left;
    }
    let span = left.span;
    binary(BinaryOp::Add, left, long(right, span))
}

pub(super) fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let span = left.span;
    Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), ty: Type::Long, span }
}

fn expr(kind: ExprKind, span: Span) -> Expr {
    Expr { kind, ty: Type::Long, span }
}

/// Lowers an index of a dereference; what is only asked whether it is there has none.
type LowerIndex<'f, 'a> = &'f mut dyn FnMut(&mut Elaborator<'a>, &ast::Expr) -> Result<Expr, Error>;

impl<'a> Elaborator<'a> {
    /// Whether the operand of `@defined` can be resolved at this site.
    pub(super) fn is_defined(&mut self, unit: &Unit, operand: &ast::Expr) -> bool {
        let mut index = |_: &mut Elaborator<'a>, index: &ast::Expr| Ok(long(0, index.span));
        let before = std::mem::replace(&mut self.only_asked, true);
        let defined = self.is_there(unit, operand, &mut index);
        self.only_asked = before;
        defined
    }

    fn is_there(&mut self, unit: &Unit, operand: &ast::Expr, index: LowerIndex<'_, 'a>) -> bool {
        match &operand.kind {
            ast::ExprKind::Pretty(base, _) => self.find(unit, base, index).is_ok(),
            ast::ExprKind::AddressOf(base) => {
                self.find(unit, base, index).is_ok_and(|found| matches!(found.location, Location::Memory { .. }))
            }
            ast::ExprKind::Entry(inner) => self.is_defined(unit, inner),
            ast::ExprKind::Target(name) if is_text(name) => {
                unit.context.as_ref().is_some_and(|context| context.has_variables())
            }
            _ => self.find(unit, operand, index).and_then(|found| self.load(&found, operand.span)).is_ok(),
        }
    }

    /// The object that a target expression or cast names.
    pub(super) fn find(&mut self, unit: &Unit, target: &ast::Expr, index: LowerIndex<'_, 'a>) -> Result<Found, Error> {
        match &target.kind {
            ast::ExprKind::Target(name) => self.find_variable(unit, name, target.span),
            ast::ExprKind::Member(base, member) => {
                // `(&x)->m` is a member of x.
                let base = match &base.kind {
                    ast::ExprKind::AddressOf(whole) => self.find(unit, whole, index)?,
                    _ => self.find(unit, base, index)?,
                };
                self.find_member(base, member)
            }
            ast::ExprKind::Index(base, indices) if !self.is_element(target) => {
                let number = only_index(indices, target.span)?;
                // A cast and a typed value are pointers: an index counts from what they point to.
                let pointer =
                    is_pointed(base) || self.is_element(base) || matches!(base.kind, ast::ExprKind::Cast { .. });
                let base = self.find(unit, base, index)?;
                let number = index(self, number)?;
                if pointer {
                    let Location::Memory { address, bits: None } = base.location else {
                        return Err(Error::NotIndexable { type_name: "a bit-field".into(), span: target.span });
                    };
                    return self.element_at(base.object, address, base.type_id, number, target.span);
                }
                self.find_element(base, number, target.span)
            }
            ast::ExprKind::Var { name, module } => self.find_var(unit, name, module.as_deref(), target.span),
            ast::ExprKind::Cast { value, type_name, module } => {
                let address = index(self, value)?;
                self.find_cast(unit, address, type_name, module.as_deref(), target.span)
            }
            _ if is_pointed(target) || self.is_element(target) => self.find_pointed(unit, target, index),
            _ => Err(Error::NotAStruct { type_name: self.sources.text(target.span).to_string(), span: target.span }),
        }
    }

    fn find_variable(&mut self, unit: &Unit, name: &str, span: Span) -> Result<Found, Error> {
        let plain = name.trim_start_matches('$');
        let Some(context) = &unit.context else {
            return Err(Error::NoContext { name: name.into(), point: None, span });
        };
        let asked = self.only_asked;
        // Whoever asks for this one by its name has it, or an error that says so.
        let settled = |mut found: Found| {
            if let Location::Told(location) = found.location {
                found.location = *location;
            }
            if let Location::Value(value) | Location::Memory { address: value, .. } = &mut found.location {
                place(value, span);
            }
            found
        };
        let found = match context.variable(plain) {
            Err(ContextError::Unknown) => self.find_external(unit, plain, span)?.ok_or(ContextError::Unknown),
            found => found,
        };
        let context = unit.context.as_ref().ok_or(Error::NoContext { name: name.into(), point: None, span })?;
        found.map(settled).map_err(|error| {
            let names = || -> Vec<String> {
                // What is optimised out there would be no help.
                if asked {
                    return Vec::new();
                }
                let returned = std::iter::once("return".to_string());
                let mut names: Vec<String> = returned.chain(context.parameters()).chain(context.locals()).collect();
                names.retain(|name| context.variable(name).is_ok());
                names.into_iter().map(|name| format!("${name}")).collect()
            };
            let (name, place) = (name.to_string(), context.place());
            match error {
                ContextError::None => Error::NoContext { name, point: Some(unit.point.clone()), span },
                ContextError::Unknown => Error::UnknownVariable { name, place, available: names(), span },
                ContextError::OptimizedOut => {
                    let out = (!asked)
                        .then(|| context.elsewhere(plain))
                        .flatten()
                        .map(|elsewhere| format!("optimised out at {elsewhere}"));
                    let why = vec![out.unwrap_or_else(|| "the compiler has optimised it out".into())];
                    Error::NoValueThere { name, place, why, available: names(), span }
                }
                ContextError::NoValue(mut why) => {
                    why.extend(
                        (!asked)
                            .then(|| context.elsewhere(plain))
                            .flatten()
                            .map(|elsewhere| format!("no value at {elsewhere}")),
                    );
                    Error::NoValueThere { name, place, why, available: names(), span }
                }
                ContextError::NotReturn => Error::NotReturnProbe { span },
                ContextError::Void => Error::VoidReturn { function: place, span },
                ContextError::DebugInfo(message) => Error::DebugInfo { message, span },
            }
        })
    }

    /// The variable of the whole kernel or module that the probed code means by a name, `$jiffies`: assembler and inlined
    /// copies too, which declare none. Not at returns, where a name means what was at the entry.
    fn find_external(&mut self, unit: &Unit, name: &str, span: Span) -> Result<Option<Found>, Error> {
        let code = unit.context.as_ref().filter(|context| {
            context.has_registers() && matches!(context.variable("return"), Err(ContextError::NotReturn))
        });
        let Some(own) = code.and_then(|context| context.object()) else { return Ok(None) };
        let kernel = self.resolver.kernel().ok().and_then(|kernel| kernel.vmlinux().ok());
        for object in std::iter::once(own).chain(kernel) {
            let debug = object.debug().map_err(|error| debug_error(error, span))?;
            let Ok(found) = debug.external_global(name).map_err(|error| debug_error(error, span))? else { continue };
            self.resolver
                .target(&object)
                .map_err(|error| Error::DebugInfo { message: error.diagnostic(span).message, span })?;
            let Ok(location) = crate::probe::locate(&found.location, &object) else { continue };
            return Ok(Some(Found { object, type_id: found.type_id, location }));
        }
        Ok(None)
    }

    fn find_member(&mut self, base: Found, member: &ast::Name) -> Result<Found, Error> {
        let span = member.span;
        let object = base.object.clone();
        let debug = object.debug().map_err(|error| Error::DebugInfo { message: error.to_string(), span })?;
        let type_name = || debug.type_name(base.type_id);
        let (address, container) = match debug.resolve(base.type_id).map_err(|error| debug_error(error, span))? {
            // Behind a pointer that is nowhere the object itself may still be somewhere.
            (_, CType::Pointer(Some(target))) if matches!(base.location, Location::Pointer(_)) => {
                let Location::Pointer(to) = base.location else {
                    return Err(Error::NotAStruct { type_name: type_name(), span });
                };
                return self.find_member(Found { object, type_id: target, location: *to }, member);
            }
            (_, CType::Pointer(Some(target))) => (self.load(&base, span)?, target),
            (id, CType::Struct { .. }) => match &base.location {
                Location::Memory { address, bits: None } => (address.clone(), id),
                _ => return self.find_part(&base, id, member),
            },
            _ => return Err(Error::NotAStruct { type_name: type_name(), span }),
        };
        let found = self.member_of(debug, container, member)?;
        let address = add(address, found.offset as i64);
        let bits = found.bits.map(|bits| BitRange { first: bits.first, bits: bits.bits });
        Ok(Found { object, type_id: found.type_id, location: Location::Memory { address, bits } })
    }

    /// A member of a struct that is not in memory as one.
    fn find_part(&mut self, base: &Found, container: TypeId, member: &ast::Name) -> Result<Found, Error> {
        let (span, object) = (member.span, base.object.clone());
        let debug = object.debug().map_err(|error| debug_error(error, span))?;
        let found = self.member_of(debug, container, member)?;
        let lost = Error::NoAddress { span, why: "the compiler has optimised out this part of the struct" };
        let first = found.offset.saturating_mul(8).saturating_add(found.bits.map_or(0, |bits| bits.first));
        let Some(location) = crate::probe::beyond(&base.location, first) else { return Err(lost) };
        let location = match found.bits {
            None => location,
            Some(bits) => {
                let value = crate::probe::joined(&location, u64::from(bits.bits)).ok_or(lost)?;
                let signed = matches!(scalar(debug, found.type_id, span)?, Scalar::Number { signed: true, .. });
                Location::Value(if signed {
                    expr(ExprKind::SignExtend(Box::new(value), bits.bits), span)
                } else {
                    value
                })
            }
        };
        Ok(Found { object: object.clone(), type_id: found.type_id, location })
    }

    fn member_of(
        &self,
        debug: &spile_debuginfo::DebugInfo,
        container: TypeId,
        member: &ast::Name,
    ) -> Result<spile_debuginfo::FoundMember, Error> {
        let span = member.span;
        debug.member(container, &member.text).map_err(|error| match error {
            MemberError::NoMember { candidates } => {
                let type_name = debug.type_name(container);
                Error::NoMember { type_name, member: member.text.clone(), available: candidates, span }
            }
            MemberError::NotAStruct => Error::NotAStruct { type_name: debug.type_name(container), span },
            MemberError::Incomplete { name } => Error::DebugInfo {
                message: format!("`{name}` is only declared, nowhere defined, in this object"),
                span,
            },
            MemberError::Debug(error) => debug_error(error, span),
        })
    }

    fn find_element(&mut self, base: Found, index: Expr, span: Span) -> Result<Found, Error> {
        let object = base.object.clone();
        let debug = object.debug().map_err(|error| Error::DebugInfo { message: error.to_string(), span })?;
        let (address, element) = match debug.resolve(base.type_id).map_err(|error| debug_error(error, span))? {
            (_, CType::Pointer(Some(target))) => match (&base.location, &index.kind) {
                (Location::Pointer(to), ExprKind::Long(0)) => {
                    return Ok(Found { object, type_id: target, location: (**to).clone() });
                }
                _ => (self.load(&base, span)?, target),
            },
            (_, CType::Array { element, counts }) => match &base.location {
                Location::Memory { address, bits: None } => {
                    // One index of a many-dimensional array gives the array of the other dimensions.
                    let rest = debug
                        .array_element(base.type_id, element, &counts)
                        .map_err(|error| debug_error(error, span))?;
                    (address.clone(), rest)
                }
                _ => return Err(Error::NoAddress { span, why: "the array is held in registers" }),
            },
            _ => return Err(Error::NotIndexable { type_name: debug.type_name(base.type_id), span }),
        };
        self.element_at(object.clone(), address, element, index, span)
    }

    /// Element `index` of those that begin at the address.
    fn element_at(
        &mut self,
        object: Rc<Object>,
        address: Expr,
        element: TypeId,
        index: Expr,
        span: Span,
    ) -> Result<Found, Error> {
        let holder = object.clone();
        let debug = holder.debug().map_err(|error| debug_error(error, span))?;
        let size = debug.size_of(element).map_err(|error| debug_error(error, span))?;
        let Some(size) = size.filter(|size| *size > 0) else {
            return Err(Error::NotIndexable { type_name: debug.type_name(element), span });
        };
        let address = match index.kind {
            ExprKind::Long(number) => add(address, number.wrapping_mul(size as i64)),
            _ => binary(BinaryOp::Add, address, binary(BinaryOp::Multiply, index, long(size as i64, span))),
        };
        Ok(Found { object, type_id: element, location: Location::Memory { address, bits: None } })
    }

    /// `@var("name@file", "module")`, or a variable of the object that is probed.
    fn find_var(&mut self, unit: &Unit, name: &[u8], module: Option<&[u8]>, span: Span) -> Result<Found, Error> {
        let text = String::from_utf8_lossy(name).into_owned();
        let (name, file) = match text.split_once('@') {
            Some((name, file)) => (name, Some(file)),
            None => (text.as_str(), None),
        };
        let objects = self.objects(unit, module, span)?;
        for object in &objects {
            let debug = object.debug().map_err(|error| debug_error(error, span))?;
            let found = match debug.global(name, file).map_err(|error| debug_error(error, span))? {
                Ok(found) => found,
                Err(spile_debuginfo::Unavailable::Unknown) => continue,
                Err(reason) => {
                    let why = crate::probe::why_unavailable(reason);
                    let place = object.name().to_string();
                    return Err(Error::NoValueThere { name: text.clone(), place, why, available: Vec::new(), span });
                }
            };
            self.resolver
                .target(object)
                .map_err(|error| Error::DebugInfo { message: error.diagnostic(span).message, span })?;
            let location = crate::probe::locate(&found.location, object).map_err(|why| {
                let place = object.name().to_string();
                Error::NoValueThere { name: text.clone(), place, why: vec![why], available: Vec::new(), span }
            })?;
            return Ok(Found { object: object.clone(), type_id: found.type_id, location });
        }
        let searched = objects.iter().map(|object| object.name().to_string()).collect::<Vec<_>>().join(", ");
        Err(Error::UnknownGlobal { name: text, objects: searched, span })
    }

    /// The objects whose debug information is meant: those named, else the probe's own and the kernel.
    pub(super) fn objects(&mut self, unit: &Unit, module: Option<&[u8]>, span: Span) -> Result<Vec<Rc<Object>>, Error> {
        let modules = module.map(|list| String::from_utf8_lossy(list).into_owned()).unwrap_or_default();
        let mut objects = Vec::new();
        if modules.is_empty() {
            objects.extend(unit.context.as_ref().and_then(|context| context.object()));
            objects.extend(self.resolver.kernel().ok().and_then(|kernel| kernel.vmlinux().ok()));
        }
        // Of several the first that has it counts, so one that is missing is passed over.
        let mut missing = None;
        for module in modules.split(':').filter(|module| !module.is_empty()) {
            let kernel = self
                .resolver
                .kernel()
                .map_err(|_| Error::DebugInfo { message: "no kernel to take types from".into(), span })?;
            objects.extend(self.resolver.header(module));
            // The headers that `kernel<linux/x.h>` or `kernel"linux/x.h"` names say nothing that the kernel's own types do not.
            let object = match module.split(['<', '"']).next() {
                Some("kernel" | "") | None => kernel.vmlinux(),
                Some(module) => self.resolver.module(module),
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
        address: Expr,
        type_name: &[u8],
        module: Option<&[u8]>,
        span: Span,
    ) -> Result<Found, Error> {
        let type_name = String::from_utf8_lossy(type_name).into_owned();
        let objects = self.objects(unit, module, span)?;
        for object in &objects {
            let debug = object.debug().map_err(|error| debug_error(error, span))?;
            let Some(id) =
                debug.find_type(type_name.trim_end_matches(['*', ' '])).map_err(|error| debug_error(error, span))?
            else {
                continue;
            };
            let pointer = type_name.contains('*') || matches!(debug.resolve(id), Ok((_, CType::Pointer(_))));
            // `@cast(p, "struct x")` and `@cast(p, "struct x*")` both mean the object that p points to.
            let type_id = match debug.resolve(id) {
                Ok((_, CType::Pointer(Some(target)))) if pointer => target,
                _ => id,
            };
            return Ok(Found { object: object.clone(), type_id, location: Location::Memory { address, bits: None } });
        }
        let object = module.map_or_else(|| "the kernel".into(), |module| String::from_utf8_lossy(module).into_owned());
        Err(Error::UnknownType { type_name, object, span })
    }

    /// The value of a found object as a long.
    pub(super) fn load(&mut self, found: &Found, span: Span) -> Result<Expr, Error> {
        let debug = found.object.debug().map_err(|error| debug_error(error, span))?;
        let shape = scalar(debug, found.type_id, span)?;
        let value = match (&found.location, &shape) {
            (Location::Told(location), _) => {
                let found =
                    Found { object: found.object.clone(), type_id: found.type_id, location: (**location).clone() };
                return self.load(&found, span);
            }
            (Location::Pointer(_), _) => {
                return Err(Error::NoAddress {
                    span,
                    why: "the compiler keeps what it points to out of memory: ask for what is there",
                });
            }
            (Location::Memory { address, bits: None }, Scalar::Array) => return Ok(address.clone()),
            (_, Scalar::Array) => return Err(Error::NoAddress { span, why: "the array is held in registers" }),
            (Location::Memory { address, bits: Some(range) }, Scalar::Number { signed, .. }) => {
                return bit_field(address, *range, *signed, span);
            }
            (Location::Memory { address, bits: None }, Scalar::Number { size, .. }) => {
                let address = Box::new(address.clone());
                expr(ExprKind::Read { address, size: *size, user: false }, span)
            }
            (Location::Register { offset }, _) => expr(ExprKind::Register { offset: *offset }, span),
            (Location::Value(value), _) => value.clone(),
            (Location::Parts(_), Scalar::Number { size, .. }) => {
                let joined = crate::probe::joined(&found.location, u64::from(*size) * 8);
                joined.ok_or(Error::NoAddress { span, why: "the compiler has optimised out a part of it" })?
            }
        };
        let Scalar::Number { size, signed } = shape else { return Ok(value) };
        let in_memory = matches!(found.location, Location::Memory { .. });
        Ok(match (size, signed) {
            (8, _) => value,
            (_, true) => expr(ExprKind::SignExtend(Box::new(value), size * 8), span),
            (_, false) if in_memory => value,
            (_, false) => expr(ExprKind::Bits { value: Box::new(value), first: 0, bits: size * 8 }, span),
        })
    }

    /// Where an assignment to a found object goes.
    pub(super) fn place_of(&mut self, found: &Found, span: Span) -> Result<LValue, Error> {
        let debug = found.object.debug().map_err(|error| debug_error(error, span))?;
        let Scalar::Number { size, signed } = scalar(debug, found.type_id, span)? else {
            return Err(Error::NotAssignable { span });
        };
        match &found.location {
            Location::Register { offset } => Ok(LValue::Register { offset: *offset, size, signed }),
            Location::Memory { address, bits: None } => {
                Ok(LValue::Memory { address: address.clone(), size, field: None, signed })
            }
            Location::Memory { address, bits: Some(range) } => {
                let (skip, field, size) = storage(*range).ok_or(Error::NotAssignable { span })?;
                Ok(LValue::Memory { address: add(address.clone(), skip), size, field: Some(field), signed })
            }
            Location::Value(_) | Location::Parts(_) | Location::Pointer(_) | Location::Told(_) => {
                Err(Error::NotAssignable { span })
            }
        }
    }

    /// The address of a found object.
    pub(super) fn address_of(&mut self, found: &Found, span: Span) -> Result<Expr, Error> {
        match &found.location {
            Location::Memory { address, bits: None } => Ok(address.clone()),
            Location::Memory { bits: Some(_), .. } => Err(Error::NoAddress { span, why: "a bit-field" }),
            Location::Register { .. } => Err(Error::NoAddress { span, why: "it is held in a register" }),
            Location::Value(_) | Location::Told(_) => Err(Error::NoAddress { span, why: "it is a computed value" }),
            Location::Parts(_) => Err(Error::NoAddress { span, why: "it is in several places" }),
            Location::Pointer(_) => Err(Error::NoAddress { span, why: "the compiler has optimised it out" }),
        }
    }
}

pub(super) fn debug_error(error: impl std::fmt::Display, span: Span) -> Error {
    Error::DebugInfo { message: error.to_string(), span }
}

/// Gives the reads of an expression that debug information has made the place where they are used.
fn place(value: &mut Expr, span: Span) {
    value.span = span;
    match &mut value.kind {
        ExprKind::Read { address: inner, .. }
        | ExprKind::SignExtend(inner, _)
        | ExprKind::Bits { value: inner, .. }
        | ExprKind::Negate(inner)
        | ExprKind::Not(inner)
        | ExprKind::Complement(inner) => place(inner, span),
        ExprKind::Binary(_, left, right) => [left, right].into_iter().for_each(|inner| place(inner, span)),
        ExprKind::Conditional(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().for_each(|inner| place(inner, span))
        }
        _ => {}
    }
}

/// How a C type is held as a long.
enum Scalar {
    /// 1, 2, 4 or 8 bytes.
    Number { size: u8, signed: bool },
    /// Stands for its address.
    Array,
}

fn scalar(debug: &spile_debuginfo::DebugInfo, id: TypeId, span: Span) -> Result<Scalar, Error> {
    let (size, signed) = match debug.resolve(id).map_err(|error| debug_error(error, span))?.1 {
        CType::Base { size, encoding, .. } => {
            // A float's bits are given as they are, for the fp_ functions.
            (size, matches!(encoding, BaseEncoding::Signed | BaseEncoding::SignedChar))
        }
        CType::Pointer(_) => (8, false),
        CType::Enum { size, signed, .. } => (size, signed),
        CType::Array { .. } => return Ok(Scalar::Array),
        CType::Struct { members, .. } => {
            let members = members.into_iter().filter_map(|member| member.name).collect();
            return Err(Error::WholeStruct { type_name: debug.type_name(id), members, span });
        }
        _ => return Err(Error::WholeStruct { type_name: debug.type_name(id), members: Vec::new(), span }),
    };
    match size {
        1 | 2 | 4 | 8 => Ok(Scalar::Number { size: size as u8, signed }),
        _ => Err(Error::WholeStruct { type_name: debug.type_name(id), members: Vec::new(), span }),
    }
}

/// Bytes to skip, the bits in the storage that begins there, and its size, so that one read of 1, 2, 4 or 8 bytes has
/// the whole field; None for one that lies in nine bytes.
fn storage(range: BitRange) -> Option<(i64, BitField, u8)> {
    let skip = range.first / 8;
    let first = (range.first % 8) as u8;
    let size = (u32::from(first) + u32::from(range.bits)).div_ceil(8).next_power_of_two();
    (size <= 8 && range.bits > 0).then_some((skip as i64, BitField { first, bits: range.bits }, size as u8))
}

fn bit_field(address: &Expr, range: BitRange, signed: bool, span: Span) -> Result<Expr, Error> {
    let (skip, field, size) = storage(range).ok_or(Error::NotAssignable { span })?;
    let address = Box::new(add(address.clone(), skip));
    let word = Box::new(expr(ExprKind::Read { address, size, user: false }, span));
    let value = expr(ExprKind::Bits { value: word, first: field.first, bits: field.bits }, span);
    Ok(if signed { expr(ExprKind::SignExtend(Box::new(value), field.bits), span) } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_read_has_the_whole_field() {
        let at = |first, bits| storage(BitRange { first, bits });
        assert_eq!(at(0, 3), Some((0, BitField { first: 0, bits: 3 }, 1)));
        assert_eq!(at(13, 6), Some((1, BitField { first: 5, bits: 6 }, 2)));
        assert_eq!(at(7, 18), Some((0, BitField { first: 7, bits: 18 }, 4)));
        assert_eq!(at(33, 64), None);
    }
}
