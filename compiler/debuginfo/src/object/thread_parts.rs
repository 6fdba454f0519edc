// SPDX-License-Identifier: GPL-2.0-or-later

//! What a file says of the variables that each thread has its own of (Drepper, ELF Handling For Thread-Local Storage).

use object::elf::{
    R_386_TLS_DESC, R_386_TLS_DTPMOD32, R_386_TLS_TPOFF, R_X86_64_DTPMOD64, R_X86_64_TLSDESC, R_X86_64_TPOFF64,
    RelocationType,
};
use object::{
    Object, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _, RelocationFlags, RelocationTarget,
};

/// Kinds of relocations.
#[derive(Clone, Copy)]
pub(super) struct Kinds {
    /// Of a word for an object's number.
    number: RelocationType,
    /// Of one for a variable's distance from the thread pointer.
    distance: RelocationType,
    /// Of the descriptor of a variable (`-mtls-dialect=gnu2`).
    descriptor: RelocationType,
    /// Bytes of a word.
    word: u64,
}

pub(super) const WIDE: Kinds =
    Kinds { number: R_X86_64_DTPMOD64, distance: R_X86_64_TPOFF64, descriptor: R_X86_64_TLSDESC, word: 8 };
pub(super) const NARROW: Kinds =
    Kinds { number: R_386_TLS_DTPMOD32, distance: R_386_TLS_TPOFF, descriptor: R_386_TLS_DESC, word: 4 };

/// What a file says of its block, with link-time addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    /// Bytes of the block, with what aligns it.
    pub(super) bytes: u64,
    /// What leads to it, in other objects than the program.
    pub(super) word: Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    None,
    Linked {
        word: u64,
        variable: u64,
    },
    Numbered(u64),
    /// The second word of a variable's descriptor.
    Described {
        word: u64,
        variable: u64,
    },
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
            Word::Described { word, variable } => [self.bytes, 3, word, variable],
        };
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(super) fn unpacked(bytes: &[u8]) -> Option<Parts> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let [bytes, kind, word, variable] = words else { return None };
        let [bytes, kind, word, variable] = [bytes, kind, word, variable].map(|word| u64::from_le_bytes(*word));
        let word = match kind {
            1 => Word::Linked { word, variable },
            2 => Word::Numbered(word),
            3 => Word::Described { word, variable },
            _ => Word::None,
        };
        Some(Parts { bytes, word })
    }
}

fn word_of<'d>(elf: &impl Object<'d>, kinds: Kinds) -> Word {
    let mut described = Word::None;
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
        if r_type == kinds.number {
            return Word::Numbered(at);
        }
        // Of 32-bit programs the addend is what the word is in the file, of a descriptor the second one.
        let addend =
            |word| if relocation.has_implicit_addend() { word_at(elf, word) } else { Some(relocation.addend()) };
        if r_type == kinds.distance {
            let Some(addend) = addend(at) else { continue };
            return Word::Linked { word: at, variable: value.wrapping_add(addend as u64) };
        }
        if r_type == kinds.descriptor && described == Word::None {
            let word = at.wrapping_add(kinds.word);
            let Some(addend) = addend(word) else { continue };
            described = Word::Described { word, variable: value.wrapping_add(addend as u64) };
        }
    }
    described
}

/// The word of four bytes at a link-time address.
fn word_at<'d>(elf: &impl Object<'d>, at: u64) -> Option<i64> {
    // Those that are not loaded have the address 0.
    let mut loaded = elf.sections().filter(|section| section.address() != 0);
    let word = loaded.find_map(|section| section.data_range(at, 4).ok().flatten())?;
    Some(i32::from_le_bytes(word.try_into().ok()?).into())
}
