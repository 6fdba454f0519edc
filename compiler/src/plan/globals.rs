//! Which globals need a lock, and which locks a handler takes.
//!
//! A global that no armed probe writes needs none: begin probes run before anything is armed, end probes after
//! everything is disarmed.

use std::collections::BTreeMap;

use crate::program::{
    Attachment, Expr, ExprKind, FunctionBody, FunctionId, GlobalId, LValue, PrintPiece, Program, Stmt, StmtKind, Variable,
};

/// Globals that some code uses; true: it writes them.
pub(super) type Uses = BTreeMap<GlobalId, bool>;

/// What each function uses, with all that it calls.
pub(super) fn function_uses(program: &Program) -> Vec<Uses> {
    let mut walks: Vec<Walk> = program
        .functions
        .iter()
        .map(|function| match &function.body {
            FunctionBody::Script(statements) => Walk::of(statements),
            FunctionBody::EmbeddedC(_) => Walk::default(),
        })
        .collect();
    // Until nothing is added any more: functions may call each other in circles.
    loop {
        let mut grown = false;
        for index in 0..walks.len() {
            for callee in walks[index].calls.clone() {
                for (global, write) in walks[callee.index()].uses.clone() {
                    let before = walks[index].uses.get(&global).copied();
                    let after = before.unwrap_or(false) | write;
                    if before != Some(after) {
                        walks[index].uses.insert(global, after);
                        grown = true;
                    }
                }
            }
        }
        if !grown {
            return walks.into_iter().map(|walk| walk.uses).collect();
        }
    }
}

/// What a handler uses, with all that it calls.
pub(super) fn handler_uses(statements: &[Stmt], functions: &[Uses]) -> Uses {
    let walk = Walk::of(statements);
    let mut uses = walk.uses;
    for callee in walk.calls {
        for (&global, &write) in &functions[callee.index()] {
            *uses.entry(global).or_default() |= write;
        }
    }
    uses
}

/// Functions that some statements call directly.
pub(super) fn calls(statements: &[Stmt]) -> Vec<FunctionId> {
    Walk::of(statements).calls
}

/// By global: the index of its lock, None where it needs none.
pub(super) fn locks(program: &Program, handlers: &[Uses]) -> Vec<Option<u32>> {
    let mut shared = vec![false; program.globals.len()];
    for (probe, uses) in program.probes.iter().zip(handlers) {
        let serial = matches!(
            probe.attachment,
            Attachment::Begin { .. } | Attachment::End { .. } | Attachment::Error { .. } | Attachment::Never
        );
        for (global, &write) in uses {
            shared[global.index()] |= write && !serial;
        }
    }
    let mut next = 0;
    shared
        .into_iter()
        .map(|shared| {
            shared.then(|| {
                next += 1;
                next - 1
            })
        })
        .collect()
}

#[derive(Default)]
struct Walk {
    uses: Uses,
    calls: Vec<FunctionId>,
}

impl Walk {
    fn of(statements: &[Stmt]) -> Walk {
        let mut walk = Walk::default();
        statements.iter().for_each(|statement| walk.statement(statement));
        walk.calls.sort_unstable();
        walk.calls.dedup();
        walk
    }

    fn variable(&mut self, variable: Variable, write: bool) {
        if let Variable::Global(id) = variable {
            *self.uses.entry(id).or_default() |= write;
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Block(statements) => statements.iter().for_each(|statement| self.statement(statement)),
            StmtKind::Expr(expr) => self.expr(expr),
            StmtKind::If { condition, then, otherwise } => {
                self.expr(condition);
                self.statement(then);
                otherwise.iter().for_each(|otherwise| self.statement(otherwise));
            }
            StmtKind::Loop { condition, step, body } => {
                condition.iter().chain(step).for_each(|expr| self.expr(expr));
                self.statement(body);
            }
            StmtKind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            StmtKind::Try { body, message, handler } => {
                body.iter().chain(handler).for_each(|statement| self.statement(statement));
                message.iter().for_each(|&variable| self.variable(variable, true));
            }
            StmtKind::Delete(variable) => self.variable(*variable, true),
            StmtKind::Break | StmtKind::Continue | StmtKind::Next => {}
        }
    }

    fn place(&mut self, place: &LValue) {
        match place {
            LValue::Variable(variable) => self.variable(*variable, true),
            LValue::Memory { address, .. } => self.expr(address),
            LValue::Register { .. } => {}
        }
    }

    fn print(&mut self, pieces: &[PrintPiece]) {
        for piece in pieces {
            if let PrintPiece::Directive { width, precision, argument, .. } = piece {
                width.iter().chain(precision).for_each(|expr| self.expr(expr));
                self.expr(argument);
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Variable(variable) => self.variable(*variable, false),
            ExprKind::Binary(_, left, right) => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Negate(operand)
            | ExprKind::Not(operand)
            | ExprKind::Complement(operand)
            | ExprKind::SignExtend(operand, _)
            | ExprKind::Bits { value: operand, .. }
            | ExprKind::Read { address: operand, .. }
            | ExprKind::Pretty { address: operand, .. } => self.expr(operand),
            ExprKind::Conditional(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|expr| self.expr(expr));
            }
            ExprKind::Call(function, arguments) => {
                self.calls.push(*function);
                arguments.iter().for_each(|argument| self.expr(argument));
            }
            ExprKind::Builtin(_, arguments) => arguments.iter().for_each(|argument| self.expr(argument)),
            ExprKind::Assign(left, value) => {
                self.expr(value);
                self.place(left);
            }
            ExprKind::Update { left, value, .. } => {
                self.expr(value);
                self.place(left);
            }
            ExprKind::Print(print) | ExprKind::Format(print) => self.print(&print.pieces),
            ExprKind::Long(_) | ExprKind::String(_) | ExprKind::Register { .. } | ExprKind::Saved(_) | ExprKind::EmbeddedC(_) => {}
        }
    }
}
