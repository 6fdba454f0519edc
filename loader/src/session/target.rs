// SPDX-License-Identifier: GPL-2.0-or-later

//! The process of `target()`: the command of `-c`, or the process of `-x`.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::libc;

use crate::error::Error;
use crate::options::Options;
use crate::session::command::{Command, Status};
use crate::session::starter::Starter;

/// The process whose exit ends the session.
#[derive(Debug)]
pub enum Target {
    /// There is none.
    None,
    /// `-x`: readable when the process has exited.
    Process {
        /// Its pid.
        pid: i32,
        /// By pidfd_open(2).
        ended: OwnedFd,
    },
    /// `-c`
    Command(Command),
    /// `-c`, started by another process.
    Elsewhere {
        /// The command's pid.
        pid: i32,
        /// `None` once its status was read.
        starter: Option<Arc<Starter>>,
    },
}

impl Target {
    /// `starter`: the process that starts commands, if it is another one.
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

    /// For `target()`; 0 without one.
    pub fn pid(&self) -> i32 {
        match self {
            Target::None => 0,
            Target::Process { pid, .. } | Target::Elsewhere { pid, .. } => *pid,
            Target::Command(command) => command.number(),
        }
    }

    /// All probes are armed: starts the waiting command.
    pub fn begin(&mut self) {
        match self {
            Target::Command(command) => command.begin(),
            Target::Elsewhere { starter: Some(starter), .. } => starter.begin_command(),
            _ => {}
        }
    }

    /// Descriptor that becomes readable at the exit of a process that is not a child.
    pub fn ended(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Target::Process { ended, .. } => Some(ended.as_fd()),
            Target::Elsewhere { starter: Some(starter), .. } => Some(starter.ended()),
            _ => None,
        }
    }

    /// The status of a command of another process, once. To be called when [`Target::ended`] is readable.
    pub fn status(&mut self) -> Option<Status> {
        match self {
            Target::Elsewhere { starter, .. } => starter.take().map(|starter| starter.status()),
            _ => None,
        }
    }

    /// The status of the command, once, if it has exited.
    pub fn reap(&mut self) -> Option<Status> {
        match self {
            Target::Command(command) => command.reap(),
            _ => None,
        }
    }
}

/// pidfd_open(2), Linux 5.3.
fn open_process(pid: i32) -> Result<OwnedFd, Error> {
    // SAFETY: takes two numbers and returns a new descriptor.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match Errno::result(descriptor) {
        // SAFETY: a new descriptor with no other owner. It is close-on-exec.
        Ok(descriptor) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) }),
        Err(_) => Err(Error::NoProcess { pid }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_never_started_exits_with_its_target() {
        let target = Target::Command(Command::prepare("touch /no/such/place").unwrap());
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
