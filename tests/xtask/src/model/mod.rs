// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask model`: random programs, compiled and run in one guest, compared with the output of a model of the
//! language. Part of `cargo xtask test`, with a fixed seed and one that changes daily; by hand with any seed and count:
//!
//!     cargo xtask model --seed 5000 --count 1000
//!     cargo xtask model --seed 5017 --count 1 --show     # one of them, with its expected output
//!     cargo xtask model --parallel --rounds 100000       # handlers at the same time, in user space (concurrent.rs)
//!
//! A program depends only on its seed. Several share a module, to save time; each has its own names. Programs that
//! differ are reduced as long as they still differ, and saved in target/model.

mod concurrent;
mod generate;
mod interpret;
mod run;
mod shrink;
mod tree;
mod write;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use crate::place::Place;
use crate::random::Random;
use interpret::Limits;
use run::{Module, Outcome};
use tree::Program;

/// The arguments of `cargo xtask model`.
#[derive(clap::Args)]
pub struct Options {
    /// Seed of the first program; the others have the numbers after it
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many programs
    #[arg(long, default_value_t = USUAL, default_value_if("parallel", "true", "24"))]
    count: u64,
    /// Programs whose handlers run in parallel, in user space: their results must be those of some sequential order
    #[arg(long)]
    parallel: bool,
    /// With --parallel: how often each runs; under ThreadSanitizer a tenth
    #[arg(long, default_value_t = 3000)]
    rounds: u64,
    /// Prints the scripts and their expected output, and runs nothing
    #[arg(long)]
    show: bool,
    /// Leaves programs that differ as they are
    #[arg(long)]
    no_shrink: bool,
    /// Kernel release or line, as for `test`
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
}

/// The number for `cargo xtask test`.
pub const USUAL: u64 = 60;
/// Number of programs in one module.
const TOGETHER: u64 = 12;

/// A program with its seed and expected output.
#[derive(Clone)]
pub struct Subject {
    seed: u64,
    program: Program,
    limits: Limits,
    expected: Vec<u8>,
}

/// Runs random programs, and reports those whose output differs from the model's.
pub fn run(options: &Options) -> Result<ExitCode> {
    if options.parallel {
        return concurrent::run(options);
    }
    let subjects = || -> Vec<Subject> { (options.seed..options.seed + options.count).map(subject).collect() };
    if options.show {
        for subject in subjects() {
            println!("# seed {}\n{}{}", subject.seed, one_script(&subject), String::from_utf8_lossy(&subject.expected));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let place = Place::find(options.kernel.as_deref())?;
    crate::programs::build_programs(&crate::root())?;
    // The output of a program that prints pp() depends on it.
    run::resolve_event(&place)?;
    let subjects = subjects();
    let differing = try_all(&place, &subjects)?;
    for (subject, outcome) in &differing {
        let (subject, outcome) = if options.no_shrink {
            (subject.clone(), outcome.clone())
        } else {
            shrink::smallest(&place, subject, outcome)?
        };
        println!("{}", report(&subject, &outcome)?);
    }
    println!("{} programs, {} differ", subjects.len(), differing.len());
    Ok(if differing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The failures of the programs that differ.
pub fn differing(place: &Place, seed: u64, count: u64) -> Result<Vec<String>> {
    run::resolve_event(place)?;
    let subjects: Vec<Subject> = (seed..seed + count).map(subject).collect();
    try_all(place, &subjects)?.iter().map(|(subject, outcome)| report(subject, outcome)).collect()
}

/// The program for a seed.
fn subject(seed: u64) -> Subject {
    let limits = limits(seed / TOGETHER);
    let place = (seed % TOGETHER) as usize;
    let attempts = (0..).map(|attempt: u64| generate::program(seed ^ (attempt << 40)));
    let found = attempts
        .filter_map(|program| interpret::output(place, &program, limits).map(|expected| (program, expected)))
        .next();
    // SANITY: attempts are unlimited.
    let (program, expected) = found.expect("a program that suits");
    Subject { seed, program, limits, expected }
}

/// Of a module, by its number.
fn limits(number: u64) -> Limits {
    let mut random = Random::new(number);
    Limits {
        string_bytes: random.pick([512, 512, 16, 24, 64, 200]),
        map_entries: random.pick([2048, 2048, 3, 5, 8]),
        events: 6,
    }
}

/// Compiles and runs all of them; returns those with wrong output.
fn try_all(place: &Place, subjects: &[Subject]) -> Result<Vec<(Subject, Outcome)>> {
    let modules: Vec<Module> = subjects
        .chunk_by(|a, b| a.seed / TOGETHER == b.seed / TOGETHER)
        .map(|subjects| {
            Module::new(subjects.iter().map(|subject| ((subject.seed % TOGETHER) as usize, subject)).collect())
        })
        .collect();
    let mut outcomes = run::run(place, &modules)?;
    // Which of its programs keeps a module from compiling, or ends it?
    let alone: Vec<Module> = modules
        .iter()
        .zip(&outcomes)
        .filter(|(module, outcomes)| module.programs.len() > 1 && outcomes.iter().any(Outcome::is_of_module))
        .flat_map(|(module, _)| module.programs.iter().map(|program| Module::new(vec![*program])))
        .collect();
    if !alone.is_empty() {
        for (module, outcome) in alone.iter().zip(run::run(place, &alone)?) {
            let (number, subject) = module.programs[0];
            for (module, outcomes) in modules.iter().zip(&mut outcomes) {
                if let Some(at) =
                    module.programs.iter().position(|(own, other)| *own == number && other.seed == subject.seed)
                {
                    outcomes[at] = outcome[0].clone();
                }
            }
        }
    }
    let all = modules.iter().zip(outcomes).flat_map(|(module, outcomes)| module.programs.iter().zip(outcomes));
    Ok(all
        .filter(|(_, outcome)| !outcome.is_right())
        .map(|((_, subject), outcome)| ((*subject).clone(), outcome))
        .collect())
}

/// The failure, and the paths of its files.
fn report(subject: &Subject, outcome: &Outcome) -> Result<String> {
    let directory = directory();
    fs::create_dir_all(&directory)?;
    let file = |suffix: &str| directory.join(format!("{}.{suffix}", subject.seed));
    fs::write(file("stp"), one_script(subject))?;
    fs::write(file("expected"), &subject.expected)?;
    let limits =
        format!("-DMAXSTRINGLEN={} -DMAXMAPENTRIES={}", subject.limits.string_bytes, subject.limits.map_entries);
    let what = match outcome {
        Outcome::Same => "nothing".to_string(),
        Outcome::Fails(message) => {
            fs::write(file("actual"), message)?;
            message.clone()
        }
        Outcome::Prints(actual) => {
            fs::write(file("actual"), actual)?;
            first_difference(&subject.expected, actual)
        }
    };
    Ok(format!("seed {} ({limits}): {}\n{what}", subject.seed, file("stp").display()))
}

fn directory() -> PathBuf {
    crate::root().join("target/model")
}

fn one_script(subject: &Subject) -> String {
    write::script(&[((subject.seed % TOGETHER) as usize, &subject.program)])
}

fn first_difference(expected: &[u8], actual: &[u8]) -> String {
    let lines =
        |text: &[u8]| -> Vec<String> { String::from_utf8_lossy(text.trim_ascii()).lines().map(String::from).collect() };
    let (expected, actual) = (lines(expected), lines(actual));
    let at = (0..).find(|at| expected.get(*at) != actual.get(*at)).unwrap_or(0);
    let line = |lines: &[String]| lines.get(at).map_or("(no more)".to_string(), |line| format!("{line:?}"));
    format!(
        "  line {}: expected {}\n{:>width$} {}",
        at + 1,
        line(&expected),
        "actual",
        line(&actual),
        width = 19 + (at + 1).to_string().len() - 1
    )
}

/// Creates the directory, empty.
fn fresh(directory: &Path) -> Result<()> {
    if directory.is_dir() {
        fs::remove_dir_all(directory)?;
    }
    Ok(fs::create_dir_all(directory)?)
}
