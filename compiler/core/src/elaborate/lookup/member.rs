// SPDX-License-Identifier: GPL-2.0-or-later

//! Members of structs and elements of arrays: from an object to one inside it.

use super::value::{Scalar, add, binary, debug_error, load, reader, scalar};
use crate::elaborate::error::{Error, TypeError, VariableError};
use crate::probe::{BitRange, Location, TypedLocation};
use crate::program::{BinaryOp, LongExpr, LongKind};
use spile_debuginfo::target::Object;
use spile_debuginfo::{FoundMember, MemberError, Type as CType, TypeId, VirtualBase};
use spile_source::Span;
use spile_syntax::ast;
use std::rc::Rc;

/// The member of an object, also through a pointer to one.
pub(super) fn find_member(base: TypedLocation, member: &ast::Name) -> Result<TypedLocation, Error> {
    let span = member.span;
    let object = base.object.clone();
    let debug = object.debug().map_err(|error| Error::DebugInfo { message: error.to_string(), span })?;
    let type_name = || debug.type_name(base.type_id);
    let (address, container) = match debug.resolve(base.type_id).map_err(|error| debug_error(error, span))? {
        // A pointer that was optimised out may still point to a known object.
        (_, CType::Pointer(Some(target))) if matches!(base.location, Location::Pointer(_)) => {
            let Location::Pointer(to) = base.location else {
                return Err(TypeError::NotAStruct { type_name: type_name(), span }.into());
            };
            return find_member(TypedLocation { object, type_id: target, location: *to }, member);
        }
        (_, CType::Pointer(Some(target))) => (load(&base, span)?, target),
        (id, CType::Struct { .. }) => match &base.location {
            Location::Memory { address, bits: None } => (address.clone(), id),
            _ => return find_part(&base, id, member),
        },
        (_, CType::Incomplete { name }) if name != "void" => return Err(incomplete(&name, span)),
        _ => return Err(TypeError::NotAStruct { type_name: type_name(), span }.into()),
    };
    let found = member_of(debug, container, member)?;
    let mut address = address;
    for base in &found.bases {
        address = of_virtual_base(&object, address, base, span);
    }
    let address = add(address, found.offset as i64);
    let bits = found.bits.map(|bits| BitRange { first: bits.first, bits: bits.bits });
    Ok(TypedLocation { object, type_id: found.type_id, location: Location::Memory { address, bits } })
}

/// Where a virtual base of an object in memory is.
pub(in crate::elaborate) fn of_virtual_base(
    object: &Object,
    address: LongExpr,
    base: &VirtualBase,
    span: Span,
) -> LongExpr {
    let word = object.word();
    let read = |at| reader(object.reads_user())(at, word, span);
    virtual_base_by(word, address, base, &read, span).1
}

/// Which table of virtual functions the object has, and where its base is by that; `read` reads a word.
pub(in crate::elaborate) fn virtual_base_by(
    word: u8,
    address: LongExpr,
    base: &VirtualBase,
    read: &dyn Fn(LongExpr) -> LongExpr,
    span: Span,
) -> (LongExpr, LongExpr) {
    let has = add(address, base.offset as i64);
    let table = read(has.clone());
    let distance = read(add(table.clone(), (base.below as i64).wrapping_neg()));
    let distance = if word < 8 { LongExpr::sign_extend(distance, 8 * word, span) } else { distance };
    (table, binary(BinaryOp::Add, has, distance))
}

/// A member of a struct that is not in memory as one.
fn find_part(base: &TypedLocation, container: TypeId, member: &ast::Name) -> Result<TypedLocation, Error> {
    let span = member.span;
    let debug = base.object.debug().map_err(|error| debug_error(error, span))?;
    let found = member_of(debug, container, member)?;
    let lost = VariableError::PartOptimizedOut { whole: "struct", span };
    part_of(base, &found, span)?.ok_or(lost.into())
}

/// The same of one that is known; None: the compiler has optimised it out.
pub(in crate::elaborate) fn part_of(
    base: &TypedLocation,
    found: &FoundMember,
    span: Span,
) -> Result<Option<TypedLocation>, Error> {
    // An object with virtual bases is always in memory.
    if !found.bases.is_empty() {
        return Ok(None);
    }
    let object = base.object.clone();
    let first = found.offset.saturating_mul(8).saturating_add(found.bits.map_or(0, |bits| bits.first));
    let Some(location) = crate::probe::beyond(&base.location, first) else { return Ok(None) };
    let location = match found.bits {
        None => location,
        Some(bits) => {
            let joined = crate::probe::joined(&location, u64::from(bits.bits), object.reads_user());
            let Some(value) = joined else { return Ok(None) };
            let debug = object.debug().map_err(|error| debug_error(error, span))?;
            let signed = matches!(scalar(debug, found.type_id, span)?, Scalar::Number { signed: true, .. });
            Location::Value(if signed { LongExpr::sign_extend(value, bits.bits, span) } else { value })
        }
    };
    Ok(Some(TypedLocation { object, type_id: found.type_id, location }))
}

fn member_of(
    debug: &spile_debuginfo::DebugInfo,
    container: TypeId,
    member: &ast::Name,
) -> Result<spile_debuginfo::FoundMember, Error> {
    let span = member.span;
    debug.member(container, &member.text).map_err(|error| match error {
        MemberError::NoMember { candidates } => {
            let type_name = debug.type_name(container);
            TypeError::NoMember { type_name, member: member.text.clone(), available: candidates, span }.into()
        }
        MemberError::NotAStruct => TypeError::NotAStruct { type_name: debug.type_name(container), span }.into(),
        MemberError::Incomplete { name } => incomplete(&name, span),
        MemberError::Debug(error) => debug_error(error, span),
    })
}

/// A type that is only declared.
fn incomplete(name: &str, span: Span) -> Error {
    // Where it expects a library to describe a class; others do so for what is declared in a header.
    let clang = if name.contains('<') { " (clang describes such classes with -fstandalone-debug)" } else { "" };
    Error::DebugInfo { message: format!("`{name}` is only declared, nowhere defined, in this object{clang}"), span }
}

/// Element `index` of an array, or of the memory that a pointer points to.
pub(super) fn find_element(base: TypedLocation, index: LongExpr, span: Span) -> Result<TypedLocation, Error> {
    let object = base.object.clone();
    let debug = object.debug().map_err(|error| Error::DebugInfo { message: error.to_string(), span })?;
    let (address, element) = match debug.resolve(base.type_id).map_err(|error| debug_error(error, span))? {
        (id, CType::Pointer(Some(target)))
            if refers_to_array(debug, id, target).map_err(|error| debug_error(error, span))? =>
        {
            let location = match &base.location {
                Location::Pointer(to) => (**to).clone(),
                _ => Location::Memory { address: load(&base, span)?, bits: None },
            };
            return find_element(TypedLocation { object, type_id: target, location }, index, span);
        }
        (_, CType::Pointer(Some(target))) => match (&base.location, &index.kind) {
            (Location::Pointer(to), LongKind::Const(0)) => {
                return Ok(TypedLocation { object, type_id: target, location: (**to).clone() });
            }
            _ => (load(&base, span)?, target),
        },
        (_, CType::Array { element, counts }) => match &base.location {
            Location::Memory { address, bits: None } => {
                // One index into a multi-dimensional array gives the array of the remaining dimensions.
                let rest =
                    debug.array_element(base.type_id, element, &counts).map_err(|error| debug_error(error, span))?;
                (address.clone(), rest)
            }
            _ => {
                let rest =
                    debug.array_element(base.type_id, element, &counts).map_err(|error| debug_error(error, span))?;
                return element_in_registers(&base, rest, counts.first().copied().flatten(), &index, span);
            }
        },
        _ => return Err(TypeError::NotIndexable { type_name: debug.type_name(base.type_id), span }.into()),
    };
    element_at(object.clone(), address, element, index, span)
}

/// Whether a type is a C++ reference to an array, which is indexed as the array is.
fn refers_to_array(
    debug: &spile_debuginfo::DebugInfo,
    id: TypeId,
    target: TypeId,
) -> Result<bool, spile_debuginfo::Error> {
    Ok(matches!(debug.resolve_outline(target)?, CType::Array { .. }) && debug.is_reference(id)?)
}

/// Element `index`, if that is known, of an array with `count` elements that is not in memory.
fn element_in_registers(
    base: &TypedLocation,
    element: TypeId,
    count: Option<u64>,
    index: &LongExpr,
    span: Span,
) -> Result<TypedLocation, Error> {
    let number = match index.kind {
        LongKind::Const(number) => {
            u64::try_from(number).ok().filter(|number| count.is_some_and(|count| *number < count))
        }
        _ => {
            let why = "the array is held in registers: only elements of constant numbers can be read";
            return Err(VariableError::NoAddress { span, why }.into());
        }
    };
    let outside = VariableError::NoAddress { span, why: "the array is held in registers, and has no such element" };
    let number = number.ok_or(outside)?;
    let debug = base.object.debug().map_err(|error| debug_error(error, span))?;
    let size = debug.size_of(element).map_err(|error| debug_error(error, span))?.unwrap_or(0);
    let found = FoundMember { type_id: element, bases: Vec::new(), offset: number.saturating_mul(size), bits: None };
    let lost = VariableError::PartOptimizedOut { whole: "array", span };
    part_of(base, &found, span)?.ok_or(lost.into())
}

/// Pointer `index` of an array of pointers that begins at 0: the size of as many pointers.
pub(super) fn pointer_from_zero(base: TypedLocation, index: LongExpr, span: Span) -> Result<TypedLocation, Error> {
    let debug = base.object.debug().map_err(|error| debug_error(error, span))?;
    let word = LongExpr::constant(debug.word().into(), span);
    let address = binary(BinaryOp::Multiply, index, word);
    Ok(TypedLocation { location: Location::Memory { address, bits: None }, ..base })
}

/// Element `index` of an array at the address.
pub(super) fn element_at(
    object: Rc<Object>,
    address: LongExpr,
    element: TypeId,
    index: LongExpr,
    span: Span,
) -> Result<TypedLocation, Error> {
    let holder = object.clone();
    let debug = holder.debug().map_err(|error| debug_error(error, span))?;
    let size = debug.size_of(element).map_err(|error| debug_error(error, span))?;
    let Some(size) = size.filter(|size| *size > 0) else {
        return Err(TypeError::NotIndexable { type_name: debug.type_name(element), span }.into());
    };
    let address = match index.kind {
        LongKind::Const(number) => add(address, number.wrapping_mul(size as i64)),
        _ => binary(BinaryOp::Add, address, binary(BinaryOp::Multiply, index, LongExpr::constant(size as i64, span))),
    };
    Ok(TypedLocation { object, type_id: element, location: Location::Memory { address, bits: None } })
}
