// SPDX-License-Identifier: GPL-2.0-or-later

//! The encoding of locations in an exported index: [`Location`]s and operations as bytes.
//!
//! A location is its tag and what the variant has, in order; a list is its count and its entries. All numbers are LEB128,
//! signed ones with the sign as the lowest bit. An address is that in the object's one address space ([`Elf::flat`]).

use super::format::{read_number, write_number};
use crate::facts::{Location, Op, Piece};
use crate::object::{Address, Elf};

/// Nesting of locations; deeper is damage.
const MAX_DEPTH: usize = 8;
/// Entries of one list; more is damage.
const MAX_COUNT: u64 = 4096;

const REGISTER: u64 = 0;
const MEMORY: u64 = 1;
const VALUE: u64 = 2;
const BYTES: u64 = 3;
const PIECES: u64 = 4;
const POINTER: u64 = 5;
const BY_CALLER: u64 = 6;

/// Operations with an operand; those without follow, in the order of [`PLAIN`].
const CONST: u64 = 0;
const OF_REGISTER: u64 = 1;
const ADDRESS: u64 = 2;
const DEREF: u64 = 3;
const PICK: u64 = 4;
const FIRST_PLAIN: u64 = 5;

const PLAIN: [Op; 24] = [
    Op::Add,
    Op::Sub,
    Op::Mul,
    Op::Div,
    Op::Mod,
    Op::Neg,
    Op::Not,
    Op::And,
    Op::Or,
    Op::Xor,
    Op::Shl,
    Op::Shr,
    Op::Shra,
    Op::Dup,
    Op::Drop,
    Op::Over,
    Op::Swap,
    Op::Rot,
    Op::Eq,
    Op::Ne,
    Op::Lt,
    Op::Gt,
    Op::Le,
    Op::Ge,
];

/// The location in bytes; None: it names an address that the object does not have.
pub(crate) fn location_bytes(location: &Location, elf: &Elf) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    put_location(location, elf, &mut bytes)?;
    Some(bytes)
}

/// The encoded operations, in the same way.
pub(crate) fn op_bytes(ops: &[Op], elf: &Elf) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    put_ops(ops, elf, &mut bytes)?;
    Some(bytes)
}

/// Addresses in bytes: the first, and the distance of each from the one before. They are sorted.
pub(crate) fn address_bytes(addresses: &[Address], elf: &Elf) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before = 0;
    for at in addresses.iter().filter_map(|address| elf.flat(*address)) {
        write_number(at.wrapping_sub(before), &mut bytes);
        before = at;
    }
    bytes
}

/// Decodes what [`location_bytes`] has written; None: damage.
pub(crate) fn read_location(bytes: &[u8], elf: &Elf) -> Option<Location> {
    location(&mut bytes.iter(), elf, 0)
}

/// Decodes what [`op_bytes`] has written; None: damage.
pub(crate) fn read_ops(bytes: &[u8], elf: &Elf) -> Option<Vec<Op>> {
    ops(&mut bytes.iter(), elf)
}

/// Decodes what [`address_bytes`] has written.
pub(crate) fn read_addresses(bytes: &[u8], elf: &Elf) -> Vec<Address> {
    let mut bytes = bytes.iter();
    let mut at = 0u64;
    let further = std::iter::from_fn(|| read_number(&mut bytes));
    let flat = further.map(|further| {
        at = at.wrapping_add(further);
        at
    });
    flat.filter_map(|at| elf.address(at)).collect()
}

/// A signed number as an unsigned one, small where it is near 0.
pub(crate) fn folded(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// The inverse.
pub(crate) fn unfolded(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn put_location(location: &Location, elf: &Elf, bytes: &mut Vec<u8>) -> Option<()> {
    match location {
        Location::Register(register) => {
            write_number(REGISTER, bytes);
            write_number((*register).into(), bytes);
        }
        Location::Memory(ops) => {
            write_number(MEMORY, bytes);
            put_ops(ops, elf, bytes)?;
        }
        Location::Value(ops) => {
            write_number(VALUE, bytes);
            put_ops(ops, elf, bytes)?;
        }
        Location::Bytes(contents) => {
            write_number(BYTES, bytes);
            write_number(contents.len() as u64, bytes);
            bytes.extend(contents);
        }
        Location::Pieces(pieces) => {
            write_number(PIECES, bytes);
            write_number(pieces.len() as u64, bytes);
            for piece in pieces {
                write_number(piece.location.is_some().into(), bytes);
                if let Some(location) = &piece.location {
                    put_location(location, elf, bytes)?;
                }
                write_number(piece.bits, bytes);
                write_number(piece.first_bit, bytes);
            }
        }
        Location::Pointer { to, offset } => {
            write_number(POINTER, bytes);
            put_location(to, elf, bytes)?;
            write_number(folded(*offset), bytes);
        }
        Location::ByCaller { return_address, cases } => {
            write_number(BY_CALLER, bytes);
            put_ops(return_address, elf, bytes)?;
            write_number(cases.len() as u64, bytes);
            for (callers, location) in cases {
                write_number(callers.len() as u64, bytes);
                for caller in callers {
                    write_number(elf.flat(*caller)?, bytes);
                }
                put_location(location, elf, bytes)?;
            }
        }
    }
    Some(())
}

fn put_ops(ops: &[Op], elf: &Elf, bytes: &mut Vec<u8>) -> Option<()> {
    write_number(ops.len() as u64, bytes);
    for op in ops {
        let (tag, operand) = match op {
            Op::Const(number) => (CONST, Some(folded(*number))),
            Op::Register(register) => (OF_REGISTER, Some((*register).into())),
            Op::Address(address) => (ADDRESS, Some(elf.flat(*address)?)),
            Op::Deref(size) => (DEREF, Some((*size).into())),
            Op::Pick(depth) => (PICK, Some((*depth).into())),
            plain => (FIRST_PLAIN + PLAIN.iter().position(|known| known == plain)? as u64, None),
        };
        write_number(tag, bytes);
        operand.into_iter().for_each(|operand| write_number(operand, bytes));
    }
    Some(())
}

type Bytes<'b> = std::slice::Iter<'b, u8>;

fn location(bytes: &mut Bytes, elf: &Elf, depth: usize) -> Option<Location> {
    if depth > MAX_DEPTH {
        return None;
    }
    Some(match read_number(bytes)? {
        REGISTER => Location::Register(read_number(bytes)?.try_into().ok()?),
        MEMORY => Location::Memory(ops(bytes, elf)?),
        VALUE => Location::Value(ops(bytes, elf)?),
        BYTES => {
            let length = read_number(bytes)?.try_into().ok()?;
            let (contents, rest) = bytes.as_slice().split_at_checked(length)?;
            *bytes = rest.iter();
            Location::Bytes(contents.to_vec())
        }
        PIECES => Location::Pieces(list(bytes, |bytes| {
            let there = read_number(bytes)? != 0;
            let location = if there { Some(location(bytes, elf, depth + 1)?) } else { None };
            Some(Piece { location, bits: read_number(bytes)?, first_bit: read_number(bytes)? })
        })?),
        POINTER => {
            let to = Box::new(location(bytes, elf, depth + 1)?);
            Location::Pointer { to, offset: unfolded(read_number(bytes)?) }
        }
        BY_CALLER => {
            let return_address = ops(bytes, elf)?;
            let cases = list(bytes, |bytes| {
                let callers = list(bytes, |bytes| elf.address(read_number(bytes)?))?;
                Some((callers, location(bytes, elf, depth + 1)?))
            })?;
            Location::ByCaller { return_address, cases }
        }
        _ => return None,
    })
}

fn ops(bytes: &mut Bytes, elf: &Elf) -> Option<Vec<Op>> {
    list(bytes, |bytes| {
        Some(match read_number(bytes)? {
            CONST => Op::Const(unfolded(read_number(bytes)?)),
            OF_REGISTER => Op::Register(read_number(bytes)?.try_into().ok()?),
            ADDRESS => Op::Address(elf.address(read_number(bytes)?)?),
            DEREF => Op::Deref(read_number(bytes)?.try_into().ok().filter(|size| matches!(size, 1 | 2 | 4 | 8))?),
            PICK => Op::Pick(read_number(bytes)?.try_into().ok()?),
            plain => *PLAIN.get(usize::try_from(plain - FIRST_PLAIN).ok()?)?,
        })
    })
}

fn list<T>(bytes: &mut Bytes, mut entry: impl FnMut(&mut Bytes) -> Option<T>) -> Option<Vec<T>> {
    let count = read_number(bytes)?;
    if count > MAX_COUNT {
        return None;
    }
    (0..count).map(|_| entry(bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn locations_come_back() {
        // An object without sections: addresses are their numbers, as in a linked object.
        let elf = Elf::open(Path::new("/proc/self/exe")).expect("this program");
        let ops: Vec<Op> =
            [Op::Const(-3), Op::Register(7), Op::Deref(8), Op::Pick(2)].into_iter().chain(PLAIN).collect();
        let piece = Piece { location: Some(Location::Value(vec![Op::Const(i64::MIN)])), bits: 32, first_bit: 5 };
        let cases = vec![(Vec::new(), Location::Register(3))];
        let all = [
            Location::Register(16),
            Location::Memory(ops.clone()),
            Location::Value(vec![Op::Const(i64::MAX)]),
            Location::Bytes(vec![1, 0, 255]),
            Location::Pieces(vec![piece, Piece { location: None, bits: 32, first_bit: 0 }]),
            Location::Pointer { to: Box::new(Location::Register(1)), offset: -8 },
            Location::ByCaller { return_address: ops.clone(), cases },
        ];
        for location in all {
            let bytes = location_bytes(&location, &elf).expect("of no address");
            assert_eq!(read_location(&bytes, &elf).as_ref(), Some(&location));
            for end in 0..bytes.len() {
                assert_ne!(read_location(&bytes[..end], &elf).as_ref(), Some(&location), "{end}");
            }
        }
        assert_eq!(op_bytes(&ops, &elf).and_then(|bytes| read_ops(&bytes, &elf)), Some(ops));
        let deep: Vec<u8> = [POINTER as u8; 100].into();
        assert_eq!(read_location(&deep, &elf), None);
        assert_eq!(read_ops(&[1, DEREF as u8, 4], &elf), Some(vec![Op::Deref(4)]));
        assert_eq!(read_ops(&[1, DEREF as u8, 3], &elf), None, "no read has three bytes");
        assert_eq!(read_ops(&[0xff, 0xff, 0xff, 0x7f], &elf), None);
    }
}
