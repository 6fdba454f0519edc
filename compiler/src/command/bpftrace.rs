// SPDX-License-Identifier: GPL-2.0-or-later

//! `--from-bpftrace PROGRAM`: the script that does the same.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::describe;
use crate::cli::options::Script;
use crate::outcome::Outcome;
use crate::passes::parse;
use crate::reporter::Failed;
use crate::session::Session;
use crate::target;

/// Prints the script, or writes it to the file of `-o`; if there is none, only the reasons.
pub(super) fn translate(session: &mut Session, program: &str) -> Result<Outcome, Failed> {
    let given = match program {
        "-" => Script::Stdin,
        // No program is a path: each has a brace.
        _ if Path::new(program).exists() || !program.contains('{') => Script::File(PathBuf::from(program)),
        _ => Script::Text(program.to_string()),
    };
    let file = parse::read(session, &given)?;
    let text = session.sources.file(file).text.clone();
    let programs = target::programs(&session.options, &session.reporter);
    let library = |name: &str| programs.library_of_any_version(name).map(|path| path.display().to_string());
    match spile_bpftrace::translate(file, &text, &library) {
        Ok(script) => match &session.options.run.session.output {
            Some(path) => spile_base::read::create(path)
                .and_then(|mut file| file.write_all(script.as_bytes()))
                .map(|()| Outcome::Done(ExitCode::SUCCESS))
                .map_err(|error| session.reporter.error(format!("writing {}: {error}", path.display()))),
            None => describe::print(script.as_bytes()),
        },
        Err(problems) => {
            session.reporter.diagnose(&session.sources, "Translation", &problems)?;
            describe::print(b"")
        }
    }
}
