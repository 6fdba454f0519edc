// SPDX-License-Identifier: GPL-2.0-or-later

//! The cost of a hit of a probe: guest instructions above the loop without a probe, in a guest whose clock counts them.
//!
//! The loop is busybox's dd with one byte a turn: one vfs_read() and one vfs_write() each. What a turn takes is the
//! difference between a long run and a short one, without the time that the machine was idle, so what happens once
//! falls out and what the loader does for each record is in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use spile_guest::{Acceleration, Guest, Streams};

use super::cases::{Options, TOLERANCE};
use super::output::Output;
use crate::fixtures::BARE;
use crate::place::Place;

/// Turns of the short run; the long one has as many more as [`TURNS`].
const FEW: u32 = 20_000;
const TURNS: u32 = 100_000;
const PAGE: &str = "docs/bench-runtime.md";
/// Columns of its table, after the case.
const SPILE: usize = 0;
const BPFTRACE: usize = 4;

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) script: &'static str,
    /// Hits of the probe in one turn of the loop.
    pub(super) hits: f64,
    goal: Option<f64>,
    /// The nearest equivalent for the module `bare` to arm.
    bare: Option<&'static str>,
    /// Measured before in the same way: SystemTap 5.6.
    systemtap: Option<f64>,
    bpftrace: &'static str,
}

pub(super) const CASES: [Case; 17] = [
    Case {
        name: "count",
        script: "global n probe kernel.function(\"vfs_read\") { n++ } probe end { println(n) }",
        hits: 1.0,
        goal: Some(65.0),
        bare: Some("ftrace"),
        systemtap: Some(484.0),
        bpftrace: "kprobe:vfs_read { @ = count(); }",
    },
    Case {
        // Behind the place that ftrace could call from: a breakpoint, of which the kernel makes a jump.
        name: "count, by kprobe inside",
        script: "global n probe kernel.statement(\"vfs_read@fs/read_write.c+11\") { n++ } probe end { println(n) }",
        hits: 1.0,
        goal: Some(150.0),
        bare: Some("inside"),
        systemtap: None,
        bpftrace: "kprobe:vfs_read+9 { @ = count(); }",
    },
    Case {
        // As where a jump would replace what other code jumps to.
        name: "count, by a breakpoint that stays one",
        script: "global n probe kernel.statement(\"vfs_read@fs/read_write.c+11\") { n++ } probe end { println(n) }",
        hits: 1.0,
        goal: None,
        bare: Some("inside"),
        systemtap: None,
        bpftrace: "kprobe:vfs_read+9 { @ = count(); }",
    },
    Case {
        name: "count, one of 40 probes",
        script: "global n probe kernel.function(\"vfs_read\"), kernel.function(\"vfs_f*\").call { n++ } probe end { println(n) }",
        hits: 1.0,
        goal: Some(65.0),
        bare: Some("ftrace"),
        systemtap: Some(484.0),
        bpftrace: "kprobe:vfs_read,kprobe:vfs_f* { @ = count(); }",
    },
    Case {
        // A flag that another probe may set, on any CPU.
        name: "if (on) n++",
        script: "global on = 1, n probe kernel.function(\"vfs_read\") { if (on) n++ } probe kernel.trace(\"sched_process_exit\") { if (pid() == 1) on = 0 } probe end { println(n) }",
        hits: 1.0,
        goal: None,
        bare: Some("ftrace"),
        systemtap: None,
        bpftrace: "BEGIN { @on = 1; } kprobe:vfs_read /@on/ { @ = count(); } tracepoint:sched:sched_process_exit /pid == 1/ { @on = 0; }",
    },
    Case {
        name: "s <<< $count",
        script: "global s probe kernel.function(\"vfs_read\") { s <<< $count } probe end { println(@count(s), @sum(s), @avg(s)) }",
        hits: 1.0,
        goal: Some(110.0),
        bare: Some("ftrace"),
        systemtap: Some(518.0),
        bpftrace: "kprobe:vfs_read { @ = stats(arg2); }",
    },
    Case {
        name: "a[tid()]++",
        script: "global a probe kernel.function(\"vfs_read\") { a[tid()]++ } probe end { foreach (t in a) println(a[t]) }",
        hits: 1.0,
        goal: Some(150.0),
        bare: Some("ftrace"),
        systemtap: Some(608.0),
        bpftrace: "kprobe:vfs_read { @[tid] = count(); }",
    },
    Case {
        name: "a[execname()] <<< $count",
        script: "global a probe kernel.function(\"vfs_read\") { a[execname()] <<< $count } probe end { foreach (t in a) println(@count(a[t])) }",
        hits: 1.0,
        goal: Some(200.0),
        bare: Some("ftrace"),
        systemtap: Some(698.0),
        bpftrace: "kprobe:vfs_read { @[comm] = stats(arg2); }",
    },
    Case {
        name: "return: s <<< $return",
        script: "global s probe kernel.function(\"vfs_read\").return { s <<< $return } probe end { println(@count(s), @sum(s)) }",
        hits: 1.0,
        goal: Some(430.0),
        bare: Some("return"),
        systemtap: Some(769.0),
        bpftrace: "kretprobe:vfs_read { @ = stats(retval); }",
    },
    Case {
        name: "latency, entry to return",
        script: "global s probe kernel.function(\"vfs_read\").return { s <<< gettimeofday_ns() - @entry(gettimeofday_ns()) } probe end { println(@count(s), @avg(s)) }",
        hits: 1.0,
        goal: Some(550.0),
        bare: Some("latency"),
        systemtap: Some(2506.0),
        bpftrace: "kprobe:vfs_read { @start[tid] = nsecs; } kretprobe:vfs_read /@start[tid]/ { @ = stats(nsecs - @start[tid]); delete(@start[tid]); }",
    },
    Case {
        name: "latency, start[tid()]",
        script: "global start, s probe kernel.function(\"vfs_read\") { start[tid()] = gettimeofday_ns() } probe kernel.function(\"vfs_read\").return { if (tid() in start) { s <<< gettimeofday_ns() - start[tid()]; delete start[tid()] } } probe end { println(@count(s), @avg(s)) }",
        hits: 1.0,
        goal: None,
        bare: Some("latency"),
        systemtap: None,
        bpftrace: "kprobe:vfs_read { @start[tid] = nsecs; } kretprobe:vfs_read /@start[tid]/ { @ = stats(nsecs - @start[tid]); delete(@start[tid]); }",
    },
    Case {
        name: "tracepoint sys_enter, count",
        script: "global n probe kernel.trace(\"sys_enter\") { n++ } probe end { println(n) }",
        hits: 2.0,
        goal: Some(75.0),
        bare: Some("tracepoint"),
        systemtap: Some(381.0),
        bpftrace: "tracepoint:raw_syscalls:sys_enter { @ = count(); }",
    },
    Case {
        name: "printf(\"%d %d\\n\", pid(), $count)",
        script: "probe kernel.function(\"vfs_read\") { printf(\"%d %d\\n\", pid(), $count) }",
        hits: 1.0,
        goal: Some(300.0),
        bare: None,
        systemtap: Some(5800.0),
        bpftrace: "kprobe:vfs_read { printf(\"%d %d\\n\", pid, arg2); }",
    },
    Case {
        name: "a[backtrace()]++",
        script: "global a probe kernel.function(\"vfs_read\") { a[backtrace()]++ } probe end { foreach (stack in a) println(a[stack]) }",
        hits: 1.0,
        goal: Some(2000.0),
        bare: None,
        systemtap: None,
        bpftrace: "kprobe:vfs_read { @[kstack] = count(); }",
    },
    Case {
        name: "print_backtrace()",
        script: "probe kernel.function(\"vfs_read\") { print_backtrace() }",
        hits: 1.0,
        goal: None,
        bare: None,
        systemtap: None,
        bpftrace: "kprobe:vfs_read { printf(\"%s\", kstack); }",
    },
    Case {
        name: "println($file$$)",
        script: "probe kernel.function(\"vfs_read\") { println($file$$) }",
        hits: 1.0,
        goal: None,
        bare: None,
        systemtap: None,
        bpftrace: "kprobe:vfs_read { print(*(struct file *)arg0); }",
    },
    Case {
        name: "println(symname($file->f_op->read_iter))",
        script: "probe kernel.function(\"vfs_read\") { println(symname($file->f_op->read_iter)) }",
        hits: 1.0,
        goal: None,
        bare: None,
        systemtap: None,
        bpftrace: "kprobe:vfs_read { printf(\"%s\\n\", ksym(((struct file *)arg0)->f_op->read_iter)); }",
    },
];

/// What is common to all measurements. `measure` runs while the probes are armed; it leaves what the clock said before,
/// between and after the two runs, each time with the idle time in the next line.
const PRELUDE: &str = r#"
cat >/root/measure <<'END'
#!/bin/busybox sh
clock() {
	sleep 0.3
	sed -n -e 's/^now at \([0-9]*\) nsecs/\1/p' -e 's/.*idle_sleeptime *: *\([0-9]*\) nsecs.*/\1/p' /proc/timer_list
}
turns() { dd if=/dev/zero of=/dev/null bs=1 count=$1 2>/dev/null; }
turns 1000
{ clock; turns FEW; clock; turns MANY; clock; } >/root/clock
END
chmod +x /root/measure
report_clock() { echo "$1:" $(cat /root/clock); rm -f /root/clock; }
/root/measure; report_clock loop
"#;

/// A guest that measures the cases, with bpftrace too if it is installed and asked for. Modules are made in `directory`, from
/// which the guest's start copies them.
fn guest_with(place: &Place, directory: &Path, cases: &[&Case], bpftrace: bool) -> Result<Guest> {
    let root = crate::root();
    let mut guest = Guest::new(place.kernel.clone());
    guest.acceleration(Acceleration::Counting).cpus(1).time_limit(Duration::from_secs(1500));
    guest.program(fast_loader(&root)?, "/usr/bin/spilerun")?;
    guest.copy(BARE.build(&root, place)?, "/root/bare.ko")?;
    let program = Path::new("/usr/bin/bpftrace");
    let with_bpftrace = program.is_file() && bpftrace;
    if with_bpftrace {
        guest.program(program, program)?;
    }
    let mut script = PRELUDE.replace("FEW", &FEW.to_string()).replace("MANY", &(FEW + TURNS).to_string());
    for (number, case) in cases.iter().enumerate() {
        let module = compile(place, directory, &format!("bench_{number}"), case.script)?;
        guest.copy(&module, format!("/root/bench_{number}.ko"))?;
        script += &commands(number, case, with_bpftrace);
    }
    guest.script(&script);
    Ok(guest)
}

/// Measures the cost of a hit in a guest, and writes the page in docs/.
pub fn run(options: &Options) -> Result<ExitCode> {
    let place = Place::find(options.kernel.as_deref())?;
    let root = crate::root();
    crate::programs::build_programs(&root)?;
    let cases: Vec<&Case> = CASES.iter().filter(|case| options.takes(case.name)).collect();
    let directory = tempfile::tempdir()?;
    let guest = guest_with(&place, directory.path(), &cases, !options.check)?;

    let output = Output::default();
    let complaints = Output::default();
    let streams =
        Streams { stdout: Box::new(output.clone()), stderr: Box::new(complaints.clone()), ..Streams::discard() };
    let outcome = guest.start(streams)?.wait()?;
    let figures = figures(&output.text());
    let complaints = complaints.text();
    let looped = *figures.get("loop").with_context(|| format!("{:?}\n{}\n{complaints}", outcome.end, output.text()))?;
    let before = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    let results: Vec<Measured> = cases
        .iter()
        .enumerate()
        .map(|(number, case)| {
            let measured = measured(number, case, &figures, looped);
            // If it is not installed, its figures stay.
            Measured { bpftrace: measured.bpftrace.or_else(|| cell(&before, case.name, BPFTRACE)), ..measured }
        })
        .collect();
    println!("loop without a probe: {looped:.1}");
    results.iter().for_each(|result| println!("{}", row(result)));
    if !complaints.trim().is_empty() {
        println!("messages of the guest:\n{complaints}");
    }

    let worse: Vec<String> = results.iter().filter_map(|result| regression(result, &before)).collect();
    worse.iter().for_each(|line| println!("{line}"));
    ensure!(results.iter().all(|result| result.ours.is_some()), "not every case could be measured");
    if options.writes() {
        let file = root.join(PAGE);
        let page = page(&place.kernel.release, looped, &results) + sections(&before);
        std::fs::write(&file, page).with_context(|| format!("writing {}", file.display()))?;
        println!("wrote {}", file.display());
    }
    Ok(options.outcome(!worse.is_empty()))
}

/// The loader's share of a printf is part of its cost, so it is measured as it ships.
pub(super) fn fast_loader(root: &Path) -> Result<PathBuf> {
    let status = Command::new(crate::programs::cargo())
        .args(["build", "--quiet", "--release", "--package", "spilerun"])
        .current_dir(root)
        .status()
        .context("running cargo build")?;
    ensure!(status.success(), "spilerun does not build");
    Ok(root.join("target/release/spilerun"))
}

pub(super) fn compile(place: &Place, directory: &Path, name: &str, script: &str) -> Result<PathBuf> {
    let mut command = Command::new(place.spile()?);
    command.args(["-r", &place.kernel.release, "-g", "-p4", "-m", name, "-e", script]);
    let output = command.current_dir(directory).stdin(Stdio::null()).output().context("running spile")?;
    ensure!(output.status.success(), "spile failed on {script}:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(directory.join(format!("{name}.ko")))
}

/// The guest's part of a case: ours, the bare handler, bpftrace.
fn commands(number: usize, case: &Case, with_bpftrace: bool) -> String {
    let mut text = format!(
        "spilerun -o /root/out -c /root/measure /root/bench_{number}.ko && report_clock spile_{number}; rm -f /root/out\n"
    );
    if let Some(what) = case.bare {
        text +=
            &format!("insmod /root/bare.ko what={what} && /root/measure && report_clock bare_{number}; rmmod bare\n");
    }
    if with_bpftrace {
        text += &format!(
            "bpftrace -o /root/out -e '{}' -c '/bin/busybox sh /root/measure' && report_clock bpftrace_{number}; rm -f /root/out\n",
            case.bpftrace
        );
    }
    // Otherwise the kernel makes jumps of breakpoints.
    if case.name.ends_with("that stays one") {
        const SWITCH: &str = "/proc/sys/debug/kprobes-optimization";
        text = format!("echo 0 >{SWITCH}\n{text}echo 1 >{SWITCH}\n");
    }
    text
}

/// Instructions of one turn, by the name of the armed script.
fn figures(output: &str) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    for line in output.lines() {
        let Some((name, numbers)) = line.split_once(": ") else { continue };
        let numbers: Vec<f64> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
        // Three times the clock and the idle time.
        if let [a, a_idle, b, b_idle, c, c_idle] = numbers[..] {
            let (short, long) = ((b - b_idle) - (a - a_idle), (c - c_idle) - (b - b_idle));
            figures.insert(name.to_string(), (long - short) / f64::from(TURNS));
        }
    }
    figures
}

struct Measured {
    case: &'static Case,
    ours: Option<f64>,
    bare: Option<f64>,
    bpftrace: Option<f64>,
}

fn measured(number: usize, case: &'static Case, figures: &BTreeMap<String, f64>, looped: f64) -> Measured {
    let above = |what: &str| figures.get(&format!("{what}_{number}")).map(|figure| (figure - looped) / case.hits);
    Measured { case, ours: above("spile"), bare: above("bare"), bpftrace: above("bpftrace") }
}

fn row(result: &Measured) -> String {
    let number = |figure: Option<f64>| figure.map_or("-".into(), |figure| format!("{figure:.0}"));
    let case = result.case;
    format!(
        "| `{}` | {} | {} | {} | {} | {} |",
        case.name,
        number(result.ours),
        number(case.goal),
        number(result.bare),
        number(case.systemtap),
        number(result.bpftrace)
    )
}

/// A figure of the page's table, by the case and the column after it; None: there is none.
fn cell(page: &str, case: &str, column: usize) -> Option<f64> {
    let start = format!("| `{case}` | ");
    let cells = page.lines().find_map(|line| line.strip_prefix(&start))?;
    cells.split(" | ").nth(column)?.trim_end_matches(" |").parse().ok()
}

/// What the case takes, by the page.
pub(super) fn spile(page: &str, case: &Case) -> Option<f64> {
    cell(page, case.name, SPILE)
}

/// The message if a figure is worse than the page's.
fn regression(result: &Measured, page: &str) -> Option<String> {
    let before = cell(page, result.case.name, SPILE)?;
    let now = result.ours?;
    (now > before * TOLERANCE)
        .then(|| format!("regression: {} took {before:.0}, and takes {now:.0} now", result.case.name))
}

fn page(release: &str, looped: f64, results: &[Measured]) -> String {
    let rows: String = results.iter().map(|result| format!("{}\n", row(result))).collect();
    format!(
        "# Cost of a probe hit

Written by `cargo xtask bench runtime` (kernel {release}). Guest instructions per hit, beyond the {looped:.0} of
a loop without a probe. The loop is `dd bs=1`, which calls `vfs_read()`, the probed function, once per turn. The guest's clock counts instructions
(`qemu -icount`), so the figures do not depend on the machine. They include the loader's work to write a line. \"bare\" is
a handler in C that only counts, attached in the same way: a lower bound. `cargo xtask bench runtime --check`
fails if spile is more than 5 % above its figure here.

| one hit | spile | goal | bare | SystemTap 5.6 | bpftrace |
|---|---|---|---|---|---|
{rows}
SystemTap's figures were measured earlier in the same way; Debian's SystemTap 4.8 builds no module for Debian's kernel 6.1.
bpftrace is Debian's.
"
    )
}

/// The page's text after the table, from its first section on: written by hand, and preserved.
pub(super) fn sections(page: &str) -> &str {
    page.find("\n## ").and_then(|at| page.get(at..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_the_difference_of_two_runs_without_idle_time() {
        // A start of 500 in both, 20,000 turns of 2 and 120,000 of 2; 7 and 9 idle.
        let output = "loop: 1000 0 41507 7 282016 16\nspile_1: 1 2\nnoise\n";
        assert_eq!(figures(output), BTreeMap::from([("loop".to_string(), 2.0)]));
    }

    #[test]
    fn sections_outlive_the_table() {
        assert_eq!(sections("# Title\n| a |\n\n## Arming\ntext\n## More\n"), "\n## Arming\ntext\n## More\n");
        assert_eq!(sections("# Title\n"), "");
    }

    #[test]
    fn regressions_are_reported() {
        let result = |ours| Measured { case: &CASES[0], ours, bare: None, bpftrace: None };
        let page = page("6.1", 1434.8, &[result(Some(200.0))]);
        assert_eq!(regression(&result(Some(209.0)), &page), None);
        assert!(
            regression(&result(Some(211.0)), &page).is_some_and(|line| line.contains("200") && line.contains("211"))
        );
        assert_eq!(regression(&result(Some(300.0)), ""), None);
    }

    #[test]
    fn figures_of_the_page_are_found() {
        let result = Measured { case: &CASES[0], ours: Some(60.0), bare: None, bpftrace: Some(446.0) };
        let page = page("6.1", 1434.8, &[result]);
        assert_eq!(cell(&page, "count", SPILE), Some(60.0));
        assert_eq!(cell(&page, "count", BPFTRACE), Some(446.0));
        assert_eq!(cell(&page, "count", 2), None);
        assert_eq!(cell(&page, "absent", SPILE), None);
    }
}
