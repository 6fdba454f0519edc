// SPDX-License-Identifier: GPL-2.0-or-later

//! Shortens lines that are too long for a message.
//!
//! Takes source text and the ranges that are to be underlined in it. Lines longer than [`MAX_LINE`] are replaced by the part
//! around those ranges, with `...` for the text left out; an underline that does not fit ends there.

use std::ops::Range;

/// Longest line that is shown whole, in bytes.
pub(super) const MAX_LINE: usize = 300;

/// Bytes shown of a longer one.
const SHOWN: usize = 140;

/// Of these, before the underlined text.
const BEFORE: usize = 40;

const MARK: &str = "...";

/// Source text with its long lines cut.
pub(super) struct Cut {
    /// As it is shown.
    pub text: String,
    lines: Vec<Line>,
}

/// One line, in the original and in the cut text.
struct Line {
    /// Start in the original.
    original: usize,
    /// Start in the cut text.
    start: usize,
    /// Bytes of the original line that are shown, from its start, and whether a mark is in front of them.
    kept: Range<usize>,
    mark: usize,
}

impl Cut {
    /// None if no line that is shown is too long. `marked`: the ranges that are underlined, the most important first.
    pub fn of(text: &str, marked: &[Range<usize>]) -> Option<Cut> {
        if !marked.iter().any(|range| has_long_line(text, range)) {
            return None;
        }
        let mut cut = Cut { text: String::new(), lines: Vec::new() };
        let mut original = 0;
        for line in text.split_inclusive('\n') {
            cut.add(line, original, marked);
            original += line.len();
        }
        if text.ends_with('\n') {
            cut.add("", original, marked);
        }
        Some(cut)
    }

    fn add(&mut self, line: &str, original: usize, marked: &[Range<usize>]) {
        let content = line.trim_end_matches('\n');
        let kept = if content.len() <= MAX_LINE { 0..line.len() } else { window(content, original, marked) };
        let start = self.text.len();
        let mark = if kept.start > 0 { MARK.len() } else { 0 };
        self.text.push_str(MARK.get(..mark).unwrap_or_default());
        self.text.push_str(line.get(kept.clone()).unwrap_or_default());
        if kept.end < content.len() {
            self.text.push_str(MARK);
        }
        if kept.end < line.len() && content.len() < line.len() {
            self.text.push('\n');
        }
        self.lines.push(Line { original, start, kept, mark });
    }

    /// The range of the cut text that stands for one of the original.
    pub fn shown(&self, range: &Range<usize>) -> Range<usize> {
        let at = |byte: usize, after: usize| {
            let line = self.lines.partition_point(|line| line.original <= byte).checked_sub(1);
            let Some(line) = line.and_then(|line| self.lines.get(line)) else { return byte };
            let offset = byte - line.original;
            match offset {
                _ if offset < line.kept.start => line.start,
                _ if offset > line.kept.end => line.start + line.mark + line.kept.len() + after,
                _ => line.start + line.mark + offset - line.kept.start,
            }
        };
        let start = at(range.start, 0);
        start..at(range.end, MARK.len()).max(start)
    }

    /// Where a byte of the cut text is in the original.
    pub fn original(&self, byte: usize) -> usize {
        let line = self.lines.partition_point(|line| line.start <= byte).checked_sub(1);
        let Some(line) = line.and_then(|line| self.lines.get(line)) else { return byte };
        let offset = byte.saturating_sub(line.start + line.mark).min(line.kept.len());
        line.original + line.kept.start + offset
    }

    /// The index of the line that a byte of the cut text is in, from 0.
    pub fn line_index(&self, byte: usize) -> usize {
        self.lines.partition_point(|line| line.start <= byte).saturating_sub(1)
    }

    /// The bytes of a line in the cut text, with its newline.
    pub fn line_range(&self, index: usize) -> Option<Range<usize>> {
        let start = self.lines.get(index)?.start;
        Some(start..self.lines.get(index + 1).map_or(self.text.len(), |next| next.start))
    }
}

/// Whether a line that the range is on is too long. Looks at no others: a script may have many, and many messages.
fn has_long_line(text: &str, range: &Range<usize>) -> bool {
    let start = text.get(..range.start).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let end = text.get(range.end..).and_then(|after| after.find('\n')).map_or(text.len(), |length| range.end + length);
    text.get(start..end).is_some_and(|lines| lines.len() > MAX_LINE && lines.lines().any(|line| line.len() > MAX_LINE))
}

/// The part of a line that is shown: around the first range that is on it, or its beginning.
fn window(line: &str, original: usize, marked: &[Range<usize>]) -> Range<usize> {
    let end = original + line.len();
    let here = marked.iter().find_map(|range| {
        let ends = [range.start, range.end];
        ends.into_iter().find(|at| (original..=end).contains(at)).map(|at| at - original)
    });
    let start = here.unwrap_or(0).saturating_sub(BEFORE);
    char_boundary(line, start)..char_boundary(line, start.saturating_add(SHOWN))
}

/// The last boundary of a character at or before an offset.
fn char_boundary(line: &str, offset: usize) -> usize {
    let offset = offset.min(line.len());
    (0..=offset).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_stay() {
        assert!(Cut::of(&"a line\n".repeat(1000), &[]).is_none());
    }

    #[test]
    fn a_place_is_found_in_both() {
        let long = "é".repeat(500);
        let text = format!("first\n{long} here {long}\nlast\n");
        let at = text.find("here").unwrap();
        let cut = Cut::of(&text, std::slice::from_ref(&(at..at + 4))).unwrap();
        assert_eq!(&cut.text[cut.shown(&(at..at + 4))], "here");
        assert_eq!(cut.original(cut.shown(&(at..at + 4)).start), at);
        assert!(cut.text.lines().all(|line| line.len() < MAX_LINE), "{}", cut.text);
        assert_eq!(cut.text.lines().last(), Some("last"));
        let last = text.find("last").unwrap();
        assert_eq!(&cut.text[cut.shown(&(last..last + 4))], "last");
        assert_eq!(cut.line_index(cut.shown(&(at..at)).start), 1);
        assert_eq!(cut.line_range(0), Some(0..6));
        // What is left out is underlined as far as it is shown.
        let whole = cut.shown(&(6..last - 1));
        assert!(cut.text[whole.clone()].starts_with(MARK) && cut.text[whole].ends_with(MARK));
    }
}
