// SPDX-License-Identifier: GPL-2.0-or-later

//! Reads code for its [`CodeSummary`], statement by statement.

use std::collections::BTreeMap;

use super::counter::{CounterUpdate, counter_update};
use super::{Access, CallSite, CodeSummary, OFTEN, add_accesses};
use crate::builtin::Builtin;
use crate::program::command_text::Text;
use crate::program::element_uses::{KnownValues, WholeArray};
use crate::program::known_locals::KnownLocals;
use crate::program::{
    Element, EmbeddedC, Expr, FunctionId, GlobalId, Iterated, LongExpr, LongKind, LongPlace, PrintPiece, Slice, SortBy,
    Stmt, StmtKind, StringExpr, StringKind, StringPlace, Variable,
};
use spile_source::Span;

/// [`CodeSummary::registers`] for all registers, and whatever else the kernel has of them.
const ALL_REGISTERS: u64 = u64::MAX;

/// The summary of what has been read, and what is known at this place.
#[derive(Default)]
pub(super) struct Collector {
    summary: CodeSummary,
    /// This place may be reached more than once.
    in_loop: bool,
    /// Locals that stand for keys.
    locals: KnownLocals,
}

impl Collector {
    /// Reads statements. `known`: what makes keys of arrays known; `parameters`: what makes locals known.
    pub(super) fn of<'s>(
        statements: impl IntoIterator<Item = &'s Stmt, IntoIter: Clone>,
        known: KnownValues,
        parameters: KnownValues,
    ) -> CodeSummary {
        let statements = statements.into_iter();
        let again = || CodeSummary { known: known.clone(), parameters: parameters.clone(), ..CodeSummary::default() };
        let mut collector = Collector { summary: again(), ..Collector::default() };
        statements.clone().for_each(|statement| collector.statement(statement));
        // Once more with what is known of locals then.
        if collector.summary.element_uses.has_computed() || !collector.summary.sites.is_empty() {
            let locals = collector.locals.again();
            collector = Collector { summary: again(), locals, ..Collector::default() };
            statements.for_each(|statement| collector.statement(statement));
        }
        collector.end()
    }

    /// Reads expressions.
    pub(super) fn of_values(values: &[Expr]) -> CodeSummary {
        let mut collector = Collector::default();
        values.iter().for_each(|value| collector.expr(value));
        collector.end()
    }

    /// Reads what a function of embedded C declares.
    pub(super) fn of_embedded(code: &EmbeddedC) -> CodeSummary {
        let mut collector = Collector::default();
        collector.embedded(code);
        collector.end()
    }

    fn end(self) -> CodeSummary {
        let mut summary = self.summary;
        summary.written = self.locals.all_written().collect();
        summary.calls.sort_unstable();
        summary.calls.dedup();
        summary
    }

    /// How often the code being visited runs at most.
    fn times(&self) -> u8 {
        if self.in_loop { OFTEN } else { 1 }
    }

    /// Both branches of a condition, of which a run takes one. Functions called in both count together if they differ.
    fn branches(&mut self, then: impl FnOnce(&mut Collector), otherwise: impl FnOnce(&mut Collector)) {
        let before = (self.summary.accesses.clone(), self.summary.called.clone());
        self.conditionally(then);
        let taken = (
            std::mem::replace(&mut self.summary.accesses, before.0),
            std::mem::replace(&mut self.summary.called, before.1),
        );
        self.conditionally(otherwise);
        at_least(&mut self.summary.accesses, taken.0);
        at_least(&mut self.summary.called, taken.1);
    }

    /// Code that may run repeatedly.
    fn repeated(&mut self, code: impl FnOnce(&mut Collector)) {
        self.summary.loops = true;
        let outer = std::mem::replace(&mut self.in_loop, true);
        self.conditionally(code);
        self.in_loop = outer;
    }

    /// Code that may not run, or not to its end, before the code after it.
    fn conditionally(&mut self, code: impl FnOnce(&mut Collector)) {
        let known = self.locals.here();
        code(self);
        self.locals.restore(known);
    }

    fn global(&mut self, id: GlobalId, access: Access, span: Span) {
        self.summary.element_uses.uses_whole(id, WholeArray::Whole(span));
        self.access(id, access, span);
    }

    fn one_of(&mut self, id: GlobalId, keys: &[&Expr], access: Access, span: Span) {
        let keys: Vec<Expr> = keys.iter().map(|key| self.locals.resolved(key)).collect();
        self.summary.element_uses.element(id, keys, &self.summary.known, span);
        self.access(id, access, span);
    }

    /// A lookup with such keys, some of which may match any.
    fn found(&mut self, id: GlobalId, keys: &Slice, access: Access, span: Span) {
        match keys.iter().map(Option::as_ref).collect::<Option<Vec<&Expr>>>() {
            Some(keys) if !keys.is_empty() => self.one_of(id, &keys, access, span),
            _ => self.global(id, access, span),
        }
    }

    fn access(&mut self, id: GlobalId, access: Access, span: Span) {
        // Adding to it is reading and writing.
        let times = if access == Access::Feed { OFTEN } else { self.times() };
        add_accesses(&mut self.summary.accesses, id, times);
        self.summary.uses.entry(id).and_modify(|before| *before = before.and(access)).or_insert(access);
        if access != Access::Read {
            self.summary.changes.entry(id).or_insert(span);
        }
    }

    fn variable(&mut self, variable: Variable, access: Access, span: Span) {
        match variable {
            Variable::Global(id) => self.global(id, access, span),
            Variable::Local(local) if access != Access::Read => self.locals.written(local),
            Variable::Local(_) => {}
        }
    }

    fn element(&mut self, element: &Element, access: Access, span: Span) {
        element.keys.iter().for_each(|key| self.expr(key));
        self.one_of(element.global, &element.keys.iter().collect::<Vec<_>>(), access, span);
    }

    /// An expression whose value is not used.
    fn effect(&mut self, expr: &Expr) {
        match counter_update(expr) {
            Some(CounterUpdate { global, keys, value, .. }) => {
                keys.iter().for_each(|key| self.expr(key));
                self.long(value);
                self.one_of(global, &keys.iter().collect::<Vec<_>>(), Access::Feed, expr.span());
            }
            None => self.expr(expr),
        }
    }

    fn embedded(&mut self, code: &EmbeddedC) {
        self.summary.stores_elsewhere = true;
        self.summary.registers = ALL_REGISTERS;
        self.summary.sets_registers = true;
        self.summary.embedded.extend(code.globals.iter().map(|&(global, _)| global));
        for &(global, access) in &code.globals {
            self.global(global, access, code.span);
            add_accesses(&mut self.summary.accesses, global, OFTEN);
        }
    }

    fn slice(&mut self, slice: &Slice) {
        slice.iter().flatten().for_each(|key| self.expr(key));
    }

    fn statement(&mut self, statement: &Stmt) {
        let span = statement.span;
        match &statement.kind {
            StmtKind::Block(statements) => statements.iter().for_each(|statement| self.statement(statement)),
            StmtKind::Expr(expr) => {
                self.effect(expr);
                let Collector { locals, summary, .. } = self;
                let fixed = |local, expr: &Expr| summary.parameters.has(expr) || summary.known.stands_for(local, expr);
                locals.statement(expr, fixed);
            }
            StmtKind::If { condition, then, otherwise } => {
                self.long(condition);
                self.branches(
                    |collector| collector.statement(then),
                    |collector| otherwise.iter().for_each(|otherwise| collector.statement(otherwise)),
                );
            }
            StmtKind::Loop { condition, step, body } => self.repeated(|collector| {
                condition.iter().for_each(|expr| collector.long(expr));
                step.iter().for_each(|expr| collector.effect(expr));
                collector.statement(body);
            }),
            StmtKind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            StmtKind::Try { body, message, handler } => {
                self.conditionally(|collector| body.iter().for_each(|statement| collector.statement(statement)));
                self.conditionally(|collector| handler.iter().for_each(|statement| collector.statement(statement)));
                message.iter().for_each(|&variable| self.variable(variable, Access::Write, span));
            }
            StmtKind::Delete(variable) => self.variable(*variable, Access::Write, span),
            StmtKind::DeleteElements { global, keys } => {
                self.slice(keys);
                self.found(*global, keys, Access::Write, span);
            }
            StmtKind::Clear(global) => {
                self.summary.uses.insert(*global, Access::Write);
                self.summary.element_uses.uses_whole(*global, WholeArray::Whole(span));
            }
            StmtKind::Foreach(foreach) => {
                match &foreach.over {
                    Iterated::Array(global) => self.global(*global, Access::Read, span),
                    Iterated::Histogram(element) => self.element(element, Access::Read, span),
                }
                if let (Iterated::Array(global), Some((SortBy::Extractor(_), _))) = (&foreach.over, &foreach.sort) {
                    self.summary.sorted.insert(*global);
                }
                self.slice(&foreach.slice);
                foreach.limit.iter().for_each(|limit| self.long(limit));
                self.repeated(|collector| {
                    foreach
                        .keys
                        .iter()
                        .chain(&foreach.value)
                        .for_each(|&variable| collector.variable(variable, Access::Write, span));
                    collector.statement(&foreach.body);
                });
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Next | StmtKind::Filter => {}
        }
    }

    fn long_place(&mut self, place: &LongPlace, span: Span) {
        match place {
            LongPlace::Variable(variable) => self.variable(*variable, Access::Write, span),
            LongPlace::Element(element) => self.element(element, Access::Write, span),
            LongPlace::Memory { address, .. } => {
                self.summary.stores_elsewhere = true;
                self.long(address);
            }
            // Writing needs the address from which they are restored.
            LongPlace::Register { .. } => {
                self.summary.stores_elsewhere = true;
                self.summary.registers = ALL_REGISTERS;
                self.summary.sets_registers = true;
            }
        }
    }

    fn string_place(&mut self, place: &StringPlace, span: Span) {
        match place {
            StringPlace::Variable(variable) => self.variable(*variable, Access::Write, span),
            StringPlace::Element(element) => self.element(element, Access::Write, span),
        }
    }

    fn print(&mut self, pieces: &[PrintPiece]) {
        for piece in pieces {
            if let PrintPiece::Directive { width, precision, argument, .. } = piece {
                width.iter().chain(precision).for_each(|expr| self.long(expr));
                self.expr(argument);
            }
        }
    }

    fn call(&mut self, function: FunctionId, arguments: &[Expr], span: Span) {
        self.summary.calls.push(function);
        let known = arguments.iter().map(|argument| self.locals.resolved(argument)).collect();
        self.summary.sites.push(CallSite { function, arguments: known, span });
        let times = self.times();
        add_accesses(&mut self.summary.called, function, times);
        arguments.iter().for_each(|argument| self.expr(argument));
    }

    fn builtin(&mut self, builtin: &'static Builtin, arguments: &[Expr]) {
        self.summary.builtins.insert((builtin.name, builtin.parameters.len()), builtin);
        if builtin.registers {
            self.summary.registers = ALL_REGISTERS;
        }
        if builtin.name == "system" {
            self.summary.commands.extend(arguments.iter().map(Text::of));
        }
        self.summary.stores_elsewhere |= builtin.guru;
        self.summary.has_effects |= !builtin.pure;
        self.summary.varies |= !(builtin.plain && builtin.pure);
        arguments.iter().for_each(|argument| self.expr(argument));
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Long(expr) => self.long(expr),
            Expr::String(expr) => self.string(expr),
        }
    }

    fn long(&mut self, expr: &LongExpr) {
        let span = expr.span;
        match &expr.kind {
            LongKind::Variable(variable) => self.variable(*variable, Access::Read, span),
            LongKind::Binary(_, left, right) => {
                self.long(left);
                self.long(right);
            }
            LongKind::Compare(_, left, right) => {
                self.string(left);
                self.string(right);
            }
            LongKind::Negate(operand)
            | LongKind::Not(operand)
            | LongKind::Complement(operand)
            | LongKind::SignExtend(operand, _)
            | LongKind::Bits { value: operand, .. } => self.long(operand),
            LongKind::Read { address, .. } => {
                self.summary.reads_memory = true;
                self.long(address);
            }
            LongKind::Matches { text, .. } => self.string(text),
            LongKind::Conditional(condition, then, otherwise) => {
                self.long(condition);
                self.branches(|collector| collector.long(then), |collector| collector.long(otherwise));
            }
            LongKind::Call(function, arguments) => self.call(*function, arguments, span),
            LongKind::Builtin(builtin, arguments) => self.builtin(builtin, arguments),
            LongKind::Assign(left, value) => {
                self.long(value);
                self.long_place(left, span);
            }
            LongKind::Update { left, value, .. } => {
                self.long(value);
                if let LongPlace::Variable(variable) = **left {
                    self.variable(variable, Access::Read, span);
                }
                self.long_place(left, span);
            }
            LongKind::Print(print) => {
                self.summary.has_effects = true;
                self.print(&print.pieces);
            }
            LongKind::Element(element) | LongKind::Extract { aggregate: element, .. } => {
                self.element(element, Access::Read, span);
            }
            LongKind::Contains { global, keys } => {
                self.slice(keys);
                self.found(*global, keys, Access::Read, span);
            }
            LongKind::Feed { aggregate, value } => {
                self.long(value);
                self.element(aggregate, Access::Feed, span);
            }
            LongKind::Bucket { aggregate, index } | LongKind::HasBucket { aggregate, index } => {
                self.long(index);
                self.element(aggregate, Access::Read, span);
            }
            LongKind::Const(_) | LongKind::Saved(_) | LongKind::TookNext | LongKind::TakesNext => {}
            LongKind::KernelAddress { .. } | LongKind::ModuleAddress { .. } => {}
            LongKind::Register { offset } => {
                self.summary.registers |= 1u64.checked_shl(offset / 8).unwrap_or(ALL_REGISTERS);
            }
            LongKind::EmbeddedC(code) => self.embedded(code),
        }
    }

    fn string(&mut self, expr: &StringExpr) {
        let span = expr.span;
        match &expr.kind {
            StringKind::Variable(variable) => self.variable(*variable, Access::Read, span),
            StringKind::Concatenate(left, right) => {
                self.string(left);
                self.string(right);
            }
            StringKind::Conditional(condition, then, otherwise) => {
                self.long(condition);
                self.branches(|collector| collector.string(then), |collector| collector.string(otherwise));
            }
            StringKind::Call(function, arguments) => self.call(*function, arguments, span),
            StringKind::Builtin(builtin, arguments) => self.builtin(builtin, arguments),
            StringKind::Assign(left, value) => {
                self.string(value);
                self.string_place(left, span);
            }
            StringKind::Append(left, value) => {
                self.string(value);
                if let StringPlace::Variable(variable) = **left {
                    self.variable(variable, Access::Read, span);
                }
                self.string_place(left, span);
            }
            StringKind::Format(print) => self.print(&print.pieces),
            StringKind::Element(element) | StringKind::Chart(element) => self.element(element, Access::Read, span),
            StringKind::Pretty { address, .. } => self.long(address),
            StringKind::Literal(_) | StringKind::Saved(_) => {}
            StringKind::EmbeddedC(code) => self.embedded(code),
        }
    }
}

/// The larger of both for each key.
fn at_least<K: Ord>(times: &mut BTreeMap<K, u8>, other: BTreeMap<K, u8>) {
    for (key, other) in other {
        let times = times.entry(key).or_insert(0);
        *times = other.max(*times);
    }
}
