// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask threads`: scripts compiled to C, linked in user space with the part of the runtime that a hit runs through
//! (runtime-c/tests/threads), and hit from several threads at once. Part of `cargo xtask test`; longer by hand:
//!
//!     cargo xtask threads --hits 2000000            # of each thread, all scripts
//!     cargo xtask threads deleted --hits 10000000
//!
//! Each script is run under ThreadSanitizer, and without it, with 2, 4 and 16 threads. Totals must be exact: the script's
//! end probe prints that, and the runtime has counted every hit as handled.

pub mod build;
mod scripts;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use build::Sanitizer;
use scripts::{SCRIPTS, Script};

/// The arguments of `cargo xtask threads`.
#[derive(clap::Args)]
pub struct Options {
    /// Only scripts whose name contains this
    #[arg(value_name = "PART")]
    only: Option<String>,
    /// Hits of each of two threads; more threads make as many together; under ThreadSanitizer a tenth
    #[arg(long, default_value_t = USUAL)]
    hits: u64,
}

/// Number of hits in `cargo xtask test`.
const USUAL: u64 = 100_000;
const THREADS: [u64; 3] = [2, 4, 16];
const SANITIZERS: [Sanitizer; 2] = [Sanitizer::None, Sanitizer::Thread];
const MAIN: &str = "threads.c";

/// Runs the scripts on threads, and reports races and wrong totals.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    crate::programs::build_programs(&root)?;
    let directory = root.join("target/threads");
    std::fs::create_dir_all(&directory)?;
    let chosen: Vec<&Script> = SCRIPTS
        .iter()
        .filter(|script| options.only.as_ref().is_none_or(|part| script.name.contains(part.as_str())))
        .collect();
    ensure!(!chosen.is_empty(), "no script's name contains this; there are: {}", names());
    let shared = crate::parallel::map(SANITIZERS.len(), |index| {
        build::shared(&root, &directory, MAIN, SANITIZERS[index]).map(|shared| (SANITIZERS[index], shared))
    });
    let shared = shared.into_iter().collect::<Result<Vec<_>>>()?;
    let wrong =
        crate::parallel::map(chosen.len(), |index| try_one(&root, &directory, chosen[index], options.hits, &shared));
    let wrong: Vec<String> = wrong.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    for fault in &wrong {
        println!("{fault}");
    }
    println!("{} scripts, {} runs went wrong", chosen.len(), wrong.len());
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn names() -> String {
    SCRIPTS.iter().map(|script| script.name).collect::<Vec<_>>().join(", ")
}

/// What is wrong with the runs of a script. `shared`: what each of its programs is linked with.
fn try_one(
    root: &Path,
    directory: &Path,
    script: &Script,
    hits: u64,
    shared: &[(Sanitizer, PathBuf)],
) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let c = build::translate(root, directory, &script.name.replace(' ', "_"), script.text)?;
    for (sanitizer, shared) in shared {
        if *sanitizer == Sanitizer::Thread && script.races_by_design {
            continue;
        }
        let program = build::program(root, &c, MAIN, *sanitizer, Some(shared))?;
        let hits = if *sanitizer == Sanitizer::Thread { hits / 10 } else { hits };
        for threads in THREADS {
            let each = (2 * hits / threads).max(1) * script.probes;
            if let Err(error) = run_once(&program, script, threads, each) {
                wrong.push(format!("{}, {threads} threads, {sanitizer:?}: {error:#}", script.name));
            }
        }
    }
    Ok(wrong)
}

fn run_once(program: &PathBuf, script: &Script, threads: u64, hits: u64) -> Result<()> {
    let output = Command::new(program)
        .args(["-t", &threads.to_string(), "-n", &hits.to_string()])
        .args(script.options)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && stderr.is_empty(), "{}\n{stdout}{stderr}", output.status);
    check(&stdout, threads * hits, script.prints.then_some(script.probes))
}

/// Every hit was handled, the script is content, and every record was printed or counted as lost. `prints`: one of this many
/// probes writes a record.
fn check(stdout: &str, hits: u64, prints: Option<u64>) -> Result<()> {
    let mut lines: Vec<&str> = stdout.lines().collect();
    let totals = lines.pop().context("no output")?;
    ensure!(lines == ["exact"], "the script prints {lines:?}");
    let number = |name: &str| -> Result<u64> {
        let mut words = totals.split(' ').skip_while(|word| *word != name);
        words.nth(1).and_then(|number| number.parse().ok()).with_context(|| format!("no {name}: {totals}"))
    };
    for (name, expected) in [("hits", hits), ("handled", hits), ("skipped", 0), ("errors", 0)] {
        ensure!(number(name)? == expected, "{name} is not {expected}: {totals}");
    }
    let records = prints.map_or(0, |probes| hits / probes);
    ensure!(number("printed")? + number("lost")? == records, "not {records} records: {totals}");
    ensure!(number("sum")? == number("printed")?, "a record has another number: {totals}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_total_is_looked_at() {
        let good = "exact\nhits 8 handled 8 skipped 0 errors 0 lost 1 printed 3 sum 3\n";
        assert!(check(good, 8, Some(2)).is_ok());
        assert!(check(good, 8, None).is_err());
        assert!(check(good, 9, Some(2)).is_err());
        assert!(check(&good.replace("exact", "7 of 8"), 8, Some(2)).is_err());
        assert!(check(&good.replace("skipped 0", "skipped 1"), 8, Some(2)).is_err());
        assert!(check(&good.replace("sum 3", "sum 4"), 8, Some(2)).is_err());
    }
}
