//! `cargo xtask test`: the unit tests, then the tests that are scripts: those on the host, then those in the guest; then
//! random programs against a model of the language (`cargo xtask model`), the story of a service in guests with systemd
//! (`cargo xtask systemd`), and the demonstration (`cargo xtask demo`).
//!
//! One line is printed for each test, the last line of all is `N passed, N failed`. A machine with other work may be too slow
//! for a test, so a few that failed are run once more, each alone; those that pass then are named at the end.

mod alone;
mod batch;
mod build;
mod find;
mod header;
mod judge;

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};

use alone::Alone;
use build::Workshop;
use find::Test;
use judge::Observed;

use crate::place::Place;

#[derive(clap::Args)]
pub struct Options {
    /// Only the tests whose name contains one of these; without the unit tests
    pub names: Vec<String>,
    /// Kernel release that is installed, or a line that is fetched (5.10, 6.12, backports); default: the newest installed
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
    /// Keeps what the tests wrote in target/tests/ (that of failed tests is kept anyway)
    #[arg(long)]
    pub keep: bool,
    /// Has the scripts' modules made by Kbuild itself (spile --kbuild)
    #[arg(long)]
    pub kbuild: bool,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    let report = Report::default();
    let place = Place::find(options.kernel.as_deref())?;
    if options.names.is_empty() {
        unit_tests(&root, &report)?;
    }
    run_scripts(options, place, &report)
}

/// The tests that are scripts, on `place`.
pub fn run_in(options: &Options, place: Place) -> Result<ExitCode> {
    run_scripts(options, place, &Report::default())
}

fn run_scripts(options: &Options, place: Place, report: &Report) -> Result<ExitCode> {
    let root = crate::root();
    let _alone = Alone::in_tree(&root.join("target"), || println!("{}", alone::WAITING))?;
    build_programs(&root)?;
    let (tests, others): (Vec<Test>, Vec<Test>) =
        find::find(&root, &options.names)?.into_iter().partition(|test| suits(test, &place));
    ensure!(!tests.is_empty() || options.names.is_empty(), "there is no test with {} in its name", options.names.join(" or "));
    if !others.is_empty() {
        println!("{} tests are not for {}", others.len(), place.kernel.release);
    }
    let workshop = Workshop::open(&root, place, options.kbuild)?;
    let failed = script_tests(&workshop, tests, report, options.keep)?;
    let by_chance = run_again(&workshop, failed, report, options.keep)?;
    if options.names.is_empty() {
        against_the_model(&workshop.place, report)?;
    }
    if options.names.is_empty() && options.kernel.is_none() && workshop.place.is_here() {
        let (passed, failed) = crate::systemd::story(&workshop.place)?;
        report.add(passed, failed);
        demonstrate(report);
    }
    if !by_chance.is_empty() {
        println!("passed only when run again: {}", by_chance.join(", "));
    }
    println!("{} passed, {} failed", report.passed(), report.failed());
    Ok(if report.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Random programs, as one test.
fn against_the_model(place: &Place, report: &Report) -> Result<()> {
    let (count, differing) = crate::model::usual(place)?;
    if differing.is_empty() {
        report.add(1, 0);
        println!("ok      model: {count} random programs");
    } else {
        report.add(0, 1);
        println!("FAILED  model: {} of {count} random programs\n{}", differing.len(), indented(&differing.join("\n")));
    }
    Ok(())
}

/// What README tells a newcomer to begin with.
fn demonstrate(report: &Report) {
    match crate::demo::run() {
        Ok(_) => {
            report.add(1, 0);
            println!("ok      demo");
        }
        Err(error) => {
            report.add(0, 1);
            println!("FAILED  demo\n{}", indented(&format!("{error:#}")));
        }
    }
}

/// Tests on the host are about this machine's own kernel.
fn suits(test: &Test, place: &Place) -> bool {
    test.header.is_for(&place.kernel.release) && (place.is_here() || test.kind != find::Kind::HostShell)
}

/// Counts, and prints without mixing lines.
#[derive(Default)]
struct Report {
    passed: AtomicUsize,
    failed: AtomicUsize,
    printing: Mutex<()>,
}

impl Report {
    fn add(&self, passed: usize, failed: usize) {
        self.passed.fetch_add(passed, Ordering::Relaxed);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }

    /// One that failed is to be counted again.
    fn take_back(&self) {
        self.failed.fetch_sub(1, Ordering::Relaxed);
    }

    fn passed(&self) -> usize {
        self.passed.load(Ordering::Relaxed)
    }

    fn failed(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }

    /// The line of one test, and its faults with what it said.
    fn tell(&self, test: &Test, faults: &[String], observed: &Observed) {
        let _printing = self.printing.lock();
        if faults.is_empty() {
            self.add(1, 0);
            println!("ok      {}", test.name);
            return;
        }
        self.add(0, 1);
        println!("FAILED  {}", test.name);
        for fault in faults {
            println!("{}", indented(fault));
        }
        for (what, text) in [("stdout", &observed.stdout), ("stderr", &observed.stderr), ("kernel log", &observed.dmesg)] {
            if !text.trim().is_empty() {
                println!("    {what}:\n{}", indented(&shortened(text)));
            }
        }
    }
}

/// Runs the tests alone, one after the other; gives the names of those that pass now.
fn run_again(workshop: &Workshop, failed: Vec<Test>, report: &Report, keep: bool) -> Result<Vec<String>> {
    /// So many do not fail by chance.
    const FEW: usize = 12;
    let mut by_chance = Vec::new();
    if failed.is_empty() || failed.len() > FEW {
        return Ok(by_chance);
    }
    println!("running {} failed tests once more, each alone", failed.len());
    for test in failed {
        let (name, directory) = (test.name.clone(), workshop.directory(&test));
        if directory.is_dir() {
            fs::remove_dir_all(&directory).with_context(|| format!("emptying {}", directory.display()))?;
        }
        report.take_back();
        if script_tests(workshop, vec![test], report, keep)?.is_empty() {
            by_chance.push(name);
        }
    }
    Ok(by_chance)
}

/// Gives the tests that failed.
fn script_tests(workshop: &Workshop, tests: Vec<Test>, report: &Report, keep: bool) -> Result<Vec<Test>> {
    let failed = Mutex::new(HashSet::new());
    let tell = |test: &Test, faults: &[String], observed: &Observed| {
        if !faults.is_empty() {
            failed.lock().unwrap_or_else(PoisonError::into_inner).insert(test.name.clone());
        }
        report.tell(test, faults, observed);
    };
    let finish = |test: &Test, observed: &Observed| {
        let faults = judge::judge(&test.header, observed);
        if keep || !faults.is_empty() {
            keep_files(&workshop.directory(test), observed);
        }
        tell(test, &faults, observed);
    };
    // On the host: whole tests are judged at once; of a test for the guest only a failure to compile is one.
    let on_host = |index: usize, result: &Result<Observed>| {
        let test = &tests[index];
        match result {
            Ok(observed) if !test.runs_in_guest() => finish(test, observed),
            Ok(observed) if observed.exit != 0 => {
                tell(test, &["does not compile".to_string()], observed);
            }
            Ok(_) => {}
            Err(error) => tell(test, &[format!("{error:#}")], &Observed::default()),
        }
    };
    let compiled = workshop.run_all(&tests, &on_host);
    let for_guest: Vec<(usize, &Test)> = tests
        .iter()
        .enumerate()
        .zip(&compiled)
        .filter(|((_, test), result)| test.runs_in_guest() && result.as_ref().is_ok_and(|observed| observed.exit == 0))
        .map(|(numbered, _)| numbered)
        .collect();
    if !for_guest.is_empty() {
        println!("booting a guest of {} for {} tests", workshop.place.kernel.release, for_guest.len());
    }
    batch::run(workshop, &for_guest, &|number, observed| finish(&tests[number], &observed))?;
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(tests.into_iter().filter(|test| failed.contains(&test.name)).collect())
}

/// Runs `cargo test`, shows what it prints, and counts.
fn unit_tests(root: &Path, report: &Report) -> Result<()> {
    let mut child = Command::new(cargo())
        .args(["test", "--workspace", "--no-fail-fast"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("running cargo test")?;
    let mut failed = 0;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.context("reading what cargo test prints")?;
            println!("{line}");
            if let Some((passed, not_passed)) = counts(&line) {
                report.add(passed, not_passed);
                failed += not_passed;
            }
        }
    }
    let status = child.wait()?;
    ensure!(status.success() || failed > 0, "cargo test failed ({status})");
    Ok(())
}

/// From "test result: ok. 14 passed; 0 failed; 0 ignored; ...".
fn counts(line: &str) -> Option<(usize, usize)> {
    let mut numbers = line.strip_prefix("test result: ")?.split_whitespace().filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// The programs under test, as users get them.
pub fn build_programs(root: &Path) -> Result<()> {
    let status = Command::new(cargo())
        .args(["build", "--quiet", "--package", "spile", "--package", "spilerun"])
        .current_dir(root)
        .status()
        .context("running cargo build")?;
    ensure!(status.success(), "the programs do not build");
    Ok(())
}

/// The cargo that runs this.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string())
}

/// A help for whoever looks into a failure; that it cannot be kept is no failure of the test.
fn keep_files(directory: &Path, observed: &Observed) {
    let _ = fs::create_dir_all(directory);
    for (name, text) in [("stdout", &observed.stdout), ("stderr", &observed.stderr), ("dmesg", &observed.dmesg)] {
        let _ = fs::write(directory.join(name), text);
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("      {line}\n")).collect::<String>().trim_end().to_string()
}

/// The first and the last lines of a long text.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 15;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 2 * SHOWN {
        return text.to_string();
    }
    let left_out = format!("... {} lines ...", lines.len() - 2 * SHOWN);
    [&lines[..SHOWN], &[left_out.as_str()], &lines[lines.len() - SHOWN..]].concat().join("\n")
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
}
