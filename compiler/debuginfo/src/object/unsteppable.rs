// SPDX-License-Identifier: GPL-2.0-or-later

//! Instructions of programs at which the kernel refuses a uprobe: it would have to execute a copy of them elsewhere
//! (arch/x86/kernel/uprobes.c, uprobe_init_insn()).

use super::elf::{Address, Elf};

/// Bit N of word M: opcode M * 32 + N is allowed. `good_insns_64` and `good_insns_32`, which have been the same since Linux 4.1. What
/// follows 0f is all allowed: the kernel's table of it is asked only about what the first byte does not allow.
const WIDE: [u32; 8] =
    [0x3f3f_bf3f, 0x7f7f_7f7f, 0xffff_ffff, 0xffff_0ff8, 0xfbff_fffb, 0xffff_ffff, 0xff8f_0fff, 0xf3ed_0b0f];
const NARROW: [u32; 8] =
    [0x7f7f_ff7f, 0xffff_ffff, 0xffff_ffff, 0xffff_0fff, 0xffff_ffff, 0xffff_ffff, 0xffff_0fff, 0xf3ed_0f0f];

/// The longest instruction.
const LONGEST: usize = 15;

const TRAP: u8 = 0xcc;
/// Behind these the processor takes no trap before the instruction that follows: `pop %ss`, `mov` to `%ss`.
const POP_SS: u8 = 0x1f;
const MOV_TO_SEGMENT: u8 = 0x8e;
const SS: u8 = 2;

impl Elf {
    /// Whether the kernel refuses a uprobe at the instruction of a program at the address; false where the file does not have its code.
    pub fn is_unsteppable(&self, address: Address) -> bool {
        let narrow = self.is_narrow();
        let inside = |(start, bytes): (u64, &[u8])| {
            let from = usize::try_from(address.offset.checked_sub(start)?).ok()?;
            let code = bytes.get(from..).filter(|code| !code.is_empty())?;
            is_refused(code.get(..LONGEST).unwrap_or(code), narrow)
        };
        self.code_of_any_program().into_iter().find_map(inside).unwrap_or(false)
    }
}

/// Of the instruction at the start of the code; None: it is cut off.
fn is_refused(code: &[u8], narrow: bool) -> Option<bool> {
    let mut rest = code;
    if rest.first() == Some(&TRAP) {
        return Some(true);
    }
    while let [prefix, behind @ ..] = rest {
        match prefix {
            // The segments %es, %cs, %ss and %ds; lock.
            0x26 | 0x2e | 0x36 | 0x3e | 0xf0 => return Some(true),
            0x64..=0x67 | 0xf2 | 0xf3 => rest = behind,
            _ => break,
        }
    }
    if let ([0x40..=0x4f, behind @ ..], false) = (rest, narrow) {
        rest = behind;
    }
    // Of instructions that begin with VEX or EVEX the opcode is looked up as if it were one without, whatever its table.
    let is_vector = |second: &u8| !narrow || second & 0xc0 == 0xc0;
    let vector = match rest {
        [0xc5, second, ..] if is_vector(second) => rest.get(2..),
        [0xc4, second, ..] if is_vector(second) => rest.get(3..),
        [0x62, second, ..] if is_vector(second) => rest.get(4..),
        _ => None,
    };
    let rest = vector.unwrap_or(rest);
    let (opcode, behind) = rest.split_first()?;
    let masks = match *opcode {
        POP_SS => true,
        MOV_TO_SEGMENT => behind.first()? >> 3 & 7 == SS,
        _ => false,
    };
    Some(masks || !is_allowed(if narrow { &NARROW } else { &WIDE }, *opcode))
}

fn is_allowed(table: &[u32; 8], opcode: u8) -> bool {
    table.get(usize::from(opcode >> 5)).is_some_and(|word| word >> (opcode & 31) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_the_kernel_refuses() {
        let wide: [(&[u8], bool); 15] = [
            (b"\x55", false),
            (b"\xf3\x0f\x1e\xfa", false),
            (b"\x48\x89\xe5", false),
            (b"\xf4", true),
            // vmovd %esi,%xmm0; vpxor %xmm0,%xmm0,%xmm0; vpbroadcastb %esi,%ymm16; vmovdqu64 (%rsi),%ymm16
            (b"\xc5\xf9\x6e\xc6", true),
            (b"\xc5\xf9\xef\xc0", true),
            (b"\x62\xe2\x7d\x28\x7a\xc6", false),
            (b"\x62\xe1\xfe\x28\x6f\x06", true),
            // movd %esi,%xmm0; pshufb %xmm1,%xmm0
            (b"\x66\x0f\x6e\xc6", false),
            (b"\x66\x0f\x38\x00\xc1", false),
            // lock decl (%rdi); mov %fs:0,%rax; int3; syscall; mov %eax,%ss
            (b"\xf0\xff\x0f", true),
            (b"\x64\x48\x8b\x04\x25\0\0\0\0", false),
            (b"\xcc", true),
            (b"\x0f\x05", false),
            (b"\x8e\xd0", true),
        ];
        for (code, refused) in wide {
            assert_eq!(is_refused(code, false), Some(refused), "{code:x?}");
        }
        // lds (%eax),%ecx is no VEX; bound %eax,(%ecx) no EVEX; int3; pop %ds.
        let narrow: [(&[u8], bool); 6] = [
            (b"\x55", false),
            (b"\xc5\x08", false),
            (b"\x62\x01", false),
            (b"\xc5\xf9\x6e\xc6", true),
            (b"\xcd\x80", true),
            (b"\x1f", true),
        ];
        for (code, refused) in narrow {
            assert_eq!(is_refused(code, true), Some(refused), "{code:x?}");
        }
    }
}
