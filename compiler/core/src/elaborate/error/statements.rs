// SPDX-License-Identifier: GPL-2.0-or-later

//! A statement or expression that is not possible where it is written.

use super::text::error;
use crate::elaborate::types::Conflict;
use crate::program::Type;
use spile_source::Span;
use spile_source::diagnostic::Diagnostic;

/// A statement or expression that is not possible where it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementError {
    /// Two uses disagree about a type.
    Types(Conflict),
    /// `left.right`, as in C.
    DotMember {
        left: String,
        right: String,
        span: Span,
    },
    NotAssignable {
        span: Span,
    },
    OutsideLoop {
        word: &'static str,
        span: Span,
    },
    /// A `return` without a value in a function whose callers take one.
    BareReturn {
        ty: Type,
        span: Span,
    },
    Guru {
        what: &'static str,
        span: Span,
    },
    /// Something that a script for unprivileged users must not contain.
    Unprivileged {
        what: &'static str,
        span: Span,
    },
    /// Something that it must not contain where the current process is not known to be the owner's, or where the registers
    /// are not those of a program.
    UnprivilegedHere {
        what: &'static str,
        registers: bool,
        span: Span,
    },
    /// A point that it must not probe.
    UnprivilegedPoint {
        point: String,
        span: Span,
    },
    /// Something that the condition of a probe point must not contain.
    Condition {
        what: &'static str,
        span: Span,
    },
}

impl StatementError {
    /// The diagnostic with the error's code, labels and notes.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::Types(Conflict { first, second }) => error(
                "E0101",
                format!("type mismatch: expected {} but found {}", first.0.name(), second.0.name()),
            )
            .at(second.1, format!("this is a {}", second.0.name()))
            .also(first.1, format!("first used as a {} here", first.0.name()))
            .note(match second.0 {
                Type::Long => {
                    "sprint(...) and sprintf(\"%d\", ...) convert a number to a string; printf prints it with %d"
                }
                Type::String => {
                    "strtol(text, 10) converts a string to a number, `.` joins strings, and printf prints them with %s"
                }
            }),
            Self::DotMember { left, right, span } => {
                error("E0101", "type mismatch: expected string but found long".into())
                    .at(*span, "this is a long, and `.` joins strings")
                    .note(format!("members are read with `->`, both of structs and through pointers: {left}->{right}"))
            }
            Self::NotAssignable { span } => error("E0106", "this cannot be assigned to".into())
                .at(*span, "neither a variable nor a context variable"),
            Self::OutsideLoop { word, span } => error("E0108", format!("cannot `{word}` outside a loop"))
                .as_stap(format!("cannot '{word}' outside loop"))
                .at(*span, ""),
            Self::BareReturn { ty, span } => {
                error("E0163", format!("type mismatch: this function returns a {}", ty.name()))
                    .at(*span, "no value is returned here")
                    .note("write return 0 or return \"\"; a function without a return at its end returns that too")
            }
            Self::Guru { what, span } => error("E0401", format!("{what} needs guru mode"))
                .as_stap(match *what {
                    "embedded C" => "embedded code in unprivileged script; need stap -g".to_string(),
                    "writing to a context variable" => {
                        "write to target variable not permitted; need stap -g".to_string()
                    }
                    what if what.starts_with('@') => format!("using {what} operator not permitted; need stap -g"),
                    _ => "function may not be used unless -g is specified".to_string(),
                })
                .at(*span, "")
                .note("run with -g if this is intended: a mistake here can crash the machine"),
            Self::Unprivileged { what, span } => error("E0402", format!("{what} is not for --privilege=stapusr"))
                .at(*span, "")
                .note("such a script sees the processes of the user who runs it, and nothing of the kernel"),
            Self::UnprivilegedHere { what, registers, span } => {
                error("E0402", format!("{what} is not for --privilege=stapusr in this probe"))
                    .at(*span, "the current process may be another user's, or in the kernel")
                    .note(match registers {
                        true => "registers are for probes in a program: process(\"PATH\").function(\"NAME\")",
                        false => {
                            "ask for the process in a probe of it: process(\"PATH\").function(\"NAME\"), process.begin"
                        }
                    })
            }
            Self::UnprivilegedPoint { point, span } => error(
                "E0402",
                format!("{point} is not for --privilege=stapusr"),
            )
            .at(*span, "")
            .note("begin, end, error, never, timers other than timer.profile, and process probes other than .data are"),
            Self::Condition { what, span } => error("E0155", format!("{what} in the condition of a probe point"))
                .at(*span, "")
                .note("a condition can only read global variables; test everything else in the body: if (!...) next"),
        }
    }
}
