// SPDX-License-Identifier: GPL-2.0-or-later

//! Writes a recording: frames, to be appended to a file.

use miniz_oxide::deflate::compress_to_vec;
use spile_abi::record::Record;

use super::names::Kept;
use super::{FrameKind, MAGIC, MAX_CONTENTS, VERSION, crc32, put_bytes, put_pairs, put_u32, put_u64};

/// Records are written when there are this many bytes of them, or when there are no more at the moment.
const FULL: usize = 256 << 10;
/// The same for their names: a record of some bytes may have many long ones.
const FULL_OF_NAMES: usize = 4 << 20;
/// Of deflate, 1 to 10: the fastest.
const LEVEL: u8 = 1;
/// Shorter contents are not compressed.
const LEAST: usize = 64;

/// Collects records, and makes frames of them.
#[derive(Debug)]
pub struct Recorder<'k> {
    kept: &'k Kept,
    records: Vec<u8>,
    /// Complete frames.
    frames: Vec<u8>,
    losses: Vec<(u32, u64, u64)>,
    /// Records that were too long.
    omitted: u64,
}

impl<'k> Recorder<'k> {
    /// `kept`: gets the names of addresses in the records; `meta`: the section of the module.
    pub fn new(kept: &'k Kept, about: &[(&str, String)], meta: &[u8]) -> Recorder<'k> {
        let mut recorder = Recorder { kept, records: Vec::new(), frames: Vec::new(), losses: Vec::new(), omitted: 0 };
        let mut contents = Vec::new();
        put_u32(&mut contents, VERSION);
        put_pairs(&mut contents, about);
        put_bytes(&mut contents, meta);
        recorder.frame(FrameKind::Header, &contents);
        recorder
    }

    /// Adds a record; its names are asked for before [`Recorder::flush`].
    pub fn push(&mut self, record: &Record, payload: &[u8]) {
        let bytes = size_of::<Record>() + payload.len();
        if bytes > MAX_CONTENTS {
            self.omitted += 1;
            return;
        }
        put_u32(&mut self.records, bytes as u32);
        self.records.extend(record.kind.to_le_bytes());
        self.records.extend(record.cpu.to_le_bytes());
        put_u32(&mut self.records, record.id);
        put_u32(&mut self.records, record.probe);
        put_u64(&mut self.records, record.time);
        self.records.extend(payload);
    }

    /// Records should be written before more are added.
    pub fn is_full(&self) -> bool {
        self.records.len() >= FULL || self.kept.bytes() >= FULL_OF_NAMES
    }

    /// Notes what has been lost so far: CPU, records, bytes.
    pub fn lost(&mut self, cpus: &[(u32, u64, u64)]) {
        if self.losses == cpus {
            return;
        }
        self.losses = cpus.to_vec();
        let mut contents = Vec::new();
        put_u32(&mut contents, cpus.len() as u32);
        for (cpu, records, bytes) in cpus {
            put_u32(&mut contents, *cpu);
            put_u64(&mut contents, *records);
            put_u64(&mut contents, *bytes);
        }
        self.records();
        self.frame(FrameKind::Losses, &contents);
    }

    /// Notes the counters of all probes.
    pub fn counts(&mut self, json: &str) {
        self.records();
        self.frame(FrameKind::Counts, json.as_bytes());
    }

    /// Notes the end of the session.
    pub fn end(&mut self, status: i32, about: &[(&str, String)]) {
        self.records();
        let mut contents = status.to_le_bytes().to_vec();
        let omitted = [("omitted", self.omitted.to_string())];
        let about = if self.omitted > 0 { [about, &omitted].concat() } else { about.to_vec() };
        put_pairs(&mut contents, &about);
        self.frame(FrameKind::End, &contents);
    }

    /// Passes on complete frames with everything so far.
    pub fn flush(&mut self, print: impl FnOnce(&[u8])) {
        self.records();
        if !self.frames.is_empty() {
            print(&self.frames);
        }
        self.frames.clear();
    }

    /// Makes frames of the records so far. Their names come first.
    fn records(&mut self) {
        let names = self.kept.take();
        if !names.is_empty() {
            self.frame(FrameKind::Names, &names);
        }
        if !self.records.is_empty() {
            let records = std::mem::take(&mut self.records);
            self.frame(FrameKind::Records, &records);
            self.records = records;
            self.records.clear();
        }
    }

    fn frame(&mut self, kind: FrameKind, contents: &[u8]) {
        let compressed = (contents.len() >= LEAST).then(|| compress_to_vec(contents, LEVEL));
        let stored = compressed.as_deref().filter(|stored| stored.len() < contents.len()).unwrap_or(contents);
        let mut head = MAGIC.to_vec();
        head.extend([kind as u8, 0, 0, 0]);
        put_u32(&mut head, stored.len() as u32);
        put_u32(&mut head, contents.len() as u32);
        let sum = crc32(&[&head, stored]);
        put_u32(&mut head, sum);
        self.frames.extend(head);
        self.frames.extend(stored);
    }
}
