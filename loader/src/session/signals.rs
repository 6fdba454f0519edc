// SPDX-License-Identifier: GPL-2.0-or-later

//! Signals as something to poll for: handlers count them and write to a descriptor.
//!
//! Handlers and not signalfd(2): the compiler calls the loader in its own process, whose threads exist already and have
//! not blocked the signals.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use nix::libc;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction};

use crate::error::Error;

/// Those that end a session.
const STOPPING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// The others: a child's end, leaving the session behind, the next output file.
const OTHERS: [Signal; 3] = [Signal::SIGCHLD, Signal::SIGQUIT, Signal::SIGUSR2];

static STOPS: AtomicUsize = AtomicUsize::new(0);
/// The same, as our parent passes them on: one that was sent to the whole group comes twice and counts once.
static PASSED_ON: AtomicUsize = AtomicUsize::new(0);
/// The higher of both when it was last read.
static REPORTED: AtomicUsize = AtomicUsize::new(0);
/// The parent that passes signals on; 0: none does.
static PARENT: AtomicI32 = AtomicI32::new(0);
static DETACH: AtomicBool = AtomicBool::new(false);
static ROTATE: AtomicBool = AtomicBool::new(false);
static CHILD: AtomicBool = AtomicBool::new(false);
/// Readable when a signal was received. There is one for the process, as there is one set of handlers.
static EVENT: OnceLock<EventFd> = OnceLock::new();

/// From now on a signal that the parent passes on, and that came to the whole group, counts once.
pub fn expect_passed_on() {
    PARENT.store(nix::unistd::getppid().as_raw(), Ordering::Relaxed);
}

/// Runs in any thread at any point: only atomics and write(2).
extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    match signal {
        libc::SIGCHLD => CHILD.store(true, Ordering::Relaxed),
        libc::SIGQUIT => DETACH.store(true, Ordering::Relaxed),
        libc::SIGUSR2 => ROTATE.store(true, Ordering::Relaxed),
        _ => {
            let parent = PARENT.load(Ordering::Relaxed);
            // SAFETY: the kernel hands a valid one to handlers with SA_SIGINFO; one from a process names its sender.
            let passed_on =
                parent != 0 && !info.is_null() && unsafe { (*info).si_code <= 0 && (*info).si_pid() == parent };
            let counter = if passed_on { &PASSED_ON } else { &STOPS };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
    if let Some(event) = EVENT.get() {
        let errno = nix::errno::Errno::last_raw();
        // Nothing can be done about a failure here; the next signal writes again.
        let _ = event.write(1);
        nix::errno::Errno::set_raw(errno);
    }
}

/// Signals received since the last [`Signals::read`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Signals that end the session.
    pub stops: usize,
    /// A child has ended.
    pub child: bool,
    /// The session is to go on without us.
    pub detach: bool,
    /// The output is to go to the next file.
    pub rotate: bool,
}

/// The handlers stay to the end of the process: what it still has to tidy up is not to be interrupted either.
#[derive(Debug)]
pub struct Signals {
    event: &'static EventFd,
}

impl Signals {
    /// From now on the signals no longer end the process.
    pub fn catch() -> Result<Signals, Error> {
        let failed = |errno: nix::errno::Errno| Error::System { doing: "catching signals", error: errno.into() };
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let new = EventFd::from_value_and_flags(0, flags).map_err(failed)?;
        let event = EVENT.get_or_init(|| new);
        let action =
            SigAction::new(SigHandler::SigAction(note), SaFlags::SA_RESTART | SaFlags::SA_SIGINFO, SigSet::empty());
        for signal in STOPPING.into_iter().chain(OTHERS) {
            // SAFETY: the handler does only what a handler may do.
            let before = unsafe { sigaction(signal, &action) }.map_err(failed)?;
            // nohup(1) means that a hangup is to be ignored. (Shells have commands in the background ignore SIGINT as well,
            // but whoever sends that to a script means it.)
            if signal == Signal::SIGHUP && matches!(before.handler(), SigHandler::SigIgn) {
                // SAFETY: as it was before.
                unsafe { sigaction(signal, &before) }.map_err(failed)?;
            }
        }
        Ok(Signals { event })
    }

    /// Signals received since the last call.
    pub fn read(&self) -> Received {
        // Cleared first: a signal from here on makes it readable again.
        let _ = self.event.read();
        let take = |flag: &AtomicBool| flag.swap(false, Ordering::Relaxed);
        let stops = STOPS.load(Ordering::Relaxed).max(PASSED_ON.load(Ordering::Relaxed));
        let before = REPORTED.swap(stops, Ordering::Relaxed);
        Received {
            stops: stops.saturating_sub(before),
            child: take(&CHILD),
            detach: take(&DETACH),
            rotate: take(&ROTATE),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// Blocks the signals in its thread while it lives, so that another thread of the process handles them. A signal for the
/// process that the kernel gives to a thread inside of a call that cannot be interrupted is not seen before that returns.
#[derive(Debug)]
pub struct BlockedSignals {
    before: Option<SigSet>,
}

impl BlockedSignals {
    /// For the calling thread. Threads that it starts from now on inherit it.
    pub fn new() -> BlockedSignals {
        let ours: SigSet = STOPPING.into_iter().chain(OTHERS).collect();
        // It fails for a wrong argument alone.
        BlockedSignals { before: ours.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok() }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = before.thread_set_mask();
        }
    }
}

/// In a child between fork and exec: as a program expects them.
pub fn reset() {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in STOPPING.into_iter().chain(OTHERS) {
        // SAFETY: sets a default; what nohup(1) has set stays.
        let before = unsafe { sigaction(signal, &action) };
        if let Ok(before) = before
            && matches!(before.handler(), SigHandler::SigIgn)
        {
            // SAFETY: as it was before.
            let _ = unsafe { sigaction(signal, &before) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    fn is_readable(signals: &Signals) -> bool {
        let mut descriptors = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        poll(&mut descriptors, PollTimeout::ZERO).unwrap() > 0
    }

    #[test]
    fn a_thread_leaves_them_to_others_for_a_time() {
        let ours = || SigSet::thread_get_mask().unwrap();
        let blocked = BlockedSignals::new();
        assert!(STOPPING.into_iter().chain(OTHERS).all(|signal| ours().contains(signal)));
        drop(blocked);
        assert!(!STOPPING.into_iter().chain(OTHERS).any(|signal| ours().contains(signal)));
    }

    #[test]
    fn signals_are_counted_and_do_not_kill_whichever_thread_gets_them() {
        let other = std::thread::spawn(std::thread::park);
        let signals = Signals::catch().unwrap();
        signals.read();
        nix::sys::signal::raise(Signal::SIGTERM).unwrap();
        nix::sys::signal::kill(nix::unistd::getpid(), Signal::SIGINT).unwrap();
        let until = |stops: usize| {
            while STOPS.load(Ordering::Relaxed) + PASSED_ON.load(Ordering::Relaxed) < stops {
                std::thread::yield_now();
            }
        };
        until(2);
        assert!(is_readable(&signals));
        assert_eq!(signals.read().stops, 2);
        assert_eq!(signals.read().stops, 0);
        // Sent to a group whose leader passes it on: one and the same, until another one comes.
        nix::sys::signal::kill(nix::unistd::getpid(), Signal::SIGINT).unwrap();
        until(3);
        assert_eq!(signals.read().stops, 1);
        PARENT.store(nix::unistd::getpid().as_raw(), Ordering::Relaxed);
        for stops in 4..7 {
            nix::sys::signal::kill(nix::unistd::getpid(), Signal::SIGINT).unwrap();
            until(stops);
        }
        assert_eq!(signals.read().stops, 0);
        nix::sys::signal::kill(nix::unistd::getpid(), Signal::SIGINT).unwrap();
        until(7);
        assert_eq!(signals.read().stops, 1);
        PARENT.store(0, Ordering::Relaxed);
        other.thread().unpark();
        other.join().unwrap();
    }
}
