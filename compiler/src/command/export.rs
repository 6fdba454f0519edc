// SPDX-License-Identifier: GPL-2.0-or-later

//! `--export-index`: a kernel's debug information as a file that other hosts can use.

use std::path::Path;

use spile_debuginfo::target::TargetError;

use crate::outcome::Outcome;
use crate::reporter::{Failed, print_lines};
use crate::session::Session;
use crate::target::Target;

/// Writes the index of the kernel, of the modules named on the command line, and of those of `-d`.
pub(super) fn export(session: &Session, file: &Path, target: &Target) -> Result<Outcome, Failed> {
    let failed = |error: TargetError| session.reporter.fail(&error, &error.notes());
    let kernel = target.kernel.as_ref().ok_or_else(|| failed(TargetError::no_kernel(&target.release)))?;
    let words = session.options.script.words.iter().map(|word| word.to_string_lossy().into_owned());
    let mut modules: Vec<String> = words.collect();
    let others: Vec<String> = kernel.modules_of_options().into_iter().filter(|name| !modules.contains(name)).collect();
    modules.extend(others);
    let progress = session.reporter.progress("reading debug information");
    let size = spile_debuginfo::target::export(kernel, &modules, file);
    drop(progress);
    let size = spile_base::cache::size_text(size.map_err(failed)?);
    print_lines([format!("{}: {}, {size}", file.display(), kernel.release())])
}
