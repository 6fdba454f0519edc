// SPDX-License-Identifier: GPL-2.0-or-later

//! Limits that the caller has set for this process (setrlimit(2)): exceeding one is an error with a message, not a
//! signal.

use std::ffi::c_int;
use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Bytes of the stack of the main thread. Other threads have stacks of a fixed size.
const STACK: u64 = 512 << 10;

/// Bytes of address space: the program and its libraries, the description of a small module, and stacks of threads. Where memory cannot be
/// had later, Rust aborts the process.
const SPACE: u64 = 32 << 20;

/// To be called before anything that needs more than a little stack. The limits of the stack and of the address space are raised as
/// far as the caller may raise them; an error: not far enough.
pub fn keep_to_them() -> io::Result<()> {
    let action = SigAction::new(SigHandler::Handler(go_on), SaFlags::SA_RESTART, SigSet::empty());
    // The write fails with EFBIG. A handler, unlike an ignored signal, is not inherited by the commands that are run.
    // SAFETY: the handler does nothing.
    let _ = unsafe { sigaction(Signal::SIGXFSZ, &action) };
    for (limit, least, message) in [
        (Resource::RLIMIT_STACK, STACK, "512 KB are needed (ulimit -s)"),
        (Resource::RLIMIT_AS, SPACE, "32 MB of address space are needed (ulimit -v)"),
    ] {
        let Ok((soft, hard)) = getrlimit(limit) else { continue };
        if soft < least && (setrlimit(limit, least.min(hard), hard).is_err() || hard < least) {
            return Err(io::Error::other(message));
        }
    }
    Ok(())
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
