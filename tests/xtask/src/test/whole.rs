// SPDX-License-Identifier: GPL-2.0-or-later

//! The other parts of the whole suite: the build, the unit tests, the random programs, the attack, the life cycle of a
//! service with systemd, the demonstration. The last four are the tasks of those names, which can be run by hand.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use super::report::Report;
use super::timings::{Part, Timings};
use crate::measure;
use crate::parallel::Job;
use crate::place::Place;
use crate::programs::cargo;

/// New random programs, two modules of them.
const DAILY: u64 = 24;

/// The programs and the unit tests, at once: nothing is compiled again later.
pub fn build(root: &Path, timings: &Timings) -> Result<()> {
    let mut command = Command::new(cargo());
    command.args(["test", "--workspace", "--no-run"]).current_dir(root).stdin(Stdio::null());
    println!("building the programs and the unit tests");
    let built = measure::output(&mut command)?;
    timings.add(Part::Building, "cargo test --workspace --no-run", built.began, built.processor);
    ensure!(built.status.success(), "the programs or their unit tests do not build:\n{}", built.stderr);
    Ok(())
}

/// Runs `cargo test`, with its output, and counts.
pub fn unit_tests<'a>(root: &'a Path, report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let mut command = measure::giving_way(&cargo());
        command.args(["test", "--workspace", "--no-fail-fast"]).current_dir(root).stdin(Stdio::null());
        let ran = measure::output(&mut command)?;
        timings.add(Part::UnitTests, "cargo test --workspace", ran.began, ran.processor);
        let counted: Vec<_> = ran.stdout.lines().filter_map(counts).collect();
        let failed: usize = counted.iter().map(|(_, failed)| failed).sum();
        report.add(counted.iter().map(|(passed, _)| passed).sum(), failed);
        report.print(ran.stdout.trim_end());
        if failed > 0 {
            report.print_failure(&failures(&ran.stdout));
            report.print(ran.stderr.trim_end());
        }
        ensure!(ran.status.success() || failed > 0, "cargo test failed ({}):\n{}", ran.status, ran.stderr);
        Ok(())
    })
}

/// Of the output of `cargo test`: what failed and what it said, from "failures:" to the counts.
fn failures(output: &str) -> String {
    let mut is_inside = false;
    let lines = output.lines().filter(|line| {
        is_inside = (is_inside || *line == "failures:") && !line.starts_with("test result: ");
        is_inside
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// From "test result: ok. 14 passed; 0 failed; 0 ignored; ...".
fn counts(line: &str) -> Option<(usize, usize)> {
    passed_and_failed(line.strip_prefix("test result: ")?)
}

/// The first two numbers.
fn passed_and_failed(text: &str) -> Option<(usize, usize)> {
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// The command of another task of this program.
fn task(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("this program's own path")?);
    command.args(arguments).stdin(Stdio::null());
    Ok(command)
}

/// Random programs: the same ones each time, and others each day. `kernel`: as requested for `place`.
pub fn model<'a>(place: &'a Place, kernel: Option<&'a str>, report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let seed = seed_of_the_day();
        let runs = [
            (0, crate::model::USUAL, "the usual ones".to_string()),
            (seed, DAILY, format!("those of this day, --seed {seed} --count {DAILY}")),
        ];
        for (seed, count, name) in runs {
            let began = Instant::now();
            let (processor, ok, said) = if kernel.is_some() || place.is_here() {
                let (seed, count) = (seed.to_string(), count.to_string());
                let kernel: Vec<&str> = kernel.iter().flat_map(|kernel| ["--kernel", kernel]).collect();
                let ran = measure::output(&mut task(
                    &[&["model", "--no-shrink", "--seed", &seed, "--count", &count], &kernel[..]].concat(),
                )?)?;
                (ran.processor, ran.status.success(), ran.stdout + &ran.stderr)
            } else {
                // A custom kernel, which the task does not know.
                let differing = crate::model::differing(place, seed, count)?;
                (Duration::ZERO, differing.is_empty(), differing.join("\n"))
            };
            timings.add(Part::Model, &name, began, processor);
            report.tell_one(&format!("model: {count} random programs, {name}"), ok, &said);
        }
        Ok(())
    })
}

/// The seed of a module's first program.
fn seed_of_the_day() -> u64 {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs() / 86400;
    days * 1200
}

/// The script prints a line for each of its facts. Only the first boot's part.
pub fn systemd<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let ran = measure::output(&mut task(&["systemd", "--first"])?)?;
        timings.add(Part::Systemd, "the first boot", ran.began, ran.processor);
        let told = ran.stdout.trim_end();
        let counted = told.lines().last().filter(|line| line.ends_with(" failed")).and_then(passed_and_failed);
        match counted {
            Some((passed, failed)) => {
                report.print(told.rsplit_once('\n').map_or("", |(facts, _)| facts));
                told.lines().filter(|line| line.starts_with("FAILED")).for_each(|line| report.print_failure(line));
                report.add(passed, failed);
            }
            None => report.tell_one("systemd", false, &format!("{told}\n{}", ran.stderr)),
        }
        Ok(())
    })
}

/// Scripts in user space, hit on several threads at once.
pub fn threads<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let ran = measure::output(&mut task(&["threads"])?)?;
        timings.add(Part::HostTest, "cargo xtask threads", ran.began, ran.processor);
        report.tell_one("threads", ran.status.success(), &format!("{}{}", ran.stdout, ran.stderr));
        Ok(())
    })
}

/// Hits on CPUs that run at the same time.
pub fn smp<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let ran = measure::output(&mut task(&["smp"])?)?;
        timings.add(Part::Guest, "cargo xtask smp", ran.began, ran.processor);
        report.tell_one("smp", ran.status.success(), &format!("{}{}", ran.stdout, ran.stderr));
        Ok(())
    })
}

/// Hostile scripts, the same ones each time.
pub fn attack<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let ran = measure::output(&mut task(&["attack", "--no-shrink"])?)?;
        timings.add(Part::Attack, "cargo xtask attack", ran.began, ran.processor);
        report.tell_one("attack", ran.status.success(), &format!("{}{}", ran.stdout, ran.stderr));
        Ok(())
    })
}

/// The command that README recommends first.
pub fn demo<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let ran = measure::output(&mut task(&["demo"])?)?;
        timings.add(Part::Demo, "cargo xtask demo", ran.began, ran.processor);
        report.tell_one("demo", ran.status.success(), &format!("{}{}", ran.stdout, ran.stderr));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_cargo() {
        let line = "test result: FAILED. 14 passed; 2 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.02s";
        assert_eq!(counts(line), Some((14, 2)));
        assert_eq!(counts("running 3 tests"), None);
    }

    #[test]
    fn failures_of_cargo() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nwhy\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed\n\nrunning 0 tests\n";
        assert_eq!(
            failures(output).split_whitespace().collect::<Vec<_>>().join(" "),
            "failures: ---- b stdout ---- why failures: b"
        );
    }

    #[test]
    fn counts_of_the_story() {
        assert_eq!(passed_and_failed("61 passed, 1 failed"), Some((61, 1)));
        assert_eq!(passed_and_failed("boot"), None);
    }
}
