// SPDX-License-Identifier: GPL-2.0-or-later

//! Tracks which records are written out: records that have been read stay in the rings until their text is written, so
//! that a killed loader loses nothing, and the next one knows which records may be printed twice.
//!
//! Each read of the rings records a mark: once this many bytes are written, the rings can be released up to this
//! position. Marks complete in order as the descriptors accept the bytes.

use std::collections::VecDeque;

use crate::output::Sinks;
use crate::records::ring::{OutFile, Ring};

/// Maximum number of pending marks; beyond it the last one is advanced.
const MOST: usize = 64;

#[derive(Debug)]
struct Mark {
    /// Bytes pushed, by sink.
    pushed: Vec<u64>,
    /// Position of the reader, by ring.
    tails: Vec<u64>,
}

/// Marks whose text is not yet written.
#[derive(Debug, Default)]
pub struct Progress {
    marks: VecDeque<Mark>,
}

impl Progress {
    /// Everything read so far is pushed into the sinks.
    pub fn mark<R: AsMut<Ring>>(&mut self, rings: &mut [R], sinks: &Sinks) {
        let tails: Vec<u64> = rings
            .iter_mut()
            .map(|ring| {
                let ring = ring.as_mut();
                ring.finish_pass();
                ring.read_up_to()
            })
            .collect();
        let is_same = match self.marks.back() {
            Some(last) => last.tails == tails,
            None => !rings.iter_mut().any(|ring| ring.as_mut().is_behind()),
        };
        if is_same {
            return;
        }
        if self.marks.len() >= MOST {
            self.marks.pop_back();
        }
        self.marks.push_back(Mark { pushed: sinks.pushed().collect(), tails });
    }

    /// Releases the records that have been written.
    pub fn release<R: AsMut<Ring>>(&mut self, rings: &mut [R], sinks: &Sinks) {
        let mut done = None;
        while self
            .marks
            .front()
            .is_some_and(|mark| mark.pushed.iter().zip(sinks.written()).all(|(pushed, written)| *pushed <= written))
        {
            done = self.marks.pop_front();
        }
        let Some(done) = done else { return };
        // Before the tails: if killed in between, the next loader releases them. If more may be written than is released, the
        // lengths of the files say nothing.
        let files: Vec<Option<OutFile>> = if self.marks.is_empty() { sinks.files().collect() } else { Vec::new() };
        set_written(rings, &done.tails, files);
        rings.iter_mut().zip(done.tails).for_each(|(ring, tail)| ring.as_mut().release(tail));
    }

    /// Some records are read but not yet written.
    pub fn is_behind(&self) -> bool {
        !self.marks.is_empty()
    }
}

/// The records up to `tails` are written out. `files`: those of the rings, with the lengths that belong to that, where they are known.
fn set_written<R: AsMut<Ring>>(rings: &mut [R], tails: &[u64], files: Vec<Option<OutFile>>) {
    let Some(turn) = rings.first_mut().map(|first| first.as_mut().turn().wrapping_add(1)) else { return };
    let mut files = files.into_iter();
    for (ring, tail) in rings.iter_mut().zip(tails) {
        ring.as_mut().set_written(turn, *tail, files.next().flatten().unwrap_or_default());
    }
    // From here on all of it is true.
    if let Some(first) = rings.first_mut() {
        first.as_mut().set_turn(turn);
    }
}

/// Recovers from a killed loader: releases the records that it has written out, truncates files to the text of these,
/// and returns the number of records that may still be printed twice.
pub fn recover<R: AsMut<Ring>>(rings: &mut [R], sinks: &mut Sinks) -> u64 {
    let turn = rings.first_mut().map_or(0, |first| first.as_mut().turn());
    let mut outs: Vec<OutFile> = Vec::new();
    for ring in rings.iter_mut().map(AsMut::as_mut) {
        let (tail, out) = ring.written(turn);
        ring.complete(tail);
        outs.push(out);
    }
    let count: u64 = rings.iter_mut().map(|ring| ring.as_mut().doubtful()).sum();
    match count > 0 && !sinks.truncate(&outs) {
        true => count,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::records::ring::tests::Fake;
    use std::io::{Read, Write};

    fn sinks(out: std::fs::File) -> Sinks {
        Sinks::new(out.into(), std::fs::OpenOptions::new().write(true).open("/dev/null").unwrap().into())
    }

    fn read(fake: &mut Fake, sinks: &mut Sinks) {
        fake.ring.refresh();
        let mut payload = Vec::new();
        while fake.ring.front().unwrap().is_some() {
            fake.ring.take(&mut payload);
            sinks.print(&payload);
        }
    }

    #[test]
    fn unwritten_records_stay_for_the_next_loader_of_a_session_that_continues() {
        for (keeps, left) in [(true, 2), (false, 0)] {
            let (reader, writer) = nix::unistd::pipe()
                .map(|(read, write)| (std::fs::File::from(read), std::fs::File::from(write)))
                .unwrap();
            let sinks = sinks(writer);
            let mut sinks = if keeps { sinks.keeping() } else { sinks };
            let mut fake = [Fake::new(0, 1 << 20)];
            let mut progress = Progress::default();
            let mut step = |fake: &mut [Fake; 1]| {
                read(&mut fake[0], &mut sinks);
                progress.mark(fake, &sinks);
                sinks.write();
                progress.release(fake, &sinks);
            };
            fake[0].write(0, b"written ");
            step(&mut fake);
            assert_eq!(fake[0].ring.doubtful(), 0);
            drop(reader);
            // One text whose writing fails, and one that is added after that.
            for number in 1..3 {
                fake[0].write(number, b"for the next one");
                step(&mut fake);
            }
            assert_eq!(fake[0].another().doubtful(), left, "{keeps}");
        }
    }

    #[test]
    fn unwritten_records_stay_in_the_ring() {
        let (mut reader, writer) =
            nix::unistd::pipe().map(|(read, write)| (std::fs::File::from(read), std::fs::File::from(write))).unwrap();
        let mut sinks = sinks(writer);
        let mut fake = [Fake::new(0, 1 << 20)];
        for number in 0..3 {
            fake[0].write(number, &[b'a'; 60_000]);
        }
        let mut progress = Progress::default();
        read(&mut fake[0], &mut sinks);
        progress.mark(&mut fake, &sinks);
        sinks.write();
        progress.release(&mut fake, &sinks);
        assert_eq!((fake[0].tail(), progress.is_behind()), (0, true), "the pipe holds less");
        assert_eq!(fake[0].ring.doubtful(), 0, "of what this one has read itself nothing is left to read");
        fake[0].write(9, b"more....");
        read(&mut fake[0], &mut sinks);
        progress.mark(&mut fake, &sinks);
        let mut buffer = vec![0; 300_000];
        for _ in 0..20 {
            let _ = reader.read(&mut buffer).unwrap();
            sinks.write();
            progress.release(&mut fake, &sinks);
            if !progress.is_behind() {
                break;
            }
        }
        assert_eq!(fake[0].tail(), fake[0].ring.read_up_to());
    }

    #[test]
    fn a_killed_loader_s_incomplete_line_is_removed_and_printed_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let open = || std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let mut fake = [Fake::new(0, 1 << 12)];
        let (mut first, mut progress) = (sinks(open()), Progress::default());
        fake[0].write(1, b"one\nand\n");
        read(&mut fake[0], &mut first);
        progress.mark(&mut fake, &first);
        first.write();
        progress.release(&mut fake, &first);
        fake[0].write(2, b"a longer");
        fake[0].write(3, b" line.\n\n");
        read(&mut fake[0], &mut first);
        progress.mark(&mut fake, &first);
        // Killed while writing.
        open().write_all(b"a lo").unwrap();
        let mut rings = [fake[0].another()];
        assert_eq!(rings[0].doubtful(), 2);
        // Standard output may be shared with other processes.
        assert_eq!(recover(&mut rings, &mut sinks(open())), 2);
        let mut options = Options::parse(
            ["spilerun", "a.ko", "-o"].map(std::ffi::OsString::from).into_iter().chain([path.clone().into()]),
        )
        .unwrap();
        options.append = true;
        let mut second = Sinks::open(&options, 1, None).unwrap();
        assert_eq!(recover(&mut rings, &mut second), 0);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\nand\n");
        // Killed after that, before the rings know it.
        fake[0].write(4, b"once.\n\n");
        let before = rings[0].read_up_to();
        let mut third = [fake[0].another()];
        third[0].refresh();
        let mut payload = Vec::new();
        while third[0].front().unwrap().is_some() {
            third[0].take(&mut payload);
        }
        open().write_all(b"a longer line.\n\nonce.\n\n").unwrap();
        let tail = third[0].read_up_to();
        super::set_written(&mut third, &[tail], second.files().collect());
        let mut fourth = [fake[0].another()];
        assert!(fourth[0].read_up_to() == before && fourth[0].doubtful() == 3);
        assert_eq!((recover(&mut fourth, &mut second), fourth[0].read_up_to()), (0, tail));
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("line.\n\nonce.\n\n"));
        // Killed before it was known in all rings.
        fake[0].write(5, b"again.\n\n");
        fourth[0].refresh();
        let after = fourth[0].front().unwrap().map(|_| fourth[0].read_up_to());
        fourth[0].set_written(fourth[0].turn() + 1, tail + 8, OutFile::default());
        open().write_all(b"again").unwrap();
        let mut fifth = [fake[0].another()];
        assert_eq!((recover(&mut fifth, &mut second), Some(fifth[0].read_up_to())), (0, after));
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("line.\n\nonce.\n\n"));
        // A length that belongs to more than is released says nothing.
        super::set_written(&mut fifth, &[tail], Vec::new());
        open().write_all(b"again").unwrap();
        assert_eq!(recover(&mut [fake[0].another()], &mut second), 1);
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("once.\n\nagain"));
        // Unknown for a pipe.
        let (_reader, writer) = nix::unistd::pipe().unwrap();
        let mut other = sinks(writer.into());
        assert_eq!(recover(&mut rings, &mut other), 1);
    }
}
