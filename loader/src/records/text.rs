// SPDX-License-Identifier: GPL-2.0-or-later

//! The text of a record, truncated at a limit.
//!
//! Must match runtime-c/text.h and text.c, which build strings in the kernel.

/// Maximum length of a record's text. A width or a repeat count can ask for any number of bytes.
pub const MAX_TEXT: usize = 8 << 20;

/// Text of limited length.
#[derive(Debug)]
pub struct Text {
    bytes: Vec<u8>,
    limit: usize,
    cut: bool,
}

impl Text {
    /// An empty text; `limit` in bytes.
    pub fn new(limit: usize) -> Text {
        Text { bytes: Vec::new(), limit, cut: false }
    }

    /// Clears the text.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.cut = false;
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether something did not fit.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether nothing more fits.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= self.limit
    }

    /// Appends as many of these bytes as fit.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.limit - self.bytes.len();
        self.cut |= bytes.len() > room;
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Appends a byte, if it fits.
    #[inline]
    pub fn push_byte(&mut self, byte: u8) {
        match self.bytes.len() < self.limit {
            true => self.bytes.push(byte),
            false => self.cut = true,
        }
    }

    /// In base 10, the most frequent case.
    #[inline]
    pub fn decimal(&mut self, value: i64) {
        self.push(itoa::Buffer::new().format(value).as_bytes());
    }

    /// In base 16, lower case: the digits of 32 bits at once, one in each byte of a word.
    fn hex(&mut self, value: u64) {
        let mut digits = [0u8; 16];
        for (half, bits) in digits.chunks_exact_mut(8).zip([value >> 32, value & u64::from(u32::MAX)]) {
            half.copy_from_slice(&hex_word(bits).to_be_bytes());
        }
        let zeros = (value | 1).leading_zeros() as usize / 4;
        self.push(digits.get(zeros..).unwrap_or_default());
    }

    /// Appends the byte this many times, as far as it fits.
    pub fn repeat(&mut self, byte: u8, count: u64) {
        let room = self.limit - self.bytes.len();
        self.cut |= count > room as u64;
        let count = count.min(room as u64) as usize;
        self.bytes.resize(self.bytes.len() + count, byte);
    }

    /// In base 2 to 16, lower case.
    pub fn number(&mut self, value: u64, base: u64) {
        match base {
            10 => self.push(itoa::Buffer::new().format(value).as_bytes()),
            16 => self.hex(value),
            _ => self.push(Digits::of(value, base).as_bytes()),
        }
    }

    /// Escapes as in a C string: `\a \b \t
    ///  \v \f \r \\` and the quote itself with a backslash, other unprintable bytes as three octal digits.
    pub fn escaped(&mut self, byte: u8, quote: u8) {
        match byte {
            7..=13 => self.push(&[b'\\', b"abtnvfr".get(usize::from(byte - 7)).copied().unwrap_or(b'?')]),
            b'\\' => self.push(b"\\\\"),
            _ if byte == quote => self.push(&[b'\\', byte]),
            32..=126 => self.push_byte(byte),
            _ => self.push(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]),
        }
    }
}

/// The lower-case digit of a number from 0 to 15.
pub fn hex_digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        _ => b'a' - 10 + (value & 15),
    }
}

/// The eight digits of 32 bits, the first in the top byte.
fn hex_word(value: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Bits 4n to 4n + 3 go to byte n.
    let spread = (value | value << 16) & 0x0000_ffff_0000_ffff;
    let spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // From 10 on, adding 6 carries into bit 4.
    let letters = (digits + 6 * ONES) >> 4 & ONES;
    digits + ONES * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10)
}

/// A number's digits.
#[derive(Clone, Copy, Debug)]
pub struct Digits {
    bytes: [u8; 64],
    start: usize,
}

impl Digits {
    /// In base 2 to 16, lower case.
    pub fn of(mut value: u64, base: u64) -> Digits {
        let mut bytes = [0u8; 64];
        let mut start = bytes.len();
        loop {
            start -= 1;
            if let Some(byte) = bytes.get_mut(start) {
                *byte = hex_digit((value % base) as u8);
            }
            value /= base;
            if value == 0 {
                return Digits { bytes, start };
            }
        }
    }

    /// Hexadecimal digits in upper case.
    pub fn make_upper_case(&mut self) {
        self.bytes.make_ascii_uppercase();
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_spelled_as_in_c() {
        let mut text = Text::new(100);
        for byte in *b"a\n\x07\\'\"\x00\x7f\xff" {
            text.escaped(byte, b'"');
        }
        assert_eq!(text.as_bytes(), br#"a\n\a\\'\"\000\177\377"#);
    }

    #[test]
    fn long_text_is_truncated_and_marked() {
        let mut text = Text::new(4);
        text.push(b"abcd");
        assert!(text.is_full() && !text.is_cut());
        text.repeat(b'x', u64::MAX);
        assert!(text.is_cut());
        assert_eq!(text.as_bytes(), b"abcd");
    }

    #[test]
    fn numbers_in_every_base() {
        let mut text = Text::new(100);
        for base in [2, 8, 10, 16] {
            text.number(10, base);
            text.push_byte(b' ');
        }
        text.number(u64::MAX, 16);
        text.push_byte(b' ');
        text.number(0x0123_4567_89ab_cdef, 16);
        text.push_byte(b' ');
        text.number(0, 16);
        for value in [0, -1, 1024, i64::MIN, i64::MAX] {
            text.push_byte(b' ');
            text.decimal(value);
        }
        assert_eq!(
            text.as_bytes(),
            b"1010 12 10 a ffffffffffffffff 123456789abcdef 0 0 -1 1024 -9223372036854775808 9223372036854775807"
        );
    }
}
