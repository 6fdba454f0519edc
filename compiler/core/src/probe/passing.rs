// SPDX-License-Identifier: GPL-2.0-or-later

//! Where the calling convention puts arguments and return values (System V ABI, AMD64 supplement, 3.2.3; i386
//! supplement, 2.2.3 and 2.2.4; Itanium C++ ABI, 3.1). Rust has a convention of its own, which is not written down: what is
//! done here for its functions is what all versions of its compiler do.

use super::location::vector;
use super::prologue::is_early;
use super::{Location, Part, registers};
use crate::program::LongExpr;
use spile_debuginfo::{
    self as debuginfo, Address, BaseEncoding, Convention, DebugInfo, Error, FunctionId, Op, Piece, Type, TypeId,
    parameter_register,
};
use spile_source::Span;

/// What an eight-byte part of a value is passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Nothing: it only fills space.
    Nothing,
    Integer,
    /// A vector register.
    Vector,
    /// The same one as the part before.
    VectorUp,
    /// A register of the x87.
    X87,
}

/// A part of a value, and how many bits of the value it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    class: Class,
    bits: u64,
}

/// How a value is passed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Manner {
    /// In registers, if there are enough left.
    Registers(Vec<Word>),
    /// On the stack; as a result where the caller says.
    Memory,
    /// As a result in registers of the x87, else on the stack.
    X87,
    /// Elsewhere in memory, and its address as a pointer.
    Address,
    /// It cannot be told, for this reason.
    Unknown(&'static str),
}

const OF_DATA: &str = "Rust does not say in which registers it returns an enumeration with data";
const OF_RUST: &str = "it depends on the version of Rust's compiler in which registers it is returned";
const OF_C_OR_RUST: &str = "nothing tells whether the function is called as those of C or as those of Rust";
const OF_OTHERS: &str = "nothing tells how functions of the language that it is written in are called";
const OF_VECTORS: &str = "it depends on the compiler's options in which registers it is returned";
const OF_COMPLEX: &str =
    "nothing tells whether it is of numbers of 80 bits, which are returned in floating-point registers";
const OF_CLASSES: &str = "nothing tells whether it is returned in registers or in memory";

/// Integer registers that arguments are passed in, and vector registers.
const REGISTERS: (usize, usize) = (6, 8);

/// DWARF's number of the stack pointer.
const STACK_POINTER: u16 = 7;

/// Structs in structs that are looked into, and members in all; no struct of 16 bytes has more.
const MOST_LEVELS: usize = 16;
const MOST_MEMBERS: usize = 256;

/// Types of the function whose values are passed.
#[derive(Clone, Copy)]
struct Types<'d> {
    debug: &'d DebugInfo,
    convention: Convention,
    /// The kernel has no C++, and uses no vector registers.
    is_program: bool,
}

/// Where a value of the type is returned by a function; or why a probe cannot read it there. `is_program`: its vector
/// registers can be read.
pub(super) fn returned(
    debug: &DebugInfo,
    id: FunctionId,
    type_id: TypeId,
    is_program: bool,
) -> Result<Result<Location, String>, Error> {
    if debug.word() == 4 {
        return returned_narrow(debug, type_id);
    }
    let convention = if is_program { debug.convention(id)? } else { Convention::C };
    let words = match (Types { debug, convention, is_program }).manner(type_id)? {
        Manner::Registers(words) => words,
        Manner::Memory | Manner::Address => {
            let address = LongExpr::register(registers::RETURN_VALUE, Span::none());
            return Ok(Ok(Location::Memory { address, bits: None }));
        }
        Manner::X87 => {
            return Ok(Err("it is returned in a floating-point register (st0), which a probe does not see".into()));
        }
        // Whatever it is, its address is returned.
        Manner::Unknown(OF_CLASSES | OF_C_OR_RUST)
            if matches!(debug.resolve(type_id)?.1, Type::Struct { size: 17.., .. }) =>
        {
            let address = LongExpr::register(registers::RETURN_VALUE, Span::none());
            return Ok(Ok(Location::Memory { address, bits: None }));
        }
        Manner::Unknown(why) => return Ok(Err(why.into())),
    };
    let mut left = [registers::RETURN_VALUE, registers::RETURN_VALUE_HIGH].into_iter();
    let mut vectors = registers::FIRST_VECTOR..;
    let mut part = |word: &Word| match word.class {
        Class::Integer => left.next().map(|offset| Location::Register { offset }),
        Class::Vector => vectors.next().filter(|_| is_program).and_then(vector),
        Class::Nothing | Class::VectorUp | Class::X87 => None,
    };
    let mut parts: Vec<Option<Location>> = words.iter().map(&mut part).collect();
    if parts.iter().all(Option::is_none) && words.iter().any(|word| word.class == Class::Vector) {
        return Ok(Err("it is returned in a vector register (xmm0), which a probe does not see".into()));
    }
    if parts.len() < 2 {
        let first = parts.pop().flatten();
        return Ok(Ok(first.unwrap_or(Location::Register { offset: registers::RETURN_VALUE })));
    }
    let sized = words.iter().zip(parts).map(|(word, location)| Part { location, bits: word.bits });
    Ok(Ok(Location::Parts(sized.collect())))
}

/// Where the caller of a function in Rust wants its result, by the registers at its entry. Optimised code does not return that address,
/// as C's and C++'s do.
pub(super) fn place_of_result(debug: &DebugInfo, id: FunctionId, type_id: TypeId) -> Result<Option<LongExpr>, Error> {
    const FIRST_ARGUMENT: u16 = 5;
    let convention = debug.convention(id)?;
    let types = Types { debug, convention, is_program: true };
    if debug.word() == 4
        || convention != Convention::Rust
        || !matches!(types.manner(type_id)?, Manner::Memory | Manner::Address)
    {
        return Ok(None);
    }
    Ok(registers::pt_regs_offset(FIRST_ARGUMENT).map(|offset| LongExpr::register(offset, Span::none())))
}

/// [`returned`] in a 32-bit program: in eax, in edx and eax, or where eax points to.
fn returned_narrow(debug: &DebugInfo, type_id: TypeId) -> Result<Result<Location, String>, Error> {
    let low = Location::Register { offset: registers::RETURN_VALUE };
    let (resolved, found) = debug.resolve(type_id)?;
    let location = match found {
        Type::Base { encoding: BaseEncoding::Float, .. } => {
            return Ok(Err("it is returned in a floating-point register (st0), which a probe does not see".into()));
        }
        Type::Array { .. } if debug.type_passing(resolved)?.vector => {
            return Ok(Err("it is returned in a vector register (xmm0), which a probe does not see".into()));
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

/// Where the parameter is at the first instruction of the program's function, whose body begins at `entry`; None where that is
/// not known.
pub(super) fn passed(debug: &DebugInfo, id: FunctionId, entry: Address, name: &str) -> Option<debuginfo::Location> {
    let parameters = debug.passed(id, entry).ok()??;
    let places = match debug.word() {
        4 => places_narrow(debug, id, &parameters)?,
        _ => places(debug, id, &parameters)?,
    };
    // What debug information has at its place there already is at the same, unless the compiler has removed others.
    for (parameter, place) in parameters.iter().zip(&places) {
        let Some(name) = &parameter.name else { continue };
        let found = debug.variable(id, entry, name).ok()?;
        if is_early(debug, id, &found) {
            continue;
        }
        let same = match (found.map(|found| found.location), place) {
            (Ok(debuginfo::Location::Register(is)), Some(debuginfo::Location::Register(wanted))) => is == *wanted,
            // A small struct, as the number that it is passed in.
            (Ok(debuginfo::Location::Register(is)), Some(debuginfo::Location::Pieces(pieces))) => {
                pieces.first().is_some_and(|piece| piece.location == Some(debuginfo::Location::Register(is)))
            }
            (Ok(debuginfo::Location::Register(_)), _) => false,
            (Ok(debuginfo::Location::Memory(is)), Some(debuginfo::Location::Memory(wanted))) => {
                on_stack(&is).is_none() || on_stack(&is) == on_stack(wanted)
            }
            (Ok(debuginfo::Location::Memory(is)), Some(_)) => on_stack(&is).is_none(),
            _ => true,
        };
        if !same {
            return None;
        }
    }
    let mut named = parameters.iter().zip(places).filter(|(parameter, _)| parameter.name.as_deref() == Some(name));
    named.next_back().and_then(|(_, place)| place)
}

/// How far above the stack pointer it is; None: it is elsewhere.
fn on_stack(ops: &[Op]) -> Option<i64> {
    let (Op::Register(STACK_POINTER), ops) = ops.split_first()? else { return None };
    let (mut offset, mut last) = (0i64, 0i64);
    for op in ops {
        match op {
            Op::Const(value) => last = *value,
            Op::Add => offset = offset.wrapping_add(std::mem::take(&mut last)),
            Op::Sub => offset = offset.wrapping_sub(std::mem::take(&mut last)),
            _ => return None,
        }
    }
    Some(offset)
}

type Places = Vec<Option<debuginfo::Location>>;

/// Where the parameters of a 32-bit program's function are: on the stack.
fn places_narrow(debug: &DebugInfo, id: FunctionId, parameters: &[debuginfo::Passed]) -> Option<Places> {
    let convention = debug.convention(id).ok()?;
    if convention == Convention::Unknown {
        return None;
    }
    let is_rust = convention != Convention::C;
    let resolve = |id| debug.resolve(id).ok();
    let is_struct = |id| resolve(id).is_some_and(|(_, found)| matches!(found, Type::Struct { .. }));
    let returns = debug.function(id).ok()?.return_type;
    // A complex number; only they and `void` have no size.
    if returns.is_some_and(|returns| matches!(resolve(returns), Some((_, Type::Incomplete { name })) if name != "void"))
    {
        return None;
    }
    let mut stack = if returns.is_some_and(is_struct) { 8i64 } else { 4 };
    if is_rust && returns.is_some_and(is_struct) {
        return None;
    }
    let mut places = Vec::new();
    for parameter in parameters {
        let (resolved, found) = resolve(parameter.type_id)?;
        let facts = debug.type_passing(resolved).ok()?;
        let mut size = debug.size_of(parameter.type_id).ok()??;
        let mut ops = vec![Op::Register(STACK_POINTER), Op::Const(stack), Op::Add];
        match found {
            Type::Array { .. } => return None,
            Type::Struct { ref members, .. } if is_rust || members.is_empty() || facts.alignment > 4 => return None,
            Type::Struct { .. } if facts.by_address? => {
                (size, ops) = (4, [ops, vec![Op::Deref(4)]].concat());
            }
            _ => {}
        }
        places.push(Some(debuginfo::Location::Memory(ops)));
        stack = stack.checked_add(i64::try_from(size.max(1).checked_next_multiple_of(4)?).ok()?)?;
    }
    Some(places)
}

/// Where the parameters are: in registers, and from where these do not suffice on the stack.
fn places(debug: &DebugInfo, id: FunctionId, parameters: &[debuginfo::Passed]) -> Option<Places> {
    let types = Types { debug, convention: debug.convention(id).ok()?, is_program: true };
    let hidden = match debug.function(id).ok()?.return_type {
        Some(returns) => match types.manner(returns).ok()? {
            Manner::Memory | Manner::Address => true,
            Manner::Registers(_) | Manner::X87 => false,
            // What fits into a register is returned in one, but for classes of C++.
            Manner::Unknown(why) if why != OF_CLASSES && debug.size_of(returns).ok()?.is_some_and(|size| size <= 8) => {
                false
            }
            Manner::Unknown(_) => return None,
        },
        None => false,
    };
    let (mut integers, mut vectors, mut stack) = (usize::from(hidden), 0, 8u64);
    let mut places = Vec::new();
    let mut rest_is_unknown = false;
    for parameter in parameters {
        if rest_is_unknown {
            places.push(None);
            continue;
        }
        let mut size = debug.size_of(parameter.type_id).ok()??;
        let manner = types.manner(parameter.type_id).ok()?;
        let by_address = manner == Manner::Address;
        let words = match manner {
            Manner::Registers(words) => Some(words),
            Manner::Address => {
                size = 8;
                Some(vec![Word { class: Class::Integer, bits: 64 }])
            }
            Manner::Memory | Manner::X87 => None,
            Manner::Unknown(_) => {
                rest_is_unknown = true;
                places.push(None);
                continue;
            }
        };
        let count = |wanted| words.iter().flatten().filter(|word| word.class == wanted).count();
        let (more, wide) = (count(Class::Integer), count(Class::Vector));
        let fits = words.is_some() && integers + more <= REGISTERS.0 && vectors + wide <= REGISTERS.1;
        if fits && more + wide == 0 {
            places.push(None);
            continue;
        }
        let place = if fits {
            let place = in_registers(&words?, integers, vectors);
            (integers, vectors) = (integers + more, vectors + wide);
            place
        } else if more + wide > 1 && types.may_be_split(parameter.type_id).ok()? {
            rest_is_unknown = true;
            None
        } else {
            let aligned = if by_address {
                8
            } else {
                types.alignment(parameter.type_id, MOST_LEVELS, &mut { MOST_MEMBERS }).ok()?.max(8)
            };
            if aligned > 16 {
                return None;
            }
            // The first is 8 bytes above the stack pointer, at a multiple of 16.
            stack = (stack - 8).next_multiple_of(aligned) + 8;
            let at = i64::try_from(stack).ok()?;
            stack = stack.checked_add(size.max(1).checked_next_multiple_of(8)?)?;
            Some(debuginfo::Location::Memory(vec![Op::Register(STACK_POINTER), Op::Const(at), Op::Add]))
        };
        places.push(match place {
            Some(place) if by_address => pointed_to(place),
            place => place,
        });
    }
    Some(places)
}

/// What a pointer there points to.
fn pointed_to(pointer: debuginfo::Location) -> Option<debuginfo::Location> {
    match pointer {
        debuginfo::Location::Register(register) => Some(debuginfo::Location::Memory(vec![Op::Register(register)])),
        debuginfo::Location::Memory(mut ops) => {
            ops.push(Op::Deref(8));
            Some(debuginfo::Location::Memory(ops))
        }
        _ => None,
    }
}

fn in_registers(words: &[Word], integers: usize, vectors: usize) -> Option<debuginfo::Location> {
    let (mut integer, mut vector) = (integers, vectors);
    let mut next = |word: &Word| match word.class {
        Class::Integer => {
            integer += 1;
            parameter_register(integer - 1)
        }
        Class::Vector => {
            vector += 1;
            u16::try_from(vector - 1).ok()?.checked_add(registers::FIRST_VECTOR)
        }
        Class::Nothing | Class::VectorUp | Class::X87 => None,
    };
    let in_each: Vec<Option<debuginfo::Location>> =
        words.iter().map(|word| next(word).map(debuginfo::Location::Register)).collect();
    if let [only] = in_each.as_slice() {
        return only.clone();
    }
    let piece =
        |(word, location): (&Word, Option<debuginfo::Location>)| Piece { location, first_bit: 0, bits: word.bits };
    Some(debuginfo::Location::Pieces(words.iter().zip(in_each).map(piece).collect()))
}

/// A number or pointer in a value of Rust's: where it begins, its bytes, and what it is passed in.
struct Scalar {
    offset: u64,
    size: u64,
    words: Vec<Class>,
}

impl Types<'_> {
    fn manner(self, type_id: TypeId) -> Result<Manner, Error> {
        let as_in_c = || self.manner_in_c(type_id);
        Ok(match self.convention {
            Convention::C => as_in_c()?,
            Convention::Rust => self.manner_in_rust(type_id)?,
            Convention::Unknown => Manner::Unknown(OF_OTHERS),
            Convention::Either => match (as_in_c()?, self.manner_in_rust(type_id)?) {
                (in_c, in_rust) if in_c == in_rust => in_c,
                (_, Manner::Unknown(why)) => Manner::Unknown(why),
                _ => Manner::Unknown(OF_C_OR_RUST),
            },
        })
    }

    fn manner_in_c(self, type_id: TypeId) -> Result<Manner, Error> {
        if self.is_enumeration(type_id, MOST_LEVELS, &mut { MOST_MEMBERS })? {
            return Ok(Manner::Unknown(OF_DATA));
        }
        let (resolved, found) = self.debug.resolve(type_id)?;
        let size = match &found {
            Type::Struct { size, .. } => *size,
            _ => self.debug.size_of(type_id)?.unwrap_or(8),
        };
        if matches!(found, Type::Struct { .. }) && self.is_program {
            match self.debug.type_passing(resolved)?.by_address {
                Some(true) => return Ok(Manner::Address),
                Some(false) => {}
                None => return Ok(Manner::Unknown(OF_CLASSES)),
            }
        }
        let is_struct = matches!(found, Type::Struct { .. });
        if size > 16 && is_struct {
            // One that is nothing but a wide vector is passed like that.
            let is_wide = self.is_program && self.only_leaf(type_id, MOST_LEVELS)?.is_some();
            return Ok(if is_wide { Manner::Unknown(OF_VECTORS) } else { Manner::Memory });
        }
        // A complex number of more than 16 bytes. clang names none of them.
        if let Type::Incomplete { name } = &found
            && is_complex(name)
        {
            return Ok(match name.as_str() {
                "complex" => Manner::Unknown(OF_COMPLEX),
                name if is_x87(name, 16) => Manner::X87,
                _ => Manner::Memory,
            });
        }
        if size > 16 {
            return Ok(Manner::Unknown(OF_VECTORS));
        }
        let mut parts = vec![Class::Nothing; usize::try_from(size.div_ceil(8)).unwrap_or(2)];
        let in_registers = self.classify(type_id, 0, MOST_LEVELS, &mut { MOST_MEMBERS }, &mut parts)?;
        Ok(match in_registers {
            false => Manner::Memory,
            true if parts.contains(&Class::X87) => match parts.iter().all(|part| *part == Class::X87) {
                true => Manner::X87,
                false => Manner::Memory,
            },
            true => {
                let word = |(number, class): (u64, Class)| Word { class, bits: (size - number * 8).min(8) * 8 };
                Manner::Registers((0u64..).zip(parts).map(word).collect())
            }
        })
    }

    /// The type of what is in a struct, if that is one member, in how many structs ever, and is a vector or a complex number.
    fn only_leaf(self, type_id: TypeId, levels: usize) -> Result<Option<TypeId>, Error> {
        let Some(levels) = levels.checked_sub(1) else { return Ok(None) };
        let (resolved, found) = self.debug.resolve(type_id)?;
        Ok(match found {
            Type::Struct { members, .. } => match members.as_slice() {
                [only] => self.only_leaf(only.type_id, levels)?,
                _ => None,
            },
            Type::Array { .. } => self.debug.type_passing(resolved)?.vector.then_some(resolved),
            Type::Base { encoding: BaseEncoding::Float, .. } => Some(resolved),
            _ => None,
        })
    }

    /// Adds the classes of a value at an offset to those of the parts that it is in; false where it is passed in memory.
    fn classify(
        self,
        type_id: TypeId,
        offset: u64,
        levels: usize,
        left: &mut usize,
        parts: &mut [Class],
    ) -> Result<bool, Error> {
        let Some((levels, rest)) = levels.checked_sub(1).zip(left.checked_sub(1)) else { return Ok(false) };
        *left = rest;
        let (resolved, found) = self.debug.resolve(type_id)?;
        let (classes, unit): (&[Class], u64) = match found {
            Type::Struct { members, .. } => {
                for member in members {
                    let at = offset.saturating_add(member.offset);
                    if let Some(bits) = member.bits {
                        add(parts, at, Class::Integer);
                        let last = bits.first.saturating_add(u64::from(bits.bits)).saturating_sub(1) / 8;
                        add(parts, at.saturating_add(last), Class::Integer);
                    } else if !self.classify(member.type_id, at, levels, left, parts)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            Type::Array { .. } if self.is_program && self.debug.type_passing(resolved)?.vector => {
                match self.debug.size_of(type_id)? {
                    Some(8) => (&[Class::Vector], 8),
                    Some(16) => (&[Class::Vector, Class::VectorUp], 16),
                    _ => return Ok(false),
                }
            }
            Type::Array { element, counts } => {
                let size = self.debug.size_of(element)?.unwrap_or(0);
                let count = counts.iter().try_fold(1u64, |all, count| all.checked_mul((*count)?)).unwrap_or(0);
                for number in 0..count.min(16) {
                    let at = offset.saturating_add(number.saturating_mul(size));
                    if !self.classify(element, at, levels, left, parts)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            Type::Base { name, encoding: BaseEncoding::Float, size } => match size {
                16 if is_x87(&name, size) => (&[Class::X87, Class::X87], 16),
                16 => (&[Class::Vector, Class::VectorUp], 16),
                1..=8 => (&[Class::Vector], size),
                _ => return Ok(false),
            },
            Type::Base { size: 0, .. } => return Ok(true),
            Type::Base { size: size @ 9.., .. } => (&[Class::Integer, Class::Integer], if size == 16 { 8 } else { 1 }),
            _ => (&[Class::Integer], self.debug.size_of(type_id)?.unwrap_or(8)),
        };
        if matches!(unit, 1 | 2 | 4 | 8 | 16) && !offset.is_multiple_of(unit) {
            return Ok(false);
        }
        for (number, class) in (0u64..).zip(classes) {
            add(parts, offset.saturating_add(number * 8), *class);
        }
        Ok(true)
    }

    /// Whether the first half of the value may be in the last register, and the other one on the stack: that of two numbers of Rust,
    /// and with some versions of clang that of a number of 128 bits.
    fn may_be_split(self, type_id: TypeId) -> Result<bool, Error> {
        Ok(self.convention != Convention::C || matches!(self.debug.resolve(type_id)?.1, Type::Base { .. }))
    }

    /// The boundary that the value is at, where it is on the stack.
    fn alignment(self, type_id: TypeId, levels: usize, left: &mut usize) -> Result<u64, Error> {
        let Some((levels, rest)) = levels.checked_sub(1).zip(left.checked_sub(1)) else { return Ok(u64::MAX) };
        *left = rest;
        let (resolved, found) = self.debug.resolve(type_id)?;
        Ok(match found {
            Type::Struct { members, .. } => {
                let mut alignment = self.debug.type_passing(resolved)?.alignment.max(1);
                for member in members.iter().filter(|member| member.bits.is_none()) {
                    let own = self.alignment(member.type_id, levels, left)?;
                    // Not in a packed one.
                    alignment = alignment.max(if member.offset.is_multiple_of(own.max(1)) { own } else { 1 });
                }
                alignment
            }
            Type::Array { .. } if self.debug.type_passing(resolved)?.vector => {
                self.debug.size_of(type_id)?.unwrap_or(8)
            }
            Type::Array { element, .. } => self.alignment(element, levels, left)?,
            _ => self.debug.size_of(type_id)?.unwrap_or(8).min(16),
        })
    }

    fn manner_in_rust(self, type_id: TypeId) -> Result<Manner, Error> {
        let size = self.debug.size_of(type_id)?.unwrap_or(8);
        let is_aggregate = matches!(self.debug.resolve(type_id)?.1, Type::Struct { .. } | Type::Array { .. });
        if is_aggregate && size > 16 {
            return Ok(Manner::Address);
        }
        if self.is_enumeration(type_id, MOST_LEVELS, &mut { MOST_MEMBERS })? {
            return Ok(Manner::Unknown(OF_DATA));
        }
        let mut scalars = Vec::new();
        if !self.scalars(type_id, 0, MOST_LEVELS, &mut { MOST_MEMBERS }, &mut scalars)? {
            return Ok(Manner::Unknown(OF_RUST));
        }
        if scalars.iter().any(|scalar| scalar.offset.saturating_add(scalar.size) > 16) {
            return Ok(Manner::Unknown(OF_RUST));
        }
        scalars.sort_by_key(|scalar| scalar.offset);
        Ok(match scalars.as_slice() {
            [] => Manner::Registers(Vec::new()),
            [only] if only.size == size => {
                let word =
                    |(number, class): (u64, &Class)| Word { class: *class, bits: (size - number * 8).min(8) * 8 };
                Manner::Registers((0u64..).zip(&only.words).map(word).collect())
            }
            // Each in a register of its own, as two parameters, if there is no more space between them than there must be.
            [first, second]
                if first.offset == 0
                    && second.offset == first.size.next_multiple_of(second.size.max(1))
                    && size == (second.offset + second.size).next_multiple_of(first.size.max(second.size).max(1)) =>
            {
                match (first.words.as_slice(), second.words.as_slice()) {
                    ([one], [other]) => Manner::Registers(vec![
                        Word { class: *one, bits: second.offset * 8 },
                        Word { class: *other, bits: (size - second.offset) * 8 },
                    ]),
                    _ => Manner::Unknown(OF_RUST),
                }
            }
            _ => Manner::Unknown(OF_RUST),
        })
    }

    /// Adds the numbers and pointers in a value at an offset; false: it has something else in it, or too much.
    fn scalars(
        self,
        type_id: TypeId,
        offset: u64,
        levels: usize,
        left: &mut usize,
        found: &mut Vec<Scalar>,
    ) -> Result<bool, Error> {
        let Some((levels, rest)) = levels.checked_sub(1).zip(left.checked_sub(1)) else { return Ok(false) };
        *left = rest;
        let size = self.debug.size_of(type_id)?.unwrap_or(8);
        let words = match self.debug.resolve(type_id)?.1 {
            Type::Struct { union: false, members, .. } => {
                for member in members {
                    let at = offset.saturating_add(member.offset);
                    if member.when.is_some() || !self.scalars(member.type_id, at, levels, left, found)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            _ if size == 0 => return Ok(true),
            Type::Struct { .. } | Type::Array { .. } => return Ok(false),
            Type::Base { encoding: BaseEncoding::Float, size: 9.., .. } => return Ok(false),
            Type::Base { encoding: BaseEncoding::Float, .. } => vec![Class::Vector],
            Type::Base { size: 16, .. } => vec![Class::Integer; 2],
            _ => vec![Class::Integer],
        };
        found.push(Scalar { offset, size, words });
        Ok(true)
    }

    /// Whether the value is passed in registers, and is, or contains, an enumeration of Rust's with data. Which registers these
    /// are differs between versions of its compiler.
    fn is_enumeration(self, type_id: TypeId, levels: usize, left: &mut usize) -> Result<bool, Error> {
        let Some((levels, rest)) = levels.checked_sub(1).zip(left.checked_sub(1)) else { return Ok(false) };
        *left = rest;
        match self.debug.resolve(type_id)?.1 {
            Type::Struct { size, members, .. } if size <= 16 => {
                for member in members {
                    if member.when.is_some() || self.is_enumeration(member.type_id, levels, left)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Type::Array { element, .. } => self.is_enumeration(element, levels, left),
            _ => Ok(false),
        }
    }
}

/// By the name of a floating-point type: gcc says `complex double`, clang `_Complex double`.
fn is_complex(name: &str) -> bool {
    name == "complex" || name.starts_with("complex ") || name.starts_with("_Complex ")
}

/// Whether a number of that size, or a half of a complex one, is one of the x87, and not of 128 bits.
fn is_x87(name: &str, size: u64) -> bool {
    size == 16 && (name.ends_with("long double") || name.ends_with("_Float64x"))
}

/// Adds a class to the part that has the offset (AMD64 supplement, 3.2.3, the rules for two fields).
fn add(parts: &mut [Class], offset: u64, class: Class) {
    let part = usize::try_from(offset / 8).ok().and_then(|number| parts.get_mut(number));
    if let Some(part) = part {
        *part = match (*part, class) {
            (Class::Nothing, class) | (class, Class::Nothing) => class,
            (Class::Integer, _) | (_, Class::Integer) => Class::Integer,
            (Class::X87, _) | (_, Class::X87) => Class::X87,
            (Class::Vector, _) | (_, Class::Vector) => Class::Vector,
            (Class::VectorUp, Class::VectorUp) => Class::VectorUp,
        };
    }
}
