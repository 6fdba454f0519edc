// SPDX-License-Identifier: GPL-2.0-or-later

//! Source texts: script files, `-e` text, tapset files, and expanded macros.
//!
//! A [`Span`] is a range of bytes in one file; line and column are computed when printed.

#![warn(missing_docs)]

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
    /// A library file (`.stp`, `.stpm`): may contain embedded C, and is linked only if a name from it is used.
    Tapset,
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
}

/// A macro call or script argument: its name as written (`@foo`, `$1`) and the span of the call.
#[derive(Debug)]
pub struct Expansion {
    /// The name at the call.
    pub name: String,
    /// The span of the call.
    pub call: Span,
}

/// All texts of one compilation.
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

    /// Adds a text. `name` is its name in messages.
    pub fn add(&mut self, name: impl Into<String>, bytes: Vec<u8>, origin: Origin) -> FileId {
        let text = displayable(&bytes);
        self.files.push(SourceFile { name: name.into(), bytes, text, origin });
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

    /// The bytes of a span, as text for display.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// One-based line and column (in bytes) of a span's start.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        let bytes = &self.file(span.file).bytes;
        let before = bytes.get(..span.start as usize).unwrap_or(bytes);
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
        (line, column)
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
