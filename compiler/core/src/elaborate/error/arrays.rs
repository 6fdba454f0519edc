// SPDX-License-Identifier: GPL-2.0-or-later

//! An array that is used as something else, or with other keys.

use super::text::{counted, error};
use spile_source::Span;
use spile_source::diagnostic::Diagnostic;

/// An array that is used as something else, or with other keys.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrayError {
    /// An array is used with another number of keys than before.
    KeyCount {
        name: String,
        keys: usize,
        given: usize,
        span: Span,
        first: Span,
    },
    TooManyKeys {
        name: String,
        given: usize,
        span: Span,
    },
    /// `*` where one key is needed.
    AnyKey {
        span: Span,
    },
    /// Not a global; only a global can be an array or aggregate.
    NotGlobal {
        what: &'static str,
        span: Span,
    },
    /// `keys`: where it is used with keys; None: its declaration has a size.
    ArrayAsValue {
        name: String,
        span: Span,
        keys: Option<Span>,
    },
    WrappedScalar {
        name: String,
        span: Span,
    },
    /// `what`: "an array", "an aggregate".
    InitialValue {
        name: String,
        what: &'static str,
        span: Span,
        used: Span,
    },
    ChangedInForeach {
        name: String,
        function: Option<String>,
        span: Span,
        foreach: Span,
    },
}

impl ArrayError {
    /// The diagnostic with the error's code, labels and notes.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::KeyCount { name, keys, given, span, first } => {
                error("E0140", format!("array `{name}` has {}, not {given}", counted(*keys, "key")))
                    .at(*span, format!("{} here", counted(*given, "key")))
                    .also(*first, "first used here")
            }
            Self::TooManyKeys { name, given, span } => error("E0141", format!("array `{name}` has {given} keys"))
                .at(*span, "")
                .note(format!("an array has at most {} keys", crate::elaborate::types::MAX_KEYS)),
            Self::AnyKey { span } => error("E0142", "`*` does not name a single element".into())
                .at(*span, "one key is needed here")
                .note("`*` can be used in `delete a[k, *]`, `[k, *] in a` and `foreach (... in a[k, *])`"),
            Self::NotGlobal { what, span } => {
                let diagnostic = error("E0143", format!("only a global can be an {what}"))
                    .as_stap(match *what {
                        "aggregate" => "stat locals not supported, missing global declaration?".to_string(),
                        what => format!("unresolved global {what}, missing global declaration?"),
                    })
                    .at(*span, "no global of this name")
                    .note("declare it at the top of the script: global NAME");
                match *what {
                    "array" => diagnostic.note("a character of a string is read by substr(text, position, 1)"),
                    _ => diagnostic,
                }
            }
            Self::ArrayAsValue { name, span, keys } => {
                let diagnostic =
                    error("E0144", format!("`{name}` is an array")).at(*span, "used as a single value here");
                let diagnostic = match keys {
                    Some(keys) => diagnostic.also(*keys, "used with keys here"),
                    None => diagnostic.note("its declaration gives it a size"),
                };
                diagnostic.note(format!("name an element, `{name}[key]`, or iterate over all with foreach"))
            }
            Self::WrappedScalar { name, span } => error("E0145", "wrapping not supported for scalars".into())
                .at(*span, format!("`{name}` is not an array"))
                .note("the `%` lets a full array drop its oldest element"),
            Self::InitialValue { name, what, span, used } => error("E0146", format!("{what} has no initial value"))
                .at(*span, format!("`{name}` gets one here"))
                .also(*used, format!("{what} because of this")),
            Self::ChangedInForeach { name, function, span, foreach } => {
                let message = match function {
                    None => format!("array `{name}` changes while foreach iterates over it"),
                    Some(function) => format!("`{function}` changes array `{name}` while foreach iterates over it"),
                };
                error("E0150", message)
                    .as_stap(match function {
                        None => format!("variable '{name}' modified during 'foreach' iteration"),
                        Some(_) => format!("function call modifies var '{name}' during 'foreach' iteration"),
                    })
                    .at(*span, if function.is_some() { "called in the loop" } else { "changed here" })
                    .also(*foreach, "in this loop")
                    .note("record the changes in another array, and apply them after the loop")
            }
        }
    }
}
