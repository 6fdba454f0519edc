// SPDX-License-Identifier: GPL-2.0-or-later

//! The architecture's registers and calling convention: x86_64. A port to another one changes this file, and `MACHINE` in
//! [`crate::object`].
//!
//! Source: System V ABI, AMD64 supplement, 3.6.2 (numbers of registers) and 3.2 (stack at a function's entry); for 32-bit
//! programs the i386 supplement, 2.4.2 (numbers) and 2.2 and 2.3 (calls).

use super::location::Op;

/// DWARF's number of the stack pointer.
pub(crate) const STACK_POINTER: u16 = 7;

/// DWARF's number of the frame pointer.
pub(crate) const FRAME_POINTER: u16 = 6;

/// What an object was compiled for. [`Op`] and [`crate::Location`] have x86_64's numbers of registers for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// The kernel, its modules, and programs.
    X86_64,
    /// 32-bit programs.
    I386,
}

/// By DWARF's number for i386, x86_64's: eax, ecx, edx, ebx, esp, ebp, esi, edi, eip.
const I386: [u16; 9] = [0, 2, 1, 3, STACK_POINTER, FRAME_POINTER, 4, 5, 16];

/// No register has this number.
const NONE: u16 = u16::MAX;

impl Machine {
    /// Bytes of an address and of a stack slot.
    pub(crate) fn word(self) -> u8 {
        match self {
            Machine::X86_64 => 8,
            Machine::I386 => 4,
        }
    }

    /// The x86_64 register that has the machine's register of this number in its debug information.
    pub(crate) fn register(self, number: u16) -> u16 {
        match (self, number) {
            (Machine::X86_64, number) => number,
            (Machine::I386, general @ ..=8) => I386.get(usize::from(general)).copied().unwrap_or(NONE),
            // st0 to st7, xmm0 to xmm7, mm0 to mm7
            (Machine::I386, 11..=18) => number + 22,
            (Machine::I386, 21..=28) => number - 4,
            (Machine::I386, 29..=36) => number + 12,
            (Machine::I386, _) => NONE,
        }
    }

    /// The machine's own number of one of the [`Machine::preserved`] registers.
    pub(crate) fn own_number(self, register: u16) -> u16 {
        match self {
            Machine::X86_64 => register,
            Machine::I386 => I386.iter().position(|own| *own == register).map_or(NONE, |number| number as u16),
        }
    }

    /// Registers that a called function preserves: rbx, rbp, r12 to r15 (3.2.1), or ebx, ebp, esi, edi (2.2.3).
    pub(crate) fn preserved(self) -> &'static [u16] {
        match self {
            Machine::X86_64 => &[3, FRAME_POINTER, 12, 13, 14, 15],
            Machine::I386 => &[3, FRAME_POINTER, 4, 5],
        }
    }

    /// The canonical frame address at a function's first instruction: the return address has just been pushed.
    pub(crate) fn frame_address_at_entry(self) -> Vec<Op> {
        vec![Op::Register(STACK_POINTER), Op::Const(self.word().into()), Op::Add]
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_32_bit_programs_have_their_x86_64_numbers() {
        let all: Vec<u16> = (0..=37).map(|number| Machine::I386.register(number)).collect();
        assert_eq!(all[..11], [0, 2, 1, 3, 7, 6, 4, 5, 16, NONE, NONE]);
        // st0, xmm0 and mm0 of 3.6.2 in the AMD64 supplement.
        assert_eq!([all[11], all[21], all[29], all[37]], [33, 17, 41, NONE]);
        for machine in [Machine::X86_64, Machine::I386] {
            for register in machine.preserved() {
                assert_eq!(machine.register(machine.own_number(*register)), *register);
            }
        }
    }
}
