// SPDX-License-Identifier: GPL-2.0-or-later

//! `--list-lines`: the source lines of functions, marking those that can be probed.

use std::collections::BTreeSet;

use spile_core::inspect::lines::{Sources, listing};
use spile_debuginfo::target::Kernel;

use crate::outcome::Outcome;
use crate::passes::elaborate::resolver;
use crate::passes::parse;
use crate::reporter::{Failed, Reporter, print_lines};
use crate::session::Session;
use crate::target::Target;

/// Prints the lines of the functions that the option's probe points name.
pub(super) fn list(session: &mut Session, target: &Target) -> Result<Outcome, Failed> {
    let text = session.options.ask.list_lines.join(", ");
    let points = parse::probe_points(session, &text)?;
    for directory in &session.options.ask.source {
        let why = match std::fs::metadata(directory) {
            Ok(found) if found.is_dir() => continue,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => error.to_string(),
            _ => "there is no such directory".to_string(),
        };
        return Err(session.reporter.usage(&format!("--source {}: {why}", directory.display())));
    }
    let known = target.kernel.as_ref().map(Kernel::source_dirs).unwrap_or_default();
    let sources = Sources { given: session.options.ask.source.clone(), known };
    let mut without_text = BTreeSet::new();
    let mut resolver = resolver(&session.options, target.kernel.as_ref(), &target.release, &target.programs);
    let (mut lines, mut problems) = (Vec::new(), Vec::new());
    for point in &points {
        match listing(&point.components, point.span, &mut resolver, &sources) {
            Ok(listed) => {
                lines.extend(listed.lines);
                without_text.extend(listed.without_text);
            }
            Err(error) => problems.push(error.diagnostic(point.span)),
        }
    }
    session.reporter.diagnose(&session.sources, "Pass 2: analysis", &problems)?;
    if lines.is_empty() {
        let message = "no line of it can be probed: lists of lines are made for functions, from DWARF";
        return Err(session.reporter.error(message));
    }
    if !without_text.is_empty() {
        note_missing_text(&session.reporter, without_text, &sources);
    }
    print_lines(lines)
}

/// Names the files whose text was not found, and the places searched.
fn note_missing_text(reporter: &Reporter, files: BTreeSet<String>, sources: &Sources) {
    let files: Vec<String> = files.into_iter().collect();
    let places = sources.given.iter().chain(&sources.known).filter(|place| place.is_dir());
    let places: Vec<String> = places.map(|place| place.display().to_string()).collect();
    let looked = match places.is_empty() {
        true => "no place that packages use is there".to_string(),
        false => format!("looked below {}", places.join(", ")),
    };
    reporter.notice(&format!(
        "NOTE: no source text of {} ({looked}): --source DIR names a directory that has it",
        files.join(", ")
    ));
}
