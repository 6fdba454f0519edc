// SPDX-License-Identifier: GPL-2.0-or-later

//! `--check`: compares the probe points and variables of a script on several kernels.

use std::process::ExitCode;

use spile_core::check::{self, Subject};
use spile_core::elaborate::survey::{Survey, survey};
use spile_debuginfo::target::Kernel;

use super::no_script;
use crate::cli::options::{OutputFormat, Script};
use crate::outcome::Outcome;
use crate::passes::{elaborate, parse};
use crate::reporter::{Failed, Reporter, print_lines};
use crate::session::Session;
use crate::target;

/// Exit status as of diff(1): 0 nothing has changed, 1 something has, 2 an error.
const TROUBLE: Failed = Failed(2);

/// Compares the script on each kernel of `--kernel` with the first.
pub(super) fn check(session: &mut Session, form: OutputFormat) -> Result<Outcome, Failed> {
    let Some((script, arguments)) = session.options.script.source() else {
        no_script(&session.reporter);
        return Err(TROUBLE);
    };
    // Standard input can be read once.
    let script = match script {
        Script::Stdin => {
            let file = parse::read(session, &Script::Stdin).map_err(|_| TROUBLE)?;
            Script::Text(String::from_utf8_lossy(&session.sources.file(file).bytes).into_owned())
        }
        script => script,
    };
    let names = session.options.ask.kernels.clone();
    if names.len() < 2 {
        session.reporter.usage("--check compares kernels: give --kernel twice or more");
        return Err(TROUBLE);
    }
    let mut subjects = Vec::new();
    for name in names {
        let progress = session.reporter.progress(&format!("looking at {name}"));
        let subject = subject(session, &name, &script, &arguments);
        drop(progress);
        subjects.push(subject.map_err(|_| TROUBLE)?);
    }
    let report = check::compare(&session.sources, &subjects);
    let lines = match form {
        OutputFormat::Table => check::show::table(&report),
        OutputFormat::Json => vec![check::show::json(&report)],
    };
    print_lines(lines)?;
    Ok(Outcome::Done(if report.well { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
}

fn subject(session: &mut Session, name: &str, script: &Script, arguments: &[String]) -> Result<Subject, Failed> {
    let (options, reporter) = (&session.options, &session.reporter);
    let kernel = Kernel::named(name, target::search(options)).map_err(|error| reporter.fail(&error, &error.notes()))?;
    let kernel = target::equipped(kernel, options, reporter);
    // Without it everything would be reported as gone.
    kernel.vmlinux().map_err(|error| reporter.fail(&error, &error.notes()))?;
    let release = kernel.release().to_string();
    let environment = parse::environment(options, &release, Some(&kernel), arguments.to_vec());
    let parsed = parse::parse(session, script, &environment)?;
    let survey = {
        let programs = target::programs(&session.options, &session.reporter);
        let programs = programs.with_index(kernel.index_path().map(std::path::Path::to_path_buf));
        let mut resolver = elaborate::resolver(&session.options, Some(&kernel), &release, &programs);
        survey(&session.sources, &parsed.scripts, &elaborate::options(session), &mut resolver)
    };
    check_files(&kernel, &survey, &session.reporter)?;
    Ok(Subject { name: name.to_string(), kernel, survey })
}

/// Warns of files of `-d` that were built for another kernel and are used for this one. Fails for one that has no debug
/// information, if something of the script was not found: it would be reported as gone.
fn check_files(kernel: &Kernel, survey: &Survey, reporter: &Reporter) -> Result<(), Failed> {
    let misses_points = survey.points.iter().any(|point| !point.problems.is_empty());
    let mut used = Vec::new();
    for name in kernel.modules_of_options() {
        match kernel.module(&name) {
            Ok(object) => used.push(object.path().to_path_buf()),
            Err(error) if misses_points => return Err(reporter.fail(&error, &error.notes())),
            Err(_) => {}
        }
    }
    target::warn_of_other_releases(&used, reporter, kernel.release());
    Ok(())
}
