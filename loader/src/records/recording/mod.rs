// SPDX-License-Identifier: GPL-2.0-or-later

//! Recordings: the records of a session as the rings hold them, with everything that is needed to print them elsewhere.
//!
//! A recording is a sequence of frames. Each is complete in itself, so a file that was cut off is readable up to its last
//! complete frame, and one recording may follow another in the same file.
//!
//!     frame    magic "SPLR", u8 kind, u8 0, u16 0, u32 bytes stored, u32 bytes of the contents, u32 CRC-32 of the 16 bytes
//!              before it and the stored ones, then the stored bytes: the contents, compressed (deflate) if that makes them smaller
//!     header   u32 version, list of pairs of strings (what is known about the session), the section `.spile.meta`
//!     records  records of the rings, header and payload, oldest first (`abi.h`, struct spile_record)
//!     names    what the module or the files of programs answered for addresses in the records that follow
//!     losses   by CPU: u32 number, u64 records, u64 bytes lost so far
//!     counts   the counters of all probes so far, as JSON (`--stats=json`): every second
//!     end      i32 exit status, list of pairs of strings
//!
//! Numbers are little endian; strings and lists are preceded by a u32 count.

pub mod names;
pub mod read;
pub mod write;

/// The first bytes of a frame.
pub const MAGIC: &[u8; 4] = b"SPLR";
/// Bytes before the stored ones.
pub const FRAME_HEAD: usize = 20;
/// Version of the encoding.
pub const VERSION: u32 = 1;
/// Maximum contents of one frame. A record is never longer than half a ring; one beyond this is not recorded.
pub const MAX_CONTENTS: usize = 64 << 20;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// A recording begins.
    Header = 1,
    /// Records.
    Records = 2,
    /// Names of addresses.
    Names = 3,
    /// Records lost for lack of space.
    Losses = 4,
    /// The session has ended.
    End = 5,
    /// The counters of all probes so far.
    Counts = 6,
}

impl FrameKind {
    fn from_number(number: u8) -> Option<FrameKind> {
        use FrameKind::{Counts, End, Header, Losses, Names, Records};
        [Header, Records, Names, Losses, End, Counts].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Those of them that the checksum covers.
const SUMMED_HEAD: usize = 16;

/// CRC-32, as of zip and gzip, of the parts together. The loader is to stay small, and some 100 MB/s are enough for it: the
/// crate crc32fast has a table eight times as large, and code for each kind of CPU.
fn crc32(parts: &[&[u8]]) -> u32 {
    static TABLE: [u32; 256] = table();
    let step = |crc: u32, byte: &u8| {
        let index = (crc ^ u32::from(*byte)) & 0xff;
        crc >> 8 ^ TABLE.get(index as usize).copied().unwrap_or_default()
    };
    !parts.iter().copied().flatten().fold(!0, step)
}

#[allow(clippy::indexing_slicing, reason = "computed when this is compiled, with an index below 256")]
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

fn put_u32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend(value.to_le_bytes());
}

fn put_u64(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend(value.to_le_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, part: &[u8]) {
    put_u32(bytes, part.len() as u32);
    bytes.extend(part);
}

fn put_pairs(bytes: &mut Vec<u8>, pairs: &[(&str, String)]) {
    put_u32(bytes, pairs.len() as u32);
    for (name, value) in pairs {
        put_bytes(bytes, name.as_bytes());
        put_bytes(bytes, value.as_bytes());
    }
}

/// Reads the contents of a frame from the start; `None`: they end early.
struct Cursor<'b> {
    bytes: &'b [u8],
}

impl<'b> Cursor<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let count = self.u32()?;
        self.take(count as usize)
    }

    fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    fn pairs(&mut self) -> Option<Vec<(String, String)>> {
        /// A loader writes fewer than 20. An empty pair takes 8 bytes in a file, and 48 in memory.
        const MOST: u32 = 1024;
        let count = self.u32().filter(|count| *count <= MOST)?;
        (0..count).map(|_| Some((self.text()?, self.text()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_no_more_entries_than_a_loader_writes() {
        let list = |count: u32| [&count.to_le_bytes()[..], &vec![0; 8 * count as usize]].concat();
        let read = |count| Cursor { bytes: &list(count) }.pairs().map(|pairs| pairs.len());
        assert_eq!((read(1024), read(1025)), (Some(1024), None));
    }

    #[test]
    fn the_checksum_is_that_of_gzip() {
        assert_eq!(crc32(&[b"1234", b"56789"]), 0xcbf4_3926);
        assert_eq!(crc32(&[]), 0);
    }
}
