// SPDX-License-Identifier: GPL-2.0-or-later

//! Calls and jumps in the code of programs. Compilers write calls of several lengths (Intel SDM, CALL): of a distance, with or
//! without a prefix that a linker put there, by a word in memory (`-fno-plt`), by a register (`-mcmodel=large`). So where one
//! begins is only known from the beginning of the function on.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind};

/// A call or a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Its first byte.
    pub(crate) at: u64,
    /// The first byte behind it.
    pub(crate) after: u64,
    /// It is no jump.
    pub(crate) call: bool,
    /// Where it leads to, if the instruction says so.
    pub(crate) to: Option<u64>,
}

/// Those in code that begins at an address. `bits`: 64, or 32.
pub(crate) fn transfers(code: &[u8], start: u64, bits: u32) -> Vec<Transfer> {
    let decoder = Decoder::with_ip(bits, code, start, DecoderOptions::NONE);
    let transfer = |instruction: iced_x86::Instruction| {
        let call = match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall if instruction.mnemonic() == Mnemonic::Call => true,
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::ConditionalBranch => false,
            _ => return None,
        };
        let is_near = (0..instruction.op_count()).any(|operand| {
            matches!(instruction.op_kind(operand), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
        });
        let to = is_near.then(|| instruction.near_branch_target());
        Some(Transfer { at: instruction.ip(), after: instruction.next_ip(), call, to })
    };
    decoder.into_iter().filter(|instruction| !instruction.is_invalid()).filter_map(transfer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_all_lengths() {
        let code = [
            &[0xe8, 0, 0, 0, 0][..],      // call f
            &[0xff, 0x15, 0, 0, 0, 0],    // call *f@GOTPCREL(%rip)
            &[0x67, 0xe8, 0, 0, 0, 0],    // addr32 call f
            &[0xff, 0xd0],                // call *%rax
            &[0x41, 0xff, 0xd3],          // call *%r11
            &[0x0f, 0x05],                // syscall
            &[0xff, 0x93, 0xe8, 0, 0, 0], // call *0xe8(%rbx)
            &[0xe9, 0, 0, 0, 0],          // jmp f
        ]
        .concat();
        let found = transfers(&code, 0x1000, 64);
        let lengths: Vec<(u64, bool)> = found.iter().map(|found| (found.after - found.at, found.call)).collect();
        let to: Vec<Option<u64>> = found.iter().map(|found| found.to).collect();
        assert_eq!(to, [Some(0x1005), None, Some(0x1011), None, None, None, Some(0x1023)]);
        assert_eq!(lengths, [(5, true), (6, true), (6, true), (2, true), (3, true), (6, true), (5, false)]);
        assert_eq!(
            transfers(&[0xff, 0x93, 0xe8, 0, 0, 0], 0, 32),
            [Transfer { at: 0, after: 6, call: true, to: None }]
        );
    }
}
