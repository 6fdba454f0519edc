// SPDX-License-Identifier: GPL-2.0-or-later

//! Where the calling convention puts arguments and return values (System V ABI, AMD64 supplement, 3.2.3; i386
//! supplement, 2.2.3 and 2.2.4).

use super::location::vector;
use super::{Location, Part, registers};
use crate::program::LongExpr;
use spile_debuginfo::{
    self as debuginfo, BaseEncoding, DebugInfo, Error, FunctionId, Op, Piece, Type, TypeId, parameter_register,
};
use spile_source::Span;

/// What an eight-byte part of a value is passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Integer,
    /// A vector register.
    Float,
}

/// Integer registers that arguments are passed in, and vector registers.
const REGISTERS: (usize, usize) = (6, 8);

/// DWARF's number of the stack pointer.
const STACK_POINTER: u16 = 7;

/// Structs in structs that are looked into, and members in all; no struct of 16 bytes has more.
const MOST_LEVELS: usize = 16;
const MOST_MEMBERS: usize = 256;

/// Where a value of the type is returned; or why a probe cannot read it there. `is_program`: its vector registers can be read.
pub(super) fn returned(
    debug: &DebugInfo,
    type_id: TypeId,
    is_program: bool,
) -> Result<Result<Location, String>, Error> {
    if debug.word() == 4 {
        return returned_narrow(debug, type_id);
    }
    if is_enumeration(debug, type_id, MOST_LEVELS, &mut { MOST_MEMBERS })? {
        return Ok(Err("Rust does not say in which registers it returns an enumeration with data".into()));
    }
    let Some(classes) = classes(debug, type_id)? else {
        let address = LongExpr::register(registers::RETURN_VALUE, Span::none());
        return Ok(Ok(Location::Memory { address, bits: None }));
    };
    let mut left = [registers::RETURN_VALUE, registers::RETURN_VALUE_HIGH].into_iter();
    let mut vectors = registers::FIRST_VECTOR..;
    let mut part = |class: &Class| match class {
        Class::Integer => left.next().map(|offset| Location::Register { offset }),
        Class::Float => vectors.next().filter(|_| is_program).and_then(vector),
    };
    let mut parts: Vec<Option<Location>> = classes.iter().map(&mut part).collect();
    if parts.iter().all(Option::is_none) && !parts.is_empty() {
        return Ok(Err("it is returned in a vector register (xmm0), which a probe does not see".into()));
    }
    if parts.len() < 2 {
        let first = parts.pop().flatten();
        return Ok(Ok(first.unwrap_or(Location::Register { offset: registers::RETURN_VALUE })));
    }
    let size = debug.size_of(type_id)?.unwrap_or(16);
    let sized = (0u64..).zip(parts).map(|(number, location)| Part { location, bits: (size - number * 8).min(8) * 8 });
    Ok(Ok(Location::Parts(sized.collect())))
}

/// The same in a 32-bit program: in eax, in edx and eax, or where eax points to.
fn returned_narrow(debug: &DebugInfo, type_id: TypeId) -> Result<Result<Location, String>, Error> {
    let low = Location::Register { offset: registers::RETURN_VALUE };
    let location = match debug.resolve(type_id)?.1 {
        Type::Base { encoding: BaseEncoding::Float, .. } => {
            return Ok(Err("it is returned in a floating-point register (st0), which a probe does not see".into()));
        }
        Type::Struct { .. } => {
            Location::Memory { address: LongExpr::register(registers::RETURN_VALUE, Span::none()), bits: None }
        }
        _ if debug.size_of(type_id)?.unwrap_or(4) > 4 => {
            let high = Location::Register { offset: registers::RETURN_VALUE_HIGH };
            Location::Parts([low, high].map(|location| Part { location: Some(location), bits: 32 }).into())
        }
        _ => low,
    };
    Ok(Ok(location))
}

/// Where a parameter of a 32-bit program is at a function's first instruction: on the stack.
fn passed_narrow(debug: &DebugInfo, id: FunctionId, name: &str) -> Option<debuginfo::Location> {
    let returns = debug.function(id).ok()?.return_type;
    let is_struct = |id| debug.resolve(id).is_ok_and(|(_, found)| matches!(found, Type::Struct { .. }));
    let mut stack = if returns.is_some_and(is_struct) { 8i64 } else { 4 };
    for parameter in debug.parameters(id).ok()? {
        if parameter.name == name {
            return Some(debuginfo::Location::Memory(vec![Op::Register(STACK_POINTER), Op::Const(stack), Op::Add]));
        }
        let size = debug.size_of(parameter.type_id).ok()??;
        stack = stack.checked_add(i64::try_from(size.max(1).next_multiple_of(4)).ok()?)?;
    }
    None
}

/// Where a parameter is at a function's first instruction; None where that is not known.
pub(super) fn passed(debug: &DebugInfo, id: FunctionId, name: &str) -> Option<debuginfo::Location> {
    if debug.word() == 4 {
        return passed_narrow(debug, id, name);
    }
    let returns = debug.function(id).ok()?.return_type;
    let hidden = match returns {
        Some(returns) => classes(debug, returns).ok()?.is_none(),
        None => false,
    };
    let (mut integers, mut floats, mut stack) = (usize::from(hidden), 0, 8i64);
    for parameter in debug.parameters(id).ok()? {
        let size = debug.size_of(parameter.type_id).ok()??;
        if is_enumeration(debug, parameter.type_id, MOST_LEVELS, &mut { MOST_MEMBERS }).ok()? {
            return None;
        }
        let classes = classes(debug, parameter.type_id).ok()?;
        let count = |wanted| classes.iter().flatten().filter(|class| **class == wanted).count();
        let (more, wide) = (count(Class::Integer), count(Class::Float));
        let fits = classes.is_some() && integers + more <= REGISTERS.0 && floats + wide <= REGISTERS.1;
        let is_wanted = parameter.name == name;
        if fits && is_wanted {
            return in_registers(&classes?, size, integers, floats);
        }
        if fits {
            (integers, floats) = (integers + more, floats + wide);
            continue;
        }
        if is_wanted {
            return Some(debuginfo::Location::Memory(vec![Op::Register(STACK_POINTER), Op::Const(stack), Op::Add]));
        }
        stack = stack.checked_add(i64::try_from(size.max(1).next_multiple_of(8)).ok()?)?;
    }
    None
}

fn in_registers(classes: &[Class], size: u64, integers: usize, floats: usize) -> Option<debuginfo::Location> {
    let (mut integer, mut float) = (integers, floats);
    let mut next = |class: &Class| match class {
        Class::Integer => {
            integer += 1;
            parameter_register(integer - 1)
        }
        Class::Float => {
            float += 1;
            u16::try_from(float - 1).ok()?.checked_add(registers::FIRST_VECTOR)
        }
    };
    let mut registers = classes.iter().map(&mut next).collect::<Option<Vec<u16>>>()?;
    if registers.len() < 2 {
        return registers.pop().map(debuginfo::Location::Register);
    }
    let piece = |(number, register): (u64, u16)| Piece {
        location: Some(debuginfo::Location::Register(register)),
        first_bit: 0,
        bits: (size - number * 8).min(8) * 8,
    };
    Some(debuginfo::Location::Pieces((0u64..).zip(registers).map(piece).collect()))
}

/// Whether the value is passed in registers, and is, or contains, an enumeration of Rust's with data. Which registers these are
/// differs between versions of its compiler.
fn is_enumeration(debug: &DebugInfo, type_id: TypeId, levels: usize, left: &mut usize) -> Result<bool, Error> {
    let Some((levels, rest)) = levels.checked_sub(1).zip(left.checked_sub(1)) else { return Ok(false) };
    *left = rest;
    match debug.resolve(type_id)?.1 {
        Type::Struct { size, members, .. } if size <= 16 => {
            for member in members {
                if member.when.is_some() || is_enumeration(debug, member.type_id, levels, left)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Type::Array { element, .. } => is_enumeration(debug, element, levels, left),
        _ => Ok(false),
    }
}

/// What the eight-byte parts of a value are passed in; None: it is passed in memory.
fn classes(debug: &DebugInfo, type_id: TypeId) -> Result<Option<Vec<Class>>, Error> {
    let (_, resolved) = debug.resolve(type_id)?;
    match resolved {
        Type::Base { encoding: BaseEncoding::Float, size, .. } if size > 8 => Ok(None),
        Type::Base { encoding: BaseEncoding::Float, .. } => Ok(Some(vec![Class::Float])),
        Type::Base { size: 9.., .. } => Ok(Some(vec![Class::Integer; 2])),
        Type::Struct { size, .. } if size > 16 => Ok(None),
        Type::Struct { size, .. } => {
            let mut parts = vec![None; usize::try_from(size.div_ceil(8)).unwrap_or(2)];
            let mut left = MOST_MEMBERS;
            let aligned = classify(debug, type_id, 0, MOST_LEVELS, &mut left, &mut parts)?;
            let whole = parts.into_iter().map(|part| part.unwrap_or(Class::Float)).collect();
            Ok(aligned.then_some(whole))
        }
        _ => Ok(Some(vec![Class::Integer])),
    }
}

/// Adds the classes of a value at an offset to those of the parts that it is in; false where it is passed in memory.
fn classify(
    debug: &DebugInfo,
    type_id: TypeId,
    offset: u64,
    levels: usize,
    left: &mut usize,
    parts: &mut [Option<Class>],
) -> Result<bool, Error> {
    let Some((levels, rest)) = levels.checked_sub(1).zip(left.checked_sub(1)) else { return Ok(false) };
    *left = rest;
    let (_, resolved) = debug.resolve(type_id)?;
    let (class, size) = match resolved {
        Type::Struct { members, .. } => {
            for member in members {
                let at = offset.saturating_add(member.offset);
                if member.bits.is_some() {
                    add(parts, at, Class::Integer);
                } else if !classify(debug, member.type_id, at, levels, left, parts)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        Type::Array { element, counts } => {
            let size = debug.size_of(element)?.unwrap_or(0);
            let count = counts.iter().try_fold(1u64, |all, count| all.checked_mul((*count)?)).unwrap_or(0);
            for number in 0..count.min(16) {
                let at = offset.saturating_add(number * size);
                if !classify(debug, element, at, levels, left, parts)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        Type::Base { encoding: BaseEncoding::Float, size, .. } if size > 8 => return Ok(false),
        Type::Base { encoding: BaseEncoding::Float, size, .. } => (Class::Float, size),
        _ => (Class::Integer, debug.size_of(type_id)?.unwrap_or(8)),
    };
    if matches!(size, 1 | 2 | 4 | 8) && !offset.is_multiple_of(size) {
        return Ok(false);
    }
    add(parts, offset, class);
    Ok(true)
}

/// A part that has a number is one.
fn add(parts: &mut [Option<Class>], offset: u64, class: Class) {
    let part = usize::try_from(offset / 8).ok().and_then(|number| parts.get_mut(number));
    if let Some(part) = part {
        *part = match (*part, class) {
            (None | Some(Class::Float), class) => Some(class),
            (Some(Class::Integer), _) => Some(Class::Integer),
        };
    }
}
