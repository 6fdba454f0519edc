// SPDX-License-Identifier: GPL-2.0-or-later

//! Registers of a probed program: DWARF's numbers to words of `struct pt_regs`.
//!
//! x86_64: System V ABI, AMD64 supplement, figure 3.36 for the numbers; arch/x86/include/asm/ptrace.h for the struct, whose
//! layout has been the same since 2.6 (the runtime checks it with BUILD_BUG_ON).

/// Byte offset in struct pt_regs of the register with DWARF number `register`; None if it is not in the struct.
pub fn pt_regs_offset(register: u16) -> Option<u32> {
    //                       rax rdx rcx rbx  rsi  rdi rbp  rsp r8  r9  r10 r11 r12 r13 r14 r15 rip
    const OFFSETS: [u32; 17] = [80, 96, 88, 40, 104, 112, 32, 152, 72, 64, 56, 48, 24, 16, 8, 0, 128];
    OFFSETS.get(register as usize).copied()
}

/// DWARF's number of xmm0; the others follow.
pub const FIRST_VECTOR: u16 = 17;

/// How many follow each other.
pub const VECTORS: u16 = 16;

/// A register that is not in the struct, for messages.
pub fn unseen(register: u16) -> String {
    match register.checked_sub(FIRST_VECTOR) {
        Some(number @ 0..16) => format!("vector register xmm{number}"),
        _ => format!("register {register}"),
    }
}

/// Word that holds a function's integer return value.
pub const RETURN_VALUE: u32 = 80;

/// Word that holds the second eight bytes of a returned struct (rdx).
pub const RETURN_VALUE_HIGH: u32 = 96;

/// The register at this byte offset of struct pt_regs.
pub fn name(offset: u32) -> Option<&'static str> {
    const NAMES: [&str; 17] = [
        "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
        "rip",
    ];
    NAMES.iter().zip(0u16..).find(|(_, register)| pt_regs_offset(*register) == Some(offset)).map(|(name, _)| *name)
}
