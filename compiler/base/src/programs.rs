// SPDX-License-Identifier: GPL-2.0-or-later

//! Programs that a run starts and waits for: compilers, make, curl. They do not outlive it.
//!
//! They are in a process group of their own. Its first process, a shell, waits for the end of a pipe that only this process
//! writes to: when this one is gone, by SIGKILL too, it kills the group. So what make has started ends as well, and nothing has
//! to be done in a child between fork and exec, which would take a copy of this process's page tables for each program. Signals that
//! end this process kill the group at once ([`super::unfinished`]).
//!
//! Not for programs that may ask something on the terminal: only the group that the caller's shell has started can read there.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use super::unfinished;

/// The shell, while there may be programs. `Some(None)`: there is none, nor will there be one.
static KEEPER: Mutex<Option<Option<Child>>> = Mutex::new(None);

const WAIT_FOR_END: &str = "read -r end; kill -s KILL 0";

/// Runs a program to its end, and returns its output, as [`Command::output`].
pub fn output(command: &mut Command) -> io::Result<Output> {
    start(command, Command::output)
}

/// Runs a program to its end, as [`Command::status`].
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    start(command, Command::status)
}

/// Starts a program, as [`Command::spawn`].
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    start(command, Command::spawn)
}

fn start<T>(command: &mut Command, with: fn(&mut Command) -> io::Result<T>) -> io::Result<T> {
    let Some(group) = group() else { return with(command) };
    match with(command.process_group(group)) {
        // Somebody has ended the shell and what it had to do.
        Err(error) if error.raw_os_error() == Some(Errno::EPERM as i32) => {
            done();
            with(command.process_group(0))
        }
        started => started,
    }
}

fn group() -> Option<i32> {
    let mut keeper = KEEPER.lock().unwrap_or_else(PoisonError::into_inner);
    let keeper = keeper.get_or_insert_with(|| {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(WAIT_FOR_END).env_clear().process_group(0);
        let keeper = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        unfinished::set_group(keeper.id().cast_signed());
        Some(keeper)
    });
    keeper.as_ref().map(|keeper| keeper.id().cast_signed())
}

/// No program runs any more: the group's shell ends.
pub fn done() {
    let keeper = KEEPER.lock().unwrap_or_else(PoisonError::into_inner).take().flatten();
    if let Some(mut keeper) = keeper {
        unfinished::set_group(0);
        let _ = keeper.kill();
        let _ = keeper.wait();
    }
}

/// For programs that may use the terminal: they get SIGTERM when the thread that starts them has ended, however it does.
pub fn end_with_this_thread(command: &mut Command) {
    let own = nix::unistd::getpid();
    let arrange = move || {
        set_pdeathsig(Signal::SIGTERM)?;
        // It may have ended before that.
        if nix::unistd::getppid() == own { Ok(()) } else { Err(io::Error::from(io::ErrorKind::Interrupted)) }
    };
    // SAFETY: between fork and exec it makes only system calls.
    unsafe { command.pre_exec(arrange) };
}
