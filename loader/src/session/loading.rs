// SPDX-License-Identifier: GPL-2.0-or-later

//! While the kernel loads the module, which takes it up to a second with tens of thousands of probes: a signal cannot end
//! that call, but is answered by a line.

use std::os::fd::{AsFd, BorrowedFd};
use std::thread::Builder;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::host::stderr::say;
use crate::session::calls::{SignalOnDrop, event};
use crate::session::ending::ANSWER;
use crate::session::events::NS_PER_MS;
use crate::session::signals::{BlockedSignals, Signals};

/// The result of `load`, during which another thread waits for signals.
pub fn answering<T>(signals: &Signals, load: impl FnOnce() -> T) -> T {
    let Ok(over) = event() else { return load() };
    std::thread::scope(|scope| {
        let over_fd = over.as_fd();
        // Without a thread, because of a limit of the caller, nothing is answered.
        let _ = Builder::new().spawn_scoped(scope, move || answer(signals, over_fd));
        let _over = SignalOnDrop(&over);
        // This thread does not see them before the call returns.
        let _blocked = BlockedSignals::new();
        load()
    })
}

/// Until `over` is readable.
fn answer(signals: &Signals, over: BorrowedFd<'_>) {
    let ended = || PollFd::new(over, PollFlags::POLLIN);
    let mut either = [PollFd::new(signals.as_fd(), PollFlags::POLLIN), ended()];
    while poll(&mut either, PollTimeout::NONE) == Err(Errno::EINTR) {}
    // Another signal stays readable: the session sees it.
    if !signals.is_stopping() {
        return;
    }
    let timeout = PollTimeout::try_from(ANSWER / NS_PER_MS).unwrap_or(PollTimeout::ZERO);
    if matches!(poll(&mut [ended()], timeout), Ok(0)) {
        say("NOTICE: interrupted: waiting until the module is loaded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_returned_without_a_signal() {
        assert_eq!(answering(&Signals::catch().unwrap(), || 1), 1);
    }
}
