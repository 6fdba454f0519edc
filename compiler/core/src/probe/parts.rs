// SPDX-License-Identifier: GPL-2.0-or-later

//! Objects that are not in one place: parts of locations, and values that consist of parts.

use super::{BitRange, Location, Part};
use crate::program::{BinaryOp, LongExpr};

/// The location `bit` bits further on; None if it has been optimised out, or does not begin at a byte.
pub fn beyond(location: &Location, bit: u64) -> Option<Location> {
    if bit == 0 {
        return Some(location.clone());
    }
    Some(match location {
        Location::Memory { address, bits: None } if bit.is_multiple_of(8) => {
            let (bytes, span) = (i64::try_from(bit / 8).ok()?, address.span);
            let bytes = LongExpr::constant(bytes, span);
            Location::Memory { address: binary(BinaryOp::Add, address.clone(), bytes), bits: None }
        }
        Location::Memory { .. } | Location::Pointer(_) => return None,
        Location::KnownCallers { known, location } => {
            Location::KnownCallers { known: known.clone(), location: Box::new(beyond(location, bit)?) }
        }
        Location::Register { offset } => {
            Location::Value(shifted(LongExpr::register(*offset, spile_source::Span::none()), bit)?)
        }
        Location::Value(value) => Location::Value(shifted(value.clone(), bit)?),
        Location::Parts(parts) => {
            let mut left = bit;
            let mut rest = Vec::new();
            for part in parts {
                if left >= part.bits {
                    left -= part.bits;
                    continue;
                }
                let location = part.location.as_ref().and_then(|location| beyond(location, left));
                rest.push(Part { location, bits: part.bits - left });
                left = 0;
            }
            // A value that is in one part need not be joined.
            match rest.as_slice() {
                [] => return None,
                [Part { location, .. }] => location.clone()?,
                _ => Location::Parts(rest),
            }
        }
    })
}

/// The first `bits` bits (at most 64) of the parts as a value, zero-extended; None where some have been optimised out.
/// `user`: memory is that of the current process.
pub fn joined(location: &Location, bits: u64, user: bool) -> Option<LongExpr> {
    let taken = u8::try_from(bits).ok().filter(|bits| (1..=64).contains(bits))?;
    match location {
        Location::Register { offset } => Some(low(LongExpr::register(*offset, spile_source::Span::none()), taken)),
        Location::Value(value) => Some(low(value.clone(), taken)),
        Location::KnownCallers { location, .. } => joined(location, bits, user),
        Location::Memory { address, bits: None } => {
            let size = taken.div_ceil(8).next_power_of_two();
            Some(low(reader(user)(address.clone(), size, address.span), taken))
        }
        Location::Memory { address, bits: Some(BitRange { first, bits }) } if first + u64::from(*bits) <= 64 => {
            let read = reader(user)(address.clone(), 8, address.span);
            Some(LongExpr::bits(read, u8::try_from(*first).ok()?, (*bits).min(taken), address.span))
        }
        Location::Memory { .. } | Location::Pointer(_) => None,
        Location::Parts(parts) => {
            let (mut value, mut done): (Option<LongExpr>, u64) = (None, 0);
            for part in parts {
                if done >= bits {
                    break;
                }
                let piece = joined(part.location.as_ref()?, part.bits.min(bits - done), user)?;
                value = Some(match value {
                    None => piece,
                    Some(before) => {
                        let by = LongExpr::constant(done as i64, piece.span);
                        binary(BinaryOp::BitOr, before, binary(BinaryOp::ShiftLeft, piece, by))
                    }
                });
                done += part.bits;
            }
            value.filter(|_| done >= bits)
        }
    }
}

fn shifted(value: LongExpr, by: u64) -> Option<LongExpr> {
    let first = u8::try_from(by).ok().filter(|first| *first < 64)?;
    let span = value.span;
    Some(LongExpr::bits(value, first, 64 - first, span))
}

fn reader(user: bool) -> fn(LongExpr, u8, spile_source::Span) -> LongExpr {
    if user { LongExpr::read_user } else { LongExpr::read }
}

fn low(value: LongExpr, bits: u8) -> LongExpr {
    let span = value.span;
    match bits {
        64 => value,
        bits => LongExpr::bits(value, 0, bits, span),
    }
}

fn binary(op: BinaryOp, left: LongExpr, right: LongExpr) -> LongExpr {
    let span = left.span;
    LongExpr::binary(op, left, right, span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::LongKind;

    fn register(offset: u32) -> Part {
        Part { location: Some(Location::Register { offset }), bits: 64 }
    }

    fn text(expr: &LongExpr) -> String {
        match &expr.kind {
            LongKind::Const(value) => value.to_string(),
            LongKind::Register { offset } => format!("r{offset}"),
            LongKind::Bits { value, first, bits } => format!("{}[{first}+{bits}]", text(value)),
            LongKind::Binary(op, left, right) => format!("({} {op:?} {})", text(left), text(right)),
            LongKind::Read { address, size, .. } => format!("*{size}{}", text(address)),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_member_is_found_in_the_part_that_has_it() {
        let pair = Location::Parts(vec![register(112), register(104)]);
        let second = beyond(&pair, 64).expect("is there");
        assert!(matches!(second, Location::Register { offset: 104 }), "{second:?}");
        let high = beyond(&pair, 96).expect("is there");
        assert_eq!(text(&joined(&high, 32, false).expect("a value")), "r104[32+32][0+32]");
        assert!(beyond(&pair, 128).is_none());
    }

    #[test]
    fn a_value_in_two_parts_is_joined_and_none_is_made_up() {
        let half = |offset| Part { bits: 32, ..register(offset) };
        let split = Location::Parts(vec![half(8), half(16)]);
        assert_eq!(text(&joined(&split, 64, false).expect("a value")), "(r8[0+32] BitOr (r16[0+32] ShiftLeft 32))");
        let gap = Location::Parts(vec![half(8), Part { location: None, bits: 32 }]);
        assert!(joined(&gap, 64, false).is_none() && joined(&gap, 32, false).is_some());
    }
}
