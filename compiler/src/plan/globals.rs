//! Which globals need a lock, and how a handler takes it.
//!
//! A global that no armed probe writes needs none: begin probes run before anything is armed, end probes after
//! everything is disarmed. Nor does an aggregate, or an array of them, that armed probes only feed: each CPU has its own
//! values, and making an element is safe by itself.

use crate::program::uses::{Access, Uses};
use crate::program::{Attachment, Global, Holds, Program};

/// How a handler takes a lock (script.h, enum spile_lock_mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    Read,
    Write,
    /// Of an aggregate that the handler only feeds: on its own CPU.
    Local,
    /// Of one that it reads or deletes: over all CPUs.
    All,
}

/// How a handler that does this with a global takes its lock.
pub(super) fn mode(global: &Global, access: Access) -> LockMode {
    match (global.holds, access) {
        (Holds::Stats(_), Access::Feed) => LockMode::Local,
        (Holds::Stats(_), _) => LockMode::All,
        (Holds::Value(_), Access::Read) => LockMode::Read,
        (Holds::Value(_), _) => LockMode::Write,
    }
}

/// By global: the index of its lock, None where it needs none.
pub(super) fn locks(program: &Program, handlers: &[Uses]) -> Vec<Option<u32>> {
    let mut strongest: Vec<Option<Access>> = vec![None; program.globals.len()];
    for (probe, uses) in program.probes.iter().zip(handlers) {
        let serial = matches!(
            probe.attachment,
            Attachment::Begin { .. } | Attachment::End { .. } | Attachment::Error { .. } | Attachment::Never
        );
        if serial {
            continue;
        }
        for (global, &access) in uses {
            let before = &mut strongest[global.index()];
            *before = Some(match *before {
                // Some read and some feed: that needs exclusion.
                Some(before) if before != access => Access::Write,
                _ => access,
            });
        }
    }
    let mut next = 0;
    strongest
        .into_iter()
        .zip(&program.globals)
        .map(|(access, global)| {
            let own = matches!(global.holds, Holds::Stats(_));
            let needed = match access {
                None | Some(Access::Read) => false,
                Some(Access::Feed) => !own,
                Some(Access::Write) => true,
            };
            needed.then(|| {
                next += 1;
                next - 1
            })
        })
        .collect()
}
