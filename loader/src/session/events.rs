// SPDX-License-Identifier: GPL-2.0-or-later

//! The one place where a session waits: poll(2) of all descriptors that can wake it.

use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::Error;
use crate::output::Sinks;
use crate::session::calls::Calls;
use crate::session::signals::Signals;

/// Nanoseconds of a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;

/// Descriptors that a session always waits for.
pub struct Events<'s> {
    /// Signals of this process.
    pub signals: &'s Signals,
    /// Reports POLLHUP when the privileged process has exited; `None` if there is none, or it has.
    pub root: Option<BorrowedFd<'s>>,
}

/// Descriptors that a session waits for at some times only.
pub struct Sources<'d> {
    /// Output and messages with something to write.
    pub sinks: &'d Sinks,
    /// The session's command or process, if its end is of interest.
    pub target: Option<BorrowedFd<'d>>,
    /// The module's device, and its events.
    pub device: Option<(BorrowedFd<'d>, PollFlags)>,
}

/// What has woken the session.
pub struct Ready {
    /// The events of [`Sinks::descriptors`], in their order.
    pub sinks: Vec<PollFlags>,
    /// The command or process has ended.
    pub target_ended: bool,
    /// The privileged process has exited. Reported once.
    pub root_ended: bool,
    /// The module wants the session to be stopped.
    pub is_stopping: bool,
}

impl Events<'_> {
    /// Waits for an event, or for this many nanoseconds; `None`: without limit.
    pub fn wait(&mut self, calls: &Calls<'_>, sources: &Sources<'_>, timeout: Option<u64>) -> Result<Ready, Error> {
        let mut descriptors =
            vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN), PollFd::new(calls.as_fd(), PollFlags::POLLIN)];
        let sinks_at = descriptors.len();
        descriptors.extend(sources.sinks.descriptors().map(|(descriptor, events)| PollFd::new(descriptor, events)));
        let target_at = descriptors.len();
        descriptors.extend(sources.target.map(|target| PollFd::new(target, PollFlags::POLLIN)));
        let root_at = descriptors.len();
        // It reports only POLLHUP, at exit.
        descriptors.extend(self.root.map(|root| PollFd::new(root, PollFlags::empty())));
        let device_at = descriptors.len();
        // A stopped session always reports POLLHUP, requested or not.
        let device = sources.device.filter(|(_, events)| !events.is_empty());
        descriptors.extend(device.map(|(device, events)| PollFd::new(device, events)));
        match poll(&mut descriptors, poll_timeout(timeout)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(Error::System { doing: "waiting", error: errno.into() }),
        }
        let found: Vec<PollFlags> =
            descriptors.iter().map(|descriptor| descriptor.revents().unwrap_or(PollFlags::empty())).collect();
        drop(descriptors);
        let found_in = |range: std::ops::Range<usize>| found.get(range).unwrap_or_default();
        let any_in = |range| found_in(range).iter().any(|events| !events.is_empty());
        let ready = Ready {
            sinks: found_in(sinks_at..target_at).to_vec(),
            target_ended: any_in(target_at..root_at),
            root_ended: any_in(root_at..device_at),
            is_stopping: found_in(device_at..found.len()).iter().any(|events| events.contains(PollFlags::POLLPRI)),
        };
        if ready.root_ended {
            self.root = None;
        }
        Ok(ready)
    }
}

/// From nanoseconds; a part of a millisecond counts as a whole one, so that the deadline has passed afterwards.
fn poll_timeout(timeout: Option<u64>) -> PollTimeout {
    timeout.map_or(PollTimeout::NONE, |ns| {
        PollTimeout::try_from(ns.div_ceil(NS_PER_MS).min(i32::MAX as u64)).unwrap_or(PollTimeout::MAX)
    })
}
