// SPDX-License-Identifier: GPL-2.0-or-later

//! The tables of an exported index, which [`crate::dwarf`] writes and [`super::Portable`] reads.

use crate::facts::BaseEncoding;

/// Name, file, line, external, return type + 1, first body, first inlined instance, first parameter, lines + 1, first label,
/// first call of its bodies, places behind calls of unknown callees + 1; by name. The last row is that of no function, and has
/// the ends.
pub(crate) const FUNCTIONS: usize = 0;
/// Address and size (two columns each), symbol's name + 1, set of variables, place of the return address + 1.
pub(crate) const BODIES: usize = 1;
/// Address (two columns), set of variables.
pub(crate) const INLINED: usize = 2;
/// Name, type.
pub(crate) const PARAMETERS: usize = 3;
/// First variable; the last row has the end.
pub(crate) const SETS: usize = 4;
/// Name, type, location + 1 (0: nowhere), whether it is a parameter.
pub(crate) const VARIABLES: usize = 5;
/// Kind, name + 1, target or size, first child, count of children.
pub(crate) const TYPES: usize = 6;
/// Name + 1 and three numbers: of a member its type, offset, and first bit and bits (0: no bit-field); of an enumerator the
/// value's halves; of a dimension whether it has a count, and its halves; of a parameter its type.
pub(crate) const CHILDREN: usize = 7;
/// Tag, name, type; by tag, then name.
pub(crate) const NAMED: usize = 8;
/// Name, path of the unit, type, location + 1 (0: nowhere), external; by name.
pub(crate) const GLOBALS: usize = 9;
/// Name, line, address (two columns), set of variables.
pub(crate) const LABELS: usize = 10;
/// Function, address (two columns), of what is inlined the first call in the copy + 1 (else 0) and their count,
/// place of the return address + 1.
pub(crate) const CALLS: usize = 11;
/// Where no probe may be placed: address (two columns), length, reason.
pub(crate) const RESERVED: usize = 12;
/// Columns of each table, by its number.
pub(crate) const COLUMNS: [usize; 13] = [12, 7, 3, 2, 1, 4, 5, 4, 3, 5, 5, 6, 4];

/// What a row of [`TYPES`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Target: size; count: encoding.
    Base,
    Pointer,
    Struct,
    Union,
    Array,
    Enum,
    SignedEnum,
    Typedef,
    Const,
    Volatile,
    Function,
    Variadic,
    Incomplete,
}

/// The kinds by their number in the file.
pub(crate) const KINDS: [Kind; 13] = [
    Kind::Base,
    Kind::Pointer,
    Kind::Struct,
    Kind::Union,
    Kind::Array,
    Kind::Enum,
    Kind::SignedEnum,
    Kind::Typedef,
    Kind::Const,
    Kind::Volatile,
    Kind::Function,
    Kind::Variadic,
    Kind::Incomplete,
];

/// The encodings of base types by their number in the file.
pub(crate) const ENCODINGS: [BaseEncoding; 6] = [
    BaseEncoding::Signed,
    BaseEncoding::Unsigned,
    BaseEncoding::Bool,
    BaseEncoding::SignedChar,
    BaseEncoding::UnsignedChar,
    BaseEncoding::Float,
];

/// Seven bits to a byte, the lowest first (LEB128).
pub(crate) fn write_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads what [`write_number`] wrote; `None` if it ends early or has more than 64 bits.
pub(crate) fn read_number(bytes: &mut std::slice::Iter<u8>) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 1 << 40, u64::MAX] {
            let mut bytes = Vec::new();
            write_number(number, &mut bytes);
            assert_eq!(read_number(&mut bytes.iter()), Some(number));
        }
        assert_eq!(read_number(&mut [0x80u8; 12].iter()), None);
    }
}
