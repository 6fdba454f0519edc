// SPDX-License-Identifier: GPL-2.0-or-later

//! Stacks and symbols of the kernel.

use super::{Builtin, builtin};

/// The builtins of this subject.
pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("__hit_function" "hit_function" () -> String [pure fixed internal] "the probed function; where the point names none, the symbol of the address that was hit"),
    builtin!("__hit_module" "hit_module" () -> String [pure fixed internal] "the module of the probed function; where the point names none, that of the address that was hit"),
    builtin!("symname" "symname" ("address": Long) -> String [pure] "name of the kernel symbol that the address is in; the address in hex if there is none"),
    builtin!("symdata" "symdata" ("address": Long) -> String [pure] "the same with offset, size and module: vfs_read+0x0/0x190 [kernel]"),
    builtin!("modname" "modname" ("address": Long) -> String [pure] "module that the address is in, or kernel; <unknown> if it is in neither"),
    builtin!("__stack_at" "__stack_at" ("depth": Long) -> Long [pure registers] "address at that depth of the stack; 0 beyond its end"),
    builtin!("__value_unknown_at_caller" "__value_unknown_at_caller" () -> Long [fails pure internal] "a run-time error: the caller's debug information does not give the value of a context variable"),
    builtin!("__stack_addresses" "__stack_addresses" ("first": Long, "most": Long) -> String [pure registers] "addresses of the stack in hex"),
    builtin!("task_backtrace" "task_backtrace" ("task": Long) -> String [pure registers] "addresses of a task's kernel stack in hex, by the address of its struct task_struct; empty if it runs on another CPU, exits, or is not a task"),
    builtin!("__print_stack_lines" "__print_stack_lines" () [registers lines names] "prints the kernel's stack, a line for each frame with the source line"),
    builtin!("__symbol_line" "__symbol_line" ("address": Long, "part": Long) -> String [pure lines] "file:line (part 0), file (1), line (2) of an address of the kernel; the address in hex if they are not known"),
    builtin!("__print_stack" "__print_stack" ("full": Long) [registers names] "prints the stack, a line for each frame; full: with addresses"),
    builtin!("__sprint_stack" "__sprint_stack" () -> String [pure registers] "the stack as text, a line for each frame"),
    builtin!("__print_addresses" "__print_addresses" ("addresses": String) [names] "prints a line for each address in the text"),
    builtin!("__sprint_addresses" "__sprint_addresses" ("addresses": String) -> String [fails pure names] "a line for each address in the text"),
];
