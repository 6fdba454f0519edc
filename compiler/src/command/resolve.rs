// SPDX-License-Identifier: GPL-2.0-or-later

//! `--resolve`: where the probe points of a script are, and each of its variables.

use std::process::ExitCode;

use spile_core::elaborate::survey::survey;
use spile_core::inspect::resolve;
use spile_source::diagnostic::Diagnostic;
use spile_syntax::ast;

use crate::cli::options::OutputFormat;
use crate::outcome::Outcome;
use crate::passes::elaborate;
use crate::reporter::{Failed, print_lines};
use crate::session::Session;
use crate::target::Target;

/// Prints all of it; status 1 where a point that is not optional has no site, or a variable cannot be read.
pub(super) fn resolve(
    session: &Session,
    form: OutputFormat,
    scripts: &[ast::Script],
    target: &Target,
) -> Result<Outcome, Failed> {
    let progress = session.reporter.progress("reading debug information");
    let mut resolver = elaborate::resolver(&session.options, target.kernel.as_ref(), &target.release, &target.programs);
    let survey = survey(&session.sources, scripts, &elaborate::options(session), &mut resolver);
    drop(progress);
    let all = resolve::resolved(&session.sources, &survey);
    let lines = match form {
        OutputFormat::Table => resolve::table(&all),
        OutputFormat::Json => vec![resolve::json(&target.release, &all)],
    };
    print_lines(lines)?;
    let missing = survey.points.iter().filter(|point| point.sites.is_empty() && !point.optional);
    let problems: Vec<Diagnostic> = missing.flat_map(|point| point.problems.clone()).collect();
    let unread = survey
        .points
        .iter()
        .flat_map(|point| &point.sites)
        .flat_map(|site| &site.targets)
        .any(|target| target.found.is_err());
    session.reporter.diagnose(&session.sources, "Pass 2: analysis", &problems)?;
    Ok(Outcome::Done(if unread { ExitCode::FAILURE } else { ExitCode::SUCCESS }))
}
