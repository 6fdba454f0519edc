// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask attack`: hostile scripts without guru mode, in guests that panic at the first warning, while CPUs go
//! offline and online, memory is short, the loader is stopped and killed, modules are loaded and unloaded, and the time
//! is set. None may harm the kernel.
//!
//!     cargo xtask attack --seed 1 --hours 10 --seconds 3    # until then, or until --count scripts were tried
//!     cargo xtask attack --seed 5017 --show                 # the script of that seed
//!
//!     cargo xtask attack --list [NAME]                      # those written by hand, beside this file
//!
//! Four scripts run at the same time. A script depends only on its seed, the library and what the runtime calls. Scripts that break something are
//! reduced, and saved in target/attack; with the fix they become a test, beside those of the fixed code. A fixed number is
//! part of `cargo xtask test`.

mod called;
mod generate;
mod list;
mod points;
mod run;
mod script;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use spile_source::{FileId, Origin, SourceMap};

use crate::debug_kernel;
use crate::place::Place;
use run::{Round, Runner};
use script::{Function, Known, Script};

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
    /// How many run at the same time
    #[arg(long, value_name = "N", default_value_t = BESIDE, value_parser = clap::value_parser!(u64).range(1..=16))]
    beside: u64,
    /// How long each session runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seconds: u32,
    /// Prints the first script, and runs nothing
    #[arg(long)]
    show: bool,
    /// Leaves scripts that break something as they are
    #[arg(long)]
    no_shrink: bool,
    /// Instead of random scripts, all that were written by hand, or those that contain a text
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["seed", "count", "hours", "show"])]
    list: Option<String>,
    /// Of the list, leaves out so many rounds: those that an earlier run has printed
    #[arg(long, value_name = "N", default_value_t = 0, requires = "list")]
    skip: usize,
    /// Kernel release or line, as for `test`
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// On the kernel of `cargo xtask debug-kernel`, which checks itself
    #[arg(long, conflicts_with = "kernel")]
    debug_kernel: bool,
    /// On the kernel of `cargo xtask debug-kernel --kcsan`, which looks for data races
    #[arg(long, conflicts_with_all = ["kernel", "debug_kernel"])]
    kcsan: bool,
}

/// Number of scripts that run at the same time.
const BESIDE: u64 = 4;
/// The number for `cargo xtask test`: some more than each disturbance with as many.
const USUAL: u64 = run::DISTURBANCES * BESIDE + 2;
/// Rounds of the list for one guest: on a kernel that checks itself, one takes minutes.
const IN_ONE_GUEST: usize = 4;
/// Seconds after which a session is interrupted; with --hours. On emulated CPUs, thousands of kprobes take a minute to arm, and
/// each second of it costs one of the host's.
const LONGEST: (u32, u32) = (10, 40);

/// Runs random hostile scripts and reports those that do harm.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    let place = match options {
        Options { debug_kernel: true, .. } => debug_kernel::place(2)?,
        Options { kcsan: true, .. } => debug_kernel::place_with_races(2)?,
        _ => Place::find(options.kernel.as_deref())?,
    };
    crate::programs::build_programs(&root)?;
    if let Some(wanted) = &options.list {
        return listed(&place, wanted, options);
    }
    let own = directory().join(options.seed.to_string());
    let known = Known { functions: functions(&place)?, called: called::called(&place, &own.join("parts"))? };
    if options.show {
        println!("{}", generate::script(options.seed, &known).text());
        return Ok(ExitCode::SUCCESS);
    }
    let longest = if options.hours.is_some() { LONGEST.1 } else { LONGEST.0 };
    let runner = Runner { place: &place, seconds: options.seconds, longest, directory: own.join("modules") };
    expect_report(&runner)?;
    let began = Instant::now();
    let (mut tried, mut refused, mut broken) = (0, 0, 0);
    let over = |tried: u64| match options.hours {
        Some(hours) => began.elapsed() > Duration::from_secs_f64(hours * 3600.0),
        None => tried >= options.count,
    };
    while !over(tried) {
        let left = if options.hours.is_some() { u64::MAX } else { options.count - tried };
        let rounds = rounds(options.seed + tried, options.beside, left);
        let rounds: Vec<Round> =
            rounds.iter().map(|seeds| seeds.iter().map(|seed| generate::script(*seed, &known)).collect()).collect();
        for (round, outcome) in rounds.iter().zip(run::run(&runner, &rounds)?) {
            refused += outcome.refused;
            keep_races(&outcome.races)?;
            if let Some(what) = outcome.broken {
                broken += 1;
                let (round, what) = if options.no_shrink {
                    (round.clone(), what)
                } else {
                    smallest(&runner, &own, round.clone(), what)?
                };
                report(&round, &what)?;
            }
        }
        tried += rounds.iter().map(|round| round.len() as u64).sum::<u64>();
        if options.hours.is_some() {
            println!("seeds {} to {}: {broken} broken, {refused} refused", options.seed, options.seed + tried - 1);
        }
    }
    fs::remove_dir_all(&own).with_context(|| format!("removing {}", own.display()))?;
    println!("{tried} scripts, {} at a time, {refused} refused, {broken} broke something", options.beside);
    ensure!(
        refused * 2 < tried || tried < run::DISTURBANCES,
        "most scripts are refused, by the compiler or the loader: nothing is attacked"
    );
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the scripts that were written by hand. All of them have to be run, unless the kernel lacks what they probe.
fn listed(place: &Place, wanted: &str, options: &Options) -> Result<ExitCode> {
    let scripts = crate::root().join("tests/xtask/src/attack");
    let own = directory().join("list");
    let called = called::called(place, &own.join("parts"))?;
    let rounds = list::rounds(&scripts, wanted, &called, usize::try_from(options.beside)?)?;
    let runner = Runner { place, seconds: options.seconds, longest: LONGEST.0, directory: own.join("modules") };
    expect_report(&runner)?;
    let left = rounds.get(options.skip..).filter(|left| !left.is_empty());
    let left = left.with_context(|| format!("there are only {} rounds", rounds.len()))?;
    let (mut refused, mut broken, mut over) = (0, 0, options.skip);
    for together in left.chunks(IN_ONE_GUEST) {
        for (round, outcome) in together.iter().zip(run::run(&runner, together)?) {
            refused += outcome.refused;
            keep_races(&outcome.races)?;
            if let Some(what) = outcome.broken {
                broken += 1;
                report(round, &what)?;
            }
        }
        over += together.len();
        println!("{over} of {} rounds: {broken} broken, {refused} refused", rounds.len());
    }
    let tried: usize = left.iter().map(Vec::len).sum();
    println!("{tried} scripts, {refused} refused, {broken} broke something");
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Adds reports of data races of the kernel's own code to target/attack/kcsan.txt: nothing that a script does, but they show what was looked at.
fn keep_races(races: &[String]) -> Result<()> {
    if races.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(directory())?;
    let file = directory().join("kcsan.txt");
    let open = fs::OpenOptions::new().create(true).append(true).open(&file);
    let mut open = open.with_context(|| format!("opening {}", file.display()))?;
    writeln!(open, "{}", races.join("\n\n")).with_context(|| format!("writing {}", file.display()))?;
    println!("{} data races of the kernel's own code are in {}", races.len(), file.display());
    Ok(())
}

/// A handler that adds to a word of its own on both CPUs, in guru mode.
const RACE: &str = "\
%{ static unsigned long raced; %}
function race() %{ int i; for (i = 0; i < 2000; i++) { raced++; barrier(); } %}
probe kernel.function(\"vfs_read\") { race() }
";

/// Where the kernel looks for data races, fails unless it reports a deliberate one of a script: CPUs that run in turns could hide
/// all. They do not: KCSAN waits in loops with `pause`, at which qemu goes on with the other CPU.
fn expect_report(runner: &Runner) -> Result<()> {
    if !runner.place.reports_races() {
        return Ok(());
    }
    let options = vec!["-g".to_string()];
    let round: Round = vec![Script { seed: 0, options, declarations: vec![RACE.to_string()], probes: Vec::new() }];
    let outcome = run::run(runner, &[round])?.pop().unwrap_or_default();
    ensure!(
        outcome
            .broken
            .as_ref()
            .is_some_and(|what| what.contains(crate::test::DATA_RACE) && what.contains("race [attack_")),
        "the kernel does not report a deliberate data race: {outcome:?}"
    );
    println!("a deliberate data race is reported");
    Ok(())
}

/// The seeds of the scripts of each round for one guest, from the first seed on, at most `left`. All of a round have the same disturbance.
/// A few that would be left are one more in some rounds: a guest for them alone would cost more.
fn rounds(first: u64, beside: u64, left: u64) -> Vec<Vec<u64>> {
    let usual = run::DISTURBANCES * beside;
    let together = if left < usual + run::DISTURBANCES { left } else { usual };
    let seeds = |round| (first + round..first + together).step_by(run::DISTURBANCES as usize).collect();
    (0..run::DISTURBANCES.min(together)).map(seeds).collect()
}

/// Library functions that do not require guru mode, do not end the session and do not write to the kernel log.
fn functions(place: &Place) -> Result<Vec<Function>> {
    const NOT: [&str; 6] = ["exit", "abort", "system", "error", "assert", "target_set_report"];
    let mut command = place.command(place.spile()?, &crate::root());
    command.args(["-r", &place.kernel.release, "--dump-functions"]).stdin(Stdio::null());
    let output = command.output().context("running spile --dump-functions")?;
    let mut listed = String::from_utf8_lossy(&output.stdout).into_owned();
    // Those that no listing shows can be called too.
    for line in hidden_functions() {
        listed.push_str(&line);
        listed.push('\n');
    }
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

/// Builtins and functions of the library whose names begin with `_`, as `--dump-functions` would list them.
fn hidden_functions() -> Vec<String> {
    use spile_syntax::ast::Item;

    let builtins = spile_core::builtin::offered().filter(|builtin| builtin.name.starts_with('_'));
    let mut lines: Vec<String> = builtins.map(spile_core::builtin::Builtin::signature).collect();
    let (environment, mut sources, mut macros) = Default::default();
    let (shared, scripts): (Vec<_>, Vec<_>) =
        spile_core::library::embedded_tapset().into_iter().partition(|(name, _)| name.ends_with(".stpm"));
    for (name, bytes) in shared {
        let file = added(&mut sources, name, bytes);
        spile_syntax::collect_macros(&mut sources, file, &environment, &mut macros);
    }
    for (name, bytes) in scripts {
        let file = added(&mut sources, name, bytes);
        let (script, _) = spile_syntax::parse(&mut sources, file, &environment, &macros);
        lines.extend(script.items.iter().filter_map(|item| match item {
            Item::Function(function) if !function.private && function.name.text.starts_with('_') => {
                Some(spile_core::library::signature(function))
            }
            _ => None,
        }));
    }
    lines
}

fn added(sources: &mut SourceMap, name: String, bytes: &[u8]) -> FileId {
    sources.add(name, bytes.to_vec(), Origin::Tapset)
}

/// Reduces a round to the scripts, and their parts, that still break something, each tried in a separate guest.
fn smallest(runner: &Runner, own: &Path, mut round: Round, mut broken: String) -> Result<(Round, String)> {
    let runner = Runner { directory: own.join("smaller"), ..*runner };
    loop {
        let mut found = None;
        for smaller in smaller(&round) {
            let tried = run::run(&runner, std::slice::from_ref(&smaller))?;
            if let Some(broken) = tried.into_iter().find_map(|tried| tried.broken) {
                found = Some((smaller, broken));
                break;
            }
        }
        match found {
            Some(smaller) => (round, broken) = smaller,
            None => return Ok((round, broken)),
        }
    }
}

/// The round as one of its scripts, without one of them, and without one part of a script.
fn smaller(round: &Round) -> Vec<Round> {
    let mut found: Vec<Round> = Vec::new();
    if round.len() > 1 {
        found.extend(round.iter().map(|script| vec![script.clone()]));
    }
    if round.len() > 2 {
        found.extend((0..round.len()).map(|at| {
            let mut others = round.clone();
            others.remove(at);
            others
        }));
    }
    for (at, script) in round.iter().enumerate() {
        found.extend(script.smaller().into_iter().map(|script| {
            let mut with = round.clone();
            with[at] = script;
            with
        }));
    }
    found
}

fn report(round: &Round, broken: &str) -> Result<()> {
    fs::create_dir_all(directory())?;
    for script in round {
        fs::write(directory().join(format!("{}.stp", script.seed)), script.text())?;
    }
    let seeds: Vec<String> = round.iter().map(|script| script.seed.to_string()).collect();
    let fault = directory().join(format!("{}.fault", seeds[0]));
    fs::write(&fault, format!("scripts: {}\n{broken}", seeds.join(" ")))?;
    println!("seeds {}: {}\n{broken}", seeds.join(" "), fault.display());
    Ok(())
}

/// What broke something is here, and in a directory for each first seed what a run works with: runs with other seeds may
/// go on at the same time.
fn directory() -> PathBuf {
    crate::root().join("target/attack")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_a_round_have_one_disturbance() {
        let whole = rounds(5, 4, u64::MAX);
        assert_eq!(whole.len(), 12);
        assert_eq!(whole[0], [5, 17, 29, 41]);
        let mut all: Vec<u64> = whole.concat();
        all.sort_unstable();
        assert_eq!(all, (5..53).collect::<Vec<u64>>());
        assert_eq!(rounds(48, 4, 2), [[48], [49]]);
        assert_eq!(rounds(5, 4, USUAL).concat().len() as u64, USUAL);
        assert_eq!(rounds(5, 4, USUAL)[0], [5, 17, 29, 41, 53]);
        assert_eq!(rounds(5, 4, 60).concat().len(), 48);
        assert_eq!(rounds(0, 1, 3), [[0], [1], [2]]);
    }

    #[test]
    fn a_smaller_round_lacks_scripts_or_a_part_of_one() {
        let script = |seed| script::Script { seed, options: vec![], declarations: vec![], probes: vec![] };
        let round: Round = vec![script(1), script(2), script(3)];
        let seeds: Vec<Vec<u64>> =
            smaller(&round).iter().map(|round| round.iter().map(|script| script.seed).collect()).collect();
        assert_eq!(seeds, [vec![1], vec![2], vec![3], vec![2, 3], vec![1, 3], vec![1, 2]]);
    }
}
