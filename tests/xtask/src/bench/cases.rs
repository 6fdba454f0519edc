// SPDX-License-Identifier: GPL-2.0-or-later

//! What benchmarks of several cases in a guest have in common: their arguments, and when a figure is a regression.

use std::process::ExitCode;

/// A figure this much above the last one is a regression.
pub const TOLERANCE: f64 = 1.05;

/// The arguments of `cargo xtask bench arming` and `runtime`.
#[derive(clap::Args)]
pub struct Options {
    /// Measures only cases whose name contains this, and leaves the page in docs/ as it is
    #[arg(value_name = "PART")]
    only: Option<String>,
    /// Fails if a figure is more than 5 % above the one on the page, and leaves that as it is
    #[arg(long)]
    pub check: bool,
    /// Keeps the figures of bpftrace, which takes half an hour to start so often
    #[arg(long)]
    pub keep_bpftrace: bool,
    /// Kernel release or line, as for `test`
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
}

impl Options {
    /// Whether the case of that name is measured.
    pub fn takes(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// Whether this part, which takes long, is measured: with everything, or if its name is given.
    pub fn takes_long(&self, part: &str) -> bool {
        self.writes() || self.only.as_deref() == Some(part)
    }

    /// Whether the page is written.
    pub fn writes(&self) -> bool {
        self.only.is_none() && !self.check
    }

    /// The exit code, after regressions or none.
    pub fn outcome(&self, has_regressions: bool) -> ExitCode {
        if self.check && has_regressions { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
