// SPDX-License-Identifier: GPL-2.0-or-later

//! `-D`: the session runs in a process of its own; the process that was started prints its number when the probes are armed, or
//! ends with its error.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, dup2_stderr, dup2_stdin, dup2_stdout, fork, read, setsid, write};

use crate::error::{Error, Exit};
use crate::host::channel;

/// In the process that runs the session: the way to the process that waits for the probes to be armed.
#[derive(Debug)]
pub struct Waiting(OwnedFd);

/// Which of the two processes this is.
pub enum Fork {
    /// This process is done.
    Parent(Exit),
    /// This process runs the session.
    Child(Waiting),
}

/// Splits the process. No other thread may exist.
pub fn begin() -> Result<Fork, Error> {
    let failed = |error: std::io::Error| Error::System { doing: "going to the background", error };
    let (reader, writer) = channel::pair().map_err(failed)?;
    // SAFETY: there is one thread.
    match unsafe { fork() }.map_err(|errno| failed(errno.into()))? {
        ForkResult::Child => {
            drop(reader);
            // It cannot fail: a new process leads no group.
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
                println!("{child}");
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
    /// The probes are armed: ends the process that waits, and leaves the terminal.
    pub fn armed(self) {
        // If the other process is gone, nothing waits for this.
        let _ = write(&self.0, b"!");
        if let Ok(null) = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()) {
            let _ = dup2_stdin(&null);
            let _ = dup2_stdout(&null);
            let _ = dup2_stderr(&null);
        }
    }
}
