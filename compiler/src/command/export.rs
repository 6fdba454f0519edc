// SPDX-License-Identifier: GPL-2.0-or-later

//! `--export-index`: debug information of a kernel and of programs as a file that other hosts can use.

use std::path::Path;

use spile_debuginfo::target::TargetError;

use crate::outcome::Outcome;
use crate::reporter::{Failed, print_lines};
use crate::session::Session;
use crate::target::Target;

/// Writes the index of the kernel, of the modules named on the command line, of those of `-d`, and of the programs and libraries
/// whose paths are there.
pub(super) fn export(session: &Session, file: &Path, target: &Target) -> Result<Outcome, Failed> {
    let failed = |error: TargetError| session.reporter.fail(&error, &error.notes());
    let kernel = target.kernel.as_ref().ok_or_else(|| failed(TargetError::no_kernel(&target.release)))?;
    let words = session.options.script.words.iter().map(|word| word.to_string_lossy().into_owned());
    let (programs, mut modules): (Vec<String>, Vec<String>) = words.partition(|word| is_path_of_program(word));
    let open = |word: &String| target.programs.open(&target.programs.find(word)?);
    let programs = programs.iter().map(open).collect::<Result<Vec<_>, TargetError>>().map_err(failed)?;
    let others: Vec<String> = kernel.modules_of_options().into_iter().filter(|name| !modules.contains(name)).collect();
    modules.extend(others);
    let progress = session.reporter.progress("reading debug information");
    let size = spile_debuginfo::target::export(kernel, &modules, &programs, file);
    drop(progress);
    let size = spile_base::cache::size_text(size.map_err(failed)?);
    print_lines([format!("{}: {}, {size}", file.display(), kernel.release())])
}

/// Modules are named, or are files such as `x.ko.xz`.
fn is_path_of_program(word: &str) -> bool {
    let Some((_, file)) = word.rsplit_once('/') else { return false };
    !file.ends_with(".ko") && !file.contains(".ko.")
}
