// SPDX-License-Identifier: GPL-2.0-or-later

//! The loop of a session: reads the rings, writes the output, and takes the session from phase to phase.

use nix::poll::PollFlags;
use spile_abi::device::{Info, UNARMED};

use crate::error::{Error, Exit};
use crate::host::clock;
use crate::host::input::Input;
use crate::host::name::name;
use crate::host::notify;
use crate::module::device::Device;
use crate::options::Options;
use crate::output::OutputError;
use crate::records::merge;
use crate::report::account;
use crate::session::arming::Arming;
use crate::session::calls::Calls;
use crate::session::checks::Checks;
use crate::session::command::Status;
use crate::session::dispatch::Dispatcher;
use crate::session::ending::Ending;
use crate::session::events::{Events, Sources};
use crate::session::phase::{Phase, Progress};
use crate::session::reading::Reading;
use crate::session::summary;
use crate::session::target::Target;
use crate::session::{End, Subject};

/// Probes whose counters are recorded while the session runs.
const MOST_COUNTED: usize = 1000;

/// A running session.
pub struct Session<'s> {
    /// Its module.
    pub subject: &'s Subject<'s>,
    /// The options of the command line.
    pub options: &'s Options,
    /// [`Phase::starting`] at first.
    pub phase: Phase,
    /// Calls of the module that may take long.
    pub calls: Calls<'s>,
    /// What wakes it.
    pub events: Events<'s>,
    /// The rings.
    pub reading: Reading<'s>,
    /// Where records go.
    pub output: Dispatcher,
    /// Whether and why it ends.
    pub ending: Ending,
    /// The command or process of `-c` or `-x`.
    pub target: Target,
    /// Periodic work.
    pub checks: Checks<'s>,
    /// Passes typed input to the script while the probes are armed.
    pub input: Option<Input>,
}

impl Session<'_> {
    /// Runs the session until it ends or is left. `info`: of the module before it.
    pub fn run(&mut self, info: &Info) -> Result<End, Error> {
        if self.options.verbose {
            summary::beginning(self.subject, info, self.reading.count(), &mut self.output);
        }
        if self.reading.repeated() > 0 {
            self.warn(&format!(
                "the previous loader was killed while it was writing: the next {} lines may be repeated",
                self.reading.repeated()
            ));
        }
        if self.subject.attached && info.flags & UNARMED != 0 {
            self.output.sinks.message(
                "ERROR: the previous loader was killed while it armed the probes, so no handler but those of begin probes has run: \
                 start the script again",
            );
            self.ending.exit = Exit::Failed;
        }
        if self.subject.attached {
            self.begin();
        } else {
            self.calls.make(Device::start);
        }
        loop {
            self.advance();
            if self.ending.leave && self.phase.is_running() && !self.ending.stop {
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
            if !((self.ending.stop || self.ending.leave) && self.phase.is_running()) {
                // After disarming, a ring read to its end stays empty.
                let over = is_empty && self.phase.is_disarmed();
                self.wait(!over)?;
            }
        }
        self.summarize(info.ring_bytes);
        self.end_recording();
        self.flush()?;
        if self.output.sinks.dropped() > 0 {
            self.warn(&format!("{} lines that the script printed could not be written", self.output.sinks.dropped()));
            self.flush()?;
        }
        self.output.commands.finish();
        // All has been written: the session is not kept for another reader. A module that is gone ignores it.
        let _ = self.subject.device.keep(false, false);
        Ok(End { exit: self.ending.result()?, left: false, interrupted: self.ending.is_interrupted() })
    }

    /// When attaching to a detached session, read all of it from the first record on.
    fn leaves_records(&self) -> bool {
        self.ending.leave && self.phase.is_starting() && !self.ending.stop
    }

    /// The session continues without us. What has been read is written, the rest stays in the rings.
    fn leave(&mut self) -> Result<End, Error> {
        self.subject.device.keep(true, self.options.overwrite)?;
        // Nobody waits for what begin probes print (-L with -c).
        if self.phase.command_due().is_some() {
            self.target.begin();
        }
        self.output.count_unreadable();
        self.output.sinks.message("Disconnecting from systemtap module.");
        let line = format!("To reconnect, type \"{} -A {}\"", name(), self.subject.name);
        self.output.sinks.message(&line);
        self.flush()?;
        self.output.commands.finish();
        Ok(End { exit: self.ending.exit, left: true, interrupted: false })
    }

    /// Enters the next phase when a call has returned, or when the session is to stop.
    fn advance(&mut self) {
        if let Some(result) = self.calls.take_result() {
            if let Err(error) = result {
                self.ending.fail(error);
            }
            match self.phase {
                Phase::Starting { .. } => self.begin(),
                Phase::Quieting { .. } => self.phase = Phase::Emptying,
                _ => self.phase = Phase::Draining,
            }
            if self.phase.is_disarmed() {
                self.reading.close();
            }
        }
        if self.ending.stop
            && let Phase::Starting { arming, .. } = &mut self.phase
            && arming.is_to_be_cancelled()
        {
            // Older modules do not have this call, and arm all probes. A module that has just armed them all ignores
            // it.
            let _ = self.subject.device.cancel();
        }
        if self.ending.stop && self.phase.is_running() {
            self.phase = Phase::Quieting { disarming: Arming::new(clock::now()) };
            // A kernel module being loaded may be having its probes armed: that is cancelled, too.
            let _ = self.subject.device.cancel();
            notify::send(&["STOPPING=1"]);
            self.calls.make(Device::quiet);
        }
    }

    /// SPILE_START has returned.
    fn begin(&mut self) {
        let waiting = match std::mem::replace(&mut self.phase, Phase::Running { command_due: None }) {
            Phase::Starting { waiting, .. } => waiting,
            _ => None,
        };
        if self.ending.has_failed() {
            return;
        }
        let target = &self.subject.description.meta.title;
        notify::send(&["READY=1", &format!("STATUS={target} is active")]);
        if let Some(waiting) = waiting {
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
        self.phase = Phase::Running { command_due: Some(clock::now().saturating_add(merge::HOLD_BACK)) };
        self.ending.set_deadline(self.options.timeout.map(|timeout| clock::now().saturating_add(timeout)));
    }

    /// Starts the command of -c when it is due. After exit() in a begin probe there are no probes to watch it, so it is
    /// not run.
    fn begin_command(&mut self) {
        if self.phase.command_due().is_some_and(|due| self.reading.is_read_up_to(due))
            && self.output.sinks.is_empty()
            && !self.ending.stop
        {
            self.phase = Phase::Running { command_due: None };
            self.target.begin();
        }
    }

    /// Reads and dispatches records that are old enough; true if the rings are empty.
    fn read_records(&mut self) -> bool {
        // No running handler can write an older record any more.
        let found = self.reading.read(self.phase.is_disarmed(), &mut self.output);
        if found.failed {
            self.ending.exit = Exit::Failed;
        }
        if found.gate {
            self.checks.gate_changed();
        }
        self.ending.stop |= found.stop;
        // At the end, losses are reported anyway.
        if !matches!(self.phase, Phase::Draining)
            && let Some(text) = self.reading.new_losses()
        {
            self.warn(&text);
        }
        found.is_empty
    }

    /// Writes as much as the descriptors accept, releases it in the rings, and checks whether the output is closed.
    fn write(&mut self) {
        self.output.sinks.write();
        self.reading.release(&self.output.sinks);
        self.check_output();
    }

    fn check_output(&mut self) {
        let goes_on = self.options.keep && self.phase.is_running() && !self.ending.stop;
        match self.output.take_end() {
            None => return,
            // Unwritten records are still in the rings.
            Some(ended) if goes_on => {
                let why = match ended {
                    OutputError::Closed => "nobody reads the output any more".to_string(),
                    OutputError::Failed(error) => format!("the output cannot be written: {error}"),
                };
                let line =
                    format!("ERROR: {why}; the session continues without a reader (spilerun -A {})", self.subject.name);
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

        let timeout = self.timeout(wants_records);
        let sources = Sources {
            sinks: &self.output.sinks,
            target: self.target.ended().filter(|_| !self.ending.stop),
            device: self.subject.device.events().map(|events| (events, device_events)),
        };
        let ready = self.events.wait(&self.calls, &sources, timeout)?;
        if ready.root_ended {
            self.ending.stop = true;
            self.output.sinks.message("ERROR: the part with root's rights has been killed; the script is ended");
            self.ending.exit = Exit::Failed;
        }
        if ready.target_ended
            && let Some(status) = self.target.status()
        {
            self.target_ended(status);
        }
        self.ending.stop |= ready.is_stopping || ready.target_ended;
        self.ending.check_deadline(clock::now());
        self.checks.run(self.phase.is_running(), &mut self.output);
        self.report_progress();
        self.record_counts();
        self.output.sinks.found(&ready.sinks);
        self.calls.look();
        self.handle_signals();
        self.answer_signal();
        Ok(())
    }

    /// Says why an interrupted session has not ended yet.
    fn answer_signal(&mut self) {
        if !self.ending.takes_answer(clock::now()) {
            return;
        }
        let waits = match self.phase {
            Phase::Starting { .. } => "waiting for a begin probe",
            Phase::Quieting { .. } => {
                "no handler runs any more; waiting for what the kernel is disarming at the moment"
            }
            Phase::Stopping => "waiting for an end probe",
            _ => return,
        };
        self.output.sinks.message(&format!("NOTICE: interrupted: {waits}"));
    }

    /// Reports the progress of arming or disarming, if that is due.
    fn report_progress(&mut self) {
        let now = clock::now();
        let progress = self.phase.progress(self.ending.stop).filter(|progress| progress.call.is_due(now));
        let Some(Progress { call, arms }) = progress else { return };
        let (armed, probes) = self.subject.device.info().map_or((0, 0), |info| (info.armed, info.probes));
        let left = self.subject.device.arming();
        if let Some(text) = call.text(clock::now(), armed, probes, arms.then_some(left)) {
            self.output.sinks.message(&format!("NOTICE: {text}"));
        }
    }

    /// Nanoseconds until something is due; `None`: nothing is.
    fn timeout(&mut self, wants_records: bool) -> Option<u64> {
        let now = clock::now();
        let deadline = self.ending.until_deadline(now);
        // Without room for their text, do not wait for records.
        let records = (self.reading.polls() && wants_records).then(|| self.reading.until_next_look());
        let command = self
            .phase
            .command_due()
            .filter(|_| !self.ending.stop && self.output.sinks.is_empty())
            .map(|due| due.saturating_sub(now));
        let checks = self.checks.until_next(now, self.phase.is_running());
        let progress = self.phase.progress(self.ending.stop).map(|progress| progress.call.until_next(now));
        let answer = self.ending.until_answer(now);
        let is_counted = self.phase.is_running() && self.subject.description.meta.probes.len() <= MOST_COUNTED;
        let counts = self.reading.until_counts().filter(|_| is_counted);
        [deadline, records, command, checks, progress, answer, counts].into_iter().flatten().min()
    }

    fn handle_signals(&mut self) {
        let received = self.events.signals.read();
        let is_impatient = self.ending.count_signals(received.stops, clock::now());
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
    fn summarize(&mut self, ring_bytes: u32) {
        let losses = self.reading.losses();
        if losses.records() > 0 {
            self.warn(&losses.text(ring_bytes, true));
        }
        self.output.count_repeated_warnings();
        self.output.count_unreadable();
        summary::errors(self.subject, &mut self.output, &mut self.ending);
        summary::rewrites(self.subject, self.options, &mut self.output);
        self.checks.finish(&mut self.output);
        if let Err(error) = summary::probes(self.subject, self.options, &mut self.output) {
            self.ending.fail(error);
        }
    }

    /// Records the counters of the probes, if that is due. Of thousands of probes they are recorded only at the end.
    fn record_counts(&mut self) {
        let is_due = self.phase.is_running() && self.reading.until_counts() == Some(0);
        if is_due && self.subject.description.meta.probes.len() <= MOST_COUNTED {
            let json = self.counters_as_json();
            self.reading.record_counts(json.as_deref(), &mut self.output);
        }
    }

    /// None: the module does not answer. A recording then lacks them.
    fn counters_as_json(&self) -> Option<String> {
        let probes = &self.subject.description.meta.probes;
        let counters = self.subject.device.counters(probes.len() as u32).ok()?;
        Some(account::json(probes, &counters))
    }

    /// The counters of all probes are part of a recording. As text, those of thousands take seconds on a slow machine.
    fn end_recording(&mut self) {
        if !self.reading.is_recorded() {
            return;
        }
        let mut about = Vec::new();
        about.extend(self.counters_as_json().map(|stats| ("stats", stats)));
        if let Ok(info) = self.subject.device.info() {
            about.extend([("skipped", info.skipped.to_string()), ("errors", info.errors.to_string())]);
        }
        self.reading.end_recording(self.ending.exit as i32, &about, &mut self.output);
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
