// SPDX-License-Identifier: GPL-2.0-or-later

//! Script text in C: the only way in which bytes of a script get into string literals and comments.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

/// A C string literal with these bytes.
pub(super) fn literal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for &byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            // `?` could begin a trigraph.
            b'?' => text.push_str("\\?"),
            0x20..=0x7e => text.push(byte as char),
            // Three octal digits end the escape, whatever follows.
            _ => text.extend(['\\', octal(byte >> 6), octal(byte >> 3), octal(byte)]),
        }
    }
    text.push('"');
    text
}

/// The lowest three bits as a digit.
fn octal(byte: u8) -> char {
    char::from(b'0' + (byte & 7))
}

/// Text for one line of a comment: it cannot end the comment, begin another, or continue the line. Characters that
/// compilers warn of, such as those that change the direction of text, become `?`.
pub(super) fn comment(text: &str) -> String {
    let shown = |c: char| match c {
        _ if c.is_whitespace() || c.is_control() => ' ',
        _ if c.is_ascii_graphic() || c.is_alphanumeric() => c,
        _ => '?',
    };
    let text: String = text.chars().map(shown).collect();
    // `??/` is a backslash to compilers that know trigraphs.
    let mut text = text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").replace("??", "? ?");
    // A backslash at the end of the line would continue it.
    if text.ends_with('\\') {
        text.push(' ');
    }
    text
}

/// Bytes as the initialiser of an array that has room for them alone, several to a line. A literal: compilers read one
/// fifteen times as fast as a list of numbers, and the description of thousands of probes is megabytes of C.
pub(super) fn bytes(bytes: &[u8]) -> String {
    const EACH: usize = 64;
    let mut text = String::with_capacity(bytes.len() * 3);
    for line in bytes.chunks(EACH) {
        text.push_str("\n\t");
        text.push_str(&literal(line));
    }
    if text.is_empty() { "\"\"".into() } else { text }
}

/// A number of 64 bits, as an initialiser.
pub(super) fn long(value: i64) -> String {
    if value == i64::MIN { "-9223372036854775807LL - 1".into() } else { format!("{value}LL") }
}

/// A number for a template: [`long`], or `0` where a variable has no initial value.
pub(super) enum Long {
    Suffixed(i64),
    Zero,
}

impl Serialize for Long {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Long::Suffixed(value) => serializer.serialize_str(&long(*value)),
            Long::Zero => serializer.serialize_str("0"),
        }
    }
}

/// A string literal for a template: [`literal`].
pub(super) struct Literal<'p>(Cow<'p, [u8]>);

impl<'p, T: Into<Cow<'p, [u8]>>> From<T> for Literal<'p> {
    fn from(bytes: T) -> Literal<'p> {
        Literal(bytes.into())
    }
}

impl Serialize for Literal<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&literal(&self.0))
    }
}

/// An array's bytes for a template: [`bytes`].
pub(super) struct Bytes<'p>(Cow<'p, [u8]>);

impl<'p, T: Into<Cow<'p, [u8]>>> From<T> for Bytes<'p> {
    fn from(bytes: T) -> Bytes<'p> {
        Bytes(bytes.into())
    }
}

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&bytes(&self.0))
    }
}

/// Text in a comment of a template: [`comment`].
pub(super) struct Comment<'p>(pub &'p str);

impl Serialize for Comment<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&comment(self.0))
    }
}

/// An address or a set of bits for a template, in hex.
pub(super) struct Hex(pub u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{:#x}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_script_leaves_its_literal() {
        assert_eq!(literal(b"a\"b\\c\n"), r#""a\"b\\c\n""#);
        assert_eq!(literal(b"\x001??/"), r#""\0001\?\?/""#);
        assert_eq!(literal("é".as_bytes()), r#""\303\251""#);
    }

    #[test]
    fn comments_stay_comments() {
        assert_eq!(comment("a */ b /* c"), "a * / b / * c");
        assert_eq!(comment("/*/ **/"), "/ * / ** /");
        assert_eq!(comment("*\\\n/ x"), "*\\ / x");
        assert_eq!(comment("*??/\r\n/ ???/"), "*? ?/  / ? ? ?/");
        assert_eq!(comment("end\\"), "end\\ ");
        assert_eq!(comment("\u{202e}x\0\u{2028}\u{e9}"), "?x  \u{e9}");
    }
}
