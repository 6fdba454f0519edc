// SPDX-License-Identifier: GPL-2.0-or-later

//! Formats the payload of a print statement as text.
//!
//! printf of the script language. Where it differs from C: `#` prints 0x before a zero too, precision does not disable
//! the 0 flag, `%b` writes raw bytes and `%M` the hex digits of memory. Must match runtime-c/format.c;
//! `tests/parity.rs` compares the two.

use spile_abi::format::{Directive, Flags, Named, Piece, Size};

use crate::records::histogram;
use crate::records::payload::{Payload, ShortPayload};
use crate::records::pretty;
use crate::records::symbol::Symbols;
use crate::records::text::{Digits, Text, hex_digit};

/// Appends the text of the pieces. If the payload ends early, so does the text.
pub fn render(
    pieces: &[Piece],
    payload: &mut Payload<'_>,
    symbols: &mut Symbols<'_>,
    text: &mut Text,
) -> Result<(), ShortPayload> {
    pieces.iter().try_for_each(|piece| match piece {
        Piece::Literal(literal) => {
            match literal.as_slice() {
                [byte] => text.push_byte(*byte),
                bytes => text.push(bytes),
            }
            Ok(())
        }
        Piece::Directive(directive) if is_plain_decimal(directive) => payload.long().map(|value| text.decimal(value)),
        Piece::Directive(directive) => {
            let directive = Sized::read(directive, payload)?;
            directive.render(payload, symbols, text)
        }
        Piece::Pretty(description) => pretty::render(description, payload, text),
        Piece::Histogram(kind, chart) => histogram::render(*kind, *chart, payload, text),
    })
}

/// Plain `%d`.
fn is_plain_decimal(directive: &Directive) -> bool {
    let Directive { conversion, flags, width, precision } = directive;
    matches!(conversion, b'd' | b'i') && *flags == Flags::default() && *width == Size::None && *precision == Size::None
}

/// A directive with its `*` resolved.
struct Sized {
    conversion: u8,
    flags: Flags,
    /// 0: none
    width: u64,
    precision: Option<u64>,
}

impl Sized {
    fn read(directive: &Directive, payload: &mut Payload<'_>) -> Result<Sized, ShortPayload> {
        let mut flags = directive.flags;
        let width = match directive.width {
            Size::None => 0,
            Size::Fixed(width) => u64::from(width),
            Size::Star => {
                let width = payload.long()?;
                flags.minus |= width < 0;
                width.unsigned_abs()
            }
        };
        let precision = match directive.precision {
            Size::None => None,
            Size::Fixed(precision) => Some(u64::from(precision)),
            // A negative precision is none of a number, and 0 of a string.
            Size::Star => match u64::try_from(payload.long()?) {
                Err(_) if directive.conversion == b's' => Some(0),
                given => given.ok(),
            },
        };
        Ok(Sized { conversion: directive.conversion, flags, width, precision })
    }

    fn render(
        &self,
        payload: &mut Payload<'_>,
        symbols: &mut Symbols<'_>,
        text: &mut Text,
    ) -> Result<(), ShortPayload> {
        if let Some(named) = Named::of(self.conversion) {
            self.string(text, &symbols.named(named, self.flags.sharp, payload)?);
            return Ok(());
        }
        match self.conversion {
            b's' | b'm' | b'M' => {
                // The script's error about unreadable memory is a separate record.
                let Some(bytes) = payload.bytes()? else { return Ok(()) };
                match self.conversion {
                    b'M' => self.hex_dump(text, bytes),
                    b's' => self.string(text, bytes),
                    _ => self.padded(text, bytes),
                }
            }
            b'c' => {
                let byte = payload.long()? as u8;
                let mut spelled = Text::new(8);
                match self.flags.sharp {
                    true => spelled.escaped(byte, b'\''),
                    false => spelled.push_byte(byte),
                }
                self.padded(text, spelled.as_bytes());
            }
            b'b' => {
                // The precision's, else the width's, if it is the size of a number.
                let size = |bytes: &u64| matches!(bytes, 1 | 2 | 4 | 8);
                let count = self.precision.filter(size).or(Some(self.width).filter(size)).unwrap_or(8);
                let bytes = payload.long()?.to_le_bytes();
                let bytes = bytes.get(..count as usize).unwrap_or(&bytes);
                self.between(0, text, count, |text| text.push(bytes));
            }
            _ => self.number(text, payload.long()?),
        }
        Ok(())
    }

    fn string(&self, text: &mut Text, bytes: &[u8]) {
        let most = self.precision.map_or(usize::MAX, |precision| usize::try_from(precision).unwrap_or(usize::MAX));
        self.padded(text, bytes.get(..most).unwrap_or(bytes));
        if self.flags.zero {
            text.push_byte(0);
        }
    }

    fn padded(&self, text: &mut Text, bytes: &[u8]) {
        self.between_blanks(text, bytes.len() as u64, |text| text.push(bytes));
    }

    fn hex_dump(&self, text: &mut Text, bytes: &[u8]) {
        self.between_blanks(text, bytes.len() as u64 * 2, |text| {
            for byte in bytes {
                text.push_byte(hex_digit(byte >> 4));
                text.push_byte(hex_digit(byte & 15));
            }
        });
    }

    /// Appends the output of `count` bytes, padded with blanks to the width.
    fn between_blanks(&self, text: &mut Text, count: u64, write: impl FnOnce(&mut Text)) {
        self.between(b' ', text, count, write);
    }

    /// The same, padded with this byte.
    fn between(&self, padding: u8, text: &mut Text, count: u64, write: impl FnOnce(&mut Text)) {
        let missing = self.width.saturating_sub(count);
        if !self.flags.minus {
            text.repeat(padding, missing);
        }
        write(text);
        if self.flags.minus {
            text.repeat(padding, missing);
        }
    }

    fn number(&self, text: &mut Text, value: i64) {
        let is_signed = matches!(self.conversion, b'd' | b'i');
        let base = match self.conversion {
            b'o' => 8,
            b'd' | b'i' | b'u' => 10,
            _ => 16,
        };
        let mut digits = Digits::of(if is_signed { value.unsigned_abs() } else { value as u64 }, base);
        if self.conversion == b'X' {
            digits.make_upper_case();
        }
        let count = digits.as_bytes().len() as u64;
        let sign: &[u8] = match () {
            () if !is_signed => b"",
            () if value < 0 => b"-",
            () if self.flags.plus => b"+",
            () if self.flags.space => b" ",
            () => b"",
        };
        let base_prefix: &[u8] = match self.conversion {
            b'p' => b"0x",
            b'x' if self.flags.sharp => b"0x",
            b'X' if self.flags.sharp => b"0X",
            b'o' if self.flags.sharp => b"0",
            _ => b"",
        };
        let zeros = self.precision.unwrap_or(0).saturating_sub(count);
        let taken = count + (sign.len() + base_prefix.len()) as u64;
        let padding = self.width.saturating_sub(taken).saturating_sub(zeros);

        if !self.flags.minus && !self.flags.zero {
            text.repeat(b' ', padding);
        }
        text.push(sign);
        text.push(base_prefix);
        if !self.flags.minus && self.flags.zero {
            text.repeat(b'0', padding);
        }
        text.repeat(b'0', zeros);
        text.push(digits.as_bytes());
        if self.flags.minus {
            text.repeat(b' ', padding);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::symbol::tests::{Fake, part};
    use crate::records::user::Users;

    fn flags(text: &str) -> Flags {
        let has = |flag| text.contains(flag);
        Flags { zero: has('0'), plus: has('+'), minus: has('-'), space: has(' '), sharp: has('#') }
    }

    fn directive(flags_text: &str, width: Size, precision: Size, conversion: u8) -> Piece {
        Piece::Directive(Directive { conversion, flags: flags(flags_text), width, precision })
    }

    fn long(value: i64) -> Vec<u8> {
        value.to_le_bytes().to_vec()
    }

    fn string(bytes: &[u8]) -> Vec<u8> {
        let mut part = (bytes.len() as u32).to_le_bytes().to_vec();
        part.extend(bytes);
        part.resize(part.len().next_multiple_of(8), 0);
        part
    }

    fn shown(piece: Piece, payload: &[Vec<u8>]) -> String {
        let payload = payload.concat();
        let mut text = Text::new(1000);
        let ended = render(
            &[piece],
            &mut Payload::new(&payload),
            &mut Symbols::new(Some(&Fake::default()), Users::default()),
            &mut text,
        );
        assert_eq!(ended, Ok(()));
        String::from_utf8_lossy(text.as_bytes()).into_owned()
    }

    #[test]
    fn numbers() {
        let cases = [
            ("", Size::None, Size::None, b'd', -7, "-7"),
            ("0", Size::Fixed(5), Size::None, b'd', -42, "-0042"),
            ("+", Size::None, Size::None, b'd', 5, "+5"),
            (" ", Size::None, Size::None, b'i', 5, " 5"),
            ("-", Size::Fixed(4), Size::None, b'd', 5, "5   "),
            ("", Size::Fixed(6), Size::Fixed(3), b'd', 5, "   005"),
            ("", Size::None, Size::None, b'u', -1, "18446744073709551615"),
            ("#", Size::None, Size::None, b'x', 0, "0x0"),
            ("#", Size::None, Size::None, b'X', 255, "0XFF"),
            ("#", Size::None, Size::None, b'o', 8, "010"),
            ("", Size::None, Size::None, b'p', 0x1000, "0x1000"),
            ("0", Size::Fixed(8), Size::None, b'p', 1, "0x000001"),
            ("", Size::None, Size::None, b'd', i64::MIN, "-9223372036854775808"),
        ];
        for (flags, width, precision, conversion, value, expected) in cases {
            assert_eq!(shown(directive(flags, width, precision, conversion), &[long(value)]), expected);
        }
    }

    #[test]
    fn strings_characters_and_memory() {
        assert_eq!(shown(directive("-", Size::Fixed(5), Size::None, b's'), &[string(b"ab")]), "ab   ");
        assert_eq!(shown(directive("", Size::None, Size::Fixed(2), b's'), &[string(b"abc")]), "ab");
        assert_eq!(shown(directive("0", Size::None, Size::None, b's'), &[string(b"ab")]), "ab\0");
        assert_eq!(shown(directive("#", Size::None, Size::None, b'c'), &[long(10)]), "\\n");
        assert_eq!(shown(directive("", Size::Fixed(3), Size::None, b'c'), &[long(0x141)]), "  A");
        assert_eq!(shown(directive("", Size::Fixed(2), Size::None, b'b'), &[long(0x4241)]), "AB");
        let word = || [long(0x4142_4344_4546_4748)];
        assert_eq!(shown(directive("", Size::Fixed(4), Size::Fixed(2), b'b'), &word()), "\0\0HG");
        assert_eq!(shown(directive("-", Size::Fixed(4), Size::Fixed(2), b'b'), &word()), "HG\0\0");
        assert_eq!(shown(directive("", Size::Fixed(10), Size::None, b'b'), &word()), "\0\0HGFEDCBA");
        assert_eq!(shown(directive("", Size::None, Size::Fixed(3), b'b'), &word()), "HGFEDCBA");
        assert_eq!(shown(directive("", Size::Fixed(6), Size::Fixed(2), b'M'), &[string(b"\x0a\xbc")]), "  0abc");
        let fault = vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        assert_eq!(shown(directive("", Size::Fixed(9), Size::Fixed(2), b'm'), &[fault]), "");
    }

    #[test]
    fn names_are_padded_and_truncated_as_strings() {
        assert_eq!(shown(directive("-", Size::Fixed(10), Size::None, b'N'), &[long(0x9004)]), "vfs_read  ");
        assert_eq!(shown(directive("", Size::Fixed(6), Size::Fixed(3), b'D'), &[long(0x9004)]), "   vfs");
        assert_eq!(shown(directive("", Size::Star, Size::None, b'A'), &[long(8), part(&[1, 2])]), " 0x1 0x2");
    }

    #[test]
    fn stars_come_before_their_value() {
        let piece = || directive("", Size::Star, Size::Star, b'd');
        assert_eq!(shown(piece(), &[long(-6), long(3), long(7)]), "007   ");
        assert_eq!(shown(piece(), &[long(4), long(-1), long(7)]), "   7");
        assert_eq!(shown(piece(), &[long(i64::MIN), long(0), long(7)]).len(), 1000);
    }

    #[test]
    fn a_short_payload_ends_the_text() {
        let pieces =
            [Piece::Literal(b"a".to_vec()), directive("", Size::None, Size::None, b'd'), Piece::Literal(b"b".to_vec())];
        let mut text = Text::new(100);
        assert_eq!(
            render(&pieces, &mut Payload::new(b"1234567"), &mut Symbols::new(None, Users::default()), &mut text),
            Err(ShortPayload)
        );
        assert_eq!(text.as_bytes(), b"a");
    }
}
