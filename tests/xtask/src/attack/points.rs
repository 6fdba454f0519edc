// SPDX-License-Identifier: GPL-2.0-or-later

//! Probe points of the hostile scripts: by group and by name, with the reason why they are dangerous.

use crate::random::Random;

/// Files whose functions are probed together, the hot and the fragile parts of a kernel.
const FILES: [&str; 26] = [
    "mm/*.c",
    "mm/page_alloc.c",
    "mm/slub.c",
    "mm/memory.c",
    "mm/vmalloc.c",
    "kernel/sched/*.c",
    "kernel/sched/core.c",
    "kernel/rcu/*.c",
    "kernel/locking/*.c",
    "kernel/trace/*.c",
    "kernel/time/*.c",
    "kernel/irq/*.c",
    "kernel/printk/*.c",
    "kernel/events/*.c",
    "kernel/*.c",
    "lib/*.c",
    "lib/vsprintf.c",
    "lib/string.c",
    "arch/x86/kernel/*.c",
    "arch/x86/mm/*.c",
    "arch/x86/entry/*.c",
    "arch/x86/lib/*.c",
    "fs/*.c",
    "fs/proc/*.c",
    "block/*.c",
    "net/core/*.c",
];

/// Code used by exceptions, interrupts, NMI and printing; and functions that never return or change stacks. What the runtime
/// calls is found by `called.rs`.
const NAMES: [&str; 52] = [
    "vfs_read",
    "vfs_write",
    "ksys_read",
    "do_sys_openat2",
    "exc_page_fault",
    "exc_nmi",
    "exc_debug",
    "exc_int3",
    "exc_general_protection",
    "do_user_addr_fault",
    "handle_mm_fault",
    "default_do_nmi",
    "nmi_handle",
    "nmi_cpu_backtrace",
    "show_regs",
    "show_stack",
    "dump_stack_lvl",
    "__switch_to",
    "__schedule",
    "schedule",
    "finish_task_switch*",
    "context_switch",
    "do_exit",
    "do_group_exit",
    "make_task_dead",
    "ret_from_fork",
    "kthread",
    "do_syscall_64",
    "syscall_*",
    "irq_*enter*",
    "irq_*exit*",
    "__do_softirq",
    "handle_irq_event",
    "hrtimer_*",
    "ktime_get*",
    "sched_clock*",
    "native_sched_clock",
    "_raw_spin_*",
    "queued_spin_lock_slowpath",
    "copy_from_kernel_nofault*",
    "copy_from_user_nofault",
    "kallsyms_*",
    "__wake_up*",
    "irq_work_*",
    "vprintk*",
    "_printk",
    "vsnprintf",
    "rethook_*",
    "stack_trace_*",
    "unwind_*",
    "ftrace_*",
    "__fget*",
];

const LINES: [&str; 10] = [
    "vfs_read@fs/read_write.c:*",
    "__schedule@kernel/sched/core.c:*",
    "handle_mm_fault@mm/memory.c:*",
    "do_syscall_64@arch/x86/entry/common.c:*",
    "*@fs/file.c:*",
    "__alloc_pages@mm/page_alloc.c:*",
    "try_to_wake_up@kernel/sched/core.c:*",
    "vsnprintf@lib/vsprintf.c:*",
    "*@kernel/softirq.c:*",
    "__fget_light@fs/file.c:*",
];

const TRACEPOINTS: [&str; 16] = [
    "*",
    "sched_*",
    "irq_*",
    "softirq_*",
    "timer_*",
    "hrtimer_*",
    "mm_*",
    "kmem_cache_*",
    "kmalloc",
    "kfree",
    "rcu_*",
    "sys_enter",
    "sys_exit",
    "page_fault_*",
    "console",
    "module_*",
];

const DATA: [&str; 8] = [
    "jiffies_64",
    "jiffies",
    "vm_dirty_ratio",
    "nr_threads",
    "system_state",
    "panic_timeout",
    "total_forks",
    "max_lock_depth",
];

const ALIASES: [&str; 12] = [
    "syscall.*",
    "syscall.read",
    "syscall.*.return",
    "nd_syscall.*",
    "vfs.*",
    "scheduler.*",
    "vm.*",
    "tcp.*",
    "signal.*",
    "kprocess.*",
    "irq_handler.*",
    "softirq.*",
];

const CLOCKS: [&str; 14] = [
    "timer.us(100)",
    "timer.us(997)",
    "timer.ms(1)",
    "timer.ms(7).randomize(5)",
    "timer.hz(4000)",
    "timer.profile",
    "timer.jiffies(1)",
    "perf.type(1).config(0).sample(100000)",
    "perf.type(1).config(1).sample(100000)",
    "perf.type(1).config(2).sample(1)",
    "perf.type(1).config(3).sample(1)",
    "netfilter.ip.local_out",
    "netfilter.ip.pre_routing",
    "netfilter.ip.local_in",
];

/// Probe points in a module that is loaded and unloaded while scripts run.
const COMES_AND_GOES: [&str; 6] = [
    "module(\"lustre\").function(\"*\").call",
    "module(\"lustre\").function(\"*\").return",
    "module(\"lustre\").function(\"ll_*\")",
    "module(\"lustre\").statement(\"*@*:*\")",
    "module(\"*\").function(\"*init*\").call",
    "module(\"*\").function(\"*exit*\").return",
];

/// Code of CPU hotplug, suspend and resume, and module loading, by files.
const CHANGES: [&str; 18] = [
    "arch/x86/kernel/*.c",
    "arch/x86/kernel/smpboot.c",
    "arch/x86/kernel/cpu/*.c",
    "arch/x86/kernel/idt.c",
    "arch/x86/kernel/acpi/*.c",
    "arch/x86/kernel/apic/*.c",
    "arch/x86/power/*.c",
    "arch/x86/mm/*.c",
    "kernel/cpu.c",
    "kernel/smpboot.c",
    "kernel/smp.c",
    "kernel/stop_machine.c",
    "kernel/sched/*.c",
    "kernel/time/*.c",
    "kernel/power/*.c",
    "drivers/base/power/*.c",
    "drivers/acpi/*.c",
    "kernel/module/*.c",
];

/// Programs that `driver.sh` runs all the time, at the same path in the guest; and libc, which is all of theirs.
const PROGRAMS: [&str; 9] = [
    "/usr/bin/bash",
    "user",
    "user_O0",
    "user_fixed",
    "user_stripped",
    "user_split",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/ld-linux-x86-64.so.2",
    "/usr/bin/strace",
];

/// For a script that runs while CPUs or modules come and go, or the machine sleeps: a group of points that are hit
/// then.
pub fn changes(random: &mut Random) -> Vec<String> {
    let file = random.pick(CHANGES);
    if random.one_in(4) {
        return vec![format!("kernel.statement(\"*@{file}:*\") ?")];
    }
    (0..random.pick([1, 2])).map(|_| format!("kernel.function(\"*@{file}\"){} ?", kind(random))).collect()
}

/// Probe points in programs.
pub fn programs(random: &mut Random) -> Vec<String> {
    let count = random.pick([1, 1, 2, 3]);
    (0..count).map(|_| in_program(random)).collect()
}

fn in_program(random: &mut Random) -> String {
    let program = random.pick(PROGRAMS);
    let some =
        if random.one_in(3) { "*".to_string() } else { format!("{}*", char::from(b'a' + random.below(26) as u8)) };
    let form = match random.below(12) {
        0..=2 => format!("function(\"{some}\")"),
        3 | 4 => format!("function(\"{some}\").return"),
        5 => "statement(\"*@*:*\")".to_string(),
        6 => format!("plt(\"{some}\")"),
        7 => format!("plt(\"{some}\").return"),
        8 => "mark(\"*\")".to_string(),
        9 => random.pick(["syscall", "syscall.return"]).to_string(),
        10 => random.pick(["begin", "end", "thread.begin", "thread.end"]).to_string(),
        _ => return random.pick(["process.syscall ?", "process.begin ?", "process.end ?"]).to_string(),
    };
    format!("process(\"{program}\").{form} ?")
}

/// The points of one probe; all are optional, because kernels differ.
pub fn points(random: &mut Random, called: &[String]) -> Vec<String> {
    let count = random.pick([1, 1, 1, 2, 3]);
    (0..count).flat_map(|_| if random.one_in(10) { some_of(random, called) } else { vec![point(random)] }).collect()
}

/// Some of the functions that the runtime calls.
fn some_of(random: &mut Random, called: &[String]) -> Vec<String> {
    let kind = kind(random);
    let (first, step) = (random.below(12), 1 + random.below(24));
    let names = called.iter().skip(first).step_by(step);
    names.map(|name| format!("kernel.function(\"{name}\"){kind} ?")).collect()
}

fn point(random: &mut Random) -> String {
    match random.below(21) {
        0..=4 => format!("kernel.function(\"{}\"){} ?", functions(random), kind(random)),
        5..=9 => format!("kernel.function(\"{}\"){} ?", random.pick(NAMES), kind(random)),
        10 | 11 => format!("kernel.statement(\"{}\") ?", random.pick(LINES)),
        12 | 13 => format!("kernel.trace(\"{}\") ?", random.pick(TRACEPOINTS)),
        14 => format!("kernel.data(\"{}\").{} ?", random.pick(DATA), random.pick(["write", "rw"])),
        15 => format!("{} ?", random.pick(ALIASES)),
        16 => format!(
            "kprobe.function(\"{}\"){} ?",
            random.pick(["vfs_read", "do_exit", "schedule", "kfree", "memcpy"]),
            random.pick(["", ".return"])
        ),
        17 => random.pick(["begin", "end", "error", "procfs(\"p\").read", "timer.s(1)"]).to_string(),
        18 => format!("{} ?", random.pick(COMES_AND_GOES)),
        _ => format!("{} ?", random.pick(CLOCKS)),
    }
}

/// Occasionally a whole group; mostly a part of one, to save time.
fn functions(random: &mut Random) -> String {
    let file = random.pick(FILES);
    let start =
        if random.one_in(6) { "*".to_string() } else { format!("{}*", char::from(b'a' + random.below(26) as u8)) };
    format!("{start}@{file}")
}

fn kind(random: &mut Random) -> String {
    match random.below(10) {
        0..=4 => ".call".to_string(),
        5 | 6 => ".return".to_string(),
        7 => format!(".return.maxactive({})", random.pick([1, 2, 100, 5000])),
        8 => ".inline".to_string(),
        _ => String::new(),
    }
}
