// SPDX-License-Identifier: GPL-2.0-or-later

//! Errors in a script after parsing, as facts: an enum for each subject, with the diagnostic of each variant beside it.
//!
//! There is no `Display`, and so no thiserror: an error is shown as a [`Diagnostic`] with labels and notes, whose message
//! alone would not be enough.

mod aggregates;
mod arrays;
mod literals;
mod names;
mod statements;
mod text;
mod types;
mod unneeded;
mod variables;

pub use aggregates::AggregateError;
pub use arrays::ArrayError;
pub use literals::LiteralError;
pub use names::NameError;
pub use statements::StatementError;
pub use types::TypeError;
pub use unneeded::Unneeded;
pub use variables::VariableError;

use spile_source::Span;
use spile_source::diagnostic::Diagnostic;
use text::error;

/// An error or warning of elaboration. `span`, of each variant, is the place it is shown at.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// An internal error: a mistake of the compiler, whatever the script contains.
    Internal {
        /// What was not expected.
        what: &'static str,
        /// Where.
        span: Span,
    },
    /// Reading debug information failed.
    DebugInfo {
        /// Which file could not be read, and why.
        message: String,
        /// What needed it.
        span: Span,
    },
    /// A name that nothing declares, or that is declared or used otherwise.
    Name(NameError),
    /// A statement or expression that is not possible where it is written.
    Statement(StatementError),
    /// A context variable or register that cannot be read or written here.
    Variable(VariableError),
    /// A C type that does not have what the script asks for.
    Type(TypeError),
    /// A format or pattern, written as a string literal, that is invalid.
    Literal(LiteralError),
    /// An array that is used as something else, or with other keys.
    Array(ArrayError),
    /// An aggregate that is used as a value, or an extractor with invalid arguments.
    Aggregate(AggregateError),
    /// Code without effect: warnings, and an error where nothing is left.
    Unneeded(Unneeded),
}

/// Each subject's errors become an [`Error`].
macro_rules! from_subjects {
    ($($subject:ident($error:ident)),+) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Error::$subject(error)
            }
        })+
    };
}

from_subjects!(
    Name(NameError),
    Statement(StatementError),
    Variable(VariableError),
    Type(TypeError),
    Literal(LiteralError),
    Array(ArrayError),
    Aggregate(AggregateError),
    Unneeded(Unneeded)
);

impl Error {
    /// A context variable or member that does not exist, or has no value at that address.
    pub fn is_bad_variable(&self) -> bool {
        match self {
            Error::Variable(error) => matches!(
                error,
                VariableError::UnknownVariable { .. }
                    | VariableError::NoValueThere { .. }
                    | VariableError::UnknownGlobal { .. }
                    | VariableError::NoContext { point: Some(_), .. }
            ),
            Error::Type(error) => matches!(error, TypeError::NoMember { .. }),
            _ => false,
        }
    }

    /// The diagnostic with the error's code, labels and notes.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Error::Internal { what, span } => error("E0500", format!("internal error: {what}"))
                .at(*span, "")
                .note("this is a bug in spile, not in the script: please report it with the script"),
            Error::DebugInfo { message, span } => error("E0302", message.clone()).at(*span, ""),
            Error::Name(error) => error.diagnostic(),
            Error::Statement(error) => error.diagnostic(),
            Error::Variable(error) => error.diagnostic(),
            Error::Type(error) => error.diagnostic(),
            Error::Literal(error) => error.diagnostic(),
            Error::Array(error) => error.diagnostic(),
            Error::Aggregate(error) => error.diagnostic(),
            Error::Unneeded(error) => error.diagnostic(),
        }
    }
}
