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
use crate::test::find_fault;
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
}
/// Kernel parameters that make a guest panic at the first fault, so that nothing after it hides it.
const PARAMETERS: [&str; 4] = ["panic_on_warn=1", "softlockup_panic=1", "hung_task_panic=1", "oops=panic"];
/// Time limits in seconds for compiling one script; and for running one.
const COMPILING: &str = "300";
const RUNNING: Duration = Duration::from_secs(120);
/// Exit statuses of a program killed by its own signal: SIGILL, SIGABRT, SIGBUS, SIGSEGV.
const CRASHES: [i32; 4] = [132, 134, 135, 139];
/// Exit statuses of a loader that did not start the session: the module is not tested then.
const NEVER_RAN: std::ops::RangeInclusive<i32> = 2..=7;

/// The outcome of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran without harm.
    Held,
    /// Rejected by the compiler or the loader, with a proper message.
    Refused(String),
    /// The failure.
    Broken(String),
}

impl Outcome {
    /// Whether the script did harm.
    pub fn is_broken(&self) -> bool {
        matches!(self, Outcome::Broken(_))
    }
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

/// The outcomes of the scripts, in order.
pub fn run(runner: &Runner, scripts: &[Script]) -> Result<Vec<Outcome>> {
    let Runner { place, directory, .. } = runner;
    if directory.is_dir() {
        fs::remove_dir_all(directory)?;
    }
    fs::create_dir_all(directory)?;
    let spile = place.spile()?;
    let lustre = crate::fixtures::LUSTRE.build(&crate::root(), place)?;
    let compiled = parallel::map(scripts.len(), |index| {
        let mut command = place.command("timeout", directory);
        command.args([COMPILING.as_ref(), spile.as_os_str()]).arg("-d").arg(&lustre);
        compile(command, place, &scripts[index], directory, index)
    });
    let mut outcomes: Vec<Option<Outcome>> = compiled.into_iter().collect::<Result<_>>()?;
    // If a guest died, the first script without a result was the cause.
    while outcomes.iter().any(Option::is_none) {
        let open: Vec<usize> = (0..scripts.len()).filter(|index| outcomes[*index].is_none()).collect();
        let (files, console) = one_guest(runner, scripts, &open)?;
        for index in open {
            let part = |part: &str| {
                files.get(&format!("{index}.{part}")).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            };
            let Some(end) = part("end") else {
                outcomes[index] = Some(Outcome::Broken(format!("the guest died or hung\n{console}")));
                break;
            };
            outcomes[index] =
                Some(judge(end.trim(), &part("messages").unwrap_or_default(), &part("log").unwrap_or_default()));
        }
    }
    Ok(outcomes.into_iter().flatten().collect())
}

fn module(directory: &Path, index: usize) -> PathBuf {
    directory.join(format!("attack_{index}.ko"))
}

/// Compiles a script by the common part of the compiler's command; `None` if the module was built.
fn compile(
    mut command: Command,
    place: &Place,
    script: &Script,
    directory: &Path,
    index: usize,
) -> Result<Option<Outcome>> {
    let name = format!("attack_{index}");
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

fn judge(end: &str, messages: &str, log: &str) -> Outcome {
    let mut faults = Vec::new();
    // Stacks without a preceding report were requested by sysrq.
    let without_stacks: Vec<&str> = log.lines().filter(|line| !line.contains("Call Trace:")).collect();
    if let Some(line) = find_fault(&without_stacks.join("\n")) {
        let from = log.find(line).unwrap_or(0);
        let shown: Vec<&str> = log[from..].lines().take(60).collect();
        faults.push(format!("kernel log: {}", shown.join("\n")));
    }
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

/// The results from a guest, and the end of its console.
fn one_guest(runner: &Runner, scripts: &[Script], open: &[usize]) -> Result<(BTreeMap<String, Vec<u8>>, String)> {
    let Runner { place, seconds, longest, directory } = runner;
    let mut guest = guest::equipped(&crate::root(), place)?;
    guest.write("/root/driver.sh", DRIVER, 0o644);
    for parameter in PARAMETERS {
        guest.parameter(parameter);
    }
    let patience = place.slowness() * measure::busy();
    let mut text = String::from("cd /root\n. /root/driver.sh\n");
    for index in open {
        guest.copy(module(directory, *index), format!("/root/attack_{index}.ko"))?;
        text.push_str(&format!(
            "attack {index} {} {seconds} {longest} {patience}\n",
            Disturbance::of(scripts[*index].seed).0
        ));
    }
    text.push_str("touch /tmp/over\n");
    guest.memory_mib(2048).script(&text).time_limit(RUNNING * patience * u32::try_from(open.len()).unwrap_or(u32::MAX));
    let outcome = guest.start(Streams::discard())?.wait()?;
    let console: Vec<&str> = outcome.console.lines().collect();
    Ok((outcome.files, console[console.len().saturating_sub(80)..].join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_a_compiler_may_have() {
        assert!(!judge_refusal(Some(1), "error[E0101]: type mismatch\n").is_broken());
        assert!(!judge_refusal(Some(1), "error[E0500]: the probe needs 20000 bytes of stack\n").is_broken());
        assert!(judge_refusal(Some(1), "error[E0500]: gcc failed\n").is_broken());
        assert!(judge_refusal(Some(101), "thread 'main' panicked at\n").is_broken());
        assert!(judge_refusal(Some(124), "").is_broken());
    }

    #[test]
    fn results_that_a_session_may_have() {
        assert_eq!(judge("1", "ERROR: division by 0", ""), Outcome::Held);
        assert_eq!(judge("137", "", "attack_1: loading out-of-tree module taints kernel.\nCall Trace:"), Outcome::Held);
        assert_eq!(judge("7", "ERROR: refused", ""), Outcome::Refused("loader: 7\nERROR: refused".into()));
        for (end, messages, log) in [
            ("0", "", "before\nWARNING: CPU: 0 PID: 1 at kernel/kprobes.c:1\nCall Trace:"),
            ("0", "thread 'main' panicked at", ""),
            ("hangs", "", ""),
            ("1 left", "", ""),
            ("139", "", ""),
        ] {
            assert!(judge(end, messages, log).is_broken(), "{end} {messages} {log}");
        }
    }
}
