// SPDX-License-Identifier: GPL-2.0-or-later

//! The process that `target()` names: the command of `-c`, or the process of `-x`.
//!
//! The command exists before the module is loaded, waiting at the end of a [`channel`], so that its pid is known; it begins
//! when all probes are armed. If the loader dies before, that closes and the command never runs.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, execvp, fork, read, write};

use crate::error::Error;
use crate::host::{channel, search};
use crate::options::Options;
use crate::session::signals;
use crate::session::starter::Starter;

/// The process whose end ends the session.
#[derive(Debug)]
pub enum Target {
    /// There is none.
    None,
    /// `-x`: readable when the process has ended.
    Process {
        /// Its number.
        pid: i32,
        /// By pidfd_open(2).
        ended: OwnedFd,
    },
    /// `-c`
    Command(Command),
    /// `-c`, started by another process.
    Elsewhere {
        /// The command's number.
        pid: i32,
        /// `None` after its status was read.
        starter: Option<Arc<Starter>>,
    },
}

/// The command of `-c`, a child of this process.
#[derive(Debug)]
pub struct Command {
    pid: Pid,
    /// Until it has begun.
    start: Option<OwnedFd>,
    ended: bool,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(Signal),
}

impl Status {
    /// As one number: an exit status, or a signal's number as a negative one.
    pub fn number(self) -> i32 {
        match self {
            Status::Exited(status) => status,
            Status::Killed(signal) => -(signal as i32),
        }
    }

    /// The status of a number of [`Status::number`].
    pub fn from_number(number: i32) -> Status {
        match number.checked_neg().filter(|number| *number > 0).map(Signal::try_from) {
            Some(Ok(signal)) => Status::Killed(signal),
            _ => Status::Exited(number),
        }
    }
}

/// Exit status of what cannot be run, as shells have it.
const NOT_FOUND: i32 = 127;

impl Target {
    /// `starter`: what starts commands, if it is another process.
    pub fn prepare(options: &Options, starter: Option<&Arc<Starter>>) -> Result<Target, Error> {
        match (&options.command, options.pid) {
            (Some(command), _) => match starter {
                Some(starter) => {
                    Ok(Target::Elsewhere { pid: starter.prepare(command)?, starter: Some(starter.clone()) })
                }
                None => Ok(Target::Command(Command::prepare(command)?)),
            },
            (None, Some(pid)) => Ok(Target::Process { pid, ended: open_process(pid)? }),
            (None, None) => Ok(Target::None),
        }
    }

    /// For `target()`; 0 for none.
    pub fn pid(&self) -> i32 {
        match self {
            Target::None => 0,
            Target::Process { pid, .. } | Target::Elsewhere { pid, .. } => *pid,
            Target::Command(command) => command.number(),
        }
    }

    /// All probes are armed: a waiting command begins.
    pub fn begin(&mut self) {
        match self {
            Target::Command(command) => command.begin(),
            Target::Elsewhere { starter: Some(starter), .. } => starter.begin_command(),
            _ => {}
        }
    }

    /// Descriptor that becomes readable at the end of a process that is no child.
    pub fn ended(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Target::Process { ended, .. } => Some(ended.as_fd()),
            Target::Elsewhere { starter: Some(starter), .. } => Some(starter.ended()),
            _ => None,
        }
    }

    /// How the command of another process ended, once. To be called when [`Target::ended`] is readable.
    pub fn status(&mut self) -> Option<Status> {
        match self {
            Target::Elsewhere { starter, .. } => starter.take().map(|starter| starter.status()),
            _ => None,
        }
    }

    /// How the command ended, once, if it has.
    pub fn reap(&mut self) -> Option<Status> {
        match self {
            Target::Command(command) => command.reap(),
            _ => None,
        }
    }
}

impl Command {
    /// Forks the command's process, which waits for [`Command::begin`]. An error: it has no words, or there is no process.
    pub fn prepare(command: &str) -> Result<Command, Error> {
        let failed = |error: std::io::Error| Error::Command { command: command.to_string(), error };
        let words = words(command).into_iter().map(CString::new).collect::<Result<Vec<CString>, _>>();
        let words = words.map_err(|error| failed(error.into()))?;
        let program = words.first().ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?.clone();
        let (waiting, start) = channel::pair().map_err(failed)?;
        // SAFETY: other threads may exist, so the child only reads, becomes another program or says why not; what memory
        // that takes the C library makes available after a fork (it locks its allocator over it).
        match unsafe { fork() }.map_err(|errno| failed(errno.into()))? {
            ForkResult::Parent { child } => Ok(Command { pid: child, start: Some(start), ended: false }),
            ForkResult::Child => {
                drop(start);
                become_command(&waiting, &program, &words)
            }
        }
    }

    /// Number of its process.
    pub fn number(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Lets the command begin.
    pub fn begin(&mut self) {
        if let Some(start) = self.start.take() {
            // If it is gone already, its status says so.
            let _ = write(start, b"!");
        }
    }

    /// How it ended, once, if it has.
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

/// In the child: waits for a byte, then becomes the command; without one it ends.
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
        // SAFETY: sets a default. Rust programs ignore it.
        let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
        let Err(errno) = execvp(program, words);
        crate::host::stderr::say(&format!("ERROR: {} cannot be run: {}", program.to_string_lossy(), errno.desc()));
    }
    // SAFETY: ends this process without running what the parent has registered for its own end.
    unsafe { libc::_exit(NOT_FOUND) }
}

impl Drop for Command {
    fn drop(&mut self) {
        // A command that never began sees its end close, and ends.
        if self.start.take().is_some() {
            let _ = waitpid(self.pid, None);
        }
    }
}

/// The words of a plain command, so that its process is the program itself. A command with any character that a shell
/// interprets, quotes among them, is left to one: the crate shell-words would have nothing to do here.
fn words(command: &str) -> Vec<String> {
    let is_special = |byte: char| "|&;<>()$`\\\"'*?[]#~=%!{}\n".contains(byte);
    let words: Vec<String> = command.split_whitespace().map(String::from).collect();
    let is_program = words.first().is_none_or(|word| is_program(word));
    match command.contains(is_special) || !is_program {
        true => vec!["sh".into(), "-c".into(), command.into()],
        false => words,
    }
}

/// Whether there is a file for it: builtins of shells (`exit`) have none.
fn is_program(word: &str) -> bool {
    word.contains('/') || search::is_in_path(word)
}

/// pidfd_open(2), Linux 5.3.
fn open_process(pid: i32) -> Result<OwnedFd, Error> {
    // SAFETY: takes two numbers and gives a new descriptor.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match Errno::result(descriptor) {
        // SAFETY: new, and nobody else's. It is close-on-exec.
        Ok(descriptor) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) }),
        Err(_) => Err(Error::NoProcess { pid }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn wait(target: &mut Target) -> Status {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match target.reap() {
                Some(status) => return status,
                None if Instant::now() > deadline => panic!("it does not end"),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn command(text: &str) -> Target {
        Target::Command(Command::prepare(text).unwrap())
    }

    #[test]
    fn statuses_are_numbers() {
        for status in [Status::Exited(0), Status::Exited(255), Status::Killed(Signal::SIGKILL)] {
            assert_eq!(Status::from_number(status.number()), status);
        }
    }

    #[test]
    fn plain_commands_are_no_shell() {
        assert_eq!(words("cat  /etc/hostname"), ["cat", "/etc/hostname"]);
        assert_eq!(words("a | b"), ["sh", "-c", "a | b"]);
        assert_eq!(words("X=1 a"), ["sh", "-c", "X=1 a"]);
        assert_eq!(words("exit 3"), ["sh", "-c", "exit 3"]);
    }

    #[test]
    fn a_command_waits_for_its_beginning_and_reports_its_status() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("began");
        let mut target = command(&format!("touch {}; exit 3", file.display()));
        assert!(target.pid() > 1);
        std::thread::sleep(Duration::from_millis(50));
        assert!(!file.exists());
        assert_eq!(target.reap(), None);
        target.begin();
        assert_eq!(wait(&mut target), Status::Exited(3));
        assert!(file.exists());
        assert_eq!(target.reap(), None, "reported once");
    }

    #[test]
    fn a_killed_command_and_one_that_is_not_there() {
        let mut target = command("kill -9 $$");
        target.begin();
        assert_eq!(wait(&mut target), Status::Killed(Signal::SIGKILL));
        let mut target = command("/no/such/program");
        target.begin();
        assert_eq!(wait(&mut target), Status::Exited(NOT_FOUND));
        assert!(Command::prepare(" ").is_err());
    }

    #[test]
    fn a_command_that_never_began_is_gone_with_its_target() {
        let target = command("touch /no/such/place");
        let pid = target.pid();
        drop(target);
        assert!(open_process(pid).is_err());
    }

    #[test]
    fn other_processes_are_watched() {
        assert!(matches!(open_process(i32::MAX), Err(Error::NoProcess { .. })));
        let own = std::process::id() as i32;
        let target = Target::Process { pid: own, ended: open_process(own).unwrap() };
        assert_eq!(target.pid(), own);
        assert!(target.ended().is_some());
    }
}
