// SPDX-License-Identifier: GPL-2.0-or-later

//! Source text: script files, `-e` text, tapset files, and expanded macros.
//!
//! A [`Span`] is a range of bytes in one file; line and column are computed when printed.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

pub mod diagnostic;

/// A source text; an index into [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A macro expansion or script argument that produced text; [`ExpansionId::NONE`] for text directly in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpansionId(pub u32);

impl ExpansionId {
    /// The text is directly in the file.
    pub const NONE: ExpansionId = ExpansionId(0);
}

/// Bytes `start..end` of `file`, expanded by `via` if the text is a macro's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// The macro call that produced the text.
    pub via: ExpansionId,
}

impl Span {
    /// Bytes `start..end` of a file, without expansion.
    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        Span { file, start: start as u32, end: end as u32, via: ExpansionId::NONE }
    }

    /// The span of code that is in no script, such as a value that the compiler adds.
    pub fn none() -> Span {
        Span::new(FileId(0), 0, 0)
    }

    /// From the start of `self` to the end of `other`; `self` if they are in different files or expansions.
    pub fn to(self, other: Span) -> Span {
        if self.file == other.file && self.via == other.via && other.end >= self.start {
            Span { end: other.end, ..self }
        } else {
            self
        }
    }
}

/// The role of a file, which decides what it may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's script, `-e` or `-E` text.
    User,
    /// A library file (`.stp`, `.stpm`) that comes with the compiler: may contain embedded C, and is linked only if a name
    /// from it is used.
    Tapset,
    /// The same, from a directory (`-I`).
    Directory,
}

impl Origin {
    /// It is a library file.
    pub fn is_library(self) -> bool {
        self != Origin::User
    }
}

/// One source text.
#[derive(Debug)]
pub struct SourceFile {
    /// The name in messages: a path, or `<input>` for `-e` and `-`.
    pub name: String,
    /// The bytes as read. Scripts are bytes: comments in Latin-1 are common.
    pub bytes: Vec<u8>,
    /// `bytes` for display, byte by byte (`?` for invalid UTF-8), with the same offsets.
    pub text: String,
    /// The role of the file.
    pub origin: Origin,
    /// Offsets at which lines start, computed when first needed. Without them each of ten thousand places would count
    /// the lines before it.
    starts: OnceLock<Vec<usize>>,
    /// The text as shown on terminals, computed when first needed; `None`: same as `text`.
    printable: OnceLock<Option<String>>,
}

impl SourceFile {
    fn starts(&self) -> &[usize] {
        self.starts.get_or_init(|| {
            let ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
        })
    }

    /// The index of the line that the byte at this offset is in, from 0.
    pub fn line_index(&self, byte: usize) -> usize {
        self.starts().partition_point(|start| *start <= byte).saturating_sub(1)
    }

    /// The bytes of the line of this index, with its newline; `None`: there are fewer lines.
    pub fn line_range(&self, line: usize) -> Option<Range<usize>> {
        let start = *self.starts().get(line)?;
        Some(start..self.starts().get(line + 1).copied().unwrap_or(self.bytes.len()))
    }

    /// The text after `printable`, which must keep all offsets. Computed once.
    pub(crate) fn printable(&self, printable: impl FnOnce(&str) -> Cow<'_, str>) -> &str {
        let changed = || match printable(&self.text) {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => None,
        };
        self.printable.get_or_init(changed).as_deref().unwrap_or(&self.text)
    }
}

/// A macro call or script argument: its name as written (`@foo`, `$1`) and the span of the call.
#[derive(Debug)]
pub struct Expansion {
    /// The name at the call.
    pub name: String,
    /// The span of the call.
    pub call: Span,
}

/// The source files of one compilation.
#[derive(Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
    expansions: Vec<Expansion>,
}

impl SourceMap {
    /// A map without files.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Adds a source file. `name` is its name in messages.
    pub fn add(&mut self, name: impl Into<String>, bytes: Vec<u8>, origin: Origin) -> FileId {
        let text = displayable(&bytes);
        let (starts, printable) = (OnceLock::new(), OnceLock::new());
        self.files.push(SourceFile { name: name.into(), bytes, text, origin, starts, printable });
        FileId(self.files.len() as u32 - 1)
    }

    /// In the order of their ids.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// The file of an id that this map returned.
    #[expect(clippy::indexing_slicing, reason = "ids are made by `add` alone; a map loses no file")]
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// Records an expansion of `name` at `call`; spans of the resulting text carry the id.
    pub fn add_expansion(&mut self, name: impl Into<String>, call: Span) -> ExpansionId {
        self.expansions.push(Expansion { name: name.into(), call });
        ExpansionId(self.expansions.len() as u32)
    }

    /// The expansion of an id; None for [`ExpansionId::NONE`].
    pub fn expansion(&self, id: ExpansionId) -> Option<&Expansion> {
        id.0.checked_sub(1).and_then(|index| self.expansions.get(index as usize))
    }

    /// The file that was being read at the span: for text from a macro's body the one with the (outermost) call.
    pub fn reader(&self, span: Span) -> FileId {
        let mut at = span;
        while let Some(expansion) = self.expansion(at.via) {
            at = expansion.call;
        }
        at.file
    }

    /// The bytes of a span, as text for display.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// One-based line and column (in bytes) of a span's start.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        let file = self.file(span.file);
        let at = (span.start as usize).min(file.bytes.len());
        let line = file.line_index(at);
        let start = file.line_range(line).map_or(0, |range| range.start);
        (line + 1, at.saturating_sub(start) + 1)
    }

    /// `FILE:LINE:COLUMN` of a span's start, as run-time errors print it.
    pub fn place(&self, span: Span) -> String {
        let (line, column) = self.line_column(span);
        format!("{}:{}:{}", self.file(span.file).name, line, column)
    }
}

/// UTF-8 text with each invalid byte replaced by `?`, so that offsets are unchanged.
fn displayable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_columns() {
        let mut sources = SourceMap::new();
        let text = "a\n\nbc\n";
        let file = sources.add("f", text.as_bytes().to_vec(), Origin::User);
        let at = |byte| sources.line_column(Span::new(file, byte, byte));
        let places: Vec<_> = (0..=text.len() + 1).map(at).collect();
        assert_eq!(places, [(1, 1), (1, 2), (2, 1), (3, 1), (3, 2), (3, 3), (4, 1), (4, 1)]);
        let ranges: Vec<_> = (0..5).map(|line| sources.file(file).line_range(line)).collect();
        assert_eq!(ranges, [Some(0..2), Some(2..3), Some(3..6), Some(6..6), None]);
        let empty = sources.add("g", Vec::new(), Origin::User);
        assert_eq!(sources.line_column(Span::new(empty, 0, 0)), (1, 1));
    }

    /// A script of 80,000 statements took minutes, because the line of each place was counted from the start of the
    /// file.
    #[test]
    fn places_in_a_long_file_are_found_quickly() {
        let mut sources = SourceMap::new();
        let count = 300_000;
        let file = sources.add("f", b"x = 1\n".repeat(count), Origin::User);
        let lines = (0..count).map(|line| sources.line_column(Span::new(file, line * 6, line * 6)).0);
        // Otherwise this would read 10^11 bytes, which takes minutes even in a release build.
        assert_eq!(lines.sum::<usize>(), count * (count + 1) / 2);
        let begun = std::time::Instant::now();
        let problem = |line: usize| {
            diagnostic::Diagnostic::error(diagnostic::Code("E0100"), "wrong")
                .at(Span::new(file, line * 6, line * 6 + 1), "")
        };
        let texts = (0..2000).map(|line| diagnostic::render::render(&sources, &problem(line * 100), false).len());
        assert!(texts.sum::<usize>() > 2000 && begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }
}
