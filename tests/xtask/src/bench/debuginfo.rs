//! How long debug information takes to answer: runs of `spile` that list and resolve, from a new cache and from one that
//! knows the kernel, each against what it may take.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use regex::Regex;

use super::median;
use crate::place::Place;

#[derive(clap::Args)]
pub struct Options {
    /// Runs of each case
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Leaves docs/bench-debuginfo.md as it is
    #[arg(long)]
    dry: bool,
    /// The compiler to measure; default: that of cargo build --release, as cargo install has it
    #[arg(long, value_name = "FILE")]
    spile: Option<PathBuf>,
}

struct Case {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Nothing is known of the kernel.
    fresh: bool,
    /// Only the time of pass 2 counts.
    pass: bool,
    /// What it may take.
    ms: f64,
    peak_mib: f64,
    /// Lines that it prints at the least.
    lines: usize,
}

const FUNCTION: &[&str] = &["-p2", "-e", "probe kernel.function(\"vfs_read\") { println($count) }"];
const ALL: &[&str] = &["-l", "kernel.function(\"*\")"];

const CASES: [Case; 6] = [
    Case { name: "`-l 'kernel.function(\"*\")'`, new kernel", arguments: ALL, fresh: true, pass: false, ms: 3000.0, peak_mib: 800.0, lines: 69_000 },
    Case { name: "the same, known kernel", arguments: ALL, fresh: false, pass: false, ms: 1000.0, peak_mib: 800.0, lines: 69_000 },
    Case { name: "pass 2 of a script with one function, new kernel", arguments: FUNCTION, fresh: true, pass: true, ms: 500.0, peak_mib: 800.0, lines: 1 },
    Case { name: "the same, known kernel", arguments: FUNCTION, fresh: false, pass: true, ms: 50.0, peak_mib: 800.0, lines: 1 },
    Case { name: "`-L 'kernel.function(\"vfs_*\")'`", arguments: &["-L", "kernel.function(\"vfs_*\")"], fresh: false, pass: false, ms: 100.0, peak_mib: 800.0, lines: 50 },
    Case { name: "`-l 'module(\"nfs\").function(\"*\")'`", arguments: &["-l", "module(\"nfs\").function(\"*\")"], fresh: false, pass: false, ms: 100.0, peak_mib: 800.0, lines: 500 },
];

struct Run {
    ms: f64,
    cpu_ms: f64,
    peak_mib: f64,
}

struct Bench {
    spile: PathBuf,
    release: String,
    directory: tempfile::TempDir,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let place = Place::find(None)?;
    let root = crate::root();
    let spile = match &options.spile {
        Some(file) => file.canonicalize().with_context(|| format!("finding {}", file.display()))?,
        None => {
            let status = Command::new(crate::test::cargo()).args(["build", "--release", "--quiet", "--package", "spile"]).current_dir(&root).status();
            ensure!(status.context("running cargo build")?.success(), "spile does not build");
            root.join("target/release/spile")
        }
    };
    let bench = Bench { spile, release: place.kernel.release, directory: tempfile::tempdir()? };
    let mut rows = Vec::new();
    for case in &CASES {
        let row = bench.case(case, options.rounds.max(1))?;
        println!("{row}");
        rows.push(row);
    }
    if !options.dry {
        let file = root.join("docs/bench-debuginfo.md");
        std::fs::write(&file, page(&bench, options, &rows)).with_context(|| format!("writing {}", file.display()))?;
        println!("wrote {}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

impl Bench {
    fn case(&self, case: &Case, rounds: usize) -> Result<String> {
        let cache = self.directory.path().join("cache");
        let mut runs = Vec::new();
        // The first is not measured: it has the files read, and the kernel known.
        for round in 0..=rounds {
            if case.fresh {
                let _ = std::fs::remove_dir_all(&cache);
            }
            let run = self.one(case, &cache)?;
            if round > 0 {
                runs.push(run);
            }
        }
        let middle = |value: &dyn Fn(&Run) -> f64| median(runs.iter().map(value).collect());
        let best = runs.iter().map(|run| run.ms).fold(f64::INFINITY, f64::min);
        let peak = runs.iter().map(|run| run.peak_mib).fold(0.0, f64::max);
        // On a machine with other work the clock says more of that than of us.
        let time = if busy() { middle(&|run| run.cpu_ms) } else { best };
        let kept = if time <= case.ms && peak <= case.peak_mib { "yes" } else { "**no**" };
        Ok(format!(
            "| {} | {:.0} ms | {best:.0} ms | {:.0} ms | {:.0} ms | {peak:.0} MiB | {kept} |",
            case.name,
            middle(&|run| run.ms),
            middle(&|run| run.cpu_ms),
            case.ms
        ))
    }

    fn one(&self, case: &Case, cache: &Path) -> Result<Run> {
        let mut command = Command::new(&self.spile);
        command.current_dir(self.directory.path()).env("SPILE_CACHE_DIR", cache).stdin(Stdio::null());
        command.args(["-r", &self.release, "--time-report=json"]).args(case.arguments);
        let started = Instant::now();
        let output = command.output().with_context(|| format!("running {}", self.spile.display()))?;
        let whole = started.elapsed().as_secs_f64() * 1000.0;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "spile failed on {:?}:\n{said}", case.arguments);
        let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
        ensure!(lines >= case.lines, "{:?} printed {lines} lines, not {}", case.arguments, case.lines);
        let number = |pattern: &str| -> Result<f64> {
            let found = Regex::new(pattern)?.captures(&said).and_then(|found| found[1].parse().ok());
            found.with_context(|| format!("nothing like {pattern} in the time report: {said}"))
        };
        let ms = if case.pass { number(r#""elaborate"[^}]*?([\d.]+)"#)? } else { whole };
        Ok(Run { ms, cpu_ms: number(r#""cpu_ms":([\d.]+)"#)?, peak_mib: number(r#""peak_kib":([\d.]+)"#)? / 1024.0 })
    }
}

/// Whether more wants to run than there are processors.
fn busy() -> bool {
    load().parse::<f64>().is_ok_and(|load| load > std::thread::available_parallelism().map_or(1, usize::from) as f64)
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or("unknown").to_string()
}

fn page(bench: &Bench, options: &Options, rows: &[String]) -> String {
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let load = load();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "# Debug information: how long it takes to answer

Written by `cargo xtask bench debuginfo`: {} rounds, kernel {}, {cpus} processors, load average {load} (a load above the number
of processors makes the medians larger than what a user sees; the best run and the time on CPUs tell more then). Times are of the
whole command (as `cargo install` makes it), start to end, or of pass 2 where that is said; time on CPUs is the whole command's.
\"New\": nothing is kept of the kernel. \"Kept\": the best run (where the load is above the number of processors, the time on CPUs)
is no more than it may be, and no run takes more than 800 MiB.

| case | median | best | on CPUs | may take | memory | kept |
|---|---|---|---|---|---|---|
{rows}
SystemTap 5.6 takes 135 s and 1.3 GB for the first of them.
",
        options.rounds, bench.release
    )
}
