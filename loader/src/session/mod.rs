// SPDX-License-Identifier: GPL-2.0-or-later

//! A session: from the module's device to the last line of its output. One loop, one place to wait, one exit.
//!
//! The loop is a separate thread: the calls that may take long, SPILE_START, SPILE_QUIET and SPILE_STOP, are made by
//! the first thread, and begin and end probes may print more than a ring holds, so the loop reads meanwhile. Everything
//! that ends a session only sets [`Ending::stop`].

pub mod arming;
pub mod background;
pub mod calls;
pub mod command;
pub mod daemon;
pub mod dispatch;
pub mod ending;
pub mod expiry;
pub mod reading;
pub mod replaced;
pub mod signals;
pub mod starter;
pub mod summary;
pub mod system;
pub mod target;
pub mod watch;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use spile_abi::device::{Gate, Info, SETUP_TIMED, Setup, State, USER_STACKS};

use crate::error::{Error, Exit};
use crate::host::clock;
use crate::host::input::Input;
use crate::host::notify;
use crate::module::device::Device;
use crate::module::file::Description;
use crate::module::setting::{self, Value};
use crate::options::Options;
use crate::output::{OutputError, Sinks};
use crate::records::merge;
use crate::records::record::Reader;
use crate::records::user::{Names, Users};
use crate::report::budget;
use crate::report::exporter::Exporter;
use crate::report::status;
use crate::session::arming::Arming;
use crate::session::calls::{Calls, SignalOnDrop};
use crate::session::command::Status;
use crate::session::daemon::Waiting;
use crate::session::dispatch::Dispatcher;
use crate::session::ending::Ending;
use crate::session::expiry::Expiry;
use crate::session::reading::Reading;
use crate::session::replaced::ReplacedPrograms;
use crate::session::signals::{BlockedSignals, Signals};
use crate::session::starter::Starter;
use crate::session::system::Commands;
use crate::session::target::Target;
use crate::session::watch::Watch;
use crate::userspace::files::Files;
use crate::userspace::programs::Programs;
use crate::userspace::tables::{self, KnownTarget, LoadedTables};

const NS_PER_MS: u64 = 1_000_000;

/// The module of the session.
pub struct Subject<'s> {
    /// Name of the module.
    pub name: &'s str,
    /// Open for the whole session.
    pub device: &'s Device,
    /// The description of the module's records.
    pub description: &'s Description,
    /// Values for globals; none for a session that is already running.
    pub settings: &'s [(u32, Value)],
    /// Restricts the script's writes; `None`: no restriction.
    pub gate: Option<Gate>,
    /// The session is already running, detached.
    pub attached: bool,
    /// Starts commands, if another process does that.
    pub starter: Option<&'s Arc<Starter>>,
    /// Reports POLLHUP when the privileged process has exited; the session then ends.
    pub root: Option<BorrowedFd<'s>>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The exit status.
    pub exit: Exit,
    /// The session continues without this process.
    pub left: bool,
}

/// Creates the rings of a module that has just been loaded.
pub fn set_up(device: &Device, options: &Options, target: &Target) -> Result<(), Error> {
    let ring_bytes = options.ring_bytes.unwrap_or(default_ring_bytes(device.info()?.cpus));
    let flags = if options.stats.is_some() { SETUP_TIMED } else { 0 };
    device.set_up(Setup { ring_bytes, target: target.pid(), flags, ..Setup::default() })
}

/// Runs the session of a loaded module, after [`set_up`], until it ends or is left. Once the device is closed, the
/// module can be removed.
pub fn run(
    subject: &Subject<'_>,
    options: &Options,
    target: Target,
    sinks: Sinks,
    signals: &Signals,
    waiting: Option<Waiting>,
) -> Result<End, Error> {
    let Subject { name, device, description, .. } = *subject;
    let info = device.info()?;
    let sites = info.probes as usize;
    if sites != description.meta.probes.len() {
        let what = format!("{sites} probes, its description has {}", description.meta.probes.len());
        return Err(Error::Strange { name: name.to_string(), what });
    }
    if !subject.attached {
        subject
            .settings
            .iter()
            .flat_map(|(index, value)| setting::pieces(*index, value))
            .try_for_each(|piece| device.set(piece))?;
        if let Some(wanted) = &options.budget {
            budget::keep(wanted, device, &description.meta.probes)?;
        }
    }
    if let Some(gate) = subject.gate {
        device.set_gate(gate)?;
    }
    if options.keep || options.overwrite {
        device.keep(options.keep, options.overwrite)?;
    }
    let info = device.info()?;
    let files = Files::new(device);
    let mut made = LoadedTables::default();
    let has_user_stacks = info.flags & USER_STACKS != 0;
    if has_user_stacks && !subject.attached {
        tables::prepare(device, ahead(options), &mut made);
    }
    let names = has_user_stacks.then(|| Box::new(Programs::new(&files)) as Box<dyn Names + '_>);
    let reader = Reader::new(&description.meta, &description.formats, Some(device), Users::new(names));
    let mut reading = Reading::new(device, &info, reader, options)?;
    // After the settings: its flags say whether there were any.
    let owner = device.owner()?;
    let is_ours = !subject.attached || owner.uid == nix::unistd::geteuid().as_raw();
    let mut sinks = sinks;
    if subject.attached {
        reading.recover(&mut sinks);
    }
    let commands = Commands::of(&owner, is_ours, subject.starter.cloned());
    let running = State::from_number(info.state) == Some(State::Running);
    let returned = calls::event()?;
    let (calls, caller) = calls::pair(&returned);
    let mut session = Session {
        subject,
        info,
        options,
        signals,
        calls,
        arming: Arming::new(clock::now()),
        reading,
        target,
        output: Dispatcher::new(sinks, commands, options.verbose, options.no_warnings),
        root: subject.root,
        phase: if subject.attached { Phase::Running } else { Phase::Starting },
        waiting,
        // A session that ended while detached.
        ending: Ending::new(subject.attached && !running, options.detach),
        watch: Watch::new(name, &description.meta, device, options),
        expiry: Expiry::of(device),
        replaced: ReplacedPrograms::of(&description.meta, clock::now()),
        command_due: None,
        input: None,
    };
    let mut exporter = options.metrics_socket.as_deref().map(Exporter::open).transpose()?;
    let over = calls::event()?;
    // The calls are made by this, the process's first thread: begin and end probes run in it, and expect `current` to
    // be in the kernel's list of processes, which other threads are not.
    std::thread::scope(|scope| {
        let mut begun = Ok(());
        if let Some(exporter) = &mut exporter {
            let text = || status::ask(name, &description.meta, device, status::Form::Prometheus).unwrap_or_default();
            let over = over.as_fd();
            begun = thread(scope, move || exporter.serve(over, text)).map(drop);
        }
        if has_user_stacks && begun.is_ok() {
            let (files, over) = (&files, over.as_fd());
            begun = thread(scope, move || tables::serve(files, &mut made, over)).map(drop);
        }
        let reading = match begun.and_then(|()| thread(scope, move || session.run())) {
            Ok(reading) => reading,
            Err(error) => {
                drop(SignalOnDrop(&over));
                return Err(Error::System { doing: "starting a thread", error });
            }
        };
        // From here on signals must wake the reading thread, even while a call arms thousands of probes.
        let blocked = BlockedSignals::new();
        caller.serve(device);
        drop(blocked);
        let end = reading.join();
        drop(SignalOnDrop(&over));
        end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Starts a thread. An error, not a panic: the caller's limits for processes or memory do not allow it.
fn thread<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    run: impl FnOnce() -> T + Send + 's,
) -> std::io::Result<ScopedJoinHandle<'s, T>> {
    std::thread::Builder::new().spawn_scoped(scope, run)
}

/// Whose stacks are taken, as far as is known.
fn ahead(options: &Options) -> KnownTarget<'_> {
    match (options.command.as_deref(), options.pid) {
        (Some(command), _) => KnownTarget::Command(command),
        (None, Some(pid)) => KnownTarget::Process(pid.unsigned_abs()),
        (None, None) => KnownTarget::Nothing,
    }
}

/// 4 MB for each CPU, so that a single handler can print a long report; less, down to 1 MB, with many CPUs.
fn default_ring_bytes(cpus: u32) -> u32 {
    const ALL: u32 = 64 << 20;
    (ALL / cpus.max(1)).clamp(1 << 20, 4 << 20)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// SPILE_START is running.
    Starting,
    Running,
    /// SPILE_QUIET is running.
    Quieting,
    /// Disarmed: the rings are read and written out, to make room for the output of end probes.
    Emptying,
    /// SPILE_STOP is running.
    Stopping,
    /// No more records come: the rings are read and written out.
    Draining,
}

struct Session<'s> {
    subject: &'s Subject<'s>,
    info: Info,
    options: &'s Options,
    signals: &'s Signals,
    calls: Calls<'s>,
    /// The progress of a long-running call.
    arming: Arming,
    reading: Reading<'s>,
    target: Target,
    output: Dispatcher,
    /// Reports POLLHUP when the privileged process has exited; `None` if there is none, or it has.
    root: Option<BorrowedFd<'s>>,
    phase: Phase,
    /// `-D`: the process that waits for the probes to be armed; then `None`.
    waiting: Option<Waiting>,
    ending: Ending,
    watch: Watch<'s>,
    expiry: Expiry,
    /// Programs that have probes.
    replaced: ReplacedPrograms,
    /// Earliest start of the command; `None`: it has started, or the probes are not armed.
    command_due: Option<u64>,
    /// Passes typed input to the script.
    input: Option<Input>,
}

impl Session<'_> {
    fn run(&mut self) -> Result<End, Error> {
        if self.options.verbose {
            summary::beginning(self.subject, &self.info, self.reading.count(), &mut self.output);
        }
        if self.reading.repeated() > 0 {
            self.warn(&format!(
                "the loader before was killed while it wrote: the next {} lines may be there already",
                self.reading.repeated()
            ));
        }
        match self.phase {
            Phase::Starting => self.calls.make(Device::start),
            _ => self.begin(),
        }
        loop {
            self.advance();
            if self.ending.leave && self.phase == Phase::Running && !self.ending.stop {
                return self.leave();
            }
            let is_empty = !self.leaves_records() && self.read_records();
            self.reading.mark(&self.output.sinks);
            self.write();
            match self.phase {
                Phase::Draining if is_empty => break,
                Phase::Emptying if is_empty && self.output.sinks.is_empty() => {
                    self.phase = Phase::Stopping;
                    self.reading.open(&self.output.sinks);
                    self.calls.make(Device::stop);
                }
                _ => {}
            }
            self.begin_command();
            // The records just read may have requested the end: nothing else may wake us.
            if !((self.ending.stop || self.ending.leave) && self.phase == Phase::Running) {
                // After disarming, a ring read to its end stays empty.
                let over = is_empty && matches!(self.phase, Phase::Emptying | Phase::Draining);
                self.wait(!over)?;
            }
        }
        self.summarize();
        self.flush()?;
        if self.output.sinks.dropped() > 0 {
            self.warn(&format!("{} lines that the script printed could not be written", self.output.sinks.dropped()));
            self.flush()?;
        }
        self.output.commands.finish();
        Ok(End { exit: self.ending.result()?, left: false })
    }

    /// When attaching to a detached session, read all of it from the first record on.
    fn leaves_records(&self) -> bool {
        self.ending.leave && self.phase == Phase::Starting && !self.ending.stop
    }

    /// The session continues without us. What has been read is written, the rest stays in the rings.
    fn leave(&mut self) -> Result<End, Error> {
        self.subject.device.keep(true, self.options.overwrite)?;
        self.output.count_unreadable();
        self.output.sinks.message("Disconnecting from systemtap module.");
        let line = format!("To reconnect, type \"spilerun -A {}\"", self.subject.name);
        self.output.sinks.message(&line);
        self.flush()?;
        self.output.commands.finish();
        Ok(End { exit: self.ending.exit, left: true })
    }

    /// Enters the next phase when a call has returned, or when the session is to stop.
    fn advance(&mut self) {
        if let Some(result) = self.calls.take_result() {
            if let Err(error) = result {
                self.ending.fail(error);
            }
            match self.phase {
                Phase::Starting => self.begin(),
                Phase::Quieting => self.phase = Phase::Emptying,
                _ => self.phase = Phase::Draining,
            }
            if matches!(self.phase, Phase::Emptying | Phase::Draining) {
                self.reading.close();
            }
        }
        if self.ending.stop && self.phase == Phase::Starting && self.arming.is_to_be_cancelled() {
            // Older modules do not have this call, and arm all probes. A module that has just armed them all ignores
            // it.
            let _ = self.subject.device.cancel();
        }
        if self.ending.stop && self.phase == Phase::Running {
            self.phase = Phase::Quieting;
            self.arming = Arming::new(clock::now());
            // A kernel module being loaded may be having its probes armed: that is cancelled, too.
            let _ = self.subject.device.cancel();
            notify::send(&["STOPPING=1"]);
            self.calls.make(Device::quiet);
        }
    }

    /// SPILE_START has returned.
    fn begin(&mut self) {
        self.phase = Phase::Running;
        if self.ending.has_failed() {
            return;
        }
        let target = &self.subject.description.meta.title;
        notify::send(&["READY=1", &format!("STATUS={target} is active")]);
        if let Some(waiting) = self.waiting.take() {
            self.output.sinks.leave_terminal();
            waiting.armed();
            if let Some(starter) = self.subject.starter {
                starter.leave_streams();
            }
        }
        self.input = Input::begin(
            self.subject.name,
            self.subject.description.meta.probes.iter().map(|probe| probe.point.as_str()),
        );
        // Flush the output of begin probes before the command prints.
        self.command_due = Some(clock::now().saturating_add(merge::HOLD_BACK));
        self.ending.set_deadline(self.options.timeout.map(|timeout| clock::now().saturating_add(timeout)));
    }

    /// Starts the command of -c when it is due. After exit() in a begin probe there are no probes to watch it, so it is
    /// not run.
    fn begin_command(&mut self) {
        if self.command_due.is_some_and(|due| self.reading.is_read_up_to(due))
            && self.output.sinks.is_empty()
            && !self.ending.stop
        {
            self.command_due = None;
            self.target.begin();
        }
    }

    /// Reads and dispatches records that are old enough; true if the rings are empty.
    fn read_records(&mut self) -> bool {
        // No running handler can write an older record any more.
        let all = matches!(self.phase, Phase::Emptying | Phase::Draining);
        let found = self.reading.read(all, &mut self.output);
        if found.failed {
            self.ending.exit = Exit::Failed;
        }
        if found.gate {
            self.expiry.update(self.subject.device);
        }
        self.ending.stop |= found.stop;
        // At the end, losses are reported anyway.
        if self.phase != Phase::Draining
            && let Some(text) = self.reading.new_losses()
        {
            self.warn(&text);
        }
        found.is_empty
    }

    /// Writes what the descriptors accept, releases it in the rings, and checks whether the output is closed.
    fn write(&mut self) {
        self.output.sinks.write();
        self.reading.release(&self.output.sinks);
        self.check_output();
    }

    fn check_output(&mut self) {
        let goes_on = self.options.keep && self.phase == Phase::Running && !self.ending.stop;
        match self.output.take_end() {
            None => return,
            // Unwritten records are still in the rings.
            Some(ended) if goes_on => {
                let why = match ended {
                    OutputError::Closed => "nobody reads the output any more".to_string(),
                    OutputError::Failed(error) => format!("the output cannot be written: {error}"),
                };
                let line =
                    format!("ERROR: {why}; the session goes on without a reader (spilerun -A {})", self.subject.name);
                self.output.sinks.message(&line);
                self.ending.exit = Exit::Output;
                self.ending.leave = true;
                return;
            }
            // As in any pipeline: the reader has closed the pipe.
            Some(OutputError::Closed) => {}
            Some(OutputError::Failed(error)) => {
                let line = format!("ERROR: the output cannot be written: {error}; the script is ended");
                self.output.sinks.message(&line);
                self.ending.exit = Exit::Output;
            }
        }
        self.ending.stop = true;
    }

    /// Waits for events and handles them. `expects_records`: some may come.
    fn wait(&mut self, expects_records: bool) -> Result<(), Error> {
        let wants_records = expects_records && !self.output.sinks.is_full() && !self.leaves_records();
        if wants_records {
            self.reading.announce_waiting();
        }
        let mut device_events = PollFlags::empty();
        // Records read but not yet written are still in the rings, and would wake us at once.
        device_events.set(PollFlags::POLLIN, wants_records && !self.reading.polls());
        device_events.set(PollFlags::POLLPRI, !self.ending.stop);

        let mut descriptors = vec![
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.calls.as_fd(), PollFlags::POLLIN),
        ];
        let fixed = descriptors.len();
        descriptors.extend(self.output.sinks.descriptors().map(|(descriptor, events)| PollFd::new(descriptor, events)));
        let sinks_end = descriptors.len();
        if !self.ending.stop
            && let Some(ended) = self.target.ended()
        {
            descriptors.push(PollFd::new(ended, PollFlags::POLLIN));
        }
        let target_at = descriptors.len();
        // It reports only POLLHUP, at exit.
        descriptors.extend(self.root.map(|root| PollFd::new(root, PollFlags::empty())));
        let target_end = descriptors.len();
        // A stopped session always reports POLLHUP, requested or not.
        if !device_events.is_empty()
            && let Some(events) = self.subject.device.events()
        {
            descriptors.push(PollFd::new(events, device_events));
        }
        match poll(&mut descriptors, self.poll_timeout(wants_records)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(Error::System { doing: "waiting", error: errno.into() }),
        }
        let found: Vec<PollFlags> =
            descriptors.iter().map(|descriptor| descriptor.revents().unwrap_or(PollFlags::empty())).collect();
        drop(descriptors);

        let found_in = |range: std::ops::Range<usize>| found.get(range).unwrap_or_default();
        let is_stopping = found_in(target_end..found.len()).iter().any(|events| events.contains(PollFlags::POLLPRI));
        let target_ended = found_in(sinks_end..target_at).iter().any(|events| !events.is_empty());
        if found_in(target_at..target_end).iter().any(|events| !events.is_empty()) {
            self.root = None;
            self.ending.stop = true;
            self.output.sinks.message("ERROR: the part with root's rights has been killed; the script is ended");
            self.ending.exit = Exit::Failed;
        }
        if target_ended && let Some(status) = self.target.status() {
            self.target_ended(status);
        }
        self.ending.stop |= is_stopping || target_ended;
        self.ending.check_deadline(clock::now());
        self.report_expiry();
        self.print_watch();
        self.report_replaced();
        self.report_arming();
        self.output.sinks.found(found_in(fixed..sinks_end));
        self.calls.look();
        self.handle_signals();
        Ok(())
    }

    /// Which progress messages are due: true for arming, false for disarming; `None` for neither.
    fn reports_arming(&self) -> Option<bool> {
        match self.phase {
            Phase::Starting if !self.ending.stop => Some(true),
            Phase::Quieting => Some(false),
            _ => None,
        }
    }

    fn report_arming(&mut self) {
        let Some(arms) = self.reports_arming().filter(|_| self.arming.is_due(clock::now())) else { return };
        let (armed, probes) = self.subject.device.info().map_or((0, 0), |info| (info.armed, info.probes));
        let left = self.subject.device.arming();
        if let Some(text) = self.arming.text(clock::now(), armed, probes, arms.then_some(left)) {
            self.output.sinks.message(&format!("NOTICE: {text}"));
        }
    }

    fn print_watch(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        match self.watch.look(clock::now()) {
            Ok(Some(text)) => {
                if self.watch.clears {
                    self.output.sinks.clear();
                }
                self.output.sinks.table(&text);
            }
            Ok(None) => {}
            Err(error) => self.warn(&error.to_string()),
        }
    }

    fn report_replaced(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        for path in self.replaced.look(clock::now()) {
            self.warn(&format!(
                "{path} has been replaced: processes that begin from now on run the new file, which has no probes; start the session again for them"
            ));
        }
    }

    fn report_expiry(&mut self) {
        if self.expiry.check(self.subject.device) {
            let line = format!("REWRITE: {} has expired: nothing is rewritten any more", self.subject.name);
            self.output.sinks.message(&line);
        }
    }

    fn poll_timeout(&self, wants_records: bool) -> PollTimeout {
        let now = clock::now();
        let until_deadline = self.ending.until_deadline(now);
        // Without room for their text, do not wait for records.
        let until_due = (self.reading.polls() && wants_records).then(|| self.reading.until_next_look());
        let until_command = self
            .command_due
            .filter(|_| !self.ending.stop && self.output.sinks.is_empty())
            .map(|due| due.saturating_sub(now));
        let until_watch = Some(()).filter(|()| self.phase == Phase::Running).and_then(|()| self.watch.until_next(now));
        let until_expiry = self.expiry.until_check();
        let until_programs =
            Some(()).filter(|()| self.phase == Phase::Running).and_then(|()| self.replaced.until_next(now));
        let until_report = self.reports_arming().map(|_| self.arming.until_next(now));
        let least = [until_deadline, until_due, until_command, until_expiry, until_watch, until_report, until_programs]
            .into_iter()
            .flatten()
            .min();
        least.map_or(PollTimeout::NONE, |ns| {
            PollTimeout::try_from(ns.div_ceil(NS_PER_MS).min(i32::MAX as u64)).unwrap_or(PollTimeout::MAX)
        })
    }

    fn handle_signals(&mut self) {
        let received = self.signals.read();
        let is_impatient = self.ending.count_signals(received.stops);
        if received.stops > 0 {
            self.reading.interrupt(&self.output.sinks);
        }
        self.ending.leave |= received.detach;
        if received.rotate {
            self.output.sinks.rotate();
        }
        if is_impatient && self.output.sinks.give_up() {
            self.output.sinks.message("NOTICE: interrupted twice: what was not yet written is dropped");
        }
        if !received.child {
            return;
        }
        self.output.commands.reap();
        if let Some(status) = self.target.reap() {
            self.target_ended(status);
        }
    }

    /// Handles the exit of the command of -c.
    fn target_ended(&mut self, status: Status) {
        self.ending.stop = true;
        match status {
            Status::Exited(0) => return,
            Status::Exited(status) => self.warn(&format!("Child process exited with status {status}")),
            Status::Killed(signal) => {
                self.warn(&format!("Child process exited with signal {} ({})", signal as i32, signal.as_str()));
            }
        }
        self.ending.exit = Exit::Failed;
    }

    fn warn(&mut self, text: &str) {
        self.output.warn(text);
    }

    /// Everything has been read: reports losses, errors and counts.
    fn summarize(&mut self) {
        let losses = self.reading.losses();
        if losses.records() > 0 {
            self.warn(&losses.text(self.info.ring_bytes, true));
        }
        if let Some(line) = self.output.repeated_warnings() {
            self.warn(&line);
        }
        self.output.count_unreadable();
        summary::errors(self.subject, &mut self.output, &mut self.ending);
        summary::rewrites(self.subject, self.options, &mut self.output);
        if let Err(error) = self.watch.write_metrics() {
            self.warn(&error.to_string());
        }
        if let Err(error) = summary::probes(self.subject, self.options, &mut self.output) {
            self.ending.fail(error);
        }
    }

    /// Waits until everything is written, or another signal arrives.
    fn flush(&mut self) -> Result<(), Error> {
        self.phase = Phase::Draining;
        self.reading.release_held_back();
        self.ending.set_deadline(None);
        self.ending.stop = true;
        loop {
            self.write();
            if self.output.sinks.is_empty() {
                return Ok(());
            }
            self.wait(false)?;
        }
    }
}
