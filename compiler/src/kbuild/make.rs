//! Runs the kernel's Kbuild.

use std::path::Path;
use std::process::{Command, Stdio};

use super::compiler::Compiler;
use super::{BuildError, Request};

/// Writes a file, its directory made first.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let failed = |error: std::io::Error| BuildError::File { path: path.to_path_buf(), error: error.to_string() };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    std::fs::write(path, bytes).map_err(failed)
}

/// `make -C BUILD_DIR M=work VARIABLES TARGETS`, without what a make around us may have set.
pub(super) fn run(request: &Request, compiler: &Compiler, work: &Path, variables: &[String], targets: &[&str]) -> Result<(), BuildError> {
    let mut make = Command::new("make");
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEFILES", "KBUILD_OUTPUT", "KCFLAGS", "KBUILD_EXTRA_SYMBOLS"] {
        make.env_remove(name);
    }
    make.arg("-C").arg(&request.build_dir).arg(format!("M={}", work.display())).arg(format!("CC={}", compiler.command));
    make.arg("--no-print-directory").args(variables).args(targets);
    make.env("LC_ALL", "C").stdin(Stdio::null());
    let output = make.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => BuildError::NoMake,
        _ => BuildError::Failed { log: format!("running make: {error}") },
    })?;
    let log = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if request.verbosity >= 3 {
        eprint!("{log}");
    }
    if output.status.success() {
        return Ok(());
    }
    let lines: Vec<String> = log.lines().filter(|line| line.contains("error:")).map(str::to_string).collect();
    if lines.is_empty() { Err(BuildError::Failed { log }) } else { Err(BuildError::Compile { lines }) }
}
