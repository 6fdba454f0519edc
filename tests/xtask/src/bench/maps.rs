// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask bench scale --guest`: arrays of ours and bpftrace's maps, in the guest of `cargo xtask smp` whose two CPUs run at the
//! same time.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use spile_guest::{Acceleration, End, Guest, Outcome, Streams};

use crate::fixtures;
use crate::place::Place;

/// Heading of the part of the page.
const HEADING: &str = "## bpftrace's maps beside arrays";

struct Case {
    name: &'static str,
    script: &'static str,
    bpftrace: &'static str,
    /// Every turn is counted in the maps, whose values are printed as numbers.
    counts: bool,
}

/// The load calls getsid(K) with K from 0 to 63.
const CASES: [Case; 3] = [
    Case {
        name: "`a[K]++`",
        script: r#"global a probe kernel.function("__x64_sys_getsid") { a[$regs->di]++ } probe end { foreach (k in a) n += a[k]; println(n) }"#,
        bpftrace: "kprobe:__x64_sys_getsid { @a[((struct pt_regs *)arg0)->di] = count(); }",
        counts: true,
    },
    Case {
        name: "`a[K] = a[K] + 1`",
        script: r#"global a probe kernel.function("__x64_sys_getsid") { k = $regs->di; a[k] = a[k] + 1 } probe end { foreach (k in a) n += a[k]; println(n) }"#,
        bpftrace: "kprobe:__x64_sys_getsid { $k = ((struct pt_regs *)arg0)->di; @a[$k] = @a[$k] + 1; }",
        counts: true,
    },
    Case {
        name: "`start[tid()]` made and deleted, by entry and return",
        script: r#"global start, s probe kernel.function("__x64_sys_getsid") { start[tid()] = gettimeofday_ns() }
            probe kernel.function("__x64_sys_getsid").return { if (tid() in start) { s <<< gettimeofday_ns() - start[tid()]; delete start[tid()] } }
            probe end { println(@count(s)) }"#,
        bpftrace: "kprobe:__x64_sys_getsid { @start[tid] = nsecs; } kretprobe:__x64_sys_getsid /@start[tid]/ { @s = count(); delete(@start[tid]); }",
        counts: true,
    },
];

/// Calls of each process, a time, and how often it is measured.
const TURNS: u64 = 40_000;
const TIMES: u32 = 25;

/// Prints `NAME PROCESSES NS` for each measurement.
const MEASURE: &str = r#"#!/bin/busybox sh
now() { sed -n 's/^now at \([0-9]*\) nsecs/\1/p' /proc/timer_list; }
turns 2000 >/dev/null
for time in $(seq TIMES); do
	for processes in 1 2; do
		before=$(now)
		turns TURNS $processes >/dev/null
		echo "time $1 $processes $(($(now) - before))" >>/root/times
	done
done
"#;

/// What was measured of one program: the best times of a turn, in ns, with one process and with two; and the turns that its maps have.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    one: f64,
    two: f64,
    counted: Option<u64>,
}

/// Measures the cases, and writes the part of the page.
pub fn run(page: &Path) -> Result<ExitCode> {
    let root = crate::root();
    let place = Place::find(None)?;
    crate::programs::build_programs(&root)?;
    let bpftrace = Path::new("/usr/bin/bpftrace");
    ensure!(bpftrace.is_file(), "bpftrace is not installed");
    let directory = tempfile::tempdir()?;
    let mut guest = Guest::new(place.kernel.clone());
    let emulator = crate::smp::emulator::emulator(&root)?;
    guest.emulator(emulator).acceleration(Acceleration::Parallel).cpus(2).memory_mib(2048);
    guest.program(root.join("target/debug/spilerun"), "/usr/bin/spilerun")?;
    guest.program(fixtures::program(&root, "turns")?, "/usr/bin/turns")?;
    guest.program(bpftrace, bpftrace)?;
    let measure = MEASURE.replace("TIMES", &TIMES.to_string()).replace("TURNS", &TURNS.to_string());
    let mut commands =
        format!("cat >/root/measure <<'END'\n{measure}END\nchmod +x /root/measure\n/root/measure none\n");
    for (number, case) in CASES.iter().enumerate() {
        let name = format!("map_{number}");
        guest.copy(compile(&place, directory.path(), &name, case.script)?, format!("/root/{name}.ko"))?;
        commands += &format!(
            "spilerun -o /root/out -c '/root/measure ours_{number}' /root/{name}.ko; echo total ours_{number} $(cat /root/out) >>/root/times
bpftrace -o /root/out -e '{}' -c '/bin/busybox sh /root/measure theirs_{number}' 2>>/root/errors; echo total theirs_{number} $(sed -n 's/^@[as].*: //p' /root/out) >>/root/times\n",
            case.bpftrace
        );
    }
    commands += "give /root/times times; give /root/errors errors\n";
    guest.script(&commands).time_limit(Duration::from_secs(900) * crate::measure::busy());
    let outcome: Outcome = guest.start(Streams::discard())?.wait()?;
    let times = outcome.files.get("times").map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    ensure!(outcome.end == End::Exited(0), "the guest ended early: {:?}\n{times}\n{}", outcome.end, outcome.console);
    let errors =
        outcome.files.get("errors").map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let part = part(&times).with_context(|| format!("figures are missing:\n{times}{errors}"))?;
    print!("{part}");
    let before = std::fs::read_to_string(page)?;
    std::fs::write(page, replaced(&before, &part)).with_context(|| format!("writing {}", page.display()))?;
    println!("wrote {}", page.display());
    Ok(ExitCode::SUCCESS)
}

/// A CPU of the guest is a thread here, so locks are waited for longer than by default.
fn compile(place: &Place, directory: &Path, name: &str, script: &str) -> Result<PathBuf> {
    let options = ["-p4", "-m", name, "-DSTP_NO_OVERLOAD", "-DTRYLOCKDELAY=1000000", "-e", script];
    let mut command = Command::new(place.spile()?);
    let output = command.args(["-r", &place.kernel.release]).args(options).current_dir(directory).output()?;
    ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(directory.join(format!("{name}.ko")))
}

fn figures(times: &str, name: &str) -> Option<Figures> {
    let best = |processes: &str| {
        let of = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
            ["time", of, number, time] if of == name && number == processes => time.parse::<f64>().ok(),
            _ => None,
        };
        times.lines().filter_map(of).reduce(f64::min).map(|time| time / TURNS as f64)
    };
    let totals = times.lines().find_map(|line| line.strip_prefix(&format!("total {name} ")));
    let counted = totals.map(|numbers| numbers.split(' ').filter_map(|number| number.parse::<u64>().ok()).sum());
    Some(Figures { one: best("1")?, two: best("2")?, counted })
}

/// All turns of a program, those before the measurement included.
fn all_turns() -> u64 {
    2 * 2000 + u64::from(TIMES) * 3 * TURNS
}

fn part(times: &str) -> Option<String> {
    let none = figures(times, "none")?;
    let mut rows = String::new();
    for (number, case) in CASES.iter().enumerate() {
        let cells = |name: &str| {
            let of = figures(times, &format!("{name}_{number}"))?;
            let lost = all_turns().saturating_sub(of.counted.unwrap_or_default());
            let lost = if case.counts { lost.to_string() } else { "-".into() };
            // Two processes make twice the turns in that time.
            Some(format!("{:.0} | {:.0} | {:.2} | {lost}", of.one - none.one, of.two - none.two, 2.0 * of.one / of.two))
        };
        rows += &format!("| {} | {} | {} |\n", case.name, cells("ours")?, cells("theirs")?);
    }
    Some(format!(
        "{HEADING}

Written by `cargo xtask bench scale --guest`. The guest of `cargo xtask smp`: kernel 6.1, two CPUs that run at the same time, emulated; so
the times are some ten times those of a real machine, and differ by a third between runs on a busy one. A turn is a call of getsid(K) with K
from 0 to 63; one process makes {TURNS} of them, or one on each CPU. Times are those of a turn beyond one without probes ({:.0} ns; {:.0}
with two processes), the best of {TIMES}. \"2 : 1\" is the speed of two processes with their probes, relative to one. \"Lost\" are turns
of {} that the map or array has not counted: bpftrace reads and writes the element without a lock, so it may lose some when
both CPUs do that at the same time. bpftrace is Debian's 0.17.

| a turn | spile, 1 CPU, ns | 2 CPUs | 2 : 1 | lost | bpftrace, 1 CPU, ns | 2 CPUs | 2 : 1 | lost |
|---|---|---|---|---|---|---|---|---|
{rows}
",
        none.one,
        none.two,
        all_turns(),
    ))
}

/// The page with this part in the place of the old one, or at its end.
fn replaced(page: &str, part: &str) -> String {
    let Some((before, old)) = page.split_once(HEADING) else {
        return format!("{}\n\n{}\n", page.trim_end(), part.trim_end());
    };
    let after = old.find("\n## ").and_then(|at| old.get(at + 1..)).unwrap_or_default();
    format!("{before}{part}{after}").trim_end().to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_the_best_times_and_all_counts() {
        let times = "time ours_0 1 3000000\ntime ours_0 2 5000000\ntime ours_0 1 2000000\ntotal ours_0 7 8\n";
        assert_eq!(figures(times, "ours_0"), Some(Figures { one: 50.0, two: 125.0, counted: Some(15) }));
        assert_eq!(figures(times, "ours_1"), None);
    }

    #[test]
    fn only_its_part_of_the_page_is_replaced() {
        let page = replaced("# Title\n\n## More\ntext\n", &format!("{HEADING}\nnew\n\n"));
        assert_eq!(page, format!("# Title\n\n## More\ntext\n\n{HEADING}\nnew\n"));
        let old = format!("# Title\n\n{HEADING}\nold\n\n## More\ntext\n");
        assert_eq!(
            replaced(&old, &format!("{HEADING}\nnew\n\n")),
            format!("# Title\n\n{HEADING}\nnew\n\n## More\ntext\n")
        );
    }
}
