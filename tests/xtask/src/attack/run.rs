// SPDX-License-Identifier: GPL-2.0-or-later

//! Compiles hostile scripts, runs them in guests that panic at the first warning, and reports what went wrong.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use spile_guest::Streams;

use super::script::Script;
use crate::place::Place;
use crate::test::{find_fault, is_race_of_kernel};
use crate::{guest, measure, parallel};

const DRIVER: &str = include_str!("driver.sh");
/// Ways in which `driver.sh` disturbs a session, the first of them none.
pub const DISTURBANCES: u64 = 12;

/// The number of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance(u64);

impl Disturbance {
    /// Of the script with this seed.
    pub fn of(seed: u64) -> Disturbance {
        Disturbance(seed % DISTURBANCES)
    }

    /// CPUs or modules come and go, or the machine sleeps.
    pub fn changes_machine(self) -> bool {
        matches!(self.0, 4 | 7 | 8)
    }

    /// Allocations fail, and processes are killed.
    pub fn uses_up_memory(self) -> bool {
        self.0 == 11
    }
}
/// Kernel parameters that make a guest panic at the first fault, so that nothing after it hides it. The last one: after an
/// emulated cmpxchg16b (QEMU 10.0) the flags have bits of another register, the trap flag for one, where a breakpoint
/// follows, as in mm/slub.c (X86_FEATURE_CX16 is 4 * 32 + 13).
const PARAMETERS: [&str; 4] = ["softlockup_panic=1", "hung_task_panic=1", "oops=panic", "clearcpuid=141"];
/// The same for warnings. Not where the kernel looks for data races: it panics at those of its own code.
const PANIC_AT_WARNING: &str = "panic_on_warn=1";
/// Time limits in seconds for compiling one script; and for running one.
const COMPILING: &str = "300";
const RUNNING: Duration = Duration::from_secs(120);
/// Exit statuses of a program killed by its own signal: SIGILL, SIGABRT, SIGBUS, SIGSEGV.
const CRASHES: [i32; 4] = [132, 134, 135, 139];
/// Exit statuses of a loader that did not start the session: the module is not tested then.
const NEVER_RAN: std::ops::RangeInclusive<i32> = 2..=7;

/// The outcome of a script, or of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran without harm.
    Held,
    /// Rejected by the compiler or the loader, with a proper message.
    Refused(String),
    /// The failure.
    Broken(String),
}

/// Scripts whose sessions run at the same time, and have the disturbance of the first.
pub type Round = Vec<Script>;

/// What became of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Scripts that the compiler or the loader rejected.
    pub refused: u64,
    /// What harm was done, by at least one of the scripts or by all together.
    pub broken: Option<String>,
    /// What the kernel reported of data races of its own code.
    pub races: Vec<String>,
}

/// How scripts are run.
pub struct Runner<'a> {
    /// The kernel.
    pub place: &'a Place,
    /// Duration of each session once its probes are armed.
    pub seconds: u32,
    /// Seconds after which a session is interrupted, whatever it is at. It has to end soon then.
    pub longest: u32,
    /// Directory of scripts and modules; it is emptied.
    pub directory: PathBuf,
}

/// What became of the rounds, in order. All run in one guest, or, after a round that it does not survive, in another.
pub fn run(runner: &Runner, rounds: &[Round]) -> Result<Vec<Tried>> {
    let Runner { place, directory, .. } = runner;
    if directory.is_dir() {
        fs::remove_dir_all(directory)?;
    }
    fs::create_dir_all(directory)?;
    let spile = place.spile()?;
    let lustre = crate::fixtures::LUSTRE.build(&crate::root(), place)?;
    let scripts: Vec<(usize, &Script)> = rounds
        .iter()
        .enumerate()
        .flat_map(|(round, scripts)| scripts.iter().map(move |script| (round, script)))
        .collect();
    let compiled = parallel::map(scripts.len(), |number| {
        let mut command = place.command("timeout", directory);
        command.args([COMPILING.as_ref(), spile.as_os_str()]).arg("-d").arg(&lustre);
        if let Some(system) = place.system() {
            command.arg("--sysroot").arg(system);
        }
        compile(command, place, scripts[number].1, directory, number)
    });
    let mut tried = vec![Tried::default(); rounds.len()];
    let mut open: Vec<Sessions> = (0..rounds.len()).map(|round| Sessions { round, modules: Vec::new() }).collect();
    for (number, outcome) in compiled.into_iter().enumerate() {
        match outcome? {
            Some(outcome) => tried[scripts[number].0].add(outcome),
            None => open[scripts[number].0].modules.push(number),
        }
    }
    open.retain(|sessions| !sessions.modules.is_empty());
    while !open.is_empty() {
        let (files, console) = one_guest(runner, rounds, &open)?;
        let part = |name: String| files.get(&name).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        // If a guest died, the first round without a log was the cause.
        let ran = open.iter().take_while(|sessions| files.contains_key(&format!("{}.log", sessions.round))).count();
        for Sessions { round, modules } in open.drain(..ran) {
            for number in modules {
                let end = part(format!("{number}.end")).unwrap_or_default();
                tried[round].add(judge(end.trim(), &part(format!("{number}.messages")).unwrap_or_default()));
            }
            let log = part(format!("{round}.log")).unwrap_or_default();
            tried[round].add(judge_log(&log, Disturbance::of(rounds[round][0].seed)));
            tried[round].races.extend(races_of_kernel(&log));
        }
        if !open.is_empty() {
            let died = open.remove(0);
            tried[died.round].add(Outcome::Broken(format!("the guest died or hung\n{console}")));
        }
    }
    Ok(tried)
}

/// The modules of a round, by number.
struct Sessions {
    round: usize,
    modules: Vec<usize>,
}

impl Tried {
    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Held => {}
            Outcome::Refused(_) => self.refused += 1,
            Outcome::Broken(what) => {
                let broken = self.broken.get_or_insert_default();
                broken.push_str(&what);
                broken.push('\n');
            }
        }
    }
}

fn module(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("attack_{number}.ko"))
}

/// Compiles a script by the common part of the compiler's command; `None` if the module was built.
fn compile(
    mut command: Command,
    place: &Place,
    script: &Script,
    directory: &Path,
    number: usize,
) -> Result<Option<Outcome>> {
    let name = format!("attack_{number}");
    fs::write(directory.join(format!("{name}.stp")), script.text())?;
    command.args(["-r", &place.kernel.release, "-p4", "-w", "-m", &name]);
    let output = command.args(&script.options).arg(format!("{name}.stp")).output().context("running spile")?;
    if output.status.success() {
        return Ok(None);
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Ok(Some(judge_refusal(output.status.code(), &messages)))
}

/// A proper rejection has an error code and status 1. E0500, a failed step, does not count, except for a stack that is
/// too deep and for points that this kernel does not have.
fn judge_refusal(status: Option<i32>, messages: &str) -> Outcome {
    let error = messages.lines().find(|line| line.starts_with("error[")).unwrap_or_default();
    let is_refusal = !error.starts_with("error[E0500]") || error.contains("stack") || error.contains("no probes");
    let is_refusal = status == Some(1) && !error.is_empty() && is_refusal;
    if is_refusal {
        Outcome::Refused(error.to_string())
    } else {
        Outcome::Broken(format!("spile ended with {status:?}\n{messages}"))
    }
}

/// By the loader's end, as driver.sh writes it, and its messages.
fn judge(end: &str, messages: &str) -> Outcome {
    let mut faults = Vec::new();
    if end.contains("hangs") {
        faults.push("did not end in time after SIGINT".to_string());
    }
    if end.contains("left") {
        faults.push("the module stays".to_string());
    }
    let status: Option<i32> = end.split(' ').next().and_then(|status| status.parse().ok());
    if status.is_some_and(|status| CRASHES.contains(&status)) || messages.contains("panicked at") {
        faults.push(format!("the loader crashed ({end})"));
    }
    match faults.is_empty() {
        true if status.is_some_and(|status| NEVER_RAN.contains(&status)) => {
            Outcome::Refused(format!("loader: {end}\n{messages}"))
        }
        true => Outcome::Held,
        false => Outcome::Broken(format!("{}\nloader: {end}\n{messages}", faults.join("\n"))),
    }
}

/// The end of the rule below a report of KCSAN (kernel/kcsan/report.c), and the most lines of one.
const END_OF_REPORT: &str = "==================================================================";
const LONGEST_REPORT: usize = 80;
/// What the kernel logs of a program that a fault ends.
const CRASHED: [&str; 2] = ["]: segfault at ", "] trap "];

/// By the kernel log of a round.
fn judge_log(log: &str, disturbance: Disturbance) -> Outcome {
    // Stacks without a preceding report were requested by sysrq.
    let lines: Vec<&str> = log.lines().filter(|line| !line.contains("Call Trace:")).collect();
    let without_stacks = lines.join("\n");
    // Where memory is used up, programs may not get their stacks.
    let is_crash = |line: &&str| !disturbance.uses_up_memory() && CRASHED.iter().any(|text| line.contains(text));
    if let Some(line) = log.lines().find(is_crash) {
        return Outcome::Broken(format!("a program crashed: {line}"));
    }
    let Some(line) = find_fault(&without_stacks) else { return Outcome::Held };
    let from = log.find(line).unwrap_or(0);
    let shown: Vec<&str> = log[from..].lines().take(60).collect();
    Outcome::Broken(format!("kernel log: {}", shown.join("\n")))
}

/// The reports of data races of the kernel's own code, each up to its second rule.
fn races_of_kernel(log: &str) -> Vec<String> {
    let lines: Vec<&str> = log.lines().collect();
    let starts = (0..lines.len()).filter(|at| is_race_of_kernel(lines[*at]));
    let report = |start: usize| {
        let length = lines[start..].iter().position(|line| line.ends_with(END_OF_REPORT));
        lines[start..]
            .iter()
            .take(length.unwrap_or(LONGEST_REPORT).min(LONGEST_REPORT))
            .copied()
            .collect::<Vec<_>>()
            .join("\n")
    };
    starts.map(report).collect()
}

/// The results from a guest, and the end of its console.
fn one_guest(runner: &Runner, rounds: &[Round], open: &[Sessions]) -> Result<(BTreeMap<String, Vec<u8>>, String)> {
    let Runner { place, seconds, longest, directory } = runner;
    let mut guest = guest::equipped(&crate::root(), place)?;
    guest.write("/root/driver.sh", DRIVER, 0o644);
    for parameter in PARAMETERS {
        guest.parameter(parameter);
    }
    if !place.reports_races() {
        guest.parameter(PANIC_AT_WARNING);
    }
    // Nothing asks for leaks here, and kmemleak takes the stack of each allocation, as KASAN does once more.
    if place.is_own_build() {
        guest.parameter("kmemleak=off");
    }
    let patience = place.slowness() * measure::busy();
    let mut text = String::from("cd /root\n. /root/driver.sh\n");
    for Sessions { round, modules } in open {
        let disturbance = Disturbance::of(rounds[*round][0].seed).0;
        text.push_str(&format!("attack {round} {disturbance} {seconds} {longest} {patience}"));
        for number in modules {
            guest.copy(module(directory, *number), format!("/root/attack_{number}.ko"))?;
            text.push_str(&format!(" {number}"));
        }
        text.push('\n');
    }
    text.push_str("touch /tmp/over\n");
    guest.memory_mib(2048).script(&text).time_limit(RUNNING * patience * u32::try_from(open.len()).unwrap_or(u32::MAX));
    let mut running = guest.start(Streams::discard())?;
    guest::woken(&mut running);
    let outcome = running.wait()?;
    let console: Vec<&str> = outcome.console.lines().collect();
    Ok((outcome.files, console[console.len().saturating_sub(80)..].join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_broken(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Broken(_))
    }

    #[test]
    fn results_that_a_compiler_may_have() {
        assert!(!is_broken(&judge_refusal(Some(1), "error[E0101]: type mismatch\n")));
        assert!(!is_broken(&judge_refusal(Some(1), "error[E0500]: the probe needs 20000 bytes of stack\n")));
        assert!(is_broken(&judge_refusal(Some(1), "error[E0500]: gcc failed\n")));
        assert!(is_broken(&judge_refusal(Some(101), "thread 'main' panicked at\n")));
        assert!(is_broken(&judge_refusal(Some(124), "")));
    }

    #[test]
    fn results_that_a_session_may_have() {
        assert_eq!(judge("1", "ERROR: division by 0"), Outcome::Held);
        assert_eq!(judge("7", "ERROR: refused"), Outcome::Refused("loader: 7\nERROR: refused".into()));
        for (end, messages) in [("0", "thread 'main' panicked at"), ("hangs", ""), ("1 left", ""), ("139", "")] {
            assert!(is_broken(&judge(end, messages)), "{end} {messages}");
        }
        let of = |log: &str, seed: u64| judge_log(log, Disturbance::of(seed));
        assert_eq!(of("attack_1: loading out-of-tree module taints kernel.\nCall Trace:", 0), Outcome::Held);
        assert!(is_broken(&of("before\nWARNING: CPU: 0 PID: 1 at kernel/kprobes.c:1\nCall Trace:", 0)));
        for crash in ["[ 1.0] user[595]: segfault at 8 ip 00007f", "[ 1.0] traps: ls[3] trap invalid opcode ip:7f"] {
            assert!(is_broken(&of(crash, 0)));
            assert_eq!(of(crash, 11), Outcome::Held);
        }
    }

    #[test]
    fn data_races_of_the_kernel_are_kept() {
        let rule = format!("[ 1.0] {END_OF_REPORT}");
        let race =
            |functions: &str| format!("{rule}\n[ 1.0] BUG: KCSAN: data-race in {functions}\n[ 1.0] read to\n{rule}\n");
        let log = format!("[ 0.9] before\n{}[ 1.1] between\n{}", race("a / b"), race("c / d"));
        let first = "[ 1.0] BUG: KCSAN: data-race in a / b\n[ 1.0] read to";
        assert_eq!(races_of_kernel(&log).first().map(String::as_str), Some(first));
        assert_eq!(races_of_kernel(&log).len(), 2);
        let of = |log: &str| judge_log(log, Disturbance::of(0));
        assert_eq!(of(&log), Outcome::Held);
        let ours = race("probe_0 [attack_1] / probe_0 [attack_1]");
        assert!(races_of_kernel(&ours).is_empty() && is_broken(&of(&ours)));
    }

    #[test]
    fn a_round_is_broken_by_one_of_its_scripts() {
        let mut tried = Tried::default();
        for outcome in [Outcome::Held, Outcome::Refused("no".into()), Outcome::Broken("a warning".into())] {
            tried.add(outcome);
        }
        assert_eq!(tried, Tried { refused: 1, broken: Some("a warning\n".into()), races: Vec::new() });
    }
}
