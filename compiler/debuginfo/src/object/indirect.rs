// SPDX-License-Identifier: GPL-2.0-or-later

//! Indirect functions (STT_GNU_IFUNC): the symbol's code is a resolver, which is called once and says which implementation the
//! name stands for, as in glibc for `memcpy` and `strlen`.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use object::{Object as _, ObjectSymbol as _};

use super::elf::{Address, Elf};
use super::symbol_table::is_indirect;

/// Bytes of a resolver that are looked at.
const MOST: usize = 4096;

impl Elf {
    /// Where the functions begin that an indirect function may stand for: those whose address its resolver loads. None: no
    /// indirect function is there.
    pub fn implementations(&self, resolver: Address) -> Option<Vec<Address>> {
        let elf = self.parse().ok()?;
        let mut symbols = elf.symbols().chain(elf.dynamic_symbols());
        let symbol = symbols.find(|symbol| is_indirect(symbol) && symbol.address() == resolver.offset)?;
        let (start, size) = (symbol.address(), usize::try_from(symbol.size()).unwrap_or(0).min(MOST));
        let section = self.section_at(start)?;
        let bytes = self.section_bytes(&section.name).unwrap_or_default();
        let from = usize::try_from(start - section.range().0).unwrap_or(usize::MAX);
        let code = bytes.get(from..).and_then(|code| code.get(..size.min(code.len()))).unwrap_or_default();
        let inside = start..start + size as u64;
        let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let loaded = decoder.into_iter().filter_map(|instruction| loaded_address(&instruction));
        let mut found: Vec<Address> =
            loaded.filter(|at| !inside.contains(at) && self.is_code(*at)).filter_map(|at| self.address(at)).collect();
        found.sort();
        found.dedup();
        Some(found)
    }
}

/// The address that an instruction puts into a register: relative to itself, or in programs at fixed addresses as it is.
fn loaded_address(instruction: &Instruction) -> Option<u64> {
    match (instruction.mnemonic(), instruction.op1_kind()) {
        (Mnemonic::Lea, _) if instruction.is_ip_rel_memory_operand() => Some(instruction.ip_rel_memory_address()),
        (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64) => {
            Some(instruction.immediate(1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const TEXT: &str = "
        static int fast(int a) { return a + 1; }
        static int slow(int a) { return a + 2; }
        int choice;
        static void *resolve(void) { return choice ? (void *)fast : (void *)slow; }
        int chosen(int) __attribute__((ifunc(\"resolve\")));
        int plain(int a) { return chosen(a); }";

    #[test]
    fn implementations_of_a_resolver() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("f.c"), TEXT).expect("written");
        let gcc = Command::new("gcc")
            .current_dir(directory.path())
            .args(["-O2", "-shared", "-fPIC", "f.c", "-o", "f.so"])
            .status();
        assert!(gcc.expect("gcc runs").success());
        let elf = Elf::open_program(&directory.path().join("f.so")).expect("an object");
        let at = |name: &str| elf.symbol_address(name).expect("symbols").expect("is there");
        let mut expected = vec![at("fast"), at("slow")];
        expected.sort();
        assert_eq!(elf.implementations(at("chosen")), Some(expected));
        assert_eq!(elf.implementations(at("plain")), None);
    }
}
