// SPDX-License-Identifier: GPL-2.0-or-later

//! Output: the script's output goes to standard output or a file, everything else to standard error.
//!
//! Nothing here blocks: text is buffered until a descriptor accepts it, so that the poll loop continues, sees signals,
//! and can stop the session even while a pipe is full. The loop limits the amount of buffered text.

pub mod progress;
pub mod rotate;
mod sink;
mod stream;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::poll::PollFlags;
use nix::sys::stat::fstat;

use crate::error::Error;
use crate::options::{Escape, Options};
use crate::records::ring::OutFile;
use rotate::Files;
use sink::{FULL, Sink};
use spile_abi::escape;
use stream::OutputStream;

pub use sink::OutputError;

/// All outputs.
#[derive(Debug)]
pub struct Sinks {
    /// One, or in bulk mode one for each CPU. Never empty.
    outs: Vec<OutputStream>,
    /// The current one.
    current: usize,
    /// `None`: standard error is the same as standard output, and both share one order.
    err: Option<Sink>,
    /// Escape control characters in the script's output, except newlines and tabs.
    escapes: bool,
}

impl Sinks {
    /// Opens the outputs of `-o`, `-S` and `--bulk`; `cpus`: their number, for bulk mode; `stdout`: standard output, if this
    /// process's is another one.
    pub fn open(options: &Options, cpus: u32, stdout: Option<OwnedFd>) -> Result<Sinks, Error> {
        let mut sinks = Sinks::open_all(options, cpus, stdout)?;
        if options.record && sinks.is_for_people() {
            let error = io::Error::other("a recording is not text: write it to a file or a pipe, without the messages");
            return Err(Error::OpenOutput { path: "-".into(), error });
        }
        sinks.escapes = match options.escape {
            Escape::Never => false,
            Escape::Always => true,
            Escape::Auto => sinks.outs.iter().any(|out| nix::unistd::isatty(&out.sink.descriptor).unwrap_or(false)),
        };
        Ok(if options.keep { sinks.keeping() } else { sinks })
    }

    /// The script's output goes to a terminal, or to the same file as messages.
    fn is_for_people(&self) -> bool {
        self.err.is_none() || self.outs.iter().any(|out| nix::unistd::isatty(&out.sink.descriptor).unwrap_or(false))
    }

    /// Retains script output that cannot be written.
    pub fn keeping(mut self) -> Sinks {
        self.outs.iter_mut().for_each(|out| out.sink.keeps = true);
        self
    }

    fn open_all(options: &Options, cpus: u32, stdout: Option<OwnedFd>) -> Result<Sinks, Error> {
        let err = Some(Sink::new(duplicate(io::stderr().as_fd())?));
        if options.bulk {
            let name = options.output.as_deref().unwrap_or(Path::new("stpd"));
            let outs = (0..cpus.max(1))
                .map(|cpu| OutputStream::open(Files::new(name, Some(cpu), options.rotation, options.append)));
            return Ok(Sinks { outs: outs.collect::<Result<_, _>>()?, current: 0, err, escapes: false });
        }
        match &options.output {
            Some(name) => Ok(Sinks {
                outs: vec![OutputStream::open(Files::new(name, None, options.rotation, options.append))?],
                current: 0,
                err,
                escapes: false,
            }
            .merged()),
            None => {
                let stdout = stdout.map_or_else(|| duplicate(io::stdout().as_fd()), Ok)?;
                Ok(Sinks::new(stdout, duplicate(io::stderr().as_fd())?))
            }
        }
    }

    /// Standard output (or its replacement) and standard error.
    pub fn new(out: OwnedFd, err: OwnedFd) -> Sinks {
        let out = OutputStream { sink: Sink::new(out), files: None };
        Sinks { outs: vec![out], current: 0, err: Some(Sink::new(err)), escapes: false }.merged()
    }

    /// Standard error has no sink of its own if it is the same file.
    fn merged(mut self) -> Sinks {
        let place = |sink: &Sink| fstat(&sink.descriptor).ok().map(|status| (status.st_dev, status.st_ino));
        let out = self.outs.first().and_then(|out| place(&out.sink));
        if out.is_some() && out == self.err.as_ref().and_then(place) {
            self.err = None;
        }
        self
    }

    /// The CPU that the following output is from; used only in bulk mode.
    pub fn select_cpu(&mut self, cpu: u32) {
        if self.outs.len() > 1 {
            self.current = (cpu as usize).min(self.outs.len() - 1);
        }
    }

    /// Switches to the next file now.
    pub fn rotate(&mut self) {
        self.outs.iter_mut().for_each(OutputStream::next_file);
    }

    /// Sends messages to the script's output from now on.
    pub fn leave_terminal(&mut self) {
        self.write();
        self.err = None;
    }

    /// Queues output of the script.
    pub fn print(&mut self, text: &[u8]) {
        let Some(out) = self.outs.get_mut(self.current) else { return };
        match self.escapes {
            true => out.print(&escape::output(text)),
            false => out.print(text),
        }
    }

    fn sinks(&self) -> impl Iterator<Item = &Sink> {
        self.outs.iter().map(|out| &out.sink).chain(&self.err)
    }

    fn sinks_mut(&mut self) -> impl Iterator<Item = &mut Sink> {
        self.outs.iter_mut().map(|out| &mut out.sink).chain(&mut self.err)
    }

    /// Queues a line for standard error. Control characters in it are escaped.
    pub fn message(&mut self, line: &str) {
        self.push_message(&escape::line(line));
        self.push_message("\n");
    }

    /// Queues a table for standard error: its line structure is trusted, its contents may come from outside.
    pub fn table(&mut self, text: &str) {
        text.trim_end().split('\n').for_each(|line| self.message(line));
    }

    /// Clears the terminal that messages go to.
    pub fn clear(&mut self) {
        self.push_message("\x1b[H\x1b[2J");
    }

    fn push_message(&mut self, text: &str) {
        let out = self.outs.first_mut().map(|out| &mut out.sink);
        if let Some(sink) = self.err.as_mut().or(out) {
            sink.push(text.as_bytes());
        }
    }

    /// Bytes pushed so far, by stream in the order of [`Sinks::written`].
    pub fn pushed(&self) -> impl Iterator<Item = u64> {
        self.sinks().map(|sink| sink.pushed)
    }

    /// Bytes written or discarded so far, by stream.
    pub fn written(&self) -> impl Iterator<Item = u64> {
        self.sinks().map(Sink::done)
    }

    /// The regular files among the script's outputs: by CPU in bulk mode, else one.
    pub fn files(&self) -> impl Iterator<Item = Option<OutFile>> {
        self.outs.iter().map(|out| out.sink.file())
    }

    /// Truncates files to their earlier lengths; false if one is not among them.
    pub fn truncate(&mut self, wanted: &[OutFile]) -> bool {
        self.outs.iter().zip(wanted).all(|(out, wanted)| wanted.inode > 0 && out.truncate(*wanted))
    }

    /// Writes as much as possible without blocking.
    pub fn write(&mut self) {
        self.sinks_mut().for_each(Sink::write);
    }

    /// Too much is buffered: read no more records.
    pub fn is_full(&self) -> bool {
        self.sinks().map(Sink::buffered).sum::<usize>() > FULL
    }

    /// Whether everything is written.
    pub fn is_empty(&self) -> bool {
        self.sinks().all(Sink::is_empty)
    }

    /// Discards buffered and further output of the script; false if nothing was buffered.
    pub fn give_up(&mut self) -> bool {
        if self.is_empty() {
            return false;
        }
        self.outs.iter_mut().for_each(|out| out.sink.end(OutputError::Closed));
        if let Some(err) = &mut self.err {
            err.discard();
        }
        true
    }

    /// Lines of the script's output that could not be written.
    pub fn dropped(&self) -> u64 {
        self.outs
            .iter()
            .filter(|out| matches!(out.sink.ended, Some(OutputError::Failed(_))))
            .map(|out| out.sink.dropped)
            .sum()
    }

    /// Why the script's output cannot be written any more.
    pub fn ended(&self) -> Option<&OutputError> {
        self.outs.iter().find_map(|out| out.sink.ended.as_ref())
    }

    /// Descriptors to poll and their events: writable if output is buffered, else only hang-up. None for files, which
    /// always accept more, and for ended streams.
    pub fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.sinks().filter(|sink| sink.ended.is_none() && !sink.is_file).map(|sink| {
            let events = if sink.is_empty() { PollFlags::empty() } else { PollFlags::POLLOUT };
            (sink.descriptor.as_fd(), events)
        })
    }

    /// To be called with the poll(2) results for [`Sinks::descriptors`], in their order: the reader may exit before
    /// there is something to write.
    pub fn found(&mut self, found: &[PollFlags]) {
        let waited = self.sinks_mut().filter(|sink| sink.ended.is_none() && !sink.is_file);
        for (sink, found) in waited.zip(found) {
            // A closed reader shows up as an error on a pipe, as a hang-up on a socket (the journal's).
            if found.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL) {
                sink.end(OutputError::Closed);
            }
        }
    }
}

/// Standard output, whose place standard error takes: commands of the script, and that of `-c`, write there.
pub fn take_stdout() -> Result<OwnedFd, Error> {
    let stdout = duplicate(io::stdout().as_fd())?;
    let failed = |error| Error::System { doing: "redirecting the output of commands", error };
    nix::unistd::dup2_stdout(io::stderr().as_fd()).map_err(|errno| failed(errno.into()))?;
    Ok(stdout)
}

/// A private duplicate, so that closing it has no side effect.
fn duplicate(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    descriptor.try_clone_to_owned().map_err(|error| Error::System { doing: "duplicating standard output", error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollTimeout, poll};
    use std::fs;
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
    fn a_closed_reader_ends_the_output() {
        let (reader, writer) = pipe();
        let (_other, err) = pipe();
        let mut sinks = Sinks::new(writer, err);
        drop(reader);
        sinks.print(b"x");
        sinks.write();
        assert!(matches!(sinks.ended(), Some(OutputError::Closed)));
        sinks.print(b"more");
        assert!(sinks.is_empty());
    }

    #[test]
    fn a_closed_reader_is_noticed_without_writing() {
        let (reader, writer) = pipe();
        let (_other, err) = pipe();
        let mut sinks = Sinks::new(writer, err);
        drop(reader);
        let found: Vec<PollFlags> = {
            let mut descriptors: Vec<PollFd> =
                sinks.descriptors().map(|(fd, events)| PollFd::new(fd, events)).collect();
            poll(&mut descriptors, PollTimeout::ZERO).unwrap();
            descriptors.iter().map(|descriptor| descriptor.revents().unwrap()).collect()
        };
        sinks.found(&found);
        assert!(matches!(sinks.ended(), Some(OutputError::Closed)));
    }

    #[test]
    fn a_socket_without_a_reader_is_closed_before_writing() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let (_other, err) = pipe();
        let mut sinks = Sinks::new(ours.into(), err);
        let look = |sinks: &mut Sinks| {
            let mut descriptors: Vec<PollFd<'_>> =
                sinks.descriptors().map(|(descriptor, events)| PollFd::new(descriptor, events)).collect();
            poll(&mut descriptors, PollTimeout::ZERO).unwrap();
            let found: Vec<PollFlags> = descriptors.iter().map(|descriptor| descriptor.revents().unwrap()).collect();
            drop(descriptors);
            sinks.found(&found);
        };
        look(&mut sinks);
        assert!(sinks.ended().is_none());
        drop(theirs);
        look(&mut sinks);
        assert!(matches!(sinks.ended(), Some(OutputError::Closed)));
    }

    #[test]
    fn a_full_disk_is_reported() {
        let full = Path::new("/dev/full");
        let (_other, err) = pipe();
        let mut sinks = Sinks::new(fs::OpenOptions::new().write(true).open(full).unwrap().into(), err);
        sinks.print(b"x");
        sinks.write();
        assert!(matches!(sinks.ended(), Some(OutputError::Failed(error)) if error.raw_os_error() == Some(28)));
    }

    #[test]
    fn a_file_that_cannot_grow_ends_with_a_whole_line() {
        let mut file = tempfile::tempfile().unwrap();
        let (_other, err) = pipe();
        let mut sinks = Sinks::new(file.try_clone().unwrap().into(), err);
        sinks.print(b"one\ntw");
        sinks.write();
        sinks.print(b"o\nthree\n");
        sinks.outs[0].sink.fail(io::Error::from_raw_os_error(28));
        sinks.print(b"four\n");
        let mut text = String::new();
        std::io::Seek::rewind(&mut file).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), sinks.dropped()), ("one\n", 3));
    }

    #[test]
    fn messages_and_prints_to_the_same_file_keep_their_order() {
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

    fn options(line: &str) -> Options {
        Options::parse(line.split(' ').map(std::ffi::OsString::from)).unwrap()
    }

    #[test]
    fn the_next_file_begins_with_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("log");
        let mut options = options(&format!("spilerun a.ko -o {} -S 1", name.display()));
        options.rotation = Some(crate::options::Rotation { bytes: 4, files: None });
        let mut sinks = Sinks::open(&options, 2, None).unwrap();
        for text in ["one\n", "t", "wo and more", "\n", "three\n"] {
            sinks.print(text.as_bytes());
        }
        sinks.rotate();
        sinks.print(b"four\n");
        sinks.write();
        let read = |number: u32| fs::read_to_string(directory.path().join(format!("log.{number}"))).unwrap();
        assert_eq!([0, 1, 2, 3].map(read), ["one\n", "two and more\n", "three\n", "four\n"]);
    }

    #[test]
    fn in_bulk_mode_each_cpu_has_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("log");
        let mut sinks = Sinks::open(&options(&format!("spilerun a.ko --bulk -o {}", name.display())), 2, None).unwrap();
        for (cpu, text) in [(0, "a"), (1, "b"), (0, "c"), (7, "d")] {
            sinks.select_cpu(cpu);
            sinks.print(text.as_bytes());
        }
        sinks.write();
        let read = |cpu: u32| fs::read_to_string(directory.path().join(format!("log_cpu{cpu}"))).unwrap();
        assert_eq!([read(0), read(1)], ["ac", "bd"]);
        assert!(Sinks::open(&options("spilerun a.ko -o /no/such/place"), 1, None).is_err());
    }
}
