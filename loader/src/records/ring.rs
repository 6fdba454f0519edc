// SPDX-License-Identifier: GPL-2.0-or-later

//! One CPU's ring: records out of memory that the module writes at the same time.
//!
//! What has been read stays the ring's until it has been written out ([`Ring::release`]): if this process is killed, the next
//! one finds it there.
//!
//! Nothing in the ring is trusted: a record that cannot be is an error, and reading goes on behind all that the ring
//! held. Bytes are copied out before they are looked at.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use spile_abi::record::{ALIGNMENT, Kind, Record, RingHeader};

const HEADER_BYTES: u64 = size_of::<Record>() as u64;

/// What cannot be in a ring. All that was in it is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of the CPU that writes into it.
    pub cpu: u32,
    /// Bytes skipped.
    pub bytes: u64,
}

/// A regular file that is printed to; all 0: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutFile {
    /// Number of the file system's device.
    pub device: u64,
    /// Number of the file in it.
    pub inode: u64,
    /// Its length.
    pub bytes: u64,
}

/// The reader of one CPU's ring, in memory that the module shares.
#[derive(Debug)]
pub struct Ring {
    /// Number of the CPU that writes into it.
    pub cpu: u32,
    header: NonNull<u8>,
    data: NonNull<u8>,
    /// Bytes of the data; a power of two.
    size: u64,
    /// Bytes read so far.
    tail: u64,
    /// Up to here the module may write again.
    released: u64,
    /// What the module had written when the ring was last looked at.
    head: u64,
    /// Bytes between the two then.
    filled: u64,
    /// Found in front, not yet taken.
    front: Option<Record>,
}

// SAFETY: the memory belongs to the process, not to a thread, and all of it is reached through atomics or copied.
unsafe impl Send for Ring {}

impl AsMut<Ring> for Ring {
    fn as_mut(&mut self) -> &mut Ring {
        self
    }
}

impl Ring {
    /// # Safety
    /// `start` is aligned to 8 and begins `header_bytes` of header, at least a [`RingHeader`], and then `size` bytes of
    /// data, a power of two, which may be read and written as long as the ring is used. Others may write them meanwhile.
    pub unsafe fn new(cpu: u32, start: NonNull<u8>, header_bytes: usize, size: usize) -> Ring {
        // SAFETY: inside of what the caller vouches for.
        let data = unsafe { start.add(header_bytes) };
        let mut ring =
            Ring { cpu, header: start, data, size: size as u64, tail: 0, released: 0, head: 0, filled: 0, front: None };
        ring.tail = ring.word(std::mem::offset_of!(RingHeader, tail)).load(Ordering::Relaxed);
        (ring.head, ring.released) = (ring.tail, ring.tail);
        ring
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: a u64 field of the header, aligned; shared with the module, so only ever touched as an atomic.
        unsafe { AtomicU64::from_ptr(self.header.add(offset).cast().as_ptr()) }
    }

    /// Looks at what the module has written by now. Everything written before is seen.
    ///
    /// From now on all of it may be on its way out (see [`Ring::doubtful`]).
    pub fn refresh(&mut self) {
        // Acquire: pairs with the module's release store, so that the record's bytes are read after this.
        self.head = self.word(std::mem::offset_of!(RingHeader, head)).load(Ordering::Acquire);
        self.filled = self.head.wrapping_sub(self.tail);
        if self.filled > 0 {
            self.word(std::mem::offset_of!(RingHeader, printing)).store(self.head, Ordering::Relaxed);
        }
    }

    /// A look is over: what it has not read is not on its way out.
    pub fn settle(&mut self) {
        self.word(std::mem::offset_of!(RingHeader, printing)).store(self.tail, Ordering::Relaxed);
    }

    /// Bytes read so far, as [`Ring::release`] takes them.
    pub fn read_up_to(&self) -> u64 {
        self.tail
    }

    /// What has been read up to there is written out: the module may write there again.
    pub fn release(&mut self, up_to: u64) {
        self.released = up_to;
        // Release: the copies were made before the module may write there. Pairs with its acquire load.
        self.word(std::mem::offset_of!(RingHeader, tail)).store(up_to, Ordering::Release);
    }

    /// Whether the module still keeps what has been read.
    pub fn is_behind(&self) -> bool {
        self.released != self.tail
    }

    /// The regular file that is printed to, and how long it is with all that has been released.
    pub fn set_out(&self, out: OutFile) {
        let store = |offset, value| self.word(offset).store(value, Ordering::Relaxed);
        store(std::mem::offset_of!(RingHeader, out_device), out.device);
        store(std::mem::offset_of!(RingHeader, out_inode), out.inode);
        store(std::mem::offset_of!(RingHeader, out_bytes), out.bytes);
    }

    /// The value of the last [`Ring::set_out`], perhaps of another loader.
    pub fn out(&self) -> OutFile {
        let load = |offset| self.word(offset).load(Ordering::Relaxed);
        OutFile {
            device: load(std::mem::offset_of!(RingHeader, out_device)),
            inode: load(std::mem::offset_of!(RingHeader, out_inode)),
            bytes: load(std::mem::offset_of!(RingHeader, out_bytes)),
        }
    }

    /// Of a loader that was killed: how many records it had read, which are here still, and which it may have printed.
    /// Before the first look.
    pub fn doubtful(&self) -> u64 {
        let until = self.word(std::mem::offset_of!(RingHeader, printing)).load(Ordering::Relaxed);
        let head = self.word(std::mem::offset_of!(RingHeader, head)).load(Ordering::Acquire);
        let left = until.wrapping_sub(self.tail);
        if left > self.size || left > head.wrapping_sub(self.tail) {
            return 0;
        }
        let (mut at, mut count) = (self.tail, 0);
        while at != until {
            let to_end = self.size - (at & (self.size - 1));
            let record = self.header_at(at, until.wrapping_sub(at).min(to_end));
            let bytes = u64::from(record.bytes);
            if bytes < ALIGNMENT as u64 || bytes > until.wrapping_sub(at).min(to_end) {
                break;
            }
            count += u64::from(record.kind != Kind::Pad as u16);
            at = at.wrapping_add(bytes);
        }
        count
    }

    /// Whether what the last look has seen takes more than a sixteenth of the ring: it fills quickly.
    pub fn fills_quickly(&self) -> bool {
        self.filled > self.size / 16
    }

    /// Says that the reader is going to wait; the module answers by waking it.
    pub fn announce_waiting(&self) {
        // SAFETY: as in word().
        let waiting =
            unsafe { AtomicU32::from_ptr(self.header.add(std::mem::offset_of!(RingHeader, waiting)).cast().as_ptr()) };
        waiting.store(1, Ordering::SeqCst);
    }

    /// Records and bytes for which there was no room, since the session began.
    pub fn lost(&self) -> (u64, u64) {
        let load = |offset| self.word(offset).load(Ordering::Relaxed);
        (load(std::mem::offset_of!(RingHeader, lost_records)), load(std::mem::offset_of!(RingHeader, lost_bytes)))
    }

    /// A number that is another one when code has gone that records of before may have addresses of. Whoever sees one from after
    /// a record was written knows of all that has gone before that.
    pub fn changes(&self) -> u64 {
        self.word(std::mem::offset_of!(RingHeader, changes)).load(Ordering::Acquire)
    }

    /// The record in front, of those that [`Ring::refresh`] has seen.
    pub fn front(&mut self) -> Result<Option<Record>, Damage> {
        while self.front.is_none() && self.tail != self.head {
            let left = self.head.wrapping_sub(self.tail);
            if left > self.size || !left.is_multiple_of(ALIGNMENT as u64) || !self.tail.is_multiple_of(ALIGNMENT as u64)
            {
                return Err(self.skip_all());
            }
            let to_end = self.size - (self.tail & (self.size - 1));
            let record = self.header_at(self.tail, left.min(to_end));
            let bytes = u64::from(record.bytes);
            let least = if record.kind == Kind::Pad as u16 { ALIGNMENT as u64 } else { HEADER_BYTES };
            if bytes < least || !bytes.is_multiple_of(ALIGNMENT as u64) || bytes > left.min(to_end) {
                return Err(self.skip_all());
            }
            match record.kind == Kind::Pad as u16 {
                true => self.advance(bytes),
                false => self.front = Some(record),
            }
        }
        Ok(self.front)
    }

    /// Takes the record that [`Ring::front`] has shown; its payload replaces what is in `payload`.
    pub fn take(&mut self, payload: &mut Vec<u8>) -> Option<Record> {
        let record = self.front.take()?;
        let bytes = u64::from(record.bytes);
        let length = (bytes - HEADER_BYTES) as usize;
        let at = ((self.tail + HEADER_BYTES) & (self.size - 1)) as usize;
        payload.clear();
        payload.reserve(length);
        // SAFETY: front() has seen that the record ends before the ring's end, and there is room for its payload. The
        // module does not write between tail and head; if it does all the same, the bytes are wrong ones, and are
        // checked after they have been copied.
        unsafe {
            std::ptr::copy_nonoverlapping(self.data.add(at).as_ptr(), payload.as_mut_ptr(), length);
            payload.set_len(length);
        }
        self.advance(bytes);
        Some(record)
    }

    /// The time of the record in front, as [`Ring::front`] finds it.
    #[inline]
    pub fn front_time(&mut self) -> Result<Option<u64>, Damage> {
        Ok(self.front()?.map(|record| record.time))
    }

    /// Shows `look` the records in front as they lie there, at most so many, as long as they are older than `below`, there is
    /// nothing strange about them, and it takes them, which it must not do with a pad. What comes then is for [`Ring::front`] and [`Ring::take`] to look at.
    #[inline]
    pub fn pass_while(&mut self, below: u64, most: usize, mut look: impl FnMut(Record, &[AtomicU64]) -> bool) {
        const HEADER_WORDS: usize = HEADER_BYTES as usize / ALIGNMENT;
        let at = (self.tail & (self.size - 1)) as usize;
        let left = self.head.wrapping_sub(self.tail);
        let is_aligned = at.is_multiple_of(ALIGNMENT) && left.is_multiple_of(ALIGNMENT as u64);
        if left > self.size || !is_aligned || self.front.is_some() {
            return;
        }
        // Of no more bytes than so many records have at least: cheaper than to count them.
        let room = (left.min(self.size - at as u64) as usize).min(most.saturating_mul(HEADER_BYTES as usize));
        // SAFETY: inside of the data, which is aligned, as `at` is; shared with the module, so only touched as atomics. It
        // does not write between tail and head; if it does all the same, the words are wrong ones, and are checked after
        // they have been read.
        let words = unsafe { std::slice::from_raw_parts(self.data.add(at).cast().as_ptr(), room / ALIGNMENT) };
        let mut rest: &[AtomicU64] = words;
        while let Some(header) = rest.first_chunk::<HEADER_WORDS>() {
            let [first, second, time] = header.each_ref().map(|word| word.load(Ordering::Relaxed));
            let (bytes, kind) = (first as u32, (first >> 32) as u16);
            let Some((whole, next)) = rest.split_at_checked(bytes as usize / ALIGNMENT) else { break };
            let Some(payload) = whole.get(HEADER_WORDS..) else { break };
            let record = Record {
                bytes,
                kind,
                cpu: (first >> 48) as u16,
                id: second as u32,
                probe: (second >> 32) as u32,
                time,
            };
            if !bytes.is_multiple_of(ALIGNMENT as u32) || time >= below || !look(record, payload) {
                break;
            }
            rest = next;
        }
        self.advance(((words.len() - rest.len()) * ALIGNMENT) as u64);
    }

    /// A record's header; of a pad in less room than a header only the first fields.
    fn header_at(&self, at: u64, room: u64) -> Record {
        let mut bytes = [0u8; HEADER_BYTES as usize];
        if room >= HEADER_BYTES {
            self.copy(at, &mut bytes);
            // SAFETY: as below.
            return unsafe { std::mem::transmute::<[u8; HEADER_BYTES as usize], Record>(bytes) };
        }
        let there = room.min(HEADER_BYTES) as usize;
        self.copy(at, bytes.get_mut(..there).unwrap_or_default());
        // SAFETY: every pattern of bits is a Record, which has no padding (tests/twins.rs knows its size).
        unsafe { std::mem::transmute::<[u8; HEADER_BYTES as usize], Record>(bytes) }
    }

    /// Copies from the place of byte `count`; neither goes over the ring's end nor before the module's next writes.
    #[inline]
    fn copy(&self, count: u64, out: &mut [u8]) {
        let at = (count & (self.size - 1)) as usize;
        let length = out.len().min(self.size as usize - at);
        // SAFETY: at + length <= size. The module does not write between tail and head; if it does all the same, the
        // bytes are wrong ones, and are checked after they have been copied.
        unsafe { std::ptr::copy_nonoverlapping(self.data.add(at).as_ptr(), out.as_mut_ptr(), length) };
    }

    fn advance(&mut self, bytes: u64) {
        self.tail = self.tail.wrapping_add(bytes);
    }

    fn skip_all(&mut self) -> Damage {
        let bytes = self.head.wrapping_sub(self.tail);
        self.advance(bytes);
        Damage { cpu: self.cpu, bytes }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A ring in memory of our own, and the module's side of it.
    pub struct Fake {
        memory: Box<[u64]>,
        pub ring: Ring,
        size: usize,
        head: u64,
    }

    const HEADER: usize = size_of::<RingHeader>();

    impl Fake {
        pub fn new(cpu: u32, size: usize) -> Fake {
            let mut memory = vec![0u64; (HEADER + size) / 8].into_boxed_slice();
            let start = NonNull::new(memory.as_mut_ptr().cast()).unwrap();
            // SAFETY: the memory lives as long as the Fake and is not touched but through its pointer.
            let ring = unsafe { Ring::new(cpu, start, HEADER, size) };
            Fake { memory, ring, size, head: 0 }
        }

        fn base(&mut self) -> *mut u8 {
            self.memory.as_mut_ptr().cast()
        }

        pub fn poke(&mut self, count: u64, bytes: &[u8]) {
            let at = HEADER + count as usize % self.size;
            assert!(at + bytes.len() <= HEADER + self.size);
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base().add(at), bytes.len()) };
        }

        pub fn set_head(&mut self, head: u64) {
            self.head = head;
            unsafe { AtomicU64::from_ptr(self.base().cast()) }.store(head, Ordering::Release);
        }

        /// As another process would map it after this one.
        pub fn another(&mut self) -> Ring {
            let start = NonNull::new(self.base()).unwrap();
            // SAFETY: as in new().
            unsafe { Ring::new(self.ring.cpu, start, HEADER, self.size) }
        }

        pub fn tail(&mut self) -> u64 {
            unsafe { AtomicU64::from_ptr(self.base().add(64).cast()) }.load(Ordering::Acquire)
        }

        pub fn header(bytes: u32, kind: u16, time: u64) -> Vec<u8> {
            let mut header = bytes.to_le_bytes().to_vec();
            header.extend(kind.to_le_bytes());
            header.extend([0; 10]);
            header.extend(time.to_le_bytes());
            header
        }

        /// As spile_record_begin and _commit do; false: no room.
        pub fn write(&mut self, time: u64, payload: &[u8]) -> bool {
            let bytes = 24 + payload.len().next_multiple_of(8) as u64;
            let to_end = self.size as u64 - self.head % self.size as u64;
            let pad = if bytes <= to_end { 0 } else { to_end };
            if self.head - self.tail() + pad + bytes > self.size as u64 {
                return false;
            }
            if pad > 0 {
                let header = Self::header(pad as u32, 0, 0);
                self.poke(self.head, &header[..8]);
            }
            let at = self.head + pad;
            let mut record = Self::header(bytes as u32, Kind::Print as u16, time);
            record.extend(payload);
            self.poke(at, &record);
            self.set_head(at + bytes);
            true
        }
    }

    #[test]
    fn records_come_out_whole_and_in_order_around_the_end() {
        let mut fake = Fake::new(0, 256);
        let mut payload = Vec::new();
        let mut seen = 0u64;
        for time in 0..1000u64 {
            let length = (time % 7 * 8) as usize;
            assert!(fake.write(time, &vec![time as u8; length]));
            if time % 3 != 2 {
                continue;
            }
            fake.ring.refresh();
            while let Some(record) = fake.ring.front().unwrap() {
                assert_eq!(record.time, seen);
                assert_eq!(fake.ring.take(&mut payload), Some(record));
                assert_eq!(payload, vec![seen as u8; (seen % 7 * 8) as usize]);
                seen += 1;
            }
            fake.ring.release(fake.ring.read_up_to());
            assert_eq!(fake.tail(), fake.head);
        }
        assert_eq!(seen, 999);
    }

    #[test]
    fn what_came_after_the_look_waits_for_the_next() {
        let mut fake = Fake::new(0, 256);
        fake.write(1, b"");
        assert_eq!(fake.ring.front(), Ok(None));
        fake.ring.refresh();
        fake.write(2, b"");
        assert!(fake.ring.front().unwrap().is_some());
        fake.ring.take(&mut Vec::new());
        assert_eq!(fake.ring.front(), Ok(None));
    }

    #[test]
    fn records_that_cannot_be_are_skipped_with_all_behind_them() {
        let print = Kind::Print as u16;
        for (bytes, kind) in
            [(0, print), (8, print), (20, print), (28, print), (64, print), (u32::MAX, print), (4, 0), (0, 0)]
        {
            let mut fake = Fake::new(3, 256);
            fake.poke(0, &Fake::header(bytes, kind, 0));
            fake.set_head(40);
            fake.ring.refresh();
            assert_eq!(fake.ring.front(), Err(Damage { cpu: 3, bytes: 40 }), "{bytes} {kind}");
            fake.write(7, b"");
            fake.ring.refresh();
            assert_eq!(fake.ring.front().unwrap().map(|record| record.time), Some(7));
        }
    }

    #[test]
    fn heads_that_cannot_be_are_skipped() {
        for head in [257, 264, 4, u64::MAX] {
            let mut fake = Fake::new(0, 256);
            fake.set_head(head);
            fake.ring.refresh();
            assert!(fake.ring.front().is_err(), "{head}");
            assert_eq!(fake.ring.front(), Ok(None));
        }
    }

    #[test]
    fn random_rings_neither_panic_nor_hang() {
        let mut seed = 1u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed >> 33
        };
        for _ in 0..2000 {
            let mut fake = Fake::new(0, 512);
            let bytes: Vec<u8> = (0..512).map(|_| if random() % 3 == 0 { random() as u8 } else { 0 }).collect();
            fake.poke(0, &bytes);
            for _ in 0..40 {
                let at = random() % 63 * 8;
                fake.poke(at, &Fake::header(random() as u32 % 80, random() as u16 % 3, 0)[..8]);
            }
            fake.set_head(random() % 600);
            fake.ring.refresh();
            let mut payload = Vec::new();
            for _ in 0..200 {
                if let Ok(Some(_)) = fake.ring.front() {
                    fake.ring.take(&mut payload);
                }
            }
            assert_eq!(fake.ring.front(), Ok(None));
        }
    }
}
