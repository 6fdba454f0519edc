// SPDX-License-Identifier: GPL-2.0-or-later

//! Conditions of probe points: the statements at the start of a handler that reject hits, and which handlers change what
//! they read.

use std::collections::BTreeSet;

use crate::program::uses::{Access, CodeSummary, Uses};
use crate::program::{GlobalId, Program, Stmt, StmtKind};

/// How many statements at the start of a handler are its probe point's conditions.
pub fn filters(body: &[Stmt]) -> usize {
    let is_filter = |statement: &&Stmt| matches!(&statement.kind, StmtKind::If { then, otherwise: None, .. } if matches!(then.kind, StmtKind::Filter));
    body.iter().take_while(is_filter).count()
}

/// The globals that conditions read.
pub fn watched(program: &Program, function_uses: &[Uses]) -> BTreeSet<GlobalId> {
    let conditions = program.probes.iter().map(|probe| probe.body.split_at(filters(&probe.body)).0);
    conditions.flat_map(|condition| CodeSummary::of(condition).with_calls(function_uses).into_keys()).collect()
}

/// Whether a handler may change the result of conditions.
pub fn rearms(watched: &BTreeSet<GlobalId>, uses: &Uses) -> bool {
    uses.iter().any(|(id, access)| *access != Access::Read && watched.contains(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::LongExpr;
    use spile_source::Span;

    #[test]
    fn only_what_stands_first_is_the_condition() {
        let span = Span::none();
        let statement = |kind| Stmt { kind, span };
        let zero = || LongExpr::constant(0, span);
        let filter = || {
            let then = Box::new(statement(StmtKind::Filter));
            statement(StmtKind::If { condition: zero(), then, otherwise: None })
        };
        assert_eq!(filters(&[]), 0);
        assert_eq!(filters(&[filter(), filter(), statement(StmtKind::Next), filter()]), 2);
    }
}
