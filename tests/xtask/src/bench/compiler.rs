// SPDX-License-Identifier: GPL-2.0-or-later

//! Runs of `spile`, measured: each with a time report, in a directory and with a cache of the bench's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use regex::Regex;

use crate::place::Place;

/// The arguments of `cargo xtask bench build` and `bench debuginfo`.
#[derive(clap::Args)]
pub struct Options {
    /// Runs of each case
    #[arg(long, default_value_t = 9)]
    pub rounds: usize,
    /// Leaves the page in docs/ as it is
    #[arg(long)]
    dry: bool,
    /// Writes nothing, and fails where a goal is not met within a margin (of builds: nor the figure of the page)
    #[arg(long)]
    pub check: bool,
    /// The compiler to measure; default: that of cargo build --release, as cargo install has it
    #[arg(long, value_name = "FILE")]
    spile: Option<PathBuf>,
}

/// A compiler, the kernel it compiles for, and a directory for its output.
pub struct Compiler {
    file: PathBuf,
    /// Release of the kernel that it compiles for.
    pub release: String,
    /// Temporary directory.
    pub directory: tempfile::TempDir,
}

/// Builds the compiler as cargo install does.
pub fn released() -> Result<PathBuf> {
    let root = crate::root();
    let status = Command::new(crate::programs::cargo())
        .args(["build", "--release", "--quiet", "--package", "spile"])
        .current_dir(&root)
        .status();
    ensure!(status.context("running cargo build")?.success(), "spile does not build");
    Ok(root.join("target/release/spile"))
}

/// One run.
pub struct Run {
    /// From start to end.
    pub ms: f64,
    /// On CPUs, of spile and of the programs that it ran.
    pub cpu_ms: f64,
    /// Peak memory of spile itself.
    pub peak_mib: f64,
    /// Its standard output.
    pub stdout: Vec<u8>,
    report: String,
}

impl Compiler {
    /// The compiler of the options and the installed kernel. Fails if there is no such compiler or kernel.
    pub fn new(options: &Options) -> Result<Self> {
        let file = match &options.spile {
            Some(file) => file.canonicalize().with_context(|| format!("finding {}", file.display()))?,
            None => released()?,
        };
        Ok(Self { file, release: Place::find(None)?.kernel.release, directory: tempfile::tempdir()? })
    }

    /// Runs the compiler with this cache directory. Fails if it does.
    pub fn run<'a>(&self, cache: &Path, arguments: impl IntoIterator<Item = &'a str>) -> Result<Run> {
        let mut command = Command::new(&self.file);
        command.current_dir(self.directory.path()).env("SPILE_CACHE_DIR", cache).stdin(Stdio::null());
        command.args(["-r", &self.release, "--time-report=json"]).args(arguments);
        let started = Instant::now();
        let output = command.output().with_context(|| format!("running {}", self.file.display()))?;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{command:?} failed:\n{report}");
        let run = Run { ms, cpu_ms: 0.0, peak_mib: 0.0, stdout: output.stdout, report };
        Ok(Run { cpu_ms: run.reported(r#""cpu_ms":"#)?, peak_mib: run.reported(r#""peak_kib":"#)? / 1024.0, ..run })
    }
}

impl Run {
    /// The number after the pattern's match in the time report.
    pub fn reported(&self, pattern: &str) -> Result<f64> {
        let found =
            Regex::new(&format!(r"{pattern}([\d.]+)"))?.captures(&self.report).and_then(|found| found[1].parse().ok());
        found.with_context(|| format!("nothing like {pattern} in the time report: {}", self.report))
    }
}

/// The first sentence of a page: how its figures were measured.
pub fn conditions(bench: &str, options: &Options, release: &str) -> String {
    let (load, cpus) = (load(), processors());
    format!(
        "Written by `cargo xtask bench {bench}`: {} rounds, kernel {release}, {cpus} CPUs, load average {load} (above the
number of CPUs the medians are larger than usual; compare the best run and the CPU time).",
        options.rounds
    )
}

/// Writes the page into docs/, unless an option prevents it.
pub fn publish(bench: &str, options: &Options, page: &str) -> Result<()> {
    if options.dry {
        return Ok(());
    }
    let file = crate::root().join(format!("docs/bench-{bench}.md"));
    std::fs::write(&file, page).with_context(|| format!("writing {}", file.display()))?;
    println!("wrote {}", file.display());
    Ok(())
}

/// Whether more tasks are runnable than there are CPUs.
pub fn busy() -> bool {
    load().parse::<f64>().is_ok_and(|load| load > processors() as f64)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The load average of the last minute, as /proc/loadavg has it.
pub fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or("unknown").to_string()
}
