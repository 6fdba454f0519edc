// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask smp`: hits on CPUs that run at the same time. Other guests run their CPUs in turns, because a qemu with parallel
//! CPUs may execute code that the kernel has replaced. Here the qemu is Debian 13's, in a system of its own below target/roots, and
//! the load calls a function that nothing else calls, begins after the probes are armed and ends before they are disarmed. Then only
//! the handlers are tried: counters, numbers, arrays, aggregates, rings, locks, returns. Every total must be exact, nothing skipped.
//!
//!     cargo xtask smp                       # as cargo xtask test
//!     cargo xtask smp --seconds 34 --record # ten minutes of load, recorded in docs/smp-runs.md
//!
//!     cargo xtask smp --many                # 64 CPUs of 512 possible ones, time-sliced; with CPU hotplug
//!
//! A CPU of the guest is a thread here, which others of this machine may interrupt in the middle of a handler: locks are waited for
//! longer than by default (TRYLOCKDELAY).
//!
//! A script that does not end and a guest that hangs are detected and distinguished (guest.rs): what tasks and CPUs
//! were doing is then in target/smp.

pub mod emulator;
mod guest;
mod heartbeat;
mod record;
mod scripts;
mod shapes;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::place::Place;
use shapes::Shape;

/// The arguments of `cargo xtask smp`.
#[derive(clap::Args)]
pub struct Options {
    /// How long each script has load; 0: once
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// Calls of each CPU, again and again as long as there is time
    #[arg(long, default_value_t = 40_000)]
    turns: u64,
    /// 64 CPUs of 512 possible ones, of which three go offline and online meanwhile; emulated one after the other
    #[arg(long)]
    many: bool,
    /// Writes docs/smp-runs.md if nothing was wrong
    #[arg(long, conflicts_with = "many")]
    record: bool,
    /// Kernel release or line, as for `test`
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Only these scripts
    #[arg(conflicts_with = "record")]
    names: Vec<String>,
    /// The kernel looks for data races, and must find the deliberate one.
    #[arg(skip)]
    with_race: bool,
}

/// Number of guests that may hang with all CPUs halted.
const MOST_STANDSTILLS: usize = 3;

impl Options {
    /// For a kernel that looks for data races: these scripts, or all.
    pub fn on_kcsan(seconds: u64, names: &[String]) -> Options {
        Options {
            seconds,
            turns: 4000,
            many: false,
            record: false,
            kernel: None,
            names: names.to_vec(),
            with_race: true,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

/// Runs scripts in a guest whose CPUs run at the same time, and checks their totals.
pub fn run(options: &Options) -> Result<ExitCode> {
    run_in(options, Place::find(options.kernel.as_deref())?)
}

/// The same with the kernel of that place.
pub fn run_in(options: &Options, place: Place) -> Result<ExitCode> {
    let root = crate::root();
    crate::programs::build_programs(&root)?;
    let directory = tempfile::tempdir_in(root.join("target"))?;
    let race = Some(shapes::RACE).filter(|_| options.with_race);
    let modules: Vec<(Shape, PathBuf)> = shapes::all()
        .chain(race)
        .filter(|shape| options.has(shape.script.name))
        .map(|shape| {
            let module = compile(&place, directory.path(), &shape, options.many)?;
            Ok((shape, module))
        })
        .collect::<Result<_>>()?;
    ensure!(!modules.is_empty(), "there is no such script");
    let (mut good, mut calls, mut left) = (true, Vec::new(), modules.as_slice());
    let mut standstills = 0;
    while !left.is_empty() {
        let ended = guest::run(&root, &place, options, left)?;
        for (shape, _) in left.get(..ended.scripts).unwrap_or(left) {
            good &= report(options, &ended, shape.script.name, &mut calls);
        }
        let (races, complaints): (Vec<_>, Vec<_>) = ended.complaints().into_iter().partition(|line| is_of_race(line));
        let ran = left.iter().take(ended.scripts).any(|(shape, _)| shape.script.name == shapes::RACE.script.name);
        if ran {
            good &= is_reported(&races);
        }
        for line in complaints {
            good = false;
            println!("FAILED  the kernel's log: {line}");
        }
        if let Some(races) = ended.races() {
            println!("data races that are not ours are in {}", keep(&root, "kcsan.txt", &races)?);
        }
        left = left.get(ended.scripts..).unwrap_or_default();
        let Some(standstill) = &ended.standstill else { continue };
        let at = left.first().map_or("nothing", |(shape, _)| shape.script.name);
        let file = keep(&root, &format!("standstill-{at}.txt"), standstill)?;
        standstills += 1;
        ensure!(guest::is_halted(standstill), "{at}: the guest hung, and not all CPUs were halted: see {file}");
        println!(
            "AGAIN   {at}: the guest hung, all CPUs were halted and no timer fired; the output of qemu is in {file}"
        );
        ensure!(standstills <= MOST_STANDSTILLS, "guests hung {standstills} times");
    }
    if good && options.record {
        let (commit, date) =
            (output_of(&root, "git", &["rev-parse", "--short", "HEAD"])?, output_of(&root, "date", &["+%F"])?);
        let page = record::page(&place.kernel.release, &commit, &date, options.seconds, &calls, standstills);
        std::fs::write(root.join(record::PATH), page).with_context(|| format!("writing {}", record::PATH))?;
        println!("wrote {}", record::PATH);
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a line of the kernel's log is of the deliberate data race.
fn is_of_race(line: &str) -> bool {
    line.contains(&format!("[{}]", shapes::RACE.script.name))
}

/// Prints whether the kernel has reported the deliberate data race.
fn is_reported(races: &[String]) -> bool {
    match races.first() {
        Some(line) => println!("found   race: {line}"),
        None => println!("FAILED  race: the kernel does not report the deliberate data race"),
    }
    !races.is_empty()
}

/// Prints the result of a script; false if something was wrong.
fn report(options: &Options, ended: &guest::GuestResult, name: &str, calls: &mut Vec<u64>) -> bool {
    if options.many {
        print!("{}", ended.file(&format!("{name}.memory")));
    }
    let mut good = true;
    let runs = if options.many { &["", ".going"][..] } else { &[""] };
    for run in runs.iter().map(|run| format!("{name}{run}")) {
        let hung = ended.file(&format!("{run}.hung"));
        if !hung.is_empty() {
            good = false;
            let file = keep(&crate::root(), &format!("hung-{run}.txt"), &hung);
            println!("FAILED  {run} did not end; what all tasks did is in {}", file.unwrap_or(hung));
            continue;
        }
        match judge(&ended.file(&format!("{run}.out")), &ended.file(&format!("{run}.err"))) {
            Ok(Judged { turns, lost }) if lost == 0 || options.many => {
                let lost =
                    if lost > 0 { format!(", with {lost} records that were reported lost") } else { String::new() };
                println!("ok      {run}: {turns} calls, all totals exact{lost}");
                calls.push(turns);
            }
            Ok(Judged { lost, .. }) => {
                good = false;
                println!("FAILED  {run}: {lost} records were lost");
            }
            Err(error) => {
                good = false;
                println!("FAILED  {run}: {error:#}");
            }
        }
    }
    good
}

/// Writes a file below target/smp; returns its path.
fn keep(root: &Path, name: &str, text: &str) -> Result<String> {
    let directory = root.join("target/smp");
    std::fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let file = directory.join(name);
    std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    Ok(file.display().to_string())
}

/// The line that a program prints.
fn output_of(root: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).current_dir(root).stdin(Stdio::null()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn compile(place: &Place, directory: &Path, shape: &Shape, many: bool) -> Result<PathBuf> {
    let script = &shape.script;
    let mut command = place.command(place.spile()?, directory);
    command.args([
        "-r",
        &place.kernel.release,
        "-p4",
        "-m",
        script.name,
        "-DSTP_NO_OVERLOAD",
        "-DTRYLOCKDELAY=1000000",
    ]);
    if many {
        // Timers iterate over what 64 CPUs have counted.
        command.arg("-DMAXACTION=100000");
    }
    let output = command.args(shape.option).args(["-e", script.text]).output()?;
    ensure!(output.status.success(), "{}: {}", script.name, String::from_utf8_lossy(&output.stderr));
    Ok(directory.join(format!("{}.ko", script.name)))
}

/// What was counted, and all of it was right.
#[derive(Debug, PartialEq)]
struct Judged {
    /// Calls.
    turns: u64,
    /// Records that the loader said were lost: 64 CPUs print faster than one emulated CPU can read.
    lost: u64,
}

/// Records lost, in the loader's last message about that.
fn lost_records(line: &str) -> Option<u64> {
    let (count, of) = line.strip_prefix("WARNING: ")?.split_once(" records were lost ")?;
    of.starts_with('(').then(|| count.parse().ok())?
}

/// An error if a total differs, or if something was skipped or reported.
fn judge(output: &str, complaints: &str) -> Result<Judged> {
    // Of losses the last message is exact; that disarming takes long is for a busy machine to say.
    let lost = complaints.lines().find_map(lost_records).unwrap_or(0);
    let missed = format!(" hits were missed: {lost} (records lost);");
    let is_known = |line: &str| {
        line.trim().is_empty()
            || line.starts_with("NOTICE:")
            || lost > 0
                && (lost_records(line).is_some()
                    || line.contains(&missed)
                    || line.contains(" records were lost so far "))
    };
    let complaints: Vec<&str> = complaints.lines().filter(|line| !is_known(line)).collect();
    ensure!(complaints.is_empty(), "{}\n{output}", complaints.join("\n"));
    let (mut turns, mut sum, mut totals) = (0, 0, Vec::new());
    for line in BufReader::new(output.as_bytes()).lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok()).with_context(|| line.clone());
        match words.first() {
            Some(&"turns") => {
                turns += number(1)?;
                sum += number(3)?;
            }
            Some(&"status") => ensure!(number(1)? == 0, "{output}"),
            _ => totals.push((number(1)?, number(2)?, number(3)?, line.clone())),
        }
    }
    ensure!(turns > 0 && !totals.is_empty(), "nothing was counted: {output}");
    for (count, arguments, wrong, line) in totals {
        // The arguments in lost records are not known.
        let known = if lost > 0 { arguments } else { sum };
        ensure!(
            (count + lost as i64, arguments, wrong) == (turns, known, 0),
            "\"{line}\" of {turns} calls whose arguments are {sum} together, {lost} records lost"
        );
    }
    Ok(Judged { turns: turns as u64, lost })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deliberate_race_has_to_be_reported() {
        assert!(is_of_race("BUG: KCSAN: data-race in embedded_function_race [race] / embedded_function_race [race]"));
        assert!(!is_of_race("BUG: KCSAN: data-race in probe_0 [globals] / probe_0 [globals]"));
        assert!(!is_reported(&[]) && is_reported(&["one".to_string()]));
    }

    const GOOD: &str = "turns 10 sum 99\nturns 10 sum 1\nstatus 0\narray 20 100 0\n";

    #[test]
    fn totals_are_those_of_all_loads() {
        assert_eq!(judge(GOOD, "\n").expect("good"), Judged { turns: 20, lost: 0 });
        for (good, bad) in [("status 0", "status 1"), ("array 20", "array 19"), ("100 0", "101 0"), ("100 0", "100 1")]
        {
            assert!(judge(&GOOD.replace(good, bad), "").is_err(), "{bad}");
        }
        assert!(judge(GOOD, "NOTICE: 2 probes are still to be disarmed after 3 s\n").is_ok());
        assert!(judge(GOOD, "NOTICE: fine\nWARNING: skipped").is_err());
        assert!(judge("turns 10 sum 99\nstatus 0\n", "").is_err());
        let losses = "WARNING: 5 records were lost so far (CPU 0: 5)\nWARNING: 8 records were lost (CPU 0: 8); try\n\
                      WARNING: of 20 hits were missed: 8 (records lost); --stats\n";
        let printed = GOOD.replace("array 20 100", "records 12 60");
        assert_eq!(judge(&printed, losses).expect("all are accounted for"), Judged { turns: 20, lost: 8 });
        assert!(judge(&printed, &losses.replace(" 8 ", " 7 ")).is_err());
        assert!(judge(GOOD, losses).is_err());
    }
}
