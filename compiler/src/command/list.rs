// SPDX-License-Identifier: GPL-2.0-or-later

//! Lists of what scripts can name: `-l`, `-L`, `--dump-probe-types`, `--dump-probe-aliases`, `--dump-functions`.

use spile_core::elaborate::{self, Privilege, is_unprivileged, is_unprivileged_point};
use spile_core::{library, probe};
use spile_syntax::ast;

use crate::cli::options::Options;
use crate::outcome::Outcome;
use crate::passes::elaborate::resolver;
use crate::passes::parse;
use crate::reporter::{Failed, WRONG, print_lines};
use crate::session::Session;
use crate::target::Target;

/// `-l` and `-L`: the probe points that match, sorted; status 1 if there are none.
pub(super) fn list(
    session: &mut Session,
    pattern: &str,
    library: &[ast::Script],
    target: &Target,
) -> Result<Outcome, Failed> {
    let points = parse::probe_points(session, pattern)?;
    let progress = session.reporter.progress("reading debug information");
    let mut resolver = resolver(&session.options, target.kernel.as_ref(), &target.release, &target.programs);
    let variables = !session.options.ask.variables.is_empty();
    let (mut found, problems) = elaborate::list(&session.sources, &points, library, variables, &mut resolver);
    drop(progress);
    found.sort();
    found.dedup();
    if found.is_empty() {
        session.reporter.diagnose(&session.sources, "Pass 2: analysis", &problems)?;
        return Err(WRONG);
    }
    print_lines(found)
}

/// `--dump-probe-types`: all forms of probe points but internal ones; with `--privilege=stapusr` those that it allows. Called as
/// `stap`, without what they are, as programs read it.
pub(super) fn probe_types(options: &Options) -> Result<Outcome, Failed> {
    let all = options.build.privilege() != Privilege::Usr;
    let public = probe::forms().filter(|form| !form.spelling.starts_with('_'));
    let allowed = public.filter(|form| all || is_unprivileged_point(form.spelling));
    print_lines(allowed.map(|form| match options.as_stap {
        true => form.spelling.to_string(),
        false => format!("{} /* {} */", form.spelling, form.doc),
    }))
}

/// `--dump-probe-aliases`
pub(super) fn probe_aliases(session: &Session, scripts: &[ast::Script]) -> Result<Outcome, Failed> {
    print_lines(library::alias_definitions(scripts, &session.sources))
}

/// `--dump-functions`
pub(super) fn functions(session: &Session, scripts: &[ast::Script]) -> Result<Outcome, Failed> {
    print_lines(library::functions(scripts, &session.sources, is_unprivileged))
}
