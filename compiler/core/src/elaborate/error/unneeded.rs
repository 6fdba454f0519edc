// SPDX-License-Identifier: GPL-2.0-or-later

//! Code without effect: warnings, and an error where nothing is left.

use super::text::{called, error};
use spile_source::Span;
use spile_source::diagnostic::foreign::{self, Use};
use spile_source::diagnostic::{Code, Diagnostic, suggest};
use spile_syntax::habit;

/// Code without effect: warnings, and an error where nothing is left.
#[derive(Clone, Debug, PartialEq)]
pub enum Unneeded {
    NeverAssigned {
        name: String,
        near: Vec<String>,
        span: Span,
    },
    UnreadAssignment {
        name: String,
        span: Span,
    },
    /// `text`: the expression; `function`: it is the name of one.
    IdleExpression {
        span: Span,
        text: String,
        function: bool,
    },
    IdleProbe {
        points: String,
        span: Span,
    },
    /// The `number`th function of a name, behind one without `next`; None: behind a builtin.
    NeverReached {
        name: String,
        number: usize,
        span: Span,
        before: Option<Span>,
    },
    /// A name of an address in a program, used as a value.
    Unnamed {
        name: String,
        span: Span,
    },
    /// A global that is used in a probe of a library alias which sets a variable of that name.
    Hidden {
        name: String,
        span: Span,
        set: Span,
    },
    /// A file of `-I` assigns to a global that a script declares there.
    Foreign {
        name: String,
        span: Span,
        declared: Span,
    },
    /// `span` of the first probe.
    NoProbes {
        span: Span,
    },
}

impl Unneeded {
    /// The diagnostic with the error's code, labels and notes.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::NeverAssigned { name, near, span } => {
                let near: Vec<&str> = near.iter().map(String::as_str).collect();
                let diagnostic =
                    Diagnostic::warning(Code("W0101"), format!("local variable `{name}` is never assigned"))
                        .at(*span, "");
                match called(name).or_else(|| foreign::instead(name, Use::Value)) {
                    Some(instead) => diagnostic.note(instead),
                    None => diagnostic.near(*span, &suggest::suggest(name, near)),
                }
            }
            Self::UnreadAssignment { name, span } => {
                Diagnostic::warning(Code("W0102"), format!("Eliding assignment to '{name}'"))
                    .at(*span, "nothing reads it")
            }
            Self::IdleExpression { span, text, function } => {
                let diagnostic = Diagnostic::warning(Code("W0103"), "Eliding side-effect-free expression")
                    .at(*span, "nothing uses its value");
                match habit::statement(text) {
                    _ if *function => diagnostic.note(format!("a function is called with parentheses: {text}()")),
                    Some(note) => diagnostic.note(note),
                    None => diagnostic,
                }
            }
            Self::IdleProbe { points, span } => {
                Diagnostic::warning(Code("W0104"), format!("side-effect-free probe '{points}'"))
                    .at(*span, "its handler does nothing")
            }
            Self::NeverReached { name, number, span, before } => {
                let message = format!("instance {number} of overloaded function '{name}' will never be reached");
                let diagnostic = Diagnostic::warning(Code("W0105"), message).at(*span, "");
                match before {
                    Some(before) => diagnostic.also(*before, "this one has no `next`"),
                    None => diagnostic.note("the library's function of this name has priority 1, and no `next`"),
                }
            }
            Self::Unnamed { name, span } => {
                Diagnostic::warning(Code("W0107"), format!("as a value `{name}()` has addresses, no names"))
                    .at(*span, "this is no argument of a print")
                    .note("only the loader knows the names: keep the address, and name it in a print")
            }
            Self::Hidden { name, span, set } => {
                Diagnostic::warning(Code("W0111"), format!("the global `{name}` hides a variable of the library"))
                    .at(*span, "this is the script's global")
                    .also(*set, "the alias sets its own variable")
                    .note("give the global another name to use the alias's variable")
            }
            Self::Foreign { name, span, declared } => {
                Diagnostic::warning(Code("W0112"), format!("a library file assigns to the script's global `{name}`"))
                    .at(*span, "this is no variable of its own")
                    .also(*declared, "declared by the script")
                    .note("give the global another name if the library means a local variable")
            }
            Self::NoProbes { span } => error("E0165", "no probes found".to_string())
                .at(*span, "neither this probe nor any other has an effect")
                .note("print something, or read a variable that it sets"),
        }
    }
}
