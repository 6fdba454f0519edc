// SPDX-License-Identifier: GPL-2.0-or-later

//! What comes from outside (names of processes and files, strings of scripts, what a module says) in lines of ours: nothing of it
//! ends the line, begins another one, or is obeyed by a terminal.
//!
//! All that the loader says in its own name goes through here where it leaves: `report`, `output::Sinks::message`,
//! `notify`; and what a module says of itself where it comes in (`file::Description`). What a script prints stays
//! as it is, without `--escape`.

use std::borrow::Cow;
use std::fmt::Write;

/// Control characters, of the upper half too, and those that Unicode has to turn text around, hide it or break lines.
pub fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// One line, without its end: `\n \r \t`, `\x1b` for what has one byte in UTF-8, `\u{202e}` for the rest. A backslash stays one.
pub fn line(text: &str) -> Cow<'_, str> {
    match text.contains(is_obeyed) {
        true => {
            let mut out = String::with_capacity(text.len() + 8);
            text.chars().for_each(|character| push(&mut out, character));
            Cow::Owned(out)
        }
        false => Cow::Borrowed(text),
    }
}

/// Several lines, each as [`line`]; their ends stay.
pub fn lines(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// As [`line`], of bytes that may be no text: `\xff`.
pub fn bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|character| push(&mut out, character));
        push_bytes(&mut out, chunk.invalid());
    }
    out
}

/// What a script prints: line ends and tabs stay.
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

/// JSON that is otherwise whole: `\u202e`.
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
