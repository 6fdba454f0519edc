// SPDX-License-Identifier: GPL-2.0-or-later

//! A hasher for maps by entry.

use std::hash::{BuildHasherDefault, Hasher};

/// Hashes small numbers: most time would go into the standard hasher, which resists chosen ones. An entry's number occurs once.
pub(super) type Quick = BuildHasherDefault<QuickHasher>;

#[derive(Default)]
pub(super) struct QuickHasher(u64);

impl QuickHasher {
    fn add(&mut self, number: u64) {
        // 2^64 divided by the golden ratio: the upper half has all bits of the input.
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }
}
