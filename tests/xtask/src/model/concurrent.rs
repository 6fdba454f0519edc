// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask model --parallel`: random programs whose handlers run on several threads at once, in user space
//! (runtime-c/tests/threads), thousands of times each. The final globals must be those of some order of the handlers.
//! Also under ThreadSanitizer, and once without locks, when results must be wrong.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use super::generate::concurrent::{self, Concurrent};
use super::interpret::{Limits, MAX_NESTING, interleaved};
use super::{Options, write};
use crate::threads::build::{self, Sanitizer};

const MAIN: &str = "rounds.c";
/// Of the compiler and of the model.
const LIMITS: Limits = Limits { string_bytes: 512, map_entries: 2048, events: 0 };
/// Without locks this must go wrong: two threads with two handlers each, of which each reads both numbers, takes some time and
/// writes them.
const UNLOCKED: &str = r#"
global a = 1, b = 0
probe begin { a = 1; b = 0 }
probe timer.profile { x = a; y = b; if (gettimeofday_ns()) a = x + 1; b = y + a }
probe timer.profile { x = a; y = b; if (gettimeofday_ns()) a = x * 2; b = y + a }
probe timer.profile { x = a; y = b; if (gettimeofday_ns()) a = x + 3; b = y + a }
probe timer.profile { x = a; y = b; if (gettimeofday_ns()) a = x * 5; b = y + a }
probe end { log(sprintf("%d %d", a, b)) }
"#;
const UNLOCKED_ROUNDS: u64 = 20_000;

type Results = BTreeSet<Vec<Vec<u8>>>;

/// A program with its seed and its possible results.
struct Subject {
    seed: u64,
    concurrent: Concurrent,
    allowed: Results,
}

/// The results of a program, and the wrong ones.
#[derive(Default)]
struct Observations {
    results: usize,
    wrong: Vec<String>,
}

/// Runs them, and reports results that no order gives.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    crate::programs::build_programs(&root)?;
    let directory = super::directory().join("parallel");
    super::fresh(&directory)?;
    let subjects: Vec<Subject> = (options.seed..options.seed + options.count).map(subject).collect();
    if options.show {
        for subject in &subjects {
            println!("# seed {}: {} results\n{}", subject.seed, subject.allowed.len(), script(subject));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let kinds = [Sanitizer::None, Sanitizer::Thread, Sanitizer::Unlocked];
    let shared = crate::parallel::map(kinds.len(), |index| {
        build::shared(&root, &directory, MAIN, kinds[index]).map(|shared| (kinds[index], shared))
    });
    let shared = shared.into_iter().collect::<Result<Vec<_>>>()?;
    let seen = crate::parallel::map(subjects.len(), |index| {
        try_one(&root, &directory, &subjects[index], options.rounds, &shared)
    });
    let seen = seen.into_iter().collect::<Result<Vec<Observations>>>()?;
    let wrong: Vec<&String> = seen.iter().flat_map(|seen| &seen.wrong).collect();
    wrong.iter().for_each(|message| println!("{message}"));
    let results: usize = seen.iter().map(|seen| seen.results).sum();
    let allowed: usize = subjects.iter().map(|subject| subject.allowed.len()).sum();
    println!("{} programs, {} of {allowed} results seen, {} runs went wrong", subjects.len(), results, wrong.len());
    let noticed = detects_missing_locks(&root, &directory, &shared)?;
    if !noticed {
        println!("FAILED: without locks nothing goes wrong either");
    }
    Ok(if wrong.is_empty() && noticed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The program for a seed.
fn subject(seed: u64) -> Subject {
    let attempts = (0..).map(|attempt: u64| concurrent::program(seed ^ (attempt << 40)));
    let found = attempts
        .filter_map(|concurrent| {
            let allowed = interleaved::results(&concurrent.program, LIMITS, concurrent.threads, concurrent.hits)?;
            Some((concurrent, allowed))
        })
        .next();
    // SANITY: attempts are unlimited.
    let (concurrent, allowed) = found.expect("a program that suits");
    Subject { seed, concurrent, allowed }
}

fn script(subject: &Subject) -> String {
    write::concurrent_script(&subject.concurrent.program)
}

/// Whether a runtime without locks of whole globals gives results that no order gives, and one with them does not.
fn detects_missing_locks(root: &Path, directory: &Path, shared: &[(Sanitizer, PathBuf)]) -> Result<bool> {
    let c = build::translate(root, directory, "unlocked", UNLOCKED)?;
    let steps: [fn(i64) -> i64; 4] = [|a| a + 1, |a| a * 2, |a| a + 3, |a| a * 5];
    let left = |order: Vec<usize>| {
        let (mut a, mut b) = (1, 0);
        for handler in order {
            a = steps[handler](a);
            b += a;
        }
        interleaved::sorted_lines(format!("{a} {b}\n").as_bytes())
    };
    let allowed: Results = interleaved::orders(2, 2).into_iter().map(left).collect();
    let mut right = Vec::new();
    for (sanitizer, shared) in shared.iter().filter(|(sanitizer, _)| *sanitizer != Sanitizer::Thread) {
        let program = build::program(root, &c, MAIN, *sanitizer, Some(shared))?;
        right.push(run_once(&program, 2, 2, UNLOCKED_ROUNDS)?.is_subset(&allowed));
    }
    Ok(right == [true, false])
}

fn try_one(
    root: &Path,
    directory: &Path,
    subject: &Subject,
    rounds: u64,
    shared: &[(Sanitizer, PathBuf)],
) -> Result<Observations> {
    let c = build::translate_with(
        root,
        directory,
        &subject.seed.to_string(),
        &script(subject),
        &[format!("-DMAXNESTING={MAX_NESTING}")],
    )?;
    let Concurrent { threads, hits, .. } = subject.concurrent;
    let mut seen = Observations::default();
    for (sanitizer, shared) in shared.iter().filter(|(sanitizer, _)| *sanitizer != Sanitizer::Unlocked) {
        let program = build::program(root, &c, MAIN, *sanitizer, Some(shared))?;
        let rounds = if *sanitizer == Sanitizer::None { rounds } else { rounds.div_ceil(10) };
        let results = run_once(&program, threads, hits, rounds);
        let place = c.with_extension("stp");
        let at = || format!("seed {}, {sanitizer:?}: {}", subject.seed, place.display());
        match results {
            Err(error) => seen.wrong.push(format!("{}\n{error:#}", at())),
            Ok(results) => {
                seen.results = seen.results.max(results.intersection(&subject.allowed).count());
                let wrong = results.difference(&subject.allowed).next();
                seen.wrong.extend(wrong.map(|wrong| format!("{}\n{}", at(), describe(wrong, &subject.allowed))));
            }
        }
    }
    Ok(seen)
}

/// A result that no order gives, beside the one that has most lines of it.
fn describe(wrong: &[Vec<u8>], allowed: &Results) -> String {
    let common = |one: &&Vec<Vec<u8>>| one.iter().filter(|line| wrong.contains(line)).count();
    let text = |lines: &[Vec<u8>]| -> String {
        lines.iter().map(|line| format!("    {}\n", String::from_utf8_lossy(line))).collect()
    };
    let nearest = allowed.iter().max_by_key(common).map(|near| text(near)).unwrap_or_default();
    format!("  came out:\n{}  the nearest of {} that may:\n{nearest}", text(wrong), allowed.len())
}

fn run_once(program: &Path, threads: usize, hits: usize, rounds: u64) -> Result<Results> {
    let output = Command::new("timeout")
        .arg("300")
        .arg(program)
        .args(["-t", &threads.to_string(), "-n", &hits.to_string(), "-r", &rounds.to_string()])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && stderr.is_empty(), "{}\n{stderr}", output.status);
    parse(&output.stdout, rounds * (threads * hits) as u64)
}

/// From `result BYTES`, a line, as many bytes, and so on; at last the totals.
fn parse(mut stdout: &[u8], expected: u64) -> Result<Results> {
    let mut results = Results::new();
    loop {
        let end = stdout.iter().position(|byte| *byte == b'\n').context("no totals")?;
        let line = String::from_utf8_lossy(&stdout[..end]).into_owned();
        stdout = &stdout[end + 1..];
        let Some(bytes) = line.strip_prefix("result ") else {
            ensure!(line == format!("handled {expected} skipped 0 errors 0"), "{line}, of {expected}");
            return Ok(results);
        };
        let text = stdout.get(..bytes.parse()?).context("a result is cut off")?;
        results.insert(interleaved::sorted_lines(text));
        stdout = &stdout[text.len()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        let results = parse(b"result 4\nb\na\nresult 0\nhandled 8 skipped 0 errors 0\n", 8).expect("results");
        assert_eq!(results.len(), 2);
        assert!(results.contains(&interleaved::sorted_lines(b"a\nb\n")));
        for bad in ["handled 7 skipped 0 errors 0\n", "handled 8 skipped 1 errors 0\n", "result 9\nx\n", ""] {
            assert!(parse(bad.as_bytes(), 8).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_program() {
        for seed in 0..20 {
            assert_eq!(script(&subject(seed)), script(&subject(seed)));
        }
    }
}
