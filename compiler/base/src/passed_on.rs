// SPDX-License-Identifier: GPL-2.0-or-later

//! A program that runs in place of this process: the signals that other processes send here are passed on to it, and do not end
//! this process until it has ended.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// The program's process; 0: there is none.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// A signal that came before there was one.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// Runs the program to its end, as [`Command::status`]; it gets those of the `signals` that a process sends here, and what they
/// did here before is restored then. One program at a time.
pub fn run(command: &mut Command, signals: &[Signal]) -> io::Result<ExitStatus> {
    let caught = Caught::new(signals);
    let status = command.spawn().and_then(|mut child| {
        let process = child.id().cast_signed();
        PROCESS.store(process, Ordering::SeqCst);
        let early = EARLY.swap(0, Ordering::SeqCst);
        if early != 0 {
            // SAFETY: a child that nobody has waited for yet.
            unsafe { libc::kill(process, early) };
        }
        // As long as nobody has waited for it, its number is not another process's.
        let all = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(Pid::from_raw(process)), all) == Err(Errno::EINTR) {}
        PROCESS.store(0, Ordering::SeqCst);
        child.wait()
    });
    drop(caught);
    EARLY.store(0, Ordering::SeqCst);
    status
}

/// While it lives, the signals are passed on.
struct Caught {
    before: Vec<(Signal, SigAction)>,
}

impl Caught {
    fn new(signals: &[Signal]) -> Caught {
        let action =
            SigAction::new(SigHandler::SigAction(pass_on), SaFlags::SA_RESTART | SaFlags::SA_SIGINFO, SigSet::empty());
        let mut before = Vec::new();
        for signal in signals {
            // SAFETY: the handler calls only async-signal-safe functions.
            let Ok(old) = (unsafe { sigaction(*signal, &action) }) else { continue };
            // nohup(1) means that a hangup is to be ignored, and its children inherit that.
            if *signal == Signal::SIGHUP && matches!(old.handler(), SigHandler::SigIgn) {
                // SAFETY: as it was before.
                let _ = unsafe { sigaction(*signal, &old) };
            } else {
                before.push((*signal, old));
            }
        }
        Caught { before }
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            // SAFETY: as it was before.
            let _ = unsafe { sigaction(*signal, old) };
        }
    }
}

/// A terminal sends its signals to both processes: those come from the kernel and are not passed on.
extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid one to handlers with SA_SIGINFO.
    if info.is_null() || unsafe { (*info).si_code } > 0 {
        return;
    }
    let process = PROCESS.load(Ordering::SeqCst);
    if process == 0 {
        EARLY.store(signal, Ordering::SeqCst);
        return;
    }
    let errno = Errno::last_raw();
    // SAFETY: kill(2) may be called in a handler. The number is forgotten before the child is waited for.
    unsafe { libc::kill(process, signal) };
    Errno::set_raw(errno);
}
