// SPDX-License-Identifier: GPL-2.0-or-later

//! What a user is told: a code, the place, what was expected, what to write instead.
//!
//! Each stage has its own error enum with the facts; a function beside it makes the [`Diagnostic`]. This module only
//! knows how to hold one; [`render`] shows it.

pub mod explain;
pub mod json;
pub mod render;
pub mod suggest;

use crate::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Warning,
    Error,
}

/// Code of a kind of diagnostic, as `E0123` or `W0123`: E00xx syntax, E01xx names and types, E02xx probe points,
/// E03xx debug information and targets, E04xx what a script may not do, E05xx builds and tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub &'static str);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    /// May be empty: then only the place is marked.
    pub message: String,
    /// The place the diagnostic is about; the others explain.
    pub primary: bool,
}

/// What to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    pub span: Span,
    pub replacement: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Code,
    /// One line, no full stop.
    pub message: String,
    pub labels: Vec<Label>,
    /// Further facts ("available there: $a, $b") and what to do ("try: apt-get install ..."), a line each.
    pub notes: Vec<String>,
    /// The nearest right thing, for programs; a note says it to people.
    pub suggestion: Option<Suggestion>,
}

impl Diagnostic {
    pub fn error(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            suggestion: None,
        }
    }

    pub fn warning(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    pub fn at(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, message: message.into(), primary: true });
        self
    }

    pub fn also(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, message: message.into(), primary: false });
        self
    }

    pub fn replace(mut self, span: Span, replacement: impl Into<String>) -> Diagnostic {
        self.suggestion = Some(Suggestion { span, replacement: replacement.into() });
        self
    }

    /// A note with the names near a wrong one, and the nearest as what to write; nothing if none is near.
    pub fn near(self, span: Span, near: &[impl AsRef<str>]) -> Diagnostic {
        let Some(first) = near.first() else { return self };
        let names: Vec<&str> = near.iter().map(AsRef::as_ref).collect();
        self.note(format!("did you mean {}?", names.join(", "))).replace(span, first.as_ref())
    }

    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}
