// SPDX-License-Identifier: GPL-2.0-or-later

//! The probed registers.

use super::{Builtin, builtin};

/// The builtins of this subject.
pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("registers_valid" "registers_valid" () -> Long [pure registers] "1 where register() and u_register() can be used"),
    builtin!("addr" "addr" () -> Long [pure registers] "address of the probed instruction; 0 without registers"),
    builtin!("uaddr" "uaddr" () -> Long [pure] "address in user space where the current task is; 0 in a kernel thread"),
    builtin!("returnval" "returnval" () -> Long [fails pure registers] "the register that functions return their value in, signed"),
    builtin!("probing_32bit_app" "probing_32bit_app" () -> Long [pure] "1 if the current process runs 32-bit code"),
    builtin!("register" "register" ("name": String) -> Long [fails pure registers] "the named register (rax or ax, r8, eax, rip, ...), sign-extended"),
    builtin!("u_register" "u_register" ("name": String) -> Long [fails pure registers] "the named register, zero-extended"),
    builtin!("longlong_arg" "longlong_arg" ("number": Long) -> Long [fails pure registers] "argument (from 1) of the function that has just been entered, as 64 bits"),
    builtin!("__set_argument" "__set_argument" ("number": Long, "value": Long) [guru fails registers] "changes an argument of the function that has just been entered"),
    builtin!("print_regs" "print_regs" () [registers] "prints the registers; nothing where there are none"),
    builtin!("__task_regs" "__task_regs" () -> Long [pure] "address of the current task's registers of user space; 0 in a kernel thread"),
    builtin!("stack_size" "stack_size" () -> Long [pure] "bytes of a kernel stack"),
    builtin!("stack_used" "stack_used" () -> Long [pure registers] "bytes of the current task's kernel stack that are in use; 0 on an interrupt's stack"),
];
