// SPDX-License-Identifier: GPL-2.0-or-later

//! A format or pattern, written as a string literal, that is invalid.

use super::text::error;
use crate::elaborate::format::FormatErrorKind;
use spile_regex as regex;
use spile_source::Span;
use spile_source::diagnostic::Diagnostic;

/// A format or pattern, written as a string literal, that is invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum LiteralError {
    Format {
        kind: FormatErrorKind,
        span: Span,
    },
    FormatArguments {
        wanted: usize,
        given: usize,
        span: Span,
    },
    /// An invalid pattern of `=~`; `position`: byte offset in its value.
    Regex {
        kind: regex::ErrorKind,
        position: usize,
        span: Span,
    },
}

impl LiteralError {
    /// The diagnostic with the error's code, labels and notes.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::Format { kind, span } => {
                let message = match kind {
                    FormatErrorKind::Unfinished => "the format ends inside a directive".to_string(),
                    FormatErrorKind::UnknownConversion(byte) => {
                        format!("unknown conversion `{}`", char::from(*byte).escape_default())
                    }
                    FormatErrorKind::SecondFlag(byte) => {
                        format!("`{}` is a second flag", char::from(*byte).escape_default())
                    }
                };
                error("E0133", message).at(*span, "").note(match kind {
                    FormatErrorKind::SecondFlag(_) => {
                        "one of the flags `0`, `+`, `-`, ` ` and `#` can precede the width, as in %-5d"
                    }
                    _ => "conversions are %d %i %u %o %x %X %p %s %c %b %m %M and %%",
                })
            }
            Self::FormatArguments { wanted, given, span } => {
                error("E0134", format!("the format takes {wanted} arguments, {given} are given"))
                    .as_stap("Wrong number of args to formatted print operator")
                    .at(*span, "")
            }
            Self::Regex { kind, position, span } => {
                let message = format!("regex compilation error (at position {position}): {kind}");
                let diagnostic = error("E0135", message).at(*span, "");
                match kind.advice() {
                    Some(advice) => diagnostic.note(advice),
                    None => diagnostic,
                }
            }
        }
    }
}
