// SPDX-License-Identifier: GPL-2.0-or-later

//! Periodic work of a session: metrics and tables, the end of rewriting, programs that have been replaced.

use crate::host::clock;
use crate::options::Options;
use crate::session::Subject;
use crate::session::dispatch::Dispatcher;
use crate::session::expiry::Expiry;
use crate::session::replaced::ReplacedPrograms;
use crate::session::watch::Watch;

/// The periodic checks of a session.
pub struct Checks<'s> {
    subject: &'s Subject<'s>,
    watch: Watch<'s>,
    expiry: Expiry,
    /// Programs that have probes.
    replaced: ReplacedPrograms,
}

impl<'s> Checks<'s> {
    /// For a session that begins now.
    pub fn new(subject: &'s Subject<'s>, options: &'s Options) -> Checks<'s> {
        let meta = &subject.description.meta;
        Checks {
            subject,
            watch: Watch::new(subject.name, meta, subject.device, options),
            expiry: Expiry::of(subject.device),
            replaced: ReplacedPrograms::of(meta, clock::now()),
        }
    }

    /// The gate for the script's writes may have changed.
    pub fn gate_changed(&mut self) {
        self.expiry.update(self.subject.device);
    }

    /// Makes the checks that are due. `is_running`: the probes are armed.
    pub fn run(&mut self, is_running: bool, output: &mut Dispatcher) {
        if self.expiry.check(self.subject.device) {
            let line = format!("REWRITE: {} has expired: nothing is rewritten any more", self.subject.name);
            output.sinks.message(&line);
        }
        if is_running {
            self.print_watch(output);
            self.report_replaced(output);
        }
    }

    /// Nanoseconds until [`Checks::run`] has something to do; `None`: never.
    pub fn until_next(&self, now: u64, is_running: bool) -> Option<u64> {
        let running = [self.watch.until_next(now), self.replaced.until_next(now)];
        let running = running.into_iter().flatten().filter(|_| is_running);
        running.chain(self.expiry.until_check()).min()
    }

    /// Writes the metrics for the last time.
    pub fn finish(&mut self, output: &mut Dispatcher) {
        if let Err(error) = self.watch.write_metrics() {
            output.warn(&error.to_string());
        }
    }

    fn print_watch(&mut self, output: &mut Dispatcher) {
        match self.watch.look(clock::now()) {
            Ok(Some(text)) => {
                if self.watch.clears {
                    output.sinks.clear();
                }
                output.sinks.table(&text);
            }
            Ok(None) => {}
            Err(error) => output.warn(&error.to_string()),
        }
    }

    fn report_replaced(&mut self, output: &mut Dispatcher) {
        for path in self.replaced.look(clock::now()) {
            output.warn(&format!(
                "{path} has been replaced: processes that begin from now on run the new file, which has no probes; start the session again for them"
            ));
        }
    }
}
