// SPDX-License-Identifier: GPL-2.0-or-later

//! Times of queries to debug information: `spile` lists and resolves, with an empty cache and with one that knows the
//! kernel; each is compared with its limit, and with a run of SystemTap if that is installed.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};

use super::compiler::{self, Compiler, Options, Run, busy};
use super::median;

struct Case {
    name: &'static str,
    arguments: &'static [&'static str],
    before: Before,
    /// Only the time of pass 2 counts.
    pass: bool,
    /// Its limits on a machine on which gcc compiles an empty file in [`EMPTY_FILE`]; see [`Scale`].
    ms: f64,
    peak_mib: f64,
    /// Lines that it prints at the least.
    lines: usize,
}

/// What is known of the kernel before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// What earlier runs have stored.
    Known,
}

const FUNCTION: &[&str] = &["-p2", "-e", "probe kernel.function(\"vfs_read\") { println($count) }"];
const ALL: &[&str] = &["-l", "kernel.function(\"*\")"];

const CASES: [Case; 9] = [
    Case {
        name: "`-l 'kernel.function(\"*\")'`, new kernel",
        arguments: ALL,
        before: Before::Nothing,
        pass: false,
        ms: 3000.0,
        peak_mib: 800.0,
        lines: 68_000,
    },
    Case {
        name: "the same, known kernel",
        arguments: ALL,
        before: Before::Known,
        pass: false,
        ms: 500.0,
        peak_mib: 400.0,
        lines: 68_000,
    },
    Case {
        name: "pass 2 of a script with one function, new kernel",
        arguments: FUNCTION,
        before: Before::Nothing,
        pass: true,
        ms: 500.0,
        peak_mib: 800.0,
        lines: 1,
    },
    Case {
        name: "the same, known kernel",
        arguments: FUNCTION,
        before: Before::Known,
        pass: true,
        ms: 8.0,
        peak_mib: 30.0,
        lines: 1,
    },
    Case {
        name: "`-L 'kernel.function(\"vfs_*\")'`",
        arguments: &["-L", "kernel.function(\"vfs_*\")"],
        before: Before::Known,
        pass: false,
        ms: 50.0,
        peak_mib: 60.0,
        lines: 50,
    },
    Case {
        name: "`-l 'module(\"nfs\").function(\"*\")'`",
        arguments: &["-l", "module(\"nfs\").function(\"*\")"],
        before: Before::Known,
        pass: false,
        ms: 100.0,
        peak_mib: 60.0,
        lines: 500,
    },
    Case {
        name: "`--list-lines 'kernel.function(\"vfs_*\")'`",
        arguments: &["--list-lines", "kernel.function(\"vfs_*\")"],
        before: Before::Known,
        pass: false,
        ms: 1000.0,
        peak_mib: 100.0,
        lines: 1000,
    },
    Case {
        name: "`--list-lines 'module(\"nfs\").function(\"*\")'`",
        arguments: &["--list-lines", "module(\"nfs\").function(\"*\")"],
        before: Before::Known,
        pass: false,
        ms: 1000.0,
        peak_mib: 100.0,
        lines: 5000,
    },
    Case {
        name: "`--export-index FILE`",
        arguments: &["--export-index", "kernel.index"],
        before: Before::Known,
        pass: false,
        ms: 5000.0,
        peak_mib: 400.0,
        lines: 1,
    },
];

/// Milliseconds that `gcc -c` of an empty file takes on the machine that the limits are for.
const EMPTY_FILE: f64 = 19.0;

/// `--check` fails where a limit is exceeded by more than this: single runs differ.
const MARGIN: f64 = 1.25;

/// The same for the export, which does not meet its limit yet: it must not become worse.
const MARGIN_WHERE_NOT_MET: f64 = 3.0;

/// The speed of this machine at this time: how long gcc takes for an empty file.
struct Scale {
    empty_ms: f64,
}

impl Scale {
    /// The best of some runs. A loaded machine is slow for us and for gcc.
    fn measured(directory: &Path) -> Result<Scale> {
        std::fs::write(directory.join("empty.c"), "")?;
        let mut empty_ms = f64::INFINITY;
        for _ in 0..10 {
            let mut gcc = Command::new("gcc");
            gcc.args(["-c", "empty.c", "-o", "empty.o"]).current_dir(directory);
            let started = Instant::now();
            ensure!(gcc.status()?.success(), "gcc does not compile an empty file");
            empty_ms = empty_ms.min(started.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(Scale { empty_ms })
    }

    /// A limit on this machine: more where gcc takes longer, never less.
    fn limit(&self, ms: f64) -> f64 {
        ms * (self.empty_ms / EMPTY_FILE).max(1.0)
    }
}

/// A measured case.
struct Row {
    text: String,
    /// By how much it exceeds its limits: 1 is at the limit.
    share: f64,
}

/// Measures reading of debug information, and writes the page in docs/.
pub fn run(options: &Options) -> Result<ExitCode> {
    let compiler = Compiler::new(options)?;
    let scale = Scale::measured(compiler.directory.path())?;
    let mut rows = Vec::new();
    let mut exceeded = Vec::new();
    for case in &CASES {
        let row = measure(&compiler, case, &scale, options.rounds.max(1))?;
        println!("{}", row.text);
        let not_met = case.arguments.first() == Some(&"--export-index");
        let margin = if not_met { MARGIN_WHERE_NOT_MET } else { MARGIN };
        if row.share > margin {
            exceeded.push(format!("{}: {:.1} times its limit", case.name, row.share));
        }
        rows.push(row.text);
    }
    if options.check {
        exceeded.iter().for_each(|line| println!("{line}"));
        return Ok(if exceeded.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    compiler::publish("debuginfo", options, &page(&compiler, options, &scale, &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn measure(compiler: &Compiler, case: &Case, scale: &Scale, rounds: usize) -> Result<Row> {
    let cache = compiler.directory.path().join("cache");
    let mut runs = Vec::new();
    // The first is not measured: it has the files read, and the kernel known.
    for round in 0..=rounds {
        if case.before == Before::Nothing {
            let _ = std::fs::remove_dir_all(&cache);
        }
        let run = one(compiler, case, &cache)?;
        if round > 0 {
            runs.push(run);
        }
    }
    let middle = |value: &dyn Fn(&Run) -> f64| median(runs.iter().map(value).collect());
    let least = |value: &dyn Fn(&Run) -> f64| runs.iter().map(value).fold(f64::INFINITY, f64::min);
    let best = least(&|run| run.ms);
    let peak = runs.iter().map(|run| run.peak_mib).fold(0.0, f64::max);
    let limit = scale.limit(case.ms);
    // On a machine with other work the clock says more of that than of us. Of pass 2 alone there is only the clock; what two threads do
    // takes half its time on CPUs at the best.
    let time = if busy() && !case.pass { best.min(least(&|run| run.cpu_ms)) } else { best };
    let share = (time / limit).max(peak / case.peak_mib);
    let kept = if share <= 1.0 { "yes" } else { "**no**" };
    let whole = middle(&|run| run.ms);
    let stap = by_systemtap(compiler, case).map_or("-".into(), |ms| format!("{ms:.0} ms, {:.0} times", ms / whole));
    let text = format!(
        "| {} | {whole:.0} ms | {best:.0} ms | {:.0} ms | {:.1} | {limit:.0} ms, {:.0} MiB | {peak:.0} MiB | {kept} | {stap} |",
        case.name,
        middle(&|run| run.cpu_ms),
        best / scale.empty_ms,
        case.peak_mib
    );
    Ok(Row { text, share })
}

/// Milliseconds that `stap` takes for the same; `None` where it is not installed or fails, and for cases that it does not have:
/// it knows no kernel from before, and of its pass 2 we measure nothing.
fn by_systemtap(compiler: &Compiler, case: &Case) -> Option<f64> {
    let has_none = case.arguments.first().is_some_and(|option| option.starts_with("--"));
    if case.pass || has_none || case.before == Before::Known && case.arguments == ALL {
        return None;
    }
    let mut command = Command::new("stap");
    command.current_dir(compiler.directory.path()).env("SYSTEMTAP_DIR", compiler.directory.path().join("stap"));
    command
        .args(["-r", &compiler.release])
        .args(case.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = Instant::now();
    let status = command.status().ok()?;
    status.success().then(|| started.elapsed().as_secs_f64() * 1000.0)
}

fn one(compiler: &Compiler, case: &Case, cache: &Path) -> Result<Run> {
    let mut run = compiler.run(cache, case.arguments.iter().copied())?;
    let lines = run.stdout.iter().filter(|byte| **byte == b'\n').count();
    ensure!(lines >= case.lines, "{:?} printed {lines} lines, not {}", case.arguments, case.lines);
    if case.pass {
        run.ms = run.reported(r#""elaborate"[^}]*?"#)?;
    }
    Ok(run)
}

/// "Systemtap translator/driver (version 4.8/0.188, Debian version 4.8-2)"
fn systemtap_version() -> Option<String> {
    let stderr = Command::new("stap").arg("--version").output().ok()?.stderr;
    let line = String::from_utf8_lossy(&stderr).lines().next()?.to_string();
    Some(line.split_once('(')?.1.trim_end_matches(')').to_string())
}

fn page(compiler: &Compiler, options: &Options, scale: &Scale, rows: &[String]) -> String {
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    format!(
        "# Reading debug information

{} Times are of the
whole command, a release build, or of pass 2 where the case says so; CPU time and memory are those of the whole command. \"New kernel\":
with an empty cache. gcc takes {:.1} ms for an empty file here (the best of ten runs); \"ratio\" is the best run's to that. The limits are for
a machine on which it takes {EMPTY_FILE} ms; where it takes longer, they are longer in proportion. \"Met\": the best run (above a load of one
per CPU, the CPU time if that is less) and the memory of each run are within the limits. `cargo xtask bench debuginfo --check` fails where one
is exceeded by more than a quarter; for `--export-index`, which has not met them, where one is exceeded threefold.

| case | median | best | CPU time | ratio | limit | memory | met | SystemTap |
|---|---|---|---|---|---|---|---|---|
{rows}
\"SystemTap\": {}, one run right after spile's, and the ratio to the median; it has no cache of a kernel.
SystemTap 5.6 takes 135 s and 1.3 GB for the first of them.

The listing of all functions on a known kernel looks at one place of each function in each unit, 126,000 of 320,000, and takes 1.8 billion
instructions (callgrind; all places take 3.3): 25 % read the functions, 19 % find whether a probe may be placed (symbols, places that the kernel
refuses), 17 % make the sites with their texts, 8 % find the functions, 5 % sort. Across these, a quarter is memory allocation. Static functions of
headers are in many units and are one line.

Memory includes pages of files that are mapped: the program's own, 11 MiB, and those of the cache.

Where the CPU time of `--export-index` went (perf) before the last sixth of it was saved: 22 % variables where functions and inlined copies begin, 17 % calls and labels in functions, 16 % functions and their
inlined copies, 13 % gives rows to types and variables, 9 % writes, 8 % compresses, 6 % lines. Across these, memory allocation takes a fifth, in
many places of which none has more than 2 %. With mimalloc as the allocator the whole took 5 to 23 % less, but up to 386 MiB, and 1,000 MiB under
`ulimit -v 1500000`; and mimalloc follows variables of the environment, also where this file is the loader.
As one unit of the Rust compiler (`codegen-units = 1` for spile-debuginfo) it takes 2 % less, in two runs of each, which is not more than runs differ.
Two threads share all but the last steps and the search for inlined copies of single large units. Memory is for the most part
what is kept of each function until all are written in the order of their names.
",
        compiler::conditions("debuginfo", options, &compiler.release),
        scale.empty_ms,
        systemtap_version().unwrap_or("not installed".into())
    )
}
