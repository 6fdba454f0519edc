// SPDX-License-Identifier: GPL-2.0-or-later

//! `--prepare`: does ahead what the first script for a kernel has to wait for: compiles the runtime, and makes the tables of its
//! debug information.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use spile_base::cache::Cache;
use spile_debuginfo::target::{Kernel, TargetError};
use spile_kbuild as kbuild;

use crate::outcome::Outcome;
use crate::passes::compile;
use crate::reporter::{Failed, print_lines};
use crate::session::Session;
use crate::target::Target;

/// What was done about one part, and how long it took; or why it was not.
type Part = Result<(bool, Duration), String>;

/// Prepares the kernels named on the command line, else that of `-r`, else the running one. Fails if one of them cannot be prepared
/// at all.
pub(super) fn prepare(session: &mut Session) -> Result<Outcome, Failed> {
    let words: Vec<OsString> = std::mem::take(&mut session.options.script.words);
    let named = words.iter().map(|word| Some(word.to_string_lossy().into_owned()));
    let mut releases: Vec<Option<String>> = session.options.kernel.release.take().map(Some).into_iter().collect();
    releases.extend(named);
    if releases.is_empty() {
        releases.push(None);
    }
    let cache = session.cache();
    if cache.directory().is_none() {
        session.reporter.cache_notices(&cache);
        return Err(session.reporter.error("--prepare: there is no cache to keep anything in"));
    }
    let (mut lines, mut failed) = (Vec::new(), None);
    for release in releases {
        session.options.kernel.release = release;
        // The others can be prepared all the same.
        let target = match Target::choose(&session.options, &session.reporter) {
            Ok(target) => target,
            Err(failure) => {
                failed = Some(failure);
                continue;
            }
        };
        let (runtime, debug) = prepare_one(session, &target, &cache)?;
        if let (Err(runtime), Err(debug)) = (&runtime, &debug) {
            let notes = [format!("debug information: {debug}")];
            failed = Some(session.reporter.fail(format!("{}: nothing is prepared: {runtime}", target.release), &notes));
            continue;
        }
        let what = [("runtime", runtime), ("debug information", debug)];
        lines.extend(what.map(|(what, part)| format!("{}: {what}: {}", target.release, said(&part))));
    }
    session.reporter.cache_notices(&cache);
    print_lines(lines)?;
    failed.map_or(Ok(Outcome::Done(std::process::ExitCode::SUCCESS)), Err)
}

fn said(part: &Part) -> String {
    match part {
        Ok((true, took)) => format!("ready after {:.1} s", took.as_secs_f64()),
        Ok((false, _)) => "was ready".to_string(),
        Err(why) => format!("not prepared: {why}"),
    }
}

/// The runtime is compiled while the debug information is read.
fn prepare_one(session: &Session, target: &Target, cache: &Cache) -> Result<(Part, Part), Failed> {
    let directory = session.scratch()?;
    let nothing = kbuild::Sources { script: String::new(), embedded: None, tables: None };
    let request = compile::request(session, target, "spile_prepare", nothing);
    directory.share_with_programs(true);
    let progress = session.reporter.progress(&format!("preparing {}", target.release));
    let parts = std::thread::scope(|scope| {
        let compiling = scope.spawn(|| timed(|| kbuild::prepare(&request, directory.path(), cache, &|_| {})));
        let debug = timed(|| match &target.kernel {
            Some(kernel) => prepare_debug(kernel),
            None => Err(TargetError::no_kernel(&target.release)),
        });
        (compiling.join().unwrap_or_else(|_| Err("it ended early".into())), debug)
    });
    drop(progress);
    directory.share_with_programs(false);
    Ok(parts)
}

fn prepare_debug(kernel: &Kernel) -> Result<bool, TargetError> {
    Ok(kernel.vmlinux()?.prepare()?)
}

fn timed<E: std::fmt::Display>(make: impl FnOnce() -> Result<bool, E>) -> Part {
    let started = Instant::now();
    // Of a compiler's messages, the first line.
    let first_line = |error: E| error.to_string().lines().next().unwrap_or_default().to_string();
    make().map(|made| (made, started.elapsed())).map_err(first_line)
}
