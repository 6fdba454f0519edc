// SPDX-License-Identifier: GPL-2.0-or-later

//! The loader as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    spilerun::main(std::env::args_os())
}
