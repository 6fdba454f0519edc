// SPDX-License-Identifier: GPL-2.0-or-later

//! From a script to a program of this machine (runtime-c/tests/threads/build.sh).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The instrumentation of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    None,
    /// ThreadSanitizer; in front of count.c only its calls, which count.c has functions of its own for.
    Thread,
    /// None, and the runtime takes no locks of whole globals: this must be detected.
    Unlocked,
}

/// The script's C, in `directory`, as NAME.c. A lock is waited for as long as it takes: threads share CPUs.
pub fn translate(root: &Path, directory: &Path, name: &str, text: &str) -> Result<PathBuf> {
    translate_with(root, directory, name, text, &[])
}

/// The same with further options of the compiler.
pub fn translate_with(root: &Path, directory: &Path, name: &str, text: &str, options: &[String]) -> Result<PathBuf> {
    let script = directory.join(format!("{name}.stp"));
    fs::write(&script, text)?;
    let output = Command::new(root.join("target/debug/spile"))
        .args(["-p3", "-DTRYLOCKDELAY=1000000", "-DSTP_NO_OVERLOAD", "-DMAXACTION=1000000"])
        .args(options)
        .arg(&script)
        .stdin(Stdio::null())
        .output()
        .context("running spile")?;
    ensure!(output.status.success(), "{name} does not compile:\n{}", String::from_utf8_lossy(&output.stderr));
    let c = directory.join(format!("{name}.c"));
    fs::write(&c, output.stdout)?;
    Ok(c)
}

/// The program of a script's C, beside it; `main`: the file of runtime-c/tests/threads with its main(). `shared`: what
/// [`shared`] has returned for the same two.
pub fn program(root: &Path, c: &Path, main: &str, sanitizer: Sanitizer, shared: Option<&Path>) -> Result<PathBuf> {
    let program = c.with_extension(suffix(main, sanitizer));
    let mut command = building(root, c, &program, main, sanitizer);
    if let Some(shared) = shared {
        command.env("SHARED", shared);
    }
    run(command, &program)?;
    Ok(program)
}

/// Compiles in `directory` the parts that the programs of all scripts share, which are the largest.
pub fn shared(root: &Path, directory: &Path, main: &str, sanitizer: Sanitizer) -> Result<PathBuf> {
    let objects = directory.join(format!("all.{}", suffix(main, sanitizer)));
    run(building(root, Path::new("+"), &objects, main, sanitizer), &objects)?;
    Ok(objects)
}

fn suffix(main: &str, sanitizer: Sanitizer) -> String {
    format!("{}.{sanitizer:?}", main.trim_end_matches(".c"))
}

/// The command of build.sh.
fn building(root: &Path, c: &Path, program: &Path, main: &str, sanitizer: Sanitizer) -> Command {
    let mut command = Command::new(root.join("runtime-c/tests/threads/build.sh"));
    command.arg(c).arg(program).env("MAIN", main).stdin(Stdio::null());
    if sanitizer == Sanitizer::Thread {
        // It does not know barriers: the data that they order is accessed by single loads and stores, such as volatile
        // ones.
        command.args(["-fsanitize=thread", "-Wno-tsan", "--param=tsan-distinguish-volatile=1"]);
    }
    if sanitizer == Sanitizer::Unlocked {
        command.arg("-DSPILE_TESTS_UNLOCKED");
    }
    if main == "rounds.c" {
        command.arg("-DSPILE_TESTS_PAUSES");
    }
    command
}

fn run(mut command: Command, program: &Path) -> Result<()> {
    let output = command.output().context("running build.sh")?;
    let messages = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && messages.is_empty(), "{} does not build:\n{messages}", program.display());
    Ok(())
}
