// SPDX-License-Identifier: GPL-2.0-or-later

//! Periodic output during a session: the file of `--metrics`, and with `-M` the table of `spilerun status`.

use std::io::IsTerminal;
use std::path::Path;

use spile_abi::meta::Meta;

use crate::error::Error;
use crate::module::device::Device;
use crate::options::Options;
use crate::report::status::{self, Form};

/// Interval of writing --metrics, in nanoseconds.
const METRICS_INTERVAL: u64 = 10_000_000_000;

/// A periodic event by [`crate::host::clock`], in nanoseconds.
#[derive(Debug)]
struct Periodic {
    /// `None`: never, or not again.
    at: Option<u64>,
    interval: u64,
}

impl Periodic {
    fn every(interval: Option<u64>) -> Periodic {
        Periodic { at: interval.map(|_| 0), interval: interval.unwrap_or(0) }
    }

    /// Whether it is due; if so, schedules the next.
    fn take(&mut self, now: u64) -> bool {
        let is_due = self.at.is_some_and(|at| now >= at);
        if is_due {
            self.at = Some(now.saturating_add(self.interval));
        }
        is_due
    }
}

/// Periodic output, and when it is due.
pub struct Watch<'s> {
    name: &'s str,
    meta: &'s Meta,
    device: &'s Device,
    file: Option<&'s Path>,
    metrics: Periodic,
    table: Periodic,
    /// The table goes to a terminal, which is cleared before.
    pub clears: bool,
}

impl<'s> Watch<'s> {
    /// Everything that the options request is due at once.
    pub fn new(name: &'s str, meta: &'s Meta, device: &'s Device, options: &'s Options) -> Watch<'s> {
        Watch {
            name,
            meta,
            device,
            file: options.metrics.as_deref(),
            metrics: Periodic::every(options.metrics.as_ref().map(|_| METRICS_INTERVAL)),
            table: Periodic::every(options.monitor),
            clears: !options.daemon && std::io::stderr().is_terminal(),
        }
    }

    /// Nanoseconds until something is due; `None`: never.
    pub fn until_next(&self, now: u64) -> Option<u64> {
        [self.metrics.at, self.table.at].into_iter().flatten().min().map(|at| at.saturating_sub(now))
    }

    /// Writes the metrics and table that are due, and returns the text to print. A file that cannot be written is
    /// reported once and does not end the session.
    pub fn look(&mut self, now: u64) -> Result<Option<String>, Error> {
        if self.metrics.take(now) {
            self.write_metrics()?;
        }
        if !self.table.take(now) {
            return Ok(None);
        }
        status::ask(self.name, self.meta, self.device, Form::Table).map(Some)
    }

    /// Writes the file for the last time.
    pub fn write_metrics(&mut self) -> Result<(), Error> {
        let Some(path) = self.file.filter(|_| self.metrics.at.is_some()) else { return Ok(()) };
        let written = status::write_metrics(self.name, self.meta, self.device, path);
        if written.is_err() {
            self.metrics.at = None;
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_due_once_in_an_interval() {
        let mut due = Periodic::every(Some(10));
        assert!(due.take(5) && !due.take(14) && due.take(15));
        assert!(!Periodic::every(None).take(u64::MAX));
    }
}
