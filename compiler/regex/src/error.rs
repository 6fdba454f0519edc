// SPDX-License-Identifier: GPL-2.0-or-later

//! Errors in patterns.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// `(` without `)`.
    #[error("unclosed '('")]
    UnclosedGroup,
    /// `)` without `(`.
    #[error("')' without '('")]
    StrayClose,
    /// `[` without `]`.
    #[error("unclosed '['")]
    UnclosedClass,
    /// `[:name:]` that does not exist.
    #[error("unknown character class")]
    UnknownClass,
    /// `[.ab.]`, `[=ab=]`: of more than one character.
    #[error("collating elements of several characters are not supported")]
    Collation,
    /// `[z-a]`.
    #[error("the range ends before it begins")]
    BackwardRange,
    /// `*`, `+`, `?` or `{` after nothing.
    #[error("nothing to repeat")]
    NothingToRepeat,
    /// `^*`.
    #[error("an anchor cannot be repeated")]
    RepeatedAnchor,
    /// `{` without a repetition count.
    #[error("expected {{N}}, {{N,}} or {{N,M}}")]
    BadCount,
    /// `{3,2}`.
    #[error("the largest count is less than the smallest")]
    BackwardCount,
    /// A count over [`super::parse::MAX_COUNT`].
    #[error("the count is too large")]
    CountTooLarge,
    /// `\` at the end.
    #[error("a backslash at the end")]
    UnfinishedEscape,
    /// `\x` without a digit.
    #[error("expected hexadecimal digits after \\x")]
    BadHexadecimal,
    /// `\1`.
    #[error("back references are not supported")]
    BackReference,
    /// `\b`, `\<`: conditions on the position between two characters.
    #[error("word boundaries are not supported")]
    WordBoundary,
    /// `(?` without `:`.
    #[error("expected ':' after '(?'")]
    UnknownExtension,
    /// Groups or repetitions are nested too deeply.
    #[error("nested too deep")]
    TooDeep,
    /// The automaton would have more states than a module may hold, or takes too long to build.
    #[error("the pattern is too large")]
    TooLarge,
}

impl ErrorKind {
    /// What to write instead, if known.
    pub fn advice(self) -> Option<&'static str> {
        Some(match self {
            ErrorKind::NothingToRepeat | ErrorKind::BadCount => {
                "for the character itself write two backslashes before it: one is removed by the string, the other by the pattern"
            }
            ErrorKind::StrayClose => "for the character itself write \"\\\\)\"",
            ErrorKind::BackReference => "capture with ( ) and compare matched(n) in the script",
            ErrorKind::UnknownClass => {
                "classes are alnum alpha blank cntrl d digit graph l lower print punct s space u upper xdigit"
            }
            ErrorKind::TooLarge => "shorten what is counted with { }, or test with several patterns",
            ErrorKind::UnknownExtension => "(?: ) groups without capturing; there are no other extensions",
            ErrorKind::WordBoundary => "list the characters instead, as in \"(^|[^[:alnum:]_])word\"",
            _ => return None,
        })
    }
}
