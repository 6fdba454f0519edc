// SPDX-License-Identifier: GPL-2.0-or-later

//! The probed registers.

use super::{Builtin, builtin};

/// Those whose result depends on what the function has done before.
pub(super) const OF_ENTRY: &[&str] = &[
    "long_arg",
    "longlong_arg",
    "ulong_arg",
    "register",
    "u_register",
    "print_regs",
    "__get_uregs",
    "__set_argument",
    "_stp_get_register_by_offset",
];

/// The builtins of this subject.
pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("registers_valid" "registers_valid" () -> Long [pure registers] "1 where register() and u_register() can be used"),
    builtin!("addr" "addr" () -> Long [pure registers] "address of the probed instruction; 0 without registers"),
    builtin!("uaddr" "uaddr" () -> Long [pure] "address in user space where the current task is; 0 in a kernel thread"),
    builtin!("returnval" "returnval" () -> Long [fails pure registers] "the register that functions return their value in, signed"),
    builtin!("probing_32bit_app" "probing_32bit_app" () -> Long [pure] "1 if the current process runs 32-bit code"),
    builtin!("register" "register" ("name": String) -> Long [fails pure registers] "the named register (rax or ax, r8, eax, rip, ...), sign-extended"),
    builtin!("u_register" "u_register" ("name": String) -> Long [fails pure registers] "the named register, zero-extended"),
    builtin!("longlong_arg" "longlong_arg" ("number": Long) -> Long [fails pure registers] "argument (from 1) of the function that has just been entered, as 64 bits; in a 32-bit program two words"),
    builtin!("long_arg" "long_arg" ("number": Long) -> Long [fails pure registers] "argument (from 1) of the function that has just been entered, as long"),
    builtin!("ulong_arg" "ulong_arg" ("number": Long) -> Long [fails pure registers] "argument (from 1) of the function that has just been entered, as unsigned long"),
    builtin!("__set_argument" "__set_argument" ("number": Long, "value": Long) [guru fails registers] "changes an argument of the function that has just been entered"),
    builtin!("print_regs" "print_regs" () [registers] "prints the registers; nothing where there are none"),
    builtin!("__task_regs" "__task_regs" () -> Long [pure] "address of the current task's registers of user space; 0 in a kernel thread"),
    builtin!("__get_kregs" "__get_kregs" () -> Long [pure registers] "address of the registers (struct pt_regs) of a hit in the kernel; 0 without"),
    builtin!("__get_uregs" "__get_uregs" () -> Long [pure registers] "address of the registers of user space: of a hit in a program, else the current task's; 0 in a kernel thread"),
    builtin!("__set_kregs" "__set_kregs" ("regs": Long) [fails registers] "register() and backtrace() read the kernel registers at this address from here on, until the handler ends"),
    builtin!("__set_uregs" "__set_uregs" ("regs": Long) [fails registers] "register() and ubacktrace() read the user registers at this address from here on, until the handler ends"),
    builtin!("__set_syscall_pt_regs" "__set_syscall_pt_regs" ("regs": Long) [fails] "int_arg() and the others give the arguments of the system call with the registers at this address, until the handler ends"),
    builtin!("_stp_get_register_by_offset" "_stp_get_register_by_offset" ("offset": Long) -> Long [fails pure registers] "the register at this offset in struct pt_regs"),
    builtin!("stack_size" "stack_size" () -> Long [pure] "bytes of a kernel stack"),
    builtin!("stack_used" "stack_used" () -> Long [pure registers] "bytes of the current task's kernel stack that are in use; 0 on an interrupt's stack"),
];
