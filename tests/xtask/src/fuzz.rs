// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask fuzz`: random inputs to every reader of untrusted files, each reader in a separate process with little
//! memory. An input that kills a process becomes a seed, which the ordinary tests try from then on.

mod totals;

#[allow(dead_code, reason = "not every user of the targets calls all of it")]
#[path = "../../../compiler/fuzz/targets/mod.rs"]
mod targets;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use targets::{Random, TARGETS, Target};

/// The arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub struct Options {
    /// The readers; all of them if none is named. Or `device`: random calls of a module's device, for ten minutes each as root and
    /// as a user, on a kernel with KASAN (SPILE_TEST_SECONDS for another time)
    targets: Vec<String>,
    /// Inputs of each
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    inputs: u64,
    /// Seconds of CPU time for one input
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// MB that a reader may allocate beyond the initial memory of its process
    #[arg(long, value_name = "MB", default_value_t = 500)]
    memory: u64,
    /// Of the random numbers; with --record from the total on if it is not given
    #[arg(long)]
    seed: Option<u64>,
    /// Adds the inputs to the totals in docs/fuzz-runs.md; other inputs than those counted there are tried
    #[arg(long)]
    record: bool,
    /// Tries this one target here, and writes each input into this file before it is tried
    #[arg(long, hide = true, value_name = "FILE")]
    worker: Option<PathBuf>,
}

/// A worker's exit status when an input took too long.
const SLOW: i32 = 91;
/// Not a reader: the test loader/device, with a longer limit.
const DEVICE: &str = "device";
/// Number of failures of one reader after which it is skipped.
const ENOUGH: usize = 10;

/// Runs fuzz targets.
pub fn run(options: &Options) -> Result<ExitCode> {
    if options.targets == [DEVICE] {
        return fuzz_device();
    }
    let unknown = options.targets.iter().find(|name| TARGETS.iter().all(|target| target.name != **name));
    if let Some(name) = unknown {
        let names = TARGETS.map(|target| target.name).join(", ");
        bail!("{name}: no such reader; there are {names}, and {DEVICE} by itself");
    }
    let wanted =
        |target: &&Target| options.targets.is_empty() || options.targets.iter().any(|name| name == target.name);
    let wanted: Vec<&Target> = TARGETS.iter().filter(wanted).collect();
    if let (Some(file), [target]) = (&options.worker, wanted.as_slice()) {
        return work(target, options, file);
    }
    let mut failures = 0;
    let path = crate::root().join(totals::PATH);
    for target in wanted {
        let before = if options.record { totals::of(&fs::read_to_string(&path)?, target.name) } else { 0 };
        let tried = watch(target, options, options.seed.unwrap_or(before + 1))?;
        failures += tried.failures;
        if options.record {
            // Read again: another run may have written it meanwhile.
            let text = fs::read_to_string(&path)?;
            let commit = crate::tree::commit(&crate::root());
            let date = crate::tree::output_of("date", &["-u", "+%F"]);
            fs::write(&path, totals::with(&text, target.name, tried.inputs, tried.failures, &commit, &date))?;
        }
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether there is a reader of this name, or it is the device.
#[cfg(test)]
pub fn is_reader(name: &str) -> bool {
    name == DEVICE || TARGETS.iter().any(|target| target.name == name)
}

/// The test ends with the kernel's first message.
fn fuzz_device() -> Result<ExitCode> {
    let mut command = Command::new(crate::tree::own_program());
    command.args(["debug-kernel", "loader/device"]).stdin(Stdio::null());
    if std::env::var_os("SPILE_TEST_SECONDS").is_none() {
        command.env("SPILE_TEST_SECONDS", "600");
    }
    let status = command.status().context("running the test loader/device")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn seeds_of(target: &Target) -> PathBuf {
    crate::root().join("compiler/fuzz/seeds").join(target.name)
}

/// The result of one reader.
struct FuzzResult {
    inputs: u64,
    failures: usize,
}

/// A process tries the inputs; if it dies, another one tries the rest.
fn watch(target: &Target, options: &Options, seed: u64) -> Result<FuzzResult> {
    let directory = crate::root().join("target/fuzz");
    fs::create_dir_all(&directory)?;
    let current = directory.join(format!("{}.input", target.name));
    let (begun, mut done, mut failures, mut seed) = (Instant::now(), 0, 0, seed);
    while done < options.inputs && failures < ENOUGH {
        let mut command = Command::new(crate::tree::own_program());
        command.args([
            "fuzz",
            target.name,
            "--inputs",
            &(options.inputs - done).to_string(),
            "--seed",
            &seed.to_string(),
        ]);
        command
            .args(["--timeout", &options.timeout.to_string(), "--memory", &options.memory.to_string(), "--worker"])
            .arg(&current);
        command.env("RAYON_NUM_THREADS", "1").env("MALLOC_ARENA_MAX", "1").env_remove("RUST_BACKTRACE");
        let output = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
        let mut number = [0; 8];
        let mut file = fs::File::open(&current).context("the worker did not begin")?;
        file.read_exact(&mut number)?;
        done += u64::from_le_bytes(number);
        if output.status.success() {
            break;
        }
        let mut input = Vec::new();
        file.read_to_end(&mut input)?;
        let length = input.get(..4).and_then(|length| length.try_into().ok()).map_or(0, u32::from_le_bytes) as usize;
        let input = input.get(4..).unwrap_or_default();
        let kept = keep(target, &input[..length.min(input.len())])?;
        let stderr = String::from_utf8_lossy(&output.stderr).trim().lines().take(3).collect::<Vec<_>>().join("; ");
        let why = match (output.status.code(), output.status.signal()) {
            (Some(SLOW), _) => format!("took more than {} s", options.timeout),
            (_, Some(signal)) => format!("signal {signal}: {stderr}"),
            _ => stderr,
        };
        println!("{}: {}: {why}", target.name, kept.display());
        (failures, seed) = (failures + 1, seed + 1);
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{}: {done} inputs, {:.0} a second, {failures} failed", target.name, done as f64 / seconds.max(0.001));
    Ok(FuzzResult { inputs: done, failures })
}

/// Saves an input as a seed, under a unique name.
fn keep(target: &Target, input: &[u8]) -> Result<PathBuf> {
    let directory = seeds_of(target);
    fs::create_dir_all(&directory)?;
    let name: String = Sha256::digest(input).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let path = directory.join(name);
    fs::write(&path, input)?;
    Ok(path.strip_prefix(crate::root()).map(Path::to_path_buf).unwrap_or(path))
}

/// Milliseconds of CPU time and one at which the current input was started; 0: none.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// CPU time of this process in milliseconds, so that other load on the machine does not count. No reader sleeps.
fn processor_time() -> u64 {
    let clock = nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID;
    clock.now().map_or(0, |time| time.tv_sec().unsigned_abs() * 1000 + time.tv_nsec().unsigned_abs() / 1_000_000)
}

/// Tries all inputs in this process. `file` always holds the number of finished inputs and the current one with its
/// length.
fn work(target: &Target, options: &Options, file: &Path) -> Result<ExitCode> {
    let file = fs::File::create(file)?;
    file.write_all_at(&0u64.to_le_bytes(), 0)?;
    let pages: u64 =
        fs::read_to_string("/proc/self/statm")?.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let timeout = Duration::from_secs(options.timeout).as_millis() as u64;
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let begun = BEGUN.load(Ordering::Relaxed);
            if begun > 0 && processor_time() > begun + timeout {
                std::process::exit(SLOW);
            }
        }
    });
    // Threads started by readers need stacks too.
    let most = pages * 4096 + (options.memory << 20) + (64 << 20);
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_AS, most, most)?;
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0)?;
    let mut seeds = (target.seeds)();
    for entry in fs::read_dir(seeds_of(target)).into_iter().flatten().flatten() {
        seeds.push(fs::read(entry.path())?);
    }
    // This thread does the parallel work of readers, because passing it to others would take longer.
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()?;
    let mut random = Random(options.seed.unwrap_or(1));
    for done in 0..options.inputs {
        let input = targets::input(&mut random, &seeds, target.longest);
        let mut kept = done.to_le_bytes().to_vec();
        kept.extend((input.len() as u32).to_le_bytes());
        kept.extend(&input);
        file.write_all_at(&kept, 0)?;
        BEGUN.store(processor_time() + 1, Ordering::Relaxed);
        (target.run)(&input);
        BEGUN.store(0, Ordering::Relaxed);
    }
    file.write_all_at(&options.inputs.to_le_bytes(), 0)?;
    std::io::stdout().flush()?;
    Ok(ExitCode::SUCCESS)
}
