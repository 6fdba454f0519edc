// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask lint`: clippy with the lints of the workspace's table; a tree that is ready has no warnings.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::programs::cargo;

/// Runs clippy; the exit code is 0 if there are no warnings.
pub fn run() -> Result<ExitCode> {
    let arguments = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let status = Command::new(cargo()).args(arguments).current_dir(crate::root()).status();
    let status = status.context("running cargo clippy (rustup component add clippy)")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
