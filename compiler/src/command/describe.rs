// SPDX-License-Identifier: GPL-2.0-or-later

//! What the program says about itself: its version, the page of a message's code, completion, and the manual page.

use std::io::Write;
use std::process::ExitCode;

use spile_source::diagnostic::explain;

use crate::cli::{describe, version};
use crate::outcome::Outcome;
use crate::reporter::{Failed, Reporter, WRONG, print_lines};

/// `--version`
pub(super) fn version() -> Result<Outcome, Failed> {
    print_lines(version::lines())
}

/// `--explain CODE`
pub(super) fn explain(reporter: &Reporter, code: &str) -> Result<Outcome, Failed> {
    match explain::page(code) {
        Some(page) => print(page.as_bytes()),
        None => Err(reporter.usage(&format!("--explain {code}: there is no message with this code"))),
    }
}

/// `--completion SHELL`
pub(super) fn completion(shell: clap_complete::Shell) -> Result<Outcome, Failed> {
    print(&describe::completion(shell))
}

/// `--man-page`
pub(super) fn man_page(reporter: &Reporter) -> Result<Outcome, Failed> {
    let page = describe::man_page().map_err(|error| reporter.error(format!("writing the manual page: {error}")))?;
    print(&page)
}

/// Prints bytes as they are.
pub(super) fn print(text: &[u8]) -> Result<Outcome, Failed> {
    match std::io::stdout().lock().write_all(text) {
        Ok(()) => Ok(Outcome::Done(ExitCode::SUCCESS)),
        Err(_) => Err(WRONG),
    }
}
