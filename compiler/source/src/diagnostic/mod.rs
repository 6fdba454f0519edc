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

/// How serious a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The script can still be compiled.
    Warning,
    /// The pass fails.
    Error,
}

/// Code of a kind of diagnostic, as `E0123` or `W0123`: E00xx syntax, E01xx names and types, E02xx probe points,
/// E03xx debug information and targets, E04xx what a script may not do, E05xx builds and tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub &'static str);

/// A place in a source text, with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// May be empty: then only the place is marked.
    pub message: String,
    /// The place the diagnostic is about; the others explain.
    pub primary: bool,
}

/// What to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// What is to be replaced.
    pub span: Span,
    /// The text for it.
    pub replacement: String,
}

/// A mistake in a script, or something worth a warning, as it is shown to a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How serious it is.
    pub severity: Severity,
    /// Which kind of mistake it is.
    pub code: Code,
    /// One line, no full stop.
    pub message: String,
    /// Places in the sources.
    pub labels: Vec<Label>,
    /// Further facts ("available there: $a, $b") and what to do ("try: apt-get install ..."), a line each.
    pub notes: Vec<String>,
    /// The nearest right thing, for programs; a note says it to people.
    pub suggestion: Option<Suggestion>,
}

impl Diagnostic {
    /// An error without a place.
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

    /// A warning without a place.
    pub fn warning(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    /// Adds a place that it is about.
    pub fn at(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, message: message.into(), primary: true });
        self
    }

    /// Adds a place that explains it.
    pub fn also(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, message: message.into(), primary: false });
        self
    }

    /// Suggests other text for a place.
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

    /// Adds a note.
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}
