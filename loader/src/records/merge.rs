// SPDX-License-Identifier: GPL-2.0-or-later

//! Merges the records of all CPUs in order of time.
//!
//! Each ring is in order; the rings are merged. A record may become visible after younger ones of other CPUs: its time
//! is taken when its handler starts to write it, and it is visible when the handler has finished. So records younger
//! than [`HOLD_BACK`] when the rings are read stay there for the next read: by then all older ones are visible, unless
//! a handler was delayed for longer (by the hypervisor, say). Such a record is printed when it arrives: late, but not
//! lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use spile_abi::record::Record;

use crate::records::ring::{Ring, RingError};

/// Nanoseconds.
pub const HOLD_BACK: u64 = 2_000_000;

/// The result of reading the rings.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A record, whose payload is in the buffer.
    Record(Record),
    /// A ring contained an invalid record.
    RingError(RingError),
    /// Nothing more is old enough; true: there are younger records.
    Wait(bool),
}

/// One pass over all rings.
pub struct MergePass<'r, R> {
    rings: &'r mut [R],
    /// First records by time, then CPU, with the ring's index.
    fronts: BinaryHeap<Reverse<(u64, usize)>>,
    /// The ring of the last record, which is not in the heap: it is used as long as its records are the oldest.
    current: Option<usize>,
    /// Records of that ring before this time are older than all others, and old enough.
    below: u64,
    errors: Vec<RingError>,
    now: u64,
    /// Records up to this time are returned.
    until: u64,
}

impl<'r, R: AsMut<Ring>> MergePass<'r, R> {
    /// `now` is read before this, by [`crate::host::clock::now`]. `all`: hold nothing back, because no more records
    /// will come.
    pub fn new(rings: &'r mut [R], now: u64, all: bool) -> MergePass<'r, R> {
        let until = if all { u64::MAX } else { now.saturating_sub(HOLD_BACK) };
        let fronts = BinaryHeap::with_capacity(rings.len());
        let mut pass = MergePass { rings, fronts, current: None, below: 0, errors: Vec::new(), now, until };
        for index in 0..pass.rings.len() {
            if let Some(ring) = pass.rings.get_mut(index) {
                ring.as_mut().refresh();
            }
            pass.push_front(index);
        }
        pass
    }

    fn push_front(&mut self, index: usize) {
        let Some(ring) = self.rings.get_mut(index) else { return };
        match ring.as_mut().front() {
            // Ignore times in the future: they must not wait forever.
            Ok(Some(record)) => self.fronts.push(Reverse((record.time.min(self.now), index))),
            Ok(None) => {}
            Err(error) => self.errors.push(error),
        }
    }

    /// The ring of the next record, while its records are from before this time.
    pub fn current(&mut self) -> Option<(&mut Ring, u64)> {
        let ring = self.rings.get_mut(self.current?)?;
        Some((ring.as_mut(), self.below))
    }

    /// The next record, its payload in `payload`.
    #[inline]
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Next {
        if let Some(ring) = self.current.and_then(|index| self.rings.get_mut(index)) {
            let ring = ring.as_mut();
            match ring.front_time() {
                // SANITY: it was found to be the first.
                Ok(Some(time)) if time < self.below => {
                    return ring.take(payload).map_or(Next::Wait(false), Next::Record);
                }
                Ok(_) => {}
                Err(error) => self.errors.push(error),
            }
        }
        self.next_of_all(payload)
    }

    #[inline(never)]
    fn next_of_all(&mut self, payload: &mut Vec<u8>) -> Next {
        if let Some(index) = self.current.take() {
            self.push_front(index);
        }
        if let Some(error) = self.errors.pop() {
            return Next::RingError(error);
        }
        let Some(&Reverse((time, index))) = self.fronts.peek() else { return Next::Wait(false) };
        if time > self.until {
            return Next::Wait(true);
        }
        self.fronts.pop();
        let taken = self.rings.get_mut(index).and_then(|ring| ring.as_mut().take(payload));
        self.current = Some(index);
        // At equal times the ring of the lower number is first.
        let other = self.fronts.peek().map(|&Reverse((time, other))| time.saturating_add(u64::from(index < other)));
        self.below = other.unwrap_or(u64::MAX).min(self.until.saturating_add(1));
        if !self.errors.is_empty() {
            self.below = 0;
        }
        // SANITY: the heap holds only first records of rings.
        taken.map_or(Next::Wait(false), Next::Record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::ring::tests::Fake;

    impl AsMut<Ring> for Fake {
        fn as_mut(&mut self) -> &mut Ring {
            &mut self.ring
        }
    }

    fn times(rings: &mut [Fake], now: u64, all: bool) -> (Vec<u64>, Next) {
        let mut pass = MergePass::new(rings, now, all);
        let mut payload = Vec::new();
        let mut times = Vec::new();
        loop {
            match pass.next(&mut payload) {
                Next::Record(record) => times.push(record.time),
                end => return (times, end),
            }
        }
    }

    #[test]
    fn cpus_are_merged_by_time() {
        let mut rings = [Fake::new(0, 1024), Fake::new(1, 1024), Fake::new(2, 1024)];
        for (ring, time) in [(0, 10), (0, 40), (1, 20), (1, 30), (1, 50)] {
            rings[ring].write(time, b"");
        }
        assert_eq!(times(&mut rings, u64::MAX, false), (vec![10, 20, 30, 40, 50], Next::Wait(false)));
    }

    #[test]
    fn a_late_record_is_merged_with_those_held_back() {
        let mut rings = [Fake::new(0, 1024), Fake::new(1, 1024)];
        rings[0].write(100, b"");
        rings[0].write(HOLD_BACK + 50, b"");
        assert_eq!(times(&mut rings, HOLD_BACK + 100, false), (vec![100], Next::Wait(true)));
        rings[1].write(HOLD_BACK + 40, b"");
        let later = 2 * HOLD_BACK + 100;
        assert_eq!(times(&mut rings, later, false), (vec![HOLD_BACK + 40, HOLD_BACK + 50], Next::Wait(false)));
    }

    #[test]
    fn at_the_end_nothing_is_held_back() {
        let mut rings = [Fake::new(0, 1024)];
        rings[0].write(5, b"");
        assert_eq!(times(&mut rings, 6, true), (vec![5], Next::Wait(false)));
    }

    #[test]
    fn a_time_in_the_future_delays_nothing() {
        let mut rings = [Fake::new(0, 1024)];
        rings[0].write(u64::MAX - 1, b"");
        rings[0].write(7, b"");
        let now = HOLD_BACK + 10;
        assert_eq!(times(&mut rings, now, false).1, Next::Wait(true));
        assert_eq!(times(&mut rings, now, true).0, [u64::MAX - 1, 7]);
    }

    #[test]
    fn a_damaged_ring_is_reported_and_the_others_are_read() {
        let mut rings = [Fake::new(0, 1024), Fake::new(1, 1024)];
        rings[0].set_head(24);
        rings[1].write(1, b"");
        let (_, end) = times(&mut rings, u64::MAX, true);
        assert_eq!(end, Next::RingError(RingError { cpu: 0, bytes: 24 }));
        assert_eq!(times(&mut rings, u64::MAX, true).0, [1]);
    }
}
