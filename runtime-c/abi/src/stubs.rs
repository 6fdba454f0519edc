// SPDX-License-Identifier: GPL-2.0-or-later

//! Import stubs: the code by which a program calls functions of other files (System V ABI, AMD64 supplement, 5.2).
//!
//! A stub jumps through a word of the global offset table. Which function the word is for, its relocation says; which stub uses
//! it, the jump's operand.

/// Sections that have them. Beside `.plt.sec` those in `.plt` only call the dynamic linker, so it comes last.
pub const SECTIONS: [&str; 3] = [".plt.sec", SHORT, ".plt"];
/// Of programs that are not made for indirect branch tracking, those here have 8 bytes.
const SHORT: &str = ".plt.got";

/// `endbr64` and `endbr32`.
const LANDINGS: [&[u8]; 2] = [&[0xf3, 0x0f, 0x1e, 0xfa], &[0xf3, 0x0f, 0x1e, 0xfb]];
/// What may come before the jump, with a number of 32 bits: `mov` to r11d or ecx, by which mold says which function it is; `push`.
const BEFORE: [&[u8]; 3] = [&[0x41, 0xbb], &[0xb9], &[0x68]];
const MOST_BEFORE: usize = 2;

/// Of which kind the code is.
#[derive(Clone, Copy, Debug)]
pub enum Code {
    /// 64 bits.
    Wide,
    /// 32 bits; ebx holds the address of the global offset table, if there is one, in stubs of code that can be at any address.
    Narrow {
        /// Link-time address.
        table: Option<u64>,
    },
}

/// Bytes from one stub of a section to the next.
pub fn step(section: &str, bytes: &[u8]) -> usize {
    if section == SHORT && !LANDINGS.iter().any(|landing| bytes.starts_with(landing)) { 8 } else { 16 }
}

/// The word, by its address, through which a stub at that address jumps; None: it is none.
pub fn slot(stub: &[u8], at: u64, code: Code) -> Option<u64> {
    let mut rest = LANDINGS.iter().find_map(|landing| stub.strip_prefix(*landing)).unwrap_or(stub);
    for _ in 0..MOST_BEFORE {
        let behind = BEFORE.iter().find_map(|before| rest.strip_prefix(*before)?.get(4..));
        rest = behind.unwrap_or(rest);
    }
    // bnd, notrack
    let rest = [0xf2, 0x3e].iter().find_map(|prefix| rest.strip_prefix(&[*prefix])).unwrap_or(rest);
    let (operand, behind) = rest.strip_prefix(&[0xff])?.split_first()?;
    let number = behind.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))?;
    match (*operand, code) {
        (0x25, Code::Wide) => {
            // From behind the jump, of 6 bytes.
            let length = (stub.len() - rest.len() + 6) as u64;
            Some(at.wrapping_add(length).wrapping_add_signed(number.into()))
        }
        (0x25, Code::Narrow { .. }) => Some(number.cast_unsigned().into()),
        (0xa3, Code::Narrow { table }) => Some(u32::try_from(table?).ok()?.wrapping_add_signed(number).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_stubs() {
        let narrow = Code::Narrow { table: Some(0x4000) };
        let stubs: [(&[u8], Code, Option<u64>); 9] = [
            (b"\xff\x25\x10\0\0\0\x68\0\0\0\0", Code::Wide, Some(0x1016)),
            (b"\xf3\x0f\x1e\xfa\xf2\xff\x25\xf5\xff\xff\xff", Code::Wide, Some(0x1000)),
            // mold
            (b"\xf3\x0f\x1e\xfa\x41\xbb\x01\0\0\0\xff\x25\x10\0\0\0", Code::Wide, Some(0x1020)),
            (b"\xf3\x0f\x1e\xfb\xb9\x01\0\0\0\xff\xa3\x10\0\0\0", narrow, Some(0x4010)),
            (b"\xff\x25\x10\0\0\0", narrow, Some(0x10)),
            (b"\xff\xa3\xfc\xff\xff\xff", narrow, Some(0x3ffc)),
            // What calls the dynamic linker; a cut one; one with ebx in 64-bit code.
            (b"\xf3\x0f\x1e\xfa\x68\x01\0\0\0\xf2\xe9\0\0\0\0", Code::Wide, None),
            (b"\xff\x25\x10\0", Code::Wide, None),
            (b"\xff\xa3\x10\0\0\0", Code::Wide, None),
        ];
        for (stub, code, expected) in stubs {
            assert_eq!(slot(stub, 0x1000, code), expected, "{stub:x?}");
        }
        assert_eq!(
            (step(".plt.got", b"\xff\x25"), step(".plt.got", b"\xf3\x0f\x1e\xfa"), step(".plt", b"")),
            (8, 16, 16)
        );
    }
}
