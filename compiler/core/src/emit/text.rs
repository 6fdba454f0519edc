// SPDX-License-Identifier: GPL-2.0-or-later

//! Script text in C: the one way in which bytes of a script get into string literals and comments.

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
            // Three octal digits end the escape whatever follows.
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

/// Text for one line of a comment: it cannot end the comment, nor begin another, nor continue the line. Characters that
/// compilers warn of, such as those that turn the direction of text, become `?`.
pub(super) fn comment(text: &str) -> String {
    let shown = |c: char| match c {
        _ if c.is_whitespace() || c.is_control() => ' ',
        _ if c.is_ascii_graphic() || c.is_alphanumeric() => c,
        _ => '?',
    };
    let text: String = text.chars().map(shown).collect();
    // `??/` is a backslash to compilers that know trigraphs.
    let mut text = text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").replace("??", "? ?");
    // Nothing but a blank may follow a backslash.
    if text.ends_with('\\') {
        text.push(' ');
    }
    text
}

/// Bytes as the initialiser of an array, some to a line.
pub(super) fn bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 6);
    for (index, byte) in bytes.iter().enumerate() {
        if index % 16 == 0 {
            text.push_str("\n\t");
        }
        text.push_str(&format!("{byte:#04x},"));
    }
    text
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
