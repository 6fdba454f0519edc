//! Values at kernel and user addresses.

use super::{Builtin, builtin};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("kernel_string" "kernel_string" ("address": Long) -> String [fails pure] "text at a kernel address; an error if it cannot be read"),
    builtin!("kernel_string" "kernel_string2" ("address": Long, "otherwise": String) -> String [pure] "text at a kernel address, or the second argument if it cannot be read"),
    builtin!("kernel_string_n" "kernel_string_n" ("address": Long, "length": Long) -> String [fails pure] "at most that many bytes of text at a kernel address"),
    builtin!("kernel_char" "kernel_char" ("address": Long) -> Long [fails pure] "the char at a kernel address"),
    builtin!("kernel_short" "kernel_short" ("address": Long) -> Long [fails pure] "the short at a kernel address"),
    builtin!("kernel_int" "kernel_int" ("address": Long) -> Long [fails pure] "the int at a kernel address"),
    builtin!("kernel_long" "kernel_long" ("address": Long) -> Long [fails pure] "the long at a kernel address"),
    builtin!("kernel_pointer" "kernel_pointer" ("address": Long) -> Long [fails pure] "the pointer at a kernel address"),
    builtin!("user_string" "user_string" ("address": Long) -> String [fails pure] "text at a user address; an error if it cannot be read"),
    builtin!("user_string" "user_string2" ("address": Long, "otherwise": String) -> String [pure] "text at a user address, or the second argument if it cannot be read"),
    builtin!("user_string_n" "user_string_n" ("address": Long, "length": Long) -> String [fails pure] "at most that many bytes of text at a user address"),
    builtin!("user_char" "user_char" ("address": Long) -> Long [fails pure] "the char at a user address"),
    builtin!("user_short" "user_short" ("address": Long) -> Long [fails pure] "the short at a user address"),
    builtin!("user_int" "user_int" ("address": Long) -> Long [fails pure] "the int at a user address"),
    builtin!("user_long" "user_long" ("address": Long) -> Long [fails pure] "the long at a user address"),
];
