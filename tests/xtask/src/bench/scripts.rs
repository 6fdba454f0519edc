// SPDX-License-Identifier: GPL-2.0-or-later

//! Scripts with many probes, for the benchmarks of arming and of interrupting it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::family::Family;
use crate::place::Place;

/// What is armed.
#[derive(PartialEq)]
pub enum Script {
    /// On the generated modules.
    Family(&'static str),
    /// On modules of the kernel.
    Text(&'static str),
}

/// The name of the module in that file.
pub fn module_name(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Compiles the script to a module of that name.
pub fn compile(
    root: &Path,
    place: &Place,
    family: &Family,
    directory: &Path,
    script: &Script,
    name: &str,
) -> Result<PathBuf> {
    let mut command = Command::new(place.spile()?);
    command.args(["-r", &place.kernel.release, "-p4", "-m", name]);
    match script {
        Script::Family(file) => {
            for module in family.modules() {
                command.arg("-d").arg(module);
            }
            command.arg(root.join("tests/family").join(file))
        }
        Script::Text(text) => command.args(["-e", text]),
    };
    let output = command.current_dir(directory).stdin(Stdio::null()).output().context("running spile")?;
    ensure!(output.status.success(), "spile failed on {name}:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(directory.join(format!("{name}.ko")))
}
