// SPDX-License-Identifier: GPL-2.0-or-later

//! Measures how hits scale on several CPUs: scripts are compiled to C, linked in user space with the runtime
//! (runtime-c/tests/threads), and hit by 1, 2 and 4 threads on two CPUs. The cost of a hit for other CPUs is
//! counted.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::threads::build::{self, Sanitizer};

/// The arguments of `cargo xtask bench scale`.
#[derive(clap::Args)]
pub struct Options {
    /// Measures only rows whose name contains this, and leaves docs/bench-scale.md as it is
    #[arg(value_name = "PART")]
    only: Option<String>,
    /// How often each figure is measured; the best counts
    #[arg(long, default_value_t = 15)]
    repeat: u32,
    /// Fails if two threads do less than 0.9 times the work of two programs in a row; leaves the page as it is
    #[arg(long)]
    check: bool,
    /// Measures arrays and bpftrace's maps in a guest whose CPUs run at the same time, and writes that part of the page only
    #[arg(long, conflicts_with_all = ["only", "check"])]
    guest: bool,
}

const PAGE: &str = "docs/bench-scale.md";
const THREADS: [u32; 3] = [1, 2, 4];
/// Hits of one thread, to find out how many take [`LEAST`].
const FEW: u64 = 200_000;
/// A measurement takes so long at least, ns: much longer than the kernel lets one thread run before another.
const LEAST: f64 = 3e8;
/// How much of the work of two programs, which share nothing, two threads do: 1.8 times one thread's where the CPUs are
/// independent of each other.
const GOAL: f64 = 0.9;

struct Row {
    name: &'static str,
    script: &'static str,
    probes: u32,
}

const ROWS: [Row; 6] = [
    Row { name: "count", script: "global n probe timer.profile { n++ } probe end { println(n) }", probes: 1 },
    Row {
        name: "s <<< x",
        script: "global s probe timer.profile { s <<< pid() } probe end { println(@count(s), @sum(s)) }",
        probes: 1,
    },
    Row {
        name: "a[tid()]++",
        script: "global a probe timer.profile { a[tid()]++ } probe end { foreach (t in a) println(a[t]) }",
        probes: 1,
    },
    Row {
        name: "a[execname()] <<< x",
        script: "global a probe timer.profile { a[execname()] <<< pid() } probe end { foreach (t in a) println(@count(a[t])) }",
        probes: 1,
    },
    Row {
        name: "start[tid()] = t; latency <<< t - start[tid()]; delete",
        script: "global start, latency
            probe timer.profile { start[tid()] = gettimeofday_ns() }
            probe timer.profile { if (tid() in start) { latency <<< gettimeofday_ns() - start[tid()]; delete start[tid()] } }
            probe end { println(@avg(latency)) }",
        probes: 2,
    },
    Row {
        name: "printf(\"%d %d\\n\", tid(), x)",
        script: "probe timer.profile { printf(\"%d %d\\n\", tid(), pid()) }",
        probes: 1,
    },
];

/// The speed with one number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Speed {
    /// Millions of hits of all threads per second.
    hits: f64,
    /// CPU time of a hit, ns.
    processor: f64,
    /// How many CPUs the threads had on average.
    processors: f64,
}

impl Speed {
    const UNKNOWN: Speed = Speed { hits: f64::NAN, processor: f64::NAN, processors: f64::NAN };

    /// The best of each; a number is better than none.
    fn best(self, other: Speed) -> Speed {
        Speed {
            hits: self.hits.max(other.hits),
            processor: self.processor.min(other.processor),
            processors: self.processors.max(other.processors),
        }
    }

    /// Of two programs that ran at the same time.
    fn together(self, other: Speed) -> Speed {
        Speed {
            hits: self.hits + other.hits,
            processor: (self.processor + other.processor) / 2.0,
            processors: self.processors + other.processors,
        }
    }
}

/// Counts for a hundred hits.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    locked: u64,
    moved: u64,
    lines: u64,
}

struct Measured {
    row: &'static Row,
    speeds: BTreeMap<u32, Speed>,
    /// Two programs with a thread each, at the same time.
    apart: Speed,
    counted: Counted,
}

impl Measured {
    /// The speed of two threads relative to one, by the clock.
    fn ratio(&self) -> f64 {
        self.of(2).hits / self.of(1).hits
    }

    /// The speed of two threads relative to two programs: what they lose because they use the same globals.
    fn share(&self) -> f64 {
        self.of(2).hits / self.apart.hits
    }

    /// That of two threads relative to one, by CPU time, which other work on the machine does not change much.
    fn processor_ratio(&self) -> f64 {
        2.0 * self.of(1).processor / self.of(2).processor
    }

    fn of(&self, threads: u32) -> Speed {
        self.speeds.get(&threads).copied().unwrap_or(Speed::UNKNOWN)
    }
}

/// Measures hits on several threads, and writes the page in docs/.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    if options.guest {
        return super::maps::run(&root.join(PAGE));
    }
    crate::programs::build_programs(&root)?;
    let directory = root.join("target/scale");
    std::fs::create_dir_all(&directory)?;
    let mut results = Vec::new();
    for (number, row) in ROWS.iter().enumerate() {
        if options.only.as_ref().is_none_or(|only| row.name.contains(only.as_str())) {
            let result = measure(&root, &directory, number, row, options.repeat.max(1))?;
            println!("{}", line(&result));
            results.push(result);
        }
    }
    let slow: Vec<&Measured> = results.iter().filter(|result| result.share() < GOAL).collect();
    for result in &slow {
        println!(
            "two threads do {:.2} times the work of two programs, not {GOAL}: {}",
            result.share(),
            result.row.name
        );
    }
    if options.only.is_none() && !options.check {
        let file = root.join(PAGE);
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        let page = page(&results) + super::runtime::sections(&before);
        std::fs::write(&file, page).with_context(|| format!("writing {}", file.display()))?;
        println!("wrote {}", file.display());
    }
    Ok(if options.check && !slow.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn measure(root: &Path, directory: &Path, number: usize, row: &'static Row, repeat: u32) -> Result<Measured> {
    let c = build::translate(root, directory, &format!("row_{number}"), row.script)?;
    let counting = build::program(root, &c, "count.c", Sanitizer::Thread, None)?;
    let counted = counted(&output_of(&counting, &[])?).context("the output of count.c")?;
    let program = build::program(root, &c, "threads.c", Sanitizer::None, None)?;
    let arguments = |threads: u32, turns: u64| {
        let hits = turns * u64::from(row.probes);
        ["-m", "-r", "4194304", "-t", &threads.to_string(), "-n", &hits.to_string()].map(String::from)
    };
    let first = speed(&output_of(&program, &arguments(1, FEW))?, 1, FEW).context("the output of threads.c")?;
    let turns = (LEAST / first.processor).max(1.0) as u64;
    let mut speeds = BTreeMap::new();
    let mut apart = Speed::UNKNOWN;
    // Alternately, so that other work on the machine affects all of them.
    for _ in 0..repeat {
        for threads in THREADS {
            let now = measure_once(&program, &arguments(threads, turns), threads, turns)?;
            let best = speeds.entry(threads).or_insert(now);
            *best = best.best(now);
        }
        let programs = crate::parallel::map(2, |_| measure_once(&program, &arguments(1, turns), 1, turns));
        let together = programs.into_iter().reduce(|first, second| Ok(first?.together(second?)));
        apart = apart.best(together.context("two programs")??);
    }
    Ok(Measured { row, speeds, apart, counted })
}

/// A run that skips hits has lost time: a lock is waited for a second, which passes if the machine is suspended.
fn measure_once(program: &Path, arguments: &[String], threads: u32, turns: u64) -> Result<Speed> {
    let mut last = String::new();
    for _ in 0..4 {
        last = output_of(program, arguments)?;
        if let Some(speed) = speed(&last, threads, turns) {
            return Ok(speed);
        }
    }
    bail!("hits are skipped, again and again:\n{last}")
}

fn output_of(program: &Path, arguments: &[String]) -> Result<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().context("running the threads")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success() && !text.contains("ERROR"), "{}: {text}", program.display());
    Ok(text)
}

/// The number after a word.
fn number(line: &str, name: &str) -> Option<u64> {
    line.split(' ').skip_while(|word| *word != name).nth(1)?.parse().ok()
}

fn counted(output: &str) -> Option<Counted> {
    let line = output.lines().find(|line| line.starts_with("locked "))?;
    Some(Counted { locked: number(line, "locked")?, moved: number(line, "moved")?, lines: number(line, "shared")? })
}

/// `turns`: of each thread; a hit of each probe. None if hits were skipped.
fn speed(output: &str, threads: u32, turns: u64) -> Option<Speed> {
    let times = output.lines().find(|line| line.starts_with("elapsed "))?;
    let totals = output.lines().find(|line| line.starts_with("hits "))?;
    if number(totals, "hits")? != number(totals, "handled")? {
        return None;
    }
    let (elapsed, processor) = (number(times, "elapsed")? as f64, number(times, "processor")? as f64);
    let hits = f64::from(threads) * turns as f64;
    Some(Speed { hits: hits * 1e3 / elapsed, processor: processor / hits, processors: processor / elapsed })
}

fn line(result: &Measured) -> String {
    let hits = THREADS.map(|threads| format!("{:.1}", result.of(threads).hits)).join(" | ");
    let processor = THREADS.map(|threads| format!("{:.0}", result.of(threads).processor)).join(" | ");
    format!(
        "| `{}` | {hits} | {:.1} | {:.2} | {:.2} | {processor} | {:.2} | {:.2} | {:.2} | {} |",
        result.row.name,
        result.apart.hits,
        result.ratio(),
        result.share(),
        result.processor_ratio(),
        result.counted.locked as f64 / 100.0,
        result.counted.moved as f64 / 100.0,
        result.counted.lines,
    )
}

fn page(results: &[Measured]) -> String {
    let rows: String = results.iter().map(|result| format!("{}\n", line(result))).collect();
    let processors = results.iter().map(|result| result.of(2).processors).fold(f64::INFINITY, f64::min);
    format!(
        "# Hits on several CPUs

Written by `cargo xtask bench scale`. Scripts are compiled to C and linked in user space with the part of the runtime that a hit runs through:
the same code, locks and rings as in the kernel, without the kernel's part of a hit and with threads in place of CPUs
(`runtime-c/tests/threads`). A turn is one hit of each probe of the row; a thread has turns for 0.3 s of CPU time; the best of several
measurements counts. Records are written and released, but not read: what a reader takes of two CPUs is not part of a hit.

- Millions of turns per second by the clock, of all threads together. On a busy machine these are too low: here two threads had
  {processors:.1} CPUs at the same time at least. Four threads share two CPUs.
- \"Apart\" is two programs with a thread each, at the same time: they share nothing but the machine. CPUs of a virtual machine are
  often the two halves of a core, or have less than their time; then two programs do less than twice the work of one as well.
  So the goal is that two threads do {GOAL} times the work of two programs, column \"2 : apart\": 1.8 times one thread's on CPUs
  that are independent of each other.
- 2 : 1 by the clock, and by CPU time: twice the CPU time of a turn with one thread, divided by that with two.
  Waiting for a lock and for a cache line of another CPU is CPU time, so the second one shows both even when other
  work takes CPUs away at times; but not when the two threads never run at the same time.
- Counted with two CPUs that take turns, for one turn of each, from all memory accesses of the compiled code: atomic instructions and full barriers; cache
  lines that had to come from the other CPU, or be taken from it; and how many different lines these are.
  These do not depend on the machine.

| a turn | 1 thread, M/s | 2 | 4 | apart | 2 : 1 | 2 : apart | ns of CPU, 1 thread | 2 | 4 | 2 : 1 | atomic | moved | lines |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
{rows}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "elapsed 2000 processor 3000\n1\nhits 20 handled 20 skipped 0 errors 0 lost 0 printed 0 sum 0\n";

    #[test]
    fn speeds_are_of_turns() {
        let speed = speed(SAID, 2, 5).expect("numbers");
        assert_eq!(speed, Speed { hits: 5.0, processor: 300.0, processors: 1.5 });
        assert_eq!(super::speed(&SAID.replace("handled 20", "handled 19"), 2, 5), None);
    }

    #[test]
    fn counts_are_read() {
        assert_eq!(counted("locked 600 moved 1700 shared 35\n"), Some(Counted { locked: 600, moved: 1700, lines: 35 }));
        assert_eq!(counted(""), None);
    }

    #[test]
    fn threads_are_compared_with_one_and_with_programs() {
        let speed = |hits, processor| Speed { hits, processor, processors: 1.0 };
        let speeds = BTreeMap::from([(1, speed(10.0, 100.0)), (2, speed(15.0, 100.0)), (4, speed(15.0, 200.0))]);
        let apart = Speed::UNKNOWN.best(speed(8.0, 100.0).together(speed(8.0, 120.0)));
        assert_eq!(apart, Speed { hits: 16.0, processor: 110.0, processors: 2.0 });
        let result = Measured { row: &ROWS[0], speeds, apart, counted: Counted::default() };
        assert!((result.ratio() - 1.5).abs() < 1e-9 && (result.processor_ratio() - 2.0).abs() < 1e-9);
        let row = "| `count` | 10.0 | 15.0 | 15.0 | 16.0 | 1.50 | 0.94 | 100 | 100 | 200 | 2.00 | 0.00 |";
        assert!(page(&[result]).contains(row));
    }
}
