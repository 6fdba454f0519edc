// SPDX-License-Identifier: GPL-2.0-or-later

//! Format strings of printf and sprintf: text to pieces.
//!
//! `%[flag][width|*][.precision|.*][l]conversion`; see the language reference, "printf".

use spile_abi::format::{Directive, Flags, Size};

/// A piece of a format string; offsets are bytes of the string's value, not of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Literal(Vec<u8>),
    Directive { directive: Directive, start: usize, end: usize },
}

/// A directive of a format string that is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// What is wrong with the directive at `start..end` of the value.
    pub kind: FormatErrorKind,
    /// First byte of the directive.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

/// Why a directive is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatErrorKind {
    /// The string ends inside a directive.
    Unfinished,
    /// No such conversion.
    UnknownConversion(u8),
    /// A flag after another one.
    SecondFlag(u8),
}

/// Largest width or precision that makes a difference: no record can hold more. That of a memory dump is an error at run time.
pub const MAX_SIZE: u32 = 8192;

/// The type of a directive's argument.
pub fn takes_string(directive: &Directive) -> bool {
    directive.conversion == b's'
}

/// Splits the value of a format string into literals and directives, in order. `%%` becomes a literal `%`. Error: the first
/// invalid directive.
pub fn parse(format: &[u8]) -> Result<Vec<Piece>, FormatError> {
    let mut pieces = Vec::new();
    let mut literal = Vec::new();
    let mut at = 0;
    while at < format.len() {
        if format[at] != b'%' {
            literal.push(format[at]);
            at += 1;
            continue;
        }
        if format.get(at + 1) == Some(&b'%') {
            literal.push(b'%');
            at += 2;
            continue;
        }
        let (directive, end) = directive(format, at)?;
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Directive { directive, start: at, end });
        at = end;
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// The directive at `start` and where it ends.
fn directive(format: &[u8], start: usize) -> Result<(Directive, usize), FormatError> {
    let mut at = start + 1;
    let mut flags = Flags::default();
    // One flag; a 0 after it begins the width.
    at += 1;
    match format.get(at - 1) {
        Some(b'0') => flags.zero = true,
        Some(b'+') => flags.plus = true,
        Some(b'-') => flags.minus = true,
        Some(b' ') => flags.space = true,
        Some(b'#') => flags.sharp = true,
        _ => at -= 1,
    }
    let width = size(format, &mut at);
    let mut precision = Size::None;
    if format.get(at) == Some(&b'.') {
        at += 1;
        precision = match size(format, &mut at) {
            Size::None => Size::Fixed(0),
            size => size,
        };
    }
    if format.get(at) == Some(&b'l') {
        at += 1;
    }
    match format.get(at) {
        None => Err(FormatError { kind: FormatErrorKind::Unfinished, start, end: format.len() }),
        Some(&conversion) if b"diuoxXpscbmM".contains(&conversion) => {
            Ok((Directive { conversion, flags, width, precision }, at + 1))
        }
        Some(&other) => {
            let second = flags != Flags::default() && at == start + 2 && b"0+- #".contains(&other);
            let kind =
                if second { FormatErrorKind::SecondFlag(other) } else { FormatErrorKind::UnknownConversion(other) };
            Err(FormatError { kind, start, end: at + 1 })
        }
    }
}

fn size(format: &[u8], at: &mut usize) -> Size {
    if format.get(*at) == Some(&b'*') {
        *at += 1;
        return Size::Star;
    }
    let mut value = None;
    while let Some(digit) = format.get(*at).filter(|byte| byte.is_ascii_digit()) {
        let next = value.unwrap_or(0u64).saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        value = Some(next);
        *at += 1;
    }
    match value {
        None => Size::None,
        Some(value) => Size::Fixed(value.min(i32::MAX as u64) as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(format: &str) -> Directive {
        match parse(format.as_bytes()).unwrap().as_slice() {
            [Piece::Directive { directive, .. }] => directive.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_width_precision() {
        let directive = only("%#10.*lx");
        assert_eq!(directive.conversion, b'x');
        assert!(directive.flags.sharp && !directive.flags.minus && !directive.flags.zero);
        assert_eq!((directive.width, directive.precision), (Size::Fixed(10), Size::Star));
        assert_eq!(only("%.s").precision, Size::Fixed(0));
    }

    #[test]
    fn percent_sign_is_literal() {
        assert_eq!(parse(b"100%%\n").unwrap(), [Piece::Literal(b"100%\n".to_vec())]);
    }

    #[test]
    fn wrong_directives() {
        let kind = |format: &str| parse(format.as_bytes()).unwrap_err().kind;
        assert_eq!(kind("a %"), FormatErrorKind::Unfinished);
        assert_eq!(kind("%+-5d"), FormatErrorKind::SecondFlag(b'-'));
        assert_eq!(kind("%-5-d"), FormatErrorKind::UnknownConversion(b'-'));
        assert_eq!(kind("%lld"), FormatErrorKind::UnknownConversion(b'l'));
        assert_eq!(kind("%f"), FormatErrorKind::UnknownConversion(b'f'));
    }

    #[test]
    fn sizes_of_any_length() {
        let precision = |format: &[u8]| match parse(format).as_deref() {
            Ok([Piece::Directive { directive, .. }]) => directive.precision,
            other => panic!("{other:?}"),
        };
        assert_eq!(precision(b"%.9999M"), Size::Fixed(9999));
        assert_eq!(precision(b"%.99999999999999999999m"), Size::Fixed(i32::MAX as u32));
    }
}
