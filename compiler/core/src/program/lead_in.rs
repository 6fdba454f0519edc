// SPDX-License-Identifier: GPL-2.0-or-later

//! The beginning of a handler that only computes locals: `file = $file; if (pid() != target()) next; inode = $file->f_inode`.
//! When it runs makes no difference, so a handler takes the stripes of its arrays behind it, when it knows their keys; nothing
//! has to be undone if it does not get them.

use std::rc::Rc;

use super::element_uses::KnownValues;
use super::uses::CodeSummary;
use super::{
    Element, Expr, LocalId, LongExpr, LongKind, LongPlace, Stmt, StmtKind, StringExpr, StringKind, StringPlace,
};

/// How many of the statements are the lead-in. `functions`: of the program.
pub fn length(statements: &[Stmt], functions: &[CodeSummary]) -> usize {
    let is_quiet = |statement: &&Stmt| is_quiet(&CodeSummary::of(std::slice::from_ref(*statement)), functions);
    statements.iter().take_while(is_quiet).count()
}

/// Without globals, and without any effect but on locals.
fn is_quiet(summary: &CodeSummary, functions: &[CodeSummary]) -> bool {
    let is_quiet = |summary: &CodeSummary| summary.uses.is_empty() && !summary.has_effects && !summary.stores_elsewhere;
    is_quiet(summary) && summary.all_calls(functions).iter().all(|callee| is_quiet(&functions[callee.index()]))
}

/// What a handler knows behind its lead-in. `statements`: those after it; `locals`: of the handler.
/// `early`: functions that may be called early.
pub fn known(statements: &[Stmt], locals: usize, functions: &[CodeSummary], early: &Rc<[bool]>) -> KnownValues {
    let summary = CodeSummary::of(statements);
    let written = summary.written.clone();
    let mut known =
        KnownValues::with((0..locals as u32).map(LocalId).filter(|local| !written.contains(local)).collect());
    let may_write = summary.stores_elsewhere
        || summary.all_calls(functions).iter().any(|callee| functions[callee.index()].stores_elsewhere);
    if may_write {
        return known;
    }
    if let Some(first) = statements.first() {
        LeadIn { known: &mut known, over: false }.statement(first);
    }
    known.with_early(early.clone())
}

/// Visits the expressions that are always evaluated, in order, up to the first effect.
struct LeadIn<'k> {
    known: &'k mut KnownValues,
    /// There was an effect, or something that may not run.
    over: bool,
}

impl LeadIn<'_> {
    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Block(statements) => statements.first().into_iter().for_each(|first| self.statement(first)),
            StmtKind::Expr(expr) => self.expr(expr),
            StmtKind::If { condition, .. } => self.long(condition),
            StmtKind::DeleteElements { keys, .. } => keys.iter().flatten().for_each(|key| self.expr(key)),
            _ => {}
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Long(expr) => self.long(expr),
            Expr::String(expr) => self.text(expr),
        }
    }

    fn element(&mut self, element: &Element) {
        element.keys.iter().for_each(|key| self.expr(key));
    }

    /// The keys or the address of a place that is written then.
    fn place(&mut self, place: &LongPlace) {
        match place {
            LongPlace::Element(element) => self.element(element),
            LongPlace::Memory { .. } | LongPlace::Register { .. } => self.over = true,
            LongPlace::Variable(_) => {}
        }
    }

    fn long(&mut self, expr: &LongExpr) {
        if self.over {
            return;
        }
        match &expr.kind {
            LongKind::Read { address, .. } => {
                self.long(address);
                if !self.over {
                    self.known.reads(expr);
                }
            }
            LongKind::KernelAddress { .. } => self.known.reads(expr),
            LongKind::Negate(operand)
            | LongKind::Not(operand)
            | LongKind::Complement(operand)
            | LongKind::SignExtend(operand, _)
            | LongKind::Bits { value: operand, .. } => self.long(operand),
            LongKind::Binary(op, left, right) => {
                self.long(left);
                match op.may_skip_right() {
                    true => self.over = true,
                    false => self.long(right),
                }
            }
            LongKind::Compare(_, left, right) => {
                self.text(left);
                self.text(right);
            }
            LongKind::Element(element) | LongKind::Extract { aggregate: element, .. } => self.element(element),
            LongKind::Contains { keys, .. } => keys.iter().flatten().for_each(|key| self.expr(key)),
            LongKind::Assign(left, value) | LongKind::Update { left, value, .. } => {
                self.place(left);
                self.long(value);
                self.over = true;
            }
            LongKind::Feed { aggregate, value } => {
                self.element(aggregate);
                self.long(value);
                self.over = true;
            }
            LongKind::Const(_) | LongKind::Variable(_) | LongKind::Register { .. } | LongKind::Saved(_) => {}
            LongKind::Builtin(builtin, arguments) if builtin.is_fixed() && arguments.is_empty() => {}
            _ => self.over = true,
        }
    }

    fn text(&mut self, expr: &StringExpr) {
        if self.over {
            return;
        }
        match &expr.kind {
            StringKind::Assign(left, value) | StringKind::Append(left, value) => {
                if let StringPlace::Element(element) = &**left {
                    self.element(element);
                }
                self.text(value);
                self.over = true;
            }
            StringKind::Element(element) => self.element(element),
            StringKind::Literal(_) | StringKind::Variable(_) | StringKind::Saved(_) => {}
            StringKind::Builtin(builtin, arguments) if builtin.is_fixed() && arguments.is_empty() => {}
            _ => self.over = true,
        }
    }
}
