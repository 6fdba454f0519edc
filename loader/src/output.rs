//! Where text goes: what the script prints to standard output or a file, all else to standard error.
//!
//! Nothing here waits: text is kept until a descriptor takes it, so that the poll loop goes on, sees signals, and stops
//! the session even while a pipe is full. How much is waiting is the loop's to look at.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};

use crate::error::Error;

/// A pipe that poll(2) calls writable takes this much without waiting (PIPE_BUF).
const PIPE_CHUNK: usize = 4096;
const FILE_CHUNK: usize = 1 << 20;
/// From here on no more records should be read.
const FULL: usize = 1 << 20;

/// Why nothing can be written any more.
#[derive(Debug)]
pub enum Ended {
    /// Nobody reads it (a closed pipe, a terminal that is gone).
    Closed,
    Failed(io::Error),
}

/// One descriptor and what is still to be written to it.
#[derive(Debug)]
struct Sink {
    descriptor: OwnedFd,
    is_file: bool,
    pending: Vec<u8>,
    /// Of `pending`: already written.
    written: usize,
    ended: Option<Ended>,
}

impl Sink {
    fn new(descriptor: OwnedFd) -> Sink {
        let mode = fstat(&descriptor).map(|status| SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT);
        Sink { descriptor, is_file: mode == Ok(SFlag::S_IFREG), pending: Vec::new(), written: 0, ended: None }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.ended.is_none() {
            self.pending.extend(bytes);
        }
    }

    fn is_empty(&self) -> bool {
        self.pending.len() == self.written
    }

    /// Writes what can be written without waiting.
    fn write(&mut self) {
        let chunk = if self.is_file { FILE_CHUNK } else { PIPE_CHUNK };
        while !self.is_empty() && (self.is_file || self.is_writable()) {
            let rest = self.pending.get(self.written..).unwrap_or_default();
            match nix::unistd::write(&self.descriptor, rest.get(..chunk).unwrap_or(rest)) {
                Ok(count) => self.written += count,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(Errno::EPIPE | Errno::EIO) if !self.is_file => self.end(Ended::Closed),
                Err(errno) => self.end(Ended::Failed(errno.into())),
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

    /// Also when it is known to be closed: then writing says so.
    fn is_writable(&self) -> bool {
        let mut descriptors = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLOUT)];
        poll(&mut descriptors, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    fn end(&mut self, ended: Ended) {
        self.pending.clear();
        self.written = 0;
        self.ended = Some(ended);
    }
}

/// Both ways out.
#[derive(Debug)]
pub struct Sinks {
    out: Sink,
    /// `None`: standard error is the same as standard output, and order is kept among them.
    err: Option<Sink>,
}

impl Sinks {
    /// `path`: of -o; else standard output.
    pub fn open(path: Option<&Path>) -> Result<Sinks, Error> {
        let out = match path {
            Some(path) => fs::File::create(path).map_err(|error| Error::OpenOutput { path: path.to_path_buf(), error })?.into(),
            None => duplicate(io::stdout().as_fd())?,
        };
        Ok(Sinks::new(out, duplicate(io::stderr().as_fd())?))
    }

    /// Standard output (or the file in its place) and standard error.
    pub fn new(out: OwnedFd, err: OwnedFd) -> Sinks {
        let is_same = match (fstat(&out), fstat(&err)) {
            (Ok(one), Ok(other)) => one.st_dev == other.st_dev && one.st_ino == other.st_ino,
            _ => false,
        };
        Sinks { out: Sink::new(out), err: (!is_same).then(|| Sink::new(err)) }
    }

    pub fn print(&mut self, text: &[u8]) {
        self.out.push(text);
    }

    /// A line for standard error.
    pub fn message(&mut self, line: &str) {
        let sink = self.err.as_mut().unwrap_or(&mut self.out);
        sink.push(line.as_bytes());
        sink.push(b"\n");
    }

    /// Writes what can be written without waiting.
    pub fn write(&mut self) {
        self.out.write();
        if let Some(err) = &mut self.err {
            err.write();
        }
    }

    /// More is waiting than is good: read no more records.
    pub fn is_full(&self) -> bool {
        let waiting = |sink: &Sink| sink.pending.len() - sink.written;
        waiting(&self.out) + self.err.as_ref().map_or(0, waiting) > FULL
    }

    pub fn is_empty(&self) -> bool {
        self.out.is_empty() && self.err.as_ref().is_none_or(Sink::is_empty)
    }

    /// Drops what is waiting, and what the script still prints; false if nothing was waiting.
    pub fn give_up(&mut self) -> bool {
        if self.is_empty() {
            return false;
        }
        self.out.end(Ended::Closed);
        if let Some(err) = &mut self.err {
            err.pending.clear();
            err.written = 0;
        }
        true
    }

    /// Why what the script prints goes nowhere any more.
    pub fn ended(&self) -> Option<&Ended> {
        self.out.ended.as_ref()
    }

    /// Descriptors to wait for, with what to wait for: room where something is waiting, else only the reader's end.
    /// None for files, which always take more, and for what has ended.
    pub fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let sinks = [Some(&self.out), self.err.as_ref()];
        sinks.into_iter().flatten().filter(|sink| sink.ended.is_none() && !sink.is_file).map(|sink| {
            let events = if sink.is_empty() { PollFlags::empty() } else { PollFlags::POLLOUT };
            (sink.descriptor.as_fd(), events)
        })
    }

    /// To be told of what poll(2) found for each of [`Sinks::descriptors`], in their order: the reader may be gone before
    /// there is something to write.
    pub fn found(&mut self, found: &[PollFlags]) {
        let sinks = [Some(&mut self.out), self.err.as_mut()];
        let waited = sinks.into_iter().flatten().filter(|sink| sink.ended.is_none() && !sink.is_file);
        for (sink, found) in waited.zip(found) {
            if found.intersects(PollFlags::POLLERR | PollFlags::POLLNVAL) {
                sink.end(Ended::Closed);
            }
        }
    }
}

/// A descriptor of our own, so that closing it is no loss.
fn duplicate(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    descriptor.try_clone_to_owned().map_err(|error| Error::System { doing: "duplicating standard output", error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn pipe() -> (fs::File, OwnedFd) {
        let (read, write) = nix::unistd::pipe().unwrap();
        (read.into(), write)
    }

    #[test]
    fn a_full_pipe_does_not_block_and_nothing_is_lost() {
        let (mut reader, writer) = pipe();
        let (_other, err) = pipe();
        let mut sinks = Sinks::new(writer, err);
        let text: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
        sinks.print(&text);
        sinks.write();
        assert!(sinks.is_full());
        let mut read = Vec::new();
        while !sinks.is_empty() {
            let mut buffer = vec![0; 100_000];
            let count = reader.read(&mut buffer).unwrap();
            read.extend(&buffer[..count]);
            sinks.write();
        }
        drop(sinks);
        reader.read_to_end(&mut read).unwrap();
        assert!(read == text);
    }

    #[test]
    fn a_reader_that_is_gone_ends_it_in_order() {
        let (reader, writer) = pipe();
        let (_other, err) = pipe();
        let mut sinks = Sinks::new(writer, err);
        drop(reader);
        sinks.print(b"x");
        sinks.write();
        assert!(matches!(sinks.ended(), Some(Ended::Closed)));
        sinks.print(b"more");
        assert!(sinks.is_empty());
    }

    #[test]
    fn a_reader_that_is_gone_is_noticed_without_writing() {
        let (reader, writer) = pipe();
        let (_other, err) = pipe();
        let mut sinks = Sinks::new(writer, err);
        drop(reader);
        let found: Vec<PollFlags> = {
            let mut descriptors: Vec<PollFd> = sinks.descriptors().map(|(fd, events)| PollFd::new(fd, events)).collect();
            poll(&mut descriptors, PollTimeout::ZERO).unwrap();
            descriptors.iter().map(|descriptor| descriptor.revents().unwrap()).collect()
        };
        sinks.found(&found);
        assert!(matches!(sinks.ended(), Some(Ended::Closed)));
    }

    #[test]
    fn a_full_disk_is_told() {
        let full = Path::new("/dev/full");
        let (_other, err) = pipe();
        let mut sinks = Sinks::new(fs::OpenOptions::new().write(true).open(full).unwrap().into(), err);
        sinks.print(b"x");
        sinks.write();
        assert!(matches!(sinks.ended(), Some(Ended::Failed(error)) if error.raw_os_error() == Some(28)));
    }

    #[test]
    fn messages_and_prints_keep_their_order_where_both_go_to_one_place() {
        let (mut reader, writer) = pipe();
        let err = writer.try_clone().unwrap();
        let mut sinks = Sinks::new(writer, err);
        sinks.print(b"one\n");
        sinks.message("two");
        sinks.print(b"three\n");
        sinks.write();
        drop(sinks);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\nthree\n");
    }
}
