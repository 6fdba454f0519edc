// SPDX-License-Identifier: GPL-2.0-or-later

//! Errors in patterns.

use std::fmt;

/// An error in a pattern; `start..end` are bytes of the pattern's value, `end` after `start` unless at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of error.
    pub kind: ErrorKind,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset after its last byte.
    pub end: usize,
}

/// The kinds of error in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// `(` without `)`.
    UnclosedGroup,
    /// `)` without `(`.
    StrayClose,
    /// `[` without `]`.
    UnclosedClass,
    /// `[:name:]` that does not exist.
    UnknownClass,
    /// `[.ab.]`, `[=ab=]`: of more than one character.
    Collation,
    /// `[z-a]`.
    BackwardRange,
    /// `*`, `+`, `?` or `{` after nothing.
    NothingToRepeat,
    /// `^*`.
    RepeatedAnchor,
    /// `{` without a repetition count.
    BadCount,
    /// `{3,2}`.
    BackwardCount,
    /// A count over [`super::parse::MAX_COUNT`].
    CountTooLarge,
    /// `\` at the end.
    UnfinishedEscape,
    /// `\x` without a digit.
    BadHexadecimal,
    /// `\1`.
    BackReference,
    /// `\b`, `\<`: conditions on the position between two characters.
    WordBoundary,
    /// `(?` without `:`.
    UnknownExtension,
    /// Groups or repetitions are nested too deeply.
    TooDeep,
    /// The automaton would have more states than a module may hold, or takes too long to build.
    TooLarge,
}

impl ErrorKind {
    /// What to write instead, if known.
    pub fn advice(self) -> Option<&'static str> {
        Some(match self {
            ErrorKind::NothingToRepeat | ErrorKind::BadCount => {
                "for the character itself write two backslashes before it: the string takes one, the pattern the other"
            }
            ErrorKind::StrayClose => "for the character itself write \"\\\\)\"",
            ErrorKind::BackReference => "capture with ( ) and compare matched(n) in the script",
            ErrorKind::UnknownClass => {
                "classes are alnum alpha blank cntrl d digit graph l lower print punct s space u upper xdigit"
            }
            ErrorKind::TooLarge => "shorten what is counted with { }, or test with several patterns",
            ErrorKind::UnknownExtension => "(?: ) groups without capturing; there are no other extensions",
            ErrorKind::WordBoundary => "write what may stand there, as in \"(^|[^[:alnum:]_])word\"",
            _ => return None,
        })
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorKind::UnclosedGroup => "unclosed '('",
            ErrorKind::StrayClose => "')' closes nothing",
            ErrorKind::UnclosedClass => "unclosed '['",
            ErrorKind::UnknownClass => "unknown character class",
            ErrorKind::Collation => "collating elements of several characters are not supported",
            ErrorKind::BackwardRange => "the range ends before it begins",
            ErrorKind::NothingToRepeat => "nothing to repeat",
            ErrorKind::RepeatedAnchor => "an anchor cannot be repeated",
            ErrorKind::BadCount => "expected {N}, {N,} or {N,M}",
            ErrorKind::BackwardCount => "the largest count is less than the smallest",
            ErrorKind::CountTooLarge => "the count is too large",
            ErrorKind::UnfinishedEscape => "a backslash at the end",
            ErrorKind::BadHexadecimal => "expected hexadecimal digits after \\x",
            ErrorKind::BackReference => "back references are not supported",
            ErrorKind::WordBoundary => "word boundaries are not supported",
            ErrorKind::UnknownExtension => "expected ':' after '(?'",
            ErrorKind::TooDeep => "nested too deep",
            ErrorKind::TooLarge => "the pattern is too large",
        })
    }
}
