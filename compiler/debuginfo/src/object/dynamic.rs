// SPDX-License-Identifier: GPL-2.0-or-later

//! What a program or library tells the dynamic linker (System V ABI, chapter 5).

use spile_abi::libraries::Asked;

use super::elf::Elf;

/// Entries that are looked at: linkers write some thirty.
const MOST: usize = 4096;

impl Elf {
    /// The libraries that it needs, and where they are looked for.
    pub fn asked(&self) -> Asked {
        let interpreter = self.section_bytes(".interp").and_then(|text| text.split(|byte| *byte == 0).next());
        let table = self.section_bytes(".dynamic").unwrap_or_default();
        let strings = self.section_bytes(".dynstr").unwrap_or_default();
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
        let entries = table.chunks_exact(16).take(MOST).map(|entry| entry.split_at(8));
        // Tags of 32 bits are not signed in the file that stands for such a program.
        let entries = entries.map(|(tag, value)| (word(tag).cast_signed(), word(value)));
        Asked::read(entries, strings, interpreter.map(<[u8]>::to_vec))
    }

    /// Names of the libraries that it needs itself, as it has them: `libc.so.6`.
    pub fn needed(&self) -> Vec<String> {
        self.asked().needed.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }
}
