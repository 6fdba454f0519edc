// SPDX-License-Identifier: GPL-2.0-or-later

//! Where the instructions of a hit go: qemu logs each instruction of some turns of the loop of [`super::runtime`], with the
//! case's probes armed and without any. What a turn takes in each function, above the loop without a probe, is
//! added up by what the function is for. A program's loop that calls its own function has nothing of the kernel.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use spile_guest::{Acceleration, Guest, Monitor, Streams};

use super::cases::Options;
use super::output::Output;
use super::runtime::{self, Case, Loop};
use crate::place::Place;
use crate::user_programs;

const PAGE: &str = "docs/bench-runtime.md";
const SECTION: &str = "\n## Each row by part\n";
/// Bytes of a log that have some 300 turns in it.
const LOG: u64 = 80 << 20;
/// Time limit of a log.
const LOGGING: Duration = Duration::from_secs(120);
/// What functions are for. A function belongs to the first line that has a part of its name; of the kernel's functions only
/// the clock's are looked for.
const PARTS: [(&str, &[&str]); 4] = [
    (
        "clock",
        &[
            "ktime_get_mono_fast_ns",
            "ktime_get_real_fast_ns",
            "read_tsc",
            "read_hpet",
            "pvclock",
            "kvm_clock",
            "spile_fn_gettimeofday",
            "spile_record_time",
        ],
    ),
    ("lock", &["spile_map_hold", "spile_lock", "spile_unlock", "hold_contended", "try_all", "wait_for"]),
    ("record", &["spile_record", "spile_ring", "spile_put", "find_room", "find_place", "count_lost"]),
    (
        "guard",
        &["spile_run", "spile_context", "spile_guard", "spile_return_pool", "spile_kretprobe", "handle_", "take_add"],
    ),
];
/// Addresses from here on are the kernel's.
const KERNEL: u64 = 1 << 63;
/// How often a log is taken until one is of the loop.
const TRIES: u32 = 30;
/// Code farther behind a symbol belongs to none: it is a trampoline of ftrace.
const FARTHEST: u64 = 16 << 10;
/// What a record takes outside of its hit: the loader's work and its system calls.
const USER: &str = "loader";

/// Measures, and writes the section of the page.
pub fn run(options: &Options) -> Result<ExitCode> {
    let place = Place::find(options.kernel.as_deref())?;
    let root = crate::root();
    crate::programs::build_programs(&root)?;
    let cases: Vec<&'static Case> =
        runtime::CASES.iter().filter(|case| case.has_parts() && options.takes(case.name)).collect();
    let directory = tempfile::tempdir()?;
    let logged = log_all(&place, directory.path(), &cases)?;
    let page = std::fs::read_to_string(root.join(PAGE))?;
    let mut table = String::from(
        "| one hit | kernel | guard | lock | clock | work | record | loader | sum |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for (case, turn) in cases.iter().zip(&logged.cases) {
        let above = logged.loops.get(&case.turn).map_or_else(|| turn.clone(), |loop_turn| turn.above(loop_turn));
        if !options.writes() {
            println!("{}\n{}", case.name, above.list(case.hits));
        }
        table += &above.row(case, runtime::spile(&page, case));
    }
    println!("{table}");
    if options.writes() {
        let file = root.join(PAGE);
        std::fs::write(&file, with_table(&page, &table))?;
        println!("wrote {}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The page with another table in its section; the text after the table stays.
fn with_table(page: &str, table: &str) -> String {
    let Some((before, section)) = page.split_once(SECTION) else { return format!("{page}{SECTION}\n{table}") };
    let mut lines = section.lines().skip_while(|line| !line.starts_with('|'));
    let introduction: String =
        section.lines().take_while(|line| !line.starts_with('|')).map(|line| format!("{line}\n")).collect();
    let after: String =
        lines.by_ref().skip_while(|line| line.starts_with('|')).map(|line| format!("{line}\n")).collect();
    format!("{before}{SECTION}{introduction}{table}{after}")
}

/// Instructions of a turn by function: its name, and whether it is of the session's module, the kernel or a program.
#[derive(Clone, Debug, Default, PartialEq)]
struct Turn(BTreeMap<(Side, String), f64>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Module,
    Kernel,
    User,
}

impl Turn {
    fn above(&self, other: &Turn) -> Turn {
        let mut above = self.clone();
        for (function, count) in &other.0 {
            *above.0.entry(function.clone()).or_default() -= count;
        }
        above
    }

    /// By part, in the order of the table's columns.
    fn parts(&self) -> BTreeMap<&'static str, f64> {
        let mut parts = BTreeMap::new();
        for ((side, function), count) in &self.0 {
            *parts.entry(part(*side, function)).or_default() += count;
        }
        parts
    }

    /// `whole`: the figure of the page's first table. The loader reads many records at once, and so not while the log is
    /// written: what it takes is the rest.
    fn row(&self, case: &Case, whole: Option<f64>) -> String {
        let mut parts = self.parts();
        parts.remove(USER);
        let sum: f64 = parts.values().sum();
        if let Some(whole) = whole
            && parts.contains_key("record")
        {
            parts.insert(USER, whole * case.hits - sum);
        }
        let of = |part: &str| parts.get(part).copied().unwrap_or_default() / case.hits;
        let columns = ["kernel", "guard", "lock", "clock", "work", "record", USER].map(of);
        let cells: Vec<String> = columns
            .iter()
            .chain([&columns.iter().sum()])
            .map(|count| if count.round() == 0.0 { "-".into() } else { format!("{count:.0}") })
            .collect();
        format!("| `{}` | {} |\n", case.name, cells.join(" | "))
    }

    /// Functions with at least half an instruction.
    fn list(&self, hits: f64) -> String {
        let mut functions: Vec<_> = self.0.iter().filter(|(_, count)| count.abs() / hits >= 0.5).collect();
        functions.sort_by(|a, b| b.1.total_cmp(a.1));
        let line = |((side, function), count): (&(Side, String), &f64)| {
            format!("{:9.1} {:7} {:?} {function}\n", count / hits, part(*side, function), side)
        };
        functions.into_iter().map(line).collect()
    }
}

fn part(side: Side, function: &str) -> &'static str {
    if side == Side::User {
        return USER;
    }
    let rest = if side == Side::Module { "work" } else { "kernel" };
    let named = PARTS.iter().find(|(part, names)| {
        let may_be = side == Side::Module || *part == "clock";
        may_be && names.iter().any(|name| function.contains(name))
    });
    named.map_or(rest, |(part, _)| part)
}

struct Logged {
    /// Without a probe; none of a loop that is a program's alone.
    loops: BTreeMap<Loop, Turn>,
    cases: Vec<Turn>,
}

/// Shell commands that run turns of the loop until its log is complete; the host then makes the file that they wait for.
fn log_command(number: usize, kind: Loop, program: &str) -> String {
    let turns = |count: &str| kind.command().replace("HITS", program).replace("$1", count);
    format!(
        "cat >/root/turns_{number} <<'END'
#!/bin/busybox sh
{}
grep ' [tT] ' /proc/kallsyms | if [ -e /root/armed ]; then grep 'bench_'; else cat; fi | gzip >/spile/out/symbols_{number}
{} &
sleep 0.1
echo ready {number}
until [ -e /root/logged_{number} ]; do sleep 1; done
kill $!
END
chmod +x /root/turns_{number}
",
        turns("2000"),
        turns("1000000000")
    )
}

fn log_all(place: &Place, directory: &Path, cases: &[&'static Case]) -> Result<Logged> {
    let mut guest = Guest::new(place.kernel.clone());
    guest.acceleration(Acceleration::Counting).cpus(1).time_limit(Duration::from_secs(3000));
    guest.parameter("nokaslr norandmaps");
    guest.program(runtime::fast_loader(&crate::root())?, "/usr/bin/spilerun")?;
    let program = user_programs::build(&crate::root())?.join(user_programs::HITS);
    guest.program(&program, &program)?;
    let program = program.display().to_string();
    let mut script = String::new();
    // The first one has the kernel's symbols too.
    let mut loops = vec![Loop::Read];
    for case in cases {
        if case.turn != Loop::Call && !loops.contains(&case.turn) {
            loops.push(case.turn);
        }
    }
    for (number, kind) in loops.iter().enumerate() {
        script += &log_command(number, *kind, &program);
        script += &format!("/root/turns_{number}\n");
    }
    script += "touch /root/armed\n";
    for (number, case) in cases.iter().enumerate() {
        let module = runtime::compile(place, directory, &format!("bench_{number}"), case.script)?;
        guest.copy(&module, format!("/root/bench_{number}.ko"))?;
        let turns = number + loops.len();
        script += &log_command(turns, case.turn, &program);
        script += &format!("spilerun -o /root/out -c '/root/turns_{turns}' /root/bench_{number}.ko; rm -f /root/out\n");
    }
    guest.script(&script);
    let output = Output::default();
    let streams = Streams { stdout: Box::new(output.clone()), ..Streams::discard() };
    let mut running = guest.start(streams)?;
    let monitor = running.take_monitor().context("a guest without a monitor")?;
    let interrupter = Arc::new(running.interrupter());
    let (sender, logs) = mpsc::channel();
    let count = cases.len() + loops.len();
    let log_directory = directory.to_path_buf();
    let logging = std::thread::spawn(move || -> Result<()> {
        for number in 0..count {
            wait_until(&format!("line 'ready {number}'"), Duration::from_secs(600), || {
                output.text().lines().any(|line| line == format!("ready {number}"))
            })?;
            let log = log_directory.join(format!("log_{number}"));
            let mut taken = None;
            // The loader may be reading what has been written so far, for longer than a log lasts.
            for _ in 0..TRIES {
                log_instructions(&monitor, &log)?;
                taken = Some(counts(&log)?).filter(is_of_the_kernel);
                if taken.is_some() {
                    break;
                }
            }
            interrupter.command(&format!("touch /root/logged_{number}"));
            sender.send(taken.context("programs took all the time")?)?;
            std::fs::remove_file(&log)?;
        }
        Ok(())
    });
    let outcome = running.wait()?;
    logging.join().map_err(|_| anyhow::anyhow!("a panic"))?.with_context(|| format!("{outcome:?}"))?;
    let symbols: Vec<Symbols> = (0..count)
        .map(|number| {
            let file = outcome.files.get(&format!("symbols_{number}")).context("no symbols")?;
            let mut text = String::new();
            flate2::read::GzDecoder::new(file.as_slice()).read_to_string(&mut text)?;
            Ok(symbols(&text))
        })
        .collect::<Result<_>>()?;
    let kinds = loops.iter().copied().chain(cases.iter().map(|case| case.turn));
    let mut turns = logs
        .iter()
        .zip(&symbols)
        .zip(kinds)
        .map(|((counts, own), kind)| turn(kind.begins(), &counts, &symbols[0], own))
        .collect::<Result<Vec<_>>>()?;
    let cases = turns.split_off(loops.len());
    Ok(Logged { loops: loops.into_iter().zip(turns).collect(), cases })
}

fn wait_until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !is_so() {
        ensure!(start.elapsed() < limit, "waited for {what} in vain");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Has qemu log each instruction until the log is large enough.
fn log_instructions(monitor: &Monitor, log: &Path) -> Result<()> {
    let commands = [&format!("logfile {}", log.display()), "singlestep on", "log exec,nochain"];
    for command in commands {
        monitor.ask(command)?;
    }
    let large = || std::fs::metadata(log).is_ok_and(|file| file.len() > LOG);
    let outcome = wait_until("qemu's log", LOGGING, large);
    monitor.ask("log none")?;
    monitor.ask("singlestep off")?;
    outcome
}

/// Whether most instructions are the kernel's, as in the loop.
fn is_of_the_kernel(counts: &BTreeMap<u64, u64>) -> bool {
    counts.range(KERNEL..).map(|(_, count)| count).sum::<u64>() * 2 > counts.values().sum()
}

/// How often each address was executed.
fn counts(log: &Path) -> Result<BTreeMap<u64, u64>> {
    let mut counts = BTreeMap::new();
    for line in BufReader::new(std::fs::File::open(log)?).lines() {
        if let Some(address) = logged(&line?) {
            *counts.entry(address).or_default() += 1;
        }
    }
    Ok(counts)
}

/// The address of a line such as `Trace 0: 0x7f3c40 [00000000/ffffffff8134cc50/00200033/ff000201] vfs_read`.
fn logged(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("Trace ")?;
    u64::from_str_radix(rest.split('[').nth(1)?.split('/').nth(1)?, 16).ok()
}

/// By address: the name, and the module.
type Symbols = BTreeMap<u64, (String, Side)>;

/// Of /proc/kallsyms.
fn symbols(text: &str) -> Symbols {
    let of = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let name = words.nth(1)?;
        let side =
            if words.next().is_some_and(|module| module.starts_with("[bench_")) { Side::Module } else { Side::Kernel };
        Some((address, (name.to_string(), side)))
    };
    text.lines().filter_map(of).collect()
}

/// Executions by function, for each execution of the first instruction of the function `begins`.
fn turn(begins: &str, counts: &BTreeMap<u64, u64>, kernel: &Symbols, own: &Symbols) -> Result<Turn> {
    let start = kernel.iter().find(|(_, (name, _))| name == begins).map(|(address, _)| *address);
    let turns = start.and_then(|start| counts.get(&start)).copied().unwrap_or_default();
    ensure!(turns > 50, "only {turns} turns in the log");
    let mut turn = Turn::default();
    for (address, count) in counts {
        let at = |symbols: &Symbols| symbols.range(..=*address).next_back().map(|(at, found)| (*at, found.clone()));
        let nearest = [at(kernel), at(own)].into_iter().flatten().max_by_key(|(at, _)| *at);
        let function = match nearest {
            _ if *address < KERNEL => (Side::User, "program".into()),
            Some((at, (name, side))) if *address - at < FARTHEST => (side, name),
            _ => (Side::Kernel, "trampoline".into()),
        };
        *turn.0.entry(function).or_default() += *count as f64 / turns as f64;
    }
    Ok(turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_log() {
        assert_eq!(
            logged("Trace 0: 0x7f3c40 [0000000000000000/ffffffff8134cc50/00200033/ff000201] vfs_read"),
            Some(0xffff_ffff_8134_cc50)
        );
        assert_eq!(logged("Stopped execution of TB chain"), None);
    }

    #[test]
    fn instructions_by_function() {
        let kernel = symbols("ffffffff81000000 T vfs_read\nffffffff81000100 t read_tsc\n");
        let own = symbols("ffffffffc0000000 t spile_map_hold_long\t[bench_1]\n");
        let counts = BTreeMap::from([
            (0xffff_ffff_8100_0000, 100),
            (0xffff_ffff_8100_0004, 200),
            (0xffff_ffff_8100_0100, 100),
            (0xffff_ffff_c000_0008, 300),
            (0x40_0000, 50),
        ]);
        let turn = turn("vfs_read", &counts, &kernel, &own).expect("a hundred turns");
        assert_eq!(turn.parts(), BTreeMap::from([("kernel", 3.0), ("clock", 1.0), ("lock", 3.0), ("loader", 0.5)]));
        assert_eq!(turn.above(&turn).parts().values().sum::<f64>(), 0.0);
    }

    #[test]
    fn a_page_keeps_its_text() {
        let page = format!("# Title\n{SECTION}\nText.\n\n| old |\n|---|\n\nMore.\n\n## Next\n");
        let expected = format!("# Title\n{SECTION}\nText.\n\n| new |\n\nMore.\n\n## Next\n");
        assert_eq!(with_table(&page, "| new |\n"), expected);
    }
}
