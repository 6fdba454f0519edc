// SPDX-License-Identifier: GPL-2.0-or-later

//! A process that starts the script's commands (`-c`, `system()`) for the user part of a set-uid spilerun.
//!
//! It runs with the caller's rights only, and is forked before the user part restricts itself (no new privileges,
//! Landlock), so that commands are not restricted. It has nothing open except the streams that the caller passed to
//! spilerun, and exits with the user part. Requests and answers are a kind and a length, four bytes each, followed by
//! the data.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use nix::unistd::{ForkResult, dup2_stderr, dup2_stdin, dup2_stdout, fork};

use crate::error::Error;
use crate::host::channel;
use crate::safety::detached;
use crate::session::background::Running;
use crate::session::command::{Command, Status};
use crate::session::signals::{self, Signals};

/// The process name of the starter.
const NAME: &std::ffi::CStr = c"spile-start";

/// Prepares the command of `-c`; the answer is its pid, or the error.
const PREPARE: u32 = 1;
/// Starts it.
const BEGIN: u32 = 2;
/// Runs a command of `system()`; the answer has the error if it does not run.
const RUN: u32 = 3;
/// Waits a moment for the commands of `system()` to exit, then answers.
const FINISH: u32 = 4;
/// Replaces the caller's streams by /dev/null.
const LEAVE: u32 = 5;
/// Answers: success; failure, with the reason.
const DONE: u32 = 0;
const FAILED: u32 = 1;
/// Maximum length of a command in bytes.
const MOST: usize = 1 << 20;

/// The connection to that process.
#[derive(Debug)]
pub struct Starter {
    line: UnixStream,
    /// Receives the status of the command of `-c` when it has exited.
    ended: OwnedFd,
}

impl Starter {
    /// Forks; there must be no other thread. The process has only the caller's rights already.
    pub fn begin() -> Result<Starter, Error> {
        let failed =
            |error: io::Error| Error::System { doing: "splitting off the process that starts commands", error };
        let (line, other) = UnixStream::pair().map_err(failed)?;
        let (ended, ending) = channel::pair().map_err(failed)?;
        // SAFETY: there is only one thread.
        match unsafe { fork() }.map_err(|errno| failed(errno.into()))? {
            ForkResult::Parent { .. } => Ok(Starter { line, ended }),
            ForkResult::Child => {
                drop((line, ended));
                let _ = nix::sys::prctl::set_name(NAME);
                signals::forget_event();
                detached::close_all_but_these(&[other.as_raw_fd(), ending.as_raw_fd()]);
                // Errors end it, and the other side notices.
                let _ = serve(other, &ending);
                // SAFETY: exits without running the parent's exit handlers.
                unsafe { nix::libc::_exit(0) }
            }
        }
    }

    fn ask(&self, kind: u32, text: &[u8]) -> Result<Vec<u8>, String> {
        let lost = |error: io::Error| format!("the process that starts commands is gone: {error}");
        send(&self.line, kind, text).map_err(lost)?;
        match receive(&self.line).map_err(lost)? {
            (DONE, bytes) => Ok(bytes),
            (_, bytes) => Err(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Forks the command of `-c`, which waits for [`begin`](Starter::begin_command); returns its pid.
    pub fn prepare(&self, command: &str) -> Result<i32, Error> {
        let failed = |why: String| Error::Command { command: command.to_string(), error: io::Error::other(why) };
        let bytes = self.ask(PREPARE, command.as_bytes()).map_err(failed)?;
        let number = <[u8; 4]>::try_from(bytes.as_slice()).map_err(|_| failed("no number".to_string()))?;
        Ok(i32::from_ne_bytes(number))
    }

    /// Starts the command of `-c`.
    pub fn begin_command(&self) {
        // If the process has exited, so has the command, and `ended` reports it.
        let _ = self.ask(BEGIN, b"");
    }

    /// Runs a command in the background; the error is the message why it does not run.
    pub fn run(&self, command: &[u8]) -> Result<(), String> {
        self.ask(RUN, command).map(drop)
    }

    /// Gives those that still run a moment to exit.
    pub fn finish(&self) {
        // If the process has exited, there is nothing to wait for.
        let _ = self.ask(FINISH, b"");
    }

    /// Detaches commands from the caller's streams.
    pub fn leave_streams(&self) {
        let _ = self.ask(LEAVE, b"");
    }

    /// Readable when the command of `-c` has exited.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Its status. To be called when that is readable.
    pub fn status(&self) -> Status {
        let mut bytes = [0u8; 4];
        match nix::unistd::read(&self.ended, &mut bytes) {
            Ok(4) => Status::from_number(i32::from_ne_bytes(bytes)),
            // The status is lost.
            _ => Status::Exited(0),
        }
    }
}

fn send(mut line: &UnixStream, kind: u32, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    line.write_all(&[&kind.to_ne_bytes(), &length.to_ne_bytes(), bytes].concat())
}

fn receive(mut line: &UnixStream) -> io::Result<(u32, Vec<u8>)> {
    let [mut kind, mut length] = [[0u8; 4]; 2];
    line.read_exact(&mut kind)?;
    line.read_exact(&mut length)?;
    let length = u32::from_ne_bytes(length) as usize;
    if length > MOST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    line.read_exact(&mut bytes)?;
    Ok((u32::from_ne_bytes(kind), bytes))
}

/// Why a command does not start; the user part says which it is.
fn why_not(error: Error) -> String {
    match error {
        Error::Command { error, .. } => error.to_string(),
        other => other.to_string(),
    }
}

/// Serves until the other side is closed.
fn serve(line: UnixStream, ending: &OwnedFd) -> io::Result<()> {
    let signals = Signals::catch().map_err(io::Error::other)?;
    let mut command: Option<Command> = None;
    let mut running = Running::default();
    loop {
        let mut descriptors =
            [PollFd::new(line.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut descriptors, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let [asked, signalled] = descriptors.map(|descriptor| descriptor.any().unwrap_or(false));
        // Signals that end a session are for the user part, and for commands.
        if signalled && signals.read().child {
            running.reap();
            if let Some(status) = command.as_mut().and_then(Command::reap) {
                nix::unistd::write(ending, &status.number().to_ne_bytes())?;
            }
        }
        if !asked {
            continue;
        }
        let (kind, bytes) = receive(&line)?;
        let answer = match kind {
            PREPARE => Command::prepare(&String::from_utf8_lossy(&bytes)).map_err(why_not).map(|new| {
                let number = new.number();
                command = Some(new);
                number.to_ne_bytes().to_vec()
            }),
            BEGIN => {
                command.iter_mut().for_each(Command::begin);
                Ok(Vec::new())
            }
            RUN => running.run(&bytes).map(|()| Vec::new()),
            FINISH => {
                running.finish();
                Ok(Vec::new())
            }
            LEAVE => {
                if let Ok(null) = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()) {
                    let _ = (dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null));
                }
                Ok(Vec::new())
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        match answer {
            Ok(bytes) => send(&line, DONE, &bytes)?,
            Err(why) => send(&line, FAILED, why.as_bytes())?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forked from a process with threads: nothing here may take a lock that another thread could hold.
    #[test]
    fn commands_are_started_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let starter = Starter::begin().unwrap();
        let number = starter.prepare(&format!("echo x >{}; exit 3", file("began").display())).unwrap();
        assert!(number > 1 && !file("began").exists());
        starter.run(format!("echo y >{}", file("ran").display()).as_bytes()).unwrap();
        starter.finish();
        // On a busy machine it may take longer than finish() waits.
        let has_run = || std::fs::read_to_string(file("ran")).is_ok_and(|text| text == "y\n");
        for _ in (0..300).take_while(|_| !has_run()) {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        assert!(has_run());
        assert!(!file("began").exists());
        starter.begin_command();
        let mut descriptors = [PollFd::new(starter.ended(), PollFlags::POLLIN)];
        // A signal for another test interrupts it.
        let found =
            (0..100).map(|_| poll(&mut descriptors, 20_000u16)).find(|found| *found != Err(nix::errno::Errno::EINTR));
        assert_eq!(found, Some(Ok(1)));
        assert_eq!(starter.status(), Status::Exited(3));
        assert_eq!(std::fs::read_to_string(file("began")).unwrap(), "x\n");
        assert!(starter.run(b"a\0b").is_err());
        let message = starter.prepare(" ").unwrap_err().to_string();
        assert_eq!(message.matches("cannot be started").count(), 1, "{message}");
    }
}
