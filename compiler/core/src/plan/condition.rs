// SPDX-License-Identifier: GPL-2.0-or-later

//! Which handlers change what the conditions of probe points read.

use std::collections::BTreeSet;

use crate::program::condition::filters;
use crate::program::uses::{Access, CodeSummary, Uses};
use crate::program::{GlobalId, Program};

/// The globals that conditions read.
pub fn watched(program: &Program, function_uses: &[Uses]) -> BTreeSet<GlobalId> {
    let conditions = program.probes.iter().map(|probe| probe.body.split_at(filters(&probe.body)).0);
    conditions.flat_map(|condition| CodeSummary::of(condition).with_calls(function_uses).into_keys()).collect()
}

/// Whether a handler may change the result of conditions.
pub fn rearms(watched: &BTreeSet<GlobalId>, uses: &Uses) -> bool {
    uses.iter().any(|(id, access)| *access != Access::Read && watched.contains(id))
}
