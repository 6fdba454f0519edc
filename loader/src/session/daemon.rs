// SPDX-License-Identifier: GPL-2.0-or-later

//! `-D`: runs the session in a new process; the original process prints its pid once the probes are armed, or exits
//! with its error.

use std::io::Write;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, dup2_stderr, dup2_stdin, dup2_stdout, fork, read, setsid, write};

use crate::error::{Error, Exit};
use crate::host::channel;

/// In the process that runs the session: the connection to the process that waits for the probes to be armed.
#[derive(Debug)]
pub struct Waiting(OwnedFd);

/// Which of the two processes this is.
pub enum Fork {
    /// The original process, which is done.
    Parent(Exit),
    /// The process that runs the session.
    Child(Waiting),
}

/// Forks. There must be no other thread.
pub fn begin() -> Result<Fork, Error> {
    let failed = |error: std::io::Error| Error::System { doing: "going to the background", error };
    let (reader, writer) = channel::pair().map_err(failed)?;
    // SAFETY: there is only one thread.
    match unsafe { fork() }.map_err(|errno| failed(errno.into()))? {
        ForkResult::Child => {
            drop(reader);
            // Cannot fail: a new process is not a group leader.
            let _ = setsid();
            Ok(Fork::Child(Waiting(writer)))
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut byte = [0u8; 1];
            let armed = loop {
                match read(&reader, &mut byte) {
                    Err(Errno::EINTR) => {}
                    other => break other == Ok(1),
                }
            };
            if armed {
                // The session runs, whether its number can be written or not.
                let _ = writeln!(std::io::stdout(), "{child}");
                return Ok(Fork::Parent(Exit::Success));
            }
            Ok(Fork::Parent(match waitpid(child, None) {
                Ok(WaitStatus::Exited(_, status)) => Exit::from_status(status).unwrap_or(Exit::Kernel),
                _ => Exit::Kernel,
            }))
        }
    }
}

impl Waiting {
    /// The probes are armed: ends the waiting process, and detaches from the terminal.
    pub fn armed(self) {
        // If the other process has exited, this is not needed.
        let _ = write(&self.0, b"!");
        if let Ok(null) = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()) {
            let _ = dup2_stdin(&null);
            let _ = dup2_stdout(&null);
            let _ = dup2_stderr(&null);
        }
    }
}
