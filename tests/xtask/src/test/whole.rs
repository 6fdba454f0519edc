// SPDX-License-Identifier: GPL-2.0-or-later

//! The other parts of the whole suite: the random programs, the attack, the demonstration, hits on several CPUs. They are
//! the tasks of those names, which can be run by hand.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use super::report::Report;
use super::timings::{Part, Timings};
use crate::measure;
use crate::parallel::Job;
use crate::place::Place;

/// New random programs, two modules of them.
const DAILY: u64 = 24;

/// The command of another task of this program.
fn task(arguments: &[&str]) -> Command {
    let mut command = Command::new(crate::tree::own_program());
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs another task of this program, `name` with these options, unless it has passed and no file has changed.
fn run_task(name: &str, options: &[&str], part: Part, report: &Report, timings: &Timings) -> Result<()> {
    let key = report.key_of_tree(name);
    if report.has_passed(key.as_ref(), name) {
        return Ok(());
    }
    let words: Vec<&str> = name.split(' ').chain(options.iter().copied()).collect();
    let ran = measure::output(&mut task(&words))?;
    timings.add(part, &format!("cargo xtask {name}"), ran.began, ran.processor);
    let ok = ran.status.success();
    report.report_one(name, ok, &format!("{}{}", ran.stdout, ran.stderr));
    if ok {
        report.note_passed(key.as_ref(), name, 1);
    }
    Ok(())
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
            let what = format!("model: {count} random programs, {name}");
            let key = report.key_of_tree(&what);
            if report.has_passed(key.as_ref(), &what) {
                continue;
            }
            let began = Instant::now();
            let (processor, ok, output) = if kernel.is_some() || place.is_here() {
                let (seed, count) = (seed.to_string(), count.to_string());
                let kernel: Vec<&str> = kernel.iter().flat_map(|kernel| ["--kernel", kernel]).collect();
                let ran = measure::output(&mut task(
                    &[&["model", "--no-shrink", "--seed", &seed, "--count", &count], &kernel[..]].concat(),
                ))?;
                (ran.processor, ran.status.success(), ran.stdout + &ran.stderr)
            } else {
                // A custom kernel, which the task does not know.
                let differing = crate::model::differing(place, seed, count)?;
                (Duration::ZERO, differing.is_empty(), differing.join("\n"))
            };
            timings.add(Part::Model, &name, began, processor);
            report.report_one(&what, ok, &output);
            if ok {
                report.note_passed(key.as_ref(), &what, 1);
            }
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
    Box::new(move || run_task("threads", &[], Part::HostTest, report, timings))
}

/// Random programs whose handlers run at the same time, in user space: the same ones each time.
pub fn parallel_model<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || run_task("model --parallel", &["--count", "12"], Part::Model, report, timings))
}

/// Hits on CPUs that run at the same time.
pub fn smp<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || run_task("smp", &[], Part::Guest, report, timings))
}

/// Hostile scripts, the same ones each time.
pub fn attack<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || run_task("attack", &["--no-shrink"], Part::Attack, report, timings))
}

/// The command that README recommends first.
pub fn demo<'a>(report: &'a Report, timings: &'a Timings) -> Job<'a> {
    Box::new(move || run_task("demo", &[], Part::Demo, report, timings))
}
