// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask beside-load`: the guest tests again and again, beside processes that keep CPUs busy. A test whose result
//! depends on the speed of the machine fails here.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

/// The arguments of `cargo xtask beside-load`.
#[derive(clap::Args)]
pub struct Options {
    /// Runs of all the tests
    #[arg(long, default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Processes that keep a CPU busy
    #[arg(long, value_name = "PROCESSES", default_value = "1")]
    busy: u32,
    /// Kernel release that is installed, or a line that is fetched, as for `cargo xtask test`
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Only the guest tests whose name contains one of these
    names: Vec<String>,
    /// Keeps a CPU busy until its parent ends
    #[arg(long, hide = true)]
    as_load: bool,
}

/// Runs the tests; the exit code is 0 if all passed in each run, and none only when it was run again.
pub fn run(options: &Options) -> Result<ExitCode> {
    if options.as_load {
        keep_busy()?;
    }
    crate::setup::run(None)?;
    let mut load = Vec::new();
    for _ in 0..options.busy {
        let mut command = Command::new(crate::tree::own_program());
        command.args(["beside-load", "--as-load"]).stdin(Stdio::null());
        load.push(command.spawn().context("starting a process that keeps a CPU busy")?);
    }
    let result = run_beside(options);
    for mut process in load {
        let _ = process.kill();
        let _ = process.wait();
    }
    result
}

/// Does not return.
fn keep_busy() -> Result<()> {
    set_pdeathsig(Signal::SIGKILL).context("prctl(PR_SET_PDEATHSIG)")?;
    let mut count: u64 = 0;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

fn run_beside(options: &Options) -> Result<ExitCode> {
    let mut failures: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut unfinished = 0;
    for number in 1..=options.runs {
        let mut command = Command::new(crate::tree::own_program());
        command.args(["test", "--guests", "--fresh"]).args(&options.names).current_dir(crate::root());
        if let Some(kernel) = &options.kernel {
            command.args(["--kernel", kernel]);
        }
        let began = Instant::now();
        let ran = command.stdin(Stdio::null()).output().context("running the tests")?;
        let output = String::from_utf8_lossy(&ran.stdout);
        let names = failed_in(&output);
        if !ran.status.success() && names.is_empty() {
            unfinished += 1;
            print!("{output}{}", String::from_utf8_lossy(&ran.stderr));
        }
        let summary = output.lines().last().unwrap_or_default();
        println!("run {number}: {summary}, {} s: {}", began.elapsed().as_secs(), names.join(", "));
        for name in names {
            failures.entry(name).or_default().push(number);
        }
    }
    for (name, runs) in &failures {
        println!("{name}: failed in {} of {} runs: {runs:?}", runs.len(), options.runs);
    }
    println!("{} runs, {} tests failed in some of them, {unfinished} runs ended early", options.runs, failures.len());
    Ok(if failures.is_empty() && unfinished == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tests that failed in a run with this output, each once; also those that passed when they were run again.
fn failed_in(output: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in output.lines() {
        let more = match line.strip_prefix(crate::test::FAILED) {
            Some(name) => name.trim(),
            None => line.strip_prefix(crate::test::NOT_RELIABLE).unwrap_or_default(),
        };
        names.extend(more.split(", ").filter(|name| !name.is_empty()).map(str::to_string));
    }
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_tests_that_passed_only_when_run_again() {
        let output = "ok      a/b\nFAILED  c/d\n      no line\nFAILED  a/a\nFAILED  c/d\n\
            NOT RELIABLE, passed only when run again: a/a, e/f\n3 passed, 1 failed\n";
        assert_eq!(failed_in(output), ["a/a", "c/d", "e/f"]);
        assert_eq!(failed_in("4 passed, 0 failed\n"), Vec::<String>::new());
    }
}
