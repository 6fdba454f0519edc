// SPDX-License-Identifier: GPL-2.0-or-later

//! Escapes untrusted text (names of processes and files, strings of scripts, data from a module) in our output: it
//! cannot end a line, start another one, or contain terminal control sequences.
//!
//! All messages of the loader are escaped here on output: `report`, `output::Sinks::message`, `notify`; a module's
//! description is escaped on input (`file::Description`). The output of a script is unchanged without `--escape`.

use std::borrow::Cow;
use std::fmt::Write;

/// Control characters, including C1, and Unicode's bidirectional, invisible and line-breaking ones.
pub fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// One line, without its newline: `\n \r \t`, `\x1b` for characters of one byte in UTF-8, `\u{202e}` for the rest. Backslashes are not escaped.
pub fn line(text: &str) -> Cow<'_, str> {
    // The usual case: descriptions of modules have megabytes of it. No early end, so that many bytes are compared at once.
    if text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    match text.contains(is_obeyed) {
        true => {
            let mut out = String::with_capacity(text.len() + 8);
            text.chars().for_each(|character| push(&mut out, character));
            Cow::Owned(out)
        }
        false => Cow::Borrowed(text),
    }
}

/// Several lines, each as [`line`]; newlines are unchanged.
pub fn lines(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// As [`line`], for bytes that may be invalid UTF-8: `\xff`.
pub fn bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|character| push(&mut out, character));
        push_bytes(&mut out, chunk.invalid());
    }
    out
}

/// Output of a script: newlines and tabs are unchanged.
pub fn output(bytes: &[u8]) -> Vec<u8> {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' | '\t' => out.push(character),
                other => push(&mut out, other),
            }
        }
        push_bytes(&mut out, chunk.invalid());
    }
    out.into_bytes()
}

/// Valid JSON, with further characters escaped as `\u202e`.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match is_obeyed(character) {
            true => character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(out, "\\u{unit:04x}");
            }),
            false => out.push(character),
        }
    }
    out
}

fn push(out: &mut String, character: char) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        other if !is_obeyed(other) => out.push(other),
        other if other.is_ascii() => push_bytes(out, &[other as u8]),
        other => out.extend(other.escape_unicode()),
    }
}

fn push_bytes(out: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| {
        let _ = write!(out, "\\x{byte:02x}");
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "\"\n\x1b[31mERROR: x\r\u{9b}2J\u{202e}\0\x7f";

    #[test]
    fn nothing_is_obeyed_and_nothing_else_is_changed() {
        assert_eq!(line(HOSTILE), r#""\n\x1b[31mERROR: x\r\u{9b}2J\u{202e}\x00\x7f"#);
        assert_eq!(line("é 漢 \\n 'a'"), "é 漢 \\n 'a'");
        assert_eq!(lines("a\n\x1bb\n"), "a\n\\x1bb\n");
        assert_eq!(bytes(b"a\xff\xc2\x9b\n"), r"a\xff\u{9b}\n");
        assert_eq!(output(b"a\tb\n\x1b[2J\xff"), b"a\tb\n\\x1b[2J\\xff");
    }

    #[test]
    fn every_character_once() {
        for character in '\0'..=char::MAX {
            let text = character.to_string();
            let shown = line(&text);
            assert!(!shown.contains(is_obeyed) && line(&shown) == shown, "{character:?}");
            assert_eq!(shown == text.as_str(), !is_obeyed(character), "{character:?}");
        }
    }
}
