// SPDX-License-Identifier: GPL-2.0-or-later

//! Conditions of probe points: the statements at the start of a handler that reject hits.

use super::uses::CodeSummary;
use super::{LongExpr, Stmt, StmtKind};

/// How many statements at the start of a handler are its probe point's conditions that can be evaluated without a hit. The
/// others filter each hit.
pub fn filters(body: &[Stmt]) -> usize {
    body.iter()
        .take_while(|statement| filter(statement).is_some_and(|value| !CodeSummary::of_long(value).needs_hit()))
        .count()
}

/// The value that rejects a hit, if the statement does nothing else.
fn filter(statement: &Stmt) -> Option<&LongExpr> {
    match &statement.kind {
        StmtKind::If { condition, then, otherwise: None } if matches!(then.kind, StmtKind::Filter) => Some(condition),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::LongKind;
    use spile_source::Span;

    fn statement(kind: StmtKind) -> Stmt {
        Stmt { kind, span: Span::none() }
    }

    fn reject(kind: LongKind) -> Stmt {
        let condition = LongExpr { kind, span: Span::none() };
        let then = Box::new(statement(StmtKind::Filter));
        statement(StmtKind::If { condition, then, otherwise: None })
    }

    #[test]
    fn only_what_stands_first_is_the_condition() {
        let filter = || reject(LongKind::Const(0));
        assert_eq!(filters(&[]), 0);
        assert_eq!(filters(&[filter(), filter(), statement(StmtKind::Next), filter()]), 2);
    }

    #[test]
    fn what_needs_a_hit_is_evaluated_in_hits_alone() {
        let address = Box::new(LongExpr::constant(8, Span::none()));
        let read = |user| LongKind::Read { address: address.clone(), size: 8, user };
        assert_eq!(filters(&[reject(LongKind::Const(0)), reject(LongKind::Register { offset: 8 })]), 1);
        assert_eq!([false, true].map(|user| filters(&[reject(read(user))])), [0, 0]);
        for name in ["__get_uregs", "__own_process"] {
            let builtin = crate::builtin::find(name, 0).unwrap();
            assert_eq!(filters(&[reject(LongKind::Builtin(builtin, Vec::new()))]), 0, "{name}");
        }
    }
}
