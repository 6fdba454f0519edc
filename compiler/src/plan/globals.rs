//! Which globals need a lock, and how a handler takes it.
//!
//! A global that no armed probe writes needs none: begin probes run before anything is armed, end probes after
//! everything is disarmed. Nor does an aggregate without keys that armed probes only feed: each CPU has its own.

use crate::program::uses::{Access, Uses};
use crate::program::{Attachment, Holds, Program};

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
            let own = matches!(global.holds, Holds::Stats(_)) && !global.is_array();
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
