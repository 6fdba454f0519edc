//! Signals as something to poll for: they are blocked and read from a descriptor.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigHandler, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::Error;

/// Those that end a session.
const STOPPING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
}

/// What has come since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// Signals that end the session.
    pub stops: usize,
    /// A child has ended.
    pub child: bool,
}

impl Signals {
    /// From now on they no longer end the process. Threads started later block them too; programs started by the
    /// standard library do not.
    pub fn block() -> Result<Signals, Error> {
        let failed = |errno: nix::errno::Errno| Error::System { doing: "catching signals", error: errno.into() };
        let mut set: SigSet = STOPPING.into_iter().filter(|signal| *signal != Signal::SIGHUP || !ignores_hangup()).collect();
        set.add(Signal::SIGCHLD);
        set.thread_block().map_err(failed)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Signals { descriptor: SignalFd::with_flags(&set, flags).map_err(failed)? })
    }

    pub fn read(&self) -> Came {
        let mut came = Came::default();
        while let Ok(Some(signal)) = self.descriptor.read_signal() {
            match signal.ssi_signo == Signal::SIGCHLD as u32 {
                true => came.child = true,
                false => came.stops += 1,
            }
        }
        came
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// nohup(1) says that a hangup is to be ignored. (Shells have commands in the background ignore SIGINT as well, but whoever
/// sends that to a script means it.)
fn ignores_hangup() -> bool {
    // SAFETY: it is set to its default for a moment and back; a hangup in between ends the process, as it would have.
    let before = unsafe { nix::sys::signal::signal(Signal::SIGHUP, SigHandler::SigDfl) };
    let ignored = matches!(before, Ok(SigHandler::SigIgn));
    if ignored {
        // SAFETY: as it was before.
        let _ = unsafe { nix::sys::signal::signal(Signal::SIGHUP, SigHandler::SigIgn) };
    }
    ignored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_counted_and_do_not_kill() {
        let signals = Signals::block().unwrap();
        // To this thread: another one may not have blocked them.
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD] {
            nix::sys::signal::raise(signal).unwrap();
        }
        assert_eq!(signals.read(), Came { stops: 2, child: true });
        assert_eq!(signals.read(), Came::default());
    }
}
