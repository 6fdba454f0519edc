// SPDX-License-Identifier: GPL-2.0-or-later

//! How soon a session with thousands of probes ends when it is interrupted or killed: by the clock of an emulated guest
//! with two CPUs. Part of `cargo xtask bench arming`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use spile_guest::Streams;

use super::output::Output;
use super::scripts::{Script, compile, module_name};
use crate::family::Family;
use crate::guest;
use crate::measure;
use crate::place::Place;

/// Times that a session is interrupted at a moment.
const TIMES: usize = 20;
/// Milliseconds until the process has to have ended.
const GOAL: f64 = 1000.0;

const ALL_OF_TWO: &str = "global n probe begin { println(\"began\") } \
    probe module(\"xfs\").function(\"*\").call, module(\"xfs\").function(\"*\").return, module(\"xfs\").function(\"*\").inline, \
    module(\"btrfs\").function(\"*\").call, module(\"btrfs\").function(\"*\").return, module(\"btrfs\").function(\"*\").inline \
    { n++ } probe end { println(n) }";

/// When a session gets its signal.
struct Moment {
    name: &'static str,
    script: Script,
    signal: i32,
    /// What it has printed; empty: it has begun.
    text: &'static str,
    /// Milliseconds after that.
    between: (u32, u32),
    arguments: &'static str,
}

const INTERRUPT: i32 = 2;
const KILL: i32 = 9;
/// A command that says when the probes are armed.
const WHEN_ARMED: &str = "-c 'echo armed; sleep 1000'";
const MOMENTS: [Moment; 6] = [
    moment("xfs and btrfs: loading", Script::Text(ALL_OF_TWO), INTERRUPT, "", (0, 900), ""),
    moment("xfs and btrfs: preparing", Script::Text(ALL_OF_TWO), INTERRUPT, "began", (0, 2500), ""),
    moment("xfs and btrfs: kprobes", Script::Text(ALL_OF_TWO), INTERRUPT, "become kprobes", (0, 4000), ""),
    moment("xfs and btrfs: kprobes, killed", Script::Text(ALL_OF_TWO), KILL, "become kprobes", (0, 4000), ""),
    moment("800 inlined copies: late", Script::Family("kept.stp"), INTERRUPT, "began", (2000, 3500), ""),
    moment("800 inlined copies: armed", Script::Family("kept.stp"), INTERRUPT, "armed", (0, 400), WHEN_ARMED),
];

const fn moment(
    name: &'static str,
    script: Script,
    signal: i32,
    text: &'static str,
    between: (u32, u32),
    arguments: &'static str,
) -> Moment {
    Moment { name, script, signal, text, between, arguments }
}

const PRELUDE: &str = "\
for child in $(seq 11 19); do modprobe fam$child; done
modprobe xfs
modprobe btrfs
cd /root
";

/// Milliseconds from the signal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ending {
    /// To the line that answers; `None`: there was none before the end.
    answered: Option<f64>,
    /// To the end of the process.
    ended: f64,
    /// Until the module was gone.
    gone: f64,
}

/// What `interrupt` prints for one time.
fn ending(line: &str) -> Option<Ending> {
    let numbers: Vec<f64> = line.split(' ').map_while(|number| number.parse().ok()).collect();
    match numbers[..] {
        [answered, ended, gone] => Some(Ending { answered: (answered >= 0.0).then_some(answered), ended, gone }),
        _ => None,
    }
}

/// The section of the page, its heading included. Also prints its table.
pub fn section(root: &Path, place: &Place, family: &Family, directory: &Path) -> Result<String> {
    let mut guest = guest::equipped(root, place)?;
    guest::with_family(&mut guest, family)?;
    guest.program(crate::fixtures::program(root, "interrupt")?, "/usr/bin/interrupt")?;
    guest.offer_module("xfs").offer_module("btrfs").memory_mib(2000);
    guest.time_limit(Duration::from_secs(2400) * measure::busy());
    let mut script = PRELUDE.to_string();
    let mut compiled: Vec<(&Script, PathBuf)> = Vec::new();
    for moment in &MOMENTS {
        let file = match compiled.iter().find(|(script, _)| **script == moment.script) {
            Some((_, file)) => file.clone(),
            None => {
                let name = format!("interrupted_{}", compiled.len());
                let file = compile(root, place, family, directory, &moment.script, &name)?;
                guest.copy(&file, format!("/root/{name}.ko"))?;
                compiled.push((&moment.script, file.clone()));
                file
            }
        };
        let (from, to) = moment.between;
        let (signal, name) = (moment.signal, module_name(&file));
        script += &format!("echo '= {}'\n", moment.name);
        script += &format!("interrupt {signal} {TIMES} {from} {to} '{}' {name} {}\n", moment.text, moment.arguments);
    }
    guest.script(&script);
    let (output, complaints) = (Output::default(), Output::default());
    let streams =
        Streams { stdout: Box::new(output.clone()), stderr: Box::new(complaints.clone()), ..Streams::discard() };
    let outcome = guest.start(streams)?.wait()?;
    let text = output.text();
    let mut rows = String::new();
    for moment in &MOMENTS {
        let endings = endings(&text, moment.name);
        let is_whole = endings.len() == TIMES;
        ensure!(is_whole, "{}: {:?}\n{text}\n{}", moment.name, outcome.end, complaints.text());
        writeln!(rows, "{}", row(moment.name, &endings, super::compiler::busy())?)?;
    }
    print!("{rows}");
    Ok(page(&rows, &super::compiler::load()))
}

/// What was measured at that moment.
fn endings(output: &str, name: &str) -> Vec<Ending> {
    let lines = output.lines().skip_while(|line| line.strip_prefix("= ") != Some(name)).skip(1);
    lines.map_while(ending).collect()
}

/// `busy`: the machine is, so that a time above the goal says nothing.
fn row(name: &str, endings: &[Ending], busy: bool) -> Result<String> {
    let sorted = |value: fn(&Ending) -> f64| -> Vec<f64> {
        let mut values: Vec<f64> = endings.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (ended, gone) = (sorted(|ending| ending.ended), sorted(|ending| ending.gone));
    let median = |values: &[f64]| values.get(values.len() / 2).copied().context("nothing was measured");
    let most = ended.last().copied().context("nothing was measured")?;
    let answered = endings.iter().filter(|ending| ending.answered.is_some()).count();
    let verdict = match most <= GOAL {
        true => "met",
        false if busy => "machine too busy",
        false => "not met",
    };
    Ok(format!(
        "| {name} | {:.0} ms | {most:.0} ms | {answered} of {} | {:.0} ms | 1 s, {verdict} |",
        median(&ended)?,
        endings.len(),
        median(&gone)?,
    ))
}

fn page(rows: &str, load: &str) -> String {
    format!(
        "
## Interrupted

From a signal (^C, or SIGKILL to the loader) to the end of `spilerun`, and until its module is gone, by the clock of the emulated guest
with two CPUs; {TIMES} times each, at moments spread over the phase, on a machine with a load average of {load} at the end. All functions of xfs and btrfs, at their entries, returns and inlined
copies, are 51,067 probes and 24,159 kprobes. A line answers where the end takes longer than 0.4 s. What the kernel is arming at the moment,
and the disarming, goes on in the background. `cargo xtask bench arming interrupted` measures this alone.

| moment | end, median | most | answered by a line | gone, median | goal |
|---|---|---|---|---|---|
{rows}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_up() {
        let output = "noise\n= a\n-1 300 900\n410 1200 1500\n-1 400 1000\n= b\n-1 1 2\n";
        let found = endings(output, "a");
        assert_eq!(found[1], Ending { answered: Some(410.0), ended: 1200.0, gone: 1500.0 });
        assert_eq!(
            row("a", &found, false).expect("some"),
            "| a | 400 ms | 1200 ms | 1 of 3 | 1000 ms | 1 s, not met |"
        );
        assert!(row("b", &endings(output, "b"), false).expect("one").ends_with("| 1 s, met |"));
        assert!(row("c", &endings(output, "c"), false).is_err());
    }
}
