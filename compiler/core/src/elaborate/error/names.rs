// SPDX-License-Identifier: GPL-2.0-or-later

//! A name that nothing declares, or that is declared or used otherwise.

use super::text::{called, counted, error};
use spile_source::Span;
use spile_source::diagnostic::foreign::{self, Use};
use spile_source::diagnostic::{Diagnostic, suggest};
use spile_syntax::habit;

/// A name that nothing declares, or that is declared or used otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum NameError {
    UnknownFunction {
        name: String,
        span: Span,
        near: Vec<String>,
    },
    Arity {
        name: String,
        takes: Vec<usize>,
        given: usize,
        span: Span,
        declared: Option<Span>,
    },
    Redeclared {
        what: &'static str,
        name: String,
        span: Span,
        first: Span,
    },
    /// `@perf` of a counter that no probe defines; `known`: the counters that exist.
    UnknownCounter {
        name: String,
        known: Vec<String>,
        span: Span,
    },
    /// The name of an alias has an argument.
    AliasArgument {
        name: String,
        span: Span,
    },
    /// `@probewrite` in a probe or a function.
    ProbeWriteOutsideAlias {
        span: Span,
    },
    /// No use determines whether this is a long or a string.
    Unresolved {
        name: String,
        span: Span,
    },
}

impl NameError {
    /// The diagnostic with the error's code, labels and notes.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::UnknownFunction { name, span, near } => {
                let known: Vec<&str> = near.iter().map(String::as_str).collect();
                let near = suggest::suggest(name, known);
                let diagnostic = error("E0103", format!("unresolved function `{name}`"))
                    .as_stap_with(&format!("unresolved function {name}"), "similar", &near)
                    .at(*span, "");
                let instead = foreign::instead(name, Use::Call).or_else(|| habit::statement(name).map(String::from));
                match instead {
                    Some(instead) => diagnostic.note(instead),
                    None => diagnostic.near(*span, &near),
                }
            }
            Self::Arity { name, takes, given, span, declared } => {
                let fits = takes.last().copied().unwrap_or(0);
                let takes = match takes.as_slice() {
                    [0] => "no arguments".to_string(),
                    [one] => counted(*one, "argument"),
                    several => {
                        let several: Vec<String> = several.iter().map(usize::to_string).collect();
                        format!("{} arguments", several.join(" or "))
                    }
                };
                let mut diagnostic = error("E0104", format!("`{name}` takes {takes}, not {given}"))
                    .as_stap(format!("arity mismatch found (function '{name}' takes {fits} args)"))
                    .at(*span, "");
                if let Some(declared) = declared {
                    diagnostic = diagnostic.also(*declared, "declared here");
                }
                diagnostic
            }
            Self::Redeclared { what, name, span, first } => {
                spile_syntax::error::redeclared(what, name, *span, *first)
            }
            Self::UnknownCounter { name, known, span } => {
                let diagnostic = error("E0166", format!("no counter `{name}`")).at(*span, "");
                match known.is_empty() {
                    true => diagnostic.note(format!("a probe creates one: probe perf.hw.instructions.counter(\"{name}\") {{ }}")),
                    false => diagnostic.note(format!("there is: {}", known.join(", "))),
                }
            }
            Self::AliasArgument { name, span } => error("E0164", format!("alias component `{name}` has an argument"))
                .at(*span, "")
                .note("the name of an alias has no arguments: probe a.b = ...; components after the name, where it is used, are applied to its points"),
            Self::ProbeWriteOutsideAlias { span } => error("E0167", "unexpected @probewrite".into())
                .at(*span, "this is not an alias")
                .note("in the statements of an alias it is 1 if the probe that uses the alias assigns to the variable"),
            Self::Unresolved { name, span } => {
                let otherwise = || "assign it a number or a string somewhere, or print it with %d or %s".to_string();
                let note = called(name).or_else(|| foreign::instead(name, Use::Value)).unwrap_or_else(otherwise);
                error("E0102", format!("unresolved type of `{name}`")).at(*span, "no use shows whether it is a long or a string").note(note)
            }
        }
    }
}
