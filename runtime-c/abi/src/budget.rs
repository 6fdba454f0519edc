// SPDX-License-Identifier: GPL-2.0-or-later

//! Limits on the cost of reading a file, whatever its contents: bytes, depth, width and work.
//!
//! A reader of an untrusted file makes a [`Budget`] for one query (unpack this, name that type, find this member) and
//! charges it before it allocates, recurses or iterates. Exceeding a limit gives [`Exceeded`], which names the limit
//! and its value; the caller adds the file's name.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The limited resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Memory, or output text.
    Bytes,
    /// Nesting.
    Depth,
    /// Number of siblings.
    Width,
    /// Entries, operations or members visited.
    Work,
}

/// The limit of each resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes allocated or written ([`Limit::Bytes`]).
    pub bytes: u64,
    /// Levels of nesting ([`Limit::Depth`]).
    pub depth: u64,
    /// Siblings ([`Limit::Width`]).
    pub width: u64,
    /// Steps ([`Limit::Work`]).
    pub work: u64,
}

/// More than any compiler generates for a kernel, at a cost that users do not notice.
pub const USUAL: Limits = Limits { bytes: 16 << 20, depth: 64, width: 1 << 16, work: 1 << 20 };

/// A file exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// What was read, as a plural or a mass noun: "anonymous members".
    pub of: &'static str,
    /// The exceeded limit.
    pub limit: Limit,
    /// Its value, in units of `limit`.
    pub most: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Exceeded { of, limit, most } = self;
        match limit {
            Limit::Bytes => write!(f, "{of}: more than the {most} bytes that are allowed"),
            Limit::Depth => write!(f, "{of}: nested deeper than the {most} levels that are allowed"),
            Limit::Width => write!(f, "{of}: more than the {most} that are allowed"),
            Limit::Work => write!(f, "{of}: more than the {most} steps that are allowed"),
        }
    }
}

impl std::error::Error for Exceeded {}

/// What is left for one query.
#[derive(Debug)]
pub struct Budget {
    of: &'static str,
    limits: Limits,
    bytes: Cell<u64>,
    depth: Cell<u64>,
    work: Cell<u64>,
}

/// Unpacked contents up to this size are always allowed.
const ALWAYS_UNPACKED: u64 = 64 << 20;
/// Code and debug information compress to a third, at best to a tenth.
const RATIO: u64 = 32;

impl Budget {
    /// An unused budget. `of`: see [`Exceeded::of`].
    pub fn new(of: &'static str, limits: Limits) -> Budget {
        Budget { of, limits, bytes: Cell::new(0), depth: Cell::new(0), work: Cell::new(0) }
    }

    /// For unpacking `packed` bytes: 64 MiB or 32 times as much, and at most `most`.
    pub fn unpacking(of: &'static str, packed: u64, most: u64) -> Budget {
        let bytes = packed.saturating_mul(RATIO).max(ALWAYS_UNPACKED).min(most);
        Budget::new(of, Limits { bytes, depth: 1, ..USUAL })
    }

    fn spend(&self, spent: &Cell<u64>, count: u64, limit: Limit, most: u64) -> Result<(), Exceeded> {
        let now = spent.get().saturating_add(count);
        spent.set(now);
        self.check(now, limit, most)
    }

    fn check(&self, count: u64, limit: Limit, most: u64) -> Result<(), Exceeded> {
        if count > most { Err(Exceeded { of: self.of, limit, most }) } else { Ok(()) }
    }

    /// Charges `count` bytes, before they are allocated or written.
    pub fn bytes(&self, count: usize) -> Result<(), Exceeded> {
        self.spend(&self.bytes, count as u64, Limit::Bytes, self.limits.bytes)
    }

    /// Bytes that are not charged yet.
    pub fn bytes_left(&self) -> u64 {
        self.limits.bytes.saturating_sub(self.bytes.get())
    }

    /// Charges `steps`, before as many items are visited.
    pub fn work(&self, steps: usize) -> Result<(), Exceeded> {
        self.spend(&self.work, steps as u64, Limit::Work, self.limits.work)
    }

    /// Checks that `count` siblings are allowed; charges nothing.
    pub fn width(&self, count: usize) -> Result<(), Exceeded> {
        self.check(count as u64, Limit::Width, self.limits.width)
    }

    /// Checks that `levels` of nesting are allowed; charges nothing.
    pub fn reaches(&self, levels: usize) -> Result<(), Exceeded> {
        self.check(levels as u64, Limit::Depth, self.limits.depth)
    }

    /// Enters one level of nesting, for the lifetime of the value.
    pub fn deeper(&self) -> Result<Level<'_>, Exceeded> {
        self.depth.set(self.depth.get().saturating_add(1));
        let level = Level(self);
        self.check(self.depth.get(), Limit::Depth, self.limits.depth)?;
        Ok(level)
    }

    /// Enters one level of nesting, until [`Budget::leave`]: for callers that cannot hold the value of
    /// [`Budget::deeper`].
    pub fn enter(&self) -> Result<(), Exceeded> {
        self.deeper().map(std::mem::forget)
    }

    /// Undoes one [`Budget::enter`].
    pub fn leave(&self) {
        drop(Level(self));
    }

    /// Reads everything, up to the limit on bytes.
    pub fn read_all(&self, reader: impl Read) -> io::Result<Vec<u8>> {
        let mut contents = Vec::new();
        reader.take(self.bytes_left().saturating_add(1)).read_to_end(&mut contents)?;
        self.bytes(contents.len()).map_err(io::Error::other)?;
        Ok(contents)
    }
}

/// See [`Budget::deeper`].
#[derive(Debug)]
pub struct Level<'b>(&'b Budget);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.0.depth.get().saturating_sub(1));
    }
}

/// <asm-generic/fcntl.h>; this crate has no dependencies.
const O_NONBLOCK: i32 = 0o4000;

/// The contents of a regular file of at most `most` bytes: a device or a pipe may be endless.
pub fn read_file(path: &Path, of: &'static str, most: u64) -> io::Result<Vec<u8>> {
    // What is read is what was checked, and a pipe in its place does not wait for a writer.
    let file = std::fs::OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    Budget::new(of, Limits { bytes: most, ..USUAL }).read_all(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits = Limits { bytes: 10, depth: 2, width: 3, work: 5 };

    #[test]
    fn what_is_left_goes_down_and_depth_comes_back() {
        let budget = Budget::new("things", SMALL);
        assert!(budget.bytes(6).is_ok() && budget.bytes(4).is_ok());
        assert_eq!(
            budget.bytes(1).map_err(|error| error.to_string()),
            Err("things: more than the 10 bytes that are allowed".into())
        );
        assert!(budget.work(5).is_ok());
        assert_eq!(budget.work(1), Err(Exceeded { of: "things", limit: Limit::Work, most: 5 }));
        assert!(budget.width(3).is_ok() && budget.width(4).is_err() && budget.width(3).is_ok());
        for _ in 0..3 {
            let first = budget.deeper().unwrap();
            let second = budget.deeper().unwrap();
            assert_eq!(budget.deeper().unwrap_err().limit, Limit::Depth);
            drop((first, second));
        }
    }

    #[test]
    fn no_more_is_read_than_is_allowed() {
        let budget = Budget::new("things", SMALL);
        assert_eq!(budget.read_all(&b"0123456"[..]).unwrap(), b"0123456");
        assert!(budget.read_all(std::io::repeat(7)).unwrap_err().to_string().contains("10 bytes"));
        assert!(read_file(Path::new("/dev/zero"), "things", 10).unwrap_err().to_string().contains("regular"));
        assert_eq!(Budget::unpacking("x", 1000, u64::MAX).bytes_left(), 64 << 20);
        assert_eq!(Budget::unpacking("x", 100 << 20, 1 << 30).bytes_left(), 1 << 30);
    }
}
