// SPDX-License-Identifier: GPL-2.0-or-later

//! RLIMIT_STACK: a lower limit than the usual one shall not end the program by a signal, for the depth of what is read is
//! bounded so that the usual stack is enough.

use std::process::ExitCode;

use nix::sys::resource::{Resource, getrlimit};
use spile_abi::say::say;

/// Bytes of the usual stack.
const USUAL: usize = 8 << 20;

/// Does the work, on a stack of its own if this thread's is smaller than usual.
pub fn with_enough(work: impl FnOnce() -> ExitCode + Send) -> ExitCode {
    let is_small = getrlimit(Resource::RLIMIT_STACK).is_ok_and(|(limit, _)| limit < USUAL as u64);
    if !is_small {
        return work();
    }
    std::thread::scope(|scope| match std::thread::Builder::new().stack_size(USUAL).spawn_scoped(scope, work) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(error) => {
            say(&format!("spile: no memory for a stack of {} MB: {error}\n", USUAL >> 20));
            ExitCode::FAILURE
        }
    })
}
