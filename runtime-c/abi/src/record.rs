// SPDX-License-Identifier: GPL-2.0-or-later

//! Rings and the records in them (abi.h, `struct spile_ring_header` and below).

/// Start of a ring's header page. `head` and `tail` count bytes for ever; the place of a byte is its count modulo the
/// ring's size. A record never wraps: [`Kind::Pad`] fills a ring up to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RingHeader {
    /// Written by the module with release order, after the record's bytes.
    pub head: u64,
    /// Keeps what the module writes and what the loader writes in cache lines of their own.
    pub unused0: [u64; 7],
    /// Written by the loader with release order, when it has read up to here and written that out.
    pub tail: u64,
    /// The loader sets 1 before it polls; the module clears it and wakes.
    pub waiting: u32,
    /// 0
    pub unused1: u32,
    /// The loader's own: records up to here may have been printed although `tail` has not reached them.
    pub printing: u64,
    /// The loader's own: the regular file that it prints to (of bulk mode: this CPU's), and how long that was when `tail`
    /// was written.
    pub out_device: u64,
    /// Its inode.
    pub out_inode: u64,
    /// Its length in bytes.
    pub out_bytes: u64,
    /// Padding of the cache line.
    pub unused3: [u64; 2],
    /// Written by the module: records for which there was no room.
    pub lost_records: u64,
    /// The bytes of those, headers included.
    pub lost_bytes: u64,
    /// Written by the module: a number that is another one when a module's code has gone.
    pub changes: u64,
    /// Padding of the cache line.
    pub unused2: [u64; 5],
}

/// What a record is about ([`Record::kind`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// Skip to the ring's end. Only `bytes` and `kind` are there.
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
    /// Payload: one string, for those who want to know more.
    Notice = 6,
    /// What a guru script has written, or would have. Payload: one string.
    Rewrite = 7,
    /// Payload: one string, the name of a live patch that has come while the script is armed. What it replaces is in
    /// /sys/kernel/livepatch.
    Livepatch = 8,
}

impl Kind {
    /// `None`: a number that this version does not know.
    pub fn from_number(number: u16) -> Option<Kind> {
        use Kind::{Error, Exit, Livepatch, Notice, Pad, Print, Rewrite, System, Warn};
        [Pad, Print, Warn, Error, Exit, System, Notice, Rewrite, Livepatch]
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
/// [`Record::id`] of a [`Kind::Print`] whose payload is one string, to be written as it is.
pub const FORMAT_TEXT: u32 = u32::MAX;
/// [`Record::id`] of a [`Kind::Print`] whose payload is a stack, to be written a line for each address: a long with the
/// flags below; with [`STACK_RETURNING`] one string, the function; then the addresses as one memory part.
pub const FORMAT_STACK: u32 = u32::MAX - 1;
/// Of user space: without names.
pub const STACK_OF_USER: i64 = 1;
/// ` 0xADDRESS : ` before each name.
pub const STACK_FULL: i64 = 2;
/// Source lines behind them.
pub const STACK_LINES: i64 = 4;
/// From a function: the first address is where it goes.
pub const STACK_RETURNING: i64 = 8;
/// The first address is that of an instruction, all others are of returns.
pub const STACK_AT_PROBE: i64 = 16;

/// [`Record::probe`] of a record that no probe site wrote.
pub const NO_PROBE: u32 = u32::MAX;
/// [`Record::id`] of a [`Kind::Error`] that belongs to no place in the script.
pub const NO_LOCATION: u32 = u32::MAX;
