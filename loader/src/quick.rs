//! Formats that most prints have, of literals, `%d`, `%u`, `%x` and `%s` alone, applied without ceremony: what the loader does
//! for a record is part of what a probe costs. The text is [`crate::format`]'s; a test compares the two.

use std::sync::atomic::{AtomicU64, Ordering};

use spile_abi::format::{Directive, Flags, Piece, Size};
use spile_abi::record::FAULT;

#[derive(Debug)]
enum Step {
    Byte(u8),
    Bytes(Box<[u8]>),
    Decimal,
    /// And a byte behind it: a step less for most numbers.
    DecimalAnd(u8),
    Unsigned,
    Hex,
    Text,
}

#[derive(Debug)]
pub struct Quick {
    steps: Box<[Step]>,
    /// Most bytes that it writes, without those of strings.
    most: usize,
}

/// Digits of a number in base 10, a sign, and what decimal() writes behind them.
const MOST_DIGITS: usize = 24;

impl Quick {
    /// `None`: it takes more than such steps.
    pub fn of(pieces: &[Piece]) -> Option<Quick> {
        let mut steps = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match (steps.last_mut(), step(piece)?) {
                (Some(last @ Step::Decimal), Step::Byte(byte)) => *last = Step::DecimalAnd(byte),
                (_, step) => steps.push(step),
            }
        }
        let most = steps.iter().map(|step| match step {
            Step::Byte(_) => 1,
            Step::Bytes(bytes) => bytes.len(),
            Step::Decimal | Step::DecimalAnd(_) | Step::Unsigned | Step::Hex => MOST_DIGITS,
            Step::Text => 0,
        });
        Some(Quick { most: most.sum(), steps: steps.into() })
    }

    /// Appends the text of a payload. False where the payload is too short or says that something could not be read:
    /// nothing is appended then.
    #[inline]
    pub fn append(&self, payload: &[AtomicU64], text: &mut Vec<u8>) -> bool {
        let before = text.len();
        let whole = self.append_all(payload, text).is_some();
        if !whole {
            text.truncate(before);
        }
        whole
    }

    #[inline]
    fn append_all(&self, payload: &[AtomicU64], text: &mut Vec<u8>) -> Option<()> {
        let mut words = payload.iter().map(|word| word.load(Ordering::Relaxed));
        // Strings are no longer than the payload that they are in.
        text.reserve(self.most + size_of_val(payload));
        for step in &self.steps {
            match step {
                Step::Byte(byte) => text.push(*byte),
                Step::Bytes(bytes) => text.extend_from_slice(bytes),
                Step::Text => string(text, &mut words)?,
                Step::Decimal => signed(text, words.next()?, None),
                Step::DecimalAnd(byte) => signed(text, words.next()?, Some(*byte)),
                Step::Unsigned => decimal(text, words.next()?, None),
                Step::Hex => hex(text, words.next()?),
            }
        }
        Some(())
    }
}

/// As `printf` without flags, width and precision has it.
fn step(piece: &Piece) -> Option<Step> {
    let conversion = match piece {
        Piece::Literal(bytes) => match **bytes {
            [byte] => return Some(Step::Byte(byte)),
            _ => return Some(Step::Bytes(bytes.as_slice().into())),
        },
        Piece::Directive(Directive { conversion, flags, width: Size::None, precision: Size::None })
            if *flags == Flags::default() =>
        {
            *conversion
        }
        _ => return None,
    };
    match conversion {
        b'd' | b'i' => Some(Step::Decimal),
        b'u' => Some(Step::Unsigned),
        b'x' => Some(Step::Hex),
        b's' => Some(Step::Text),
        _ => None,
    }
}

/// A string part: its length and the first four bytes in one word.
fn string(text: &mut Vec<u8>, words: &mut impl Iterator<Item = u64>) -> Option<()> {
    let first = words.next()?;
    let length = first as u32;
    if length == FAULT {
        return None;
    }
    let end = text.len().checked_add(length as usize)?;
    text.extend_from_slice(&((first >> 32) as u32).to_le_bytes());
    while text.len() < end {
        text.extend_from_slice(&words.next()?.to_le_bytes());
    }
    text.truncate(end);
    Some(())
}

#[inline]
fn signed(text: &mut Vec<u8>, word: u64, then: Option<u8>) {
    let value = word as i64;
    if value < 0 {
        text.push(b'-');
    }
    decimal(text, value.unsigned_abs(), then);
}

/// The two digits of a number below 100, the first in the low byte.
const PAIRS: [u16; 100] = {
    let mut pairs = [0; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value as usize] = u16::from_le_bytes([b'0' + (value / 10) as u8, b'0' + (value % 10) as u8]);
        value += 1;
    }
    pairs
};

/// The four digits of a number below 10,000, the first in the low byte.
#[inline]
fn four(value: u64) -> u32 {
    let pair = |value: u64| u32::from(PAIRS[value as usize % 100]);
    pair(value / 100) | pair(value % 100) << 16
}

#[inline]
fn decimal(text: &mut Vec<u8>, value: u64, then: Option<u8>) {
    if value >= 10_000 {
        long_decimal(text, value, then);
        return;
    }
    // Eight bytes are written, then those behind the number are taken away: cheaper than a loop.
    let digits = if value < 10 { 1 } else { 2 + usize::from(value >= 100) + usize::from(value >= 1000) };
    let mut bytes = match digits {
        1 => u64::from(b'0') + value,
        _ => u64::from(four(value) >> (8 * (4 - digits))),
    };
    let mut end = text.len() + digits;
    if let Some(byte) = then {
        bytes |= u64::from(byte) << (8 * digits);
        end += 1;
    }
    text.extend_from_slice(&bytes.to_le_bytes());
    text.truncate(end);
}

#[inline(never)]
fn long_decimal(text: &mut Vec<u8>, value: u64, then: Option<u8>) {
    decimal(text, value / 10_000, None);
    text.extend_from_slice(&four(value % 10_000).to_le_bytes());
    text.extend(then);
}

fn hex(text: &mut Vec<u8>, value: u64) {
    let digits = (u64::BITS - value.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        text.push(b"0123456789abcdef"[(value >> (4 * digit) & 15) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format;
    use crate::payload::Payload;
    use crate::text::Text;

    fn plain(conversion: u8) -> Piece {
        Piece::Directive(Directive { conversion, flags: Flags::default(), width: Size::None, precision: Size::None })
    }

    fn words(payload: &[u8]) -> Vec<AtomicU64> {
        payload.chunks_exact(8).map(|word| AtomicU64::new(u64::from_le_bytes(word.try_into().expect("eight bytes")))).collect()
    }

    fn string(text: &[u8]) -> Vec<u8> {
        let mut part = (text.len() as u32).to_le_bytes().to_vec();
        part.extend(text);
        part.resize(part.len().next_multiple_of(8), 0);
        part
    }

    #[test]
    fn the_text_is_that_of_the_format() {
        let pieces = [plain(b'd'), Piece::Literal(b" ".to_vec()), plain(b'x'), Piece::Literal(b", ".to_vec()), plain(b'u'), plain(b's')];
        let quick = Quick::of(&pieces).expect("nothing but such steps");
        let mut quickly = Vec::new();
        for value in [0i64, 9, 10, 99, 100, 1000, 9999, 10_000, 100_070_009, -1, 123_456, i64::MIN, i64::MAX] {
            for text in [&b""[..], b"abcd", b"abcdefghi"] {
                let payload = [vec![value.to_le_bytes(); 3].concat(), string(text)].concat();
                let mut slowly = Text::new(1000);
                assert_eq!(format::render(&pieces, &mut Payload::new(&payload), &mut slowly), Ok(()));
                quickly.clear();
                assert!(quick.append(&words(&payload), &mut quickly));
                assert_eq!(String::from_utf8_lossy(&quickly), String::from_utf8_lossy(slowly.as_bytes()));
            }
        }
    }

    #[test]
    fn what_is_short_or_faulty_leaves_nothing() {
        let quick = Quick::of(&[Piece::Literal(b"a".to_vec()), plain(b'd'), plain(b's')]).expect("such steps");
        let long = 1u64.to_le_bytes();
        let ends: [&[u8]; 5] = [b"", b"\xff\xff\xff\xff\0\0\0\0", b"\xfe\xff\xff\xff\0\0\0\0", b"\x05\0\0\0abcd", b"\x0d\0\0\0abcdefghijkl"];
        for end in ends {
            let mut text = b"before".to_vec();
            assert!(!quick.append(&words(&[&long[..], end].concat()), &mut text), "{end:?}");
            assert_eq!(text, b"before");
        }
        assert!(!quick.append(&[], &mut Vec::new()));
    }

    #[test]
    fn other_formats_are_not_taken() {
        let wide = Directive { conversion: b'd', flags: Flags::default(), width: Size::Fixed(5), precision: Size::None };
        for piece in [Piece::Directive(wide), plain(b'p'), plain(b'm'), plain(b'c')] {
            assert!(Quick::of(&[piece]).is_none());
        }
    }
}
