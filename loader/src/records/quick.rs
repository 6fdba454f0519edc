// SPDX-License-Identifier: GPL-2.0-or-later

//! A fast path for formats that consist of literals, `%d`, `%u`, `%x` and `%s`: the loader's work for a record is part
//! of a probe's cost. The text is the same as that of [`crate::records::format`]; a test compares the two.

use std::sync::atomic::{AtomicU64, Ordering};

use spile_abi::format::{Directive, Flags, Piece, Size};
use spile_abi::record::FAULT;

use crate::records::text::hex_digit;

#[derive(Debug)]
enum Step {
    /// Writes this many bytes of a word.
    ShortPayload(u64, usize),
    Bytes(Box<[u8]>),
    Decimal,
    /// Followed by a byte: saves a step for most numbers.
    DecimalAnd(u8),
    Unsigned,
    Hex,
    Text,
}

/// Formats compiled to steps.
#[derive(Debug, Default)]
pub struct CompiledFormats {
    /// None: it is left to the slow path.
    steps: Option<Box<[Step]>>,
    /// If there is nothing but numbers, each followed by a byte: these bytes. Most of what a record of numbers costs is
    /// to tell which step is next.
    after_numbers: Box<[u8]>,
}

impl CompiledFormats {
    /// `None`: it needs other or more steps.
    pub fn of(pieces: &[Piece]) -> Option<CompiledFormats> {
        let mut steps = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match (steps.last_mut(), step(piece)?) {
                (Some(last @ Step::Decimal), Step::ShortPayload(word, 1)) => *last = Step::DecimalAnd(word as u8),
                (_, step) => steps.push(step),
            }
        }
        let after = |step: &Step| match step {
            Step::DecimalAnd(byte) => Some(*byte),
            _ => None,
        };
        let after_numbers = steps.iter().map(after).collect::<Option<Box<[u8]>>>().unwrap_or_default();
        Some(CompiledFormats { steps: Some(steps.into()), after_numbers })
    }

    /// Writes the text of a payload at the start of `room` and returns the unused rest. `None` if the payload is too
    /// short or contains an unreadable value, or if there is not enough room: the contents of `room` are then
    /// undefined.
    #[inline]
    pub fn write<'r>(&self, payload: &[AtomicU64], room: &'r mut [u8]) -> Option<&'r mut [u8]> {
        if !self.after_numbers.is_empty()
            && let Some(used) = small_numbers(payload, &self.after_numbers, room)
        {
            return room.get_mut(used..);
        }
        self.write_steps(payload, room)
    }

    /// Not inline: [`CompiledFormats::write`] has the registers for itself then.
    #[inline(never)]
    fn write_steps<'r>(&self, payload: &[AtomicU64], room: &'r mut [u8]) -> Option<&'r mut [u8]> {
        let mut words = payload.iter().map(|word| word.load(Ordering::Relaxed));
        let mut rest = room;
        for step in self.steps.as_deref()? {
            rest = match step {
                Step::DecimalAnd(byte) => signed(rest, words.next()?, Some(*byte))?,
                Step::ShortPayload(word, count) => put(rest, *word, *count)?,
                Step::Bytes(bytes) => {
                    let (place, behind) = rest.split_at_mut_checked(bytes.len())?;
                    place.copy_from_slice(bytes);
                    behind
                }
                Step::Text => string(rest, &mut words)?,
                Step::Decimal => signed(rest, words.next()?, None)?,
                Step::Unsigned => decimal(rest, words.next()?, None)?,
                Step::Hex => hex(rest, words.next()?)?,
            };
        }
        Some(rest)
    }
}

/// Writes numbers below 1000, each followed by a byte; returns the number of bytes. `None`: others, or little room.
#[inline]
fn small_numbers(payload: &[AtomicU64], after: &[u8], room: &mut [u8]) -> Option<usize> {
    const MOST: usize = size_of::<u32>();
    let payload = payload.get(..after.len())?;
    if room.len() < MOST * after.len() {
        return None;
    }
    let mut used = 0;
    for (word, &byte) in payload.iter().zip(after) {
        let entry = *DIGITS.get(word.load(Ordering::Relaxed) as usize)?;
        let count = (entry >> 30) as usize;
        // SAFETY: there is room for MOST bytes for each number. One takes its digits, at most three, and a byte, so this
        // one's begin at most MOST bytes after the last one's.
        let place = unsafe { room.as_mut_ptr().add(used) };
        // SAFETY: as above.
        unsafe { place.cast::<u32>().write_unaligned(entry.to_le()) };
        // SAFETY: as above; `count` is at most three.
        let end = unsafe { place.add(count) };
        // SAFETY: as above.
        unsafe { end.write(byte) };
        used += count + 1;
    }
    Some(used)
}

/// Bytes always left unused: numbers are written eight bytes at a time, and the excess is overwritten.
pub const SLACK: usize = 8;

/// Writes the first `count` bytes of a word, at most [`SLACK`]; returns the rest.
#[inline]
fn put(room: &mut [u8], word: u64, count: usize) -> Option<&mut [u8]> {
    *room.first_chunk_mut::<SLACK>()? = word.to_le_bytes();
    room.get_mut(count..)
}

/// As printf without flags, width and precision.
fn step(piece: &Piece) -> Option<Step> {
    let conversion = match piece {
        Piece::Literal(bytes) if bytes.len() <= SLACK => {
            let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            return Some(Step::ShortPayload(word, bytes.len()));
        }
        Piece::Literal(bytes) => return Some(Step::Bytes(bytes.as_slice().into())),
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
fn string<'r>(room: &'r mut [u8], words: &mut impl Iterator<Item = u64>) -> Option<&'r mut [u8]> {
    let first = words.next()?;
    let length = first as u32;
    if length == FAULT {
        return None;
    }
    let mut left = length as usize;
    let mut rest = put(room, first >> 32, left.min(4))?;
    left = left.saturating_sub(4);
    while left > 0 {
        let count = left.min(SLACK);
        rest = put(rest, words.next()?, count)?;
        left -= count;
    }
    Some(rest)
}

#[inline]
fn signed(room: &mut [u8], word: u64, then: Option<u8>) -> Option<&mut [u8]> {
    if word < 1000 {
        return small(room, word, then);
    }
    let value = word as i64;
    match value < 0 {
        true => decimal(put(room, u64::from(b'-'), 1)?, value.unsigned_abs(), then),
        false => long(room, word, then),
    }
}

#[inline]
fn decimal(room: &mut [u8], value: u64, then: Option<u8>) -> Option<&mut [u8]> {
    if value < 1000 { small(room, value, then) } else { long(room, value, then) }
}

/// The digits of a number below 1000, the first in the low byte; their count is in the two highest bits.
const DIGITS: [u32; 1000] = {
    let mut table = [0; 1000];
    let mut value = 0;
    while value < 1000 {
        let count = 1 + (value >= 10) as u32 + (value >= 100) as u32;
        #[expect(clippy::indexing_slicing, reason = "checked by the compiler, which evaluates it")]
        {
            table[value as usize] = three(value) >> (8 * (3 - count)) | count << 30;
        }
        value += 1;
    }
    table
};

/// All three digits of a number below 1000, the first in the low byte.
const fn three(value: u32) -> u32 {
    0x30_30_30 | (value / 100) | ((value / 10 % 10) << 8) | ((value % 10) << 16)
}

/// Writes a number below 1000. The bytes of the table entry after the digits are written too, then overwritten.
#[inline]
fn small(room: &mut [u8], value: u64, then: Option<u8>) -> Option<&mut [u8]> {
    let entry = *DIGITS.get(value as usize)?;
    let count = (entry >> 30) as usize;
    let place = room.first_chunk_mut::<SLACK>()?;
    *place.first_chunk_mut()? = entry.to_le_bytes();
    match then {
        Some(byte) => {
            *place.get_mut(count)? = byte;
            room.get_mut(count + 1..)
        }
        None => room.get_mut(count..),
    }
}

/// Writes any other number.
#[inline(never)]
fn long(room: &mut [u8], value: u64, then: Option<u8>) -> Option<&mut [u8]> {
    let rest = decimal(room, value / 1000, None)?;
    let word = u64::from(three((value % 1000) as u32));
    match then {
        Some(byte) => put(rest, word | u64::from(byte) << 24, 4),
        None => put(rest, word, 3),
    }
}

fn hex(mut room: &mut [u8], value: u64) -> Option<&mut [u8]> {
    let digits = (u64::BITS - value.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        room = put(room, u64::from(hex_digit((value >> (4 * digit) & 15) as u8)), 1)?;
    }
    Some(room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::format;
    use crate::records::payload::Payload;
    use crate::records::symbol::Symbols;
    use crate::records::text::Text;
    use crate::records::user::Users;

    fn plain(conversion: u8) -> Piece {
        Piece::Directive(Directive { conversion, flags: Flags::default(), width: Size::None, precision: Size::None })
    }

    fn words(payload: &[u8]) -> Vec<AtomicU64> {
        payload
            .chunks_exact(8)
            .map(|word| AtomicU64::new(u64::from_le_bytes(word.try_into().expect("eight bytes"))))
            .collect()
    }

    fn string(text: &[u8]) -> Vec<u8> {
        let mut part = (text.len() as u32).to_le_bytes().to_vec();
        part.extend(text);
        part.resize(part.len().next_multiple_of(8), 0);
        part
    }

    /// The output with this much room.
    fn written(quick: &CompiledFormats, payload: &[AtomicU64], room: usize) -> Option<String> {
        let mut memory = vec![b'?'; room];
        let left = quick.write(payload, &mut memory)?.len();
        Some(String::from_utf8_lossy(&memory[..room - left]).into_owned())
    }

    #[test]
    fn the_text_is_the_same_as_by_the_slow_path() {
        let pieces = [
            plain(b'd'),
            Piece::Literal(b" ".to_vec()),
            plain(b'x'),
            Piece::Literal(b", ".to_vec()),
            plain(b'u'),
            plain(b's'),
        ];
        let quick = CompiledFormats::of(&pieces).expect("nothing but such steps");
        for value in
            [0i64, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 100_070_009, -1, -999, -1000, 123_456, i64::MIN, i64::MAX]
        {
            for text in [&b""[..], b"abcd", b"abcdefghi"] {
                let payload = [[value.to_le_bytes(); 3].concat(), string(text)].concat();
                let mut slowly = Text::new(1000);
                assert_eq!(
                    format::render(
                        &pieces,
                        &mut Payload::new(&payload),
                        &mut Symbols::new(None, Users::default()),
                        &mut slowly
                    ),
                    Ok(())
                );
                let (slowly, words) = (String::from_utf8_lossy(slowly.as_bytes()).into_owned(), words(&payload));
                let length = slowly.len();
                assert!((0..length).all(|short| written(&quick, &words, short).is_none()));
                assert_eq!(written(&quick, &words, length + SLACK), Some(slowly));
            }
        }
    }

    #[test]
    fn numbers_are_as_rust_prints_them() {
        let quick = CompiledFormats::of(&[plain(b'd'), Piece::Literal(b"\n".to_vec())]).expect("such steps");
        for value in (-2000..12_000).chain((0..63).flat_map(|bit| [(1i64 << bit) - 1, 1 << bit, -(1 << bit)])) {
            assert_eq!(written(&quick, &[AtomicU64::new(value as u64)], 40), Some(format!("{value}\n")));
        }
    }

    #[test]
    fn several_numbers_need_room_and_payload() {
        let literal = |bytes: &[u8]| Piece::Literal(bytes.to_vec());
        let quick =
            CompiledFormats::of(&[plain(b'd'), literal(b" "), plain(b'd'), literal(b"\n")]).expect("such steps");
        let payload = |values: [i64; 2]| values.map(|value| AtomicU64::new(value as u64));
        assert_eq!(written(&quick, &payload([7, 999]), 8), Some("7 999\n".into()));
        assert_eq!(written(&quick, &payload([7, 1000]), 40), Some("7 1000\n".into()));
        assert_eq!(written(&quick, &payload([-7, 0]), 40), Some("-7 0\n".into()));
        assert_eq!(written(&quick, &payload([7, 999]), 7), None);
        assert_eq!(written(&quick, &payload([7, 999])[..1], 40), None);
    }

    #[test]
    fn short_or_unreadable_payloads_are_refused() {
        let quick =
            CompiledFormats::of(&[Piece::Literal(b"a".to_vec()), plain(b'd'), plain(b's')]).expect("such steps");
        let long = 1u64.to_le_bytes();
        let ends: [&[u8]; 5] = [
            b"",
            b"\xff\xff\xff\xff\0\0\0\0",
            b"\xfe\xff\xff\xff\0\0\0\0",
            b"\x05\0\0\0abcd",
            b"\x0d\0\0\0abcdefghijkl",
        ];
        for end in ends {
            assert_eq!(written(&quick, &words(&[&long[..], end].concat()), 100), None, "{end:?}");
        }
        assert_eq!(written(&quick, &[], 100), None);
    }

    #[test]
    fn other_formats_are_left_to_the_slow_path() {
        let wide =
            Directive { conversion: b'd', flags: Flags::default(), width: Size::Fixed(5), precision: Size::None };
        for piece in [Piece::Directive(wide), plain(b'p'), plain(b'm'), plain(b'c'), plain(b'N')] {
            assert!(CompiledFormats::of(&[piece]).is_none());
        }
    }
}
