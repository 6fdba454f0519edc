// SPDX-License-Identifier: GPL-2.0-or-later

//! The architecture's registers and calling convention: x86_64. A port to another one changes this file, and `MACHINE` in
//! [`crate::object`].
//!
//! Source: System V ABI, AMD64 supplement, 3.6.2 (numbers of registers) and 3.2 (stack at a function's entry).

use super::location::Op;

/// DWARF's number of the stack pointer.
pub(crate) const STACK_POINTER: u16 = 7;

/// DWARF's number of the frame pointer.
pub(crate) const FRAME_POINTER: u16 = 6;

/// Registers that a called function preserves (3.2.1): rbx, rbp, r12 to r15.
pub(crate) const PRESERVED: [u16; 6] = [3, 6, 12, 13, 14, 15];

/// The canonical frame address at a function's first instruction: the return address has just been pushed.
pub(crate) fn frame_address_at_entry() -> Vec<Op> {
    vec![Op::Register(STACK_POINTER), Op::Const(8), Op::Add]
}

/// DWARF number of the general register that takes the integer parameter `index` (from 0), if one does.
pub fn parameter_register(index: usize) -> Option<u16> {
    const REGISTERS: [u16; 6] = [5, 4, 1, 2, 8, 9];
    REGISTERS.get(index).copied()
}

/// Address of the integer parameter `index` (from 0) that is passed on the stack, at a function's first instruction: the
/// first of them is above the return address.
pub(crate) fn stack_parameter(index: usize) -> [Op; 3] {
    [Op::Register(STACK_POINTER), Op::Const((index.saturating_sub(5) as i64).saturating_mul(8)), Op::Add]
}

/// DWARF number of the register that returns an integer or a pointer.
pub const RETURN_REGISTER: u16 = 0;
