// SPDX-License-Identifier: GPL-2.0-or-later

//! One CPU's ring: reads records from memory that the module writes concurrently.
//!
//! Records stay in the ring until they have been written out ([`Ring::release`]): if this process is killed, the next
//! one finds them there.
//!
//! The ring's contents are not trusted: an invalid record is an error, and everything in the ring is skipped. Bytes are
//! copied before they are checked.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use spile_abi::record::{ALIGNMENT, Kind, RING_PLACES, Record, RingHeader, RingWritten};

const HEADER_BYTES: u64 = size_of::<Record>() as u64;

/// Invalid contents of a ring. Everything in it was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingError {
    /// Number of the CPU that writes into it.
    pub cpu: u32,
    /// Bytes skipped.
    pub bytes: u64,
}

/// The regular file that receives the output; all 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutFile {
    /// Number of the file system's device.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Its length.
    pub bytes: u64,
}

/// The header of the last record that [`Ring::pass_while`] has passed on.
#[derive(Clone, Copy)]
struct PassedHeader<K> {
    /// Its first word.
    first: u64,
    /// Its second word.
    second: u64,
    /// Words behind the header.
    payload_words: usize,
    /// What it is.
    kind: K,
}

impl<K> PassedHeader<K> {
    /// `None`: it is not valid, or not accepted.
    #[inline]
    fn of(first: u64, second: u64, time: u64, kind: &mut impl FnMut(Record) -> Option<K>) -> Option<PassedHeader<K>> {
        let bytes = first as u32;
        let payload = u64::from(bytes).checked_sub(HEADER_BYTES).filter(|_| bytes.is_multiple_of(ALIGNMENT as u32))?;
        let record = Record {
            bytes,
            kind: (first >> 32) as u16,
            cpu: (first >> 48) as u16,
            id: second as u32,
            probe: (second >> 32) as u32,
            time,
        };
        Some(PassedHeader { first, second, payload_words: payload as usize / ALIGNMENT, kind: kind(record)? })
    }
}

/// The memory that the rings of a session share: chunks, of which each ring has some.
#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    /// The first of them.
    pub start: NonNull<u8>,
    /// Size of each; a power of two.
    pub bytes: u64,
    /// How many there can be.
    pub count: u32,
}

/// The reader of one CPU's ring, in memory shared with the module.
#[derive(Debug)]
pub struct Ring {
    /// Number of the CPU that writes into it.
    pub cpu: u32,
    header: NonNull<u8>,
    chunks: Chunks,
    /// Most bytes of the data; a power of two.
    size: u64,
    /// Bytes read so far.
    tail: u64,
    /// The module may overwrite up to here.
    released: u64,
    /// The module's position when the ring was last refreshed.
    head: u64,
    /// Bytes between the two at that time.
    filled: u64,
    /// Next record, not yet taken.
    front: Option<Record>,
    /// The module's position when it had stopped writing.
    end: Option<u64>,
}

// SAFETY: the memory belongs to the process, not to a thread, and is only accessed through atomics or copied.
unsafe impl Send for Ring {}

impl AsMut<Ring> for Ring {
    fn as_mut(&mut self) -> &mut Ring {
        self
    }
}

impl Ring {
    /// A ring of at most `size` bytes.
    ///
    /// # Safety
    /// `header` is aligned to 8 and begins a [`RingHeader`], and `chunks` are aligned to 8; all of it may be read and
    /// written as long as the ring is used. Others may write it meanwhile.
    pub unsafe fn new(cpu: u32, header: NonNull<u8>, size: usize, chunks: Chunks) -> Ring {
        let (size, front, end) = (size as u64, None, None);
        let mut ring = Ring { cpu, header, chunks, size, tail: 0, released: 0, head: 0, filled: 0, front, end };
        ring.tail = ring.word(std::mem::offset_of!(RingHeader, tail)).load(Ordering::Relaxed);
        (ring.head, ring.released) = (ring.tail, ring.tail);
        ring
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: a field of the header.
        let word = unsafe { self.header.add(offset) };
        // SAFETY: an aligned u64; shared with the module, so only accessed as an atomic.
        unsafe { AtomicU64::from_ptr(word.cast().as_ptr()) }
    }

    /// Reads the module's position. All records before it are visible.
    ///
    /// From now on all of them may be in the process of being printed (see [`Ring::doubtful`]).
    pub fn refresh(&mut self) {
        // Acquire: pairs with the module's release store, so that the record's bytes are read after it.
        let head = self.word(std::mem::offset_of!(RingHeader, head)).load(Ordering::Acquire);
        self.head = self.end.unwrap_or(head);
        self.filled = self.head.wrapping_sub(self.tail);
        if self.filled > 0 {
            self.word(std::mem::offset_of!(RingHeader, printing)).store(self.head, Ordering::Relaxed);
        }
    }

    /// The module has stopped writing: nothing that appears from now on is read, until [`Ring::open`]. A module that
    /// writes nevertheless cannot keep its reader busy.
    pub fn close(&mut self) {
        self.end = Some(self.word(std::mem::offset_of!(RingHeader, head)).load(Ordering::Acquire));
    }

    /// The module writes again.
    pub fn open(&mut self) {
        self.end = None;
    }

    /// Skips everything seen by the last [`Ring::refresh`], and returns the number of bytes.
    pub fn skip(&mut self) -> u64 {
        self.front = None;
        self.skip_all().bytes
    }

    /// Ends a pass: unread records are not being printed.
    pub fn finish_pass(&mut self) {
        self.word(std::mem::offset_of!(RingHeader, printing)).store(self.tail, Ordering::Relaxed);
    }

    /// Bytes read so far, for [`Ring::release`].
    pub fn read_up_to(&self) -> u64 {
        self.tail
    }

    /// Everything read up to there is written out: the module may overwrite it.
    pub fn release(&mut self, up_to: u64) {
        self.released = up_to;
        // Release: the copies complete before the module may overwrite them. Pairs with its acquire load.
        self.word(std::mem::offset_of!(RingHeader, tail)).store(up_to, Ordering::Release);
    }

    /// Whether the module retains records until they are released.
    pub fn is_behind(&self) -> bool {
        self.released != self.tail
    }

    /// Records that everything up to there is written out, and the regular file that then receives the output. It counts
    /// when `turn` is recorded ([`Ring::set_turn`]) in the first ring.
    pub fn set_written(&self, turn: u64, up_to: u64, out: OutFile) {
        let words = [up_to, out.device, out.inode, out.bytes];
        self.written_words(turn).into_iter().zip(words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    /// The values of [`Ring::set_written`], possibly of another loader.
    pub fn written(&self, turn: u64) -> (u64, OutFile) {
        let [tail, device, inode, bytes] = self.written_words(turn).map(|word| word.load(Ordering::Relaxed));
        (tail, OutFile { device, inode, bytes })
    }

    /// The four words of an entry.
    fn written_words(&self, turn: u64) -> [&AtomicU64; 4] {
        let entry = std::mem::offset_of!(RingHeader, written) + (turn % 2) as usize * size_of::<RingWritten>();
        [
            std::mem::offset_of!(RingWritten, tail),
            std::mem::offset_of!(RingWritten, device),
            std::mem::offset_of!(RingWritten, inode),
            std::mem::offset_of!(RingWritten, bytes),
        ]
        .map(|field| self.word(entry + field))
    }

    /// Records that the entries of this turn are complete, in all rings.
    pub fn set_turn(&self, turn: u64) {
        // Release: after the entries.
        self.word(std::mem::offset_of!(RingHeader, turn)).store(turn, Ordering::Release);
    }

    /// The value of the last [`Ring::set_turn`], possibly of another loader.
    pub fn turn(&self) -> u64 {
        self.word(std::mem::offset_of!(RingHeader, turn)).load(Ordering::Acquire)
    }

    /// Releases what another loader has written out and did not come to release; nothing if more is released already (a
    /// module that overwrites does that). Before the first refresh.
    pub fn complete(&mut self, up_to: u64) {
        let head = self.word(std::mem::offset_of!(RingHeader, head)).load(Ordering::Acquire);
        let more = up_to.wrapping_sub(self.tail);
        if more == 0 || more > self.size || more > head.wrapping_sub(self.tail) {
            return;
        }
        (self.tail, self.head) = (up_to, up_to);
        self.release(up_to);
    }

    /// After a loader was killed: the number of records that it had read and not released, and may have printed. Before
    /// the first refresh.
    pub fn doubtful(&self) -> u64 {
        let until = self.word(std::mem::offset_of!(RingHeader, printing)).load(Ordering::Relaxed);
        let head = self.word(std::mem::offset_of!(RingHeader, head)).load(Ordering::Acquire);
        let left = until.wrapping_sub(self.tail);
        if left > self.size || left > head.wrapping_sub(self.tail) {
            return 0;
        }
        let (mut at, mut count) = (self.tail, 0);
        while at != until {
            let to_end = self.chunk_left(at);
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

    /// Whether the records of the last refresh fill more than a sixteenth of the ring: it fills quickly.
    pub fn is_filling_fast(&self) -> bool {
        self.filled > self.size / 16
    }

    /// Tells the module that the reader is about to sleep, so that it wakes it.
    pub fn announce_waiting(&self) {
        // SAFETY: a field of the header.
        let waiting = unsafe { self.header.add(std::mem::offset_of!(RingHeader, waiting)) };
        // SAFETY: an aligned u32; shared with the module, so only accessed as an atomic.
        unsafe { AtomicU32::from_ptr(waiting.cast().as_ptr()) }.store(1, Ordering::SeqCst);
    }

    /// Records and bytes lost for lack of room since the session started.
    pub fn lost(&self) -> (u64, u64) {
        let load = |offset| self.word(offset).load(Ordering::Relaxed);
        (load(std::mem::offset_of!(RingHeader, lost_records)), load(std::mem::offset_of!(RingHeader, lost_bytes)))
    }

    /// A counter that changes when code is unloaded whose addresses earlier records may contain. A value read after a
    /// record was written covers everything unloaded before that record.
    pub fn changes(&self) -> u64 {
        self.word(std::mem::offset_of!(RingHeader, changes)).load(Ordering::Acquire)
    }

    /// The first record, among those seen by [`Ring::refresh`].
    pub fn front(&mut self) -> Result<Option<Record>, RingError> {
        while self.front.is_none() && self.tail != self.head {
            let left = self.head.wrapping_sub(self.tail);
            if left > self.size || !left.is_multiple_of(ALIGNMENT as u64) || !self.tail.is_multiple_of(ALIGNMENT as u64)
            {
                return Err(self.skip_all());
            }
            let to_end = self.chunk_left(self.tail);
            let record = self.header_at(self.tail, left.min(to_end));
            let bytes = u64::from(record.bytes);
            // A pad fills the chunk up to its end: there is one in each at most.
            let least = if record.kind == Kind::Pad as u16 { to_end } else { HEADER_BYTES };
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

    /// Takes the record that [`Ring::front`] returned; its payload replaces the contents of `payload`.
    pub fn take(&mut self, payload: &mut Vec<u8>) -> Option<Record> {
        let record = self.front.take()?;
        let bytes = u64::from(record.bytes);
        let length = (bytes - HEADER_BYTES) as usize;
        payload.clear();
        payload.reserve(length);
        // A module that has changed the place since front() looked there gets an empty record.
        if length > 0
            && let Some(from) = self.data_at(self.tail + HEADER_BYTES)
        {
            // SAFETY: `payload` has room for it, and front() has checked that the record ends before the chunk's end. The
            // module does not write between tail and head; if it does, the bytes are wrong, and are checked after they
            // have been copied.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), payload.as_mut_ptr(), length) };
            // SAFETY: these bytes have just been written.
            unsafe { payload.set_len(length) };
        }
        self.advance(bytes);
        Some(record)
    }

    /// The time of the first record, as found by [`Ring::front`].
    #[inline]
    pub fn front_time(&mut self) -> Result<Option<u64>, RingError> {
        Ok(self.front()?.map(|record| record.time))
    }

    /// Passes the first records in place to `print`, with what `kind` says of them: about this many at most, as long as
    /// they are older than `below`, they are valid, and both accept them; `kind` must not accept a pad. It is not asked
    /// again for a record that has the same header as the one before, but for its time; `nothing` is for none, which
    /// `print` must not accept. The next record is for [`Ring::front`] and [`Ring::take`].
    #[inline]
    pub fn pass_while<K: Copy>(
        &mut self,
        below: u64,
        most: usize,
        nothing: K,
        mut kind: impl FnMut(Record) -> Option<K>,
        mut print: impl FnMut(K, &[AtomicU64]) -> bool,
    ) {
        // The minimum size of that many records: cheaper than counting them.
        let mut room = most.saturating_mul(HEADER_BYTES as usize);
        let mut header = PassedHeader { first: 0, second: 0, payload_words: 0, kind: nothing };
        while self.front.is_none() {
            let before = self.tail;
            if !self.pass_in_chunk(below, room, &mut header, &mut kind, &mut print) {
                break;
            }
            room = room.saturating_sub(self.tail.wrapping_sub(before) as usize);
        }
    }

    /// As [`Ring::pass_while`], with records of one chunk. True: all of it is passed.
    #[inline]
    fn pass_in_chunk<K: Copy>(
        &mut self,
        below: u64,
        room: usize,
        header: &mut PassedHeader<K>,
        kind: &mut impl FnMut(Record) -> Option<K>,
        print: &mut impl FnMut(K, &[AtomicU64]) -> bool,
    ) -> bool {
        const HEADER_WORDS: usize = HEADER_BYTES as usize / ALIGNMENT;
        let left = self.head.wrapping_sub(self.tail);
        let is_aligned = self.tail.is_multiple_of(ALIGNMENT as u64) && left.is_multiple_of(ALIGNMENT as u64);
        if left == 0 || left > self.size || !is_aligned {
            return false;
        }
        let Some(start) = self.data_at(self.tail) else { return false };
        let to_end = self.chunk_left(self.tail) as usize;
        let room = (left as usize).min(to_end).min(room);
        // SAFETY: ends before the chunk's end, and is aligned; shared with the module, so only accessed as atomics. The
        // module does not write between tail and head; if it does, the words are wrong, and are checked after they have
        // been read.
        let words = unsafe { std::slice::from_raw_parts(start.cast().as_ptr(), room / ALIGNMENT) };
        let mut rest: &[AtomicU64] = words;
        let mut known = *header;
        while let Some((head, behind)) = rest.split_first_chunk::<HEADER_WORDS>() {
            let [first, second, time] = head.each_ref().map(|word| word.load(Ordering::Relaxed));
            if first != known.first || second != known.second {
                let Some(new) = PassedHeader::of(first, second, time, kind) else { break };
                known = new;
            }
            let Some((payload, next)) = behind.split_at_checked(known.payload_words) else { break };
            if time >= below || !print(known.kind, payload) {
                break;
            }
            rest = next;
        }
        *header = known;
        // A pad fills the rest of the chunk.
        if let Some(word) = rest.first().filter(|_| room == to_end) {
            // Its CPU is not written (leave_chunk(), runtime-c/ring.c).
            let first = word.load(Ordering::Relaxed) & 0xffff_ffff_ffff;
            if first == (rest.len() * ALIGNMENT) as u64 | (Kind::Pad as u64) << 32 {
                rest = &[];
            }
        }
        self.advance(((words.len() - rest.len()) * ALIGNMENT) as u64);
        rest.is_empty() && room == to_end
    }

    /// Bytes from there to the end of the chunk.
    #[inline]
    fn chunk_left(&self, count: u64) -> u64 {
        self.chunks.bytes - (count & (self.chunks.bytes - 1))
    }

    /// Where byte `count` is, which is before the module's write position; `None`: nowhere, by a module that is wrong.
    /// [`Ring::chunk_left`] bytes are there.
    #[inline]
    fn data_at(&self, count: u64) -> Option<NonNull<u8>> {
        let place = (count / self.chunks.bytes) as usize % RING_PLACES;
        // SAFETY: a field of the header.
        let place = unsafe { self.header.add(std::mem::offset_of!(RingHeader, places) + place * size_of::<u32>()) };
        // SAFETY: an aligned u32; shared with the module, so only accessed as an atomic. It was written before the head
        // that this ring has acquired.
        let chunk = unsafe { AtomicU32::from_ptr(place.cast().as_ptr()) }.load(Ordering::Relaxed);
        let at = u64::from(chunk) * self.chunks.bytes + (count & (self.chunks.bytes - 1));
        // SAFETY: inside of the chunks, if there is one of that number.
        (chunk < self.chunks.count).then(|| unsafe { self.chunks.start.add(at as usize) })
    }

    /// A record's header; of a pad with less room than a header, only the first fields.
    fn header_at(&self, at: u64, room: u64) -> Record {
        let mut bytes = [0u8; HEADER_BYTES as usize];
        if room >= HEADER_BYTES {
            self.copy(at, &mut bytes);
            // SAFETY: as below.
            return unsafe { std::mem::transmute::<[u8; HEADER_BYTES as usize], Record>(bytes) };
        }
        let there = room.min(HEADER_BYTES) as usize;
        self.copy(at, bytes.get_mut(..there).unwrap_or_default());
        // SAFETY: every bit pattern is a valid Record, which has no padding (tests/twins.rs checks its size).
        unsafe { std::mem::transmute::<[u8; HEADER_BYTES as usize], Record>(bytes) }
    }

    /// Copies from byte `count` on; must not cross the chunk's end or the module's write position.
    #[inline]
    fn copy(&self, count: u64, out: &mut [u8]) {
        let length = out.len().min(self.chunk_left(count) as usize);
        let Some(from) = self.data_at(count) else { return };
        // SAFETY: they end before the chunk's end. The module does not write between tail and head; if it does, the bytes are
        // wrong, and are checked after they have been copied.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), out.as_mut_ptr(), length) };
    }

    fn advance(&mut self, bytes: u64) {
        self.tail = self.tail.wrapping_add(bytes);
    }

    fn skip_all(&mut self) -> RingError {
        let bytes = self.head.wrapping_sub(self.tail);
        self.advance(bytes);
        RingError { cpu: self.cpu, bytes }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A ring in our own memory, with the module's side of it.
    pub struct Fake {
        memory: Box<[u64]>,
        pub ring: Ring,
        size: usize,
        head: u64,
    }

    const HEADER: usize = size_of::<RingHeader>();

    impl Fake {
        /// An empty ring that is always in the same chunk.
        pub fn new(cpu: u32, size: usize) -> Fake {
            let mut memory = vec![0u64; (HEADER + size) / 8].into_boxed_slice();
            let start = NonNull::new(memory.as_mut_ptr().cast()).unwrap();
            // SAFETY: the memory lives as long as the Fake and is only accessed through its pointer.
            let ring = unsafe { Ring::new(cpu, start, size, Fake::chunks(start, size)) };
            Fake { memory, ring, size, head: 0 }
        }

        /// The data after the header.
        fn chunks(start: NonNull<u8>, size: usize) -> Chunks {
            // SAFETY: inside of `memory`.
            Chunks { start: unsafe { start.add(HEADER) }, bytes: size as u64, count: 1 }
        }

        /// Makes a chunk half as large: there are two.
        pub fn halve(&mut self) {
            self.ring.chunks.bytes = self.size as u64 / 2;
            self.ring.chunks.count = 2;
        }

        /// The chunk of the bytes from `count` on.
        fn set_place(&mut self, count: u64, chunk: u32) {
            let place = (count / self.ring.chunks.bytes) as usize % RING_PLACES;
            let at = std::mem::offset_of!(RingHeader, places) + place * 4;
            // SAFETY: inside of the header, by the remainder.
            let place = unsafe { self.base().add(at) };
            // SAFETY: an aligned u32 of `memory`.
            unsafe { AtomicU32::from_ptr(place.cast()) }.store(chunk, Ordering::Relaxed);
        }

        fn base(&mut self) -> *mut u8 {
            self.memory.as_mut_ptr().cast()
        }

        /// Writes bytes at a position of the ring.
        fn poke(&mut self, count: u64, bytes: &[u8]) {
            let at = HEADER + count as usize % self.size;
            assert!(at + bytes.len() <= HEADER + self.size);
            // SAFETY: inside of `memory`, by the assertion.
            let to = unsafe { self.base().add(at) };
            // SAFETY: the same; `bytes` is other memory.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }

        /// As the module does when it has written.
        pub fn set_head(&mut self, head: u64) {
            self.head = head;
            // SAFETY: the first word of `memory`, which is aligned.
            unsafe { AtomicU64::from_ptr(self.base().cast()) }.store(head, Ordering::Release);
        }

        /// As mapped by another process after this one.
        pub fn another(&mut self) -> Ring {
            let start = NonNull::new(self.base()).unwrap();
            // SAFETY: as in new().
            unsafe { Ring::new(self.ring.cpu, start, self.size, self.ring.chunks) }
        }

        /// How far the reader has read.
        pub fn tail(&mut self) -> u64 {
            // SAFETY: inside of the header.
            let tail = unsafe { self.base().add(64) };
            // SAFETY: an aligned word of `memory`.
            unsafe { AtomicU64::from_ptr(tail.cast()) }.load(Ordering::Acquire)
        }

        /// The header of a record.
        pub fn header(bytes: u32, kind: u16, time: u64) -> Vec<u8> {
            let mut header = bytes.to_le_bytes().to_vec();
            header.extend(kind.to_le_bytes());
            header.extend([0; 10]);
            header.extend(time.to_le_bytes());
            header
        }

        /// The numbers of records that pass: the first words of their payloads.
        pub fn passed(&mut self, most: usize) -> Vec<u64> {
            let mut numbers = Vec::new();
            let is_print = |record: Record| (record.kind == Kind::Print as u16).then_some(true);
            self.ring.pass_while(u64::MAX, most, false, is_print, |is_print, payload| {
                numbers.extend(payload.first().map(|word| word.load(Ordering::Relaxed)));
                is_print
            });
            numbers
        }

        /// As spile_record_begin and _commit; false: no room.
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
    fn records_are_complete_and_in_order_across_the_end() {
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
    fn records_written_after_a_refresh_wait_for_the_next() {
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
    fn an_invalid_record_and_all_after_it_are_skipped() {
        let print = Kind::Print as u16;
        for (bytes, kind) in
            [(0, print), (8, print), (20, print), (28, print), (64, print), (u32::MAX, print), (4, 0), (0, 0)]
        {
            let mut fake = Fake::new(3, 256);
            fake.poke(0, &Fake::header(bytes, kind, 0));
            fake.set_head(40);
            fake.ring.refresh();
            assert_eq!(fake.ring.front(), Err(RingError { cpu: 3, bytes: 40 }), "{bytes} {kind}");
            fake.write(7, b"");
            fake.ring.refresh();
            assert_eq!(fake.ring.front().unwrap().map(|record| record.time), Some(7));
        }
    }

    #[test]
    fn records_are_found_in_whatever_chunk_they_are() {
        let mut fake = Fake::new(0, 256);
        fake.halve();
        // The first half of the ring is in the second chunk, and the other way round.
        fake.set_place(0, 1);
        fake.set_place(128, 0);
        // Three records and a pad of a word, then one record.
        for (at, number) in [(128, 1u64), (168, 2), (208, 3), (0, 4)] {
            let record = [Fake::header(40, Kind::Print as u16, number), number.to_le_bytes().repeat(2)].concat();
            fake.poke(at, &record);
        }
        // What it does not write of the pad's header is of an earlier record.
        let mut pad = Fake::header(8, Kind::Pad as u16, 0);
        pad[6] = 0xff;
        fake.poke(248, &pad[..8]);
        fake.set_head(168);
        fake.ring.refresh();
        assert_eq!(fake.passed(2), [1]);
        let mut again = fake.another();
        again.refresh();
        let mut times = Vec::new();
        while let Some(record) = again.front().unwrap() {
            again.take(&mut Vec::new());
            times.push(record.time);
        }
        assert_eq!(times, [1, 2, 3, 4]);
        assert_eq!(fake.passed(9), [2, 3, 4]);
        assert_eq!(fake.ring.front(), Ok(None));
    }

    #[test]
    fn records_with_other_headers_are_looked_at() {
        let print = Kind::Print as u16;
        let mut fake = Fake::new(0, 256);
        let number = |number: u64| number.to_le_bytes().to_vec();
        let records = [(32, print, 1), (32, print, 2), (40, print, 3), (32, Kind::Warn as u16, 4)];
        let bytes = records.map(|(bytes, kind, value)| {
            let payload = number(value).repeat((bytes as usize - 24) / 8);
            [Fake::header(bytes, kind, 0), payload].concat()
        });
        fake.poke(0, &bytes.concat());
        fake.set_head(136);
        fake.ring.refresh();
        assert_eq!(fake.passed(9), [1, 2, 3]);
        assert_eq!(fake.ring.front().unwrap().map(|record| record.kind), Some(Kind::Warn as u16));
        assert!(fake.passed(9).is_empty(), "it is to be taken");
    }

    #[test]
    fn a_header_of_zeros_is_no_record() {
        let mut fake = Fake::new(0, 256);
        fake.set_head(48);
        fake.ring.refresh();
        assert!(fake.passed(9).is_empty());
        assert_eq!(fake.ring.front(), Err(RingError { cpu: 0, bytes: 48 }));
    }

    #[test]
    fn a_chunk_that_does_not_exist_is_an_error() {
        let mut fake = Fake::new(0, 256);
        fake.write(1, b"");
        for chunk in [1, u32::MAX] {
            fake.set_place(0, chunk);
            let mut again = fake.another();
            again.refresh();
            again.pass_while(u64::MAX, 9, (), |_| panic!("there is no record"), |(), _| false);
            assert_eq!(again.front(), Err(RingError { cpu: 0, bytes: 24 }));
        }
    }

    #[test]
    fn a_pad_that_does_not_reach_the_end_is_invalid() {
        let mut fake = Fake::new(0, 256);
        (0..32).for_each(|word| fake.poke(word * 8, &Fake::header(8, 0, 0)[..8]));
        fake.set_head(256);
        fake.ring.refresh();
        assert_eq!(fake.ring.front(), Err(RingError { cpu: 0, bytes: 256 }));
    }

    #[test]
    fn records_written_after_closing_are_not_read() {
        let mut fake = Fake::new(0, 256);
        fake.write(1, b"");
        fake.ring.close();
        fake.write(2, b"");
        fake.ring.refresh();
        assert_eq!(fake.ring.front_time(), Ok(Some(1)));
        fake.ring.take(&mut Vec::new());
        fake.ring.refresh();
        assert_eq!(fake.ring.front(), Ok(None));
        fake.ring.open();
        fake.ring.refresh();
        assert_eq!(fake.ring.front_time(), Ok(Some(2)));
    }

    #[test]
    fn invalid_heads_are_skipped() {
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
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
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
                fake.passed(random() as usize % 9);
                if let Ok(Some(_)) = fake.ring.front() {
                    fake.ring.take(&mut payload);
                }
            }
            assert_eq!(fake.ring.front(), Ok(None));
        }
    }
}
