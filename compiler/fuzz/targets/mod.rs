// SPDX-License-Identifier: GPL-2.0-or-later

//! Readers of untrusted input, one function each: any bytes go in, and there is an answer or an error: no panic, no hang,
//! no memory out of proportion.
//!
//! `compiler/tests/fuzzed.rs` gives them the kept seeds and some thousand inputs in every test run, `cargo xtask fuzz` as
//! many as wanted, and `fuzz_targets/` what libFuzzer generates.

mod btf;
pub mod die;
pub mod elf;
mod file;
mod loader;
mod objects;
pub mod real;
mod root_part;
pub mod scripts;

/// A reader and its input.
pub struct Target {
    pub name: &'static str,
    /// Tries the bytes.
    pub run: fn(&[u8]),
    /// Inputs to begin with, generated here; those kept in files are added.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Most bytes of an input.
    pub longest: usize,
}

pub const TARGETS: [Target; 14] = [
    Target { name: "script", run: scripts::script, seeds: scripts::seeds, longest: 2000 },
    Target { name: "tapset", run: scripts::tapset, seeds: scripts::tapset_seeds, longest: 2000 },
    Target { name: "rc", run: scripts::rc, seeds: scripts::rc_seeds, longest: 400 },
    Target { name: "elf", run: objects::elf, seeds: objects::elf_seeds, longest: 4000 },
    Target { name: "dwarf", run: objects::dwarf, seeds: objects::dwarf_seeds, longest: 400 },
    Target { name: "btf", run: objects::btf, seeds: objects::btf_seeds, longest: 400 },
    Target { name: "index", run: objects::index, seeds: objects::index_seeds, longest: 600 },
    Target { name: "file", run: file::file, seeds: file::seeds, longest: 120 },
    Target { name: "packed", run: objects::packed, seeds: objects::packed_seeds, longest: 1000 },
    Target { name: "meta", run: loader::meta, seeds: loader::meta_seeds, longest: 1000 },
    Target { name: "record", run: loader::record, seeds: loader::record_seeds, longest: 400 },
    Target { name: "conf", run: loader::conf, seeds: loader::conf_seeds, longest: 400 },
    Target { name: "line", run: root_part::line, seeds: root_part::line_seeds, longest: 400 },
    Target { name: "signature", run: root_part::signature, seeds: root_part::signature_seeds, longest: 1500 },
];

/// A generator of Knuth's MMIX kind.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

/// The next input: one of the seeds with some changes, or bytes of no sense.
pub fn input(random: &mut Random, seeds: &[Vec<u8>], longest: usize) -> Vec<u8> {
    let mut bytes = match seeds.get(random.next(seeds.len() + seeds.len().div_ceil(8))) {
        Some(seed) => seed.clone(),
        None => {
            let small = random.next(2) == 0;
            let length = random.next(longest.min(300));
            (0..length).map(|_| if small { random.next(16) } else { random.next(256) } as u8).collect()
        }
    };
    for _ in 0..random.next(6) {
        let at = random.next(bytes.len());
        let end = (at + 1 + random.next(24)).min(bytes.len());
        match random.next(8) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.next(8),
            1 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.next(5)],
            2 if !bytes.is_empty() => bytes[at] = random.next(256) as u8,
            3 => bytes.insert(at, random.next(256) as u8),
            4 => drop(bytes.drain(at..end)),
            5 => bytes.truncate(at),
            6 => {
                let piece = bytes[at..end].to_vec();
                let place = random.next(bytes.len() + 1);
                bytes.splice(place..place, piece);
            }
            _ => {
                let Some(other) = seeds.get(random.next(seeds.len())) else { continue };
                let from = random.next(other.len());
                let piece = other.iter().skip(from).take(1 + random.next(40)).copied().collect::<Vec<u8>>();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes.truncate(longest);
    bytes
}

/// Bytes as decisions: each is read once, and zeros follow the last.
pub struct Choices<'b>(&'b [u8]);

impl<'b> Choices<'b> {
    pub fn new(bytes: &'b [u8]) -> Choices<'b> {
        Choices(bytes)
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub fn of(&mut self, below: usize) -> usize {
        usize::from(self.byte()) % below.max(1)
    }

    pub fn take(&mut self, count: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn rest(self) -> &'b [u8] {
        self.0
    }
}
