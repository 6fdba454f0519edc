//! Tests over debug information as compilers write it.

mod vmlinux;
