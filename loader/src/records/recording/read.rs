// SPDX-License-Identifier: GPL-2.0-or-later

//! Reads a recording. Nothing in it is trusted: it may be damaged, cut off, or made by anyone.

use std::fmt;
use std::io::{self, Read};

use miniz_oxide::inflate::decompress_to_vec_with_limit;
use spile_abi::record::{ALIGNMENT, Record};

use super::{Cursor, FRAME_HEAD, FrameKind, MAGIC, MAX_CONTENTS, SUMMED_HEAD, VERSION, crc32};

/// Why a recording cannot be read any further.
#[derive(Debug)]
pub enum RecordingError {
    /// The file cannot be read.
    Read(io::Error),
    /// It does not begin as a recording does.
    NotOne,
    /// It was written in another version of the encoding.
    Version(u32),
    /// It ends inside a frame, which begins at this byte.
    CutOff(u64),
    /// The frame that begins at this byte is damaged.
    Damaged(u64),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::Read(error) => write!(f, "it cannot be read: {error}"),
            RecordingError::NotOne => write!(f, "it is no recording of spile (spile --record FILE makes one)"),
            RecordingError::Version(version) => {
                write!(f, "it is a recording of version {version}, this program reads version {VERSION}")
            }
            RecordingError::CutOff(at) => {
                write!(f, "it ends inside a frame, which begins at byte {at}: what is before it was read")
            }
            RecordingError::Damaged(at) => write!(f, "it is damaged at byte {at}: what is before it was read"),
        }
    }
}

impl std::error::Error for RecordingError {}

/// A frame's contents.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A recording begins.
    Header(Header),
    /// Records: [`Records`] reads them.
    Records(Vec<u8>),
    /// Names for the records that follow: for [`super::names::Answers`].
    Names(Vec<u8>),
    /// Lost so far: CPU, records, bytes.
    Losses(Vec<(u32, u64, u64)>),
    /// The counters of all probes so far: JSON.
    Counts(String),
    /// The session has ended.
    End {
        /// Exit status of the loader.
        status: i32,
        /// Further facts.
        about: Vec<(String, String)>,
    },
}

/// The first frame of a recording.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// Facts about the session, by name.
    pub about: Vec<(String, String)>,
    /// The module's section `.spile.meta`.
    pub meta: Vec<u8>,
}

/// Reads frames one after the other.
#[derive(Debug)]
pub struct Frames<R> {
    from: R,
    /// Bytes read so far.
    at: u64,
}

impl<R: Read> Frames<R> {
    /// From the start of a recording.
    pub fn new(from: R) -> Frames<R> {
        Frames { from, at: 0 }
    }

    /// The next frame; `None` at the end.
    pub fn read(&mut self) -> Result<Option<Frame>, RecordingError> {
        let start = self.at;
        let mut head = [0; FRAME_HEAD];
        match self.fill(&mut head)? {
            0 if start == 0 => return Err(RecordingError::NotOne),
            0 => return Ok(None),
            FRAME_HEAD => {}
            _ if start == 0 => return Err(RecordingError::NotOne),
            _ => return Err(RecordingError::CutOff(start)),
        }
        let damaged = || if start == 0 { RecordingError::NotOne } else { RecordingError::Damaged(start) };
        let mut cursor = Cursor { bytes: &head };
        if cursor.take(4) != Some(MAGIC) {
            return Err(damaged());
        }
        let kind = cursor.u8().and_then(FrameKind::from_number);
        let flags = cursor.take(3);
        let (stored, contents, sum) = (cursor.u32(), cursor.u32(), cursor.u32());
        let (Some(kind), Some([0, 0, 0]), Some(stored), Some(contents), Some(sum)) =
            (kind, flags, stored, contents, sum)
        else {
            return Err(damaged());
        };
        let (stored, length) = (stored as usize, contents as usize);
        if stored > length || length > MAX_CONTENTS || (start == 0 && kind != FrameKind::Header) {
            return Err(damaged());
        }
        // What is there, not what the head claims, takes memory.
        let mut bytes = Vec::new();
        let read = self.from.by_ref().take(stored as u64).read_to_end(&mut bytes).map_err(RecordingError::Read)?;
        self.at += read as u64;
        if read < stored {
            return Err(RecordingError::CutOff(start));
        }
        if crc32(&[head.get(..SUMMED_HEAD).unwrap_or_default(), &bytes]) != sum {
            return Err(damaged());
        }
        let bytes = match stored == length {
            true => bytes,
            false => decompress_to_vec_with_limit(&bytes, length).map_err(|_| damaged())?,
        };
        if bytes.len() != length {
            return Err(damaged());
        }
        decode(kind, bytes).map(Some).map_err(|version| version.map_or_else(damaged, RecordingError::Version))
    }

    /// As many bytes as there are.
    fn fill(&mut self, mut into: &mut [u8]) -> Result<usize, RecordingError> {
        let mut filled = 0;
        while !into.is_empty() {
            match self.from.read(into) {
                Ok(0) => break,
                Ok(count) => {
                    filled += count;
                    into = into.get_mut(count..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(RecordingError::Read(error)),
            }
        }
        self.at += filled as u64;
        Ok(filled)
    }
}

/// The error is another version, or none: they are damaged.
fn decode(kind: FrameKind, contents: Vec<u8>) -> Result<Frame, Option<u32>> {
    let mut cursor = Cursor { bytes: &contents };
    let frame = match kind {
        FrameKind::Records => return Ok(Frame::Records(contents)),
        FrameKind::Names => return Ok(Frame::Names(contents)),
        FrameKind::Counts => return String::from_utf8(contents).map(Frame::Counts).map_err(|_| None),
        FrameKind::Header => {
            let version = cursor.u32().ok_or(None)?;
            if version != VERSION {
                return Err(Some(version));
            }
            header(&mut cursor)
        }
        FrameKind::Losses => losses(&mut cursor),
        FrameKind::End => end(&mut cursor),
    };
    frame.filter(|_| cursor.bytes.is_empty()).ok_or(None)
}

fn header(cursor: &mut Cursor<'_>) -> Option<Frame> {
    Some(Frame::Header(Header { about: cursor.pairs()?, meta: cursor.bytes()?.to_vec() }))
}

fn losses(cursor: &mut Cursor<'_>) -> Option<Frame> {
    /// Kernels have 8192 CPUs at most.
    const MOST: u32 = 1 << 16;
    let count = cursor.u32().filter(|count| *count <= MOST)?;
    let cpus = (0..count).map(|_| Some((cursor.u32()?, cursor.u64()?, cursor.u64()?)));
    Some(Frame::Losses(cpus.collect::<Option<_>>()?))
}

fn end(cursor: &mut Cursor<'_>) -> Option<Frame> {
    Some(Frame::End { status: cursor.u32()? as i32, about: cursor.pairs()? })
}

/// The records of a frame, with their payloads. `None` at the end; an error: the rest is damaged.
#[derive(Debug)]
pub struct Records<'b> {
    cursor: Cursor<'b>,
}

impl fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("left", &self.bytes.len()).finish()
    }
}

impl<'b> Records<'b> {
    /// Of the contents of [`Frame::Records`].
    pub fn new(contents: &'b [u8]) -> Records<'b> {
        Records { cursor: Cursor { bytes: contents } }
    }

    fn record(&mut self) -> Option<(Record, &'b [u8])> {
        let bytes = self.cursor.u32()?;
        let mark = self.cursor.u32()?;
        let (id, probe, time) = (self.cursor.u32()?, self.cursor.u32()?, self.cursor.u64()?);
        let length = (bytes as usize).checked_sub(size_of::<Record>())?;
        let payload = self.cursor.take(length).filter(|_| length.is_multiple_of(ALIGNMENT))?;
        Some((Record { bytes, kind: mark as u16, cpu: (mark >> 16) as u16, id, probe, time }, payload))
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = Result<(Record, &'b [u8]), ()>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.cursor.bytes.is_empty() {
            return None;
        }
        let record = self.record();
        if record.is_none() {
            self.cursor.bytes = &[];
        }
        Some(record.ok_or(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::recording::names::Kept;
    use crate::records::recording::write::Recorder;
    use spile_abi::record::Kind;

    fn record(time: u64) -> Record {
        Record { bytes: 0, kind: Kind::Print as u16, cpu: 3, id: 1, probe: 2, time }
    }

    fn recording() -> Vec<u8> {
        let kept = Kept::default();
        let mut recorder = Recorder::new(&kept, &[("release", "6.1.0".into())], b"the section");
        let mut file = Vec::new();
        (0..100).for_each(|time| recorder.push(&record(time), &[7; 16]));
        recorder.flush(|bytes| file.extend_from_slice(bytes));
        recorder.flush(|_| panic!("nothing is left"));
        recorder.lost(&[(1, 5, 200)]);
        recorder.lost(&[(1, 5, 200)]);
        recorder.push(&record(100), &[]);
        recorder.end(1, &[("stats", "{}".into())]);
        recorder.flush(|bytes| file.extend_from_slice(bytes));
        file
    }

    fn read(bytes: &[u8]) -> (Vec<Frame>, Option<RecordingError>) {
        let mut frames = Frames::new(bytes);
        let mut read = Vec::new();
        loop {
            match frames.read() {
                Ok(Some(frame)) => read.push(frame),
                Ok(None) => return (read, None),
                Err(error) => return (read, Some(error)),
            }
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let (frames, error) = read(&recording());
        assert!(error.is_none());
        let [header, records, losses, last, end] = frames.as_slice() else { panic!("{frames:?}") };
        let about = vec![("release".to_string(), "6.1.0".to_string())];
        assert_eq!(*header, Frame::Header(Header { about, meta: b"the section".to_vec() }));
        let of = |frame: &Frame| match frame {
            Frame::Records(contents) => {
                let records =
                    Records::new(contents).map(|record| record.map(|(record, payload)| (record.time, payload.len())));
                records.collect::<Result<Vec<_>, ()>>().unwrap()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(of(records), (0..100).map(|time| (time, 16)).collect::<Vec<_>>());
        assert_eq!(of(last), [(100, 0)]);
        assert_eq!(*losses, Frame::Losses(vec![(1, 5, 200)]));
        assert_eq!(*end, Frame::End { status: 1, about: vec![("stats".into(), "{}".into())] });
        // A hundred equal records are compressed.
        assert!(recording().len() < 1000);
    }

    #[test]
    fn a_recording_that_is_cut_off_is_read_up_to_there() {
        let whole = recording();
        let (all, _) = read(&whole);
        let mut ends = 0;
        for end in 0..whole.len() {
            let (frames, error) = read(&whole[..end]);
            assert_eq!(frames, all[..frames.len()]);
            match error {
                None => ends += 1,
                Some(RecordingError::CutOff(at)) => assert!(at <= end as u64),
                Some(RecordingError::NotOne) => assert!(end < FRAME_HEAD),
                Some(other) => panic!("{end}: {other}"),
            }
        }
        // Between frames nothing is missing.
        assert_eq!(ends, all.len() - 1);
    }

    #[test]
    fn every_changed_byte_is_found() {
        let whole = recording();
        let (all, _) = read(&whole);
        for at in 0..whole.len() {
            for change in [1, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                let (frames, error) = read(&bytes);
                assert!(error.is_some() && frames == all[..frames.len()], "{at}");
            }
        }
    }

    #[test]
    fn counts_beyond_the_bytes_take_no_memory() {
        let head = |kind: u8, stored: u32, contents: u32, bytes: &[u8]| {
            let mut frame = [&MAGIC[..], &[kind, 0, 0, 0]].concat();
            frame.extend([stored, contents].iter().flat_map(|word| word.to_le_bytes()));
            frame.extend(crc32(&[&frame, bytes]).to_le_bytes());
            frame.extend(bytes);
            frame
        };
        let mut header = recording();
        let (frames, _) = read(&header);
        assert_eq!(frames.len(), 5);
        header.truncate(20 + u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize);
        for (frame, expected) in [
            (head(2, 64 << 20, 64 << 20, b"few"), "CutOff"),
            (head(2, u32::MAX, u32::MAX, b""), "Damaged"),
            (head(2, 3, 64 << 20, b"\xff\xff\xff"), "Damaged"),
            (head(4, 4, 4, &[0xff; 4]), "Damaged"),
            (head(5, 8, 8, &[0xff; 8]), "Damaged"),
            (head(9, 0, 0, b""), "Damaged"),
        ] {
            let (frames, error) = read(&[&header[..], &frame].concat());
            assert_eq!(frames.len(), 1);
            assert!(format!("{error:?}").starts_with(&format!("Some({expected}(")), "{error:?}");
        }
        // A deflated megabyte that claims to be a few bytes.
        let bomb = miniz_oxide::deflate::compress_to_vec(&vec![0; 1 << 20], 9);
        let frame = head(2, bomb.len() as u32, bomb.len() as u32 + 1, &bomb);
        assert!(matches!(read(&[&header[..], &frame].concat()).1, Some(RecordingError::Damaged(_))));
        assert!(matches!(read(b"SPLX, not a recording").1, Some(RecordingError::NotOne)));
        assert!(matches!(read(b"").1, Some(RecordingError::NotOne)));
    }

    #[test]
    fn invalid_records_end_a_frame() {
        for bytes in [[0u8; 24], [0xff; 24]] {
            let records: Vec<_> = Records::new(&bytes).collect();
            assert_eq!(records, [Err(())]);
        }
        assert_eq!(Records::new(&[1; 7]).collect::<Vec<_>>(), [Err(())]);
        assert_eq!(Records::new(&[]).count(), 0);
    }
}
