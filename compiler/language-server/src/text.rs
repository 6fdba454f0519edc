// SPDX-License-Identifier: GPL-2.0-or-later

//! A document's text: positions of the protocol, which count UTF-16 units (or bytes, where the client can), and byte
//! offsets.
//!
//! A position after the end of a line is its end; one after the last line is the end of the text.

use std::ops::Range;

use lsp_types::{Position, TextDocumentContentChangeEvent};

/// The unit of the columns of positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Units of UTF-16, what every client knows.
    #[default]
    Utf16,
    /// Bytes of UTF-8, as of version 3.17 of the protocol.
    Utf8,
}

/// Text with an index of its lines.
#[derive(Clone, Debug, Default)]
pub struct Text {
    text: String,
    /// Offsets of the lines' first bytes.
    starts: Vec<usize>,
    encoding: Encoding,
}

impl Text {
    /// The text, with positions in this encoding.
    pub fn new(text: String, encoding: Encoding) -> Text {
        let starts = starts(&text);
        Text { text, starts, encoding }
    }

    /// All of it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The bytes of a range; empty where there are none.
    pub fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// The line that the offset is in, and the offset of its first byte.
    fn line_of(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        (line, self.starts.get(line).copied().unwrap_or_default())
    }

    /// The bytes of a line without its end; empty where there is none.
    pub fn line(&self, line: usize) -> &str {
        let start = self.starts.get(line).copied().unwrap_or(self.text.len());
        let end = self.starts.get(line.saturating_add(1)).copied().unwrap_or(self.text.len());
        self.slice(start..end).trim_end_matches(['\n', '\r'])
    }

    /// The offset of a position.
    pub fn offset(&self, position: Position) -> usize {
        let Some(start) = self.starts.get(position.line as usize) else { return self.text.len() };
        let line = self.line(position.line as usize);
        let mut left = position.character as usize;
        for (at, character) in line.char_indices() {
            let width = self.width(character);
            if left < width {
                return start + at;
            }
            left -= width;
        }
        start + line.len()
    }

    /// The position of an offset; one within a character is that character's.
    pub fn position(&self, offset: usize) -> Position {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let (line, start) = self.line_of(offset);
        let character = self.slice(start..offset).chars().map(|character| self.width(character)).sum::<usize>();
        Position::new(number(line), number(character))
    }

    /// The positions of a range of bytes.
    pub fn range(&self, range: &Range<usize>) -> lsp_types::Range {
        lsp_types::Range::new(self.position(range.start), self.position(range.end))
    }

    /// The number of columns of the bytes.
    pub fn columns(&self, range: Range<usize>) -> u32 {
        number(self.slice(range).chars().map(|character| self.width(character)).sum())
    }

    fn width(&self, character: char) -> usize {
        match self.encoding {
            Encoding::Utf16 => character.len_utf16(),
            Encoding::Utf8 => character.len_utf8(),
        }
    }

    /// Applies a change of the client; a range that ends before it begins is reversed.
    pub fn change(&mut self, change: TextDocumentContentChangeEvent) {
        match change.range {
            None => self.text = change.text,
            Some(range) => {
                let (one, other) = (self.offset(range.start), self.offset(range.end));
                self.text.replace_range(one.min(other)..one.max(other), &change.text);
            }
        }
        self.starts = starts(&self.text);
    }
}

/// A line ends with a line feed, a carriage return, or both.
fn starts(text: &str) -> Vec<usize> {
    let mut starts = vec![0];
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\n' => starts.push(at + 1),
            b'\r' if bytes.peek().is_none_or(|(_, next)| *next != b'\n') => starts.push(at + 1),
            _ => {}
        }
    }
    starts
}

/// The number for the protocol, where numbers have 32 bits.
pub fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(from: (u32, u32), to: (u32, u32), text: &str) -> TextDocumentContentChangeEvent {
        let range = Some(lsp_types::Range::new(Position::new(from.0, from.1), Position::new(to.0, to.1)));
        TextDocumentContentChangeEvent { range, range_length: None, text: text.into() }
    }

    #[test]
    fn columns_are_units_of_utf_16() {
        let text = Text::new("aä𝄞b\r\nc".into(), Encoding::Utf16);
        let columns: Vec<usize> = (0..7).map(|column| text.offset(Position::new(0, column))).collect();
        assert_eq!(columns, [0, 1, 3, 3, 7, 8, 8]);
        assert_eq!(text.position(7), Position::new(0, 4));
        assert_eq!(text.position(5), Position::new(0, 2), "within a character");
        assert_eq!(text.position(10), Position::new(1, 0));
        assert_eq!(text.offset(Position::new(9, 9)), 11);
        assert_eq!((text.line(0), text.line(1), text.line(2), text.starts.len()), ("aä𝄞b", "c", "", 2));
        let bytes = Text::new("aä𝄞b".into(), Encoding::Utf8);
        assert_eq!((bytes.position(7), bytes.offset(Position::new(0, 3))), (Position::new(0, 7), 3));
    }

    #[test]
    fn changes_in_order() {
        let mut text = Text::new("one\ntwo\n".into(), Encoding::Utf16);
        text.change(change((1, 0), (1, 3), "2\n3"));
        assert_eq!(text.as_str(), "one\n2\n3\n");
        text.change(change((2, 1), (2, 0), "drei"));
        assert_eq!(text.as_str(), "one\n2\ndrei\n");
        text.change(change((90, 0), (95, 7), "end"));
        assert_eq!((text.as_str(), text.position(13)), ("one\n2\ndrei\nend", Position::new(3, 2)));
        text.change(TextDocumentContentChangeEvent { range: None, range_length: None, text: "all".into() });
        assert_eq!((text.as_str(), text.starts.len()), ("all", 1));
    }
}
