// SPDX-License-Identifier: GPL-2.0-or-later

//! A descriptor with its buffered output. Nothing blocks: what the descriptor does not accept stays in the buffer.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};

use crate::records::ring::OutFile;

/// A pipe that poll(2) reports as writable accepts this much without blocking (PIPE_BUF).
const PIPE_CHUNK: usize = 4096;
const FILE_CHUNK: usize = 1 << 20;
/// From this amount on, no more records should be read.
pub(super) const FULL: usize = 1 << 20;

/// Why a descriptor cannot be written any more.
#[derive(Debug)]
pub enum OutputError {
    /// It has no reader (a closed pipe, a terminal that is gone).
    Closed,
    /// Writing failed.
    Failed(io::Error),
}

/// A descriptor and its buffered output.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) descriptor: OwnedFd,
    pub(super) is_file: bool,
    pending: Vec<u8>,
    /// Bytes of `pending` already written.
    written: usize,
    /// Bytes pushed since this file was opened.
    pub(super) bytes: u64,
    /// Bytes pushed into this stream, over all its files.
    pub(super) pushed: u64,
    /// Bytes written to this file, and those up to the end of its last line.
    reached: u64,
    whole: u64,
    /// Lines that could not be written.
    pub(super) dropped: u64,
    pub(super) ended: Option<OutputError>,
    /// Output that cannot be written is retained: the session outlives this loader, and the next one prints it.
    pub(super) keeps: bool,
    /// Bytes retained for that reason.
    kept: u64,
}

impl Sink {
    pub(super) fn new(descriptor: OwnedFd) -> Sink {
        let mode = fstat(&descriptor).map(|status| SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT);
        Sink {
            descriptor,
            is_file: mode == Ok(SFlag::S_IFREG),
            pending: Vec::new(),
            written: 0,
            bytes: 0,
            pushed: 0,
            reached: 0,
            whole: 0,
            dropped: 0,
            ended: None,
            keeps: false,
            kept: 0,
        }
    }

    /// A sink for the next file of the same stream.
    pub(super) fn followed_by(&self, descriptor: OwnedFd) -> Sink {
        Sink { pushed: self.pushed, keeps: self.keeps, ..Sink::new(descriptor) }
    }

    /// Queues text, or counts it as dropped if nothing can be written any more.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.ended.is_none() {
            self.pending.extend_from_slice(bytes);
            self.bytes = self.bytes.saturating_add(bytes.len() as u64);
            self.pushed = self.pushed.saturating_add(bytes.len() as u64);
        } else {
            self.dropped = self.dropped.saturating_add(lines(bytes));
            self.keep(bytes.len());
        }
    }

    /// Bytes pushed, including discarded ones.
    fn keep(&mut self, bytes: usize) {
        if self.keeps {
            let pushed_now = if self.ended.is_some() { bytes as u64 } else { 0 };
            self.pushed = self.pushed.saturating_add(pushed_now);
            self.kept = self.kept.saturating_add(bytes as u64);
        }
    }

    /// Whether the next byte starts a line.
    pub(super) fn is_between_lines(&self) -> bool {
        self.pending.last().is_none_or(|byte| *byte == b'\n')
    }

    /// Bytes not yet written.
    pub(super) fn buffered(&self) -> usize {
        self.pending.len() - self.written
    }

    /// Whether everything is written.
    pub(super) fn is_empty(&self) -> bool {
        self.buffered() == 0
    }

    /// Bytes of all pushed ones that are finished: written, or discarded unless retained.
    pub(super) fn done(&self) -> u64 {
        self.pushed.saturating_sub(self.buffered() as u64).saturating_sub(self.kept)
    }

    /// The regular file behind it, with its length.
    pub(super) fn file(&self) -> Option<OutFile> {
        let status = fstat(&self.descriptor).ok().filter(|_| self.is_file)?;
        Some(OutFile { device: status.st_dev, inode: status.st_ino, bytes: u64::try_from(status.st_size).ok()? })
    }

    /// Writes as much as possible without blocking.
    pub(super) fn write(&mut self) {
        let chunk = if self.is_file { FILE_CHUNK } else { PIPE_CHUNK };
        while !self.is_empty() && (self.is_file || self.is_writable()) {
            let rest = self.pending.get(self.written..).unwrap_or_default();
            match nix::unistd::write(&self.descriptor, rest.get(..chunk).unwrap_or(rest)) {
                Ok(count) => {
                    let last = rest.get(..count).and_then(|done| done.iter().rposition(|byte| *byte == b'\n'));
                    self.whole = last.map_or(self.whole, |at| self.reached + at as u64 + 1);
                    self.reached += count as u64;
                    self.written += count;
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(Errno::EPIPE | Errno::EIO) if !self.is_file => self.end(OutputError::Closed),
                Err(errno) => self.fail(errno.into()),
            }
        }
        if self.is_empty() {
            self.pending.clear();
            self.written = 0;
        } else if self.written > FULL {
            self.pending.drain(..self.written);
            self.written = 0;
        }
    }

    /// Also if it is known to be closed: writing then reports it.
    fn is_writable(&self) -> bool {
        let mut descriptors = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLOUT)];
        poll(&mut descriptors, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    /// The disk is full: truncates the file to its last complete line, and counts the lost lines.
    pub(super) fn fail(&mut self, error: io::Error) {
        let torn = self.reached - self.whole;
        self.dropped = self.dropped.saturating_add(lines(self.pending.get(self.written..).unwrap_or_default()));
        if self.is_file && torn > 0 {
            let length = fstat(&self.descriptor).ok().and_then(|status| u64::try_from(status.st_size).ok());
            // On failure the line stays incomplete, as before.
            let _ = length
                .and_then(|length| length.checked_sub(torn))
                .map(|length| nix::unistd::ftruncate(&self.descriptor, length as i64));
        }
        self.end(OutputError::Failed(error));
    }

    /// Ends the output: what is buffered is discarded.
    pub(super) fn end(&mut self, ended: OutputError) {
        self.keep(self.buffered());
        self.discard();
        self.ended = Some(ended);
    }

    /// Discards what is buffered.
    pub(super) fn discard(&mut self) {
        self.pending.clear();
        self.written = 0;
    }
}

/// Number of line ends.
fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
