// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask compare`: compares two modules, for the tests of the two ways of building.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};

/// The arguments of `cargo xtask compare`.
#[derive(clap::Args)]
pub struct Options {
    /// A module, as make built it
    one: PathBuf,
    /// The same module, as replaying the recorded commands built it
    other: PathBuf,
}

/// Prints the differences of two modules; the exit code is 0 if there are none.
pub fn run(options: &Options) -> Result<ExitCode> {
    let read = |path: &PathBuf| std::fs::read(path).with_context(|| format!("reading {}", path.display()));
    let differences =
        spile_kbuild::differences(&read(&options.one)?, &read(&options.other)?).map_err(|error| anyhow!(error))?;
    for line in &differences {
        println!("{line}");
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
