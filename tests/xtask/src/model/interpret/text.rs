// SPDX-License-Identifier: GPL-2.0-or-later

//! The library's functions on strings.

use super::{Evaluated, error};

/// At most `length` bytes from `start` on, counted from 0; empty if there are none.
pub fn substr(text: &[u8], start: i64, length: i64) -> Vec<u8> {
    match usize::try_from(start) {
        Ok(start) if start < text.len() && length > 0 => {
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(text.len() - start);
            text[start..start + length].to_vec()
        }
        _ => Vec::new(),
    }
}

/// The first place at which `wanted` begins.
pub fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    (0..=text.len()).find(|at| text[*at..].starts_with(wanted))
}

/// The byte at a position.
pub(super) fn stringat(text: &[u8], position: i64) -> Evaluated<i64> {
    match usize::try_from(position).ok().and_then(|at| text.get(at)) {
        Some(byte) => Ok(i64::from(*byte)),
        None => error(&format!("Position out of bounds: {position} of a string of {} bytes", text.len())),
    }
}

/// All occurrences, from the left; replacements are not searched.
pub fn replace(text: &[u8], wanted: &[u8], with: &[u8]) -> Vec<u8> {
    if wanted.is_empty() {
        return text.to_vec();
    }
    let (mut rest, mut replaced) = (text, Vec::new());
    while let Some(at) = find(rest, wanted) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(with);
        rest = &rest[at + wanted.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

/// The number at the text's start, as C's strtol reads it except for spaces; too large numbers wrap. Base 0: as
/// written.
pub fn strtol(text: &[u8], base: i64) -> i64 {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let hexadecimal = matches!(digits, [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit());
    let (base, digits) = match base {
        0 | 16 if hexadecimal => (16, &digits[2..]),
        0 if digits.first() == Some(&b'0') => (8, digits),
        0 => (10, digits),
        _ => (base as u32, digits),
    };
    // As the kernel's function, which knows no other digits.
    let values = digits.iter().map_while(|byte| char::from(*byte).to_digit(16).filter(|digit| *digit < base));
    let number = values.fold(0i64, |number, digit| number.wrapping_mul(i64::from(base)).wrapping_add(i64::from(digit)));
    if negative { number.wrapping_neg() } else { number }
}

/// The next part that is not empty, and the text after it: nothing if the text's end was reached.
pub fn token(text: &[u8], delimiters: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    let Some(start) = text.iter().position(|byte| !delimiters.contains(byte)) else {
        return (Vec::new(), None);
    };
    let text = &text[start..];
    match text.iter().position(|byte| delimiters.contains(byte)) {
        Some(end) => (text[..end].to_vec(), Some(text[end + 1..].to_vec())),
        None => (text.to_vec(), None),
    }
}
