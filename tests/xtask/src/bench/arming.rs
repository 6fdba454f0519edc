// SPDX-License-Identifier: GPL-2.0-or-later

//! What arming many probes takes, and disarming them: instructions of a guest whose clock counts them, and seconds of an
//! emulated guest with two CPUs, which depend on the machine; and how soon it ends when it is interrupted. On the generated modules (`cargo xtask family`) and on a large
//! module of the kernel.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use spile_guest::{Acceleration, Streams};

use super::cases::{Options, TOLERANCE};
use super::output::Output;
use super::scripts::{Script, compile, module_name};
use crate::family::Family;
use crate::guest;
use crate::measure;
use crate::place::Place;

const PAGE: &str = "docs/bench-arming.md";
const NS_PER_S: f64 = 1e9;
const MILLION: f64 = 1e6;

struct Case {
    name: &'static str,
    /// A file of tests/family, or the text of a script.
    script: Script,
    /// Most seconds until it is armed, in the emulated guest.
    goal: Option<f64>,
}

const CASES: [Case; 4] = [
    Case { name: "entries of 16,000 functions", script: Script::Family("functions.stp"), goal: None },
    Case { name: "2,400 inlined copies in small functions", script: Script::Family("copies.stp"), goal: None },
    Case { name: "16,000 functions and 8,000 inlined copies", script: Script::Family("calls.stp"), goal: Some(60.0) },
    Case {
        name: "inlined copies in xfs",
        script: Script::Text(
            "global n probe module(\"xfs\").function(\"xfs_inode_*\").inline { n++ } probe end { println(n) }",
        ),
        goal: None,
    },
];

/// The clock and the idle time of all CPUs, ns. What is armed is counted while it is.
const PRELUDE: &str = r#"
for child in $(seq 11 19); do modprobe fam$child; done
modprobe xfs
clock() { sed -n -e 's/^now at \([0-9]*\) nsecs/\1/p' -e 's/.*idle_sleeptime *: *\([0-9]*\) nsecs.*/\1/p' /proc/timer_list | head -n 2; }
clock >/dev/null
cat >/root/armed <<'END'
#!/bin/busybox sh
sed -n -e 's/^now at \([0-9]*\) nsecs/\1/p' -e 's/.*idle_sleeptime *: *\([0-9]*\) nsecs.*/\1/p' /proc/timer_list | head -n 2 >/root/armed_at
cat /sys/kernel/debug/kprobes/list /sys/kernel/debug/tracing/enabled_functions | wc -l >/root/places
sed -n -e 's/^now at \([0-9]*\) nsecs/\1/p' -e 's/.*idle_sleeptime *: *\([0-9]*\) nsecs.*/\1/p' /proc/timer_list | head -n 2 >/root/ending_at
END
chmod +x /root/armed
arm() {
	clock >/root/began_at
	spilerun -o /root/out -c /root/armed /root/$1.ko
	while [ -e /sys/module/$1 ]; do sleep 0.1; done
	clock >/root/ended_at
	echo "$1:" $(cat /root/places /root/began_at /root/armed_at /root/ending_at /root/ended_at)
}
"#;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Clock {
    now: f64,
    idle: f64,
}

/// What one guest says of a case.
#[derive(Debug, PartialEq)]
struct Run {
    places: f64,
    began: Clock,
    armed: Clock,
    ending: Clock,
    ended: Clock,
}

impl Run {
    /// Instructions until all is armed, millions; of a guest with one CPU.
    fn arming(&self) -> f64 {
        busy(self.began, self.armed) / MILLION
    }

    /// Until the module is gone, millions.
    fn disarming(&self) -> f64 {
        busy(self.ending, self.ended) / MILLION
    }

    fn seconds(&self) -> f64 {
        (self.armed.now - self.began.now) / NS_PER_S
    }
}

fn busy(from: Clock, to: Clock) -> f64 {
    (to.now - from.now) - (to.idle - from.idle)
}

/// What a guest has printed, by the case's module.
fn runs(output: &str) -> BTreeMap<String, Run> {
    let mut runs = BTreeMap::new();
    for line in output.lines() {
        let Some((name, numbers)) = line.split_once(": ") else { continue };
        let numbers: Vec<f64> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
        if let [places, a, a_idle, b, b_idle, c, c_idle, d, d_idle] = numbers[..] {
            let clock = |now, idle| Clock { now, idle };
            let (began, armed) = (clock(a, a_idle), clock(b, b_idle));
            let (ending, ended) = (clock(c, c_idle), clock(d, d_idle));
            runs.insert(name.to_string(), Run { places, began, armed, ending, ended });
        }
    }
    runs
}

struct Measured {
    case: &'static Case,
    counted: Run,
    seconds: f64,
}

/// Measures arming in two guests, and writes the page in docs/.
pub fn run(options: &Options) -> Result<ExitCode> {
    let place = Place::find(options.kernel.as_deref())?;
    let root = crate::root();
    crate::programs::build_programs(&root)?;
    let family = Family::build(&root, &place)?;
    let directory = tempfile::tempdir()?;
    let mut modules = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        if options.takes(case.name) {
            let name = format!("bench_{number}");
            modules.push((case, compile(&root, &place, &family, directory.path(), &case.script, &name)?));
        }
    }
    let files: Vec<&PathBuf> = modules.iter().map(|(_, file)| file).collect();
    let measured = |counting| match files.is_empty() {
        true => Ok(BTreeMap::new()),
        false => in_guest(&root, &place, &family, &files, counting),
    };
    let (mut counted, emulated) = (measured(true)?, measured(false)?);
    let before = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    let mut results = Vec::new();
    for (case, file) in &modules {
        let name = module_name(file);
        let counted = counted.remove(&name).with_context(|| format!("{} was not counted", case.name))?;
        let seconds = emulated.get(&name).with_context(|| format!("{} was not emulated", case.name))?.seconds();
        results.push(Measured { case, counted, seconds });
    }
    results.iter().for_each(|result| println!("{}", row(result, super::compiler::busy())));
    let worse: Vec<String> = results.iter().filter_map(|result| regression(result, &before)).collect();
    worse.iter().for_each(|line| println!("{line}"));
    let interrupted = match options.takes_long("interrupted") {
        true => super::interrupting::section(&root, &place, &family, directory.path())?,
        false => String::new(),
    };
    if options.writes() {
        let file = root.join(PAGE);
        let text = page(&place.kernel.release, &super::compiler::load(), super::compiler::busy(), &results)
            + &interrupted
            + kept_sections(&before);
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        println!("wrote {}", file.display());
    }
    Ok(options.outcome(!worse.is_empty()))
}

/// The sections of the page that are not written here.
fn kept_sections(page: &str) -> &str {
    page.find("\n## Where").and_then(|at| page.get(at..)).unwrap_or_default()
}

/// Arms the modules one after the other. `counting`: on one CPU whose clock counts instructions.
fn in_guest(
    root: &Path,
    place: &Place,
    family: &Family,
    modules: &[&PathBuf],
    counting: bool,
) -> Result<BTreeMap<String, Run>> {
    let mut guest = guest::equipped(root, place)?;
    guest::with_family(&mut guest, family)?;
    guest.offer_module("xfs").memory_mib(1500).time_limit(Duration::from_secs(1200) * measure::busy());
    if counting {
        guest.acceleration(Acceleration::Counting).cpus(1);
    }
    let mut script = PRELUDE.to_string();
    for module in modules {
        let name = module_name(module);
        guest.copy(module, format!("/root/{name}.ko"))?;
        script += &format!("arm {name}\n");
    }
    guest.script(&script);
    let (output, complaints) = (Output::default(), Output::default());
    let streams =
        Streams { stdout: Box::new(output.clone()), stderr: Box::new(complaints.clone()), ..Streams::discard() };
    let outcome = guest.start(streams)?.wait()?;
    let runs = runs(&output.text());
    let is_whole = runs.len() == modules.len();
    ensure!(is_whole, "{:?}\n{}\n{}", outcome.end, output.text(), complaints.text());
    Ok(runs)
}

/// `busy`: the machine is, so that a time above the goal says nothing.
fn row(result: &Measured, busy: bool) -> String {
    let Measured { case, counted, seconds } = result;
    let goal = case.goal.map_or("-".into(), |goal| {
        let verdict = match *seconds <= goal {
            true => "met",
            false if busy => "machine too busy",
            false => "not met",
        };
        format!("{goal:.0} s, {verdict}")
    });
    format!(
        "| {} | {:.0} | {:.0} | {:.2} | {:.0} | {seconds:.1} s | {goal} |",
        case.name,
        counted.places,
        counted.arming(),
        counted.arming() / counted.places.max(1.0),
        counted.disarming(),
    )
}

/// The column of the page's table that --check compares: instructions until all is armed.
const ARMING: usize = 1;

/// A figure of the page's table, by the case and the column after it; `None`: there is none.
fn cell(page: &str, case: &str, column: usize) -> Option<f64> {
    let cells = page.lines().find_map(|line| line.strip_prefix(&format!("| {case} | ")))?;
    cells.split(" | ").nth(column)?.parse().ok()
}

/// The message if a figure is worse than the page's.
fn regression(result: &Measured, page: &str) -> Option<String> {
    let (before, now) = (cell(page, result.case.name, ARMING)?, result.counted.arming());
    (now > before * TOLERANCE).then(|| {
        format!("regression: {} took {before:.0} million instructions, and takes {now:.0} now", result.case.name)
    })
}

fn page(release: &str, load: &str, busy: bool, results: &[Measured]) -> String {
    let rows: String = results.iter().map(|result| format!("{}\n", row(result, busy))).collect();
    format!(
        "# Arming many probes

Written by `cargo xtask bench arming` (kernel {release}). From the start of `spilerun` until all probes are armed, and from the end of
the session until the module is gone. Millions of instructions, all of the guest's without idle time, are those of a guest with one CPU whose
clock counts them: they do not depend on the machine. Seconds are those of an emulated guest with two CPUs, here on a machine with a load
average of {load} at the end. `cargo xtask bench arming --check` fails if the instructions are more than 5 % above the figure here.

| probes | places | instructions | for a place | disarming and unloading | until armed | goal |
|---|---|---|---|---|---|---|
{rows}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(armed: f64) -> Measured {
        let clock = |now| Clock { now, idle: 1e6 };
        let counted =
            Run { places: 100.0, began: clock(2e6), armed: clock(armed), ending: clock(0.0), ended: clock(9e6) };
        Measured { case: &CASES[2], counted, seconds: 61.0 }
    }

    #[test]
    fn idle_time_is_no_work() {
        let runs = runs("noise: 1\nbench_0: 400 1000000 5 9000000 2000005 10 20 30 25\n");
        let run = &runs["bench_0"];
        assert_eq!((run.places, run.arming(), run.seconds()), (400.0, 6.0, 0.008));
        assert_eq!(busy(run.ending, run.ended), 15.0);
    }

    #[test]
    fn regressions_and_missed_goals_are_reported() {
        let page = page("6.1", "2.5", false, &[result(102e6)]);
        assert!(
            page.contains(
                "| 16,000 functions and 8,000 inlined copies | 100 | 100 | 1.00 | 9 | 61.0 s | 60 s, not met |"
            )
        );
        assert!(row(&result(102e6), true).ends_with("| 61.0 s | 60 s, machine too busy |"));
        assert_eq!(cell(&page, CASES[2].name, ARMING), Some(100.0));
        assert_eq!(regression(&result(106e6), &page), None);
        assert!(regression(&result(108e6), &page).is_some_and(|line| line.contains("100") && line.contains("106")));
        assert_eq!(regression(&result(900e6), ""), None);
    }
}
