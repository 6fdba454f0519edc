// SPDX-License-Identifier: GPL-2.0-or-later

//! `--language-server`: scripts are checked with the options of the command line, unless the client has settings.

use std::path::Path;
use std::process::ExitCode;

use spile_language_server::{Settings, confine};

use crate::cli::options::Options;
use crate::cli::places;
use crate::outcome::Outcome;
use crate::reporter::Failed;
use crate::session::Session;
use crate::target::running_release;

/// Serves until the client ends it; status 1 if that is not as the protocol asks.
pub(super) fn serve(session: &mut Session) -> Result<Outcome, Failed> {
    let settings = settings(&session.options);
    // Before any thread is started.
    confine().map_err(|error| session.reporter.error(format!("restricting the language server: {error}")))?;
    let well = spile_language_server::serve(settings);
    Ok(Outcome::Done(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
}

fn settings(options: &Options) -> Settings {
    Settings {
        release: options.kernel.release.clone(),
        usual_release: usual_release(),
        index: options.kernel.index.clone(),
        sysroot: options.kernel.sysroot.clone(),
        modules: options.kernel.files(),
        library: places::tapset(options),
        tapset: options.script.library.clone(),
        guru: options.script.guru,
        args: None,
        compatible: options.script.compatible.clone(),
        strace_style: options.script.syscall_style == "strace",
        cache: options.build.cache_settings(),
    }
}

/// The running kernel; where nothing of it is installed, the newest that is.
fn usual_release() -> String {
    let running = running_release();
    if Path::new("/lib/modules").join(&running).is_dir() {
        return running;
    }
    spile_guest::Kernel::newest().map_or(running, |kernel| kernel.release.clone())
}
