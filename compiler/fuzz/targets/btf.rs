// SPDX-License-Identifier: GPL-2.0-or-later

//! BTF with types as the choices have them (Documentation/bpf/btf.rst).

use super::Choices;

/// Names that types may have.
const TEXTS: &[u8] = b"\0f\0x\0y\0list\0int\0char\0";

/// Raw BTF, as in `/sys/kernel/btf`. Every type's number, kind, children and the types they lead to are chosen.
pub fn made(choices: &mut Choices) -> Vec<u8> {
    let mut types = Vec::new();
    let mut word = |word: u32| types.extend(word.to_le_bytes());
    while !choices.is_over() {
        let kind = 1 + choices.of(19) as u32;
        let (count, flag) = (u32::from(choices.byte()), choices.byte());
        let count = match kind {
            4 | 5 | 6 | 13 | 15 | 19 => count % 8,
            _ => 0,
        };
        word(choices.of(TEXTS.len() + 2) as u32);
        word(u32::from(flag >> 7) << 31 | kind << 24 | count);
        word(u32::from(choices.byte()) % 24);
        let words = match kind {
            1 | 14 | 17 => 1,
            3 => 3,
            4 | 5 | 15 | 19 => count * 3,
            6 | 13 => count * 2,
            _ => 0,
        };
        (0..words).for_each(|_| word(u32::from(choices.byte()) % 40));
    }
    let mut bytes = vec![0x9f, 0xeb, 1, 0];
    for number in [24, 0, types.len() as u32, types.len() as u32, TEXTS.len() as u32] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(types);
    bytes.extend(TEXTS);
    bytes
}
