// SPDX-License-Identifier: GPL-2.0-or-later

//! Measures commands: elapsed time, and CPU time including that of reaped children. A busy machine affects the
//! former but hardly the latter.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use wait4::Wait4;

/// A program that has ended.
pub struct Measured {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error output, likewise.
    pub stderr: String,
    /// When it was started.
    pub began: Instant,
    /// CPU time of it and of its children.
    pub processor: Duration,
}

/// Runs a command to its end. Its output goes to files: background processes that it leaves cannot delay the return.
pub fn output(command: &mut Command) -> Result<Measured> {
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let began = Instant::now();
    let mut child = command
        .env(EXPECTED_LOAD, EXPECTED.load(Relaxed).to_string())
        .stdout(out.try_clone()?)
        .stderr(err.try_clone()?)
        .spawn()
        .with_context(|| format!("running {}", command.get_program().to_string_lossy()))?;
    let ended = child.wait4().context("waiting for a command")?;
    let text = |file: &mut File| -> Result<String> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Measured {
        status: ended.status,
        stdout: text(&mut out)?,
        stderr: text(&mut err)?,
        began,
        processor: ended.rusage.utime + ended.rusage.stime,
    })
}

/// A command with lower priority than guests, whose CPUs are measured by this machine's clock.
pub fn low_priority(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "10"]).arg(program);
    command
}

/// CPU time of a running process; None when it has exited. From proc(5), stat: in ticks of 10 ms.
pub fn processor_of(id: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    ticks(&stat).map(|ticks| Duration::from_millis(10 * ticks))
}

const MOST_BUSY: u32 = 8;
/// The same as `expect_load`, for the commands of a run.
const EXPECTED_LOAD: &str = "SPILE_TEST_LOAD";
static EXPECTED: AtomicU32 = AtomicU32::new(1);

/// The least that `busy` returns from now on, also in the commands that are started. For a run that is about to keep the
/// machine busy: its first guests start while the load of the last minute is low.
pub fn expect_load(factor: u32) {
    EXPECTED.store(factor, Relaxed);
}

/// Factor for time limits on a busy or slow machine: the load of the last minute for each CPU, times how much slower than usual
/// its CPUs are now (shared hosts differ by a factor of two from hour to hour); 8 at most. Only for limits that end hung
/// processes, and for what a test says about seconds; never for measurements.
pub fn busy() -> u32 {
    let by_caller = std::env::var(EXPECTED_LOAD).ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    (busy_now().max(EXPECTED.load(Relaxed)).max(by_caller) * slow()).min(MOST_BUSY)
}

/// CPU time for [`work`] when emulated guests are as fast as the limits expect.
const USUAL_WORK: Duration = Duration::from_millis(8);
/// So long a measured speed is taken to be the same.
const SAME_SPEED: Duration = Duration::from_secs(10);
static SPEED: Mutex<Option<(Instant, u32)>> = Mutex::new(None);

fn slow() -> u32 {
    let mut speed = SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    match *speed {
        Some((at, factor)) if at.elapsed() < SAME_SPEED => factor,
        _ => {
            let factor = slow_at(work());
            *speed = Some((Instant::now(), factor));
            factor
        }
    }
}

fn slow_at(took: Duration) -> u32 {
    // Small: no digits are lost.
    (took.as_secs_f64() / USUAL_WORK.as_secs_f64()).ceil().clamp(1.0, f64::from(MOST_BUSY)) as u32
}

/// CPU time of this thread for a fixed piece of work: compressing needs memory and branches, as qemu does.
fn work() -> Duration {
    let clock = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default();
    let text: Vec<u8> =
        (0..60_000_u32).flat_map(|number| (number.wrapping_mul(2_654_435_761) >> 12).to_le_bytes()).collect();
    let began = clock();
    let mut encoder = flate2::write::ZlibEncoder::new(std::io::sink(), flate2::Compression::new(6));
    // A sink takes all.
    let _ = encoder.write_all(&text).and_then(|()| encoder.finish().map(drop));
    clock().saturating_sub(began)
}

fn busy_now() -> u32 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    busy_at(&load, cpus as f64)
}

fn busy_at(load: &str, cpus: f64) -> u32 {
    let load: f64 = load.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    // From 1 to 8: no digits are lost.
    (load / cpus).ceil().clamp(1.0, f64::from(MOST_BUSY)) as u32
}

fn ticks(stat: &str) -> Option<u64> {
    // The name of the program, in parentheses, may contain any character.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_status_and_time_of_a_command() {
        let script = "echo out; echo err >&2; i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; exit 3";
        let measured = output(Command::new("sh").args(["-c", script])).expect("a shell");
        assert_eq!((measured.stdout.as_str(), measured.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(measured.status.code(), Some(3));
        assert!(measured.processor > Duration::from_millis(5) && measured.processor < Duration::from_secs(60));
    }

    #[test]
    fn background_processes_delay_nothing() {
        let began = Instant::now();
        output(Command::new("sh").args(["-c", "sleep 30 & true"])).expect("a shell");
        assert!(began.elapsed() < Duration::from_secs(25));
    }

    #[test]
    fn a_busy_machine_has_more_time() {
        assert_eq!(busy_at("0.30 0.20 0.10 1/100 1", 2.0), 1);
        assert_eq!(busy_at("5.10 4.00 3.00 1/100 1", 2.0), 3);
        assert_eq!(busy_at("99 4.00 3.00 1/100 1", 2.0), 8);
        assert_eq!(busy_at("", 2.0), 1);
    }

    #[test]
    fn a_slow_machine_has_more_time() {
        assert_eq!([0, 20, 21, 59].map(|tenths| slow_at(USUAL_WORK / 20 * tenths)), [1, 1, 2, 3]);
        assert!(work() > Duration::ZERO && (1..=MOST_BUSY).contains(&slow()));
    }

    #[test]
    fn commands_of_a_run_know_its_load() {
        expect_load(2);
        let shown = output(Command::new("sh").args(["-c", "echo $SPILE_TEST_LOAD"])).expect("a shell");
        assert_eq!(shown.stdout, "2\n");
        assert!(busy() >= 2);
    }

    #[test]
    fn times_of_a_process() {
        assert_eq!(ticks("1 (a) b) S 2 3 4 5 6 7 8 9 10 11 120 30 0 0 20 0"), Some(150));
        assert!(processor_of(std::process::id()).is_some());
        assert_eq!(ticks("nothing"), None);
    }
}
