// SPDX-License-Identifier: GPL-2.0-or-later

//! `--fmt`: the script with its lines indented.

use spile_syntax::layout;

use super::{describe, no_script};
use crate::outcome::Outcome;
use crate::passes::parse;
use crate::reporter::Failed;
use crate::session::Session;
use crate::target::running_release;

/// Prints the script; if it does not parse, only its errors.
pub(super) fn format(session: &mut Session) -> Result<Outcome, Failed> {
    let Some((script, arguments)) = session.options.script.source() else {
        return Err(no_script(&session.reporter));
    };
    let environment = parse::environment(&session.options, &running_release(), None, arguments);
    let file = parse::check_syntax(session, &script, &environment)?;
    describe::print(&layout::layout(&session.sources.file(file).bytes))
}
