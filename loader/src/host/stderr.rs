// SPDX-License-Identifier: GPL-2.0-or-later

//! Lines of the loader's own on standard error.

use std::io::Write;

use spile_abi::escape;

/// Writes a line to standard error, outside of a session, with control characters escaped. A closed one is no error.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escape::line(line));
}

/// A panic prints one line, and no environment variable (RUST_BACKTRACE) has files looked at for more.
pub fn say_panics_briefly() {
    std::panic::set_hook(Box::new(|panic| say(&format!("ERROR: a mistake in spilerun: {panic}"))));
}
