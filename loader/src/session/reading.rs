// SPDX-License-Identifier: GPL-2.0-or-later

//! The rings of a session: reads what is old enough, and gives back what has been written out.

use spile_abi::device::Info;

use crate::host::clock;
use crate::module::device::{Device, MappedRing};
use crate::options::Options;
use crate::output::Sinks;
use crate::output::progress::{self, Progress};
use crate::records::merge::{self, Look, Next};
use crate::records::record::Reader;
use crate::records::ring::Ring;
use crate::report::Losses;
use crate::session::dispatch::{Dispatcher, Effect};

/// Nanoseconds between two reports of losses.
const LOSS_INTERVAL: u64 = 1_000_000_000;
/// Records taken before signals and descriptors are looked at again.
const MAX_BATCH: usize = 4096;
/// Whether too much waits to be written is looked at once in so many records.
const FULL_INTERVAL: usize = 32;

impl AsMut<Ring> for MappedRing {
    fn as_mut(&mut self) -> &mut Ring {
        &mut self.ring
    }
}

/// What [`Reading::read`] has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Nothing is left in the rings.
    pub is_empty: bool,
    /// A record says that something has failed, or cannot be read.
    pub failed: bool,
    /// The gate before what the script writes may have changed.
    pub gate: bool,
    /// The script wants to end.
    pub stop: bool,
}

/// Rings, and how far they are read.
pub struct Reading<'s> {
    rings: Vec<MappedRing>,
    reader: Reader<'s>,
    progress: Progress,
    ring_bytes: u32,
    /// All records go to one place. Else each has its file.
    one_stream: bool,
    /// A record in a ring waits for its time.
    held_back: bool,
    /// Time of the last look at the rings that read all that is old enough.
    read_up_to: u64,
    losses: Losses,
    /// Time of the last report of losses; 0: there was none.
    losses_reported: u64,
    repeated: u64,
    payload: Vec<u8>,
}

impl<'s> Reading<'s> {
    /// Maps the rings of a session that is set up.
    pub fn new(
        device: &Device,
        info: &Info,
        reader: Reader<'s>,
        options: &Options,
    ) -> Result<Reading<'s>, crate::error::Error> {
        Ok(Reading {
            rings: device.map_rings(info)?,
            reader,
            progress: Progress::default(),
            ring_bytes: info.ring_bytes,
            one_stream: !options.bulk && options.rotation.is_none(),
            held_back: false,
            read_up_to: 0,
            losses: Losses::default(),
            losses_reported: 0,
            repeated: 0,
            payload: Vec::new(),
        })
    }

    /// Number of rings.
    pub fn count(&self) -> usize {
        self.rings.len()
    }

    /// Goes on behind a loader that was killed: cuts off what it has written beyond what it gave back.
    pub fn mend(&mut self, sinks: &mut Sinks) {
        self.repeated = progress::mend(&mut self.rings, sinks);
    }

    /// Records that may be written a second time, because the loader before was killed.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Reads and dispatches what is old enough. `all`: no handler runs that could still write something older.
    pub fn read(&mut self, all: bool, dispatcher: &mut Dispatcher) -> Found {
        let now = clock::now();
        // Behind the look at the clock: the records to be read are from before it.
        if let Some(mapped) = self.rings.first() {
            self.reader.changed(mapped.ring.changes());
        }
        let mut look = Look::new(&mut self.rings, now, all);
        let mut found = Found::default();
        let mut taken = 0;
        self.held_back = false;
        let mut looked_at_room = None;
        while taken < MAX_BATCH {
            if looked_at_room.is_none_or(|at| taken >= at + FULL_INTERVAL) {
                looked_at_room = Some(taken);
                if dispatcher.sinks.is_full() {
                    break;
                }
            }
            if self.one_stream
                && let Some((ring, below)) = look.current()
            {
                taken += self.reader.read_quickly(ring, below, MAX_BATCH - taken);
            }
            match look.next(&mut self.payload) {
                Next::Record(record) => {
                    self.reader.printed(|text| dispatcher.sinks.print(text));
                    dispatcher.sinks.select_cpu(u32::from(record.cpu));
                    let decoded = self.reader.read(&record, &self.payload);
                    match dispatcher.dispatch(decoded) {
                        Effect::Nothing => {}
                        Effect::Error => found.failed = true,
                        Effect::Gate => found.gate = true,
                        Effect::Stop => found.stop = true,
                    }
                }
                Next::Damage(damage) => {
                    dispatcher.sinks.message(&format!(
                        "ERROR: the buffer of CPU {} held what is no record: {} bytes of it are lost",
                        damage.cpu, damage.bytes
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
            taken += 1;
        }
        self.reader.printed(|text| dispatcher.sinks.print(text));
        found
    }

    /// Nothing waits for its time any more.
    pub fn hold_back_nothing(&mut self) {
        self.held_back = false;
    }

    /// Everything older than this has been read.
    pub fn is_read_up_to(&self, time: u64) -> bool {
        self.read_up_to >= time
    }

    /// What has been read by now is in the sinks.
    pub fn mark(&mut self, sinks: &Sinks) {
        self.progress.mark(&mut self.rings, sinks);
    }

    /// Gives back what the sinks have written.
    pub fn release(&mut self, sinks: &Sinks) {
        self.progress.release(&mut self.rings, sinks);
    }

    /// Records of a CPU that found no room.
    pub fn losses(&self) -> Losses {
        let cpus = self.rings.iter().map(|mapped| {
            let (records, bytes) = mapped.ring.lost();
            (mapped.ring.cpu, records, bytes)
        });
        Losses { cpus: cpus.filter(|(_, records, _)| *records > 0).collect() }
    }

    /// The message about new losses, not more often than once in [`LOSS_INTERVAL`] nanoseconds.
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

    /// The module wakes who waits for records.
    pub fn announce_waiting(&self) {
        self.rings.iter().for_each(|mapped| mapped.ring.announce_waiting());
    }

    /// The module cannot say when there is something new.
    pub fn looks_by_time(&self) -> bool {
        self.held_back || self.progress.is_behind()
    }

    /// Nanoseconds. What is held back is looked at again with what has come meanwhile: not sooner than a reader who waits would be
    /// woken for it, so that there is much to do each time, but where rings fill quickly as soon as it may be printed.
    pub fn until_next_look(&self) -> u64 {
        /// As SPILE_RING_WAKE_NS of the runtime.
        const GATHER: u64 = 10_000_000;
        match self.rings.iter().any(|mapped| mapped.ring.fills_quickly()) {
            true => merge::HOLD_BACK,
            false => GATHER,
        }
    }
}
