// SPDX-License-Identifier: GPL-2.0-or-later

//! RLIMIT_FSIZE: what exceeds it shall be an error of write(2), with a message and everything undone, instead of a signal.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

extern "C" fn nothing(_signal: i32) {}

/// Makes it so. Programs that are started have the usual action, as a handler does not outlive exec.
pub fn be_error() {
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing. If it cannot be set the signal kills, as before.
    let _ = unsafe { sigaction(Signal::SIGXFSZ, &action) };
}
