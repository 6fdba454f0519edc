// SPDX-License-Identifier: GPL-2.0-or-later

//! Long chains of `else if`, as generators of library scripts write them (libvirt's names a few hundred procedures).
//!
//! Each `else if` is a level of the tree, and its depth is limited. A longer chain becomes several statements of at most
//! [`ARMS`] conditions one after the other, of which each but the first asks whether those before it have found nothing:
//!
//! ```text
//! { rest = 0
//!   if (a) ... else if (b) ... else rest = 1
//!   if (rest) { rest = 0; if (c) ... else if (d) ... else rest = 1 }
//!   if (rest) if (e) ... else ... }
//! ```

use super::{Builder, NodeResult, WithDepth};
use crate::ast::{AssignOp, Block, Expr, ExprKind, Stmt, StmtKind};
use spile_source::Span;

/// Conditions in one statement.
pub(super) const ARMS: u16 = 100;
/// Levels that one of the statements has above its conditions: the block, `if (rest)`, its block, and the last
/// assignment.
const AROUND: u16 = 4;
/// Prefix of the variable's name; a place in the script follows.
const REST: &str = "__else_";

impl Builder<'_> {
    /// An `if` whose `else` may be the rest of a long chain.
    pub(super) fn chained(
        &self,
        span: Span,
        condition: WithDepth<Expr>,
        then: WithDepth<Stmt>,
        rest: WithDepth<Stmt>,
    ) -> NodeResult<Stmt> {
        let part = condition.depth.max(then.depth);
        let (condition, then) = (condition.node, Box::new(then.node));
        let long = part.saturating_add(ARMS).saturating_add(AROUND);
        match split(rest.node) {
            Ok((name, mut statements)) => {
                // The first statement sets the variable; the second has the conditions that directly follow this one.
                let head = statements.remove(1);
                if arms(&head) < ARMS {
                    statements.insert(1, if_(span, condition, then, Some(head)));
                } else {
                    let body = vec![set(&name, 0, head.span), head];
                    let body = Stmt { kind: StmtKind::Block(Block { statements: body, span }), span };
                    statements.insert(1, if_(span, variable(&name, span), Box::new(body), None));
                    statements.insert(1, if_(span, condition, then, Some(set(&name, 1, span))));
                }
                self.of_depth(span, StmtKind::Block(Block { statements, span }), rest.depth.max(long))
            }
            Err(rest_node) if arms(&rest_node) < ARMS => {
                let depth = part.max(rest.depth).saturating_add(1);
                self.of_depth(span, if_(span, condition, then, Some(*rest_node)).kind, depth)
            }
            Err(rest_node) => {
                let name = format!("{REST}{}", rest_node.span.start);
                let last = if_(span, variable(&name, span), rest_node, None);
                let first = if_(span, condition, then, Some(set(&name, 1, span)));
                let statements = vec![set(&name, 0, span), first, last];
                let depth = rest.depth.saturating_add(AROUND).max(long);
                self.of_depth(span, StmtKind::Block(Block { statements, span }), depth)
            }
        }
    }

    fn of_depth(&self, span: Span, kind: StmtKind, depth: u16) -> NodeResult<Stmt> {
        Ok(WithDepth { depth: self.depth(span, &[depth.saturating_sub(1)])?, node: Stmt { kind, span } })
    }
}

/// The variable and the statements of a chain that has been split; otherwise the statement itself.
fn split(statement: Stmt) -> Result<(String, Vec<Stmt>), Box<Stmt>> {
    let name = match &statement.kind {
        StmtKind::Block(block) => block.statements.first().and_then(variable_set),
        _ => None,
    };
    match (name, statement.kind) {
        (Some(name), StmtKind::Block(block)) => Ok((name, block.statements)),
        (_, kind) => Err(Box::new(Stmt { kind, span: statement.span })),
    }
}

/// The variable of this module that the statement sets.
fn variable_set(statement: &Stmt) -> Option<String> {
    let StmtKind::Expr(Expr { kind: ExprKind::Assign(AssignOp::Set, target, _), .. }) = &statement.kind else {
        return None;
    };
    match &target.kind {
        ExprKind::Ident(name) if name.starts_with(REST) => Some(name.clone()),
        _ => None,
    }
}

/// Conditions of the chain.
fn arms(mut statement: &Stmt) -> u16 {
    let mut count = 0;
    while let StmtKind::If { otherwise, .. } = &statement.kind {
        count += 1;
        match otherwise {
            Some(next) => statement = next,
            None => break,
        }
    }
    count
}

fn if_(span: Span, condition: Expr, then: Box<Stmt>, otherwise: Option<Stmt>) -> Stmt {
    Stmt { kind: StmtKind::If { condition, then, otherwise: otherwise.map(Box::new) }, span }
}

fn variable(name: &str, span: Span) -> Expr {
    Expr { kind: ExprKind::Ident(name.into()), span }
}

fn set(name: &str, value: i64, span: Span) -> Stmt {
    let value = Box::new(Expr { kind: ExprKind::Number(value), span });
    let kind = ExprKind::Assign(AssignOp::Set, Box::new(variable(name, span)), value);
    Stmt { kind: StmtKind::Expr(Expr { kind, span }), span }
}
