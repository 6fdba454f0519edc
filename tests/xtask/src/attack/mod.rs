// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask attack`: hostile scripts without guru mode, in guests that panic at the first warning, while CPUs go
//! offline and online, memory is short, the loader is stopped and killed, modules are loaded and unloaded, and the time
//! is set. None may harm the kernel.
//!
//!     cargo xtask attack --seed 1 --hours 10 --seconds 3    # until then, or until --count scripts were tried
//!     cargo xtask attack --seed 5017 --show                 # the script of that seed
//!
//! A script depends only on its seed and the library. A script that breaks something is reduced, and saved in
//! target/attack; with the fix it becomes a test, beside those of the fixed code. A fixed number is part of `cargo
//! xtask test`.

mod generate;
mod points;
mod run;
mod script;

use std::fs;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::debug_kernel;
use crate::place::Place;
use run::{Outcome, Runner};
use script::{Function, Script};

/// The arguments of `cargo xtask attack`.
#[derive(clap::Args)]
pub struct Options {
    /// Seed of the first script; the others have the numbers after it
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many scripts
    #[arg(long, default_value_t = USUAL, conflicts_with = "hours")]
    count: u64,
    /// Continues for this time instead
    #[arg(long, value_name = "H")]
    hours: Option<f64>,
    /// How long each session runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seconds: u32,
    /// Prints the first script, and runs nothing
    #[arg(long)]
    show: bool,
    /// Leaves scripts that break something as they are
    #[arg(long)]
    no_shrink: bool,
    /// Kernel release or line, as for `test`
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// On the kernel of `cargo xtask debug-kernel`, which checks itself
    #[arg(long, conflicts_with = "kernel")]
    debug_kernel: bool,
}

/// The number for `cargo xtask test`: each disturbance once.
const USUAL: u64 = run::DISTURBANCES;
/// Seconds after which a session is interrupted; with --hours. On emulated CPUs, thousands of kprobes take a minute to arm, and
/// each second of it costs one of the host's.
const LONGEST: (u32, u32) = (10, 40);
/// Number of scripts in one guest.
const TOGETHER: u64 = 10;

/// Runs random hostile scripts and reports those that do harm.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    let place = match options.debug_kernel {
        true => debug_kernel::place(2)?,
        false => Place::find(options.kernel.as_deref())?,
    };
    crate::programs::build_programs(&root)?;
    let functions = functions(&place)?;
    if options.show {
        println!("{}", generate::script(options.seed, &functions).text());
        return Ok(ExitCode::SUCCESS);
    }
    let longest = if options.hours.is_some() { LONGEST.1 } else { LONGEST.0 };
    let runner = Runner { place: &place, seconds: options.seconds, longest, directory: directory().join("modules") };
    let began = Instant::now();
    let (mut tried, mut refused, mut broken) = (0, 0, 0);
    let over = |tried: u64| match options.hours {
        Some(hours) => began.elapsed() > Duration::from_secs_f64(hours * 3600.0),
        None => tried >= options.count,
    };
    while !over(tried) {
        let count = if options.hours.is_some() { TOGETHER } else { TOGETHER.min(options.count - tried) };
        let scripts: Vec<Script> =
            (0..count).map(|at| generate::script(options.seed + tried + at, &functions)).collect();
        for (script, outcome) in scripts.iter().zip(run::run(&runner, &scripts)?) {
            match &outcome {
                Outcome::Held => {}
                Outcome::Refused(_) => refused += 1,
                Outcome::Broken(_) => {
                    broken += 1;
                    let (script, outcome) =
                        if options.no_shrink { (script.clone(), outcome) } else { smallest(&runner, script, outcome)? };
                    report(&script, &outcome)?;
                }
            }
        }
        tried += count;
        if options.hours.is_some() {
            println!("seeds {} to {}: {broken} broken, {refused} refused", options.seed, options.seed + tried - 1);
        }
    }
    println!("{tried} scripts, {refused} refused, {broken} broke something");
    ensure!(
        refused * 2 < tried || tried < TOGETHER,
        "most scripts are refused, by the compiler or the loader: nothing is attacked"
    );
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Library functions that do not require guru mode, do not end the session and do not write to the kernel log.
fn functions(place: &Place) -> Result<Vec<Function>> {
    const NOT: [&str; 7] = ["exit", "abort", "system", "error", "assert", "target_set_report", "dump_stack"];
    let mut command = place.command(place.spile()?, &crate::root());
    command.args(["-r", &place.kernel.release, "--dump-functions"]).stdin(Stdio::null());
    let output = command.output().context("running spile --dump-functions")?;
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let needs_guru = |name: &str| {
        name.starts_with("set_") || spile_core::builtin::all().any(|builtin| builtin.guru && builtin.name == name)
    };
    let functions: Vec<Function> = listed
        .lines()
        .filter_map(Function::parse)
        .filter(|function| !NOT.contains(&function.name.as_str()) && !needs_guru(&function.name))
        .collect();
    ensure!(
        functions.len() > 100,
        "spile --dump-functions lists no functions:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(functions)
}

/// Reduces a script to the parts that still break something, each tried in a separate guest.
fn smallest(runner: &Runner, script: &Script, outcome: Outcome) -> Result<(Script, Outcome)> {
    let (mut script, mut outcome) = (script.clone(), outcome);
    let runner = Runner { directory: directory().join("smaller"), ..*runner };
    loop {
        let mut found = None;
        for smaller in script.smaller() {
            let tried = run::run(&runner, std::slice::from_ref(&smaller))?;
            if let Some(tried) = tried.into_iter().find(Outcome::is_broken) {
                found = Some((smaller, tried));
                break;
            }
        }
        match found {
            Some(smaller) => (script, outcome) = smaller,
            None => return Ok((script, outcome)),
        }
    }
}

fn report(script: &Script, outcome: &Outcome) -> Result<()> {
    let file = directory().join(format!("{}.stp", script.seed));
    fs::write(&file, script.text())?;
    let Outcome::Broken(what) = outcome else { return Ok(()) };
    fs::write(file.with_extension("fault"), what)?;
    println!("seed {}: {}\n{what}", script.seed, file.display());
    Ok(())
}

fn directory() -> PathBuf {
    crate::root().join("target/attack")
}
