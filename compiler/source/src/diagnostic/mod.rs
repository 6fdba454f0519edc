// SPDX-License-Identifier: GPL-2.0-or-later

//! Diagnostics: a code, a source location, what was expected, and a suggested correction.
//!
//! Each stage has its own error enum with the facts; a function beside it makes the [`Diagnostic`]. This module only
//! defines the type; [`render`] prints it.

mod cut;
pub mod explain;
pub mod foreign;
pub mod json;
pub mod render;
pub mod suggest;

use crate::Span;

/// How serious a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The script can still be compiled.
    Warning,
    /// The pass fails.
    Error,
}

/// Code of a kind of diagnostic, `E0123` or `W0123`: E00xx syntax, E01xx names and types, E02xx probe points, E03xx
/// debug information and targets, E04xx forbidden operations, E05xx builds and tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub &'static str);

/// A place in a source text, with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The span.
    pub span: Span,
    /// May be empty: then only the span is marked.
    pub message: String,
    /// The primary location; the others explain.
    pub primary: bool,
}

/// A suggested replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The span to replace.
    pub span: Span,
    /// The replacement.
    pub replacement: String,
}

/// An error or warning about a script, as shown to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How serious it is.
    pub severity: Severity,
    /// The kind of error.
    pub code: Code,
    /// One line, no full stop.
    pub message: String,
    /// The same in SystemTap's words, which programs look for: shown instead when called as stap.
    pub stap: Option<String>,
    /// Locations in the sources.
    pub labels: Vec<Label>,
    /// Further facts ("available there: $a, $b") and advice ("try: apt-get install ..."), a line each.
    pub notes: Vec<String>,
    /// The nearest valid replacement, for programs; a note has it for people.
    pub suggestion: Option<Suggestion>,
}

impl Diagnostic {
    /// An error without a location.
    pub fn error(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            stap: None,
            labels: Vec::new(),
            notes: Vec::new(),
            suggestion: None,
        }
    }

    /// A warning without a location.
    pub fn warning(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    /// Adds SystemTap's words.
    pub fn as_stap(mut self, message: impl Into<String>) -> Diagnostic {
        self.stap = Some(message.into());
        self
    }

    /// Adds SystemTap's words, which end with the names that could be meant: `unresolved function f (similar: g, h)`.
    pub fn as_stap_with(self, message: &str, kind: &str, names: &[impl AsRef<str>]) -> Diagnostic {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        match names.as_slice() {
            [] => self.as_stap(message),
            names => self.as_stap(format!("{message} ({kind}: {})", names.join(", "))),
        }
    }

    /// Adds a primary location.
    pub fn at(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, message: message.into(), primary: true });
        self
    }

    /// Adds an explaining location.
    pub fn also(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, message: message.into(), primary: false });
        self
    }

    /// Suggests a replacement for a span.
    pub fn replace(mut self, span: Span, replacement: impl Into<String>) -> Diagnostic {
        self.suggestion = Some(Suggestion { span, replacement: replacement.into() });
        self
    }

    /// Adds a note with the names near a wrong one, and suggests the nearest; does nothing if none is near.
    pub fn near(self, span: Span, near: &[impl AsRef<str>]) -> Diagnostic {
        let Some(first) = near.first() else { return self };
        let names: Vec<&str> = near.iter().map(AsRef::as_ref).collect();
        self.note(format!("did you mean {}?", names.join(", "))).replace(span, first.as_ref())
    }

    /// Adds a note.
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}
