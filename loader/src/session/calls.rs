// SPDX-License-Identifier: GPL-2.0-or-later

//! Long-running calls to the module: requested by the session, made by the process's first thread.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc;

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::error::Error;
use crate::module::device::Device;

/// A call to the module, such as [`Device::start`].
pub type Call = fn(&Device) -> Result<(), Error>;

/// Writes to an event descriptor when it is dropped.
pub struct SignalOnDrop<'e>(pub &'e EventFd);

impl Drop for SignalOnDrop<'_> {
    fn drop(&mut self) {
        // Cannot fail: the counter is far from its limit.
        let _ = self.0.write(1);
    }
}

/// An eventfd that is not yet readable.
pub fn event() -> Result<EventFd, Error> {
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    EventFd::from_value_and_flags(0, flags)
        .map_err(|errno| Error::System { doing: "making an event descriptor", error: errno.into() })
}

/// The session's side: requests one call at a time.
pub struct Calls<'e> {
    requests: mpsc::Sender<Call>,
    results: mpsc::Receiver<Result<(), Error>>,
    /// Readable when a call has returned.
    returned: &'e EventFd,
    has_returned: bool,
}

/// The side of the thread that makes the calls.
pub struct Caller<'e> {
    requests: mpsc::Receiver<Call>,
    results: mpsc::Sender<Result<(), Error>>,
    returned: &'e EventFd,
}

/// Both sides. `returned` is an [`event`] that wakes the session when a call has returned.
pub fn pair(returned: &EventFd) -> (Calls<'_>, Caller<'_>) {
    let (ask, requests) = mpsc::channel();
    let (answer, results) = mpsc::channel();
    let calls = Calls { requests: ask, results, returned, has_returned: false };
    (calls, Caller { requests, results: answer, returned })
}

impl Calls<'_> {
    /// Requests a call. The previous one must have returned.
    pub fn make(&self, call: Call) {
        // The receiver exists as long as this sender.
        let _ = self.requests.send(call);
    }

    /// Checks for a returned call. To be called after each poll(2) of [`Calls::as_fd`].
    pub fn look(&mut self) {
        self.has_returned |= self.returned.read().is_ok();
    }

    /// The result of the returned call, once.
    pub fn take_result(&mut self) -> Option<Result<(), Error>> {
        // A call that panicked has no result.
        std::mem::take(&mut self.has_returned).then(|| self.results.try_recv().unwrap_or(Ok(())))
    }
}

impl AsFd for Calls<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.returned.as_fd()
    }
}

impl Caller<'_> {
    /// Makes the calls that the session requests, until the session has ended.
    pub fn serve(self, device: &Device) {
        for call in self.requests {
            let _returned = SignalOnDrop(self.returned);
            // The session waits for it.
            let _ = self.results.send(call(device));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_there_once() {
        let returned = event().unwrap();
        let (mut calls, caller) = pair(&returned);
        calls.look();
        assert!(calls.take_result().is_none());
        caller.results.send(Err(Error::Locked)).unwrap();
        drop(SignalOnDrop(&returned));
        calls.look();
        assert!(matches!(calls.take_result(), Some(Err(Error::Locked))));
        calls.look();
        assert!(calls.take_result().is_none());
    }
}
