// SPDX-License-Identifier: GPL-2.0-or-later

//! `--cache` and `--clean-cache`.

use crate::cli::cache::{self, Action};
use crate::outcome::Outcome;
use crate::reporter::{Failed, print_lines};
use crate::session::Session;

/// Shows the entries of the cache, or removes them.
pub(super) fn perform(session: &Session, action: Action) -> Result<Outcome, Failed> {
    let lines = cache::run(action, &session.cache()).map_err(|why| session.reporter.error(why))?;
    print_lines(lines)
}
