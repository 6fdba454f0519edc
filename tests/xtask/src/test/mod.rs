// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask test`: the unit tests, and the tests that are scripts, on the host and in guests; random programs
//! against a model of the language (`cargo xtask model`), hostile scripts (`cargo xtask attack`), and the demonstration
//! (`cargo xtask demo`). With `--all` also what takes hours, and the life cycle of a service in guests with systemd
//! (`cargo xtask systemd`).
//!
//! Everything is built once, first. Then one guest more than there are CPUs runs at a time (guests sleep part of theirs), and
//! as many host tests, those with the longest limits first; when no guest is left to start, its place is another host
//! test's. Last come the tests that run alone, beside the unit tests on one thread. One line is printed for each test, the
//! last line is `N passed, N failed`. What passed in an earlier run is not run again while it is the same (`kept.rs`). A busy machine may be too slow for a test, so a few failed tests are run once
//! more, each alone; those that pass then are listed at the end.

mod all;
mod batch;
mod build;
pub(crate) mod find;
mod header;
mod judge;
mod kept;
mod memory;
mod report;
mod results;
mod share;
mod timings;
mod tree_lock;
mod units;
mod whole;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::statvfs::statvfs;

use build::BuildContext;
use find::Test;
use judge::Observed;
pub use judge::{DATA_RACE, find_fault, is_race_of_kernel};
use kept::{Kept, Key};
pub use report::FAILED;
use report::Report;
use timings::{Part, Timings};
use tree_lock::TreeLock;

use crate::measure;
use crate::parallel::{self, Job, Queue};
use crate::place::Place;
use crate::programs::build_programs;

/// The arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub struct Options {
    /// Only the tests whose name contains one of these; without the unit tests
    pub names: Vec<String>,
    /// Kernel release that is installed, or a line that is fetched (5.10, 6.12, 6.12-rt, backports); default: the newest installed
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
    /// Keeps the tests' files and output in target/tests/ (those of failed tests are always kept)
    #[arg(long)]
    pub keep: bool,
    /// Builds the scripts' modules with Kbuild itself (spile --kbuild)
    #[arg(long)]
    pub kbuild: bool,
    /// Runs also what passed in an earlier run and has not changed since, as any run but one of all tests on the newest kernel does
    #[arg(long)]
    pub fresh: bool,
    /// Prints the time of each part and the slowest steps; after a complete run also writes docs/test-timings.md. As with --fresh
    #[arg(long)]
    pub timings: bool,
    /// The unit tests, and one script of each directory of tests/ in one guest
    #[arg(long, conflicts_with = "names")]
    pub quick: bool,
    /// Only the tests that run in a guest
    #[arg(long, conflicts_with_all = ["quick", "all"])]
    pub guests: bool,
    /// All cases of tests that otherwise try some; then what takes long: services with systemd, other kernels, the one with KASAN, torture, random inputs, the attack; docs/test-runs.md has the last run of each
    #[arg(long, conflicts_with_all = ["names", "kernel", "quick"])]
    pub all: bool,
}

/// Before the names of tests that failed once.
pub const NOT_RELIABLE: &str = "NOT RELIABLE, passed only when run again: ";

/// Guests and tests on the host, one more of both than there are CPUs (script_tests): the factor for time limits.
const LOAD_OF_A_WHOLE_RUN: u32 = 3;

/// Runs tests; the exit code is 0 if all pass.
pub fn run(options: &Options) -> Result<ExitCode> {
    let _temporary = memory::enter();
    run_scripts(options, || Place::find(options.kernel.as_deref()))
}

/// The tests that are scripts, on `place`.
pub fn run_in(options: &Options, place: Place) -> Result<ExitCode> {
    run_scripts(options, || Ok(place))
}

fn run_scripts(options: &Options, find_place: impl FnOnce() -> Result<Place>) -> Result<ExitCode> {
    let root = crate::root();
    let whole = options.names.is_empty() && !options.guests;
    // On a terminal show progress; in a log a thousand lines would hide the one that matters.
    let mut report =
        Report::new(&root.join("target/test.log"), options.names.is_empty() && !std::io::stdout().is_terminal())?;
    let timings = Timings::new();
    let tree_lock = TreeLock::in_tree(&root.join("target"), || println!("{}", tree_lock::WAITING))?;
    expect_room(&root)?;
    let (units, place) = if whole && options.kernel.is_none() {
        build_during_setup(&root, &timings, find_place)?
    } else {
        // A kernel that does not exist is an error before anything is built.
        let place = find_place()?;
        let units = if whole { units::build(&root, &timings)? } else { build_programs(&root).map(|()| Vec::new())? };
        (units, place)
    };
    let (tests, not_applicable) = select_tests(options, &place)?;
    if !not_applicable.is_empty() {
        println!("{} tests are not for {}", not_applicable.len(), place.kernel.release);
        let list = not_applicable.iter().map(|(name, only)| format!("    {name} (only for {only})\n"));
        report.print(list.collect::<String>().trim_end());
    }
    let began = Instant::now();
    let context = BuildContext::open(&root, place, options.kbuild, options.all)?;
    timings.add(Part::Fixtures, "all", began, Duration::ZERO);
    if whole && options.kernel.is_none() && !options.quick && !options.kbuild && context.place.is_here() {
        let fresh = options.fresh || options.timings || options.all;
        report.keep(Kept::open(&root, &root.join("target/test-results.json"), fresh), &context.place.kernel.release);
    }
    let run = Run { context: &context, report: &report, timings: &timings, keep: options.keep, again: false };
    if options.names.is_empty() && !options.quick {
        measure::expect_load(LOAD_OF_A_WHOLE_RUN);
    }
    let jobs = if whole { Jobs::of_a_whole_run(options, &run, &units) } else { Jobs::default() };
    let failed = script_tests(&run, tests, jobs)?;
    let by_chance = run_again(&run, failed)?;
    if let Err(error) = timings.write(&root.join("target/test-timings.json")) {
        println!("the timings are not kept: {error:#}");
    }
    if whole || options.timings {
        report.print(&format!("\n{}", timings.summary()));
    }
    if options.timings {
        println!("{}", timings.slowest(60));
        if whole && !options.quick && options.kernel.is_none() && context.place.is_here() {
            fs::write(root.join("docs/test-timings.md"), timings.page(&context.place.kernel.release))
                .context("writing docs/test-timings.md")?;
        }
    }
    if let Err(error) = report.kept().write() {
        println!("the results are not kept for the next run: {error:#}");
    }
    if !by_chance.is_empty() {
        println!("{NOT_RELIABLE}{}", by_chance.join(", "));
    }
    let counts = results::Counts { passed: report.passed(), failed: report.failed(), not_applicable };
    if !options.quick && !options.guests {
        results::record(&root, &context.place, options.kernel.as_deref(), &options.names, &counts)?;
    }
    // The parts are separate runs.
    drop(tree_lock);
    if options.all {
        all::run(&root, &report)?;
    }
    if report.is_brief() {
        println!("{} s; each test's line and what the parts took: target/test.log", timings.elapsed().as_secs());
    }
    if report.kept().used() > 0 {
        println!(
            "{} of the tests had passed before, and nothing that they depend on has changed; --fresh runs them",
            report.kept().used()
        );
    }
    println!("{} passed, {} failed", report.passed(), report.failed());
    Ok(if report.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fails if the disk is nearly full: with it hundreds of tests would.
fn expect_room(root: &Path) -> Result<()> {
    /// Bytes. A whole run takes up to 1 GB beside what was built; from a fresh clone it needs about 5 GB.
    const LEAST: u64 = 2 << 30;
    let found = statvfs(root).with_context(|| format!("looking how much {} can hold", root.display()))?;
    let free = found.blocks_available() * found.fragment_size();
    ensure!(
        free >= LEAST,
        "{} MB are free where {} is; the tests need at least {} MB, a fresh clone needs 5000 MB",
        free >> 20,
        root.display(),
        LEAST >> 20
    );
    Ok(())
}

/// Names of tests that are for another place, each with that place.
type NotApplicable = Vec<(String, String)>;

/// The tests of the options, and those that are not for this place.
fn select_tests(options: &Options, place: &Place) -> Result<(Vec<Test>, NotApplicable)> {
    let (mut tests, others): (Vec<Test>, Vec<Test>) =
        find::find(&crate::root(), &options.names)?.into_iter().partition(|test| suits(test, place));
    if options.guests {
        tests.retain(Test::runs_in_guest);
    }
    if options.names.is_empty() && !options.all {
        tests.retain(|test| !test.header.all);
    }
    ensure!(
        !tests.is_empty() || options.names.is_empty(),
        "there is no test with {} in its name",
        options.names.join(" or ")
    );
    if options.quick {
        tests = find::one_of_each_area(tests);
    }
    let not_applicable = others.iter().map(|test| (test.name.clone(), only_for(test))).collect();
    Ok((tests, not_applicable))
}

/// Builds everything while packages are downloaded and unpacked: compiling does not need them.
fn build_during_setup(
    root: &Path,
    timings: &Timings,
    find_place: impl FnOnce() -> Result<Place>,
) -> Result<(Vec<units::Unit>, Place)> {
    std::thread::scope(|scope| {
        let units = scope.spawn(|| units::build(root, timings));
        let place = find_place().inspect_err(|error| println!("setup: failed, ends after the build: {error:#}"));
        let units = units.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        place.and_then(|place| Ok((units?, place)))
    })
}

/// Shared by all tests of a run.
#[derive(Clone, Copy)]
struct Run<'a> {
    context: &'a BuildContext,
    report: &'a Report,
    timings: &'a Timings,
    keep: bool,
    /// Tests that failed are run once more. One that passes then is not reliable: its result is not kept.
    again: bool,
}

/// The place for which a test is, if not this one.
fn only_for(test: &Test) -> String {
    if test.kind == find::Kind::HostShell { "this machine's own kernel".into() } else { test.header.guest.join(" ") }
}

/// Tests on the host are about this machine's own kernel.
fn suits(test: &Test, place: &Place) -> bool {
    test.header.is_for(&place.kernel.release) && (place.is_here() || test.kind != find::Kind::HostShell)
}

/// Runs the tests one after the other; returns the names of those that pass now.
fn run_again(run: &Run, failed: Vec<Test>) -> Result<Vec<String>> {
    /// More failures than this are not a coincidence.
    const FEW: usize = 12;
    let mut by_chance = Vec::new();
    if failed.is_empty() || failed.len() > FEW {
        return Ok(by_chance);
    }
    println!("running {} failed tests once more, each alone", failed.len());
    for test in failed {
        let (name, directory) = (test.name.clone(), run.context.directory(&test));
        if directory.is_dir() {
            fs::remove_dir_all(&directory).with_context(|| format!("emptying {}", directory.display()))?;
        }
        run.report.take_back();
        if script_tests(&Run { again: true, ..*run }, vec![test], Jobs::default())?.is_empty() {
            by_chance.push(name);
        }
    }
    Ok(by_chance)
}

/// Jobs that run beside the tests that are scripts.
#[derive(Default)]
struct Jobs<'a> {
    /// Jobs with guests of their own.
    guests: Vec<Job<'a>>,
    on_host: Vec<Job<'a>>,
    /// Jobs of one thread, which run one after the other while the tests that are alone run in a guest.
    beside_alone: Vec<Job<'a>>,
}

impl<'a> Jobs<'a> {
    /// What a run of all tests has besides scripts: unit tests and, unless it is a quick one, random programs and the like.
    fn of_a_whole_run(options: &'a Options, run: &Run<'a>, units: &'a [units::Unit]) -> Jobs<'a> {
        let Run { context, report, timings, .. } = *run;
        let is_usual = options.kernel.is_none() && context.place.is_here();
        let mut jobs = Jobs::default();
        if is_usual && !options.quick {
            jobs.on_host.push(whole::threads(report, timings));
            jobs.on_host.push(whole::parallel_model(report, timings));
            jobs.guests.push(whole::attack(report, timings));
            jobs.guests.push(whole::demo(report, timings));
            jobs.guests.push(whole::smp(report, timings));
        }
        if !options.quick {
            jobs.guests.push(whole::model(&context.place, options.kernel.as_deref(), report, timings));
        }
        if is_usual && !options.quick && parallel::cpus() > 1 {
            jobs.beside_alone = units::jobs(units, 1, report, timings);
        } else if is_usual {
            jobs.on_host.extend(units::jobs(units, parallel::cpus(), report, timings));
        }
        jobs
    }
}

/// Runs the tests. Returns the failed ones.
fn script_tests<'a>(run: &'a Run, tests: Vec<Test>, jobs: Jobs<'a>) -> Result<Vec<Test>> {
    let Run { context, report, timings, keep, again } = *run;
    let failed = Mutex::new(HashSet::new());
    let keys: Mutex<HashMap<String, Key>> = Mutex::default();
    let has_passed = |test: &Test, key: Option<Key>| {
        let key = key.filter(|_| !again);
        let has = report.has_passed(key.as_ref(), &test.name);
        let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.extend(key.map(|key| (test.name.clone(), key)));
        has
    };
    let report_test = |test: &Test, faults: &[String], observed: &Observed| {
        if !faults.is_empty() {
            failed.lock().unwrap_or_else(PoisonError::into_inner).insert(test.name.clone());
        }
        report.report(test, faults, observed);
    };
    let finish = |test: &Test, observed: &Observed| {
        let faults = judge::judge(&test.header, observed);
        if faults.is_empty() {
            let key = keys.lock().unwrap_or_else(PoisonError::into_inner).remove(&test.name);
            report.note_passed(key.as_ref(), &test.name, 1);
        }
        if keep || !faults.is_empty() {
            keep_files(&context.directory(test), observed);
        } else {
            // Two gigabytes in a whole run.
            let _ = fs::remove_dir_all(context.directory(test));
        }
        report_test(test, &faults, observed);
    };
    // On the host: host tests are complete; of a guest test only a failure to compile counts.
    let prepare = |test: &Test| {
        let is_shell = test.kind == find::Kind::HostShell;
        if is_shell && has_passed(test, report.key_of_tree(&test.name)) {
            return true;
        }
        context.run_timed(test, timings, &|result| match result {
            Ok(observed) if !test.runs_in_guest() => finish(test, observed),
            Ok(observed) if observed.exit != 0 => {
                report_test(test, &["does not compile".to_string()], observed);
            }
            Ok(_) => {}
            Err(error) => report_test(test, &[format!("{error:#}")], &Observed::default()),
        })
    };
    let compiled = parallel::Results::new(tests.len());
    let compile = |number: usize, test: &Test| compiled.set(number, prepare(test));
    let in_guest = |share: &[(usize, &Test)]| {
        let ready: Vec<_> =
            share.iter().copied().filter(|(number, _)| compiled.wait_for(*number) == Some(true)).collect();
        let (known, ready): (Vec<_>, Vec<_>) =
            ready.into_iter().partition(|(_, test)| has_passed(test, report.kept().of_guest_test(context, test)));
        for (_, test) in known {
            let _ = fs::remove_dir_all(context.directory(test));
        }
        batch::run(context, &ready, timings, &|number, observed| finish(&tests[number], &observed))
    };
    let numbered = tests.iter().enumerate();
    let (shells, scripts): (Vec<_>, Vec<_>) = numbered.partition(|(_, test)| test.kind == find::Kind::HostShell);
    let in_guests: Vec<_> = scripts.iter().copied().filter(|(_, test)| test.runs_in_guest()).collect();
    let (alone, together): (Vec<_>, Vec<_>) = in_guests.into_iter().partition(|(_, test)| test.header.alone);
    let (shells_alone, mut shells): (Vec<_>, Vec<_>) = shells.into_iter().partition(|(_, test)| test.header.alone);
    // A long one that begins last keeps one CPU busy and leaves the other idle.
    shells.sort_by_key(|(_, test)| std::cmp::Reverse(test.header.limit));
    let (accounted, others): (Vec<_>, Vec<_>) = together.into_iter().partition(|(_, test)| test.header.memory_cgroups);
    let mut shares = share::shares(others, share::GUESTS);
    shares.extend((!accounted.is_empty()).then_some(accounted));
    if !shares.is_empty() {
        let count: usize = shares.iter().map(Vec::len).sum();
        println!("booting {} guests of {} for {count} tests", shares.len(), context.place.kernel.release);
    }
    // Guests take by far the longest: start them first.
    let mut guests = jobs.guests;
    guests.extend(shares.iter().map(|share| -> Job { Box::new(|| in_guest(share)) }));
    let mut host: Vec<Job> = Vec::new();
    for (number, test) in scripts {
        let compile = &compile;
        host.push(Box::new(move || {
            compile(number, test);
            Ok(())
        }));
    }
    host.extend(jobs.on_host);
    for (_, test) in shells {
        let prepare = &prepare;
        host.push(Box::new(move || {
            prepare(test);
            Ok(())
        }));
    }
    // Guests sleep part of the time, and tests on the host give way to them.
    let threads = parallel::cpus() + 1;
    parallel::queues(vec![Queue { threads, jobs: guests }, Queue { threads, jobs: host }])?;
    // From here on there is one guest: its limits are those of the load that is measured.
    measure::expect_load(1);
    if !alone.is_empty() {
        println!("booting a guest of {} for {} tests that are to be alone", context.place.kernel.release, alone.len());
    }
    let in_alone: Job = Box::new(|| if alone.is_empty() { Ok(()) } else { in_guest(&alone) });
    parallel::queues(vec![Queue { threads: 1, jobs: vec![in_alone] }, Queue { threads: 1, jobs: jobs.beside_alone }])?;
    for (_, test) in shells_alone {
        prepare(test);
    }
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(tests.into_iter().filter(|test| failed.contains(&test.name)).collect())
}

/// Saves the output for debugging; a failure to do so does not fail the test.
fn keep_files(directory: &Path, observed: &Observed) {
    let _ = fs::create_dir_all(directory);
    for (name, text) in [("stdout", &observed.stdout), ("stderr", &observed.stderr), ("dmesg", &observed.dmesg)] {
        let _ = fs::write(directory.join(name), text);
    }
}
