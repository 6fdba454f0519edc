// SPDX-License-Identifier: GPL-2.0-or-later

//! `--check`: will a script still attach, and read what it reads, on another kernel?
//!
//! Takes what [`survey`](crate::elaborate::survey) found of one script on several kernels and compares each with the first:
//! every probe point and every target expression is the same, moved, renamed, inlined, gone, or of another type.

mod compare;
mod rename;
pub mod show;
mod types;

use serde::Serialize;

pub use compare::{Subject, compare};

/// What became of a probe point or a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There, and no different.
    Same,
    /// Not on the first kernel.
    New,
    /// To another file, or the line that is meant to another; of a variable: never.
    Moved,
    /// No copy that is called is left.
    Inlined,
    /// There, under another name.
    Renamed,
    /// There and read whole, with other members.
    Changed,
    /// There, with another type.
    TypeChanged,
    /// Not there.
    Gone,
    /// An exported index does not have it, or BTF, which is all that there is, does not show it.
    Unknown,
}

impl Verdict {
    /// The verdict as reports show it.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::New => "new",
            Verdict::Moved => "moved",
            Verdict::Inlined => "inlined",
            Verdict::Renamed => "renamed",
            Verdict::Changed => "changed",
            Verdict::TypeChanged => "type changed",
            Verdict::Gone => "gone",
            Verdict::Unknown => "not known",
        }
    }
}

/// On one kernel, against the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// What became of it there.
    pub verdict: Verdict,
    /// From what to what, or why.
    pub detail: String,
    /// The new name or place, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The script works there as it does on the first kernel, as far as this goes.
    pub well: bool,
    /// Of a probe point with several functions: those that are not the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<(String, Verdict)>,
}

impl Outcome {
    fn new(verdict: Verdict, detail: impl Into<String>) -> Outcome {
        let well = matches!(verdict, Verdict::Same | Verdict::New | Verdict::Moved | Verdict::Inlined);
        Outcome { verdict, detail: detail.into(), to: None, well, functions: Vec::new() }
    }

    fn to(mut self, to: impl Into<String>) -> Outcome {
        self.to = Some(to.into());
        self
    }

    fn unwell(mut self) -> Outcome {
        self.well = false;
        self
    }
}

/// One line of the answer.
#[derive(Clone, Debug, Serialize)]
pub struct Item {
    /// What the line is about.
    pub kind: Kind,
    /// The probe point or expression, as the script has it.
    pub text: String,
    /// `FILE:LINE:COLUMN`.
    pub place: String,
    /// Of an expression: the probe point or function that it is in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub within: String,
    /// What it is on the first kernel.
    pub first: String,
    /// One for each kernel but the first.
    pub outcomes: Vec<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
/// What a line of a report is about.
pub enum Kind {
    /// A probe point.
    Probe,
    /// A target expression: a context variable, a cast.
    Variable,
}

/// What was found on all kernels.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The first is what the others are compared with.
    pub kernels: Vec<String>,
    /// In the order of the script.
    pub items: Vec<Item>,
    /// The script works on all kernels as it does on the first, as far as this goes.
    pub well: bool,
}
