// SPDX-License-Identifier: GPL-2.0-or-later

//! Builds the programs of the workspace.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The programs under test, as users get them.
pub fn build_programs(root: &Path) -> Result<()> {
    let status = Command::new(cargo())
        .args(["build", "--quiet", "--package", "spile", "--package", "spilerun"])
        .current_dir(root)
        .status()
        .context("running cargo build")?;
    ensure!(status.success(), "the programs do not build");
    Ok(())
}

/// The cargo that runs this.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string())
}
