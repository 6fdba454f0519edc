// SPDX-License-Identifier: GPL-2.0-or-later

//! Stacks and symbols of user space. The loader has the names: as values they are addresses in hex.

use super::{Builtin, builtin};

/// The builtins of this subject.
pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("usymname" "usymname" ("address": Long) -> String [pure user_stacks] "name of the symbol that the address of the current process is in, when it is printed; as a value, and without a name, the address in hex"),
    builtin!("usymdata" "usymdata" ("address": Long) -> String [pure user_stacks] "the same with offset, size and file: main+0x9/0x1b [/usr/bin/true]"),
    builtin!("usymfile" "usymfile" ("address": Long) -> String [pure user_stacks] "source file of an address of the current process, when it is printed; as a value, and where it is not known, the address in hex"),
    builtin!("usymline" "usymline" ("address": Long) -> String [pure user_stacks] "source line of it, in the same way"),
    builtin!("usymfileline" "usymfileline" ("address": Long) -> String [pure user_stacks] "source file and line of it, as \"fs/main.c:12\", in the same way"),
    builtin!("umodname" "umodname" ("address": Long) -> String [fails pure user_stacks] "name of the file that the current process has mapped at the address, without its directory; an error if there is none"),
    builtin!("umodbuildid" "umodbuildid" ("address": Long) -> String [pure user_stacks] "build-id of that file in hex; as a value empty until the loader has read the file"),
    builtin!("umodaddr" "umodaddr" ("address": Long) -> Long [fails pure user_stacks] "address where the beginning of that file is, or would be, mapped"),
    builtin!("fold_ustack" "fold_ustack" ("addresses": String) -> String [pure user_stacks] "names of the addresses in a string of ubacktrace(), outermost first, separated by semicolons, when it is printed: the format of flame graph tools; as a value addresses"),
    builtin!("__user_stack_at" "__user_stack_at" ("depth": Long) -> Long [pure registers user_stacks] "address at that depth of the user stack; 0 beyond its end"),
    builtin!("__user_stack_addresses" "__user_stack_addresses" ("first": Long, "most": Long) -> String [pure registers user_stacks] "addresses of the user stack in hex, as a value each with its place: 0xADDRESS@FILE+OFFSET"),
    builtin!("__print_user_stack" "__print_user_stack" ("flags": Long) [registers user_stacks] "prints the user stack, a line for each frame; flags: 2 with addresses, 4 with source lines"),
    builtin!("__print_user_stack_from" "__print_user_stack_from" ("pc": Long, "sp": Long, "fp": Long, "flags": Long) [user_stacks] "the same from these registers on"),
    builtin!("__sprint_user_stack" "__sprint_user_stack" () -> String [pure registers user_stacks] "the user stack as text, a line for each frame"),
    builtin!("__print_user_addresses" "__print_user_addresses" ("addresses": String) [user_stacks] "prints a line for each address in the text"),
    builtin!("__sprint_user_addresses" "__sprint_user_addresses" ("addresses": String) -> String [pure user_stacks] "a line for each address in the text"),
];
