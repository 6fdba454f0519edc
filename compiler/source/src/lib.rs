// SPDX-License-Identifier: GPL-2.0-or-later

//! Where text comes from: script files, `-e` text, tapset files, and what macros made of them.
//!
//! A [`Span`] is a range of bytes in one file; line and column are computed when shown.

#![warn(missing_docs)]

pub mod diagnostic;

/// One source text. Index into [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// One macro expansion or script argument that text came through; [`ExpansionId::NONE`] for text as it stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpansionId(pub u32);

impl ExpansionId {
    /// The text stands in its file.
    pub const NONE: ExpansionId = ExpansionId(0);
}

/// Bytes `start..end` of `file`, reached through `via` if the text is a macro's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
    /// The macro call that the text came through.
    pub via: ExpansionId,
}

impl Span {
    /// Bytes `start..end` of a file, as they stand there.
    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        Span { file, start: start as u32, end: end as u32, via: ExpansionId::NONE }
    }

    /// From the start of `self` to the end of `other`; `self` alone if they lie in different files or expansions.
    pub fn to(self, other: Span) -> Span {
        if self.file == other.file && self.via == other.via && other.end >= self.start {
            Span { end: other.end, ..self }
        } else {
            self
        }
    }
}

/// What a file is to the script: decides what it may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's script, `-e` or `-E` text.
    User,
    /// A library file (`.stp`, `.stpm`): embedded C is allowed, it is linked only when a name from it is used.
    Tapset,
}

/// One source text.
#[derive(Debug)]
pub struct SourceFile {
    /// As messages show it: a path, or `<input>` for `-e` and `-`.
    pub name: String,
    /// The bytes as read. Scripts are bytes: comments in Latin-1 are common.
    pub bytes: Vec<u8>,
    /// `bytes` for display, byte by byte (what is not UTF-8 is `?`): the same offsets hold in both.
    pub text: String,
    /// Whose it is.
    pub origin: Origin,
}

/// A macro call or script argument: its name as written (`@foo`, `$1`) and where it was called.
#[derive(Debug)]
pub struct Expansion {
    /// As it is written at the call.
    pub name: String,
    /// Where it was called.
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

    /// Adds a text. `name` is what messages call it.
    pub fn add(&mut self, name: impl Into<String>, bytes: Vec<u8>, origin: Origin) -> FileId {
        let text = displayable(&bytes);
        self.files.push(SourceFile { name: name.into(), bytes, text, origin });
        FileId(self.files.len() as u32 - 1)
    }

    /// In the order of their ids.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// The file of an id that this map gave.
    #[expect(clippy::indexing_slicing, reason = "ids are made by `add` alone; a map loses no file")]
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// Notes that text is reached through `name` at `call`; spans of that text carry the id.
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

/// UTF-8 text with each byte that belongs to no character replaced by `?`, so that offsets stay.
fn displayable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}
