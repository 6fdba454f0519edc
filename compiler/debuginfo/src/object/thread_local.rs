// SPDX-License-Identifier: GPL-2.0-or-later

//! Where a thread has the variables of a program or library that each thread has its own of (Drepper, ELF Handling For
//! Thread-Local Storage, 3.4.6 and variant II of 3.3).

use object::elf::{R_386_TLS_DTPMOD32, R_386_TLS_TPOFF, R_X86_64_DTPMOD64, R_X86_64_TPOFF64, RelocationType};
use object::{Object, ObjectKind, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _};
use object::{RelocationFlags, RelocationTarget};

use super::elf::{Address, Elf};
use super::narrow;

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
    Numbered(Address),
}

/// Kinds of relocations: of a word for an object's number, and of one for a variable's distance from the thread pointer.
pub(super) type Kinds = (RelocationType, RelocationType);

const WIDE: Kinds = (R_X86_64_DTPMOD64, R_X86_64_TPOFF64);
pub(super) const NARROW: Kinds = (R_386_TLS_DTPMOD32, R_386_TLS_TPOFF);

/// What a file says of its block, with link-time addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    /// Bytes of the block, with what aligns it.
    bytes: u64,
    word: Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    None,
    Linked { word: u64, variable: u64 },
    Numbered(u64),
}

impl Parts {
    /// None: the file has no such variables.
    pub(super) fn of<'d>(elf: &impl Object<'d>, kinds: Kinds) -> Option<Parts> {
        let mut block = None;
        let mut align = 1;
        for section in [".tdata", ".tbss"].iter().filter_map(|name| elf.section_by_name(name)) {
            let (start, end) = block.unwrap_or((section.address(), 0u64));
            block = Some((start.min(section.address()), end.max(section.address().checked_add(section.size())?)));
            align = align.max(section.align());
        }
        let (start, end) = block?;
        let bytes = end.checked_sub(start)?.checked_next_multiple_of(align)?;
        Some(Parts { bytes, word: word_of(elf, kinds) })
    }

    /// Four words, for [`Parts::unpacked`].
    pub(super) fn packed(self) -> Vec<u8> {
        let words = match self.word {
            Word::None => [self.bytes, 0, 0, 0],
            Word::Linked { word, variable } => [self.bytes, 1, word, variable],
            Word::Numbered(word) => [self.bytes, 2, word, 0],
        };
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn unpacked(bytes: &[u8]) -> Option<Parts> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let [bytes, kind, word, variable] = words else { return None };
        let [bytes, kind, word, variable] = [bytes, kind, word, variable].map(|word| u64::from_le_bytes(*word));
        let word = match kind {
            1 => Word::Linked { word, variable },
            2 => Word::Numbered(word),
            _ => Word::None,
        };
        Some(Parts { bytes, word })
    }
}

fn word_of<'d>(elf: &impl Object<'d>, (number, distance): Kinds) -> Word {
    let symbols = elf.dynamic_symbol_table();
    for (at, relocation) in elf.dynamic_relocations().into_iter().flatten() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        let own = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = symbols.as_ref().and_then(|symbols| symbols.symbol_by_index(index).ok());
                // Another object may have it.
                symbol.filter(|symbol| !symbol.is_undefined()).map(|symbol| symbol.address())
            }
            _ => Some(0),
        };
        let Some(value) = own else { continue };
        if r_type == number {
            return Word::Numbered(at);
        }
        if r_type == distance {
            // Of 32-bit programs the addend is what the word is in the file.
            let addend = if relocation.has_implicit_addend() { word_at(elf, at) } else { Some(relocation.addend()) };
            let Some(addend) = addend else { continue };
            return Word::Linked { word: at, variable: value.wrapping_add(addend as u64) };
        }
    }
    Word::None
}

/// The word of four bytes at a link-time address.
fn word_at<'d>(elf: &impl Object<'d>, at: u64) -> Option<i64> {
    // Those that are not loaded have the address 0.
    let mut loaded = elf.sections().filter(|section| section.address() != 0);
    let word = loaded.find_map(|section| section.data_range(at, 4).ok().flatten())?;
    Some(i32::from_le_bytes(word.try_into().ok()?).into())
}

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
        match parts.word {
            Word::None => None,
            Word::Linked { word, variable } => Some(ThreadBlock::Linked { word: self.address(word)?, variable }),
            Word::Numbered(word) => self.address(word).map(ThreadBlock::Numbered),
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
        assert!(matches!(block(&["-shared", "-fPIC"]), Some(ThreadBlock::Numbered(_))));
        let linked = block(&["-shared", "-fPIC", "-ftls-model=initial-exec"]);
        assert!(matches!(linked, Some(ThreadBlock::Linked { .. })), "{linked:?}");
    }

    #[test]
    fn blocks_of_32_bit_programs_and_libraries() {
        let narrow = |options: &[&str]| block(&[&["-m32", "-nostdlib", "-Wl,--entry=main"], options].concat());
        assert_eq!(narrow(&["-pie", "-fPIE"]), Some(ThreadBlock::Below(8)));
        assert_eq!(narrow(&["-no-pie", "-fno-pic"]), Some(ThreadBlock::Below(8)));
        assert!(matches!(narrow(&["-shared", "-fPIC"]), Some(ThreadBlock::Numbered(_))));
        let linked = narrow(&["-shared", "-fPIC", "-ftls-model=initial-exec"]);
        assert!(matches!(linked, Some(ThreadBlock::Linked { variable: 0 | 4, .. })), "{linked:?}");
    }
}
