// SPDX-License-Identifier: GPL-2.0-or-later

//! Expressions.

use super::{Builder, Evaluated, ExprRef, Scalar};
use crate::plan::code::*;
use crate::plan::error::{InternalError, Planned};
use crate::plan::storage::GlobalRef;
use crate::plan::tables;
use crate::program::uses::counter_update;
use crate::program::{
    self, Automaton, BinaryOp, Expr, LongExpr, LongKind, PrintPiece, RegexId, SavedId, StringExpr, StringKind, Type,
};
use spile_source::Span;

impl Builder<'_, '_> {
    /// An expression whose value is not used.
    pub(super) fn effect(&mut self, expr: &Expr) -> Planned<()> {
        match expr {
            Expr::Long(_) if self.count(expr)? => {}
            Expr::Long(long) => self.long_effect(long)?,
            Expr::String(text) => self.text_effect(text)?,
        }
        Ok(())
    }

    fn long_effect(&mut self, expr: &LongExpr) -> Planned<()> {
        match &expr.kind {
            LongKind::Print(print) => self.print(print, expr.span)?,
            LongKind::Update { left, op, value, .. } => {
                self.update(left, *op, value, false, expr.span)?;
            }
            LongKind::EmbeddedC(code) => {
                self.embedded(code, None, expr.span)?;
            }
            _ => {
                self.value(expr)?;
            }
        }
        Ok(())
    }

    fn text_effect(&mut self, expr: &StringExpr) -> Planned<()> {
        match &expr.kind {
            StringKind::EmbeddedC(code) => {
                self.embedded(code, None, expr.span)?;
            }
            _ => {
                self.text(expr)?;
            }
        }
        Ok(())
    }

    /// Adds to what each CPU counts separately; false: the expression does something else.
    fn count(&mut self, expr: &Expr) -> Planned<bool> {
        let Some(counted) = counter_update(expr) else { return Ok(false) };
        match self.analysis.globals.get(counted.global) {
            GlobalRef::Number(NumberRef { access: NumberAccess::Counter(_), .. }) => {}
            GlobalRef::Map(MapRef { counted: true, .. }) => return self.count_element(&counted).map(|()| true),
            _ => return Ok(false),
        }
        let Scalar::Number(global) = self.scalar(program::Variable::Global(counted.global), expr.span())? else {
            return Ok(false);
        };
        let NumberAccess::Counter(counter) = global.access else { return Ok(false) };
        let value = self.value(counted.value)?;
        let value = if counted.subtract { Value::Negate(Box::new(value)) } else { value };
        self.push(Instr::Count { counter, global, value });
        Ok(true)
    }

    /// Evaluates in order; values that a later expression may change are copied to temporaries.
    pub(super) fn in_order(&mut self, exprs: &[ExprRef]) -> Planned<Vec<Evaluated>> {
        let evaluated = self.evaluated(exprs.iter().copied())?;
        Ok(self.unchanged(evaluated))
    }

    /// Evaluates in order: each value, and where the code after it begins.
    pub(super) fn evaluated<'e>(
        &mut self,
        exprs: impl Iterator<Item = ExprRef<'e>>,
    ) -> Planned<Vec<(Evaluated, usize)>> {
        let mut results = Vec::new();
        for expr in exprs {
            let result = match expr {
                ExprRef::Long(expr) => Evaluated::Long(self.value(expr)?),
                ExprRef::String(expr) => Evaluated::Text(self.text(expr)?),
            };
            results.push((result, self.code.len()));
        }
        Ok(results)
    }

    /// The values as evaluated: from temporaries if the code after them may change them.
    pub(super) fn unchanged(&mut self, evaluated: Vec<(Evaluated, usize)>) -> Vec<Evaluated> {
        // From the last to the first, so that the positions for temporaries stay valid.
        let mut stable: Vec<Evaluated> = Vec::with_capacity(evaluated.len());
        for (result, at) in evaluated.into_iter().rev() {
            stable.push(match result {
                Evaluated::Long(value) => Evaluated::Long(self.unchanged_value(value, at)),
                Evaluated::Text(text) => Evaluated::Text(self.unchanged_text(text, at)),
            });
        }
        stable.reverse();
        stable
    }

    fn unchanged_value(&mut self, value: Value, at: usize) -> Value {
        if !changes_value(&self.code[at..], &value) {
            return value;
        }
        let to = self.temporary();
        self.code.insert(at, Instr::SetLong(to, value));
        Value::Long(to)
    }

    fn unchanged_text(&mut self, text: Text, at: usize) -> Text {
        if !changes_text(&self.code[at..], &text) {
            return text;
        }
        let (buffer, to) = self.temporary_text();
        self.code.insert(at, Instr::Copy { from: text, buffer, to });
        Text::Variable(to)
    }

    /// Two numbers, evaluated in order.
    fn values(&mut self, left: &LongExpr, right: &LongExpr) -> Planned<(Value, Value)> {
        let left = self.value(left)?;
        let at = self.code.len();
        let right = self.value(right)?;
        Ok((self.unchanged_value(left, at), right))
    }

    /// Two strings, evaluated in order.
    fn texts(&mut self, left: &StringExpr, right: &StringExpr) -> Planned<(Text, Text)> {
        let left = self.text(left)?;
        let at = self.code.len();
        let right = self.text(right)?;
        Ok((self.unchanged_text(left, at), right))
    }

    /// The value of an expression that is a number.
    pub(super) fn value(&mut self, expr: &LongExpr) -> Planned<Value> {
        match self.early_value(expr)? {
            Some(value) => Ok(value),
            None => self.computed(expr),
        }
    }

    /// The value, computed here.
    pub(super) fn computed(&mut self, expr: &LongExpr) -> Planned<Value> {
        let span = expr.span;
        Ok(match &expr.kind {
            LongKind::Const(value) => Value::Const(*value),
            LongKind::Variable(variable) => self.read_long(*variable, span)?,
            LongKind::Binary(op, left, right) => self.binary(*op, left, right, span)?,
            LongKind::Compare(op, left, right) => {
                let (left, right) = self.texts(left, right)?;
                Value::Compare(*op, Box::new(left), Box::new(right))
            }
            LongKind::Negate(operand) => Value::Negate(Box::new(self.value(operand)?)),
            LongKind::Not(operand) => Value::Not(Box::new(self.value(operand)?)),
            LongKind::Complement(operand) => Value::Complement(Box::new(self.value(operand)?)),
            LongKind::Conditional(condition, then, otherwise) => self.conditional(condition, then, otherwise)?,
            LongKind::Matches { regex, text } => self.matches(*regex, text, span)?,
            LongKind::Call(function, arguments) => {
                Evaluated::long_result(self.call(*function, arguments, span)?, span)?
            }
            LongKind::Builtin(builtin, arguments) => {
                Evaluated::long_result(self.builtin(builtin, arguments, span)?, span)?
            }
            LongKind::Assign(left, value) => self.assign_long(left, value, span)?,
            LongKind::Update { left, op, value, old } => self.update(left, *op, value, *old, span)?,
            LongKind::Print(print) => {
                self.print(print, span)?;
                Value::Const(0)
            }
            LongKind::Element(element) => self.long_element(element, span)?,
            LongKind::Contains { global, keys } => self.contains(*global, keys, span)?,
            LongKind::Feed { aggregate, value } => self.feed(aggregate, value)?,
            LongKind::Extract { aggregate, extractor } => {
                let keys = self.keys(aggregate.global, &aggregate.keys)?;
                let to = self.temporary();
                self.map(aggregate.global, keys, MapOp::Extract(to, *extractor), span)?;
                Value::Long(to)
            }
            LongKind::Bucket { aggregate, index } => {
                let (keys, index) = self.keys_and_long(aggregate.global, &aggregate.keys, index)?;
                let to = self.temporary();
                self.map(aggregate.global, keys, MapOp::Bucket(to, index), span)?;
                Value::Long(to)
            }
            LongKind::HasBucket { aggregate, index } => {
                let (keys, index) = self.keys_and_long(aggregate.global, &aggregate.keys, index)?;
                let to = self.temporary();
                self.map(aggregate.global, keys, MapOp::HasBucket(to, index), span)?;
                Value::Long(to)
            }
            LongKind::KernelAddress { address, per_cpu } => {
                Value::KernelAddress { address: *address, per_cpu: *per_cpu }
            }
            LongKind::ModuleAddress { module, symbol, offset, per_cpu } => {
                let symbol = self.module_symbol(module, symbol);
                Value::ModuleAddress { symbol, offset: *offset, per_cpu: *per_cpu }
            }
            LongKind::Register { offset } => Value::Register(*offset),
            LongKind::Saved(id) => Value::Saved(self.saved_offset(*id, Type::Long, span)?),
            LongKind::Read { address, size, user } => {
                let address = self.value(address)?;
                let (to, location) = (self.temporary(), self.location(span));
                self.push(Instr::Read { to, address, size: *size, user: *user, location });
                self.check();
                Value::Long(to)
            }
            LongKind::SignExtend(operand, bits) => Value::SignExtend(Box::new(self.value(operand)?), *bits),
            LongKind::Bits { value, first, bits } => {
                let field = program::BitField { first: *first, bits: *bits };
                Value::Bits(Box::new(self.value(value)?), field)
            }
            LongKind::EmbeddedC(code) => Evaluated::long_result(self.embedded(code, Some(Type::Long), span)?, span)?,
            LongKind::TookNext => {
                let to = self.temporary();
                self.push(Instr::TakeNext(to));
                Value::Long(to)
            }
            LongKind::TakesNext => {
                self.push(Instr::SayNext);
                Value::Const(0)
            }
        })
    }

    /// The value of an expression that is a string.
    pub(super) fn text(&mut self, expr: &StringExpr) -> Planned<Text> {
        let span = expr.span;
        Ok(match &expr.kind {
            StringKind::Literal(bytes) => self.literal(bytes),
            StringKind::Variable(variable) => self.read_text(*variable, span)?,
            StringKind::Concatenate(left, right) => {
                let (left, right) = self.texts(left, right)?;
                self.concatenate(left, right)
            }
            StringKind::Conditional(condition, then, otherwise) => self.conditional_text(condition, then, otherwise)?,
            StringKind::Call(function, arguments) => {
                Evaluated::text_result(self.call(*function, arguments, span)?, span)?
            }
            StringKind::Builtin(builtin, arguments) => {
                Evaluated::text_result(self.builtin(builtin, arguments, span)?, span)?
            }
            StringKind::Assign(left, text) => self.assign_text(left, text, span)?,
            StringKind::Append(left, text) => self.append(left, text, span)?,
            StringKind::Format(print) => self.format(print, span)?,
            StringKind::Element(element) => self.text_element(element, span)?,
            StringKind::Pretty { .. } | StringKind::Chart(_) => {
                let piece = PrintPiece::Directive {
                    directive: tables::plain_string(),
                    width: None,
                    precision: None,
                    argument: expr.clone().into(),
                    name: String::new(),
                };
                self.format(&program::Print { pieces: vec![piece] }, span)?
            }
            StringKind::Saved(id) => Text::Saved(self.saved_offset(*id, Type::String, span)?),
            StringKind::EmbeddedC(code) => {
                Evaluated::text_result(self.embedded(code, Some(Type::String), span)?, span)?
            }
        })
    }

    pub(super) fn literal(&self, bytes: &[u8]) -> Text {
        // A literal that is too long is truncated like every string, and at its first NUL.
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Text::Literal(bytes[..end.min(self.analysis.limits.string_bytes as usize - 1)].to_vec())
    }

    fn matches(&mut self, regex: RegexId, text: &StringExpr, span: Span) -> Planned<Value> {
        let text = self.text(text)?;
        let missing = InternalError::new("a pattern that the program does not have", span);
        let pattern = self.analysis.program.regexes.get(regex.index()).ok_or(missing)?;
        let tagged = matches!(pattern.automaton, Automaton::Tagged(_));
        let to = self.temporary();
        self.push(Instr::Match { to, regex, tagged, text });
        Ok(Value::Long(to))
    }

    /// The number of a module's symbol.
    fn module_symbol(&mut self, module: &str, symbol: &str) -> u32 {
        let target = self.analysis.program.targets.iter().position(|target| target.name == module);
        self.tables.module_symbol(target.map(|index| program::TargetId(index as u32)), symbol)
    }

    /// The saved value with that number, which must have that type.
    fn saved_offset(&self, id: SavedId, ty: Type, span: Span) -> Planned<u32> {
        let missing = InternalError::new("a value that is not saved at the function's entry", span);
        let (saved, offset) = self.saved.get(id.index()).copied().ok_or(missing)?;
        if saved != ty {
            return Err(InternalError::new("a value of another type than was saved", span));
        }
        Ok(offset)
    }

    /// The value of a variable.
    pub(super) fn read(&mut self, variable: program::Variable, span: Span) -> Planned<Evaluated> {
        Ok(match self.scalar(variable, span)? {
            // The present value, whatever other CPUs do.
            Scalar::Number(global) if global.access == NumberAccess::Single => {
                Evaluated::Long(self.keep(Value::Global(global)))
            }
            Scalar::Number(global) => Evaluated::Long(Value::Global(global)),
            Scalar::Text(global) => Evaluated::Text(Text::Global(global)),
            Scalar::LocalLong(id) => Evaluated::Long(Value::Long(id)),
            Scalar::LocalText(_, id) => Evaluated::Text(Text::Variable(id)),
        })
    }

    /// The value of a variable that holds a number.
    pub(super) fn read_long(&mut self, variable: program::Variable, span: Span) -> Planned<Value> {
        self.read(variable, span)?.long(span)
    }

    /// The value of a variable that holds a string.
    pub(super) fn read_text(&mut self, variable: program::Variable, span: Span) -> Planned<Text> {
        self.read(variable, span)?.text(span)
    }

    fn binary(&mut self, op: BinaryOp, left: &LongExpr, right: &LongExpr, span: Span) -> Planned<Value> {
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            return self.short_circuit(op, left, right, span);
        }
        let (left, right) = self.values(left, right)?;
        Ok(self.operate(op, left, right, span))
    }

    /// `left op right`, both evaluated; a division, which can fail, goes into a temporary.
    pub(super) fn operate(&mut self, op: BinaryOp, left: Value, right: Value, span: Span) -> Value {
        if let Some(op) = Operator::of(op) {
            return Value::binary(op, left, right);
        }
        let (to, location) = (self.temporary(), self.location(span));
        self.push(Instr::Divide { to, modulo: op == BinaryOp::Modulo, left, right, location });
        self.check();
        Value::Long(to)
    }

    pub(super) fn concatenate(&mut self, left: Text, right: Text) -> Text {
        let (buffer, to) = self.temporary_text();
        self.push(Instr::Concatenate { left, right, buffer, to });
        Text::Variable(to)
    }

    fn short_circuit(&mut self, op: BinaryOp, left: &LongExpr, right: &LongExpr, span: Span) -> Planned<Value> {
        let left = self.value(left)?;
        let (right, code) = self.apart(|builder| builder.value(right))?;
        if code.is_empty() {
            return Ok(self.operate(op, left, right, span));
        }
        let to = self.temporary();
        let truth = |value| Value::Not(Box::new(Value::Not(Box::new(value))));
        self.push(Instr::SetLong(to, truth(left)));
        let mut then = code;
        then.push(Instr::SetLong(to, truth(right)));
        let (then, otherwise) = if op == BinaryOp::And { (then, Vec::new()) } else { (Vec::new(), then) };
        self.push(Instr::If { condition: Value::Long(to), then, otherwise });
        Ok(Value::Long(to))
    }

    fn conditional(&mut self, condition: &LongExpr, then: &LongExpr, otherwise: &LongExpr) -> Planned<Value> {
        let condition = self.value(condition)?;
        let (first, mut then) = self.apart(|builder| builder.value(then))?;
        let (second, mut otherwise) = self.apart(|builder| builder.value(otherwise))?;
        if then.is_empty() && otherwise.is_empty() {
            return Ok(Value::Conditional(Box::new(condition), Box::new(first), Box::new(second)));
        }
        let to = self.temporary();
        then.push(Instr::SetLong(to, first));
        otherwise.push(Instr::SetLong(to, second));
        self.push(Instr::If { condition, then, otherwise });
        Ok(Value::Long(to))
    }

    fn conditional_text(&mut self, condition: &LongExpr, then: &StringExpr, otherwise: &StringExpr) -> Planned<Text> {
        let condition = self.value(condition)?;
        let (first, mut then) = self.apart(|builder| builder.text(then))?;
        let (second, mut otherwise) = self.apart(|builder| builder.text(otherwise))?;
        let (buffer, to) = self.temporary_text();
        then.push(Instr::Copy { from: first, buffer, to });
        otherwise.push(Instr::Copy { from: second, buffer, to });
        self.push(Instr::If { condition, then, otherwise });
        Ok(Text::Variable(to))
    }
}
