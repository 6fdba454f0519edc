// SPDX-License-Identifier: GPL-2.0-or-later

//! A guest: its settings, how it is started, and how it ended.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use spile_base::cache::{Inputs, Settings};
use spile_base::scratch::Scratch;

use super::acceleration::Acceleration;
use super::error::Error;
use super::examination::Examiner;
use super::initramfs::{Content, Tree, mode_of};
use super::kernel::Kernel;
use super::monitor::Monitor;
use super::streams::{Control, Shared, Streams};
use super::template::{self, Wanted};
use super::{choice, qemu, streams};

/// Time limit for a guest to start its script, also with TCG on a busy machine; see [`Guest::boot_limit`].
pub const BOOT: Duration = Duration::from_secs(120);
/// From the end of the script to power-off.
const SHUT_DOWN: Duration = Duration::from_secs(20);

/// A guest to start; all settings have defaults.
#[derive(Clone, Debug)]
pub struct Guest {
    kernel: Kernel,
    tree: Tree,
    /// Of these, the files that are in the saved state.
    common: Tree,
    saved_states: Option<Settings>,
    modules: Vec<String>,
    offered_modules: Vec<String>,
    extra_modules: Vec<PathBuf>,
    script: String,
    parameters: String,
    memory_mib: u32,
    cpus: u32,
    boot_limit: Duration,
    time_limit: Duration,
    acceleration: Option<Acceleration>,
    emulator: Option<PathBuf>,
    examined: bool,
}

impl Guest {
    /// 1 GiB, two CPUs, no time limit, an empty script.
    pub fn new(kernel: Kernel) -> Guest {
        Guest {
            kernel,
            tree: Tree::default(),
            common: Tree::default(),
            saved_states: None,
            modules: Vec::new(),
            offered_modules: Vec::new(),
            extra_modules: Vec::new(),
            script: String::new(),
            parameters: String::new(),
            memory_mib: 1024,
            cpus: 2,
            boot_limit: BOOT,
            time_limit: Duration::MAX,
            acceleration: None,
            emulator: None,
            examined: false,
        }
    }

    /// The kernel to boot.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Sets the shell commands to run as root in /root; the status of the last one is the guest's.
    pub fn script(&mut self, script: &str) -> &mut Guest {
        self.script = script.to_string();
        self
    }

    /// Copies a file of the host to `path`, with its permissions.
    pub fn copy(&mut self, host: impl AsRef<Path>, path: impl Into<PathBuf>) -> Result<&mut Guest, Error> {
        let host = host.as_ref();
        let mode = mode_of(host)?;
        self.tree.put(path, Content::Copy(host.to_path_buf()), mode);
        Ok(self)
    }

    /// Creates a file with these contents at `path`; `mode`: permission bits.
    pub fn write(&mut self, path: impl Into<PathBuf>, contents: impl Into<Vec<u8>>, mode: u32) -> &mut Guest {
        self.tree.put(path, Content::Bytes(contents.into()), mode);
        self
    }

    /// Makes a symbolic link at `path`.
    pub fn link(&mut self, path: impl Into<PathBuf>, to: impl Into<PathBuf>) -> &mut Guest {
        self.tree.put(path, Content::Link(to.into()), 0o777);
        self
    }

    /// Copies a program to `path`, with its shared libraries if the host has them.
    pub fn program(&mut self, host: impl AsRef<Path>, path: impl AsRef<Path>) -> Result<&mut Guest, Error> {
        self.tree.put_program(host.as_ref(), path.as_ref())?;
        Ok(self)
    }

    /// The files so far are the same in many guests: they are saved with its state (see [`Guest::saved_states`]), and need not be
    /// copied into each.
    pub fn common(&mut self) -> &mut Guest {
        self.common = self.tree.clone();
        self
    }

    /// Goes on from a saved state in this cache, instead of booting, where that is possible: at the second start of guests that
    /// are the same but for their own files and scripts, one is booted and its state is saved. Such guests have the same place of
    /// their kernel in memory.
    pub fn saved_states(&mut self, cache: Settings) -> &mut Guest {
        self.saved_states = Some(cache);
        self
    }

    /// Loads a module of the kernel itself, and its dependencies, before the script starts.
    pub fn module(&mut self, name: &str) -> &mut Guest {
        self.modules.push(name.to_string());
        self
    }

    /// Installs a module of the kernel itself, and its dependencies, for `modprobe`; it is not loaded.
    pub fn offer_module(&mut self, name: &str) -> &mut Guest {
        self.offered_modules.push(name.to_string());
        self
    }

    /// Installs an external module for `modprobe`; it is not loaded.
    pub fn extra_module(&mut self, file: impl Into<PathBuf>) -> &mut Guest {
        self.extra_modules.push(file.into());
        self
    }

    /// Appends to the kernel's command line.
    pub fn parameter(&mut self, parameter: &str) -> &mut Guest {
        self.parameters.push(' ');
        self.parameters.push_str(parameter);
        self
    }

    /// Sets the memory size in MiB.
    pub fn memory_mib(&mut self, memory_mib: u32) -> &mut Guest {
        self.memory_mib = memory_mib;
        self
    }

    /// Sets the number of CPUs.
    pub fn cpus(&mut self, cpus: u32) -> &mut Guest {
        self.cpus = cpus.max(1);
        self
    }

    /// Fails if the script is not started in this time: debug kernels take longer than [`BOOT`].
    pub fn boot_limit(&mut self, limit: Duration) -> &mut Guest {
        self.boot_limit = limit;
        self
    }

    /// Kills the guest if the script takes longer than this, including the boot.
    pub fn time_limit(&mut self, limit: Duration) -> &mut Guest {
        self.time_limit = limit;
        self
    }

    /// Sets the accelerator. The default is what works on this machine: KVM if a trial succeeded, else TCG.
    pub fn acceleration(&mut self, acceleration: Acceleration) -> &mut Guest {
        self.acceleration = Some(acceleration);
        self
    }

    /// Runs this program as qemu, in place of the one that is installed.
    pub fn emulator(&mut self, program: impl Into<PathBuf>) -> &mut Guest {
        self.emulator = Some(program.into());
        self
    }

    /// Before the guest is killed, asks what its CPUs and tasks are doing; see [`Outcome::examination`].
    pub fn examined(&mut self) -> &mut Guest {
        self.examined = true;
        self.parameter("sysrq_always_enabled")
    }

    /// A digest of what decides what is in the guest: its kernel with its parameters, and the paths, permissions and bytes of its
    /// files, which are read; 64 hexadecimal digits.
    pub fn digest(&self) -> Result<String, Error> {
        let mut hash = Sha256::new();
        let kernel = Inputs::of([self.kernel.image.clone()]).to_text();
        hash.update(format!("{} {kernel} {:?} {:?}", self.kernel.release, self.parameters, self.script));
        hash.update(format!("{:?} {:?} {} {}", self.modules, self.offered_modules, self.memory_mib, self.cpus));
        Tree::system()?.digest(&mut hash)?;
        self.tree.digest(&mut hash)?;
        let mut modules = Tree::default();
        for module in &self.extra_modules {
            modules.put(module, Content::Copy(module.clone()), 0o644);
        }
        modules.digest(&mut hash)?;
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Boots or resumes the guest; returns once qemu runs.
    pub fn start(&self, mut streams: Streams) -> Result<Running, Error> {
        let acceleration =
            self.acceleration.unwrap_or_else(|| choice::choose(&mut *streams.notice, || try_kvm(&self.kernel)));
        let mut tree = self.tree.clone();
        let modules = tree.put_modules(&self.kernel, &self.modules, &self.offered_modules, &self.extra_modules)?;
        // Debian's kernels test each algorithm of their crypto library at boot: more than half of its instructions.
        // Two serial ports have one interrupt. With PREEMPT_RT their handlers are threads, and the kernel disables the interrupt
        // when these have not handled it for long, unless it is not to look for such.
        let append = format!(
            "console=ttyS0 no_timer_check noirqdebug cryptomgr.notests quiet panic=-1 oops=panic{}",
            self.parameters
        );
        let machine = qemu::Machine {
            emulator: self.emulator.as_deref(),
            acceleration,
            kernel: &self.kernel.image,
            initrd: None,
            append: &append,
            memory_mib: self.memory_mib,
            cpus: self.cpus,
            memory: qemu::Memory::Anonymous,
        };
        let can_resume = acceleration == Acceleration::Tcg && self.emulator.is_none() && !self.examined;
        let resumed = self.saved_states.as_ref().filter(|_| can_resume).and_then(|settings| {
            let wanted = Wanted {
                machine,
                release: &self.kernel.release,
                common: &self.common,
                tree: &tree,
                script: &self.script,
                modules: &modules,
                boot_limit: self.boot_limit,
            };
            template::start(&wanted, settings, &mut *streams.notice)
        });
        let mut start = Instant::now();
        let (child, ports, directory) = match resumed {
            Some(resumed) => {
                (streams.resumed)();
                start = resumed.start;
                (resumed.child, resumed.ports, resumed.directory)
            }
            None => {
                let archive = tree.archive(&self.script, &modules)?;
                // Private: who connects to its sockets first decides what the guest does.
                let directory = Scratch::new().map_err(Error::file("making a directory in", std::env::temp_dir()))?;
                let initrd = directory.path().join("initrd");
                fs::write(&initrd, archive).map_err(Error::file("writing", &initrd))?;
                let (child, ports) =
                    qemu::start(&qemu::Machine { initrd: Some(&initrd), ..machine }, directory.path())?;
                (child, ports, directory)
            }
        };
        let control_writer = ports.control.try_clone().map_err(Error::file("sharing", "the control port"))?;
        let examiner = match self.examined {
            true => Some(Examiner::new(&ports, self.cpus).map_err(Error::file("sharing", "the console"))?),
            false => None,
        };
        let monitor = Monitor::new(&ports).map_err(Error::file("sharing", "the monitor"))?;
        let shared = Arc::new(Shared::default());
        let readers = streams::spawn(ports, streams, &shared);
        let control = Control { shared, writer: Arc::new(control_writer) };
        Ok(Running {
            child,
            control,
            examiner,
            monitor: Some(monitor),
            readers,
            start,
            boot_limit: self.boot_limit,
            time_limit: self.time_limit,
            directory,
        })
    }
}

/// Whether an empty guest with KVM ends by itself in time.
fn try_kvm(kernel: &Kernel) -> bool {
    let mut guest = Guest::new(kernel.clone());
    guest.script("true").time_limit(choice::TRIAL).acceleration(Acceleration::Kvm);
    match guest.start(Streams::discard()) {
        Ok(running) => matches!(running.wait(), Ok(outcome) if outcome.end == End::Exited(0)),
        Err(_) => false,
    }
}

/// How a guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The status of the script's last command; 128 + N if signal N killed it.
    Exited(i32),
    /// The guest ended before the script: the kernel panicked, or the script powered it off.
    Died,
    /// Killed by the time limit or by [`Interrupter::kill`].
    Killed,
}

/// The results of a guest.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The kernel's console output; only messages above "notice", unless it panics. If the guest died, qemu's messages follow.
    pub console: String,
    /// The files that the script left in /spile/out, and what it sent by `give`, by name. The former are missing if the guest
    /// crashed.
    pub files: BTreeMap<String, Vec<u8>>,
    /// qemu's report on the CPUs before the guest was killed, if [`Guest::examined`] was called. The kernel's report on
    /// its tasks is in the console's output.
    pub examination: Option<String>,
}

/// A started guest. Dropping it kills the guest.
pub struct Running {
    child: Child,
    control: Control,
    examiner: Option<Examiner>,
    monitor: Option<Monitor>,
    readers: Vec<JoinHandle<()>>,
    start: Instant,
    boot_limit: Duration,
    time_limit: Duration,
    /// Sockets, initrd and qemu's messages; removed on drop.
    directory: Scratch,
}

/// Controls a running guest, from any thread.
#[derive(Clone)]
pub struct Interrupter(Control);

impl Interrupter {
    /// Sends the signal of this name ("INT", "TERM") to all processes of the script, now or once it has started.
    pub fn signal(&self, name: &str) {
        self.0.signal(name);
    }

    /// Runs a command, one line, in the guest beside its script.
    pub fn command(&self, command: &str) {
        super::streams::send_command(&self.0.writer, command);
    }

    /// Bytes of the script's output and the console's that came so far.
    pub fn output(&self) -> u64 {
        self.0.shared.output()
    }

    /// Kills the guest.
    pub fn kill(&self) {
        self.0.shared.update(|state| state.kill = true);
    }
}

impl Running {
    /// State shared with other threads.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.control.clone())
    }

    /// qemu's monitor, once: for another thread.
    pub fn take_monitor(&mut self) -> Option<Monitor> {
        self.monitor.take()
    }

    /// qemu's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the script and all of its output. Fails if the guest never started its script.
    pub fn wait(mut self) -> Result<Outcome, Error> {
        let ended = self.wait_for_end();
        let examination = match ended {
            WaitResult::Killed => self.examiner.as_ref().map(Examiner::examine),
            _ => None,
        };
        qemu::kill(&mut self.child);
        for reader in std::mem::take(&mut self.readers) {
            // If a reader panicked, its stream is lost; the others are still valid.
            let _ = reader.join();
        }
        let (ready, status, files) =
            self.control.shared.update(|state| (state.ready, state.status, std::mem::take(&mut state.files)));
        let mut console = self.control.shared.update(|state| String::from_utf8_lossy(&state.console).into_owned());
        let end = match (status, ended) {
            (Some(status), _) => End::Exited(status),
            (None, WaitResult::Killed | WaitResult::NoBoot) => End::Killed,
            (None, WaitResult::Gone) => End::Died,
        };
        if end == End::Died {
            let messages = qemu::messages(self.directory.path());
            console.extend((!messages.is_empty()).then(|| format!("\nqemu: {messages}\n")));
        }
        match ended {
            WaitResult::NoBoot if !ready => Err(Error::Boot { limit: self.boot_limit, console }),
            _ => Ok(Outcome { end, console, files, examination }),
        }
    }

    fn wait_for_end(&mut self) -> WaitResult {
        let mut shutting_down = None;
        loop {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return WaitResult::Gone;
            }
            let (ready, status, kill) = self.control.shared.update(|state| (state.ready, state.status, state.kill));
            if status.is_some() {
                let since = *shutting_down.get_or_insert_with(Instant::now);
                if since.elapsed() > SHUT_DOWN {
                    return WaitResult::Gone;
                }
            } else if kill || self.start.elapsed() > self.time_limit {
                return WaitResult::Killed;
            } else if !ready && self.start.elapsed() > self.boot_limit {
                return WaitResult::NoBoot;
            }
            self.control.shared.wait(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        qemu::kill(&mut self.child);
    }
}

#[derive(Clone, Copy)]
enum WaitResult {
    /// qemu exited by itself, or did not exit after the script.
    Gone,
    Killed,
    NoBoot,
}
