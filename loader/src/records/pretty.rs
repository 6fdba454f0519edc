// SPDX-License-Identifier: GPL-2.0-or-later

//! Prints objects for `$x$` and `$x$$`: a description applied to the object's bytes and the strings it points to.
//!
//! Must match runtime-c/pretty.c, with the same limits: the strings were fetched in the order of this walk.

use spile_abi::format::{Pretty, PrettyOp, PrettyStyle};

use crate::records::payload::{Payload, ShortPayload};
use crate::records::text::Text;

/// Maximum nesting of repeats; beyond it the walk ends (SPILE_PRETTY_DEPTH).
const MAX_DEPTH: usize = 8;
/// Maximum number of elements of all repeats; beyond it the walk ends (SPILE_PRETTY_ELEMENTS).
const MAX_ELEMENTS: u32 = 65_536;

/// Why a walk ends early.
enum Stop {
    /// A limit is reached: the text so far is printed.
    Bound,
    ShortPayload,
}

impl From<ShortPayload> for Stop {
    fn from(_: ShortPayload) -> Stop {
        Stop::ShortPayload
    }
}

/// Appends the text of the object at the start of the payload.
pub fn render(description: &Pretty, payload: &mut Payload<'_>, text: &mut Text) -> Result<(), ShortPayload> {
    let Some(raw) = payload.bytes()? else {
        text.push(b"ERROR");
        return Ok(());
    };
    let pointer = if description.narrow { 4 } else { 8 };
    let mut walk = Renderer { raw, payload, text, pointer, elements: 0, separator: false, hidden: false };
    match walk.ops(&description.ops, 0, 0) {
        Ok(()) | Err(Stop::Bound) => Ok(()),
        Err(Stop::ShortPayload) => Err(ShortPayload),
    }
}

struct Renderer<'w, 'p> {
    raw: &'p [u8],
    payload: &'w mut Payload<'p>,
    text: &'w mut Text,
    /// Bytes of a pointer.
    pointer: u32,
    /// Elements visited so far.
    elements: u32,
    /// The next text starts a new element.
    separator: bool,
    /// Within something that is not printed.
    hidden: bool,
}

impl<'p> Renderer<'_, 'p> {
    fn ops(&mut self, ops: &[PrettyOp], base: u64, depth: usize) -> Result<(), Stop> {
        ops.iter().try_for_each(|op| match op {
            PrettyOp::Repeat { offset, count, stride, body } => {
                self.repeat(base.wrapping_add(u64::from(*offset)), *count, *stride, body, depth)
            }
            PrettyOp::When { offset, size, values, other, body } => {
                self.separate();
                let bytes = self.at(base, *offset, u32::from(*size));
                let holds = bytes.is_some_and(|bytes| values.contains(&field(bytes, 0, 0).1) != *other);
                let outer = self.hidden;
                self.hidden |= !holds;
                let ended = self.ops(body, base, depth);
                self.hidden = outer;
                ended
            }
            op => self.item(op, base),
        })
    }

    fn repeat(&mut self, first: u64, count: u32, stride: u32, body: &[PrettyOp], depth: usize) -> Result<(), Stop> {
        if count > 0 && depth == MAX_DEPTH {
            return Err(Stop::Bound);
        }
        for index in 0..count {
            let base = first.wrapping_add(u64::from(index) * u64::from(stride));
            self.separator |= index > 0;
            self.ops(body, base, depth + 1)?;
            self.elements += 1;
            if self.elements > MAX_ELEMENTS {
                return Err(Stop::Bound);
            }
        }
        Ok(())
    }

    /// Bytes of the object, `None` outside of it.
    fn at(&self, base: u64, offset: u32, count: u32) -> Option<&'p [u8]> {
        let start = usize::try_from(base.wrapping_add(u64::from(offset))).ok()?;
        self.raw.get(start..start.checked_add(count as usize)?)
    }

    fn separate(&mut self) {
        if std::mem::take(&mut self.separator) && !self.hidden {
            self.text.push(b", ");
        }
    }

    fn item(&mut self, op: &PrettyOp, base: u64) -> Result<(), Stop> {
        self.separate();
        if self.hidden {
            if let PrettyOp::StringPointer { .. } | PrettyOp::Text { .. } = op {
                self.payload.bytes()?;
            }
            return Ok(());
        }
        match op {
            PrettyOp::Literal(literal) => self.text.push(literal),
            PrettyOp::Unknown => self.text.push_byte(b'?'),
            PrettyOp::Integer { offset, size, first_bit, bits, style } => {
                match self.at(base, *offset, u32::from(*size)) {
                    Some(bytes) => self.integer(bytes, *first_bit, *bits, *style),
                    None => self.text.push(b"ERROR"),
                }
            }
            PrettyOp::Enum { offset, size, first_bit, bits, signed, names } => {
                match self.at(base, *offset, u32::from(*size)) {
                    Some(bytes) => self.named(bytes, *first_bit, *bits, *signed, names),
                    None => self.text.push(b"ERROR"),
                }
            }
            PrettyOp::Chars { offset, length } => match self.at(base, *offset, *length) {
                Some(bytes) => self.quoted(bytes),
                None => self.text.push(b"ERROR"),
            },
            PrettyOp::StringPointer { offset } | PrettyOp::Text { offset, .. } => {
                let string = self.payload.bytes()?;
                let pointer = self.at(base, *offset, self.pointer);
                let pointer = pointer.map(|bytes| field(bytes, 0, 0).1);
                match (pointer, string) {
                    (None, _) => self.text.push(b"ERROR"),
                    (Some(1..), Some(string)) if matches!(op, PrettyOp::Text { .. }) => self.quoted_whole(string),
                    (Some(1..), Some(string)) => self.quoted(string),
                    // It is no text: an empty buffer, or another member of a union.
                    (Some(address), _) => {
                        self.text.push(b"0x");
                        self.text.number(address, 16);
                    }
                }
            }
            // Visited by ops().
            PrettyOp::Repeat { .. } | PrettyOp::When { .. } => {}
        }
        Ok(())
    }

    fn quoted(&mut self, bytes: &[u8]) {
        let text = bytes.split(|byte| *byte == 0).next();
        self.quoted_whole(text.unwrap_or_default());
    }

    fn quoted_whole(&mut self, bytes: &[u8]) {
        self.text.push_byte(b'"');
        for byte in bytes {
            if self.text.is_full() {
                break;
            }
            self.text.escaped(*byte, b'"');
        }
        self.text.push_byte(b'"');
    }

    fn named(&mut self, bytes: &[u8], first_bit: u8, bits: u8, signed: bool, names: &[(i64, Vec<u8>)]) {
        let field = field(bytes, first_bit, bits);
        let number = if signed { field.0 } else { field.1 as i64 };
        match names.iter().find(|(known, _)| *known == number) {
            Some((_, name)) => self.text.push(name),
            None => {
                let style = if signed { PrettyStyle::Signed } else { PrettyStyle::Unsigned };
                self.integer(bytes, first_bit, bits, style);
            }
        }
    }

    fn integer(&mut self, bytes: &[u8], first_bit: u8, bits: u8, style: PrettyStyle) {
        if let Some((low, high)) = bytes.split_first_chunk::<8>().filter(|(_, high)| !high.is_empty()) {
            self.text.push(b"0x");
            match (u64::from_le_bytes(*low), field(high, 0, 0).1) {
                (low, 0) => self.text.number(low, 16),
                (low, high) => {
                    self.text.number(high, 16);
                    self.text.push(format!("{low:016x}").as_bytes());
                }
            }
            return;
        }
        let (signed, unsigned) = field(bytes, first_bit, bits);
        match style {
            PrettyStyle::Float => self.text.push(float(bytes).as_bytes()),
            PrettyStyle::Signed => {
                self.text.decimal(signed);
            }
            PrettyStyle::Unsigned => self.text.number(unsigned, 10),
            PrettyStyle::Char => {
                self.text.push_byte(b'\'');
                self.text.escaped(unsigned as u8, b'\'');
                self.text.push_byte(b'\'');
            }
            PrettyStyle::Hex | PrettyStyle::Function => {
                if style == PrettyStyle::Function {
                    self.text.push(b"<function>:");
                }
                self.text.push(b"0x");
                self.text.number(unsigned, 16);
            }
        }
    }
}

/// A number with a binary point, as `printf("%f")` prints it.
fn float(bytes: &[u8]) -> String {
    let number = match bytes.first_chunk::<8>() {
        Some(bytes) => f64::from_le_bytes(*bytes),
        None => bytes.first_chunk::<4>().map_or(f64::NAN, |bytes| f32::from_le_bytes(*bytes).into()),
    };
    if number.is_nan() { "nan".into() } else { format!("{number:.6}") }
}

/// A bit-field with and without its sign; `bits` 0: all of the bytes.
fn field(bytes: &[u8], first_bit: u8, bits: u8) -> (i64, u64) {
    let whole = match *bytes {
        [byte] => byte.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().rev().fold(0, |whole, byte| whole << 8 | u64::from(*byte)),
    };
    // SANITY: decode() lets only first_bit + bits <= 8 * size <= 64 through, and size >= 1.
    let bits = if bits == 0 { bytes.len() as u32 * 8 } else { u32::from(bits) };
    let unused = 64u32.saturating_sub(bits) & 63;
    let top = whole >> (first_bit & 63) << unused;
    (top as i64 >> unused, top >> unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floating_point_as_printf() {
        let texts = [
            (2.5f64.to_le_bytes().to_vec(), "2.500000"),
            ((-0.0f64).to_le_bytes().to_vec(), "-0.000000"),
            // Ties, to even.
            ((1.0f64 / 128.0).to_le_bytes().to_vec(), "0.007812"),
            ((3.0f64 / 128.0).to_le_bytes().to_vec(), "0.023438"),
            (9.999_999_9f64.to_le_bytes().to_vec(), "10.000000"),
            (1e22f64.to_le_bytes().to_vec(), "10000000000000000000000.000000"),
            (f64::NEG_INFINITY.to_le_bytes().to_vec(), "-inf"),
            ((-f64::NAN).to_le_bytes().to_vec(), "nan"),
            ((-0.1f32).to_le_bytes().to_vec(), "-0.100000"),
        ];
        texts.iter().for_each(|(bytes, text)| assert_eq!(float(bytes), *text));
    }

    fn part(bytes: &[u8]) -> Vec<u8> {
        let mut part = (bytes.len() as u32).to_le_bytes().to_vec();
        part.extend(bytes);
        part.resize(part.len().next_multiple_of(8), 0);
        part
    }

    fn shown(ops: Vec<PrettyOp>, payload: &[Vec<u8>]) -> String {
        let payload = payload.concat();
        let mut text = Text::new(1000);
        let ended = render(&Pretty { ops, ..Pretty::default() }, &mut Payload::new(&payload), &mut text);
        assert_eq!(ended, Ok(()));
        String::from_utf8_lossy(text.as_bytes()).into_owned()
    }

    fn integer(offset: u32, size: u8, first_bit: u8, bits: u8, style: PrettyStyle) -> PrettyOp {
        PrettyOp::Integer { offset, size, first_bit, bits, style }
    }

    #[test]
    fn integers_in_every_style() {
        let raw = part(&[0xfe, 0xff, 0xff, 0xff, b'\'', 0, 0, 0b1011_0100]);
        let cases = [
            (integer(0, 4, 0, 0, PrettyStyle::Signed), "-2"),
            (integer(0, 4, 0, 0, PrettyStyle::Unsigned), "4294967294"),
            (integer(0, 2, 0, 0, PrettyStyle::Hex), "0xfffe"),
            (integer(4, 1, 0, 0, PrettyStyle::Char), "'\\''"),
            (integer(5, 1, 0, 0, PrettyStyle::Char), "'\\000'"),
            (integer(4, 1, 0, 0, PrettyStyle::Function), "<function>:0x27"),
            (integer(7, 1, 2, 3, PrettyStyle::Unsigned), "5"),
            (integer(7, 1, 2, 3, PrettyStyle::Signed), "-3"),
            (integer(7, 2, 0, 0, PrettyStyle::Signed), "ERROR"),
        ];
        for (op, expected) in cases {
            assert_eq!(shown(vec![op], std::slice::from_ref(&raw)), expected);
        }
    }

    #[test]
    fn numbers_with_names() {
        let raw = part(&[0xfe, 0xff, 0xff, 0xff, 0b0001_1000]);
        let named = |offset, size, first_bit, bits, signed| PrettyOp::Enum {
            offset,
            size,
            first_bit,
            bits,
            signed,
            names: vec![
                (-2, b"MINUS".to_vec()),
                (3, b"THREE".to_vec()),
                (3, b"TRE".to_vec()),
                (0xffff_fffe, b"MOST".to_vec()),
            ],
        };
        let cases = [
            (named(0, 4, 0, 0, true), "MINUS"),
            (named(0, 4, 0, 0, false), "MOST"),
            (named(4, 1, 3, 2, false), "THREE"),
            (named(4, 1, 3, 2, true), "-1"),
            (named(4, 1, 0, 0, false), "24"),
            (named(7, 2, 0, 0, false), "ERROR"),
        ];
        for (op, expected) in cases {
            assert_eq!(shown(vec![op], std::slice::from_ref(&raw)), expected);
        }
    }

    #[test]
    fn text_and_pointers_to_text() {
        let raw = part(b"ab\"\0rest\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0");
        let ops = vec![
            PrettyOp::Chars { offset: 0, length: 8 },
            PrettyOp::Literal(b" ".to_vec()),
            PrettyOp::StringPointer { offset: 8 },
            PrettyOp::Literal(b" ".to_vec()),
            PrettyOp::StringPointer { offset: 16 },
            PrettyOp::Literal(b" ".to_vec()),
            PrettyOp::StringPointer { offset: 16 },
        ];
        let fault = vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let text = vec![PrettyOp::Text { offset: 16, length: 0 }, PrettyOp::Text { offset: 16, length: 0 }];
        assert_eq!(shown(text, &[raw.clone(), part(b"x\0y"), fault.clone()]), r#""x\000y"0x1"#);
        assert_eq!(shown(ops, &[raw, part(b""), part(b"x\ny"), fault]), r#""ab\"" 0x0 "x\ny" 0x1"#);
    }

    #[test]
    fn repeats_nest_and_separate() {
        let inner =
            PrettyOp::Repeat { offset: 0, count: 2, stride: 1, body: vec![integer(0, 1, 0, 0, PrettyStyle::Signed)] };
        let outer = PrettyOp::Repeat {
            offset: 1,
            count: 2,
            stride: 2,
            body: vec![PrettyOp::Literal(b"{".to_vec()), inner, PrettyOp::Literal(b"}".to_vec())],
        };
        assert_eq!(shown(vec![outer], &[part(&[0, 1, 2, 3, 4])]), "{1, 2}, {3, 4}");
        let none = PrettyOp::Repeat { offset: 0, count: 0, stride: 1, body: vec![PrettyOp::Unknown] };
        assert_eq!(shown(vec![none, PrettyOp::Unknown], &[part(b"")]), "?");
    }

    #[test]
    fn a_part_is_shown_when_a_number_has_a_value() {
        let raw = part(&[1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        let when = |values: &[u64], other, text: &str| PrettyOp::When {
            offset: 0,
            size: 4,
            values: values.to_vec(),
            other,
            body: vec![PrettyOp::Literal(text.into()), PrettyOp::StringPointer { offset: 8 }],
        };
        let ops =
            vec![when(&[0], false, "a"), when(&[2, 1], false, "b"), when(&[0, 1], true, "c"), when(&[], true, "d")];
        let strings = ["A", "B", "C", "D"].map(|text| part(text.as_bytes()));
        let payload = [vec![raw], strings.to_vec()].concat();
        assert_eq!(shown(ops, &payload), r#"b"B"d"D""#);
        let inner = PrettyOp::When { offset: 0, size: 1, values: vec![1], other: false, body: vec![PrettyOp::Unknown] };
        let repeat = PrettyOp::Repeat { offset: 0, count: 4, stride: 1, body: vec![inner] };
        assert_eq!(shown(vec![repeat], &[part(&[1, 0, 0, 1])]), "?, , , ?");
    }

    #[test]
    fn an_unreadable_object_is_one_error() {
        assert_eq!(shown(vec![PrettyOp::Unknown], &[vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]]), "ERROR");
    }

    #[test]
    fn endless_repeats_end() {
        let op = PrettyOp::Repeat { offset: 0, count: u32::MAX, stride: 0, body: vec![] };
        let twice = PrettyOp::Repeat { offset: 0, count: u32::MAX, stride: 0, body: vec![op, PrettyOp::Unknown] };
        assert_eq!(shown(vec![twice, PrettyOp::Unknown], &[part(b"")]), "");
    }
}
