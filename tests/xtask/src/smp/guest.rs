// SPDX-License-Identifier: GPL-2.0-or-later

//! A guest that runs some of the scripts one after the other.
//!
//! Two failures that look alike from outside are distinguished. **A script does not end**: time advances in the guest,
//! which says so each second. After the script's time the guest itself writes down what all tasks do and kills the
//! loader; that is a failure of ours. **The guest hangs**: it prints nothing any more, and qemu says what its CPUs do.
//! If one of them runs, it may be a handler that waits with interrupts off: a failure too. If all are halted, no timer
//! comes any more, which is not in the power of a handler; the rest of the scripts runs in another guest.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use spile_guest::{Acceleration, End, Guest, Outcome, Streams};

use super::Options;
use super::heartbeat::Heartbeat;
use super::shapes::Shape;
use crate::fixtures;
use crate::place::Place;
use crate::test::{DATA_RACE, is_race_of_kernel};

/// Seconds of the guest that a script may take beyond its load; for a busy machine more.
const BEYOND_LOAD: u64 = 60;
/// The same with 64 CPUs in turns.
const BEYOND_LOAD_OF_MANY: u64 = 400;
/// How much longer a guest with 64 CPUs takes to boot.
const BOOT_OF_MANY: u32 = 4;
/// Longest silence of a guest; for a busy machine more.
const SILENCE: Duration = Duration::from_secs(60);

/// Shell functions. `begin NAME SECONDS`: prints a line each second, until another one begins; then, if it is the same,
/// that it has not ended.
const FUNCTIONS: &str = r#"
begin() {
	echo "$1" >/tmp/now
	echo "$1 0"
	(
		for second in $(seq "$2"); do
			sleep 1
			[ "$(cat /tmp/now)" = "$1" ] || exit 0
			echo "$1 $second"
		done
		tell "$1" >"/tmp/$1.hung" 2>&1
		give "/tmp/$1.hung" "$1.hung"
		# Writing that down takes a while: it may have ended meanwhile.
		[ "$(cat /tmp/now)" = "$1" ] || exit 0
		kill -KILL $(pidof turns) $(pidof spilerun)
	) &
}
tell() {
	echo "$1 has not ended. Uptime: $(cat /proc/uptime)"
	for task in /proc/[0-9]*/task/[0-9]*; do
		echo
		echo "$task $(cat $task/comm) $(grep State $task/status) $(cat $task/wchan) $(tr '\0' ' ' <${task%/task/*}/cmdline)"
		cat $task/stack
	done
	cat /proc/interrupts
	for key in l w q t; do echo $key >/proc/sysrq-trigger; sleep 0.2; done
	dmesg
}
"#;

/// How a guest has ended.
pub struct GuestResult {
    outcome: Outcome,
    /// Number of scripts that have ended.
    pub scripts: usize,
    /// The guest stood still in the next script: the reports of qemu and the kernel.
    pub standstill: Option<String>,
}

/// Whether all CPUs were halted, by what qemu says of their registers.
pub fn is_halted(standstill: &str) -> bool {
    standstill.contains("HLT=1") && !standstill.contains("HLT=0")
}

impl GuestResult {
    /// A file that the guest has given; empty if it has not.
    pub fn file(&self, name: &str) -> String {
        self.outcome.files.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    /// Lines of the kernel's log that tell of something wrong.
    pub fn complaints(&self) -> Vec<String> {
        self.file("dmesg").lines().filter(|line| is_complaint(line)).map(str::to_string).collect()
    }

    /// The kernel's log, if it has data races; [`Guest::complaints`] has those of modules.
    pub fn races(&self) -> Option<String> {
        Some(self.file("dmesg")).filter(|log| log.contains(DATA_RACE))
    }
}

/// Whether a line of the kernel's log tells of something wrong. Data races of the kernel's own code are not.
fn is_complaint(line: &str) -> bool {
    !is_race_of_kernel(line) && ["WARNING:", "BUG:", "Oops"].iter().any(|word| line.contains(word))
}

/// Runs the scripts, each with its module.
pub fn run(root: &Path, place: &Place, options: &Options, scripts: &[(Shape, PathBuf)]) -> Result<GuestResult> {
    let mut guest = Guest::new(place.kernel.clone());
    guest.memory_mib(2048).examined();
    let mut boot = spile_guest::BOOT * place.slowness() * crate::measure::busy();
    if options.many {
        guest.acceleration(Acceleration::Tcg).cpus(64).parameter("possible_cpus=512");
        boot *= BOOT_OF_MANY;
    } else {
        guest.emulator(super::emulator::emulator(root)?).acceleration(Acceleration::Parallel).cpus(2);
    }
    guest.boot_limit(boot);
    guest.program(root.join("target/debug/spilerun"), "/usr/bin/spilerun")?;
    guest.program(fixtures::program(root, "turns")?, "/usr/bin/turns")?;
    // The guest's clock is the host's.
    let beyond = if options.many { BEYOND_LOAD_OF_MANY } else { BEYOND_LOAD };
    let limit = options.seconds + beyond * u64::from(place.slowness() * crate::measure::busy());
    let mut commands = format!(
        "{FUNCTIONS}cat >/root/load <<'END'\nend=$(($(date +%s) + {}))\nwhile turns {}; do [ $(date +%s) -lt $end ] || exit 0; done\nexit 1\nEND\n",
        options.seconds, options.turns
    );
    for (shape, module) in scripts {
        let script = &shape.script;
        guest.copy(module, format!("/root/{}.ko", script.name))?;
        commands += &format!("begin {} {limit}\n{}", script.name, commands_of(shape));
        if options.many {
            commands += &format!("begin {}.going {limit}\n{}", script.name, commands_of_many(shape));
        }
    }
    commands += "echo >/tmp/now; dmesg >/spile/out/dmesg\n";
    // Longer than all deadlines in the guest: it is the silence that ends a guest.
    let runs = if options.many { 2 } else { 1 };
    let most = 120 + scripts.len() as u64 * runs * 2 * limit;
    guest.script(&commands).time_limit(Duration::from_secs(most) * crate::measure::busy());
    let heartbeat = Heartbeat::new(options.many);
    let running = guest.start(Streams { stdout: Box::new(heartbeat.clone()), ..Streams::discard() })?;
    let outcome = heartbeat.watch(&running.interrupter(), SILENCE, || running.wait())?;
    let is_over = |name: &str| outcome.files.contains_key(&format!("{name}.err"));
    let last = if options.many { ".going" } else { "" };
    let ended = scripts.iter().take_while(|(shape, _)| is_over(&format!("{}{last}", shape.script.name))).count();
    match outcome.end {
        End::Exited(0) if !outcome.files.contains_key("dmesg") => bail!("the guest has not sent its log"),
        End::Exited(0) => Ok(GuestResult { outcome, scripts: scripts.len(), standstill: None }),
        End::Killed => {
            let text = format!(
                "last line: {}\n\n{}\n\nconsole:\n{}",
                heartbeat.last(),
                outcome.examination.as_deref().unwrap_or_default(),
                outcome.console
            );
            Ok(GuestResult { outcome, scripts: ended, standstill: Some(text) })
        }
        _ => bail!("the guest ended early: {:?}\n{}", outcome.end, outcome.console),
    }
}

/// The contents of records are summed up in the guest, because there are millions.
fn commands_of(shape: &Shape) -> String {
    let script = &shape.script;
    let name = script.name;
    // The loader is not part of a hit; its work is done when it continues. It is stopped by its process id: the command
    // of -c is called spilerun too before it starts, would be stopped as well, and would not be continued because it
    // then has another name.
    let stops = "sleep 0.4; for time in 1 2; do kill -STOP $loader; sleep 0.4; kill -CONT $loader; sleep 0.2; done";
    let stops = if script.loader_stops { format!("({stops}) >/dev/null 2>&1 &\n") } else { String::new() };
    let meanwhile = shape.meanwhile.map(|command| {
        format!("(until [ -e /tmp/load ]; do usleep 10000; done; while [ -e /tmp/load ]; do {command}; done) >/dev/null 2>&1 &\n")
    });
    let meanwhile = meanwhile.unwrap_or_default();
    format!(
        "rm -f /tmp/load\n{meanwhile}spilerun -o /tmp/printed -c 'sh /root/load >/tmp/load' /root/{name}.ko 2>/tmp/err &
loader=$!\n{stops}wait $loader; echo status $? >>/tmp/load
if [ {name} = records ]; then turns add /tmp/printed >>/tmp/load; else cat /tmp/printed >>/tmp/load; fi
mv /tmp/load /tmp/out; give /tmp/out {name}.out; give /tmp/err {name}.err; rm -f /tmp/printed\n"
    )
}

/// Once more with CPU hotplug; the module's memory is printed.
fn commands_of_many(shape: &Shape) -> String {
    let name = shape.script.name;
    let meanwhile = shape.meanwhile.map(|command| format!("{{ {command}; }} >/dev/null; ")).unwrap_or_default();
    let going = "for time in 1 2 3; do
	for cpu in 1 5 63; do echo 0 >/sys/devices/system/cpu/cpu$cpu/online; done; sleep 0.2
	for cpu in 1 5 63; do echo 1 >/sys/devices/system/cpu/cpu$cpu/online; done; sleep 0.2
done";
    format!(
        "cat >/root/going <<'END'\n{going}\nEND\n
spilerun -v -o /tmp/printed -c 'sh /root/going & turns 1000 1 >/tmp/load; {meanwhile}wait' /root/{name}.ko 2>/tmp/err; echo status $? >>/tmp/load
if [ {name} = records ]; then turns add /tmp/printed >>/tmp/load; else cat /tmp/printed >>/tmp/load; fi
[ \"$(cat /sys/devices/system/cpu/online)\" = 0-63 ] || echo 'a CPU did not come back' >>/tmp/err
grep -F ' loaded: ' /tmp/err >/tmp/memory; give /tmp/memory {name}.memory; sed -i /^NOTICE:/d /tmp/err
give /tmp/load {name}.going.out; give /tmp/err {name}.going.err; rm -f /tmp/printed\n"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn data_races_count_in_modules() {
        let kernel = "[   12.3] BUG: KCSAN: data-race in __hrtimer_run_queues / hrtimer_active";
        assert!(!super::is_complaint(kernel));
        assert!(super::is_complaint("[   12.3] BUG: KCSAN: data-race in probe_0 [globals] / probe_0 [globals]"));
        assert!(super::is_complaint("[   12.3] BUG: soft lockup - CPU#0 stuck for 26s! [spilerun:130]"));
        assert!(!super::is_complaint("[   12.3] globals: loading out-of-tree module taints kernel."));
    }

    #[test]
    fn a_cpu_that_runs_may_be_in_a_handler() {
        assert!(super::is_halted("CPU#0\nHLT=1\nCPU#1\nHLT=1"));
        assert!(!super::is_halted("CPU#0\nHLT=1\nCPU#1\nHLT=0"));
        assert!(!super::is_halted("it did not answer"));
    }
}
