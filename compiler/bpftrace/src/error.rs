// SPDX-License-Identifier: GPL-2.0-or-later

//! What is wrong with a bpftrace program, or has no counterpart in a script.

use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic};

/// How deep expressions, blocks and `else` may be nested: what works on them calls itself.
pub const MAX_DEPTH: usize = 200;
/// The message about more.
pub const TOO_DEEP: &str = "this is nested too deep";

/// A problem and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text is not a bpftrace program.
    Syntax {
        /// What is expected, or what is wrong.
        message: String,
        /// Of the text that was found.
        span: Span,
    },
    /// bpftrace has it, and scripts have nothing that does the same.
    NoCounterpart {
        /// What it is, as the subject of a sentence: `` `skboutput` ``.
        what: String,
        /// Of it.
        span: Span,
        /// What to do instead.
        instead: String,
    },
}

impl Problem {
    /// The message.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Problem::Syntax { message, span } => {
                Diagnostic::error(Code("E0601"), "this is not a bpftrace program").at(*span, message)
            }
            Problem::NoCounterpart { what, span, instead } => {
                Diagnostic::error(Code("E0602"), format!("{what} has no counterpart in scripts"))
                    .at(*span, "")
                    .note(instead)
            }
        }
    }
}
