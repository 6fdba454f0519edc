// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask lint`: clippy with the lints of the workspace's table, the layout of the sources (modules.rs, layout.rs), and the
//! kernel's checkpatch.pl if it is installed; a tree that is ready has no warnings.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::programs::{announce_wait, cargo};

/// Runs the checks; the exit code is 0 if there are no warnings.
pub fn run() -> Result<ExitCode> {
    let arguments = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    announce_wait(&crate::root());
    let status = Command::new(cargo()).args(arguments).current_dir(crate::root()).status();
    let status = status.context("running cargo clippy (rustup component add clippy)")?;
    let layout = ["test", "--quiet", "--package", "xtask", "--", "modules::", "layout::"];
    let layout =
        Command::new(cargo()).args(layout).current_dir(crate::root()).status().context("running cargo test")?;
    let style = checkpatch(&crate::root())?;
    Ok(if status.success() && layout.success() && style { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the runtime has no warnings of checkpatch.pl, which is in scripts/ of the kernel's source (Debian: linux-source-6.1).
/// The file .checkpatch.conf has the checks that do not apply.
fn checkpatch(root: &Path) -> Result<bool> {
    let Ok(program) = which::which("checkpatch.pl") else {
        println!("the runtime's C is not checked: no checkpatch.pl in PATH");
        return Ok(true);
    };
    let sources = ["ls-files", "runtime-c/*.c", "runtime-c/*.h", ":!runtime-c/tests"];
    let listed = Command::new("git").args(sources).current_dir(root).output().context("running git ls-files")?;
    let mut command = Command::new(program);
    command.arg("-f").args(String::from_utf8_lossy(&listed.stdout).lines());
    Ok(command.current_dir(root).status().context("running checkpatch.pl")?.success())
}
