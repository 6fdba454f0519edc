// SPDX-License-Identifier: GPL-2.0-or-later

//! Where a thread has the variables of a program or library that each thread has its own of (Drepper, ELF Handling For
//! Thread-Local Storage, 3.4.6 and variant II of 3.3).

use object::{Object as _, ObjectKind};

use super::elf::{Address, Elf};
use super::narrow;
use super::thread_parts::{Parts, WIDE, Word};

/// DT_FLAGS_1 and its bit of position-independent executables.
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_1_PIE: u64 = 0x0800_0000;

/// The block of such variables of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadBlock {
    /// It begins this many bytes below the thread pointer: that of the program itself.
    Below(u64),
    /// The word, which the dynamic linker writes, is the distance of a variable from the thread pointer; the variable is so far
    /// behind the beginning of the block.
    Linked {
        /// Link-time address.
        word: Address,
        /// Bytes.
        variable: u64,
    },
    /// The word is the number of the object, by which the thread's vector of blocks is indexed.
    Numbered {
        /// Link-time address.
        word: Address,
        /// How many words the vector has for each object: two with glibc (sysdeps/generic/dl-dtv.h), one with musl (ldso/dynlink.c).
        entry: u8,
    },
    /// The word is the second one of a variable's descriptor (Oliva, Thread-Local Storage Descriptors): below 0 the distance of the
    /// variable, which is so far behind the beginning of the block, from the thread pointer; otherwise the address of the object's
    /// number. Addresses of 32 bits can be below 0 as well, but not by less than [`FARTHEST`].
    Described {
        /// Link-time address.
        word: Address,
        /// Bytes.
        variable: u64,
        /// As above.
        entry: u8,
    },
}

/// Distances of variables from the thread pointer are shorter, and no memory that a linker allocates is so near the end of 32-bit
/// addresses: the kernel leaves at least this to the stack there (arch/x86/mm/mmap.c, SIZE_128M).
pub const FARTHEST: u64 = 128 << 20;

impl Elf {
    /// How a thread's block is found; None: the object has none, or nothing in it tells.
    pub fn thread_block(&self) -> Option<ThreadBlock> {
        let parts = match self.section_bytes(narrow::THREADS) {
            Some(kept) => Parts::unpacked(kept),
            None => Parts::of(&self.parse().ok()?, WIDE),
        }?;
        if self.is_program() {
            return Some(ThreadBlock::Below(parts.bytes));
        }
        let entry = || if self.needed().iter().any(|name| is_musl(name)) { 1 } else { 2 };
        match parts.word {
            Word::None => None,
            Word::Linked { word, variable } => Some(ThreadBlock::Linked { word: self.address(word)?, variable }),
            Word::Numbered(word) => Some(ThreadBlock::Numbered { word: self.address(word)?, entry: entry() }),
            Word::Described { word, variable } => {
                Some(ThreadBlock::Described { word: self.address(word)?, variable, entry: entry() })
            }
        }
    }

    /// Whether processes can run it, as programs and not as libraries only.
    pub fn is_program(&self) -> bool {
        self.parse().is_ok_and(|elf| elf.kind() == ObjectKind::Executable) || self.flags_1() & DF_1_PIE != 0
    }

    fn flags_1(&self) -> u64 {
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
        let table = self.section_bytes(".dynamic").unwrap_or_default();
        let mut entries = table.chunks_exact(16).map(|entry| entry.split_at(8));
        entries.find(|(kind, _)| word(kind) == DT_FLAGS_1).map_or(0, |(_, value)| word(value))
    }
}

/// Whether a library of that name is musl: as Alpine calls it, and as it calls itself.
fn is_musl(needed: &str) -> bool {
    needed.starts_with("libc.musl-") || needed.starts_with("ld-musl-") || needed == "libc.so"
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const TEXT: &str = "__thread long first = 1; __thread int each = 7; int get(void) { return each + (int)first; }
        int main(void) { return get(); }";

    fn block(options: &[&str]) -> Option<ThreadBlock> {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("t.c"), TEXT).expect("written");
        let mut gcc = Command::new("gcc");
        let gcc = gcc.current_dir(directory.path()).args(["-O1", "t.c", "-o", "t"]).args(options).status();
        assert!(gcc.expect("gcc runs").success());
        Elf::open_program(&directory.path().join("t")).expect("an object").thread_block()
    }

    #[test]
    fn blocks_of_programs_and_libraries() {
        assert_eq!(block(&["-pie", "-fPIE"]), Some(ThreadBlock::Below(16)));
        assert_eq!(block(&["-no-pie"]), Some(ThreadBlock::Below(16)));
        assert!(matches!(block(&["-shared", "-fPIC"]), Some(ThreadBlock::Numbered { entry: 2, .. })));
        let linked = block(&["-shared", "-fPIC", "-ftls-model=initial-exec"]);
        assert!(matches!(linked, Some(ThreadBlock::Linked { .. })), "{linked:?}");
        let described = block(&["-shared", "-fPIC", "-mtls-dialect=gnu2"]);
        assert!(matches!(described, Some(ThreadBlock::Described { variable: 0 | 8, entry: 2, .. })), "{described:?}");
    }

    #[test]
    fn blocks_of_libraries_without_section_headers() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.so");
        std::fs::write(directory.path().join("t.c"), TEXT).expect("written");
        for options in [&["-fPIC"][..], &["-fPIC", "-ftls-model=initial-exec"], &["-m32", "-nostdlib", "-fPIC"]] {
            let mut gcc = Command::new("gcc");
            let gcc = gcc.current_dir(directory.path()).args(["-O1", "-shared", "t.c", "-o", "t.so"]).args(options);
            assert!(gcc.status().expect("gcc runs").success());
            let with = Elf::open_program(&path).expect("an object").thread_block();
            let mut bytes = std::fs::read(&path).expect("is there");
            let (place, last) = if bytes[4] == 1 { (32..36, 46..52) } else { (40..48, 58..64) };
            bytes[place].fill(0);
            bytes[last].fill(0);
            std::fs::write(&path, &bytes).expect("written");
            let without = Elf::open_program(&path).expect("an object").thread_block();
            assert!(with.is_some() && with == without, "{options:?}: {with:?}, {without:?}");
        }
    }

    #[test]
    fn a_library_of_musl_has_one_word_in_the_vector() {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, words) in [("libc.musl-x86_64.so.1", 1), ("libc.so", 1), ("libc.so.6", 2)] {
            let library = directory.path().join(name);
            let options = ["-shared", "-nostdlib", "-x", "c", "/dev/null", "-o"];
            let soname = format!("-Wl,-soname,{name}");
            let gcc = Command::new("gcc").args(options).arg(&library).arg(soname).status();
            assert!(gcc.expect("gcc runs").success());
            let found =
                block(&["-shared", "-fPIC", "-nostdlib", "-Wl,--no-as-needed", library.to_str().expect("a name")]);
            assert!(matches!(found, Some(ThreadBlock::Numbered { entry, .. }) if entry == words), "{name}: {found:?}");
        }
    }

    #[test]
    fn blocks_of_32_bit_programs_and_libraries() {
        let narrow = |options: &[&str]| block(&[&["-m32", "-nostdlib", "-Wl,--entry=main"], options].concat());
        assert_eq!(narrow(&["-pie", "-fPIE"]), Some(ThreadBlock::Below(8)));
        assert_eq!(narrow(&["-no-pie", "-fno-pic"]), Some(ThreadBlock::Below(8)));
        assert!(matches!(narrow(&["-shared", "-fPIC"]), Some(ThreadBlock::Numbered { entry: 2, .. })));
        let linked = narrow(&["-shared", "-fPIC", "-ftls-model=initial-exec"]);
        assert!(matches!(linked, Some(ThreadBlock::Linked { variable: 0 | 4, .. })), "{linked:?}");
        for bound in ["-Wl,-Bsymbolic", "-Wl,-z,now"] {
            let described = narrow(&["-shared", "-fPIC", "-mtls-dialect=gnu2", bound]);
            let expected = matches!(described, Some(ThreadBlock::Described { variable: 0 | 4, entry: 2, .. }));
            assert!(expected, "{bound}: {described:?}");
        }
    }
}
