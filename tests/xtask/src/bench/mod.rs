// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask bench`: measures, and writes the results to a page in docs/.

mod arming;
mod build;
mod cases;
mod compiler;
mod debuginfo;
mod edit;
mod interrupting;
mod maps;
mod output;
mod parts;
mod runtime;
mod scale;
mod scripts;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// The arguments of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Options {
    /// The measurement
    #[command(subcommand)]
    what: Benchmark,
}

/// The benchmarks.
#[derive(Subcommand)]
enum Benchmark {
    /// What arming tens of thousands of probes takes, in guests: docs/bench-arming.md
    Arming(cases::Options),
    /// From script to module: docs/bench-build.md
    Build(compiler::Options),
    /// How long debug information takes to answer: docs/bench-debuginfo.md
    Debuginfo(compiler::Options),
    /// How long unit tests take after an edit of one file: docs/bench-edit.md
    Edit(edit::Options),
    /// What a hit of a probe costs, in a guest that counts instructions: docs/bench-runtime.md
    Runtime(cases::Options),
    /// Where the instructions of a hit go, by function: a table of docs/bench-runtime.md
    Parts(cases::Options),
    /// How hits on several CPUs affect each other, in user space: docs/bench-scale.md
    Scale(scale::Options),
}

/// Runs the measurements that the options name.
pub fn run(options: &Options) -> Result<ExitCode> {
    match &options.what {
        Benchmark::Arming(options) => arming::run(options),
        Benchmark::Build(options) => build::run(options),
        Benchmark::Debuginfo(options) => debuginfo::run(options),
        Benchmark::Edit(options) => edit::run(options),
        Benchmark::Runtime(options) => runtime::run(options),
        Benchmark::Parts(options) => parts::run(options),
        Benchmark::Scale(options) => scale::run(options),
    }
}

/// The middle of some numbers; of an even count, the lower of the two in the middle.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.0);
        assert!(median(vec![]).is_nan());
    }
}
