// SPDX-License-Identifier: GPL-2.0-or-later

//! The other parts of the whole suite: the random programs, the attack, the demonstration, hits on several CPUs. They are
//! the tasks of those names, which can be run by hand.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use super::report::Report;
use super::timings::{Part, Timings};
use crate::measure;
use crate::parallel::Job;
use crate::place::Place;

/// New random programs, two modules of them.
const DAILY: u64 = 24;

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
            let (processor, ok, output) = if kernel.is_some() || place.is_here() {
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
            report.report_one(&format!("model: {count} random programs, {name}"), ok, &output);
        }
        Ok(())
    })
}

/// The seed of a module's first program.
fn seed_of_the_day() -> u64 {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs() / 86400;
    days * 1200
}

/// Scripts in user space, hit on several threads at once.
pub fn threads<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let ran = measure::output(&mut task(&["threads"])?)?;
        timings.add(Part::HostTest, "cargo xtask threads", ran.began, ran.processor);
        report.report_one("threads", ran.status.success(), &format!("{}{}", ran.stdout, ran.stderr));
        Ok(())
    })
}

/// Random programs whose handlers run at the same time, in user space: the same ones each time.
pub fn parallel_model<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let ran = measure::output(&mut task(&["model", "--parallel", "--count", "12"])?)?;
        timings.add(Part::Model, "cargo xtask model --parallel", ran.began, ran.processor);
        report.report_one("model, --parallel", ran.status.success(), &format!("{}{}", ran.stdout, ran.stderr));
        Ok(())
    })
}

/// Hits on CPUs that run at the same time.
pub fn smp<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let ran = measure::output(&mut task(&["smp"])?)?;
        timings.add(Part::Guest, "cargo xtask smp", ran.began, ran.processor);
        report.report_one("smp", ran.status.success(), &format!("{}{}", ran.stdout, ran.stderr));
        Ok(())
    })
}

/// Hostile scripts, the same ones each time.
pub fn attack<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let ran = measure::output(&mut task(&["attack", "--no-shrink"])?)?;
        timings.add(Part::Attack, "cargo xtask attack", ran.began, ran.processor);
        report.report_one("attack", ran.status.success(), &format!("{}{}", ran.stdout, ran.stderr));
        Ok(())
    })
}

/// The command that README recommends first.
pub fn demo<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || {
        let ran = measure::output(&mut task(&["demo"])?)?;
        timings.add(Part::Demo, "cargo xtask demo", ran.began, ran.processor);
        report.report_one("demo", ran.status.success(), &format!("{}{}", ran.stdout, ran.stderr));
        Ok(())
    })
}
