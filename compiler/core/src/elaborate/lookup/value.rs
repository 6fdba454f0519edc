// SPDX-License-Identifier: GPL-2.0-or-later

//! From objects to their uses in the program: values, targets of assignments, addresses.

use crate::elaborate::error::{Error, StatementError, TypeError, VariableError};
use crate::probe::{BitRange, Location, TypedLocation};
use crate::program::{BinaryOp, BitField, LongExpr, LongPlace};
use spile_debuginfo::{BaseEncoding, MemberError, Type as CType, TypeId};
use spile_source::Span;
use std::collections::HashSet;

pub(in crate::elaborate) fn add(left: LongExpr, right: i64) -> LongExpr {
    if right == 0 {
        return left;
    }
    let span = left.span;
    binary(BinaryOp::Add, left, LongExpr::constant(right, span))
}

pub(in crate::elaborate) fn binary(op: BinaryOp, left: LongExpr, right: LongExpr) -> LongExpr {
    let span = left.span;
    LongExpr::binary(op, left, right, span)
}

/// The value of an object as a long.
pub(in crate::elaborate) fn load(found: &TypedLocation, span: Span) -> Result<LongExpr, Error> {
    let debug = found.object.debug().map_err(|error| debug_error(error, span))?;
    let shape = scalar(debug, found.type_id, span)?;
    let value = match (&found.location, &shape) {
        (Location::KnownCallers { location, .. }, _) => {
            let found =
                TypedLocation { object: found.object.clone(), type_id: found.type_id, location: (**location).clone() };
            return load(&found, span);
        }
        (Location::Pointer(_), _) => {
            return Err(VariableError::NoAddress {
                span,
                why: "the compiler keeps what it points to out of memory: ask for what is there",
            }
            .into());
        }
        (Location::Memory { address, bits: None }, Scalar::Array) => return Ok(address.clone()),
        (_, Scalar::Array) => {
            return Err(VariableError::NoAddress { span, why: "the array is held in registers" }.into());
        }
        (Location::Memory { address, bits: Some(range) }, Scalar::Number { signed, .. }) => {
            return bit_field(address, *range, *signed, found.object.reads_user(), span);
        }
        (Location::Memory { address, bits: None }, Scalar::Number { size, .. }) => {
            reader(found.object.reads_user())(address.clone(), *size, span)
        }
        (Location::Register { offset }, _) => LongExpr::register(*offset, span),
        (Location::Value(value), _) => value.clone(),
        (Location::Parts(_), Scalar::Number { size, .. }) => {
            let joined = crate::probe::joined(&found.location, u64::from(*size) * 8, found.object.reads_user());
            joined.ok_or(VariableError::NoAddress { span, why: "the compiler has optimised out a part of it" })?
        }
    };
    let Scalar::Number { size, signed } = shape else { return Ok(value) };
    let in_memory = matches!(found.location, Location::Memory { .. });
    Ok(match (size, signed) {
        (8, _) => value,
        (_, true) => LongExpr::sign_extend(value, size * 8, span),
        (_, false) if in_memory => value,
        (_, false) => LongExpr::bits(value, 0, size * 8, span),
    })
}

/// The target of an assignment to an object.
pub(in crate::elaborate) fn place_of(found: &TypedLocation, span: Span) -> Result<LongPlace, Error> {
    let debug = found.object.debug().map_err(|error| debug_error(error, span))?;
    let Scalar::Number { size, signed } = scalar(debug, found.type_id, span)? else {
        return Err(StatementError::NotAssignable { span }.into());
    };
    let user = found.object.reads_user();
    match &found.location {
        Location::Register { offset } => Ok(LongPlace::Register { offset: *offset, size, signed }),
        Location::Memory { address, bits: None } => {
            Ok(LongPlace::Memory { user, address: address.clone(), size, field: None, signed })
        }
        Location::Memory { address, bits: Some(range) } => {
            let (skip, field, size) = storage(*range).ok_or(StatementError::NotAssignable { span })?;
            Ok(LongPlace::Memory { user, address: add(address.clone(), skip), size, field: Some(field), signed })
        }
        Location::Value(_) | Location::Parts(_) | Location::Pointer(_) | Location::KnownCallers { .. } => {
            Err(StatementError::NotAssignable { span }.into())
        }
    }
}

/// The address of an object.
pub(in crate::elaborate) fn address_of(found: &TypedLocation, span: Span) -> Result<LongExpr, Error> {
    match &found.location {
        Location::Memory { address, bits: None } => Ok(address.clone()),
        Location::Memory { bits: Some(_), .. } => Err(VariableError::NoAddress { span, why: "a bit-field" }.into()),
        Location::Register { .. } => Err(VariableError::NoAddress { span, why: "it is held in a register" }.into()),
        Location::Value(_) | Location::KnownCallers { .. } => {
            Err(VariableError::NoAddress { span, why: "it is a computed value" }.into())
        }
        Location::Parts(_) => Err(VariableError::NoAddress { span, why: "it is in several places" }.into()),
        Location::Pointer(_) => Err(VariableError::NoAddress { span, why: "the compiler has optimised it out" }.into()),
    }
}

pub(in crate::elaborate) fn debug_error(error: impl std::fmt::Display, span: Span) -> Error {
    Error::DebugInfo { message: error.to_string(), span }
}

/// How a C type is represented as a long.
pub(super) enum Scalar {
    /// 1, 2, 4 or 8 bytes.
    Number { size: u8, signed: bool },
    /// Represented by its address.
    Array,
}

pub(super) fn scalar(debug: &spile_debuginfo::DebugInfo, id: TypeId, span: Span) -> Result<Scalar, Error> {
    let (size, signed) = match debug.resolve(id).map_err(|error| debug_error(error, span))?.1 {
        CType::Base { size, encoding, .. } => {
            // The bits of a float are passed unchanged, for the fp_ functions.
            (size, matches!(encoding, BaseEncoding::Signed | BaseEncoding::SignedChar))
        }
        CType::Pointer(_) => (debug.word().into(), false),
        CType::Enum { size, signed, .. } => (size, signed),
        CType::Array { .. } => return Ok(Scalar::Array),
        CType::Struct { .. } => {
            // Those of anonymous members and base classes included.
            let mut members = match debug.member(id, "") {
                Err(MemberError::NoMember { candidates }) => candidates,
                _ => Vec::new(),
            };
            let mut seen = HashSet::new();
            members.retain(|name| seen.insert(name.clone()));
            return Err(TypeError::WholeStruct { type_name: debug.type_name(id), members, span }.into());
        }
        _ => return Err(TypeError::WholeStruct { type_name: debug.type_name(id), members: Vec::new(), span }.into()),
    };
    match size {
        1 | 2 | 4 | 8 => Ok(Scalar::Number { size: size as u8, signed }),
        bytes => Err(TypeError::TooWide { type_name: debug.type_name(id), bytes, span }.into()),
    }
}

/// Bytes to skip, the bits within the storage that begins there, and its size, so that one read of 1, 2, 4 or 8 bytes
/// covers the whole field; None for one that spans nine bytes.
fn storage(range: BitRange) -> Option<(i64, BitField, u8)> {
    let skip = range.first / 8;
    let first = (range.first % 8) as u8;
    let size = (u32::from(first) + u32::from(range.bits)).div_ceil(8).next_power_of_two();
    (size <= 8 && range.bits > 0).then_some((skip as i64, BitField { first, bits: range.bits }, size as u8))
}

/// What reads the memory that an object is in.
pub(super) fn reader(user: bool) -> fn(LongExpr, u8, Span) -> LongExpr {
    if user { LongExpr::read_user } else { LongExpr::read }
}

fn bit_field(address: &LongExpr, range: BitRange, signed: bool, user: bool, span: Span) -> Result<LongExpr, Error> {
    let (skip, field, size) = storage(range).ok_or(StatementError::NotAssignable { span })?;
    let word = reader(user)(add(address.clone(), skip), size, span);
    let value = LongExpr::bits(word, field.first, field.bits, span);
    Ok(if signed { LongExpr::sign_extend(value, field.bits, span) } else { value })
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
