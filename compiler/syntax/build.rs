// SPDX-License-Identifier: GPL-2.0-or-later

//! Generates the parser from `src/grammar.lalrpop`, of this crate and of spile-bpftrace.

#[expect(clippy::panic, reason = "so the build ends, with the message")]
fn main() {
    println!("cargo::rerun-if-changed=src/grammar.lalrpop");
    if let Err(error) = lalrpop::Configuration::new()
        .use_cargo_dir_conventions()
        .emit_rerun_directives(false)
        .process_file("src/grammar.lalrpop")
    {
        panic!("generating the parser: {error}");
    }
}
