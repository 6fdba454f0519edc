// SPDX-License-Identifier: GPL-2.0-or-later

//! Runs one script in a guest, for `spile --guest`: copies in the module and the loader, streams the output, forwards
//! signals to the loader, and returns the loader's exit status.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use shell_words::quote;
use spile_base::cache::Settings;

use super::dependencies::ModuleDependencies;
use super::error::Error;
use super::{End, Guest, Interrupter, Kernel, Outcome, Streams};

/// A compiled script and the files it needs in its guest.
#[derive(Clone, Debug)]
pub struct Session {
    /// The kernel to boot.
    pub kernel: Kernel,
    /// The script's `.ko`.
    pub module: PathBuf,
    /// A program that acts as the loader when called `spilerun`.
    pub loader: PathBuf,
    /// Arguments of the loader after the module; `-c CMD` runs in the guest.
    pub arguments: Vec<String>,
    /// The command of `-c`, if any: if it starts with a program of the host, that is copied.
    pub command: Option<String>,
    /// Modules of the kernel itself that the script probes; they are loaded first.
    pub modules: Vec<String>,
    /// External modules that the script probes; likewise.
    pub extra_modules: Vec<PathBuf>,
    /// Programs and libraries of the host that the script probes; they are copied to the same path.
    pub programs: Vec<PathBuf>,
    /// The cache of saved states, for [`Guest::saved_states`].
    pub saved_states: Settings,
    /// A rehearsal: loading, arming and unloading of the module are reported at the end and affect the status.
    pub rehearsal: bool,
}

/// How a session ended.
#[derive(Debug)]
pub enum SessionEnd {
    /// The loader's exit status.
    Exited(i32),
    /// The kernel crashed.
    Died {
        /// The last lines of its console.
        console: String,
    },
    /// The guest was killed, by the third signal or because nothing came from it after one.
    Killed {
        /// The last lines of its console.
        console: String,
    },
}

const MODULE: &str = "/root/script.ko";
const LOADER: &str = "/usr/bin/spilerun";

/// Exit status of a session whose target module could not be loaded in the guest; the loader does not use this number.
pub const TARGET_NOT_LOADED: u8 = 10;

/// `load MODULE STATUS MISSING`: loads a target module, or ends the session with the status and the reasons: the
/// messages of modprobe and the kernel, and the missing modules.
const LOAD: &str = r#"
load() {
	dmesg -c >/dev/null
	modprobe "$1" 2>/tmp/modprobe && return
	echo "ERROR: module $1, which the script probes, could not be loaded in the guest" >&2
	sed 's/^/  /' /tmp/modprobe >&2
	dmesg | tail -n 5 | sed 's/^\[ *[0-9.]*\] */  kernel: /' >&2
	[ -z "$3" ] || echo "  it depends on modules that are not there: $3; -d FILE names each" >&2
	exit $2
}
"#;

/// Runs the loader with its arguments ("$@"), the first of which is the module called $name; kills it after $seconds,
/// if set. Returns 7 if the module was not unloaded or the kernel reported a problem, else the loader's status.
const REHEARSAL: &str = r#"
spilerun "$@" &
loader=$!
early='ended before it was armed'
armed=$early
while [ -d /proc/$loader ] && ! grep -q '^State:.Z' /proc/$loader/status; do
	if spilerun status $name >/tmp/status 2>/dev/null && grep -q ': running, ' /tmp/status; then
		armed=$(sed -n 's/probes armed/&/p' /tmp/status)
		break
	fi
	sleep 0.1
done
[ -z "$seconds" ] || [ "$armed" = "$early" ] || { sleep $seconds; kill -INT $loader 2>/dev/null; }
wait $loader
status=$?
[ $status != 0 ] || [ "$armed" != "$early" ] || armed='ended before its probes could be counted'
left='left cleanly'
if [ -d /sys/module/$name ]; then
	left='STAYED LOADED' status=7
fi
if dmesg | grep -E 'BUG:|WARNING:|Oops|Call Trace:|general protection' >/tmp/splats; then
	left="$left, and the kernel says: $(head -n 1 /tmp/splats)" status=7
fi
echo "rehearsal of $name on $(uname -r): status $status, $armed, $left" >&2
exit $status
"#;

impl Session {
    /// Runs the script to its end. SIGINT, SIGTERM and SIGHUP are forwarded to the loader; the third one kills the
    /// guest, and so does the silence of a guest after one: its kernel may hang.
    pub fn run(&self, mut streams: Streams) -> Result<SessionEnd, Error> {
        let guest = self.prepare()?;
        let notice = Arc::new(Mutex::new(std::mem::replace(&mut streams.notice, Box::new(|_| {}))));
        let notify = move |line: &str| notice.lock().unwrap_or_else(PoisonError::into_inner)(line);
        streams.notice = Box::new(notify.clone());
        let commands = streams.commands.take();
        let running = guest.start(streams)?;
        // Until then a signal ends this process, as there is nothing to pass it on to: making a saved state takes seconds.
        let signals = Signals::catch();
        let interrupter = running.interrupter();
        if let Some(commands) = commands {
            let (interrupter, name) = (interrupter.clone(), super::module_name(&self.module_path()));
            // It waits for the next line for ever: nobody waits for it.
            std::thread::spawn(move || pass_commands(commands, &name, &interrupter));
        }
        let outcome = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| running.wait());
            let mut silence = None;
            while !waiting.is_finished() {
                if signals.forward(&interrupter) {
                    silence = Some(Silence::new(interrupter.output()));
                }
                let step = silence.as_mut().and_then(|silence| silence.step(interrupter.output(), Instant::now()));
                match step {
                    Some(Step::Hint) => notify(&signals.hint()),
                    Some(Step::GiveUp) => {
                        notify(&format!(
                            "nothing came from the virtual machine for {} s: it is ended",
                            GIVE_UP.as_secs()
                        ));
                        interrupter.kill();
                        silence = None;
                    }
                    None => {}
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            waiting.join()
        });
        drop(signals);
        match outcome {
            Ok(outcome) => Ok(ended(outcome?)),
            // Unwinding has killed the guest.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn prepare(&self) -> Result<Guest, Error> {
        let mut guest = Guest::new(self.kernel.clone());
        guest.program(&self.loader, LOADER)?.common();
        guest.saved_states(self.saved_states.clone()).copy(&self.module, self.module_path())?;
        let mut script = LOAD.to_string();
        for module in &self.modules {
            guest.offer_module(module);
            // A built-in module has no file and needs none.
            if !self.kernel.module_table()?.files(std::slice::from_ref(module))?.is_empty() {
                let _ = writeln!(script, "load {} {TARGET_NOT_LOADED} ''", quote(module));
            }
        }
        let extra = ModuleDependencies::of(&self.kernel, &self.extra_modules);
        for module in &extra.own {
            guest.offer_module(module);
        }
        for file in &self.extra_modules {
            guest.extra_module(file);
            let name = super::module_name(&file.to_string_lossy());
            let missing = extra.missing.join(", ");
            let _ = writeln!(script, "load {} {TARGET_NOT_LOADED} {}", quote(&name), quote(&missing));
        }
        if let Some(program) = self.command.as_deref().and_then(first_program) {
            guest.program(&program, &program)?;
        }
        for program in self.programs.iter().filter(|program| program.is_file()) {
            guest.program(program, program)?;
        }
        let arguments: String = self.arguments.iter().map(|argument| format!(" {}", quote(argument))).collect();
        match self.rehearsal {
            false => script.push_str(&format!("exec {LOADER} {}{arguments}\n", quote(&self.module_path()))),
            true => {
                // If it does not end by itself, this is long enough.
                let seconds =
                    if self.command.is_none() && !self.arguments.iter().any(|word| word == "-T") { "3" } else { "" };
                let name = super::module_name(&self.module_path());
                script.push_str(&format!(
                    "name={} seconds={seconds}\nset -- {}{arguments}\n",
                    quote(&name),
                    quote(&self.module_path())
                ));
                script.push_str(REHEARSAL);
            }
        }
        guest.script(&script);
        Ok(guest)
    }

    /// The loader and the kernel log show the module's file name.
    fn module_path(&self) -> String {
        match self.module.file_name() {
            Some(name) => format!("/root/{}", name.to_string_lossy()),
            None => MODULE.to_string(),
        }
    }
}

/// `WORD ARGUMENT`, words of letters and numbers only, becomes `spilerun WORD NAME ARGUMENT` in the guest.
fn pass_commands(commands: Box<dyn Read + Send>, name: &str, interrupter: &Interrupter) {
    for line in BufReader::new(commands).lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        let is_plain = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric());
        if let [word, argument] = words.as_slice()
            && words.iter().all(is_plain)
        {
            interrupter.command(&format!("{LOADER} {word} {} {argument}", quote(name)));
        }
    }
}

fn ended(outcome: Outcome) -> SessionEnd {
    match outcome.end {
        End::Exited(status) => SessionEnd::Exited(status),
        End::Died => SessionEnd::Died { console: last_lines(&outcome.console) },
        End::Killed => SessionEnd::Killed { console: last_lines(&outcome.console) },
    }
}

fn last_lines(console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    let skipped = lines.len().saturating_sub(40);
    lines.into_iter().skip(skipped).collect::<Vec<_>>().join("\n")
}

/// The host's program that a command starts with: by its path, else from PATH unless the guest's busybox has one.
fn first_program(command: &str) -> Option<PathBuf> {
    // The guest's shell reports errors for other words.
    let word = spile_base::command::program_word(command)?;
    if word.contains('/') {
        return Some(PathBuf::from(&word)).filter(|path| path.is_absolute() && path.is_file());
    }
    let is_applet = || {
        std::process::Command::new("/bin/busybox")
            .arg("--list")
            .output()
            .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).lines().any(|applet| applet == word))
    };
    let found = which::which(&word).ok()?;
    let guest_looks_there = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
    let reachable =
        found.parent().is_some_and(|parent| guest_looks_there.iter().any(|known| parent == Path::new(known)));
    (reachable && !is_applet()).then_some(found)
}

/// Number of pending signals, indexed as in [`CAUGHT`].
static CAME: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
const CAUGHT: [(Signal, &str); 3] = [(Signal::SIGINT, "INT"), (Signal::SIGTERM, "TERM"), (Signal::SIGHUP, "HUP")];
/// This many signals kill the guest.
const ENOUGH: usize = 3;

/// After a signal, a guest from which nothing comes for so long gets a hint, and is killed.
const HINT: Duration = Duration::from_secs(10);
const GIVE_UP: Duration = Duration::from_secs(60);

/// What a guest does after a signal: what it prints shows that it is at work.
struct Silence {
    output: u64,
    since: Instant,
    hinted: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Hint,
    GiveUp,
}

impl Silence {
    /// From now on; with the bytes that came so far.
    fn new(output: u64) -> Silence {
        Silence { output, since: Instant::now(), hinted: false }
    }

    /// What is to be done now. The hint comes once.
    fn step(&mut self, output: u64, now: Instant) -> Option<Step> {
        if output != self.output {
            (self.output, self.since) = (output, now);
        }
        let silent = now.saturating_duration_since(self.since);
        if silent >= GIVE_UP {
            return Some(Step::GiveUp);
        }
        if silent < HINT || self.hinted {
            return None;
        }
        self.hinted = true;
        Some(Step::Hint)
    }
}

extern "C" fn note(signal: i32) {
    for (came, (caught, _)) in CAME.iter().zip(CAUGHT) {
        if caught as i32 == signal {
            came.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Catches signals until dropped. Uses a handler instead of signalfd(2), as threads that already exist have not blocked
/// the signals.
struct Signals {
    before: Vec<(Signal, SigAction)>,
    passed_on: AtomicUsize,
}

impl Signals {
    fn catch() -> Signals {
        let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
        let mut before = Vec::new();
        for (came, (signal, _)) in CAME.iter().zip(CAUGHT) {
            came.store(0, Ordering::Relaxed);
            // SAFETY: the handler only accesses atomics, which is async-signal-safe.
            if let Ok(old) = unsafe { sigaction(signal, &action) } {
                before.push((signal, old));
            }
        }
        Signals { before, passed_on: AtomicUsize::new(0) }
    }

    /// What ends a guest that does not end after a signal.
    fn hint(&self) -> String {
        let left = ENOUGH.saturating_sub(self.passed_on.load(Ordering::Relaxed));
        let how = if left == 1 { "one more signal ends it" } else { "two more signals end it" };
        format!(
            "the virtual machine has not ended: {how} at once, as does another {} s without output",
            (GIVE_UP - HINT).as_secs()
        )
    }

    /// Passes on what came; whether anything did.
    fn forward(&self, interrupter: &Interrupter) -> bool {
        let mut any = false;
        for (came, (_, name)) in CAME.iter().zip(CAUGHT) {
            for _ in 0..came.swap(0, Ordering::Relaxed) {
                if self.passed_on.fetch_add(1, Ordering::Relaxed) + 1 >= ENOUGH {
                    interrupter.kill();
                } else {
                    interrupter.signal(name);
                }
                any = true;
            }
        }
        any
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            // SAFETY: restores the previous action; on failure ours stays, which only counts.
            let _ = unsafe { sigaction(*signal, old) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_command_is_found_on_the_host() {
        assert_eq!(first_program("/bin/busybox ls"), Some(PathBuf::from("/bin/busybox")));
        assert_eq!(first_program("A=1 exec /bin/busybox ls"), Some(PathBuf::from("/bin/busybox")));
        assert_eq!(first_program("(/bin/busybox ls)"), Some(PathBuf::from("/bin/busybox")));
        assert_eq!(first_program("/no/such/program"), None);
        assert_eq!(first_program("cat /etc/hostname"), None, "busybox has it");
        assert_eq!(first_program(""), None);
    }

    #[test]
    fn a_silent_guest_gets_a_hint_and_is_killed() {
        let mut silence = Silence::new(7);
        let start = silence.since;
        let mut at = |seconds, output| silence.step(output, start + Duration::from_secs(seconds));
        assert_eq!((at(9, 7), at(10, 7), at(11, 7)), (None, Some(Step::Hint), None));
        // What it prints counts, and the hint comes once.
        assert_eq!((at(59, 8), at(70, 8), at(118, 8)), (None, None, None));
        assert_eq!(at(119, 8), Some(Step::GiveUp));
    }

    #[test]
    fn caught_signals_do_not_end_the_process_and_are_counted() {
        let signals = Signals::catch();
        nix::sys::signal::raise(Signal::SIGHUP).expect("raised");
        assert_eq!(CAME[2].load(Ordering::Relaxed), 1);
        drop(signals);
    }
}
