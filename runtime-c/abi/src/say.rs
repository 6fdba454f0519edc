// SPDX-License-Identifier: GPL-2.0-or-later

//! Text for standard error. `eprint!` panics if that is closed, full or has no reader, which must not decide what a program
//! does, or which status it ends with.

use std::io::Write;

/// Writes the text as it is. Errors are ignored: there is no other place to report them.
pub fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
