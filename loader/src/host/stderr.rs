// SPDX-License-Identifier: GPL-2.0-or-later

//! The loader's own lines on standard error.

use std::io::Write;

use spile_abi::escape;

/// Writes a line to standard error, outside of a session, with control characters escaped. Ignores write errors.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escape::line(line));
}

/// A panic prints one line; RUST_BACKTRACE is ignored, as it would open files.
pub fn print_panics_in_one_line() {
    std::panic::set_hook(Box::new(|panic| say(&format!("ERROR: a bug in spilerun: {panic}"))));
}
