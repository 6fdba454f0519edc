// SPDX-License-Identifier: GPL-2.0-or-later

//! What is left to do when a command is through: exit, or run the session.

use std::ffi::OsString;
use std::process::ExitCode;

use spile_base::scratch::Scratch;

use crate::peer;

/// What is left to do when a command is through.
pub enum Outcome {
    /// Nothing: exit with this status.
    Done(ExitCode),
    /// Run the session; the directory holds the module, and goes afterwards.
    Run {
        /// How.
        run: Run,
        /// None: the directory stays.
        directory: Option<Scratch>,
    },
}

/// How a session runs.
pub enum Run {
    /// By the loader in this process: signals and the terminal stay as they are.
    Here(Box<spilerun::options::Options>),
    /// In a process of its own, as `stap` has it.
    Apart {
        /// The loader's command line, its name first.
        words: Vec<OsString>,
        /// Say how pass 5 ended.
        verbose: bool,
    },
}

impl Outcome {
    /// Does what is left, and gives the exit status.
    pub fn finish(self) -> ExitCode {
        match self {
            Outcome::Done(status) => status,
            Outcome::Run { run, directory } => {
                let status = match run {
                    Run::Here(options) => spilerun::execute(&options),
                    Run::Apart { words, verbose } => peer::Apart { verbose }.run(words),
                };
                drop(directory);
                status
            }
        }
    }
}
