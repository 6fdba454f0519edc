// SPDX-License-Identifier: GPL-2.0-or-later

//! The work that remains after a command: exit, or run the session.

use std::ffi::OsString;
use std::process::ExitCode;

use spile_base::scratch::Scratch;

use crate::peer;

/// The work that remains after a command.
pub enum Outcome {
    /// Nothing: exit with this status.
    Done(ExitCode),
    /// Run the session; the directory holds the module, and is removed afterwards.
    Run {
        /// How to run it.
        run: Run,
        /// None: the directory is kept.
        directory: Option<Scratch>,
    },
}

/// How a session runs.
pub enum Run {
    /// By the loader in this process: signals and the terminal stay as they are.
    Here {
        /// The loader's options.
        options: Box<spilerun::options::Options>,
        /// Gets the recording that the loader writes, and writes it in another format.
        live: Option<spile_replay::Live>,
    },
    /// In a separate process, as `stap` does.
    SessionProcess {
        /// The loader's command line, its name first.
        words: Vec<OsString>,
        /// Say how pass 5 ended.
        verbose: bool,
    },
}

impl Outcome {
    /// Does the remaining work, and returns the exit status.
    pub fn finish(self) -> ExitCode {
        match self {
            Outcome::Done(status) => status,
            Outcome::Run { run, directory } => {
                let status = match run {
                    Run::Here { options, live } => {
                        let status = spilerun::execute(&options);
                        // Waits until everything is written.
                        drop(live);
                        status
                    }
                    Run::SessionProcess { words, verbose } => peer::SessionProcess { verbose }.run(words),
                };
                drop(directory);
                status
            }
        }
    }
}
