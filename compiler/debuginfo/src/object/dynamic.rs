// SPDX-License-Identifier: GPL-2.0-or-later

//! What a program or library tells the dynamic linker (System V ABI, chapter 5): the libraries that it needs, and where they
//! are looked for.

use super::elf::Elf;

const DT_NEEDED: u64 = 1;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// Entries that are looked at: linkers write some thirty.
const MOST: usize = 4096;

impl Elf {
    /// Names of the libraries that it needs itself, as it has them: `libc.so.6`.
    pub fn needed(&self) -> Vec<String> {
        self.dynamic(DT_NEEDED)
    }

    /// Directories that are searched for what it needs itself, behind those of `LD_LIBRARY_PATH`; `$ORIGIN` not replaced.
    pub fn run_path(&self) -> Vec<String> {
        self.directories(DT_RUNPATH)
    }

    /// Directories that are searched first, also for what the libraries need that it needs.
    pub fn load_path(&self) -> Vec<String> {
        self.directories(DT_RPATH)
    }

    fn directories(&self, tag: u64) -> Vec<String> {
        let paths = self.dynamic(tag);
        paths.iter().flat_map(|path| path.split(':')).filter(|path| !path.is_empty()).map(str::to_string).collect()
    }

    /// Path of the dynamic linker (PT_INTERP).
    pub fn interpreter(&self) -> Option<String> {
        let text = self.section_bytes(".interp")?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// The strings that entries of this kind have.
    fn dynamic(&self, tag: u64) -> Vec<String> {
        let (Some(table), Some(strings)) = (self.section_bytes(".dynamic"), self.section_bytes(".dynstr")) else {
            return Vec::new();
        };
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
        let entries = table.chunks_exact(16).take(MOST).map(|entry| entry.split_at(8));
        let offsets = entries.filter(|(kind, _)| word(kind) == tag).map(|(_, value)| word(value));
        let text = |offset: u64| {
            let text = strings.get(usize::try_from(offset).ok()?..)?.split(|byte| *byte == 0).next()?;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        offsets.filter_map(text).collect()
    }
}
