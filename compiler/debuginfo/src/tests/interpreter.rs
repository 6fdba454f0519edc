// SPDX-License-Identifier: GPL-2.0-or-later

//! Evaluates locations with made-up registers and memory.

use std::collections::HashMap;

use super::super::*;

/// Registers by DWARF number, memory by address.
#[derive(Default)]
pub(super) struct Machine {
    pub registers: HashMap<u16, u64>,
    pub memory: HashMap<u64, u8>,
}

impl Machine {
    /// Writes a little-endian 64-bit word to memory.
    pub(super) fn store(&mut self, at: u64, value: u64) {
        for (index, byte) in value.to_le_bytes().into_iter().enumerate() {
            self.memory.insert(at + index as u64, byte);
        }
    }

    /// The first `size` bytes of what is at the location, zero-extended.
    pub(super) fn read(&self, location: &Location, size: u8) -> u64 {
        match location {
            Location::Register(register) => low(self.registers[register], size),
            Location::Memory(ops) => self.load(self.run(ops), size),
            Location::Value(ops) => low(self.run(ops), size),
            Location::Bytes(bytes) => {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                low(u64::from_le_bytes(word), size)
            }
            Location::Pieces(pieces) => {
                let (mut value, mut at) = (0, 0);
                for piece in pieces {
                    let part = piece.location.as_ref().map_or(0, |location| self.read(location, 8) >> piece.first_bit);
                    value |= part << at;
                    at += piece.bits;
                }
                low(value, size)
            }
            Location::Pointer { .. } => panic!("a pointer to what is nowhere has no value"),
            Location::ByCaller { return_address, cases } => {
                let from = self.load(self.run(return_address), 8);
                let called = |places: &[Address]| places.iter().any(|place| place.offset == from);
                let (_, location) = cases.iter().find(|(places, _)| called(places)).expect("a caller that is known");
                self.read(location, size)
            }
        }
    }

    fn load(&self, at: u64, size: u8) -> u64 {
        (0..u64::from(size)).rev().fold(0, |value, index| value << 8 | u64::from(self.memory[&(at + index)]))
    }

    /// The value of a location expression.
    pub(super) fn run(&self, ops: &[Op]) -> u64 {
        let mut stack: Vec<u64> = Vec::new();
        for op in ops {
            let mut pop = || stack.pop().expect("enough values");
            let value = match *op {
                Op::Const(value) => value as u64,
                Op::Register(register) => self.registers[&register],
                Op::Address(address) => address.offset,
                Op::Deref(size) => self.load(pop(), size),
                Op::Neg => pop().wrapping_neg(),
                Op::Not => !pop(),
                Op::Dup => *stack.last().expect("a value"),
                Op::Over => stack[stack.len() - 2],
                Op::Pick(below) => stack[stack.len() - 1 - usize::from(below)],
                Op::Drop => {
                    pop();
                    continue;
                }
                Op::Swap => {
                    let at = stack.len() - 2;
                    stack.remove(at)
                }
                Op::Rot => {
                    let at = stack.len() - 3;
                    let third = stack.remove(at);
                    let second = stack.remove(at);
                    let first = stack.remove(at);
                    stack.extend([first, third]);
                    second
                }
                _ => {
                    let (right, left) = (pop(), pop());
                    binary(*op, left, right)
                }
            };
            stack.push(value);
        }
        stack.pop().expect("a result")
    }
}

fn low(value: u64, size: u8) -> u64 {
    if size >= 8 { value } else { value & ((1 << (8 * size)) - 1) }
}

fn binary(op: Op, left: u64, right: u64) -> u64 {
    let (signed_left, signed_right) = (left as i64, right as i64);
    let shift = u32::try_from(right).unwrap_or(64);
    match op {
        Op::Add => left.wrapping_add(right),
        Op::Sub => left.wrapping_sub(right),
        Op::Mul => left.wrapping_mul(right),
        Op::Div => signed_left.wrapping_div(signed_right) as u64,
        Op::Mod => signed_left.wrapping_rem(signed_right) as u64,
        Op::And => left & right,
        Op::Or => left | right,
        Op::Xor => left ^ right,
        Op::Shl => left.checked_shl(shift).unwrap_or(0),
        Op::Shr => left.checked_shr(shift).unwrap_or(0),
        Op::Shra => (signed_left >> shift.min(63)) as u64,
        Op::Eq => u64::from(left == right),
        Op::Ne => u64::from(left != right),
        Op::Lt => u64::from(signed_left < signed_right),
        Op::Gt => u64::from(signed_left > signed_right),
        Op::Le => u64::from(signed_left <= signed_right),
        Op::Ge => u64::from(signed_left >= signed_right),
        other => panic!("{other:?} takes no two values"),
    }
}
