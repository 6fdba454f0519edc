// SPDX-License-Identifier: GPL-2.0-or-later

//! Visitors for the tree: every expression below a block, outer ones first.

use super::ast::{Block, Expr, ExprKind, Function, FunctionBody, Index, Stmt, StmtKind};

/// Calls `visit` with every expression of a block.
pub fn expressions<'a>(block: &'a Block, visit: &mut dyn FnMut(&'a Expr)) {
    block.statements.iter().for_each(|statement| in_statement(statement, visit));
}

/// Calls `visit` with every statement of a block and those inside them.
pub fn statements<'a>(block: &'a Block, visit: &mut dyn FnMut(&'a Stmt)) {
    block.statements.iter().for_each(|statement| below(statement, visit));
}

fn below<'a>(statement: &'a Stmt, visit: &mut dyn FnMut(&'a Stmt)) {
    visit(statement);
    match &statement.kind {
        StmtKind::Block(block) => statements(block, visit),
        StmtKind::If { then, otherwise, .. } => {
            below(then, visit);
            otherwise.iter().for_each(|otherwise| below(otherwise, visit));
        }
        StmtKind::While { body, .. } | StmtKind::For { body, .. } => below(body, visit),
        StmtKind::Foreach(foreach) => below(&foreach.body, visit),
        StmtKind::Try { body, handler, .. } => [body, handler].into_iter().for_each(|block| statements(block, visit)),
        _ => {}
    }
}

/// Whether `test` holds for a statement of the block or one inside it.
pub fn any_statement(block: &Block, test: &dyn Fn(&Stmt) -> bool) -> bool {
    block.statements.iter().any(|statement| any_in(statement, test))
}

fn any_in(statement: &Stmt, test: &dyn Fn(&Stmt) -> bool) -> bool {
    test(statement)
        || match &statement.kind {
            StmtKind::Block(block) => any_statement(block, test),
            StmtKind::If { then, otherwise, .. } => {
                any_in(then, test) || otherwise.as_ref().is_some_and(|otherwise| any_in(otherwise, test))
            }
            StmtKind::While { body, .. } | StmtKind::For { body, .. } => any_in(body, test),
            StmtKind::Foreach(foreach) => any_in(&foreach.body, test),
            StmtKind::Try { body, handler, .. } => any_statement(body, test) || any_statement(handler, test),
            _ => false,
        }
}

/// Whether the function may continue with the next overload.
pub fn executes_next(function: &Function) -> bool {
    match &function.body {
        FunctionBody::Script(block) => any_statement(block, &|statement| matches!(statement.kind, StmtKind::Next)),
        FunctionBody::EmbeddedC(code) => code.text.contains("STAP_NEXT"),
    }
}

/// Calls `visit` with every expression of a statement.
pub fn in_statement<'a>(statement: &'a Stmt, visit: &mut dyn FnMut(&'a Expr)) {
    match &statement.kind {
        StmtKind::Empty | StmtKind::Break | StmtKind::Continue | StmtKind::Next => {}
        StmtKind::Block(block) => expressions(block, visit),
        StmtKind::Expr(expr) | StmtKind::Delete(expr) => in_expression(expr, visit),
        StmtKind::If { condition, then, otherwise } => {
            in_expression(condition, visit);
            in_statement(then, visit);
            otherwise.iter().for_each(|otherwise| in_statement(otherwise, visit));
        }
        StmtKind::While { condition, body } => {
            in_expression(condition, visit);
            in_statement(body, visit);
        }
        StmtKind::For { init, condition, step, body } => {
            [init, condition, step].into_iter().flatten().for_each(|expr| in_expression(expr, visit));
            in_statement(body, visit);
        }
        StmtKind::Foreach(foreach) => {
            in_expression(&foreach.array, visit);
            foreach.slice.iter().flatten().for_each(|index| in_index(index, visit));
            foreach.limit.iter().for_each(|limit| in_expression(limit, visit));
            in_statement(&foreach.body, visit);
        }
        StmtKind::Return(value) => value.iter().for_each(|value| in_expression(value, visit)),
        StmtKind::Try { body, handler, .. } => {
            expressions(body, visit);
            expressions(handler, visit);
        }
    }
}

fn in_index<'a>(index: &'a Index, visit: &mut dyn FnMut(&'a Expr)) {
    if let Index::Expr(expr) = index {
        in_expression(expr, visit);
    }
}

/// Calls `visit` with the expression and every one inside it.
pub fn in_expression<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    visit(expr);
    children(expr, &mut |child| in_expression(child, visit));
}

/// Calls `each` with the expressions directly in this one.
pub fn children<'a>(expr: &'a Expr, each: &mut dyn FnMut(&'a Expr)) {
    let in_index = |index: &'a Index, each: &mut dyn FnMut(&'a Expr)| {
        if let Index::Expr(expr) = index {
            each(expr);
        }
    };
    match &expr.kind {
        ExprKind::Number(_)
        | ExprKind::String(_)
        | ExprKind::Ident(_)
        | ExprKind::Target(_)
        | ExprKind::Var { .. }
        | ExprKind::Perf(_)
        | ExprKind::Const(_)
        | ExprKind::Enum(_)
        | ExprKind::ProbeWrite(_)
        | ExprKind::EmbeddedC(_) => {}
        ExprKind::Member(inner, _)
        | ExprKind::Pretty(inner, _)
        | ExprKind::AddressOf(inner)
        | ExprKind::Unary(_, inner)
        | ExprKind::Step { target: inner, .. }
        | ExprKind::Matches { left: inner, .. }
        | ExprKind::Cast { value: inner, .. }
        | ExprKind::Defined(inner)
        | ExprKind::Entry(inner)
        | ExprKind::EnumName { value: inner, .. }
        | ExprKind::Register { number: inner, .. }
        | ExprKind::Extract { aggregate: inner, .. }
        | ExprKind::Histogram { aggregate: inner, .. } => each(inner),
        ExprKind::Binary(_, left, right)
        | ExprKind::Assign(_, left, right)
        | ExprKind::Deref { size: left, address: right, .. } => {
            each(left);
            each(right);
        }
        ExprKind::Conditional(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().for_each(|expr| each(expr));
        }
        ExprKind::Index(inner, indices) => {
            each(inner);
            indices.iter().for_each(|index| in_index(index, each));
        }
        ExprKind::In(indices, inner) => {
            indices.iter().for_each(|index| in_index(index, each));
            each(inner);
        }
        ExprKind::Call(_, arguments) => arguments.iter().for_each(each),
        ExprKind::Print(print) => print.arguments.iter().for_each(each),
    }
}
