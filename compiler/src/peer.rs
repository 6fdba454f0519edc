// SPDX-License-Identifier: GPL-2.0-or-later

//! Called as `stap`: the session runs in a separate process called stapio, for tools that look for these two names, and the
//! exit status is 0 or 1.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use spile_abi::say::say;

use crate::cli::clock::Clock;

/// The session's process; 0 before there is one.
static SESSION: AtomicI32 = AtomicI32::new(0);
/// A signal that arrived before that.
static EARLY: AtomicI32 = AtomicI32::new(0);

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
        catch();
        let status = command.spawn().and_then(|mut child| {
            let pid = child.id().cast_signed();
            SESSION.store(pid, Ordering::SeqCst);
            let early = EARLY.swap(0, Ordering::SeqCst);
            if early != 0 {
                // SAFETY: a child that nobody has waited for yet.
                unsafe { libc::kill(pid, early) };
            }
            let status = child.wait();
            SESSION.store(0, Ordering::SeqCst);
            status
        });
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

/// From now on the signals no longer end this process.
fn catch() {
    let action =
        SigAction::new(SigHandler::SigAction(pass_on), SaFlags::SA_RESTART | SaFlags::SA_SIGINFO, SigSet::empty());
    for signal in PASSED_ON {
        // SAFETY: the handler calls only async-signal-safe functions.
        let before = unsafe { sigaction(signal, &action) };
        // nohup(1) means that a hangup is to be ignored, and its children inherit that.
        if let Ok(before) = before
            && signal == Signal::SIGHUP
            && matches!(before.handler(), SigHandler::SigIgn)
        {
            // SAFETY: as it was before.
            let _ = unsafe { sigaction(signal, &before) };
        }
    }
}

/// A terminal sends its signals to both processes: those come from the kernel and are not passed on.
extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid one to handlers with SA_SIGINFO.
    if info.is_null() || unsafe { (*info).si_code } > 0 {
        return;
    }
    let pid = SESSION.load(Ordering::SeqCst);
    if pid == 0 {
        EARLY.store(signal, Ordering::SeqCst);
        return;
    }
    let errno = nix::errno::Errno::last_raw();
    // SAFETY: kill(2) may be called in a handler. The child is waited for before its number is forgotten.
    unsafe { libc::kill(pid, signal) };
    nix::errno::Errno::set_raw(errno);
}
