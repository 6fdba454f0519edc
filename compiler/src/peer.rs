// SPDX-License-Identifier: GPL-2.0-or-later

//! Called as `stap`: the session runs in a separate process called stapio, for tools that look for these two names, and the
//! exit status is 0 or 1.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};

use nix::sys::signal::Signal;
use spile_abi::say::say;
use spile_base::passed_on;

use crate::cli::clock::Clock;

/// The program that runs sessions for SystemTap.
const STAPRUN: &str = "/usr/bin/staprun";

const PASSED_ON: [Signal; 5] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR2];

/// How to run a session in a separate process.
#[derive(Clone, Copy, Debug)]
pub struct SessionProcess {
    /// Say how long pass 5 took.
    pub verbose: bool,
}

impl SessionProcess {
    /// Runs the loader with these arguments (the program's name first) to its end; signals sent to this process are passed
    /// on to it.
    pub fn run(self, arguments: Vec<OsString>) -> ExitCode {
        let clock = Clock::start();
        // Even if the file that this program was started from has been replaced.
        let mut command = Command::new("/proc/self/exe");
        command.arg0(spilerun::staprun::STAPIO).arg(spilerun::staprun::SESSION).args(arguments.into_iter().skip(1));
        let status = passed_on::run(&mut command, &PASSED_ON);
        let failure = match &status {
            Ok(status) => failure(*status),
            Err(error) => Some(format!("ERROR: running the session's process: {error}")),
        };
        if self.verbose {
            say(&format!("Pass 5: run completed in {}.\n", clock.times()));
        }
        if let Some(failure) = &failure {
            say(&format!("{failure}\nPass 5: run failed.\n"));
        }
        ExitCode::from(u8::from(failure.is_some()))
    }
}

/// A line about a session that did not end well, as of a program that `stap` has started: all errors are status 1.
fn failure(status: ExitStatus) -> Option<String> {
    match status.signal() {
        Some(signal) => Some(format!("WARNING: {STAPRUN} exited with signal: {signal}")),
        None => (!status.success()).then(|| format!("WARNING: {STAPRUN} exited with status: 1")),
    }
}
