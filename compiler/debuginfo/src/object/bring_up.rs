// SPDX-License-Identifier: GPL-2.0-or-later

//! Code that a CPU runs without a table of exceptions that serves probes: when it comes up, when it resumes from
//! suspend or from the image of a hibernation, and when it is on its way into another kernel (kexec). An `int3` there
//! resets the machine, and so does the effect of a probe at a function's entry before the CPU has its own memory (GS
//! base).
//!
//! The kernel has no list of these functions. They are found from their roots: the functions that these call, directly
//! or by a member of `pv_ops` as it is in the file, up to the call that leads to `lidt`. Sources:
//! arch/x86/kernel/head_64.S, smpboot.c, cpu/common.c, idt.c, machine_kexec_64.c, arch/x86/power/cpu.c and
//! hibernate_64.c, of 5.10 to 6.12.

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::elf::{Elf, Symbol};
use super::patched::Reader;

/// Which of a root's calls count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// All of them.
    All,
    /// Those before the call that leads to the load of the table, and that one; also in the callees.
    BeforeTable,
    /// Those after it has been taken away, and no further.
    AfterTable,
}

/// Where a CPU is without its table. What a kernel does not have is passed over.
const ROOTS: [(&str, Calls); 20] = [
    ("secondary_startup_64", Calls::All),
    ("secondary_startup_64_no_verify", Calls::All),
    ("early_setup_idt", Calls::All),
    ("startup_64_load_idt", Calls::All),
    ("set_bringup_idt_handler", Calls::All),
    ("cpu_init_exception_handling", Calls::All),
    ("cpu_init_fred_exceptions", Calls::All),
    ("load_percpu_segment", Calls::All),
    ("setup_getcpu", Calls::All),
    ("tss_setup_ist", Calls::All),
    ("cr4_init", Calls::All),
    ("start_secondary", Calls::BeforeTable),
    // The CPU resumes from suspend in wakeup_long64, and after the call of x86_acpi_enter_sleep_state.
    ("wakeup_long64", Calls::All),
    ("do_suspend_lowlevel", Calls::BeforeTable),
    ("restore_processor_state", Calls::BeforeTable),
    // The image of a hibernation is copied over the kernel that runs.
    ("restore_image", Calls::All),
    ("core_restore_code", Calls::All),
    ("restore_registers", Calls::All),
    ("machine_kexec", Calls::AfterTable),
    ("relocate_kernel", Calls::All),
];
/// Functions that such a path calls on an error and that do not return, and those that only call another one.
const NOT_FOLLOWED: [&str; 8] = [
    "panic",
    "_printk",
    "printk",
    "__warn_printk",
    "__stack_chk_fail",
    "sev_es_terminate",
    "save_processor_state",
    "x86_acpi_enter_sleep_state",
];
const WAYS_OF_CALLING: [&str; 3] = ["__fentry__", "__x86_indirect_thunk", "__x86_return_thunk"];
/// Calls below a root that are followed, and bytes of a function.
const MOST_DEPTH: u32 = 4;
const MOST_BYTES: u64 = 1 << 16;
/// Functions of all paths together: far more than there are, and few of a kernel.
const MOST: usize = 400;

/// The functions of the kernel, by their addresses; none of a module.
pub(super) fn functions(elf: &Elf, reader: &Reader<'_, '_>) -> BTreeSet<u64> {
    if elf.is_relocatable() {
        return BTreeSet::new();
    }
    let mut paths = Paths { elf, reader, found: BTreeSet::new(), loads: BTreeSet::new() };
    for (name, calls) in ROOTS {
        let Ok(all) = elf.symbols_named(name) else { return paths.found };
        let starts: Vec<u64> = all.map(|symbol| symbol.at).collect();
        for at in starts {
            paths.follow(at, calls, MOST_DEPTH);
        }
    }
    paths.found
}

struct Paths<'e, 'r, 'f> {
    elf: &'e Elf,
    reader: &'r Reader<'e, 'f>,
    found: BTreeSet<u64>,
    /// Those of the functions from which the table is loaded.
    loads: BTreeSet<u64>,
}

impl Paths<'_, '_, '_> {
    /// Whether the function, or one that it calls, loads a table of exceptions.
    fn follow(&mut self, at: u64, calls: Calls, depth: u32) -> bool {
        let is_new = self.found.len() < MOST && self.found.insert(at);
        if !is_new && calls == Calls::All {
            return self.loads.contains(&at);
        }
        let mut loads = false;
        for step in self.steps(at) {
            match step {
                Step::Load => loads = true,
                Step::Call(to) if calls == Calls::AfterTable => {
                    if loads {
                        self.found.insert(to);
                    }
                    loads |= self.is_load(to);
                }
                Step::Call(to) if depth > 0 => loads |= self.follow(to, calls, depth - 1),
                Step::Call(_) => {}
            }
            if loads && calls == Calls::BeforeTable {
                break;
            }
        }
        if loads {
            self.loads.insert(at);
        }
        loads
    }

    /// Whether the function itself loads a table.
    fn is_load(&self, at: u64) -> bool {
        self.steps(at).iter().any(|step| matches!(step, Step::Load))
    }

    /// What the function at the address does that matters, in the order of its code.
    fn steps(&self, at: u64) -> Vec<Step> {
        let Some(size) = self.function(at).map(|symbol| symbol.size).filter(|size| (1..=MOST_BYTES).contains(size))
        else {
            return Vec::new();
        };
        let Some(bytes) = self.reader.bytes(at, size) else { return Vec::new() };
        let decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        decoder.into_iter().filter_map(|instruction| self.step(&instruction, at, at + size)).collect()
    }

    fn step(&self, instruction: &Instruction, start: u64, end: u64) -> Option<Step> {
        if instruction.mnemonic() == Mnemonic::Lidt {
            return Some(Step::Load);
        }
        let target = match instruction.flow_control() {
            FlowControl::Call | FlowControl::UnconditionalBranch if instruction.op0_kind() == OpKind::NearBranch64 => {
                instruction.near_branch_target()
            }
            FlowControl::IndirectCall | FlowControl::IndirectBranch if instruction.op0_kind() == OpKind::Memory => {
                let word = self.reader.bytes(fixed_address(instruction)?, 8)?;
                u64::from_le_bytes(word.try_into().ok()?)
            }
            _ => return None,
        };
        let symbol = self.function(target).filter(|_| !(start..end).contains(&target))?;
        // The first CPU goes on into code that is freed after boot, and with it into all that it calls.
        let is_boot = self.elf.section_at(target).is_some_and(|section| section.name.starts_with(".init"));
        let is_way = WAYS_OF_CALLING.iter().any(|way| symbol.name.starts_with(way));
        (!is_boot && !is_way && !NOT_FOLLOWED.contains(&symbol.name)).then_some(Step::Call(target))
    }

    /// The symbol of a function that begins there; assembly does not always say that it is one.
    fn function(&self, at: u64) -> Option<Symbol<'_>> {
        let here = self.elf.symbols_before(at).ok()?.take_while(|symbol| symbol.at == at);
        here.max_by_key(|symbol| symbol.size)
            .filter(|_| self.elf.section_at(at).is_some_and(|section| section.executable))
    }
}

/// Of an instruction whose operand in memory is at a fixed address: relative to the instruction, or absolute, as kernels
/// up to 5.17 call by `pv_ops`. The kernel's addresses are sign-extended 32-bit numbers.
fn fixed_address(instruction: &Instruction) -> Option<u64> {
    let is_absolute = instruction.memory_base() == Register::None && instruction.memory_index() == Register::None;
    let address = instruction.memory_displacement64();
    (instruction.is_ip_rel_memory_operand() || is_absolute).then_some(address)
}

enum Step {
    Load,
    Call(u64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::vmlinux::installed;

    #[test]
    fn what_a_cpu_runs_without_a_table_of_exceptions() {
        let Some(elf) = installed().map(|path| Elf::open(&path).unwrap()) else { return };
        let file = elf.parse().unwrap();
        let found = functions(&elf, &Reader { elf: &elf, file: &file });
        let has = |name: &str| elf.symbols_named(name).unwrap().any(|symbol| found.contains(&symbol.at));
        // Of the path of secondary_startup_64 itself, of start_secondary, by pv_ops, and of suspend.
        for name in [
            "verify_cpu",
            "early_setup_idt",
            "cr4_init",
            "native_write_cr4",
            "native_load_idt",
            "restore_processor_state",
        ] {
            assert!(has(name), "{name}");
        }
        // They run when the CPU has its table; or before it is taken away.
        for name in ["cpu_init", "rcu_cpu_starting", "cpu_startup_entry", "mtrr_bp_restore", "panic", "vfs_read"] {
            assert!(!has(name), "{name}");
        }
        assert!(found.len() < 100, "{}", found.len());
    }

    /// The calls of kernels up to 5.17.
    const ABSOLUTE: &str = r#"
        .text
        .globl start_secondary
        .type start_secondary, @function
start_secondary:
        call *initial_code
        call load_current_idt
        call after
        ret
        .size start_secondary, . - start_secondary
        .type load_current_idt, @function
load_current_idt:
        call *pv_ops
        ret
        .size load_current_idt, . - load_current_idt
        .type native_load_idt, @function
native_load_idt:
        lidt (%rdi)
        ret
        .size native_load_idt, . - native_load_idt
        .type after, @function
after:  ret
        .size after, . - after
        .section .init.text, "ax"
        .type boot, @function
boot:   call by_boot
        ret
        .size boot, . - boot
        .text
        .type by_boot, @function
by_boot: ret
        .size by_boot, . - by_boot
        .data
initial_code: .quad boot
pv_ops: .quad native_load_idt
        "#;

    #[test]
    fn calls_by_an_absolute_address_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("k.s"), ABSOLUTE).unwrap();
        let build = "as k.s -o k.o && ld -e start_secondary -Ttext=0x100000 k.o -o k";
        let built =
            std::process::Command::new("sh").current_dir(directory.path()).args(["-c", build]).status().unwrap();
        assert!(built.success());
        let elf = Elf::open(&directory.path().join("k")).unwrap();
        let found = functions(&elf, &Reader { elf: &elf, file: &elf.parse().unwrap() });
        let has = |name: &str| elf.symbols_named(name).unwrap().any(|symbol| found.contains(&symbol.at));
        let names = ["start_secondary", "load_current_idt", "native_load_idt", "after", "boot", "by_boot"];
        assert_eq!(names.map(has), [true, true, true, false, false, false]);
    }
}
