// SPDX-License-Identifier: GPL-2.0-or-later

//! Import stubs: the code by which a program calls functions of other files (System V ABI, AMD64 supplement, 5.2).
//!
//! A stub jumps through a word of the global offset table. Which function the word is for, its relocation says; which stub uses
//! it, the jump's operand.

use std::collections::HashMap;

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use object::{Object as _, ObjectSymbol as _, ObjectSymbolTable as _, RelocationTarget};

use super::elf::{Address, Elf};

/// R_X86_64_GLOB_DAT and R_X86_64_JUMP_SLOT, by their relocations in `.rela.plt` and `.rela.dyn`.
const SECTIONS: [&str; 3] = [".plt.sec", ".plt.got", ".plt"];

/// Bytes from one stub to the next.
const STUB: u64 = 16;

/// Stubs of one file that are looked at.
const MOST: u64 = 1 << 20;

impl Elf {
    /// Names of imported functions, and where the stub of each begins; sorted by name.
    pub fn import_stubs(&self) -> Vec<(String, Address)> {
        let slots = self.import_slots();
        let mut stubs: Vec<(String, Address)> = Vec::new();
        for section in self.sections() {
            if !SECTIONS.contains(&section.name.as_str()) {
                continue;
            }
            let Some(bytes) = self.section_bytes(&section.name) else { continue };
            let (start, _) = section.range();
            for at in (0..(bytes.len() as u64).min(MOST)).step_by(STUB as usize) {
                let code = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                let slot = jumps_through(code, start + at);
                if let Some(name) = slot.and_then(|slot| slots.get(&slot))
                    && let Some(address) = self.address(start + at)
                    // Beside .plt.sec the stubs in .plt only call the linker.
                    && !stubs.iter().any(|(known, _)| known == name)
                {
                    stubs.push((name.clone(), address));
                }
            }
        }
        stubs.sort();
        stubs
    }

    /// Words that the dynamic linker fills with addresses of functions: link-time address and name.
    fn import_slots(&self) -> HashMap<u64, String> {
        let Ok(elf) = self.parse() else { return HashMap::new() };
        let table = elf.dynamic_symbol_table();
        let relocations = elf.dynamic_relocations().into_iter().flatten();
        let named = relocations.filter_map(|(at, relocation)| {
            let RelocationTarget::Symbol(index) = relocation.target() else { return None };
            let symbol = table.as_ref()?.symbol_by_index(index).ok()?;
            Some((at, symbol.name().ok()?.to_string()))
        });
        named.collect()
    }
}

/// The word that the stub's first jump takes its target from.
fn jumps_through(code: &[u8], at: u64) -> Option<u64> {
    let stub = code.get(..code.len().min(STUB as usize))?;
    let mut decoder = Decoder::with_ip(64, stub, at, DecoderOptions::NONE);
    decoder
        .iter()
        .take(3)
        .find(|instruction| instruction.mnemonic() == Mnemonic::Jmp && instruction.op0_kind() == OpKind::Memory)
        .filter(iced_x86::Instruction::is_ip_rel_memory_operand)
        .map(|instruction| instruction.ip_rel_memory_address())
}
