// SPDX-License-Identifier: GPL-2.0-or-later

//! Maps bytes of a string literal's value to places in the source.

use spile_source::{SourceMap, Span};

/// The source of bytes `start..end` of a literal's value, taking escapes into account. The whole literal if it is not
/// written in one piece (several adjacent literals, a script's argument).
pub(super) fn span_inside(sources: &SourceMap, literal: Span, value: &[u8], start: usize, end: usize) -> Span {
    let text = sources.file(literal.file).bytes.get(literal.start as usize..literal.end as usize).unwrap_or_default();
    match places(text, value) {
        Some(places) => {
            let place = |byte: usize| literal.start + places[byte.min(value.len())];
            Span { start: place(start), end: place(end.max(start)), ..literal }
        }
        None => literal,
    }
}

/// Offset of each byte of the value in the literal's text, and that of the closing quote.
fn places(text: &[u8], value: &[u8]) -> Option<Vec<u32>> {
    let mut places = Vec::with_capacity(value.len() + 1);
    if *text.first()? != b'"' {
        return None;
    }
    let mut at = 1;
    for &byte in value {
        places.push(at as u32);
        match *text.get(at)? {
            b'\\' => at += 1 + escape_length(text.get(at + 1..)?),
            written if written == byte => at += 1,
            _ => return None,
        }
    }
    places.push(at as u32);
    (text.get(at..)? == b"\"").then_some(places)
}

/// Length of an escape after its backslash, as the lexer reads it.
fn escape_length(text: &[u8]) -> usize {
    let count = |most: usize, test: fn(&u8) -> bool| text.iter().take(most).take_while(|byte| test(byte)).count();
    match text.first() {
        Some(b'0'..=b'7') => count(3, |byte| (b'0'..=b'7').contains(byte)),
        Some(b'x') => 1 + text[1..].iter().take(2).take_while(|byte| byte.is_ascii_hexdigit()).count(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_take_more_source_than_value() {
        assert_eq!(places(br#""a\\.\x41\101b""#, b"a\\.AAb").unwrap(), [1, 2, 4, 5, 9, 13, 14]);
        assert_eq!(places(br#""\x""#, b"x").unwrap(), [1, 3]);
        assert_eq!(places(br#""""#, b"").unwrap(), [1]);
    }

    #[test]
    fn text_that_is_not_the_literal_has_no_places() {
        assert_eq!(places(br#""a" "b""#, b"ab"), None);
        assert_eq!(places(b"@1", b"ab"), None);
        assert_eq!(places(b"", b""), None);
        assert_eq!(places(br#""ab"#, b"ab"), None);
        assert_eq!(places(br#""ab\"#, b"ab"), None);
    }
}
