// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask smp`: hits on CPUs that run at the same time. Other guests run their CPUs in turns, because a qemu with parallel
//! CPUs may execute code that the kernel has replaced. Here the qemu is Debian 13's, in a system of its own below target/roots, and
//! the load calls a function that nothing else calls, begins after the probes are armed and ends before they are disarmed. Then only
//! the handlers are tried: counters, numbers, arrays, aggregates, rings, locks, returns. Every total must be exact, nothing skipped.
//!
//!     cargo xtask smp                       # as cargo xtask test
//!     cargo xtask smp --seconds 75 --record # ten minutes of load, told in docs/smp-runs.md
//!
//!     cargo xtask smp --many                # 64 CPUs of 512 that are possible, in turns; some go off and come back
//!
//! A CPU of the guest is a thread here, which others of this machine may interrupt in the middle of a handler: locks are waited for
//! longer than by default (TRYLOCKDELAY).

mod record;
mod scripts;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use spile_guest::{Acceleration, End, Guest, Streams};

use crate::fixtures;
use crate::place::Place;
use scripts::{SCRIPTS, Script};

/// The arguments of `cargo xtask smp`.
#[derive(clap::Args)]
pub struct Options {
    /// How long each script has load; 0: once
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// Calls of each CPU, again and again as long as there is time
    #[arg(long, default_value_t = 40_000)]
    turns: u64,
    /// 64 CPUs, and 512 possible ones, of which three go off and come back meanwhile; they run in turns
    #[arg(long)]
    many: bool,
    /// Writes docs/smp-runs.md if nothing was wrong
    #[arg(long, conflicts_with = "many")]
    record: bool,
    /// Kernel release or line, as for `test`
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
}

/// Runs scripts in a guest whose CPUs run at the same time, and checks their totals.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    let place = Place::find(options.kernel.as_deref())?;
    crate::programs::build_programs(&root)?;
    let directory = tempfile::tempdir_in(root.join("target"))?;
    let mut guest = Guest::new(place.kernel.clone());
    guest.memory_mib(2048);
    if options.many {
        guest.acceleration(Acceleration::Tcg).cpus(64).parameter("possible_cpus=512");
    } else {
        guest.emulator(emulator(&root)?).acceleration(Acceleration::Parallel).cpus(2);
    }
    guest.program(root.join("target/debug/spilerun"), "/usr/bin/spilerun")?;
    guest.program(fixtures::program(&root, "turns")?, "/usr/bin/turns")?;
    let mut commands = format!(
        "cat >/root/load <<'END'\nend=$(($(date +%s) + {}))\nwhile turns {}; do [ $(date +%s) -lt $end ] || exit 0; done\nexit 1\nEND\n",
        options.seconds, options.turns
    );
    for script in &SCRIPTS {
        let module = compile(&place, directory.path(), script)?;
        guest.copy(&module, format!("/root/{}.ko", script.name))?;
        commands += &guest_commands(script);
        if options.many {
            commands += &guest_commands_of_many(script.name);
        }
    }
    let seconds = 120 + SCRIPTS.len() as u64 * options.seconds + if options.many { 600 } else { 0 };
    guest.script(&commands).time_limit(Duration::from_secs(seconds) * crate::measure::busy());
    let outcome = guest.start(Streams::discard())?.wait()?;
    if outcome.end != End::Exited(0) {
        bail!("the guest ended early: {:?}\n{}", outcome.end, outcome.console);
    }
    let file = |name: &str| {
        outcome.files.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    };
    let (mut good, mut calls) = (true, Vec::new());
    for script in &SCRIPTS {
        if options.many {
            print!("{}", file(&format!("{}.memory", script.name)));
        }
        let runs = if options.many { &["", ".going"][..] } else { &[""] };
        for run in runs.iter().map(|run| format!("{}{run}", script.name)) {
            match judge(&file(&format!("{run}.out")), &file(&format!("{run}.err"))) {
                Ok(turns) => {
                    println!("ok      {run}: {turns} calls, all totals exact");
                    calls.push(turns);
                }
                Err(error) => {
                    good = false;
                    println!("FAILED  {run}: {error:#}");
                }
            }
        }
    }
    let log = file("dmesg");
    let complaints: Vec<&str> =
        log.lines().filter(|line| ["WARNING:", "BUG:", "Oops"].iter().any(|word| line.contains(word))).collect();
    complaints.iter().for_each(|line| println!("FAILED  the kernel's log: {line}"));
    let good = good && complaints.is_empty();
    if good && options.record {
        let (commit, date) = (said(&root, "git", &["rev-parse", "--short", "HEAD"])?, said(&root, "date", &["+%F"])?);
        let page = record::page(&place.kernel.release, &commit, &date, options.seconds, &calls);
        std::fs::write(root.join(record::PATH), page).with_context(|| format!("writing {}", record::PATH))?;
        println!("wrote {}", record::PATH);
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The line that a program prints.
fn said(root: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).current_dir(root).stdin(Stdio::null()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn compile(place: &Place, directory: &Path, script: &Script) -> Result<PathBuf> {
    let mut command = Command::new(place.spile()?);
    command.args([
        "-r",
        &place.kernel.release,
        "-p4",
        "-m",
        script.name,
        "-DSTP_NO_OVERLOAD",
        "-DTRYLOCKDELAY=1000000",
    ]);
    let output = command.args(["-e", script.text]).current_dir(directory).stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{}: {}", script.name, String::from_utf8_lossy(&output.stderr));
    Ok(directory.join(format!("{}.ko", script.name)))
}

/// What records hold is added up in the guest: there are millions.
fn guest_commands(script: &Script) -> String {
    let name = script.name;
    // It is no part of a hit; what it does meanwhile is done when it goes on.
    let stops = "sleep 0.4; for time in 1 2; do kill -STOP $(pidof spilerun); sleep 0.4; kill -CONT $(pidof spilerun); sleep 0.2; done";
    let stops = if script.loader_stops { format!("({stops}) >/dev/null 2>&1 &\n") } else { String::new() };
    format!(
        "{stops}spilerun -o /tmp/printed -c 'sh /root/load >/tmp/load' /root/{name}.ko 2>/tmp/err; echo status $? >>/tmp/load
if [ {name} = records ]; then awk '{{ n++; s += $1 }} END {{ printf \"records %d %d 0\\n\", n, s }}' /tmp/printed >>/tmp/load; else cat /tmp/printed >>/tmp/load; fi
give /tmp/load {name}.out; give /tmp/err {name}.err; rm -f /tmp/printed\n"
    )
}

/// Once more with CPUs that go off and come back; what the module takes is told.
fn guest_commands_of_many(name: &str) -> String {
    let going = "for time in 1 2 3; do
	for cpu in 1 5 63; do echo 0 >/sys/devices/system/cpu/cpu$cpu/online; done; sleep 0.2
	for cpu in 1 5 63; do echo 1 >/sys/devices/system/cpu/cpu$cpu/online; done; sleep 0.2
done";
    format!(
        "cat >/root/going <<'END'\n{going}\nEND\n
spilerun -v -o /tmp/printed -c 'sh /root/going & turns 1000 1 >/tmp/load; wait' /root/{name}.ko 2>/tmp/err; echo status $? >>/tmp/load
if [ {name} = records ]; then awk '{{ n++; s += $1 }} END {{ printf \"records %d %d 0\\n\", n, s }}' /tmp/printed >>/tmp/load; else cat /tmp/printed >>/tmp/load; fi
[ \"$(cat /sys/devices/system/cpu/online)\" = 0-63 ] || echo 'a CPU did not come back' >>/tmp/err
grep -F ' loaded: ' /tmp/err >/tmp/memory; give /tmp/memory {name}.memory; sed -i /^NOTICE:/d /tmp/err
give /tmp/load {name}.going.out; give /tmp/err {name}.going.err; rm -f /tmp/printed\n"
    )
}

/// The calls that there were. An error if a total is another one, or something was skipped, lost or reported.
fn judge(said: &str, complaints: &str) -> Result<u64> {
    // That disarming takes long is for a busy machine to say.
    let complaints: Vec<&str> =
        complaints.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("NOTICE:")).collect();
    ensure!(complaints.is_empty(), "{}\n{said}", complaints.join("\n"));
    let (mut turns, mut sum, mut totals) = (0, 0, Vec::new());
    for line in BufReader::new(said.as_bytes()).lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok()).with_context(|| line.clone());
        match words.first() {
            Some(&"turns") => {
                turns += number(1)?;
                sum += number(3)?;
            }
            Some(&"status") => ensure!(number(1)? == 0, "{said}"),
            _ => totals.push((number(1)?, number(2)?, number(3)?, line.clone())),
        }
    }
    ensure!(turns > 0 && !totals.is_empty(), "nothing was counted: {said}");
    for (count, arguments, wrong, line) in totals {
        ensure!(
            (count, arguments, wrong) == (turns, sum, 0),
            "\"{line}\" of {turns} calls whose arguments are {sum} together"
        );
    }
    Ok(turns as u64)
}

/// The qemu of Debian 13: fetched once, and run with the libraries that came with it.
fn emulator(root: &Path) -> Result<PathBuf> {
    let system = root.join("target/roots/qemu");
    let program = system.join("qemu");
    if program.is_file() {
        return Ok(program);
    }
    crate::setup::install_tool("/usr/bin/mmdebstrap", "mmdebstrap")?;
    println!("setup: fetching qemu of Debian trixie (some 60 MB) ...");
    if system.exists() {
        std::fs::remove_dir_all(&system).with_context(|| format!("removing {}", system.display()))?;
    }
    std::fs::create_dir_all(&system)?;
    let output = Command::new("mmdebstrap")
        .args(["--variant=extract", "--include=qemu-system-x86", "trixie"])
        .arg(&system)
        .arg("deb http://deb.debian.org/debian trixie main")
        .stdin(Stdio::null())
        .output()
        .context("running mmdebstrap")?;
    ensure!(output.status.success(), "mmdebstrap failed:\n{}", String::from_utf8_lossy(&output.stderr));
    let made = tempfile::NamedTempFile::new_in(&system)?;
    std::fs::write(made.path(), launcher(&system))?;
    std::fs::set_permissions(made.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    made.persist(&program).context("putting qemu's launcher into its place")?;
    Ok(program)
}

fn launcher(system: &Path) -> String {
    let system = system.display();
    format!(
        "#!/bin/sh\nlibraries={system}/usr/lib/x86_64-linux-gnu\n\
         exec {system}/usr/lib64/ld-linux-x86-64.so.2 --library-path \"$libraries:$libraries/pulseaudio\" \
         {system}/usr/bin/qemu-system-x86_64 -L {system}/usr/share/qemu -L {system}/usr/share/seabios \"$@\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "turns 10 sum 99\nturns 10 sum 1\nstatus 0\narray 20 100 0\n";

    #[test]
    fn totals_are_those_of_all_loads() {
        assert_eq!(judge(GOOD, "\n").expect("good"), 20);
        for (good, bad) in [("status 0", "status 1"), ("array 20", "array 19"), ("100 0", "101 0"), ("100 0", "100 1")]
        {
            assert!(judge(&GOOD.replace(good, bad), "").is_err(), "{bad}");
        }
        assert!(judge(GOOD, "NOTICE: 2 probes are still to be disarmed after 3 s\n").is_ok());
        assert!(judge(GOOD, "NOTICE: fine\nWARNING: skipped").is_err());
        assert!(judge("turns 10 sum 99\nstatus 0\n", "").is_err());
    }
}
