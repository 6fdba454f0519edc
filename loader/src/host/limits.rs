// SPDX-License-Identifier: GPL-2.0-or-later

//! Limits that the caller has set for this process (setrlimit(2)): exceeding one is an error with a message, not a
//! signal.

use std::ffi::c_int;
use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Bytes of the stack of the main thread. Other threads have stacks of a fixed size.
const STACK: u64 = 512 << 10;

/// To be called before anything that needs more than a little stack. The limit of the stack is raised as far as the caller may raise
/// it; an error: not far enough.
pub fn keep_to_them() -> io::Result<()> {
    let action = SigAction::new(SigHandler::Handler(go_on), SaFlags::SA_RESTART, SigSet::empty());
    // The write fails with EFBIG. A handler, unlike an ignored signal, is not inherited by the commands that are run.
    // SAFETY: the handler does nothing.
    let _ = unsafe { sigaction(Signal::SIGXFSZ, &action) };
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_STACK) else { return Ok(()) };
    if soft >= STACK || setrlimit(Resource::RLIMIT_STACK, STACK.min(hard), hard).is_ok() && hard >= STACK {
        return Ok(());
    }
    Err(io::Error::other("512 KB are needed (ulimit -s)"))
}

extern "C" fn go_on(_: c_int) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_beyond_the_limit_is_an_error() {
        let before = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
        keep_to_them().unwrap();
        // Other tests in this process write less than this.
        const LIMIT: u64 = 1 << 40;
        setrlimit(Resource::RLIMIT_FSIZE, LIMIT, before.1).unwrap();
        let file = tempfile::tempfile().unwrap();
        let written = std::os::unix::fs::FileExt::write_at(&file, b"x", LIMIT);
        setrlimit(Resource::RLIMIT_FSIZE, before.0, before.1).unwrap();
        assert_eq!(written.map_err(|error| error.raw_os_error()), Err(Some(27)), "EFBIG");
        (&file).write_all(b"x").unwrap();
    }
}
