// SPDX-License-Identifier: GPL-2.0-or-later

//! Import stubs of a file: the code by which a program calls functions of other files (System V ABI, AMD64 supplement, 5.2).
//!
//! A stub jumps through a word of the global offset table. Which function the word is for, its relocation says; which stub uses
//! it, the jump's operand.

use std::collections::{BTreeSet, HashMap, HashSet};

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _, RelocationTarget};

/// R_X86_64_GLOB_DAT and R_X86_64_JUMP_SLOT, by their relocations in `.rela.plt` and `.rela.dyn`.
const SECTIONS: [&str; 3] = [".plt.sec", ".plt.got", ".plt"];

/// Bytes from one stub to the next; in `.plt.got` of programs that are not made for indirect branch tracking fewer.
const STUB: u64 = 16;
const SHORT_STUB: u64 = 8;

/// `endbr64` and `endbr32`.
const LANDINGS: [&[u8]; 2] = [&[0xf3, 0x0f, 0x1e, 0xfa], &[0xf3, 0x0f, 0x1e, 0xfb]];

/// Stubs of one file that are looked at.
const MOST: u64 = 1 << 20;
/// Bytes of the names of all words that the dynamic linker fills, and for each of these.
const MOST_NAMES: usize = 64 << 20;
const SLOT: usize = 16;

/// Of which kind the code is.
#[derive(Clone, Copy)]
pub(super) enum Code {
    /// 64 bits.
    Wide,
    /// 32 bits; ebx holds the address of the global offset table, if there is one, in stubs of code that can be at any address.
    Narrow {
        /// Link-time address.
        table: Option<u64>,
    },
}

/// Names and link-time addresses of a file's stubs.
pub(super) fn stubs_of<'d>(elf: &impl Object<'d>, code: Code) -> Vec<(String, u64)> {
    let slots = import_slots(elf);
    let mut stubs: Vec<(String, u64)> = Vec::new();
    let mut known = HashSet::new();
    // Of all sections together: any number of them may have these names.
    let mut left = MOST;
    for section in elf.sections() {
        let Ok(name) = section.name() else { continue };
        if !SECTIONS.contains(&name) {
            continue;
        }
        let Ok(bytes) = section.data() else { continue };
        let is_short = name == ".plt.got" && !LANDINGS.iter().any(|landing| bytes.starts_with(landing));
        let step = if is_short { SHORT_STUB } else { STUB };
        let most = (bytes.len() as u64).min(left);
        left -= most;
        for at in (0..most).step_by(step as usize) {
            let stub = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
            let stub = stub.get(..stub.len().min(step as usize)).unwrap_or_default();
            let Some(address) = section.address().checked_add(at) else { break };
            if let Some(name) = jumps_through(stub, address, code).and_then(|slot| slots.get(&slot))
                // Beside .plt.sec the stubs in .plt only call the linker.
                && known.insert(name.as_str())
            {
                stubs.push((name.clone(), address));
            }
        }
    }
    stubs
}

/// Names of functions that the dynamic linker looks up.
pub(super) fn imported<'d>(elf: &impl Object<'d>) -> BTreeSet<String> {
    import_slots(elf).into_values().collect()
}

/// Words that the dynamic linker fills with addresses of functions: link-time address and name.
fn import_slots<'d>(elf: &impl Object<'d>) -> HashMap<u64, String> {
    let table = elf.dynamic_symbol_table();
    let relocations = elf.dynamic_relocations().into_iter().flatten();
    // All may have the same long name.
    let mut left = MOST_NAMES;
    let named = relocations.map_while(|(at, relocation)| {
        let RelocationTarget::Symbol(index) = relocation.target() else { return Some(None) };
        let symbol = table.as_ref().and_then(|table| table.symbol_by_index(index).ok());
        let Some(name) = symbol.and_then(|symbol| symbol.name().ok()) else { return Some(None) };
        left = left.checked_sub(name.len() + SLOT)?;
        Some(Some((at, name.to_string())))
    });
    named.flatten().collect()
}

/// The word that the stub's first jump takes its target from.
fn jumps_through(stub: &[u8], at: u64, code: Code) -> Option<u64> {
    let bits = if matches!(code, Code::Wide) { 64 } else { 32 };
    let mut decoder = Decoder::with_ip(bits, stub, at, DecoderOptions::NONE);
    let jump = decoder
        .iter()
        .take(3)
        .find(|instruction| instruction.mnemonic() == Mnemonic::Jmp && instruction.op0_kind() == OpKind::Memory)?;
    match code {
        Code::Wide => jump.is_ip_rel_memory_operand().then(|| jump.ip_rel_memory_address()),
        Code::Narrow { table } => narrow_slot(&jump, table),
    }
}

fn narrow_slot(jump: &Instruction, table: Option<u64>) -> Option<u64> {
    if jump.memory_index() != Register::None {
        return None;
    }
    let offset = jump.memory_displacement32();
    match jump.memory_base() {
        Register::None => Some(offset.into()),
        Register::EBX => Some(u32::try_from(table?).ok()?.wrapping_add(offset).into()),
        _ => None,
    }
}

/// The stubs in few bytes, for [`unpacked`].
pub(super) fn packed(stubs: &[(String, u64)]) -> Vec<u8> {
    stubs.iter().flat_map(|(name, at)| [&at.to_le_bytes(), name.as_bytes(), &[0]].concat()).collect()
}

pub(super) fn unpacked(mut bytes: &[u8]) -> Vec<(String, u64)> {
    let mut stubs = Vec::new();
    while let Some((at, rest)) = bytes.split_first_chunk::<8>() {
        let Some(end) = rest.iter().position(|byte| *byte == 0) else { break };
        let (name, behind) = rest.split_at(end);
        stubs.push((String::from_utf8_lossy(name).into_owned(), u64::from_le_bytes(*at)));
        bytes = behind.get(1..).unwrap_or_default();
    }
    stubs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_stubs_are_the_same() {
        let stubs = vec![("a".to_string(), 7), ("bc".to_string(), u64::MAX)];
        assert_eq!(unpacked(&packed(&stubs)), stubs);
        assert_eq!(unpacked(&packed(&stubs)[..12]), stubs[..1]);
    }
}
