// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask matrix`: the guest tests on every kernel line. Each run writes its row in docs/kernels.md.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use spile_guest::Kernel;

use crate::place;

/// The arguments of `cargo xtask matrix`.
#[derive(clap::Args)]
pub struct Options {
    /// Only these lines or releases [default: the installed kernel, its full flavour, and all that can be fetched]
    #[arg(long, value_name = "RELEASE", value_delimiter = ',')]
    kernel: Vec<String>,
    /// Only tests whose name contains one of these, on every line
    names: Vec<String>,
}

/// Runs one line after the other; a failed line does not stop the rest.
pub fn run(options: &Options) -> Result<ExitCode> {
    crate::setup::run(None)?;
    let lines = match &options.kernel[..] {
        [] => all_lines(&Kernel::newest()?.release),
        chosen => chosen.to_vec(),
    };
    let mut failed = Vec::new();
    for line in &lines {
        println!("\n{line}: cargo xtask test --kernel {line} {}", options.names.join(" "));
        let mut command = Command::new(crate::tree::own_program());
        command.args(["test", "--kernel", line]).args(&options.names).current_dir(crate::root()).stdin(Stdio::null());
        if !command.status().context("running the tests")?.success() {
            failed.push(line.as_str());
        }
    }
    println!("\n{} of {} kernels passed; docs/kernels.md has the results", lines.len() - failed.len(), lines.len());
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// From the oldest to the newest, with the kernel that is installed here and, if that is a cloud kernel, the full one of the
/// same release.
fn all_lines(here: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = place::lines().partition(|line| *line == "5.10");
    let full = here.replace("-cloud-", "-");
    let installed = [Some(here.to_string()), (full != here).then_some(full)];
    let fetched = |lines: Vec<&str>| lines.into_iter().map(String::from).collect::<Vec<_>>();
    [fetched(old), installed.into_iter().flatten().collect(), fetched(new)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_flavours_of_the_installed_kernel_are_tested() {
        assert_eq!(
            all_lines("6.1.0-56-cloud-amd64"),
            ["5.10", "6.1.0-56-cloud-amd64", "6.1.0-56-amd64", "6.12", "6.12-rt", "backports"]
        );
        assert_eq!(all_lines("6.1.0-56-amd64"), ["5.10", "6.1.0-56-amd64", "6.12", "6.12-rt", "backports"]);
    }
}
