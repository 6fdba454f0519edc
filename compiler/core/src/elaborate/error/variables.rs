// SPDX-License-Identifier: GPL-2.0-or-later

//! A context variable or register that cannot be read or written here.

use super::text::{and, error};
use spile_source::Span;
use spile_source::diagnostic::{Diagnostic, suggest};

/// A context variable or register that cannot be read or written here.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableError {
    /// `$value` of a procfs file that is being read.
    WriteOnly {
        span: Span,
    },
    /// A context variable where none exist: in a function, or in a probe without any.
    NoContext {
        name: String,
        point: Option<String>,
        span: Span,
    },
    UnknownVariable {
        name: String,
        place: String,
        available: Vec<String>,
        span: Span,
    },
    /// The variable exists and has no value at the address; `why`: the known reasons, one line each.
    NoValueThere {
        name: String,
        place: String,
        why: Vec<String>,
        available: Vec<String>,
        span: Span,
    },
    /// `what`: `$return` or the like.
    NotReturnProbe {
        what: &'static str,
        span: Span,
    },
    VoidReturn {
        function: String,
        span: Span,
    },
    /// Of a struct or array (`whole`) in registers or several places.
    PartOptimizedOut {
        whole: &'static str,
        span: Span,
    },
    NoAddress {
        span: Span,
        why: &'static str,
    },
    /// A value captured at entry cannot be written at return.
    CapturedWrite {
        span: Span,
    },
    /// An expression evaluated at the function's entry uses a local of the handler, or the result.
    NotAtEntry {
        name: String,
        span: Span,
    },
    UnknownGlobal {
        name: String,
        objects: String,
        span: Span,
    },
    /// Raw memory where no code is probed.
    NoHit {
        what: &'static str,
        point: String,
        span: Span,
    },
    NoRegisters {
        what: &'static str,
        point: String,
        span: Span,
    },
    RegisterNumber {
        span: Span,
    },
}

impl VariableError {
    /// The diagnostic with the error's code, labels and notes.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::WriteOnly { span } => error("E0107", "this can only be written here".into())
                .at(*span, "the reader of the file gets this value")
                .note("assign to it or append to it: $value .= text; use a variable for a string that you need again"),
            Self::NoContext { name, point, span } => {
                let diagnostic = error("E0120", format!("no context variable `{name}` here"))
                    .as_stap(format!("unresolved target-symbol expression: identifier '{name}'"));
                match point {
                    Some(point) => diagnostic
                        .at(*span, format!("probe {point} has no context variables"))
                        .note("the script's own variables have no `$`"),
                    None => diagnostic
                        .at(*span, "a function has no context variables")
                        .note("pass the value as an argument from the probe"),
                }
            }
            Self::UnknownVariable { name, place, available, span } => {
                let names: Vec<&str> = available.iter().map(String::as_str).collect();
                let local = name.trim_start_matches('$');
                let diagnostic = error("E0121", format!("no variable `{name}` at {place}"))
                    .as_stap_with(&format!("unable to find local '{local}' in {place}"), "alternatives", available)
                    .at(*span, "");
                let near = suggest::suggest(name, names.iter().copied());
                diagnostic.near(*span, &near).note(format!("available there: {}", and(available, "none")))
            }
            Self::NoValueThere { name, place, why, available, span } => {
                let mut diagnostic = error("E0122", format!("`{name}` has no value at {place}"))
                    .as_stap(format!("not accessible at this address [man error::dwarf]: '{name}' at {place}"))
                    .at(*span, "");
                for line in why {
                    diagnostic = diagnostic.note(line.clone());
                }
                diagnostic.note(format!("available there: {}", and(available, "none")))
            }
            Self::NotReturnProbe { what, span } => {
                error("E0123", format!("`{what}` is only available in a return probe"))
                    .as_stap(match *what {
                        "$return" => "unable to find local 'return'".to_string(),
                        what => format!("{what} is only valid in .return probes"),
                    })
                    .at(*span, "")
                    .note("append .return to the probe point")
            }
            Self::VoidReturn { function, span } => {
                error("E0124", format!("`{function}` returns nothing: there is no `$return`")).at(*span, "")
            }
            Self::PartOptimizedOut { whole, span } => error("E0122", format!("this part of the {whole} has no value here"))
                .at(*span, "the compiler has optimised it out"),
            Self::NoAddress { span, why } => error("E0129", "this has no address".into()).at(*span, *why),
            Self::CapturedWrite { span } => error("E0130", "cannot write a value captured at the function's entry".into())
                .at(*span, "in a return probe only `$return` can be written"),
            Self::NotAtEntry { name, span } => {
                error("E0131", format!("`{name}` has no value yet when this is evaluated"))
                    .at(*span, "evaluated when the function is entered, before the handler runs")
            }
            Self::UnknownGlobal { name, objects, span } => {
                error("E0157", format!("no variable `{name}` in {objects}"))
                    .as_stap(format!("unable to find global '{name}' in {objects}"))
                    .at(*span, "").note("if several files have a variable of this name, name the file: @var(\"name@file.c\")")
            }
            Self::NoRegisters { what, point, span } => error("E0159", format!("no registers for {what} here"))
                .at(*span, match point.as_str() {
                    "" => "in a function that is not called by a probe with registers".into(),
                    point => format!("probe {point} sees none"),
                })
                .note("probes at addresses have registers, for example kernel.function(\"f\")"),
            Self::NoHit { what, point, span } => error("E0159", format!("`{what}` cannot be used in {point}"))
                .at(*span, "no code is probed there")
                .note("kernel_long(address), user_long(address) and the like read memory in any probe"),
            Self::RegisterNumber { span } => error("E0160", "no such register".into())
                .at(*span, "")
                .note("registers have their DWARF numbers: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8 to 15 r8 to r15, 16 rip"),
        }
    }
}
