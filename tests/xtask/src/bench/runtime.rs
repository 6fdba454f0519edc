// SPDX-License-Identifier: GPL-2.0-or-later

//! The cost of a hit of a probe: guest instructions above the loop without a probe, in a guest whose clock counts them.
//!
//! The loop is busybox's dd with one byte a turn, one vfs_read() and one vfs_write() each, or what tests/fixtures/hits
//! does. What a turn takes is the difference between a long run and a short one, without the time that the machine was
//! idle, so what happens once falls out and what the loader does for each record is in. The time that the kernel has
//! counted for the loader's threads says how much that is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use spile_guest::{Acceleration, End, Guest, Streams};

use super::cases::{Options, TOLERANCE};
use super::output::Output;
use crate::fixtures::{BARE, PTLRPC};
use crate::place::Place;
use crate::user_programs;

const PAGE: &str = "docs/bench-runtime.md";
/// Columns of its table, after the case.
const SPILE: usize = 0;
const BPFTRACE: usize = 5;

/// What is done once a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loop {
    /// One vfs_read(), one vfs_write().
    Read,
    /// hit() in a program, ten frames deep.
    Call,
    /// getpgid() of a program, ten frames deep.
    Getpgid,
    /// ldlm_resource_held() in a module.
    Resource,
    /// ptlrpc_bottom() in a module, below about 15 frames and 15 or 85 of ptlrpc_down().
    Frames30,
    Frames100,
}

impl Loop {
    /// What is run for $1 turns.
    pub(super) fn command(self) -> String {
        const PARAMETERS: &str = "/sys/module/ptlrpc/parameters";
        match self {
            Loop::Read => "dd if=/dev/zero of=/dev/null bs=1 count=$1 2>/dev/null".into(),
            Loop::Call => "HITS call $1".into(),
            Loop::Getpgid => "HITS pgid $1".into(),
            Loop::Resource => format!("HITS write $1 {PARAMETERS}/held 1"),
            Loop::Frames30 => format!("HITS write $1 {PARAMETERS}/depth 17"),
            Loop::Frames100 => format!("HITS write $1 {PARAMETERS}/depth 87"),
        }
    }

    /// The kernel's function that runs once a turn; in a program's loop, if its function is probed.
    pub(super) fn begins(self) -> &'static str {
        match self {
            Loop::Read => "vfs_read",
            // Not uprobe_pre_sstep_notifier(), which runs at the return, too.
            Loop::Call => "uprobe_post_sstep_notifier",
            Loop::Getpgid => "__x64_sys_getpgid",
            Loop::Resource => "ldlm_resource_held",
            Loop::Frames30 | Loop::Frames100 => "ptlrpc_bottom",
        }
    }

    /// As a word in what the guest prints.
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) script: &'static str,
    /// Hits of the probe in one turn of the loop.
    pub(super) hits: f64,
    pub(super) turn: Loop,
    /// Turns of the long run beyond those of the short one, which has a fifth as many.
    turns: u32,
    goal: Option<f64>,
    /// The loader is stopped meanwhile: what it does for the records is not measured, nor how often it is woken.
    alone: bool,
    /// The nearest equivalent for the module `bare` to arm.
    bare: Option<&'static str>,
    /// Measured before in the same way: SystemTap 5.6.
    systemtap: Option<f64>,
    bpftrace: &'static str,
}

/// What most cases have in common.
const USUAL: Case = Case {
    name: "",
    script: "",
    hits: 1.0,
    turn: Loop::Read,
    turns: 100_000,
    goal: None,
    alone: false,
    bare: None,
    systemtap: None,
    bpftrace: "",
};

impl Case {
    /// Whether [`super::parts`] can log it: most of what runs must be hits, not the loader.
    pub(super) fn has_parts(&self) -> bool {
        match self.turn {
            Loop::Read | Loop::Getpgid => self.turns == USUAL.turns,
            Loop::Call => true,
            Loop::Resource | Loop::Frames30 | Loop::Frames100 => false,
        }
    }

    fn few(&self) -> u32 {
        self.turns / 5
    }
}

pub(super) const CASES: [Case; 33] = [
    Case {
        name: "count",
        script: "global n probe kernel.function(\"vfs_read\") { n++ } probe end { println(n) }",
        goal: Some(65.0),
        bare: Some("ftrace"),
        systemtap: Some(484.0),
        bpftrace: "kprobe:vfs_read { @ = count(); }",
        ..USUAL
    },
    Case {
        // Behind the place that ftrace could call from: a breakpoint, of which the kernel makes a jump.
        name: "count, by kprobe inside",
        script: "global n probe kernel.statement(\"vfs_read@fs/read_write.c+11\") { n++ } probe end { println(n) }",
        goal: Some(150.0),
        bare: Some("inside"),
        bpftrace: "kprobe:vfs_read+9 { @ = count(); }",
        ..USUAL
    },
    Case {
        // As where a jump would replace what other code jumps to.
        name: "count, by a breakpoint that stays one",
        script: "global n probe kernel.statement(\"vfs_read@fs/read_write.c+11\") { n++ } probe end { println(n) }",
        bare: Some("inside"),
        bpftrace: "kprobe:vfs_read+9 { @ = count(); }",
        ..USUAL
    },
    Case {
        name: "count, one of 40 probes",
        script: "global n probe kernel.function(\"vfs_read\"), kernel.function(\"vfs_f*\").call { n++ } probe end { println(n) }",
        goal: Some(65.0),
        bare: Some("ftrace"),
        systemtap: Some(484.0),
        bpftrace: "kprobe:vfs_read,kprobe:vfs_f* { @ = count(); }",
        ..USUAL
    },
    Case {
        // A flag that another probe may set, on any CPU.
        name: "if (on) n++",
        script: "global on = 1, n probe kernel.function(\"vfs_read\") { if (on) n++ } probe kernel.trace(\"sched_process_exit\") { if (pid() == 1) on = 0 } probe end { println(n) }",
        bare: Some("ftrace"),
        bpftrace: "BEGIN { @on = 1; } kprobe:vfs_read /@on/ { @ = count(); } tracepoint:sched:sched_process_exit /pid == 1/ { @on = 0; }",
        ..USUAL
    },
    Case {
        name: "s <<< $count",
        script: "global s probe kernel.function(\"vfs_read\") { s <<< $count } probe end { println(@count(s), @sum(s), @avg(s)) }",
        goal: Some(110.0),
        bare: Some("ftrace"),
        systemtap: Some(518.0),
        bpftrace: "kprobe:vfs_read { @ = stats(arg2); }",
        ..USUAL
    },
    Case {
        name: "a[tid()]++",
        script: "global a probe kernel.function(\"vfs_read\") { a[tid()]++ } probe end { foreach (t in a) println(a[t]) }",
        goal: Some(150.0),
        bare: Some("ftrace"),
        systemtap: Some(608.0),
        bpftrace: "kprobe:vfs_read { @[tid] = count(); }",
        ..USUAL
    },
    Case {
        name: "a[execname()] <<< $count",
        script: "global a probe kernel.function(\"vfs_read\") { a[execname()] <<< $count } probe end { foreach (t in a) println(@count(a[t])) }",
        goal: Some(200.0),
        bare: Some("ftrace"),
        systemtap: Some(698.0),
        bpftrace: "kprobe:vfs_read { @[comm] = stats(arg2); }",
        ..USUAL
    },
    Case {
        name: "return: s <<< $return",
        script: "global s probe kernel.function(\"vfs_read\").return { s <<< $return } probe end { println(@count(s), @sum(s)) }",
        goal: Some(430.0),
        bare: Some("return"),
        systemtap: Some(769.0),
        bpftrace: "kretprobe:vfs_read { @ = stats(retval); }",
        ..USUAL
    },
    Case {
        name: "latency, entry to return",
        script: "global s probe kernel.function(\"vfs_read\").return { s <<< gettimeofday_ns() - @entry(gettimeofday_ns()) } probe end { println(@count(s), @avg(s)) }",
        goal: Some(550.0),
        bare: Some("latency"),
        systemtap: Some(2506.0),
        bpftrace: "kprobe:vfs_read { @start[tid] = nsecs; } kretprobe:vfs_read /@start[tid]/ { @ = stats(nsecs - @start[tid]); delete(@start[tid]); }",
        ..USUAL
    },
    Case {
        name: "latency, start[tid()]",
        script: "global start, s probe kernel.function(\"vfs_read\") { start[tid()] = gettimeofday_ns() } probe kernel.function(\"vfs_read\").return { if (tid() in start) { s <<< gettimeofday_ns() - start[tid()]; delete start[tid()] } } probe end { println(@count(s), @avg(s)) }",
        bare: Some("latency"),
        bpftrace: "kprobe:vfs_read { @start[tid] = nsecs; } kretprobe:vfs_read /@start[tid]/ { @ = stats(nsecs - @start[tid]); delete(@start[tid]); }",
        ..USUAL
    },
    Case {
        name: "tracepoint sys_enter, count",
        script: "global n probe kernel.trace(\"sys_enter\") { n++ } probe end { println(n) }",
        hits: 2.0,
        goal: Some(75.0),
        bare: Some("tracepoint"),
        systemtap: Some(381.0),
        bpftrace: "tracepoint:raw_syscalls:sys_enter { @ = count(); }",
        ..USUAL
    },
    Case {
        name: "printf(\"%d %d\\n\", pid(), $count)",
        script: "probe kernel.function(\"vfs_read\") { printf(\"%d %d\\n\", pid(), $count) }",
        goal: Some(300.0),
        systemtap: Some(5800.0),
        bpftrace: "kprobe:vfs_read { printf(\"%d %d\\n\", pid, arg2); }",
        ..USUAL
    },
    Case {
        name: "a[backtrace()]++",
        script: "global a probe kernel.function(\"vfs_read\") { a[backtrace()]++ } probe end { foreach (stack in a) println(a[stack]) }",
        goal: Some(2000.0),
        bpftrace: "kprobe:vfs_read { @[kstack] = count(); }",
        ..USUAL
    },
    Case {
        name: "print_backtrace()",
        script: "probe kernel.function(\"vfs_read\") { print_backtrace() }",
        bpftrace: "kprobe:vfs_read { printf(\"%s\", kstack); }",
        ..USUAL
    },
    Case {
        name: "println($file$$)",
        script: "probe kernel.function(\"vfs_read\") { println($file$$) }",
        bpftrace: "kprobe:vfs_read { print(*(struct file *)arg0); }",
        ..USUAL
    },
    Case {
        name: "println(symname($file->f_op->read_iter))",
        script: "probe kernel.function(\"vfs_read\") { println(symname($file->f_op->read_iter)) }",
        bpftrace: "kprobe:vfs_read { printf(\"%s\\n\", ksym(((struct file *)arg0)->f_op->read_iter)); }",
        ..USUAL
    },
    Case { name: "println($file$)", script: "probe kernel.function(\"vfs_read\") { println($file$) }", ..USUAL },
    Case {
        name: "println($file->f_inode$$)",
        script: "probe kernel.function(\"vfs_read\") { println($file->f_inode$$) }",
        turns: 20_000,
        ..USUAL
    },
    Case {
        // Some 50 members: nested structs, arrays, bit-fields, texts and pointers to them.
        name: "print($res$$) of ldlm_resource, hit alone",
        script: "probe module(\"ptlrpc\").function(\"ldlm_resource_held\") { print($res$$) }",
        turn: Loop::Resource,
        turns: 20_000,
        goal: Some(1200.0),
        alone: true,
        ..USUAL
    },
    Case {
        // Not where the loader reads: each of its reads would have it read again.
        name: "getpgid(), print(@cast(task_current(), \"task_struct\")$$), hit alone",
        script: "probe kernel.function(\"__x64_sys_getpgid\") { print(@cast(task_current(), \"task_struct\")$$) }",
        turn: Loop::Getpgid,
        turns: 500,
        goal: Some(6000.0),
        alone: true,
        ..USUAL
    },
    Case {
        name: "a[backtrace()]++, 30 frames",
        script: "global a probe module(\"ptlrpc\").function(\"ptlrpc_bottom\") { a[backtrace()]++ } probe end { foreach (stack in a) println(a[stack]) }",
        turn: Loop::Frames30,
        turns: 20_000,
        bpftrace: "kprobe:ptlrpc_bottom { @[kstack] = count(); }",
        ..USUAL
    },
    Case {
        name: "a[backtrace()]++, 100 frames",
        script: "global a probe module(\"ptlrpc\").function(\"ptlrpc_bottom\") { a[backtrace()]++ } probe end { foreach (stack in a) println(a[stack]) }",
        turn: Loop::Frames100,
        turns: 20_000,
        bpftrace: "kprobe:ptlrpc_bottom { @[kstack] = count(); }",
        ..USUAL
    },
    Case {
        name: "getpgid(), count",
        script: "global n probe kernel.function(\"__x64_sys_getpgid\") { n++ } probe end { println(n) }",
        turn: Loop::Getpgid,
        bpftrace: "kprobe:__x64_sys_getpgid { @ = count(); }",
        ..USUAL
    },
    Case {
        name: "getpgid(), ustack(9)",
        script: "global n probe kernel.function(\"__x64_sys_getpgid\") { n += ustack(9) & 1 } probe end { println(n) }",
        turn: Loop::Getpgid,
        ..USUAL
    },
    Case {
        name: "getpgid(), a[ubacktrace()]++",
        script: "global a probe kernel.function(\"__x64_sys_getpgid\") { a[ubacktrace()]++ } probe end { foreach (stack in a) println(a[stack]) }",
        turn: Loop::Getpgid,
        goal: Some(2600.0),
        bpftrace: "kprobe:__x64_sys_getpgid { @[ustack] = count(); }",
        ..USUAL
    },
    Case {
        name: "getpgid(), a[backtrace(), ubacktrace()]++",
        script: "global a probe kernel.function(\"__x64_sys_getpgid\") { a[backtrace(), ubacktrace()]++ } probe end { foreach ([stack, user] in a) println(a[stack, user]) }",
        turn: Loop::Getpgid,
        bpftrace: "kprobe:__x64_sys_getpgid { @[kstack, ustack] = count(); }",
        ..USUAL
    },
    Case {
        name: "getpgid(), print_ubacktrace()",
        script: "probe kernel.function(\"__x64_sys_getpgid\") { print_ubacktrace() }",
        turn: Loop::Getpgid,
        turns: 20_000,
        bpftrace: "kprobe:__x64_sys_getpgid { printf(\"%s\", ustack); }",
        ..USUAL
    },
    Case {
        name: "process, count",
        script: "global n probe process(\"HITS\").function(\"hit\") { n++ } probe end { println(n) }",
        turn: Loop::Call,
        turns: 20_000,
        goal: Some(1850.0),
        bare: Some("uprobe"),
        bpftrace: "uprobe:HITS:hit { @ = count(); }",
        ..USUAL
    },
    Case {
        name: "process, return: s <<< $return",
        script: "global s probe process(\"HITS\").function(\"hit\").return { s <<< $return } probe end { println(@count(s), @sum(s)) }",
        turn: Loop::Call,
        turns: 20_000,
        goal: Some(3300.0),
        bare: Some("uretprobe"),
        bpftrace: "uretprobe:HITS:hit { @ = sum(retval); }",
        ..USUAL
    },
    Case {
        // A value is kept from the function's entry to its return.
        name: "process, latency, entry to return",
        script: "global s probe process(\"HITS\").function(\"hit\").return { s <<< gettimeofday_ns() - @entry(gettimeofday_ns()) } probe end { println(@count(s), @avg(s)) }",
        turn: Loop::Call,
        turns: 20_000,
        bare: Some("uretprobe"),
        bpftrace: "uprobe:HITS:hit { @start[tid] = nsecs; } uretprobe:HITS:hit /@start[tid]/ { @ = stats(nsecs - @start[tid]); delete(@start[tid]); }",
        ..USUAL
    },
    Case {
        name: "process, printf(\"%d %s\\n\", $number, user_string($text))",
        script: "probe process(\"HITS\").function(\"hit\") { printf(\"%d %s\\n\", $number, user_string($text)) }",
        turn: Loop::Call,
        turns: 20_000,
        goal: Some(2400.0),
        bare: Some("uprobe"),
        bpftrace: "uprobe:HITS:hit { printf(\"%d %s\\n\", arg0, str(arg1)); }",
        ..USUAL
    },
    Case {
        name: "process, a[ubacktrace()]++",
        script: "global a probe process(\"HITS\").function(\"hit\") { a[ubacktrace()]++ } probe end { foreach (stack in a) println(a[stack]) }",
        turn: Loop::Call,
        turns: 20_000,
        goal: Some(4350.0),
        bare: Some("uprobe"),
        bpftrace: "uprobe:HITS:hit { @[ustack] = count(); }",
        ..USUAL
    },
];

/// What is common to all measurements. `measure LOOP FEW MANY [alone]` runs while the probes are armed; it leaves what the clock
/// said before, between and after the two runs, each time with the idle time and the loader's.
const PRELUDE: &str = r#"
cat >/root/measure <<'END'
#!/bin/busybox sh
loader_time() {
	total=0
	for thread in /proc/${loader%% *}/task/*/schedstat; do
		[ ! -e $thread ] || { read ran rest <$thread; total=$((total + ran)); }
	done
}
# Waits until the loader has written everything.
clock() {
	loader=$(pidof spilerun) total=0 before=0 tries=0
	[ -z "$loader" ] || loader_time
	sleep 0.3
	while [ -n "$loader" ] && [ $tries -lt 100 ]; do
		before=$total tries=$((tries + 1))
		loader_time
		[ $((total - before)) -gt 10000000 ] || break
		sleep 0.3
	done
	sed -n -e 's/^now at \([0-9]*\) nsecs/\1/p' -e 's/.*idle_sleeptime *: *\([0-9]*\) nsecs.*/\1/p' /proc/timer_list
	echo $total
}
turns() {
	case $kind in
KINDS
	esac
}
kind=$1
turns $2
[ "$4" != alone ] || kill -STOP $(pidof spilerun)
{ clock; turns $2; clock; turns $3; clock; } >/root/clock
[ "$4" != alone ] || kill -CONT $(pidof spilerun)
END
chmod +x /root/measure
report_clock() { echo "$1:" $(cat /root/clock); rm -f /root/clock; }
"#;

/// Turns of the loops without a probe.
const LOOP_TURNS: (u32, u32) = (20_000, 120_000);

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
    let program = user_programs::build(&root)?.join(user_programs::HITS);
    guest.program(&program, &program)?;
    let fixture = PTLRPC.build(&root, place)?;
    guest.copy(&fixture, "/root/ptlrpc.ko")?;
    let loops: BTreeSet<Loop> = cases.iter().map(|case| case.turn).collect();
    let kinds: String = loops.iter().map(|kind| format!("\t{}) {};;\n", kind.name(), kind.command())).collect();
    let mut script = PRELUDE.replace("KINDS\n", &kinds);
    script += "insmod /root/ptlrpc.ko\n";
    let (few, many) = LOOP_TURNS;
    for name in loops.iter().map(|kind| kind.name()) {
        script += &format!("/root/measure {name} {few} {many}; report_clock loop_{name}\n");
    }
    let offset = symbol_offset(&program, "hit")?;
    for (number, case) in cases.iter().enumerate() {
        let module = compile(place, directory, &format!("bench_{number}"), case.script)?;
        guest.copy(&module, format!("/root/bench_{number}.ko"))?;
        script += &commands(number, case, offset, with_bpftrace);
    }
    let script = script.replace("HITS", &program.display().to_string());
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
    let guest = guest_with(&place, directory.path(), &cases, !options.check && !options.keep_bpftrace)?;

    let output = Output::default();
    let complaints = Output::default();
    let streams =
        Streams { stdout: Box::new(output.clone()), stderr: Box::new(complaints.clone()), ..Streams::discard() };
    let outcome = guest.start(streams)?.wait()?;
    let figures = figures(&output.text());
    let complaints = complaints.text();
    if figures.is_empty() || outcome.end != End::Exited(0) {
        println!("{:?}\n{}", outcome.end, output.text());
    }
    let before = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    let results: Vec<Measured> = cases
        .iter()
        .enumerate()
        .map(|(number, case)| {
            let measured = measured(number, case, &figures);
            // If it is not installed, its figures stay.
            Measured { bpftrace: measured.bpftrace.or_else(|| cell(&before, case.name, BPFTRACE)), ..measured }
        })
        .collect();
    let loops: BTreeMap<Loop, f64> =
        cases.iter().filter_map(|case| Some((case.turn, turn_of(case.turn, &figures)?))).collect();
    loops.iter().for_each(|(kind, turn)| println!("loop without a probe, {}: {turn:.1}", kind.name()));
    results.iter().for_each(|result| println!("{}", row(result)));
    if !complaints.trim().is_empty() {
        println!("messages of the guest:\n{complaints}");
    }

    let worse: Vec<String> = results.iter().filter_map(|result| regression(result, &before)).collect();
    worse.iter().for_each(|line| println!("{line}"));
    let missing: Vec<&str> =
        results.iter().filter(|result| result.ours.is_none()).map(|result| result.case.name).collect();
    ensure!(missing.is_empty(), "not measured: {}", missing.join(", "));
    if options.writes() {
        let file = root.join(PAGE);
        let looped = loops.get(&Loop::Read).copied().unwrap_or_default();
        let page = page(&place.kernel.release, looped, &results) + sections(&before);
        std::fs::write(&file, page).with_context(|| format!("writing {}", file.display()))?;
        println!("wrote {}", file.display());
    }
    Ok(options.outcome(!worse.is_empty()))
}

/// Where a function is in a program's file: in code, offsets are addresses.
fn symbol_offset(program: &Path, name: &str) -> Result<u64> {
    let output = Command::new("nm").arg(program).output().context("running nm")?;
    let symbols = String::from_utf8_lossy(&output.stdout);
    let line = symbols.lines().find(|line| line.ends_with(&format!(" T {name}")));
    let address = line.and_then(|line| line.split(' ').next()).context("no such symbol")?;
    Ok(u64::from_str_radix(address, 16)?)
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
    let root = crate::root();
    let program = user_programs::directory(&root).join(user_programs::HITS);
    let script = &script.replace("HITS", &program.display().to_string());
    let mut command = Command::new(place.spile()?);
    command.args(["-r", &place.kernel.release, "-g", "-p4", "-m", name, "-e", script]);
    // A stack of 100 frames in a row takes more than a session may.
    if script.contains("ptlrpc_bottom") {
        command.args(["-DSTP_NO_OVERLOAD", "-DMAXACTION=100000"]);
    }
    if script.contains("ptlrpc") {
        command.arg("-d").arg(PTLRPC.build(&root, place)?);
    }
    let output = command.current_dir(directory).stdin(Stdio::null()).output().context("running spile")?;
    ensure!(output.status.success(), "spile failed on {script}:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(directory.join(format!("{name}.ko")))
}

/// The guest's part of a case: ours, the bare handler, bpftrace. `offset`: of hit() in its program.
fn commands(number: usize, case: &Case, offset: u64, with_bpftrace: bool) -> String {
    let measure = format!("/root/measure {} {} {}", case.turn.name(), case.few(), case.few() + case.turns);
    let alone = if case.alone { " alone" } else { "" };
    let mut text = format!(
        "spilerun -s 64 -o /root/out -c '{measure}{alone}' /root/bench_{number}.ko && report_clock spile_{number}; rm -f /root/out\n"
    );
    if let Some(what) = case.bare {
        text += &format!(
            "insmod /root/bare.ko what={what} program=HITS offset={offset} && {measure} && report_clock bare_{number}; rmmod bare\n"
        );
    }
    if with_bpftrace && !case.bpftrace.is_empty() {
        text += &format!(
            "bpftrace -o /root/out -e '{}' -c '/bin/busybox sh {measure}' && report_clock bpftrace_{number}; rm -f /root/out\n",
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

/// Instructions of the long run beyond those of the short one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figure {
    all: f64,
    loader: f64,
}

/// By the name of the armed script, or of the loop.
fn figures(output: &str) -> BTreeMap<String, Figure> {
    let mut figures = BTreeMap::new();
    for line in output.lines() {
        let Some((name, numbers)) = line.split_once(": ") else { continue };
        let numbers: Vec<f64> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
        // Three times the clock, the idle time and the loader's.
        if let [a, a_idle, a_loader, b, b_idle, b_loader, c, c_idle, c_loader] = numbers[..] {
            let (short, long) = ((b - b_idle) - (a - a_idle), (c - c_idle) - (b - b_idle));
            let loader = (c_loader - b_loader) - (b_loader - a_loader);
            figures.insert(name.to_string(), Figure { all: long - short, loader });
        }
    }
    figures
}

/// Instructions of a turn of a loop without a probe.
fn turn_of(kind: Loop, figures: &BTreeMap<String, Figure>) -> Option<f64> {
    let (few, many) = LOOP_TURNS;
    figures.get(&format!("loop_{}", kind.name())).map(|figure| figure.all / f64::from(many - few))
}

struct Measured {
    case: &'static Case,
    ours: Option<f64>,
    /// What of it is the loader's.
    loader: Option<f64>,
    bare: Option<f64>,
    bpftrace: Option<f64>,
}

fn measured(number: usize, case: &'static Case, figures: &BTreeMap<String, Figure>) -> Measured {
    let turns = f64::from(case.turns);
    let looped = turn_of(case.turn, figures);
    let of = |what: &str| figures.get(&format!("{what}_{number}"));
    let above = |what: &str| Some((of(what)?.all / turns - looped?) / case.hits);
    let loader = of("spile").map(|figure| figure.loader / turns / case.hits);
    Measured { case, ours: above("spile"), loader, bare: above("bare"), bpftrace: above("bpftrace") }
}

fn row(result: &Measured) -> String {
    let number = |figure: Option<f64>| match figure {
        Some(figure) if figure.round() != 0.0 => format!("{figure:.0}"),
        _ => "-".into(),
    };
    let case = result.case;
    format!(
        "| `{}` | {} | {} | {} | {} | {} | {} |",
        case.name,
        number(result.ours),
        number(result.loader.filter(|loader| *loader >= 0.5)),
        number(case.goal),
        number(result.bare),
        number(case.systemtap),
        number(result.bpftrace)
    )
}

/// A figure of the page's first table, by the case and the column after it; None: there is none.
fn cell(page: &str, case: &str, column: usize) -> Option<f64> {
    let start = format!("| `{case}` | ");
    let (page, _) = page.split_once("\n## ").unwrap_or((page, ""));
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
(`qemu -icount`), so the figures do not depend on the machine. They include the loader's work to write a line; \"loader\" is what
the kernel counts for its threads (rows that end in \"hit alone\": it was stopped meanwhile). \"bare\" is a handler in C that only counts, attached in the same way: a lower bound.
`cargo xtask bench runtime --check` fails if spile is more than 5 % above its figure here.

Rows that begin with \"getpgid()\" or \"process\" are above a program of ten frames without frame pointers that calls getpgid(), or a
function of its own, once per turn (`tests/fixtures/hits`). The structure ldlm_resource has some 50 members, numbers, texts, arrays and
bit-fields; it and the stacks of 30 and of 100 frames are a module's (`tests/fixtures/ptlrpc`).

| one hit | spile | loader | goal | bare | SystemTap 5.6 | bpftrace |
|---|---|---|---|---|---|---|
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

    const NOTHING: Measured = Measured { case: &CASES[0], ours: None, loader: None, bare: None, bpftrace: None };

    #[test]
    fn a_turn_is_the_difference_of_two_runs_without_idle_time() {
        // A start of 500 in both, 20,000 turns of 2 and 120,000 of 2; 7 and 9 idle. The loader took 5 and 9.
        let output = "loop_read: 1000 0 1 41507 7 6 282016 16 15\nspile_1: 1 2\nnoise\n";
        let figures = figures(output);
        assert_eq!(figures, BTreeMap::from([("loop_read".to_string(), Figure { all: 200_000.0, loader: 4.0 })]));
        assert_eq!(turn_of(Loop::Read, &figures), Some(2.0));
        assert_eq!(turn_of(Loop::Call, &figures), None);
    }

    #[test]
    fn sections_outlive_the_table() {
        assert_eq!(sections("# Title\n| a |\n\n## Arming\ntext\n## More\n"), "\n## Arming\ntext\n## More\n");
        assert_eq!(sections("# Title\n"), "");
    }

    #[test]
    fn regressions_are_reported() {
        let result = |ours| Measured { ours, ..NOTHING };
        let page = page("6.1", 1434.8, &[result(Some(200.0))]);
        assert_eq!(regression(&result(Some(209.0)), &page), None);
        assert!(
            regression(&result(Some(211.0)), &page).is_some_and(|line| line.contains("200") && line.contains("211"))
        );
        assert_eq!(regression(&result(Some(300.0)), ""), None);
    }

    #[test]
    fn figures_of_the_page_are_found() {
        let result = Measured { ours: Some(60.0), loader: Some(10.0), bpftrace: Some(446.0), ..NOTHING };
        let page = page("6.1", 1434.8, &[result]);
        assert_eq!(cell(&page, "count", SPILE), Some(60.0));
        assert_eq!(cell(&page, "count", BPFTRACE), Some(446.0));
        assert_eq!(cell(&page, "count", 3), None);
        assert_eq!(cell(&page, "absent", SPILE), None);
        let other_table = format!("{page}\n## By part\n| `absent` | 7 |\n");
        assert_eq!(cell(&other_table, "absent", SPILE), None);
    }
}
