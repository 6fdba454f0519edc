// SPDX-License-Identifier: GPL-2.0-or-later

//! What statements and expressions consist of, for those who look for something in all of them.

use std::collections::HashSet;

use super::{
    Element, Expr, FunctionId, Iterated, LongExpr, LongKind, LongPlace, Print, PrintPiece, Slice, Stmt, StmtKind,
    StringExpr, StringKind, StringPlace,
};

/// A direct part of a statement or an expression.
#[derive(Clone, Copy, Debug)]
pub enum Part<'p> {
    /// A statement.
    Statement(&'p Stmt),
    /// A number.
    Long(&'p LongExpr),
    /// A string.
    String(&'p StringExpr),
}

impl<'p> From<&'p Expr> for Part<'p> {
    fn from(expr: &'p Expr) -> Part<'p> {
        match expr {
            Expr::Long(expr) => Part::Long(expr),
            Expr::String(expr) => Part::String(expr),
        }
    }
}

/// What goes through code and all its parts: of each kind it says what it looks for, and whether it goes on to the parts.
pub trait Visitor<'p> {
    /// A statement.
    fn statement(&mut self, statement: &'p Stmt) {
        of_statement(statement, &mut |part| self.part(part));
    }

    /// A number.
    fn long(&mut self, expr: &'p LongExpr) {
        of_long(expr, &mut |part| self.part(part));
    }

    /// A string.
    fn string(&mut self, expr: &'p StringExpr) {
        of_string(expr, &mut |part| self.part(part));
    }

    /// A part of any kind.
    fn part(&mut self, part: Part<'p>) {
        match part {
            Part::Statement(statement) => self.statement(statement),
            Part::Long(expr) => self.long(expr),
            Part::String(expr) => self.string(expr),
        }
    }
}

/// What was found in some code (`own`) and in the functions that it calls, directly or not, each once. `functions` has what was found
/// in each function of the program, and `calls` says which of them are called there.
pub fn reached<'f, F>(own: &'f F, functions: &'f [F], calls: impl Fn(&'f F) -> &'f [FunctionId]) -> Vec<&'f F> {
    let mut seen = HashSet::new();
    let mut all = vec![own];
    let mut open = calls(own).to_vec();
    while let Some(id) = open.pop() {
        let Some(function) = functions.get(id.index()).filter(|_| seen.insert(id)) else { continue };
        open.extend(calls(function));
        all.push(function);
    }
    all
}

/// The parts of a statement, in the order in which they are written.
pub fn of_statement<'p>(statement: &'p Stmt, each: &mut dyn FnMut(Part<'p>)) {
    match &statement.kind {
        StmtKind::Block(statements) => statements.iter().map(Part::Statement).for_each(each),
        StmtKind::Expr(expr) => each(expr.into()),
        StmtKind::If { condition, then, otherwise } => {
            each(Part::Long(condition));
            each(Part::Statement(then));
            otherwise.iter().for_each(|otherwise| each(Part::Statement(otherwise)));
        }
        StmtKind::Loop { condition, step, body } => {
            condition.iter().for_each(|condition| each(Part::Long(condition)));
            step.iter().for_each(|step| each(step.into()));
            each(Part::Statement(body));
        }
        StmtKind::Return(value) => value.iter().for_each(|value| each(value.into())),
        StmtKind::Try { body, message: _, handler } => body.iter().chain(handler).map(Part::Statement).for_each(each),
        StmtKind::DeleteElements { global: _, keys } => of_slice(keys, each),
        StmtKind::Foreach(foreach) => {
            if let Iterated::Histogram(element) = &foreach.over {
                of_element(element, each);
            }
            of_slice(&foreach.slice, each);
            foreach.limit.iter().for_each(|limit| each(Part::Long(limit)));
            each(Part::Statement(&foreach.body));
        }
        StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Next
        | StmtKind::Filter
        | StmtKind::Delete(_)
        | StmtKind::Clear(_) => {}
    }
}

/// The parts of a number, in the order in which they are evaluated.
pub fn of_long<'p>(expr: &'p LongExpr, each: &mut dyn FnMut(Part<'p>)) {
    match &expr.kind {
        LongKind::Binary(_, left, right) => {
            each(Part::Long(left));
            each(Part::Long(right));
        }
        LongKind::Compare(_, left, right) => {
            each(Part::String(left));
            each(Part::String(right));
        }
        LongKind::Negate(operand)
        | LongKind::Not(operand)
        | LongKind::Complement(operand)
        | LongKind::SignExtend(operand, _)
        | LongKind::Bits { value: operand, .. }
        | LongKind::Read { address: operand, .. } => each(Part::Long(operand)),
        LongKind::Conditional(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().for_each(|part| each(Part::Long(part)));
        }
        LongKind::Matches { regex: _, text } => each(Part::String(text)),
        LongKind::Call(_, arguments) | LongKind::Builtin(_, arguments) => of_values(arguments, each),
        LongKind::Assign(left, value) | LongKind::Update { left, value, .. } => {
            match &**left {
                LongPlace::Element(element) => of_element(element, each),
                LongPlace::Memory { address, .. } => each(Part::Long(address)),
                LongPlace::Variable(_) | LongPlace::Register { .. } => {}
            }
            each(Part::Long(value));
        }
        LongKind::Print(print) => of_print(print, each),
        LongKind::Element(element) | LongKind::Extract { aggregate: element, .. } => of_element(element, each),
        LongKind::Contains { global: _, keys } => of_slice(keys, each),
        LongKind::Feed { aggregate, value: other }
        | LongKind::Bucket { aggregate, index: other }
        | LongKind::HasBucket { aggregate, index: other } => {
            of_element(aggregate, each);
            each(Part::Long(other));
        }
        LongKind::Const(_)
        | LongKind::Variable(_)
        | LongKind::Saved(_)
        | LongKind::TookNext
        | LongKind::TakesNext
        | LongKind::Register { .. }
        | LongKind::KernelAddress { .. }
        | LongKind::ModuleAddress { .. }
        | LongKind::EmbeddedC(_) => {}
    }
}

/// The parts of a string, in the order in which they are evaluated.
pub fn of_string<'p>(expr: &'p StringExpr, each: &mut dyn FnMut(Part<'p>)) {
    match &expr.kind {
        StringKind::Concatenate(left, right) => {
            each(Part::String(left));
            each(Part::String(right));
        }
        StringKind::Conditional(condition, then, otherwise) => {
            each(Part::Long(condition));
            each(Part::String(then));
            each(Part::String(otherwise));
        }
        StringKind::Call(_, arguments) | StringKind::Builtin(_, arguments) => of_values(arguments, each),
        StringKind::Assign(left, value) | StringKind::Append(left, value) => {
            match &**left {
                StringPlace::Element(element) => of_element(element, each),
                StringPlace::Variable(_) => {}
            }
            each(Part::String(value));
        }
        StringKind::Format(print) => of_print(print, each),
        StringKind::Pretty { address, .. } => each(Part::Long(address)),
        StringKind::Element(element) | StringKind::Chart(element) => of_element(element, each),
        StringKind::Literal(_) | StringKind::Variable(_) | StringKind::Saved(_) | StringKind::EmbeddedC(_) => {}
    }
}

/// Widths, precisions and arguments of a print.
pub fn of_print<'p>(print: &'p Print, each: &mut dyn FnMut(Part<'p>)) {
    for piece in &print.pieces {
        if let PrintPiece::Directive { width, precision, argument, .. } = piece {
            width.iter().chain(precision).for_each(|expr| each(Part::Long(expr)));
            each(argument.into());
        }
    }
}

fn of_values<'p>(values: &'p [Expr], each: &mut dyn FnMut(Part<'p>)) {
    values.iter().for_each(|value| each(value.into()));
}

fn of_element<'p>(element: &'p Element, each: &mut dyn FnMut(Part<'p>)) {
    of_values(&element.keys, each);
}

fn of_slice<'p>(slice: &'p Slice, each: &mut dyn FnMut(Part<'p>)) {
    slice.iter().flatten().for_each(|key| each(key.into()));
}
