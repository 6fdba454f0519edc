// SPDX-License-Identifier: GPL-2.0-or-later

//! Runs many tests in one guest, and in another one when that dies.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use spile_guest::{End, Guest, Streams};

use super::build::{BuildContext, script_of};
use super::find::{Kind, Test};
use super::judge::Observed;
use super::timings::{Part, Timings};
use crate::measure;

/// Runs the tests of a guest one after the other; the comment at its beginning describes its output.
const DRIVER: &str = include_str!("driver.sh");
/// Functions for the shell tests.
const LIBRARY: &str = include_str!("library.sh");
/// A guest that has not handed over a result for this long after the test's own limit is stuck.
const STUCK: Duration = Duration::from_secs(90);
/// Factor for the time that tests in a guest have, at least: other programs may start on this machine while the guest runs.
const LEAST_PATIENCE: u32 = 3;

/// Results of the tests in this order, each with its time and the CPU time of qemu until then. Tests that were
/// not run are missing.
type Results = Vec<(usize, Observed, Instant, Duration)>;

/// Runs all of `tests` (with their numbers); `done` is called for each as soon as it is known.
pub fn run(
    context: &BuildContext,
    tests: &[(usize, &Test)],
    timings: &Timings,
    done: &(dyn Fn(usize, Observed) + Sync),
) -> Result<()> {
    let mut open: Vec<(usize, &Test)> = tests.to_vec();
    while !open.is_empty() {
        let finished = one_guest(context, &open, timings, done)?;
        let before = open.len();
        if let Some(console) = &finished.died {
            // The first without a result has killed the guest; the others did not have their turn.
            if let Some(at) = open.iter().position(|(number, _)| !finished.numbers.contains(number)) {
                let (number, _) = open.remove(at);
                let dmesg =
                    format!("the guest died or hung in this test:\n{}\nKernel panic or hang", tail(console, 60));
                done(number, Observed { exit: 255, dmesg, timed_out: false, ..Observed::default() });
            }
        }
        open.retain(|(number, _)| !finished.numbers.contains(number));
        anyhow::ensure!(open.len() < before, "the guest ran none of its tests");
    }
    Ok(())
}

/// Factor for the time that a test has which waits for something.
fn patience() -> u32 {
    measure::busy().max(LEAST_PATIENCE)
}

struct Finished {
    numbers: Vec<usize>,
    /// The console of a guest that did not end by itself.
    died: Option<String>,
}

/// A guest with what all tests have in common.
pub fn common_guest(context: &BuildContext) -> Result<Guest> {
    let mut guest = crate::guest::equipped(&context.root, &context.place)?;
    guest.write("/root/driver.sh", DRIVER, 0o644).write("/root/library.sh", LIBRARY, 0o644);
    Ok(guest)
}

/// A digest of what a test's guest has beside that, on a machine that is not busy.
pub fn digest(context: &BuildContext, test: &Test) -> Result<String> {
    let mut guest = Guest::new(context.place.kernel.clone());
    if test.header.family {
        crate::guest::with_family(&mut guest, context.family()?)?;
    }
    put_test(context, &mut guest, 0, test, 1)?;
    Ok(guest.digest()?)
}

/// A guest that runs the tests one after the other.
fn guest_with(context: &BuildContext, tests: &[(usize, &Test)]) -> Result<Guest> {
    let mut guest = common_guest(context)?;
    let mut script = String::from(". /root/driver.sh\nbegin_tests\n");
    let has_family = tests.iter().any(|(_, test)| test.header.family);
    if has_family {
        crate::guest::with_family(&mut guest, context.family()?)?;
    }
    if !tests.iter().any(|(_, test)| test.header.memory_cgroups) {
        guest.parameter("cgroup_disable=memory");
    }
    for (number, test) in tests {
        put_test(context, &mut guest, *number, test, patience())?;
        script.push_str(&format!("run_test {number}\n"));
    }
    // All modules of all tests lie in its memory, and some tests arm a dozen scripts at once.
    // Those on the generated family have tens of thousands of probes.
    let more = if has_family { 1024 } else { 0 };
    guest.memory_mib(3072 + more + 4 * asked(VOLUME).unwrap_or(0)).script(&script);
    Ok(guest)
}

fn one_guest(
    context: &BuildContext,
    tests: &[(usize, &Test)],
    timings: &Timings,
    done: &(dyn Fn(usize, Observed) + Sync),
) -> Result<Finished> {
    let began = Instant::now();
    let guest = guest_with(context, tests)?;
    let busy = patience();

    let progress = Arc::new(Mutex::new(Progress::new()));
    let seen = Arc::clone(&progress);
    let mut streams = Streams::inherit();
    streams.file = Box::new(move |name, bytes| lock(&seen).take(name, bytes));
    let mut running = guest.start(streams)?;
    crate::guest::woken(&mut running);
    let qemu = running.id();
    lock(&progress).qemu = qemu;
    let most_for = |test: &Test| (STUCK + Duration::from_secs(limit(test))) * context.place.slowness() * busy;
    let interrupter = running.interrupter();
    let mut numbers = Vec::new();
    let mut spent = Duration::ZERO;
    let mut before: Option<(Instant, Duration)> = None;
    // Of the test that runs now: others may have far more time.
    let mut left = tests.iter().map(|(_, test)| most_for(test));
    let mut most = left.next().unwrap_or(STUCK);
    let name =
        |number: usize| tests.iter().find(|(other, _)| *other == number).map_or("", |(_, test)| test.name.as_str());
    let outcome = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| running.wait());
        loop {
            let ended = waiting.is_finished();
            let (first, results) = {
                let mut progress = lock(&progress);
                if progress.last.elapsed() > most {
                    interrupter.kill();
                }
                (progress.first, std::mem::take(&mut progress.results))
            };
            spent = measure::processor_of(qemu).unwrap_or(spent);
            if let (None, Some((at, processor))) = (before, first) {
                timings.add_until(Part::Boot, name(tests[0].0), began, at, processor);
                before = first;
            }
            for (number, observed, at, processor) in results {
                if let Some((since, had)) = before {
                    timings.add_until(Part::GuestTest, name(number), since, at, processor.saturating_sub(had));
                }
                before = Some((at, processor));
                numbers.push(number);
                most = left.next().unwrap_or(STUCK * busy);
                done(number, observed);
            }
            if ended {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        waiting.join()
    });
    timings.add(Part::Guest, &format!("{} tests from {}", tests.len(), name(tests[0].0)), began, spent);
    let outcome = outcome.map_err(|_| anyhow::anyhow!("the thread that waits for the guest panicked"))??;
    let died = (!matches!(outcome.end, End::Exited(_))).then_some(outcome.console);
    Ok(Finished { numbers, died })
}

/// Variables by which more is asked for than the suite has time for. Tests that know one have its name in their text.
/// Output, in MB.
const VOLUME: &str = "SPILE_TEST_MB";
/// Duration of tests that run for a given time.
const SECONDS: &str = "SPILE_TEST_SECONDS";
/// How often a test runs for that time: loader/device does as root and as a user.
const SPANS: u64 = 2;
/// MB that tests write without the variable.
const USUAL_VOLUME: u64 = 40;

fn asked(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Seconds.
fn limit(test: &Test) -> u64 {
    let text = fs::read_to_string(&test.path).unwrap_or_default();
    limit_with(test.header.limit, |variable| asked(variable).filter(|_| text.contains(variable)).map(u64::from))
}

/// With the requested values of the variables that the test knows.
fn limit_with(limit: u64, asked: impl Fn(&str) -> Option<u64>) -> u64 {
    let times = asked(VOLUME).map_or(1, |volume| volume.div_ceil(USUAL_VOLUME));
    limit * times + SPANS * asked(SECONDS).unwrap_or(0)
}

/// Tests, or their directories, that read addresses of programs: they run with random ones, as on any machine. On 5.10
/// a 32-bit program stays at its first probe without them: as it seems, the kernel finds no page for the instruction that it steps over.
const RANDOM_ADDRESSES: [&str; 3] = ["builtin/ustack/program_32bit", "builtin/ustack/while_mapping", "probe/process/"];

fn has_random_addresses(name: &str) -> bool {
    RANDOM_ADDRESSES.iter().any(|area| name.starts_with(area))
}

/// Puts a test into a guest. `busy`: the factor for its time limits.
fn put_test(context: &BuildContext, guest: &mut Guest, number: usize, test: &Test, busy: u32) -> Result<()> {
    let directory = format!("/root/t/{number}");
    let slowness = context.place.slowness();
    let header = &test.header;
    let command = match test.kind {
        Kind::Script => {
            let run = header.run.as_ref().map(|run| format!(" -c {}", shell_words::quote(run))).unwrap_or_default();
            format!("exec spilerun {}.ko{run}\n", script_of(test).name)
        }
        _ => {
            let text = fs::read_to_string(&test.path).with_context(|| format!("reading {}", test.path.display()))?;
            let more = [VOLUME, SECONDS]
                .into_iter()
                .filter_map(|variable| asked(variable).map(|value| format!("{variable}={value}\n")));
            let more: String = more.collect();
            let all = if context.all { "1" } else { "" };
            format!(
                "SLOWNESS={slowness} PATIENCE={} SPILE_TEST_ALL={all}\n{more}. /root/library.sh\n{text}",
                slowness * busy
            )
        }
    };
    let built = context.directory(test);
    for entry in fs::read_dir(&built).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "ko") {
            guest.copy(&path, Path::new(&directory).join(entry.file_name()))?;
        }
    }
    for module in header.modules.iter().filter(|name| !crate::fixtures::is_one(name) && !crate::family::is_member(name))
    {
        guest.offer_module(module);
    }
    for program in &header.programs {
        guest.program(program, program).with_context(|| format!("{program}, which {} asks for", test.name))?;
    }
    guest
        .write(format!("{directory}/command"), command, 0o644)
        .write(format!("{directory}/setup"), header.setup.clone(), 0o644)
        .write(format!("{directory}/random"), if has_random_addresses(&test.name) { "2\n" } else { "0\n" }, 0o644)
        .write(format!("{directory}/modules"), header.modules.join("\n"), 0o644)
        .write(format!("{directory}/limit"), (limit(test) * u64::from(slowness * busy)).to_string(), 0o644);
    Ok(())
}

/// The results that a guest has sent so far.
struct Progress {
    results: Results,
    last: Instant,
    /// When the first test began, and the CPU time that the boot took.
    first: Option<(Instant, Duration)>,
    /// The guest's process; 0 before it is known.
    qemu: u32,
}

impl Progress {
    fn new() -> Progress {
        Progress { results: Results::new(), last: Instant::now(), first: None, qemu: 0 }
    }

    fn take(&mut self, name: &str, bytes: &[u8]) {
        let Some((number, part)) = name.split_once('.') else { return };
        if part == "begins" {
            self.first = Some((Instant::now(), measure::processor_of(self.qemu).unwrap_or_default()));
        }
        let Ok(index) = number.parse::<usize>() else { return };
        if part != "all" {
            return;
        }
        self.last = Instant::now();
        self.results.push((index, observed(bytes), self.last, measure::processor_of(self.qemu).unwrap_or_default()));
    }
}

/// The results of a test from what the guest sends: a line with the exit status and the parts' sizes, then the parts.
fn observed(bytes: &[u8]) -> Observed {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let header = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut words = header.split_whitespace();
    let exit = words.next().and_then(|status| status.parse().ok()).unwrap_or(255);
    let mut rest = bytes.get(end + 1..).unwrap_or_default();
    let mut part = || {
        let size = words.next().and_then(|size| size.parse().ok()).unwrap_or(0);
        let (part, more) = rest.split_at(rest.len().min(size));
        rest = more;
        String::from_utf8_lossy(part).into_owned()
    };
    let (stdout, stderr, dmesg, left, late) = (part(), part(), part(), part(), part());
    Observed {
        stdout,
        stderr,
        dmesg,
        left: left.lines().map(String::from).collect(),
        timed_out: !late.is_empty(),
        exit,
    }
}

fn lock(progress: &Mutex<Progress>) -> std::sync::MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_divided_into_its_parts() {
        let mut progress = Progress::new();
        progress.take("dmesg", b"x");
        progress.take("0.begins", b"");
        progress.take("3.all", b"7 2 3 0 6 0\na\nb\xff\nm1\nm2\n");
        progress.take("4.all", b"0 0 0 2 0 5\nd\nlate\n");
        progress.take("5.all", b"");
        let [(3, first, ..), (4, second, ..), (5, third, ..)] = &progress.results[..] else { panic!("three results") };
        assert_eq!((first.stdout.as_str(), first.stderr.as_str(), first.exit), ("a\n", "b\u{fffd}\n", 7));
        assert_eq!((&first.left[..], first.timed_out), (&["m1".to_string(), "m2".to_string()][..], false));
        assert_eq!((second.dmesg.as_str(), second.timed_out, second.exit), ("d\n", true, 0));
        assert_eq!((third.stdout.as_str(), third.exit), ("", 255));
    }

    #[test]
    fn tests_with_random_addresses_exist() {
        let tests = super::super::find::find(&crate::root(), &[]).expect("tests");
        for area in RANDOM_ADDRESSES {
            let is_in = |test: &&Test| test.name.starts_with(area) && test.runs_in_guest();
            assert!(tests.iter().find(is_in).is_some_and(|test| has_random_addresses(&test.name)), "{area}");
        }
        assert!(!has_random_addresses("builtin/string/parts"));
    }

    #[test]
    fn more_takes_longer() {
        assert_eq!(limit_with(30, |_| None), 30);
        assert_eq!(limit_with(30, |variable| (variable == VOLUME).then_some(100)), 90);
        assert_eq!(limit_with(30, |variable| (variable == SECONDS).then_some(600)), 1230);
    }
}
