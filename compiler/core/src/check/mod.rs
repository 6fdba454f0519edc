// SPDX-License-Identifier: GPL-2.0-or-later

//! `--check`: will a script attach on another kernel, and read the same things there?
//!
//! Takes the results of [`survey`](crate::elaborate::survey) of one script on several kernels and compares each with the
//! first: every probe point and every target expression is the same, moved, renamed, inlined, gone, or of another type.

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
    /// Present and unchanged.
    Same,
    /// Absent on the first kernel.
    New,
    /// In another file, or on another line than the one meant; never used for a variable.
    Moved,
    /// Only inlined copies are left.
    Inlined,
    /// Present under another name.
    Renamed,
    /// Printed whole, and with other members.
    Changed,
    /// Present with another type.
    TypeChanged,
    /// Absent.
    Gone,
    /// An exported index does not contain it; or only BTF is available, which does not describe it.
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

/// Result on one kernel, compared with the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// What became of it there.
    pub verdict: Verdict,
    /// Old and new value, or the reason.
    pub detail: String,
    /// The new name or place, for programs that read the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The script works there as on the first kernel, as far as this check can tell.
    pub well: bool,
    /// For a probe point with several functions: those that differ.
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

    fn degraded(mut self) -> Outcome {
        self.well = false;
        self
    }
}

/// One line of the report.
#[derive(Clone, Debug, Serialize)]
pub struct Item {
    /// The subject of the line.
    pub kind: Kind,
    /// The probe point or expression as in the script.
    pub text: String,
    /// `FILE:LINE:COLUMN`.
    pub place: String,
    /// For an expression: the probe point or function that contains it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub within: String,
    /// What it is on the first kernel.
    pub first: String,
    /// One for each other kernel.
    pub outcomes: Vec<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
/// The subject of a line of a report.
pub enum Kind {
    /// A probe point.
    Probe,
    /// A target expression: a context variable, a cast.
    Variable,
}

/// Results for all kernels.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The kernel with which the others are compared.
    pub kernels: Vec<String>,
    /// In script order.
    pub items: Vec<Item>,
    /// The script works on all kernels as on the first, as far as this check can tell.
    pub well: bool,
}
