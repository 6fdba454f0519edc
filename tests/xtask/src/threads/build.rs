// SPDX-License-Identifier: GPL-2.0-or-later

//! From a script to a program of this machine (runtime-c/tests/threads/build.sh).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// What the compiler puts into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    None,
    /// ThreadSanitizer; in front of count.c only its calls, which count.c has functions of its own for.
    Thread,
}

/// The script's C, in `directory`, as NAME.c. A lock is waited for as long as it takes: threads share processors.
pub fn translate(root: &Path, directory: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let script = directory.join(format!("{name}.stp"));
    fs::write(&script, text)?;
    let output = Command::new(root.join("target/debug/spile"))
        .args(["-p3", "-DTRYLOCKDELAY=1000000", "-DSTP_NO_OVERLOAD", "-DMAXACTION=1000000"])
        .arg(&script)
        .stdin(Stdio::null())
        .output()
        .context("running spile")?;
    ensure!(output.status.success(), "{name} does not compile:\n{}", String::from_utf8_lossy(&output.stderr));
    let c = directory.join(format!("{name}.c"));
    fs::write(&c, output.stdout)?;
    Ok(c)
}

/// The program of a script's C, beside it; `main`: the file of runtime-c/tests/threads with its main().
pub fn program(root: &Path, c: &Path, main: &str, sanitizer: Sanitizer) -> Result<PathBuf> {
    let program = c.with_extension(format!("{}.{sanitizer:?}", main.trim_end_matches(".c")));
    let mut command = Command::new(root.join("runtime-c/tests/threads/build.sh"));
    command.arg(c).arg(&program).env("MAIN", main).stdin(Stdio::null());
    if sanitizer == Sanitizer::Thread {
        // Barriers are not known to it: what they order is accessed by single loads and stores. Volatile accesses are such.
        command.args(["-fsanitize=thread", "-Wno-tsan", "--param=tsan-distinguish-volatile=1"]);
    }
    let output = command.output().context("running build.sh")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.is_empty(), "{} does not build:\n{said}", program.display());
    Ok(program)
}
