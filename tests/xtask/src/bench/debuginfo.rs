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
    /// Nothing is known of the kernel.
    fresh: bool,
    /// Only the time of pass 2 counts.
    pass: bool,
    /// Its limit.
    ms: f64,
    peak_mib: f64,
    /// Lines that it prints at the least.
    lines: usize,
}

const FUNCTION: &[&str] = &["-p2", "-e", "probe kernel.function(\"vfs_read\") { println($count) }"];
const ALL: &[&str] = &["-l", "kernel.function(\"*\")"];

const CASES: [Case; 6] = [
    Case {
        name: "`-l 'kernel.function(\"*\")'`, new kernel",
        arguments: ALL,
        fresh: true,
        pass: false,
        ms: 3000.0,
        peak_mib: 800.0,
        lines: 69_000,
    },
    Case {
        name: "the same, known kernel",
        arguments: ALL,
        fresh: false,
        pass: false,
        ms: 1000.0,
        peak_mib: 800.0,
        lines: 69_000,
    },
    Case {
        name: "pass 2 of a script with one function, new kernel",
        arguments: FUNCTION,
        fresh: true,
        pass: true,
        ms: 500.0,
        peak_mib: 800.0,
        lines: 1,
    },
    Case {
        name: "the same, known kernel",
        arguments: FUNCTION,
        fresh: false,
        pass: true,
        ms: 50.0,
        peak_mib: 800.0,
        lines: 1,
    },
    Case {
        name: "`-L 'kernel.function(\"vfs_*\")'`",
        arguments: &["-L", "kernel.function(\"vfs_*\")"],
        fresh: false,
        pass: false,
        ms: 100.0,
        peak_mib: 800.0,
        lines: 50,
    },
    Case {
        name: "`-l 'module(\"nfs\").function(\"*\")'`",
        arguments: &["-l", "module(\"nfs\").function(\"*\")"],
        fresh: false,
        pass: false,
        ms: 100.0,
        peak_mib: 800.0,
        lines: 500,
    },
];

/// Measures reading of debug information, and writes the page in docs/.
pub fn run(options: &Options) -> Result<ExitCode> {
    let compiler = Compiler::new(options)?;
    let mut rows = Vec::new();
    for case in &CASES {
        let row = measure(&compiler, case, options.rounds.max(1))?;
        println!("{row}");
        rows.push(row);
    }
    compiler::publish("debuginfo", options, &page(&compiler, options, &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn measure(compiler: &Compiler, case: &Case, rounds: usize) -> Result<String> {
    let cache = compiler.directory.path().join("cache");
    let mut runs = Vec::new();
    // The first is not measured: it has the files read, and the kernel known.
    for round in 0..=rounds {
        if case.fresh {
            let _ = std::fs::remove_dir_all(&cache);
        }
        let run = one(compiler, case, &cache)?;
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
    let whole = middle(&|run| run.ms);
    let stap = by_systemtap(compiler, case).map_or("-".into(), |ms| format!("{ms:.0} ms, {:.0} times", ms / whole));
    Ok(format!(
        "| {} | {whole:.0} ms | {best:.0} ms | {:.0} ms | {:.0} ms | {peak:.0} MiB | {kept} | {stap} |",
        case.name,
        middle(&|run| run.cpu_ms),
        case.ms
    ))
}

/// Milliseconds that `stap` takes for the same; `None` where it is not installed or fails, and for cases that it does not have:
/// it knows no kernel from before, and of its pass 2 we measure nothing.
fn by_systemtap(compiler: &Compiler, case: &Case) -> Option<f64> {
    if case.pass || !case.fresh && case.arguments == ALL {
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

fn page(compiler: &Compiler, options: &Options, rows: &[String]) -> String {
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    format!(
        "# Reading debug information

{} Times are of the
whole command, a release build, or of pass 2 where the case says so; CPU time is that of the whole command. \"New kernel\": with an empty
cache. \"Met\": the best run (above a load of one per CPU, the CPU time) is within the limit, and no run takes more than 800 MiB.

| case | median | best | CPU time | limit | memory | met | SystemTap |
|---|---|---|---|---|---|---|---|
{rows}
\"SystemTap\": {}, one run right after spile's, and the ratio to the median; it has no cache of a kernel.
SystemTap 5.6 takes 135 s and 1.3 GB for the first of them.
",
        compiler::conditions("debuginfo", options, &compiler.release),
        systemtap_version().unwrap_or("not installed".into())
    )
}
