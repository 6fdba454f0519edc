// SPDX-License-Identifier: GPL-2.0-or-later

//! Handlers and functions to [`Routine`]s: expressions taken apart where they have effects or can fail.

use super::analysis::Analysis;
use super::code::*;
use super::deferred::{self, NamesOf};
use super::map::key;
use super::names::c_name;
use super::tables::Tables;
use crate::program::uses::counted;
use crate::program::{self, BinaryOp, Expr, ExprKind, LValue, PrintPiece, Program, Stmt, StmtKind, Type};
use spile_abi::format::{Directive, Piece, Size};
use spile_source::Span;

/// Builds one routine.
pub(super) struct Builder<'p, 's> {
    analysis: &'p Analysis<'p>,
    tables: &'p mut Tables<'s>,
    /// Byte offsets of saved values in the instance's data.
    saved: &'p [u32],
    longs: Vec<Variable>,
    texts: Vec<Variable>,
    buffers: Vec<String>,
    iterators: Vec<IteratorMemory>,
    /// By local: where it is.
    locals: Vec<Place>,
    code: Vec<Instr>,
    labels: u32,
    /// Where an error goes.
    failed: LabelId,
    /// (continue, break) of the loops around.
    loops: Vec<(LabelId, LabelId)>,
}

#[derive(Clone, Copy)]
enum Place {
    Long(LongId),
    /// With memory from the first time on that bytes are stored.
    Text(TextId, Option<BufferId>),
}

/// A lowered expression.
#[derive(Clone)]
pub(super) enum Result {
    Long(Value),
    Text(Text),
}

impl Result {
    pub(super) fn long(self) -> Value {
        match self {
            Result::Long(value) => value,
            // SANITY: elaboration gives every expression the type its place asks for.
            Result::Text(text) => Value::Length(Box::new(text)),
        }
    }

    pub(super) fn text(self) -> Text {
        match self {
            Result::Text(text) => text,
            // SANITY: as above.
            Result::Long(_) => Text::Literal(Vec::new()),
        }
    }
}

impl<'p, 's> Builder<'p, 's> {
    /// `saved`: byte offsets of saved values in the instance's data.
    pub(super) fn new(analysis: &'p Analysis<'p>, tables: &'p mut Tables<'s>, saved: &'p [u32]) -> Builder<'p, 's> {
        Builder {
            analysis,
            tables,
            saved,
            longs: Vec::new(),
            texts: Vec::new(),
            buffers: Vec::new(),
            iterators: Vec::new(),
            locals: Vec::new(),
            code: Vec::new(),
            labels: 1,
            failed: OUT,
            loops: Vec::new(),
        }
    }

    /// Declares the locals; the first `parameters` of them are parameters.
    pub(super) fn declare(&mut self, locals: &[program::Local], parameters: usize) -> Vec<Parameter> {
        let mut declared = Vec::new();
        for (index, local) in locals.iter().enumerate() {
            let parameter = index < parameters;
            let name = c_name(&local.name);
            match local.ty {
                Type::Long => {
                    let id = self.long(format!("l_{name}"), parameter);
                    self.locals.push(Place::Long(id));
                    declared.push(Parameter::Long(id));
                }
                Type::String => {
                    let id = self.text(format!("s_{name}"), parameter);
                    self.locals.push(Place::Text(id, None));
                    declared.push(Parameter::Text(id));
                }
            }
        }
        declared.truncate(parameters);
        declared
    }

    fn long(&mut self, name: String, parameter: bool) -> LongId {
        self.longs.push(Variable { name, parameter });
        LongId(self.longs.len() as u32 - 1)
    }

    fn text(&mut self, name: String, parameter: bool) -> TextId {
        self.texts.push(Variable { name, parameter });
        TextId(self.texts.len() as u32 - 1)
    }

    fn buffer(&mut self, name: String) -> BufferId {
        self.buffers.push(name);
        BufferId(self.buffers.len() as u32 - 1)
    }

    pub(super) fn temporary(&mut self) -> LongId {
        self.long(format!("t{}", self.longs.len()), false)
    }

    pub(super) fn temporary_text(&mut self) -> (BufferId, TextId) {
        let name = format!("u{}", self.texts.len());
        (self.buffer(name.clone()), self.text(name, false))
    }

    pub(super) fn label(&mut self) -> LabelId {
        self.labels += 1;
        LabelId(self.labels - 1)
    }

    pub(super) fn push(&mut self, instr: Instr) {
        self.code.push(instr);
    }

    pub(super) fn check(&mut self) {
        self.push(Instr::Check(self.failed));
    }

    pub(super) fn location(&mut self, span: Span) -> LocationId {
        self.tables.location(span)
    }

    /// Runs `build` and returns what it pushed.
    pub(super) fn apart<T>(&mut self, build: impl FnOnce(&mut Self) -> T) -> (T, Vec<Instr>) {
        let before = std::mem::take(&mut self.code);
        let value = build(self);
        (value, std::mem::replace(&mut self.code, before))
    }

    /// From here on the handler may change what conditions of probe points read.
    pub(super) fn rearm(&mut self) {
        self.push(Instr::Rearm);
    }

    pub(super) fn statements(&mut self, statements: &[Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    pub(super) fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Block(statements) => self.statements(statements),
            StmtKind::Expr(expr) => self.effect(expr),
            StmtKind::If { condition, then, otherwise } => {
                let condition = self.value(condition);
                let ((), then) = self.apart(|builder| builder.statement(then));
                let ((), otherwise) = self.apart(|builder| {
                    if let Some(otherwise) = otherwise {
                        builder.statement(otherwise);
                    }
                });
                self.push(Instr::If { condition, then, otherwise });
            }
            StmtKind::Loop { condition, step, body } => {
                self.script_loop(condition.as_ref(), step.as_ref(), body, statement.span)
            }
            StmtKind::Break => {
                if let Some(&(_, out)) = self.loops.last() {
                    self.push(Instr::Goto(out));
                }
            }
            StmtKind::Continue => {
                if let Some(&(again, _)) = self.loops.last() {
                    self.push(Instr::Goto(again));
                }
            }
            StmtKind::Next => self.push(Instr::Goto(OUT)),
            StmtKind::Filter => {
                self.push(Instr::Filter);
                self.push(Instr::Goto(OUT));
            }
            StmtKind::Return(value) => {
                match value.as_ref().map(|value| self.result(value)) {
                    Some(Result::Long(value)) => self.push(Instr::ReturnLong(value)),
                    Some(Result::Text(text)) => self.return_text(text),
                    None => {}
                }
                self.push(Instr::Goto(OUT));
            }
            StmtKind::Delete(variable) => self.delete(*variable),
            StmtKind::DeleteElements { global, keys } => self.delete_elements(*global, keys, statement.span),
            StmtKind::Clear(global) => self.clear(*global, statement.span),
            StmtKind::Foreach(foreach) => self.foreach(foreach, statement.span),
            StmtKind::Try { body, message, handler } => self.script_try(body, *message, handler),
        }
    }

    fn is_local(&self, text: TextId) -> bool {
        self.locals.iter().any(|place| matches!(place, Place::Text(id, _) if *id == text))
    }

    /// Strings that are made only to be returned are made in the caller's memory.
    fn return_text(&mut self, text: Text) {
        if let Text::Variable(made) = text
            && let Some(last) = self.buffers.len().checked_sub(1)
            // An error's half of a string must not stay there when a `catch` of this function goes on without a result.
            && self.failed == OUT
            && !self.is_local(made)
            && let Some(places) = written(&mut self.code, (BufferId(last as u32), made))
        {
            places.into_iter().for_each(|place| *place = BufferId::RESULT);
            self.buffers.pop();
            self.push(Instr::ReturnWritten(made));
        } else {
            self.push(Instr::ReturnText(text));
        }
    }

    fn script_loop(&mut self, condition: Option<&Expr>, step: Option<&Expr>, body: &Stmt, span: Span) {
        let (again, out) = (self.label(), self.label());
        let location = self.location(span);
        let ((), code) = self.apart(|builder| {
            builder.charge_loop(body, location);
            if let Some(condition) = condition {
                let condition = builder.value(condition);
                let then = vec![Instr::Goto(out)];
                builder.push(Instr::If { condition: Value::Not(Box::new(condition)), then, otherwise: Vec::new() });
            }
            builder.in_loop(again, out, body);
            if let Some(step) = step {
                builder.effect(step);
            }
        });
        self.push(Instr::Loop(code));
        self.push(Instr::Label(out));
    }

    /// Statements of one turn of a loop, charged at its head.
    pub(super) fn charge_loop(&mut self, body: &Stmt, location: LocationId) {
        self.push(Instr::Charge { statements: 1 + statements_in(body), location });
        self.check();
    }

    /// The body of a loop; `continue` leads to its end.
    pub(super) fn in_loop(&mut self, again: LabelId, out: LabelId, body: &Stmt) {
        self.loops.push((again, out));
        self.statement(body);
        self.loops.pop();
        self.push(Instr::Label(again));
    }

    pub(super) fn program(&self) -> &'p Program {
        self.analysis.program
    }

    pub(super) fn iterator(&mut self, iterator: IteratorMemory) -> IteratorId {
        self.iterators.push(iterator);
        IteratorId(self.iterators.len() as u32 - 1)
    }

    /// Elements of an array at the most.
    pub(super) fn entries(&self, id: program::GlobalId) -> u32 {
        self.analysis.program.globals[id.index()].size.unwrap_or(self.analysis.limits.map_entries)
    }

    fn script_try(&mut self, body: &[Stmt], message: Option<program::Variable>, handler: &[Stmt]) {
        let (caught, done) = (self.label(), self.label());
        let outer = std::mem::replace(&mut self.failed, caught);
        self.statements(body);
        self.failed = outer;
        self.push(Instr::Goto(done));
        self.push(Instr::Label(caught));
        let (buffer, to) = self.temporary_text();
        self.push(Instr::Catch { buffer, to, uncaught: outer });
        if let Some(variable) = message {
            self.store_text(variable, Text::Variable(to));
        }
        self.statements(handler);
        self.push(Instr::Label(done));
    }

    fn delete(&mut self, variable: program::Variable) {
        let ty = match variable {
            program::Variable::Local(id) => match self.locals[id.index()] {
                Place::Long(_) => Type::Long,
                Place::Text(..) => Type::String,
            },
            program::Variable::Global(id) => self.global_type(id),
        };
        match ty {
            Type::Long => self.store_long(variable, Value::Const(0)),
            Type::String => self.store_text(variable, Text::Literal(Vec::new())),
        }
    }

    fn global_type(&self, id: program::GlobalId) -> Type {
        // SANITY: elaboration reads only scalars as variables.
        self.analysis.program.globals[id.index()].scalar().unwrap_or(Type::Long)
    }

    pub(super) fn store_long(&mut self, variable: program::Variable, value: Value) {
        let instr = match variable {
            program::Variable::Global(id) => Instr::SetGlobalLong(id, value),
            program::Variable::Local(id) => match self.locals[id.index()] {
                Place::Long(id) => Instr::SetLong(id, value),
                Place::Text(..) => return,
            },
        };
        self.push(instr);
    }

    pub(super) fn store_text(&mut self, variable: program::Variable, text: Text) {
        let instr = match variable {
            program::Variable::Global(id) => Instr::SetGlobalText(id, text),
            program::Variable::Local(id) => match (self.locals[id.index()], text) {
                (Place::Text(to, _), text @ Text::Literal(_)) => Instr::SetText(to, text),
                (Place::Text(to, _), Text::Variable(from)) if from == to => return,
                (Place::Text(to, buffer), from) => {
                    let buffer = buffer.unwrap_or_else(|| self.buffer(self.texts[to.index()].name.clone()));
                    self.locals[id.index()] = Place::Text(to, Some(buffer));
                    Instr::Copy { from, buffer, to }
                }
                (Place::Long(_), _) => return,
            },
        };
        self.push(instr);
    }

    pub(super) fn read(&mut self, variable: program::Variable) -> Result {
        match variable {
            program::Variable::Global(id) => match self.global_type(id) {
                // What it is now, whatever other CPUs do.
                Type::Long if self.analysis.single_access[id.index()] => Result::Long(self.keep(Value::Global(id))),
                Type::Long => Result::Long(Value::Global(id)),
                Type::String => Result::Text(Text::Global(id)),
            },
            program::Variable::Local(id) => match self.locals[id.index()] {
                Place::Long(id) => Result::Long(Value::Long(id)),
                Place::Text(id, _) => Result::Text(Text::Variable(id)),
            },
        }
    }

    pub(super) fn value(&mut self, expr: &Expr) -> Value {
        self.result(expr).long()
    }

    /// An expression whose value nobody uses.
    pub(super) fn effect(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Print(print) => self.print(print, expr.span),
            ExprKind::Update { op, .. } if self.is_count(expr) => self.count(*op, expr),
            ExprKind::Update { left, op, value, .. } => {
                self.update(left, *op, value, false, expr);
            }
            ExprKind::Assign(left, value) => {
                self.assign(left, value, expr.span);
            }
            ExprKind::Feed { aggregate, value } => {
                self.feed(aggregate, value);
            }
            ExprKind::EmbeddedC(code) => {
                self.embedded(code, None, expr.span);
            }
            ExprKind::Builtin(builtin, arguments) if builtin.returns.is_none() => {
                self.builtin(builtin, arguments, expr.span);
            }
            _ => {
                self.result(expr);
            }
        }
    }

    /// Whether it does no more to a counter than add to it.
    fn is_count(&self, expr: &Expr) -> bool {
        counted(expr).is_some_and(|(global, _)| self.analysis.counters[global.index()].is_some())
    }

    fn count(&mut self, op: BinaryOp, expr: &Expr) {
        if let Some((global, value)) = counted(expr) {
            let value = self.value(value);
            let value = if op == BinaryOp::Subtract { Value::Negate(Box::new(value)) } else { value };
            self.push(Instr::Count(global, value));
        }
    }

    /// Lowers in order; what a later one may change is kept in a temporary first.
    pub(super) fn in_order(&mut self, exprs: &[&Expr]) -> Vec<Result> {
        let mut results: Vec<(Result, usize)> = Vec::new();
        for expr in exprs {
            let result = self.result(expr);
            results.push((result, self.code.len()));
        }
        // From the last to the first, so that the places where temporaries go in stay right.
        let mut kept: Vec<Result> = Vec::with_capacity(results.len());
        for (result, at) in results.into_iter().rev() {
            let after = &self.code[at..];
            kept.push(match result {
                Result::Long(value) if changes_value(after, &value) => {
                    let to = self.temporary();
                    self.code.insert(at, Instr::SetLong(to, value));
                    Result::Long(Value::Long(to))
                }
                Result::Text(text) if changes_text(after, &text) => {
                    let (buffer, to) = self.temporary_text();
                    self.code.insert(at, Instr::Copy { from: text, buffer, to });
                    Result::Text(Text::Variable(to))
                }
                stable => stable,
            });
        }
        kept.reverse();
        kept
    }

    pub(super) fn result(&mut self, expr: &Expr) -> Result {
        let value = match &expr.kind {
            ExprKind::Long(value) => Value::Const(*value),
            ExprKind::String(bytes) => return Result::Text(self.literal(bytes)),
            ExprKind::Variable(variable) => return self.read(*variable),
            ExprKind::Binary(op, left, right) => return self.binary(*op, left, right, expr.span),
            ExprKind::Negate(operand) => Value::Negate(Box::new(self.value(operand))),
            ExprKind::Not(operand) => Value::Not(Box::new(self.value(operand))),
            ExprKind::Complement(operand) => Value::Complement(Box::new(self.value(operand))),
            ExprKind::Conditional(condition, then, otherwise) => return self.conditional(condition, then, otherwise),
            ExprKind::Matches { regex, text } => {
                let text = self.result(text).text();
                let to = self.temporary();
                self.push(Instr::Match { to, regex: *regex, text });
                Value::Long(to)
            }
            ExprKind::Call(function, arguments) => return self.call(*function, arguments, expr),
            ExprKind::Builtin(builtin, arguments) => {
                return self.builtin(builtin, arguments, expr.span).unwrap_or(Result::Long(Value::Const(0)));
            }
            ExprKind::Assign(left, value) => return self.assign(left, value, expr.span),
            ExprKind::Update { left, op, value, old } => return self.update(left, *op, value, *old, expr),
            ExprKind::Print(print) => {
                self.print(print, expr.span);
                Value::Const(0)
            }
            ExprKind::Format(print) => return Result::Text(self.format(print, expr.span)),
            ExprKind::Element(element) => return self.element(element, expr),
            ExprKind::Contains { global, keys } => self.contains(*global, keys, expr.span),
            ExprKind::Feed { aggregate, value } => self.feed(aggregate, value),
            ExprKind::Extract { aggregate, extractor } => {
                let keys = self.keys(&aggregate.keys);
                let to = self.temporary();
                self.map(aggregate.global, keys, MapOp::Extract(to, *extractor), expr.span);
                Value::Long(to)
            }
            ExprKind::Bucket { aggregate, index } => {
                let (keys, index) = self.keys_and(&aggregate.keys, index);
                let to = self.temporary();
                self.map(aggregate.global, keys, MapOp::Bucket(to, index.long()), expr.span);
                Value::Long(to)
            }
            ExprKind::HasBucket { aggregate, index } => {
                let (keys, index) = self.keys_and(&aggregate.keys, index);
                let to = self.temporary();
                self.map(aggregate.global, keys, MapOp::HasBucket(to, index.long()), expr.span);
                Value::Long(to)
            }
            ExprKind::Pretty { .. } | ExprKind::Chart(_) => {
                let piece = PrintPiece::Directive {
                    directive: super::tables::plain_string(),
                    width: None,
                    precision: None,
                    argument: expr.clone(),
                };
                return Result::Text(self.format(&program::Print { pieces: vec![piece] }, expr.span));
            }
            ExprKind::KernelAddress { address, per_cpu } => {
                Value::KernelAddress { address: *address, per_cpu: *per_cpu }
            }
            ExprKind::ModuleAddress { module, symbol, offset, per_cpu } => {
                let symbol = self.tables.module_symbol(module, symbol);
                Value::ModuleAddress { symbol, offset: *offset, per_cpu: *per_cpu }
            }
            ExprKind::Register { offset } => Value::Register(*offset),
            ExprKind::Saved(id) => {
                let offset = self.saved.get(id.index()).copied().unwrap_or(0);
                return match expr.ty {
                    Type::Long => Result::Long(Value::Saved(offset)),
                    Type::String => Result::Text(Text::Saved(offset)),
                };
            }
            ExprKind::Read { address, size, user } => {
                let address = self.value(address);
                let (to, location) = (self.temporary(), self.location(expr.span));
                self.push(Instr::Read { to, address, size: *size, user: *user, location });
                self.check();
                Value::Long(to)
            }
            ExprKind::SignExtend(operand, bits) => Value::SignExtend(Box::new(self.value(operand)), *bits),
            ExprKind::Bits { value, first, bits } => {
                let field = program::BitField { first: *first, bits: *bits };
                Value::Bits(Box::new(self.value(value)), field)
            }
            ExprKind::EmbeddedC(code) => return self.embedded(code, Some(expr.ty), expr.span),
            ExprKind::TookNext => {
                let to = self.temporary();
                self.push(Instr::TakeNext(to));
                Value::Long(to)
            }
        };
        Result::Long(value)
    }

    fn literal(&self, bytes: &[u8]) -> Text {
        // A literal that does not fit is cut like every string, and at its first NUL.
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Text::Literal(bytes[..end.min(self.analysis.limits.string_bytes as usize - 1)].to_vec())
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, span: Span) -> Result {
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            return Result::Long(self.short_circuit(op, left, right));
        }
        let strings = left.ty == Type::String;
        let mut operands = self.in_order(&[left, right]).into_iter();
        let (Some(left), Some(right)) = (operands.next(), operands.next()) else {
            return Result::Long(Value::Const(0));
        };
        match op {
            BinaryOp::Divide | BinaryOp::Modulo => {
                Result::Long(self.divide(op == BinaryOp::Modulo, left.long(), right.long(), span))
            }
            BinaryOp::Concatenate => Result::Text(self.concatenate(left.text(), right.text())),
            _ if strings => Result::Long(Value::Compare(op, Box::new(left.text()), Box::new(right.text()))),
            _ => Result::Long(Value::Binary(op, Box::new(left.long()), Box::new(right.long()))),
        }
    }

    pub(super) fn divide(&mut self, modulo: bool, left: Value, right: Value, span: Span) -> Value {
        let (to, location) = (self.temporary(), self.location(span));
        self.push(Instr::Divide { to, modulo, left, right, location });
        self.check();
        Value::Long(to)
    }

    pub(super) fn concatenate(&mut self, left: Text, right: Text) -> Text {
        let (buffer, to) = self.temporary_text();
        self.push(Instr::Concatenate { left, right, buffer, to });
        Text::Variable(to)
    }

    fn short_circuit(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Value {
        let left = self.value(left);
        let (right, code) = self.apart(|builder| builder.value(right));
        if code.is_empty() {
            return Value::Binary(op, Box::new(left), Box::new(right));
        }
        let to = self.temporary();
        let truth = |value| Value::Not(Box::new(Value::Not(Box::new(value))));
        self.push(Instr::SetLong(to, truth(left)));
        let mut then = code;
        then.push(Instr::SetLong(to, truth(right)));
        let (then, otherwise) = if op == BinaryOp::And { (then, Vec::new()) } else { (Vec::new(), then) };
        self.push(Instr::If { condition: Value::Long(to), then, otherwise });
        Value::Long(to)
    }

    fn conditional(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr) -> Result {
        let condition = self.value(condition);
        let (first, mut first_code) = self.apart(|builder| builder.result(then));
        let (second, mut second_code) = self.apart(|builder| builder.result(otherwise));
        let result = match (first, second) {
            (Result::Long(first), Result::Long(second)) if first_code.is_empty() && second_code.is_empty() => {
                return Result::Long(Value::Conditional(Box::new(condition), Box::new(first), Box::new(second)));
            }
            (Result::Long(first), second) => {
                let to = self.temporary();
                first_code.push(Instr::SetLong(to, first));
                second_code.push(Instr::SetLong(to, second.long()));
                Result::Long(Value::Long(to))
            }
            (Result::Text(first), second) => {
                let (buffer, to) = self.temporary_text();
                first_code.push(Instr::Copy { from: first, buffer, to });
                second_code.push(Instr::Copy { from: second.text(), buffer, to });
                Result::Text(Text::Variable(to))
            }
        };
        self.push(Instr::If { condition, then: first_code, otherwise: second_code });
        result
    }

    fn arguments(&mut self, arguments: &[Expr]) -> Vec<Argument> {
        let exprs: Vec<&Expr> = arguments.iter().collect();
        let results = self.in_order(&exprs);
        results
            .into_iter()
            .map(|result| match result {
                Result::Long(value) => Argument::Long(value),
                Result::Text(text) => Argument::Text(text),
            })
            .collect()
    }

    fn builtin(&mut self, builtin: &'static crate::builtin::Builtin, arguments: &[Expr], span: Span) -> Option<Result> {
        self.tables.defers_names |= builtin.names;
        let arguments = self.arguments(arguments);
        let (outcome, result) = self.outcome(builtin.returns);
        let location = builtin.fails.then(|| self.location(span));
        self.push(Instr::Call { callee: Callee::Builtin(builtin.symbol), arguments, outcome, location });
        if builtin.fails {
            self.check();
        }
        result
    }

    fn outcome(&mut self, returns: Option<Type>) -> (Outcome, Option<Result>) {
        match returns {
            None => (Outcome::None, None),
            Some(Type::Long) => {
                let to = self.temporary();
                (Outcome::Long(to), Some(Result::Long(Value::Long(to))))
            }
            Some(Type::String) => {
                let (buffer, to) = self.temporary_text();
                (Outcome::Text(buffer, to), Some(Result::Text(Text::Variable(to))))
            }
        }
    }

    fn call(&mut self, function: program::FunctionId, arguments: &[Expr], expr: &Expr) -> Result {
        let name = &self.analysis.functions[function.index()];
        let (name, embedded) = (name.symbol.clone(), name.embedded);
        let mut arguments = self.arguments(arguments);
        for argument in &mut arguments {
            let Argument::Text(text) = argument else { continue };
            // The callee may change a global that it was given, or (embedded C) the bytes themselves.
            if embedded || matches!(text, Text::Global(_)) {
                let (buffer, to) = self.temporary_text();
                self.push(Instr::Copy { from: text.clone(), buffer, to });
                *argument = if embedded { Argument::Bytes(buffer) } else { Argument::Text(Text::Variable(to)) };
            }
        }
        let returns = self.analysis.program.functions[function.index()].returns;
        let (outcome, result) = self.outcome(returns);
        let location = self.location(expr.span);
        let callee = if embedded { Callee::Embedded(name) } else { Callee::Routine(name) };
        self.push(Instr::Call { callee, arguments, outcome, location: Some(location) });
        if !embedded {
            self.push(Instr::CalledFrom(location));
        }
        self.check();
        result.unwrap_or(match expr.ty {
            Type::Long => Result::Long(Value::Const(0)),
            Type::String => Result::Text(Text::Literal(Vec::new())),
        })
    }

    fn embedded(&mut self, code: &program::EmbeddedC, ty: Option<Type>, span: Span) -> Result {
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        for (name, local) in &code.arguments {
            let (argument, ty) = match self.read(program::Variable::Local(*local)) {
                Result::Long(value) => (Argument::Long(value), Type::Long),
                // The C may change the bytes.
                Result::Text(text) => {
                    let (buffer, to) = self.temporary_text();
                    self.push(Instr::Copy { from: text, buffer, to });
                    (Argument::Bytes(buffer), Type::String)
                }
            };
            parameters.push((name.clone(), ty));
            arguments.push(argument);
        }
        let symbol = self.tables.embedded_expression(code, parameters, ty);
        let (outcome, result) = self.outcome(ty);
        let location = Some(self.location(span));
        self.push(Instr::Call { callee: Callee::Embedded(symbol), arguments, outcome, location });
        self.check();
        result.unwrap_or(Result::Long(Value::Const(0)))
    }

    fn assign(&mut self, left: &LValue, value: &Expr, span: Span) -> Result {
        match left {
            LValue::Variable(variable) => {
                match self.result(value) {
                    Result::Long(value) if self.is_single_access(*variable) => {
                        let value = self.keep(value);
                        self.store_long(*variable, value.clone());
                        return Result::Long(value);
                    }
                    Result::Long(value) => self.store_long(*variable, value),
                    Result::Text(text) => self.store_text(*variable, text),
                }
                self.read(*variable)
            }
            LValue::Element(element) => {
                let (keys, value) = self.keys_and(&element.keys, value);
                self.set_element(element.global, keys, value, element.span)
            }
            LValue::Memory { address, size, field, signed } => {
                let address = self.value(address);
                let address = self.keep(address);
                let value = self.value(value);
                let value = self.keep(value);
                self.write(&address, *size, *field, value.clone(), span);
                Result::Long(narrowed(value, field.map_or(size * 8, |field| field.bits), *signed))
            }
            LValue::Register { offset, size, signed } => {
                let value = self.value(value);
                let value = narrowed(self.keep(value), size * 8, *signed);
                self.push(Instr::SetRegister(*offset, value.clone()));
                Result::Long(value)
            }
        }
    }

    fn is_single_access(&self, variable: program::Variable) -> bool {
        matches!(variable, program::Variable::Global(id) if self.analysis.single_access[id.index()])
    }

    /// The value in a variable of its own, unless it is a constant.
    pub(super) fn keep(&mut self, value: Value) -> Value {
        if matches!(value, Value::Const(_)) {
            return value;
        }
        let to = self.temporary();
        self.push(Instr::SetLong(to, value));
        Value::Long(to)
    }

    fn write(&mut self, address: &Value, size: u8, field: Option<program::BitField>, value: Value, span: Span) {
        let location = self.location(span);
        let value = match field {
            None => value,
            Some(field) => {
                let old = self.temporary();
                self.push(Instr::Read { to: old, address: address.clone(), size, user: false, location });
                self.check();
                let mask = (u64::MAX >> (64 - u32::from(field.bits))) << field.first;
                let kept = and(Value::Long(old), Value::Const(!mask as i64));
                let shifted = shift_left(value, field.first);
                let new = and(shifted, Value::Const(mask as i64));
                Value::Binary(BinaryOp::BitOr, Box::new(kept), Box::new(new))
            }
        };
        self.push(Instr::Write { address: address.clone(), size, value, location });
        self.check();
    }

    fn update(&mut self, left: &LValue, op: BinaryOp, value: &Expr, old: bool, expr: &Expr) -> Result {
        if let LValue::Element(element) = left {
            return self.update_element(element, op, value, old, expr.span);
        }
        let place = self.fixed_place(left);
        // As in SystemTap, what is there is looked at when the value is known: `c += --c` adds to what is left of c.
        let value = self.result(value);
        let before = match self.load_place(&place, left, expr.span) {
            Result::Long(value) if old => Result::Long(self.keep(value)),
            other => other,
        };
        let new = match (before.clone(), value) {
            (Result::Text(current), value) => Result::Text(self.concatenate(current, value.text())),
            (Result::Long(current), value) => {
                let value = value.long();
                Result::Long(match op {
                    BinaryOp::Divide | BinaryOp::Modulo => {
                        self.divide(op == BinaryOp::Modulo, current, value, expr.span)
                    }
                    _ => Value::Binary(op, Box::new(current), Box::new(value)),
                })
            }
        };
        let result = match (&place, new) {
            (FixedPlace::Variable(variable), Result::Long(new)) => {
                self.store_long(*variable, new);
                self.read(*variable)
            }
            (FixedPlace::Variable(variable), Result::Text(new)) => {
                self.store_text(*variable, new);
                self.read(*variable)
            }
            (FixedPlace::Memory(address), new) => {
                let new = self.keep(new.long());
                if let LValue::Memory { size, field, .. } = left {
                    self.write(address, *size, *field, new.clone(), expr.span);
                }
                Result::Long(new)
            }
            (FixedPlace::Register, new) => {
                let new = self.keep(new.long());
                if let LValue::Register { offset, size, signed } = left {
                    self.push(Instr::SetRegister(*offset, narrowed(new.clone(), size * 8, *signed)));
                }
                Result::Long(new)
            }
        };
        if old { before } else { result }
    }

    /// The place with its address computed once.
    fn fixed_place(&mut self, left: &LValue) -> FixedPlace {
        match left {
            LValue::Variable(variable) => FixedPlace::Variable(*variable),
            LValue::Memory { address, .. } => {
                let address = self.value(address);
                FixedPlace::Memory(self.keep(address))
            }
            // Elements have their own way.
            LValue::Register { .. } | LValue::Element(_) => FixedPlace::Register,
        }
    }

    fn load_place(&mut self, place: &FixedPlace, left: &LValue, span: Span) -> Result {
        match (place, left) {
            (FixedPlace::Variable(variable), _) => self.read(*variable),
            (FixedPlace::Memory(address), LValue::Memory { size, field, signed, .. }) => {
                let (to, location) = (self.temporary(), self.location(span));
                self.push(Instr::Read { to, address: address.clone(), size: *size, user: false, location });
                self.check();
                let value = match field {
                    None => Value::Long(to),
                    Some(field) => Value::Bits(Box::new(Value::Long(to)), *field),
                };
                let bits = field.map_or(size * 8, |field| field.bits);
                Result::Long(narrowed(value, bits, *signed))
            }
            (_, LValue::Register { offset, size, signed }) => {
                Result::Long(narrowed(Value::Register(*offset), size * 8, *signed))
            }
            _ => Result::Long(Value::Const(0)),
        }
    }

    fn print(&mut self, print: &program::Print, span: Span) {
        let (pieces, parts) = self.pieces(print, Reader::Loader);
        if pieces.is_empty() {
            return;
        }
        let format = self.tables.format(&pieces);
        // Memory that cannot be read, an aggregate without values.
        let may_fail = parts.iter().any(|part| matches!(part, Part::Memory { .. } | Part::Histogram { .. }));
        let location = may_fail.then(|| self.location(span));
        self.push(Instr::Record { format, parts, location });
        if may_fail {
            self.check();
        }
    }

    fn format(&mut self, print: &program::Print, span: Span) -> Text {
        let (pieces, parts) = self.pieces(print, Reader::Module);
        match pieces.as_slice() {
            [] => return Text::Literal(Vec::new()),
            [Piece::Literal(bytes)] => return self.literal(bytes),
            [Piece::Directive(directive)] if *directive == super::tables::plain_string() => {
                if let [Part::Text(text)] = parts.as_slice() {
                    return text.clone();
                }
            }
            _ => {}
        }
        let table = self.tables.format_table(&pieces);
        let (buffer, to) = self.temporary_text();
        let location = self.location(span);
        self.push(Instr::Format { table, parts, buffer, to, location });
        self.check();
        Text::Variable(to)
    }

    /// The bytecode's pieces and the payload's parts, nested formats and objects put in place.
    fn pieces(&mut self, print: &program::Print, reader: Reader) -> (Vec<Piece>, Vec<Part>) {
        let program = self.analysis.program;
        let mut flat = Vec::new();
        deferred::flatten(program, &print.pieces, &mut flat);
        let named = |piece| if reader == Reader::Loader { deferred::names(program, piece) } else { None };
        let mut exprs: Vec<&Expr> = Vec::new();
        for piece in &flat {
            if let PrintPiece::Directive { width, precision, argument, .. } = piece {
                exprs.extend(width);
                exprs.extend(precision);
                match &argument.kind {
                    ExprKind::Pretty { address, .. } if is_plain(piece) => exprs.push(address),
                    ExprKind::Chart(aggregate) if is_plain(piece) => exprs.extend(&aggregate.keys),
                    _ => match named(piece) {
                        Some(names) => exprs.extend(names.exprs),
                        None => exprs.push(argument),
                    },
                }
            }
        }
        let mut results = self.in_order(&exprs).into_iter();
        let mut next = move || results.next().unwrap_or(Result::Long(Value::Const(0)));
        let mut pieces: Vec<Piece> = Vec::new();
        let mut parts = Vec::new();
        for piece in &flat {
            match piece {
                PrintPiece::Literal(bytes) => match pieces.last_mut() {
                    Some(Piece::Literal(before)) => before.extend_from_slice(bytes),
                    _ if bytes.is_empty() => {}
                    _ => pieces.push(Piece::Literal(bytes.clone())),
                },
                PrintPiece::Directive { argument: Expr { kind: ExprKind::Pretty { description, .. }, .. }, .. }
                    if is_plain(piece) =>
                {
                    let address = next().long();
                    let most = description.max_payload(self.analysis.limits.string_bytes);
                    let table = self.tables.pretty_table(description);
                    pieces.push(Piece::Pretty((**description).clone()));
                    parts.push(Part::Pretty { table, address, most });
                }
                PrintPiece::Directive { argument: Expr { kind: ExprKind::Chart(aggregate), .. }, .. }
                    if is_plain(piece) =>
                {
                    let keys = aggregate.keys.iter().map(|_| key(next())).collect();
                    let histogram = self.histogram(aggregate.global);
                    let buckets = histogram.buckets();
                    pieces.push(Piece::Histogram(histogram));
                    parts.push(Part::Histogram { map: aggregate.global, keys, buckets });
                }
                PrintPiece::Directive { directive, width, precision, .. } => {
                    if width.is_some() {
                        parts.push(Part::Long(next().long()));
                    }
                    let dynamic = precision.is_some().then(|| next().long());
                    parts.extend(dynamic.clone().map(Part::Long));
                    if let Some(names) = named(piece) {
                        self.tables.defers_names = true;
                        pieces.push(Piece::Directive(Directive {
                            conversion: names.conversion as u8,
                            ..directive.clone()
                        }));
                        parts.push(match names.of {
                            NamesOf::Address => Part::Long(next().long()),
                            NamesOf::Stack { user, whole: true } => {
                                Part::Stack { user, first: Value::Const(0), most: Value::Const(-1) }
                            }
                            NamesOf::Stack { user, whole: false } => {
                                Part::Stack { user, first: next().long(), most: next().long() }
                            }
                        });
                        continue;
                    }
                    let value = next();
                    pieces.push(Piece::Directive(directive.clone()));
                    parts.push(match (directive.conversion, value) {
                        (b'm' | b'M', value) => {
                            let (bytes, most) = match (dynamic, directive.precision) {
                                (Some(bytes), _) => (bytes, MAX_DUMP),
                                (None, Size::Fixed(bytes)) => (Value::Const(i64::from(bytes)), bytes.min(MAX_DUMP)),
                                _ => (Value::Const(1), 1),
                            };
                            Part::Memory { address: value.long(), bytes, most, user: directive.flags.sharp }
                        }
                        (_, Result::Text(text)) => Part::Text(text),
                        (_, Result::Long(value)) => Part::Long(value),
                    });
                }
            }
        }
        (pieces, parts)
    }

    /// The finished routine.
    pub(super) fn finish(
        self,
        symbol: String,
        comment: String,
        parameters: Vec<Parameter>,
        returns: Option<Type>,
        frame: Frame,
    ) -> Routine {
        Routine {
            symbol,
            comment,
            parameters,
            returns,
            longs: self.longs,
            texts: self.texts,
            buffers: self.buffers,
            iterators: self.iterators,
            frame,
            spilled: false,
            code: self.code,
        }
    }

    /// Stores a value computed at the probed function's entry.
    pub(super) fn save(&mut self, offset: u32, expr: &Expr) {
        match self.result(expr) {
            Result::Long(value) => self.push(Instr::SaveLong(offset, value)),
            Result::Text(text) => self.push(Instr::SaveText(offset, text)),
        }
    }

    /// Charges a function's statements at its start.
    pub(super) fn charge(&mut self, statements: &[Stmt], span: Span) {
        let location = self.location(span);
        self.push(Instr::Charge { statements: statements.iter().map(statements_of).sum::<u32>().max(1), location });
        self.check();
    }
}

/// Where the last instruction writes its string, if it is that one: a place for each branch.
fn written(code: &mut [Instr], string: (BufferId, TextId)) -> Option<Vec<&mut BufferId>> {
    let end = code.iter().rposition(|instr| !matches!(instr, Instr::CalledFrom(_) | Instr::Check(_)))?;
    match code.get_mut(end)? {
        Instr::Copy { buffer, to, .. }
        | Instr::Concatenate { buffer, to, .. }
        | Instr::Format { buffer, to, .. }
        | Instr::IteratorText(buffer, to, ..)
        | Instr::Map { op: MapOp::Text(buffer, to), .. }
        | Instr::Call { outcome: Outcome::Text(buffer, to), .. }
            if (*buffer, *to) == string =>
        {
            Some(vec![buffer])
        }
        Instr::If { then, otherwise, .. } => {
            let mut places = written(then, string)?;
            places.extend(written(otherwise, string)?);
            Some(places)
        }
        _ => None,
    }
}

/// Most bytes of one memory dump: a page.
const MAX_DUMP: u32 = 4096;

enum FixedPlace {
    Variable(program::Variable),
    Memory(Value),
    Register,
}

/// Who makes text of a format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Loader,
    Module,
}

/// `%s` with nothing else: its argument's text stands in the format as it is.
pub(super) fn is_plain(piece: &PrintPiece) -> bool {
    matches!(piece, PrintPiece::Directive { directive, .. } if *directive == super::tables::plain_string())
}

fn and(left: Value, right: Value) -> Value {
    Value::Binary(BinaryOp::BitAnd, Box::new(left), Box::new(right))
}

fn shift_left(value: Value, bits: u8) -> Value {
    match bits {
        0 => value,
        _ => Value::Binary(BinaryOp::ShiftLeft, Box::new(value), Box::new(Value::Const(i64::from(bits)))),
    }
}

/// What `bits` bits hold of a value, as it is read back.
fn narrowed(value: Value, bits: u8, signed: bool) -> Value {
    match (bits, signed) {
        (64, _) => value,
        (_, true) => Value::SignExtend(Box::new(value), bits),
        (_, false) => Value::Bits(Box::new(value), program::BitField { first: 0, bits }),
    }
}

/// Statements outside loops, which charge for themselves.
fn statements_of(statement: &Stmt) -> u32 {
    match &statement.kind {
        StmtKind::Block(statements) => statements.iter().map(statements_of).sum(),
        StmtKind::If { then, otherwise, .. } => {
            1 + statements_of(then).max(otherwise.as_ref().map_or(0, |otherwise| statements_of(otherwise)))
        }
        StmtKind::Try { body, handler, .. } => 1 + body.iter().chain(handler).map(statements_of).sum::<u32>(),
        _ => 1,
    }
}

fn statements_in(body: &Stmt) -> u32 {
    statements_of(body)
}
