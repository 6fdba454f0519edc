// SPDX-License-Identifier: GPL-2.0-or-later

//! The rings of a session: reads records that are old enough, and releases those written out.

use spile_abi::device::Info;

use crate::host::clock;
use crate::module::device::{Device, MappedRing};
use crate::options::Options;
use crate::output::progress::{self, Progress};
use crate::output::{OutputError, Sinks};
use crate::records::merge::{self, MergePass, Next};
use crate::records::record::{Decoded, Reader};
use crate::records::recording::write::Recorder;
use crate::records::ring::Ring;
use crate::report::Losses;
use crate::session::dispatch::{Dispatcher, Effect};

/// Nanoseconds between two reports of losses.
const LOSS_INTERVAL: u64 = 1_000_000_000;
/// Nanoseconds between two times when a recording gets the counters of the probes.
const COUNTS_INTERVAL: u64 = 1_000_000_000;
/// Records read before signals and descriptors are checked again.
const MAX_BATCH: usize = 4096;
/// Records, or kilobytes of them, between two checks of the amount of buffered output and of the time.
const CHECK_INTERVAL: usize = 32;
/// Nanoseconds of a pass: records may be few and each take long, as stacks whose names the module is asked for.
const MAX_PASS: u64 = 100_000_000;
/// Nanoseconds for the rest of the rings at the end of the session, if a ring was damaged or the output is closed: a
/// record of a few bytes may be printed as megabytes.
const MAX_VAIN_END: u64 = 500_000_000;
/// After an interruption, bytes of text that are printed in any case, and bytes for each byte of records beyond that. A
/// field width can turn a record of a few bytes into megabytes, and a ring into terabytes, for which no user would
/// wait.
const MAX_WIDE_END: u64 = 256 << 20;
const USUAL_WIDTH: u64 = 64;

impl AsMut<Ring> for MappedRing {
    fn as_mut(&mut self) -> &mut Ring {
        &mut self.ring
    }
}

/// The result of [`Reading::read`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadResult {
    /// The rings are empty.
    pub is_empty: bool,
    /// A record reports a failure, or is invalid.
    pub failed: bool,
    /// The gate for the script's writes may have changed.
    pub gate: bool,
    /// The script called exit().
    pub stop: bool,
}

/// Bytes of records read, and of text printed, up to some time.
#[derive(Clone, Copy, Debug)]
struct ByteCounts {
    read: u64,
    printed: u64,
}

impl ByteCounts {
    fn of(rings: &[MappedRing], sinks: &Sinks) -> ByteCounts {
        let read = rings.iter().map(|mapped| mapped.ring.read_up_to()).fold(0, u64::wrapping_add);
        ByteCounts { read, printed: sinks.pushed().fold(0, u64::wrapping_add) }
    }

    /// More text than records usually make has been printed since the earlier ones.
    fn is_too_wide_since(self, before: ByteCounts) -> bool {
        let printed = self.printed.wrapping_sub(before.printed);
        let read = self.read.wrapping_sub(before.read);
        printed > MAX_WIDE_END && printed / USUAL_WIDTH > read
    }
}

/// The rings, and how far they are read.
pub struct Reading<'s> {
    rings: Vec<MappedRing>,
    reader: Reader<'s>,
    progress: Progress,
    ring_bytes: u32,
    /// All records go to one output. Else each CPU has its file.
    one_stream: bool,
    /// A record in a ring is not yet old enough.
    held_back: bool,
    /// Time of the last pass that read everything old enough.
    read_up_to: u64,
    /// The time when the module had stopped writing.
    closed: Option<u64>,
    /// The counts when a signal requested the end, or when the module began to write again after that.
    interrupted: Option<ByteCounts>,
    losses: Losses,
    /// Time of the last report of losses; 0: none.
    losses_reported: u64,
    repeated: u64,
    payload: Vec<u8>,
    /// The output is a recording, not text.
    recorder: Option<Recorder<'s>>,
    /// When it last got the counters of the probes.
    counted: u64,
}

impl<'s> Reading<'s> {
    /// Maps the rings of a session after set-up.
    pub fn new(
        device: &Device,
        info: &Info,
        reader: Reader<'s>,
        options: &Options,
        recorder: Option<Recorder<'s>>,
    ) -> Result<Reading<'s>, crate::error::Error> {
        Ok(Reading {
            rings: device.map_rings(info)?,
            reader,
            progress: Progress::default(),
            ring_bytes: info.ring_bytes,
            one_stream: !options.bulk && options.rotation.is_none() && recorder.is_none(),
            held_back: false,
            read_up_to: 0,
            closed: None,
            interrupted: None,
            losses: Losses::default(),
            losses_reported: 0,
            repeated: 0,
            payload: Vec::new(),
            recorder,
            counted: 0,
        })
    }

    /// Number of rings.
    pub fn count(&self) -> usize {
        self.rings.len()
    }

    /// Recovers from a killed loader: truncates output beyond what it released.
    pub fn recover(&mut self, sinks: &mut Sinks) {
        self.repeated = progress::recover(&mut self.rings, sinks);
    }

    /// Records that may be printed twice, because the previous loader was killed.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// The module has stopped writing: everything is there.
    pub fn close(&mut self) {
        self.closed = Some(clock::now());
        self.rings.iter_mut().for_each(|mapped| mapped.ring.close());
    }

    /// The module writes again, by its end probes.
    pub fn open(&mut self, sinks: &Sinks) {
        self.closed = None;
        self.interrupted = self.interrupted.map(|_| ByteCounts::of(&self.rings, sinks));
        self.rings.iter_mut().for_each(|mapped| mapped.ring.open());
    }

    /// A signal has asked for the end.
    pub fn interrupt(&mut self, sinks: &Sinks) {
        self.interrupted.get_or_insert_with(|| ByteCounts::of(&self.rings, sinks));
    }

    /// After an interruption, the rest of the rings gave far more text than usual.
    fn is_too_wide(&self, sinks: &Sinks) -> bool {
        let since = self.interrupted.filter(|_| self.closed.is_some());
        since.is_some_and(|before| ByteCounts::of(&self.rings, sinks).is_too_wide_since(before))
    }

    /// Drops everything in the rings.
    fn drop_all(&mut self, dispatcher: &mut Dispatcher) -> ReadResult {
        let is_too_wide = self.is_too_wide(&dispatcher.sinks);
        let left = self.rings.iter_mut().map(|mapped| {
            mapped.ring.refresh();
            mapped.ring.skip()
        });
        let bytes = left.fold(0, u64::saturating_add);
        let failed = bytes > 0 && dispatcher.has_unreadable();
        if failed {
            dispatcher.sinks.message(&format!("ERROR: {bytes} bytes of damaged buffers were not read"));
        } else if bytes > 0 && matches!(dispatcher.sinks.ended(), Some(OutputError::Failed(_))) {
            dispatcher.warn(&format!("{bytes} bytes of records were not read: nothing can be written any more"));
        } else if bytes > 0 && is_too_wide {
            dispatcher.warn(&format!(
                "interrupted: {bytes} bytes of records were not read, as {} MB of text were made of the last ones",
                MAX_WIDE_END >> 20
            ));
        }
        ReadResult { is_empty: true, failed, ..ReadResult::default() }
    }

    /// The rest of the rings has been read for long enough, and is of no use.
    fn is_futile(&self, now: u64, dispatcher: &Dispatcher) -> bool {
        let is_over = self.closed.is_some_and(|closed| now.saturating_sub(closed) > MAX_VAIN_END);
        is_over && (dispatcher.has_unreadable() || dispatcher.sinks.ended().is_some())
    }

    /// Reads and dispatches records that are old enough. `all`: no running handler can write an older record.
    pub fn read(&mut self, all: bool, dispatcher: &mut Dispatcher) -> ReadResult {
        let now = clock::now();
        if self.is_futile(now, dispatcher) || self.is_too_wide(&dispatcher.sinks) {
            return self.drop_all(dispatcher);
        }
        // After reading the clock: the records to read are from before it.
        if let Some(mapped) = self.rings.first() {
            self.reader.changed(mapped.ring.changes());
        }
        let mut look = MergePass::new(&mut self.rings, now, all);
        let mut found = ReadResult::default();
        let mut taken = 0;
        self.held_back = false;
        let mut unchecked = CHECK_INTERVAL;
        while taken < MAX_BATCH {
            if unchecked >= CHECK_INTERVAL {
                unchecked = 0;
                if dispatcher.sinks.is_full() || clock::now().saturating_sub(now) > MAX_PASS {
                    break;
                }
            }
            if self.one_stream
                && let Some((ring, below)) = look.current()
            {
                let count = self.reader.read_quickly(ring, below, MAX_BATCH - taken);
                (taken, unchecked) = (taken + count, unchecked + count);
            }
            match look.next(&mut self.payload) {
                Next::Record(record) => {
                    self.reader.printed(|text| dispatcher.sinks.print(text));
                    dispatcher.sinks.select_cpu(u32::from(record.cpu));
                    unchecked += self.payload.len() >> 10;
                    let mut decoded = self.reader.read(&record, &self.payload);
                    if let Decoded::Print { text, .. } = &decoded {
                        unchecked += text.len() >> 16;
                    }
                    if let Some(recorder) = &mut self.recorder {
                        recorder.push(&record, &self.payload);
                        // It was decoded for the names in it, and for its other effects.
                        match &mut decoded {
                            Decoded::Print { .. } => decoded = Decoded::Task,
                            Decoded::Damaged { text, .. } => *text = b"",
                            _ => {}
                        }
                        if recorder.is_full() {
                            recorder.flush(|frames| dispatcher.sinks.print(frames));
                        }
                    }
                    match dispatcher.dispatch(decoded) {
                        Effect::Nothing => {}
                        Effect::Error => found.failed = true,
                        Effect::Gate => found.gate = true,
                        Effect::Stop => found.stop = true,
                    }
                }
                Next::RingError(error) => {
                    dispatcher.report_unreadable(&format!(
                        "the buffer of CPU {} held data that is not a record: {} bytes of it are lost",
                        error.cpu, error.bytes
                    ));
                    found.failed = true;
                }
                Next::Wait(is_younger) => {
                    self.held_back = is_younger;
                    self.read_up_to = now;
                    found.is_empty = !is_younger;
                    break;
                }
            }
            (taken, unchecked) = (taken + 1, unchecked + 1);
            if self.reader.takes_asked() {
                unchecked = CHECK_INTERVAL;
            }
        }
        self.reader.printed(|text| dispatcher.sinks.print(text));
        self.record(dispatcher, |_| {});
        found
    }

    /// Writes what has been recorded, with what `last` adds.
    fn record(&mut self, dispatcher: &mut Dispatcher, last: impl FnOnce(&mut Recorder<'_>)) {
        let losses = self.losses();
        if let Some(recorder) = &mut self.recorder {
            recorder.lost(&losses.cpus);
            last(recorder);
            recorder.flush(|frames| dispatcher.sinks.print(frames));
        }
    }

    /// The output is a recording.
    pub fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// Nanoseconds until the counters of the probes are to be recorded again; `None`: never.
    pub fn until_counts(&self) -> Option<u64> {
        let since = clock::now().saturating_sub(self.counted);
        self.is_recorded().then(|| COUNTS_INTERVAL.saturating_sub(since))
    }

    /// Records the counters of the probes, if they are known.
    pub fn record_counts(&mut self, json: Option<&str>, dispatcher: &mut Dispatcher) {
        self.counted = clock::now();
        if let Some(json) = json {
            self.record(dispatcher, |recorder| recorder.counts(json));
        }
    }

    /// Ends the recording, if there is one.
    pub fn end_recording(&mut self, status: i32, about: &[(&str, String)], dispatcher: &mut Dispatcher) {
        self.record(dispatcher, |recorder| recorder.end(status, about));
    }

    /// No record is held back any more.
    pub fn release_held_back(&mut self) {
        self.held_back = false;
    }

    /// Everything older than this has been read.
    pub fn is_read_up_to(&self, time: u64) -> bool {
        self.read_up_to >= time
    }

    /// Everything read so far is in the sinks.
    pub fn mark(&mut self, sinks: &Sinks) {
        self.progress.mark(&mut self.rings, sinks);
    }

    /// Releases the records that the sinks have written.
    pub fn release(&mut self, sinks: &Sinks) {
        self.progress.release(&mut self.rings, sinks);
    }

    /// Records lost for lack of space, by CPU.
    pub fn losses(&self) -> Losses {
        let cpus = self.rings.iter().map(|mapped| {
            let (records, bytes) = mapped.ring.lost();
            (mapped.ring.cpu, records, bytes)
        });
        Losses { cpus: cpus.filter(|(_, records, _)| *records > 0).collect() }
    }

    /// The message about new losses, at most once in [`LOSS_INTERVAL`] nanoseconds.
    pub fn new_losses(&mut self) -> Option<String> {
        let losses = self.losses();
        let now = clock::now();
        if losses == self.losses
            || (self.losses_reported > 0 && now.saturating_sub(self.losses_reported) <= LOSS_INTERVAL)
        {
            return None;
        }
        self.losses_reported = now;
        let text = losses.text(self.ring_bytes, false);
        self.losses = losses;
        Some(text)
    }

    /// The module wakes a reader waiting for records.
    pub fn announce_waiting(&self) {
        self.rings.iter().for_each(|mapped| mapped.ring.announce_waiting());
    }

    /// The module cannot wake readers: they have to poll.
    pub fn polls(&self) -> bool {
        self.held_back || self.progress.is_behind()
    }

    /// Nanoseconds. Records held back are read again together with later ones: not before a waiting reader would be
    /// woken, so that each pass has much to do; but as soon as they may be printed if rings fill quickly.
    pub fn until_next_look(&self) -> u64 {
        /// The same as SPILE_RING_WAKE_NS of the runtime.
        const GATHER: u64 = 10_000_000;
        match self.rings.iter().any(|mapped| mapped.ring.is_filling_fast()) {
            true => merge::HOLD_BACK,
            false => GATHER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_text_of_few_records_is_too_wide() {
        let before = ByteCounts { read: u64::MAX - 10, printed: 1000 };
        let after =
            |read: u64, printed: u64| ByteCounts { read: before.read.wrapping_add(read), printed: 1000 + printed };
        assert!(!after(24, 8 << 20).is_too_wide_since(before), "a single wide record");
        assert!(!after(1 << 30, 40 << 30).is_too_wide_since(before), "many usual records");
        assert!(after(24 * 33, 33 * (8 << 20)).is_too_wide_since(before));
    }
}
