// SPDX-License-Identifier: GPL-2.0-or-later

//! Files that are read through a mapping, and that somebody shortens meanwhile: a linker that writes in place, an owner who wants
//! to disturb, a disk that fails. The kernel then sends SIGBUS, whose usual action ends the process without a word.

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, Signal, sigaction};
use spile_base::unfinished;

const MESSAGE: &[u8] =
    b"error: a file became shorter, or could not be read any more, while it was being read; try again\n";

extern "C" fn end(_signal: i32) {
    // SAFETY: it may be called in a handler of signals (signal-safety(7)), and the text is a constant.
    unsafe { libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
    unfinished::end_with_failure();
}

/// Makes that a message and the status 1; what is not finished is removed. Programs that are started have the usual action.
pub fn may_shrink() {
    let action = SigAction::new(SigHandler::Handler(end), SaFlags::SA_ONSTACK, unfinished::signals());
    // SAFETY: the handler only calls what may be called there. If it cannot be set the signal kills, as before.
    let _ = unsafe { sigaction(Signal::SIGBUS, &action) };
}
