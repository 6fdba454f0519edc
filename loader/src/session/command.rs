// SPDX-License-Identifier: GPL-2.0-or-later

//! The command of `-c`.
//!
//! It is forked before the module is loaded, so that its pid is known; it waits on a [`channel`] and starts
//! when all probes are armed. If the loader exits before, the channel closes and the command never runs.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, execvp, fork, read, write};

use crate::error::Error;
use crate::host::{channel, search};
use crate::session::signals;

/// The command of `-c`, a child of this process.
#[derive(Debug)]
pub struct Command {
    pid: Pid,
    /// Until it starts.
    start: Option<OwnedFd>,
    ended: bool,
}

/// How a command exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// With this status.
    Exited(i32),
    /// Killed by this signal.
    Killed(Signal),
}

impl Status {
    /// As a number: an exit status, or the negative number of a signal.
    pub fn number(self) -> i32 {
        match self {
            Status::Exited(status) => status,
            Status::Killed(signal) => -(signal as i32),
        }
    }

    /// The status for a number of [`Status::number`].
    pub fn from_number(number: i32) -> Status {
        match number.checked_neg().filter(|number| *number > 0).map(Signal::try_from) {
            Some(Ok(signal)) => Status::Killed(signal),
            _ => Status::Exited(number),
        }
    }
}

/// Exit status of a command that cannot be run, as in shells.
const NOT_FOUND: i32 = 127;

impl Command {
    /// Forks the command's process, which waits for [`Command::begin`]. Err: it has no words, or fork failed.
    pub fn prepare(command: &str) -> Result<Command, Error> {
        let failed = |error: std::io::Error| Error::Command { command: command.to_string(), error };
        let words = words(command).into_iter().map(CString::new).collect::<Result<Vec<CString>, _>>();
        let words = words.map_err(|error| failed(error.into()))?;
        let program = words.first().ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?.clone();
        let (waiting, start) = channel::pair().map_err(failed)?;
        // SAFETY: other threads may exist, so the child only reads, then execs or reports the error; the C library
        // keeps malloc usable after fork (it holds the allocator's locks across it).
        match unsafe { fork() }.map_err(|errno| failed(errno.into()))? {
            ForkResult::Parent { child } => Ok(Command { pid: child, start: Some(start), ended: false }),
            ForkResult::Child => {
                drop(start);
                become_command(&waiting, &program, &words)
            }
        }
    }

    /// Its pid.
    pub fn number(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Starts the command.
    pub fn begin(&mut self) {
        if let Some(start) = self.start.take() {
            // If it has exited, its status reports why.
            let _ = write(start, b"!");
        }
    }

    /// The status, once, if it has exited.
    pub fn reap(&mut self) -> Option<Status> {
        if self.ended {
            return None;
        }
        let status = match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, status)) => Status::Exited(status),
            Ok(WaitStatus::Signaled(_, signal, _)) => Status::Killed(signal),
            Err(Errno::ECHILD) => Status::Exited(0),
            _ => return None,
        };
        self.ended = true;
        Some(status)
    }
}

/// In the child: waits for a byte, then execs the command; exits without one.
fn become_command(waiting: &OwnedFd, program: &CString, words: &[CString]) -> ! {
    signals::reset();
    let mut byte = [0u8; 1];
    let begins = loop {
        match read(waiting, &mut byte) {
            Err(Errno::EINTR) => {}
            other => break other == Ok(1),
        }
    };
    if begins {
        // SAFETY: restores the default. Rust programs ignore SIGPIPE.
        let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
        let Err(errno) = execvp(program, words);
        crate::host::stderr::say(&format!("ERROR: {} cannot be run: {}", program.to_string_lossy(), errno.desc()));
    }
    // SAFETY: exits without running the parent's exit handlers.
    unsafe { libc::_exit(NOT_FOUND) }
}

impl Drop for Command {
    fn drop(&mut self) {
        // A command that never started sees the channel close, and exits.
        if self.start.take().is_some() {
            let _ = waitpid(self.pid, None);
        }
    }
}

/// The words of a plain command, which is executed directly. A command with any character that a shell interprets,
/// including quotes, is run by a shell; the crate shell-words is not needed.
fn words(command: &str) -> Vec<String> {
    let is_special = |byte: char| "|&;<>()$`\\\"'*?[]#~=%!{}\n".contains(byte);
    let words: Vec<String> = command.split_whitespace().map(String::from).collect();
    let is_program = words.first().is_none_or(|word| is_program(word));
    match command.contains(is_special) || !is_program {
        true => vec!["sh".into(), "-c".into(), command.into()],
        false => words,
    }
}

/// Whether there is a file for it: shell builtins (`exit`) have none.
fn is_program(word: &str) -> bool {
    word.contains('/') || search::in_path(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn wait(command: &mut Command) -> Status {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match command.reap() {
                Some(status) => return status,
                None if Instant::now() > deadline => panic!("it does not end"),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    #[test]
    fn statuses_are_numbers() {
        for status in [Status::Exited(0), Status::Exited(255), Status::Killed(Signal::SIGKILL)] {
            assert_eq!(Status::from_number(status.number()), status);
        }
    }

    #[test]
    fn plain_commands_need_no_shell() {
        assert_eq!(words("cat  /etc/hostname"), ["cat", "/etc/hostname"]);
        assert_eq!(words("a | b"), ["sh", "-c", "a | b"]);
        assert_eq!(words("X=1 a"), ["sh", "-c", "X=1 a"]);
        assert_eq!(words("exit 3"), ["sh", "-c", "exit 3"]);
    }

    #[test]
    fn a_command_waits_for_its_beginning_and_reports_its_status() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("began");
        let mut command = Command::prepare(&format!("touch {}; exit 3", file.display())).unwrap();
        assert!(command.number() > 1);
        std::thread::sleep(Duration::from_millis(50));
        assert!(!file.exists());
        assert_eq!(command.reap(), None);
        command.begin();
        assert_eq!(wait(&mut command), Status::Exited(3));
        assert!(file.exists());
        assert_eq!(command.reap(), None, "reported once");
    }

    #[test]
    fn a_killed_command_and_a_missing_one() {
        let mut command = Command::prepare("kill -9 $$").unwrap();
        command.begin();
        assert_eq!(wait(&mut command), Status::Killed(Signal::SIGKILL));
        let mut command = Command::prepare("/no/such/program").unwrap();
        command.begin();
        assert_eq!(wait(&mut command), Status::Exited(NOT_FOUND));
        assert!(Command::prepare(" ").is_err());
    }
}
