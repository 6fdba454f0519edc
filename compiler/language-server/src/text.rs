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
    /// In long lines, offsets of some characters, with their columns.
    marks: Vec<(usize, usize)>,
    encoding: Encoding,
}

/// Bytes between two marks: a script may be one line of megabytes, with a hundred thousand names.
const STEP: usize = 512;

impl Text {
    /// The text, with positions in this encoding.
    pub fn new(text: String, encoding: Encoding) -> Text {
        let mut whole = Text { text, encoding, ..Text::default() };
        let end = whole.text.len();
        whole.starts = whole.starts_in(0, end);
        (whole.marks, _) = whole.marks_in((0, 0), end);
        whole
    }

    /// Whether a line begins at the offset. A line ends with a line feed, a carriage return, or both.
    fn begins_line(&self, offset: usize) -> bool {
        let byte = |at: usize| self.text.as_bytes().get(at).copied();
        match offset.checked_sub(1).map(byte) {
            None => true,
            Some(Some(b'\n')) => true,
            Some(Some(b'\r')) => byte(offset) != Some(b'\n'),
            Some(_) => false,
        }
    }

    /// The lines that begin from `start` to `end`.
    fn starts_in(&self, start: usize, end: usize) -> Vec<usize> {
        (start..=end).filter(|at| self.begins_line(*at)).collect()
    }

    /// Marks between an offset, of which the column is known, and `end`; and the column there.
    fn marks_in(&self, (start, column): (usize, usize), end: usize) -> (Vec<(usize, usize)>, usize) {
        let (mut marks, mut column, mut marked) = (Vec::new(), column, start);
        for (at, letter) in self.slice(start..end).char_indices() {
            let at = start + at;
            if self.begins_line(at) {
                (column, marked) = (0, at);
            } else if at - marked >= STEP {
                marks.push((at, column));
                marked = at;
            }
            column += self.width(letter);
        }
        (marks, if self.begins_line(end) { 0 } else { column })
    }

    /// The last mark of the line that begins at `start` for which the condition holds, else its begin.
    fn mark(&self, start: usize, end: usize, holds: impl Fn(&(usize, usize)) -> bool) -> (usize, usize) {
        let first = self.marks.partition_point(|(at, _)| *at < start);
        let behind = self.marks.partition_point(|(at, _)| *at < end);
        let marks = self.marks.get(first..behind).unwrap_or_default();
        let after = marks.partition_point(holds);
        after.checked_sub(1).and_then(|last| marks.get(last)).copied().unwrap_or((start, 0))
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
        let end = start + self.line(position.line as usize).len();
        let wanted = position.character as usize;
        let (from, column) = self.mark(*start, end, |(_, column)| *column <= wanted);
        let mut left = wanted - column;
        for (at, character) in self.slice(from..end).char_indices() {
            let width = self.width(character);
            if left < width {
                return from + at;
            }
            left -= width;
        }
        end
    }

    /// The position of an offset; one within a character is that character's.
    pub fn position(&self, offset: usize) -> Position {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let (line, column) = self.place(offset);
        Position::new(number(line), number(column))
    }

    /// Line and column of an offset between two characters.
    fn place(&self, offset: usize) -> (usize, usize) {
        let (line, start) = self.line_of(offset);
        let (from, column) = self.mark(start, offset, |_| true);
        let rest = self.slice(from..offset).chars().map(|character| self.width(character)).sum::<usize>();
        (line, column + rest)
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
            None => *self = Text::new(change.text, self.encoding),
            Some(range) => {
                let (one, other) = (self.offset(range.start), self.offset(range.end));
                self.replace(one.min(other)..one.max(other), &change.text);
            }
        }
    }

    /// Replaces some bytes. Only these are looked at: an editor may send a change for each of thousands of places.
    fn replace(&mut self, range: Range<usize>, by: &str) {
        let (line, column) = self.place(range.end);
        let next_line = self.starts.get(line + 1).copied().unwrap_or(usize::MAX);
        let known = self.mark(self.line_of(range.start).1, range.start, |_| true);
        let starts = self.starts.partition_point(|start| *start < range.start)
            ..self.starts.partition_point(|start| *start <= range.end);
        let marks = self.marks.partition_point(|(at, _)| *at <= known.0)
            ..self.marks.partition_point(|(at, _)| *at <= range.end);
        self.text.replace_range(range.clone(), by);
        let end = range.start + by.len();
        let (new_marks, new_column) = self.marks_in(known, end);
        let new_starts = self.starts_in(range.start, end);
        let moved = |at: usize| at - range.end + end;
        for start in self.starts.iter_mut().skip(starts.end) {
            *start = moved(*start);
        }
        for (at, of) in self.marks.iter_mut().skip(marks.end) {
            if *at < next_line {
                *of = *of - column + new_column;
            }
            *at = moved(*at);
        }
        self.starts.splice(starts, new_starts);
        self.marks.splice(marks, new_marks);
    }
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
    fn changes_give_the_text_that_a_client_has() {
        // A generator of numbers that are the same each time.
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let pieces = ["", "a", "ä", "𝄞", "\n", "\r", "\r\n", "\n\r", &"x𝄞".repeat(400), &"y\n".repeat(30)];
        for encoding in [Encoding::Utf16, Encoding::Utf8] {
            let mut text = Text::new(String::new(), encoding);
            for _ in 0..3000 {
                let places = [(); 2].map(|()| random(text.text.len() + 1));
                let [one, other] = places.map(|at| text.position(at));
                let by = pieces[random(pieces.len())];
                text.change(change((one.line, one.character), (other.line, other.character), by));
                if text.text.len() > 20_000 {
                    text =
                        Text::new(text.text[text.text.len() - 9..].chars().filter(char::is_ascii).collect(), encoding);
                }
                let same = Text::new(text.text.clone(), encoding);
                assert_eq!(text.starts, same.starts);
                for at in places.into_iter().chain([text.text.len()]) {
                    let place = text.position(at);
                    assert_eq!((place, text.offset(place)), (same.position(at), same.offset(place)));
                }
            }
        }
    }

    #[test]
    fn places_in_a_long_line_are_found_quickly() {
        let text = Text::new("name𝄞 ".repeat(1 << 17), Encoding::Utf16);
        let began = std::time::Instant::now();
        for at in (0..text.text.len()).step_by(9) {
            let place = text.position(at);
            assert_eq!((place.character as usize, text.offset(place)), (at / 9 * 7, at));
        }
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
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
