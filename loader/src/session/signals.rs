// SPDX-License-Identifier: GPL-2.0-or-later

//! Signals as a pollable event: handlers count them and write to a descriptor.
//!
//! Uses handlers instead of signalfd(2): the compiler runs the loader in its own process, whose existing threads have
//! not blocked the signals.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use nix::libc;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction};

use crate::error::Error;

/// Signals that end a session.
const STOPPING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// The others: SIGCHLD, detach, next output file.
const OTHERS: [Signal; 3] = [Signal::SIGCHLD, Signal::SIGQUIT, Signal::SIGUSR2];

static STOPS: AtomicUsize = AtomicUsize::new(0);
/// The same signals forwarded by our parent: one sent to the whole group arrives twice and counts once.
static PASSED_ON: AtomicUsize = AtomicUsize::new(0);
/// The higher of both counts at the last read.
static REPORTED: AtomicUsize = AtomicUsize::new(0);
/// The parent that forwards signals; 0: none.
static PARENT: AtomicI32 = AtomicI32::new(0);
static DETACH: AtomicBool = AtomicBool::new(false);
static ROTATE: AtomicBool = AtomicBool::new(false);
static CHILD: AtomicBool = AtomicBool::new(false);
/// The number of an eventfd(2) that is readable when a signal was received, or [`NONE`]. One for the process, as there is only
/// one set of handlers; it stays open.
static EVENT: AtomicI32 = AtomicI32::new(NONE);
const NONE: i32 = -1;

/// From now on a signal that the parent forwards and that also reached the whole group counts once.
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
            // SAFETY: the kernel passes a valid pointer, or null, to handlers with SA_SIGINFO.
            let info = unsafe { info.as_ref() };
            // SAFETY: signals sent by a process (si_code <= 0) have a sender.
            let from_parent = |info: &libc::siginfo_t| info.si_code <= 0 && unsafe { info.si_pid() } == parent;
            let passed_on = parent != 0 && info.is_some_and(from_parent);
            let counter = if passed_on { &PASSED_ON } else { &STOPS };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
    let event = EVENT.load(Ordering::Relaxed);
    if event != NONE {
        let errno = nix::errno::Errno::last_raw();
        // SAFETY: the descriptor stays open. A failure cannot be handled here; the next signal writes again.
        let _ = nix::unistd::write(unsafe { BorrowedFd::borrow_raw(event) }, &1u64.to_ne_bytes());
        nix::errno::Errno::set_raw(errno);
    }
}

/// In a forked process that closes descriptors: its handlers write to none until it calls [`Signals::catch`]. The number of the
/// one that they had may be that of something else then.
pub fn forget_event() {
    EVENT.store(NONE, Ordering::Relaxed);
}

/// Signals received since the last [`Signals::read`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Signals that end the session.
    pub stops: usize,
    /// A child has ended.
    pub child: bool,
    /// Detach from the session.
    pub detach: bool,
    /// Switch to the next output file.
    pub rotate: bool,
}

/// Until [`Signals::catch`] SIGINT ends the process. Shells without job control make their background commands ignore it, and one that
/// comes before the handlers would be lost: the session would run on.
pub fn heed_interrupts() {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default, and what was there before if it was another handler.
    if let Ok(before) = unsafe { sigaction(Signal::SIGINT, &action) }
        && !matches!(before.handler(), SigHandler::SigIgn)
    {
        // SAFETY: restores the previous disposition.
        let _ = unsafe { sigaction(Signal::SIGINT, &before) };
    }
}

/// SIGCHLD has its default from now on: where it is ignored, which a program inherits, nobody can wait for a child.
pub fn heed_children() {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default; programs call this before they have handlers.
    let _ = unsafe { sigaction(Signal::SIGCHLD, &action) };
}

/// See [`Signals::is_stopping`].
pub fn is_stopping() -> bool {
    STOPS.load(Ordering::Relaxed).max(PASSED_ON.load(Ordering::Relaxed)) > REPORTED.load(Ordering::Relaxed)
}

/// The handlers stay until the process exits: its cleanup must not be interrupted either.
#[derive(Debug)]
pub struct Signals {
    event: BorrowedFd<'static>,
}

impl Signals {
    /// From now on the signals no longer kill the process, and this thread gets them, even if the caller has blocked them:
    /// they end the session, and tell that its command has ended.
    pub fn catch() -> Result<Signals, Error> {
        let failed = |errno: nix::errno::Errno| Error::System { doing: "catching signals", error: errno.into() };
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let new = EventFd::from_value_and_flags(0, flags).map_err(failed)?;
        let number = match EVENT.compare_exchange(NONE, new.as_raw_fd(), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => OwnedFd::from(new).into_raw_fd(),
            Err(before) => before,
        };
        // SAFETY: it stays open.
        let event = unsafe { BorrowedFd::borrow_raw(number) };
        let action =
            SigAction::new(SigHandler::SigAction(note), SaFlags::SA_RESTART | SaFlags::SA_SIGINFO, SigSet::empty());
        for signal in STOPPING.into_iter().chain(OTHERS) {
            // SAFETY: the handler is async-signal-safe.
            let before = unsafe { sigaction(signal, &action) }.map_err(failed)?;
            // nohup(1) means that SIGHUP is to be ignored. SIGINT is another matter: see heed_interrupts().
            if signal == Signal::SIGHUP && matches!(before.handler(), SigHandler::SigIgn) {
                // SAFETY: restores the previous disposition.
                unsafe { sigaction(signal, &before) }.map_err(failed)?;
            }
        }
        let ours: SigSet = STOPPING.into_iter().chain(OTHERS).collect();
        ours.thread_unblock().map_err(failed)?;
        Ok(Signals { event })
    }

    /// Whether a signal that ends the session has come since the last [`Signals::read`].
    pub fn is_stopping(&self) -> bool {
        is_stopping()
    }

    /// Signals received since the last call.
    pub fn read(&self) -> Received {
        // Cleared first: a later signal makes it readable again.
        let _ = nix::unistd::read(self.event, &mut [0; 8]);
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
        self.event
    }
}

/// Blocks the signals in its thread while it lives, so that another thread of the process handles them. A
/// process-directed signal that the kernel delivers to a thread in an uninterruptible call is not seen before that
/// returns.
#[derive(Debug)]
pub struct BlockedSignals {
    before: Option<SigSet>,
}

impl BlockedSignals {
    /// For the calling thread and threads that it starts later.
    pub fn new() -> BlockedSignals {
        let ours: SigSet = STOPPING.into_iter().chain(OTHERS).collect();
        // Fails only for an invalid argument.
        BlockedSignals { before: ours.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok() }
    }
}

impl Default for BlockedSignals {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = before.thread_set_mask();
        }
    }
}

/// In a child between fork and exec: restores the defaults that a program expects.
pub fn reset() {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in STOPPING.into_iter().chain(OTHERS) {
        // SAFETY: restores the default; what nohup(1) has set stays.
        let before = unsafe { sigaction(signal, &action) };
        if let Ok(before) = before
            && matches!(before.handler(), SigHandler::SigIgn)
        {
            // SAFETY: restores the previous mask.
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
    fn a_thread_can_block_signals_for_a_time() {
        let ours = || SigSet::thread_get_mask().unwrap();
        let blocked = BlockedSignals::new();
        assert!(STOPPING.into_iter().chain(OTHERS).all(|signal| ours().contains(signal)));
        drop(blocked);
        assert!(!STOPPING.into_iter().chain(OTHERS).any(|signal| ours().contains(signal)));
    }

    #[test]
    fn signals_that_the_caller_has_blocked_are_caught() {
        let ours: SigSet = STOPPING.into_iter().chain(OTHERS).collect();
        ours.thread_block().unwrap();
        Signals::catch().unwrap();
        let mask = SigSet::thread_get_mask().unwrap();
        assert!(!STOPPING.into_iter().chain(OTHERS).any(|signal| mask.contains(signal)));
    }

    #[test]
    fn children_are_waited_for_even_if_the_caller_ignores_them() {
        use std::os::unix::process::CommandExt;
        use std::process::Command;
        const AGAIN: &str = "SPILE_TEST_IGNORED_CHILDREN";
        if std::env::var_os(AGAIN).is_some() {
            heed_children();
            assert!(Command::new("true").status().unwrap().success());
            return;
        }
        let name = "session::signals::tests::children_are_waited_for_even_if_the_caller_ignores_them";
        let mut this = Command::new(std::env::current_exe().unwrap());
        this.args([name, "--exact"]).env(AGAIN, "1");
        let ignore = || {
            let action = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
            // SAFETY: no handler.
            unsafe { sigaction(Signal::SIGCHLD, &action) }.map(drop).map_err(std::io::Error::from)
        };
        // SAFETY: calls sigaction() alone.
        let this = unsafe { this.pre_exec(ignore) };
        assert!(this.output().unwrap().status.success());
    }

    #[test]
    fn signals_are_counted_in_any_thread_and_do_not_kill() {
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
        // Sent to a group whose leader forwards it: counts as one until another one arrives.
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
