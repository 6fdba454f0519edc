// SPDX-License-Identifier: GPL-2.0-or-later

//! Rings and the records in them (abi.h, `struct spile_ring_header` and below).

/// Number of [`RingHeader::places`].
pub const RING_PLACES: usize = 512;

/// Start of a ring's header page. `head` and `tail` are byte counts that never wrap. Byte N is in the chunk
/// `places[N / chunk_bytes % RING_PLACES]`, at N modulo `chunk_bytes`. A record is in one chunk: [`Kind::Pad`] fills the rest
/// of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RingHeader {
    /// Written by the module with release order, after the record's bytes.
    pub head: u64,
    /// Puts the fields of the module and those of the loader into separate cache lines.
    pub unused0: [u64; 7],
    /// Written by the loader with release order, after it has read and written out everything up to here.
    pub tail: u64,
    /// The loader sets 1 before it polls; the module clears it and wakes the loader.
    pub waiting: u32,
    /// 0
    pub unused1: u32,
    /// Used by the loader: records up to here may have been printed although `tail` has not reached them.
    pub printing: u64,
    /// Used by the loader, in the first ring: `written[turn % 2]` of all rings is valid.
    pub turn: u64,
    /// Padding of the cache line.
    pub unused3: [u64; 4],
    /// Written by the module: records lost for lack of space.
    pub lost_records: u64,
    /// The bytes of those, headers included.
    pub lost_bytes: u64,
    /// Written by the module: changes when code of a module is unloaded.
    pub changes: u64,
    /// Size of a chunk, a power of two; constant.
    pub chunk_bytes: u32,
    /// How many chunks all rings together can have; constant.
    pub chunks: u32,
    /// Padding of the cache line.
    pub unused2: [u64; 4],
    /// See `turn`.
    pub written: [RingWritten; 2],
    /// Written by the module, before the head that covers it: the number of a chunk.
    pub places: [u32; RING_PLACES],
}

/// Used by the loader: what is written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RingWritten {
    /// The records up to this position.
    pub tail: u64,
    /// Device of the regular file of the output (in bulk mode: this CPU's); 0, like the others: there is none.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// Its length with these records, in bytes.
    pub bytes: u64,
}

/// The kind of a record ([`Record::kind`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// Skip to the chunk's end. Only `bytes` and `kind` are valid.
    Pad = 0,
    /// `id`: format, [`FORMAT_TEXT`] or [`FORMAT_STACK`]; payload: its arguments.
    Print = 1,
    /// Payload: one string.
    Warn = 2,
    /// `id`: location or [`NO_LOCATION`]; payload: one string, the message.
    Error = 3,
    /// The session is stopping; no payload.
    Exit = 4,
    /// Payload: one string, a command for `sh -c`.
    System = 5,
    /// Payload: one string, printed with -v.
    Notice = 6,
    /// What a guru script has written, or would have. Payload: one string.
    Rewrite = 7,
    /// Payload: one string, the name of a live patch loaded while the script is armed. Its functions are in
    /// /sys/kernel/livepatch.
    Livepatch = 8,
    /// The task of the records after it in this ring, with [`crate::device::SETUP_TASKS`]. Payload: a long, process id
    /// << 32 | thread id; one string, its name.
    Task = 9,
}

impl Kind {
    /// `None`: unknown in this version.
    pub fn from_number(number: u16) -> Option<Kind> {
        use Kind::{Error, Exit, Livepatch, Notice, Pad, Print, Rewrite, System, Task, Warn};
        [Pad, Print, Warn, Error, Exit, System, Notice, Rewrite, Livepatch, Task]
            .into_iter()
            .find(|kind| *kind as u16 == number)
    }
}

/// Header of a record. Records begin at multiples of [`ALIGNMENT`] bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Whole record with this header, a multiple of [`ALIGNMENT`].
    pub bytes: u32,
    /// See [`Kind::from_number`].
    pub kind: u16,
    /// Number of the CPU that wrote it.
    pub cpu: u16,
    /// By kind: format or location.
    pub id: u32,
    /// Probe site that wrote it, or [`NO_PROBE`].
    pub probe: u32,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time: u64,
}

/// Records and the parts of payloads are padded to this.
pub const ALIGNMENT: usize = 8;

/// Length of a payload part that could not be read; no bytes follow it.
pub const FAULT: u32 = u32::MAX;
/// [`Record::id`] of a [`Kind::Print`] whose payload is one string, printed unchanged.
pub const FORMAT_TEXT: u32 = u32::MAX;
/// [`Record::id`] of a [`Kind::Print`] whose payload is a stack, printed with a line for each address: a long with the
/// flags below; with [`STACK_RETURNING`] one string, the function; then the addresses as one memory part.
pub const FORMAT_STACK: u32 = u32::MAX - 1;
/// Of user space: each address is followed by its [`Place`].
pub const STACK_OF_USER: i64 = 1;
/// ` 0xADDRESS : ` before each name.
pub const STACK_FULL: i64 = 2;
/// Source lines after them.
pub const STACK_LINES: i64 = 4;
/// On a function's return: the first address is the return address.
pub const STACK_RETURNING: i64 = 8;
/// The first address is that of an instruction, all others are return addresses.
pub const STACK_AT_PROBE: i64 = 16;
/// By the script, at other times than the record's: each address is followed by a time.
pub const STACK_STORED: i64 = 32;

/// Where a frame of user space is (abi.h, SPILE_PLACE_SHIFT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(pub u64);

impl Place {
    /// The file's number is above these bits.
    pub const SHIFT: u32 = 40;

    /// With this bit the program goes on at the address: a signal has come there. All other frames of a stack but the first are
    /// return addresses.
    pub const INTERRUPTED: u64 = 1 << 39;

    /// Of an offset in the file with that number.
    pub fn new(file: u32, offset: u64) -> Place {
        Place(u64::from(file) << Place::SHIFT | offset & ((1 << Place::SHIFT) - 1))
    }

    /// Number of the file and offset in it.
    pub fn file(self) -> Option<(u32, u64)> {
        let file = (self.0 >> Place::SHIFT) as u32;
        (file != 0).then_some((file, self.0 & ((1 << Place::SHIFT) - 1)))
    }

    /// Without [`Place::INTERRUPTED`], and whether it was there.
    pub fn interrupted(self) -> (Place, bool) {
        (Place(self.0 & !Place::INTERRUPTED), self.0 & Place::INTERRUPTED != 0)
    }

    /// Process (tgid in the initial pid namespace) whose code was made at run time.
    pub fn process(self) -> Option<u32> {
        (self.0 >> Place::SHIFT == 0 && self.0 != 0).then_some(self.0 as u32)
    }
}

/// [`Record::probe`] of a record of the session itself.
pub const NO_PROBE: u32 = u32::MAX;
/// [`Record::id`] of a [`Kind::Error`] without a location in the script.
pub const NO_LOCATION: u32 = u32::MAX;
