// SPDX-License-Identifier: GPL-2.0-or-later

//! Expressions.

use super::{Builder, Lowered, Scalar};
use crate::plan::code::*;
use crate::plan::error::{InternalError, Planned};
use crate::plan::storage::GlobalRef;
use crate::plan::tables;
use crate::program::uses::counted;
use crate::program::{self, Automaton, BinaryOp, Expr, ExprKind, PrintPiece, RegexId, SavedId, Type};
use spile_source::Span;

impl Builder<'_, '_> {
    /// The number that the expression is.
    pub(super) fn value(&mut self, expr: &Expr) -> Planned<Value> {
        self.lower(expr)?.long(expr.span)
    }

    /// The string that the expression is.
    fn string(&mut self, expr: &Expr) -> Planned<Text> {
        self.lower(expr)?.text(expr.span)
    }

    /// An expression whose value is not used.
    pub(super) fn effect(&mut self, expr: &Expr) -> Planned<()> {
        match &expr.kind {
            ExprKind::Print(print) => self.print(print, expr.span)?,
            ExprKind::Update { left, op, value, .. } => {
                if !self.count(expr)? {
                    self.update(left, *op, value, false, expr.span)?;
                }
            }
            ExprKind::Assign(left, value) => {
                self.assign(left, value, expr.span)?;
            }
            ExprKind::Feed { aggregate, value } => {
                self.feed(aggregate, value)?;
            }
            ExprKind::EmbeddedC(code) => {
                self.embedded(code, None, expr.span)?;
            }
            ExprKind::Builtin(builtin, arguments) if builtin.returns.is_none() => {
                self.builtin(builtin, arguments, expr.span)?;
            }
            _ => {
                self.lower(expr)?;
            }
        }
        Ok(())
    }

    /// Adds to what each CPU counts by itself; false: the expression does something else.
    fn count(&mut self, expr: &Expr) -> Planned<bool> {
        let Some(counted) = counted(expr) else { return Ok(false) };
        match self.analysis.globals.get(counted.global) {
            GlobalRef::Number(NumberRef { access: NumberAccess::Counter(_), .. }) => {}
            GlobalRef::Map(MapRef { counted: true, .. }) => return self.count_element(&counted).map(|()| true),
            _ => return Ok(false),
        }
        let Scalar::Number(global) = self.scalar(program::Variable::Global(counted.global), expr.span)? else {
            return Ok(false);
        };
        let NumberAccess::Counter(counter) = global.access else { return Ok(false) };
        let value = self.value(counted.value)?;
        let value = if counted.subtract { Value::Negate(Box::new(value)) } else { value };
        self.push(Instr::Count { counter, global, value });
        Ok(true)
    }

    /// Evaluates in order; what a later one may change is copied to a temporary first.
    pub(super) fn in_order(&mut self, exprs: &[&Expr]) -> Planned<Vec<Lowered>> {
        let mut results: Vec<(Lowered, usize)> = Vec::new();
        for expr in exprs {
            let result = self.lower(expr)?;
            results.push((result, self.code.len()));
        }
        // From the last to the first, so that the places where temporaries go in stay right.
        let mut stable: Vec<Lowered> = Vec::with_capacity(results.len());
        for (result, at) in results.into_iter().rev() {
            let after = &self.code[at..];
            stable.push(match result {
                Lowered::Long(value) if changes_value(after, &value) => {
                    let to = self.temporary();
                    self.code.insert(at, Instr::SetLong(to, value));
                    Lowered::Long(Value::Long(to))
                }
                Lowered::Text(text) if changes_text(after, &text) => {
                    let (buffer, to) = self.temporary_text();
                    self.code.insert(at, Instr::Copy { from: text, buffer, to });
                    Lowered::Text(Text::Variable(to))
                }
                stable => stable,
            });
        }
        stable.reverse();
        Ok(stable)
    }

    pub(super) fn lower(&mut self, expr: &Expr) -> Planned<Lowered> {
        let span = expr.span;
        let value = match &expr.kind {
            ExprKind::Long(value) => Value::Const(*value),
            ExprKind::String(bytes) => return Ok(Lowered::Text(self.literal(bytes))),
            ExprKind::Variable(variable) => return self.read(*variable, span),
            ExprKind::Binary(op, left, right) => return self.binary(*op, left, right, span),
            ExprKind::Negate(operand) => Value::Negate(Box::new(self.value(operand)?)),
            ExprKind::Not(operand) => Value::Not(Box::new(self.value(operand)?)),
            ExprKind::Complement(operand) => Value::Complement(Box::new(self.value(operand)?)),
            ExprKind::Conditional(condition, then, otherwise) => return self.conditional(condition, then, otherwise),
            ExprKind::Matches { regex, text } => self.matches(*regex, text, span)?,
            ExprKind::Call(function, arguments) => return self.call(*function, arguments, expr),
            ExprKind::Builtin(builtin, arguments) => {
                return Ok(self.builtin(builtin, arguments, span)?.unwrap_or(Lowered::nothing(expr.ty)));
            }
            ExprKind::Assign(left, value) => return self.assign(left, value, span),
            ExprKind::Update { left, op, value, old } => return self.update(left, *op, value, *old, span),
            ExprKind::Print(print) => {
                self.print(print, span)?;
                return Ok(Lowered::nothing(expr.ty));
            }
            ExprKind::Format(print) => return Ok(Lowered::Text(self.format(print, span)?)),
            ExprKind::Element(element) => return self.element(element, expr),
            ExprKind::Contains { global, keys } => self.contains(*global, keys, span)?,
            ExprKind::Feed { aggregate, value } => self.feed(aggregate, value)?,
            ExprKind::Extract { aggregate, extractor } => {
                let keys = self.keys(&aggregate.keys)?;
                let to = self.temporary();
                self.map(aggregate.global, keys, MapOp::Extract(to, *extractor), span)?;
                Value::Long(to)
            }
            ExprKind::Bucket { aggregate, index } => {
                let (keys, index) = self.keys_and(&aggregate.keys, index)?;
                let to = self.temporary();
                self.map(aggregate.global, keys, MapOp::Bucket(to, index.long(span)?), span)?;
                Value::Long(to)
            }
            ExprKind::HasBucket { aggregate, index } => {
                let (keys, index) = self.keys_and(&aggregate.keys, index)?;
                let to = self.temporary();
                self.map(aggregate.global, keys, MapOp::HasBucket(to, index.long(span)?), span)?;
                Value::Long(to)
            }
            ExprKind::Pretty { .. } | ExprKind::Chart(_) => {
                let piece = PrintPiece::Directive {
                    directive: tables::plain_string(),
                    width: None,
                    precision: None,
                    argument: expr.clone(),
                };
                return Ok(Lowered::Text(self.format(&program::Print { pieces: vec![piece] }, span)?));
            }
            ExprKind::KernelAddress { address, per_cpu } => {
                Value::KernelAddress { address: *address, per_cpu: *per_cpu }
            }
            ExprKind::ModuleAddress { module, symbol, offset, per_cpu } => {
                let symbol = self.module_symbol(module, symbol);
                Value::ModuleAddress { symbol, offset: *offset, per_cpu: *per_cpu }
            }
            ExprKind::Register { offset } => Value::Register(*offset),
            ExprKind::Saved(id) => {
                let offset = self.saved_offset(*id, span)?;
                return Ok(match expr.ty {
                    Type::Long => Lowered::Long(Value::Saved(offset)),
                    Type::String => Lowered::Text(Text::Saved(offset)),
                });
            }
            ExprKind::Read { address, size, user } => {
                let address = self.value(address)?;
                let (to, location) = (self.temporary(), self.location(span));
                self.push(Instr::Read { to, address, size: *size, user: *user, location });
                self.check();
                Value::Long(to)
            }
            ExprKind::SignExtend(operand, bits) => Value::SignExtend(Box::new(self.value(operand)?), *bits),
            ExprKind::Bits { value, first, bits } => {
                let field = program::BitField { first: *first, bits: *bits };
                Value::Bits(Box::new(self.value(value)?), field)
            }
            ExprKind::EmbeddedC(code) => {
                let missing = InternalError::new("embedded C without a value", span);
                return self.embedded(code, Some(expr.ty), span)?.ok_or(missing);
            }
            ExprKind::TookNext => {
                let to = self.temporary();
                self.push(Instr::TakeNext(to));
                Value::Long(to)
            }
        };
        Ok(Lowered::Long(value))
    }

    pub(super) fn literal(&self, bytes: &[u8]) -> Text {
        // A literal that does not fit is cut like every string, and at its first NUL.
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Text::Literal(bytes[..end.min(self.analysis.limits.string_bytes as usize - 1)].to_vec())
    }

    fn matches(&mut self, regex: RegexId, text: &Expr, span: Span) -> Planned<Value> {
        let text = self.string(text)?;
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

    fn saved_offset(&self, id: SavedId, span: Span) -> Planned<u32> {
        let missing = InternalError::new("a value that is not saved at the function's entry", span);
        self.saved.get(id.index()).copied().ok_or(missing)
    }

    /// The value of a variable.
    pub(super) fn read(&mut self, variable: program::Variable, span: Span) -> Planned<Lowered> {
        Ok(match self.scalar(variable, span)? {
            // What it is now, whatever other CPUs do.
            Scalar::Number(global) if global.access == NumberAccess::Single => {
                Lowered::Long(self.keep(Value::Global(global)))
            }
            Scalar::Number(global) => Lowered::Long(Value::Global(global)),
            Scalar::Text(global) => Lowered::Text(Text::Global(global)),
            Scalar::LocalLong(id) => Lowered::Long(Value::Long(id)),
            Scalar::LocalText(_, id) => Lowered::Text(Text::Variable(id)),
        })
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, span: Span) -> Planned<Lowered> {
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            return Ok(Lowered::Long(self.short_circuit(op, left, right)?));
        }
        let mut operands = self.in_order(&[left, right])?.into_iter();
        let (Some(left), Some(right)) = (operands.next(), operands.next()) else {
            return Err(InternalError::new("an operator without operands", span));
        };
        Ok(match (op, left, right) {
            (BinaryOp::Concatenate, left, right) => {
                Lowered::Text(self.concatenate(left.text(span)?, right.text(span)?))
            }
            (BinaryOp::Divide | BinaryOp::Modulo, left, right) => {
                Lowered::Long(self.divide(op == BinaryOp::Modulo, left.long(span)?, right.long(span)?, span))
            }
            (_, Lowered::Text(left), right) => match op {
                BinaryOp::Less
                | BinaryOp::Greater
                | BinaryOp::LessEqual
                | BinaryOp::GreaterEqual
                | BinaryOp::Equal
                | BinaryOp::NotEqual => Lowered::Long(Value::Compare(op, Box::new(left), Box::new(right.text(span)?))),
                _ => return Err(InternalError::new("arithmetic with strings", span)),
            },
            (_, Lowered::Long(left), right) => {
                Lowered::Long(Value::Binary(op, Box::new(left), Box::new(right.long(span)?)))
            }
        })
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

    fn short_circuit(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Planned<Value> {
        let left = self.value(left)?;
        let (right, code) = self.apart(|builder| builder.value(right))?;
        if code.is_empty() {
            return Ok(Value::Binary(op, Box::new(left), Box::new(right)));
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

    fn conditional(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr) -> Planned<Lowered> {
        let span = otherwise.span;
        let condition = self.value(condition)?;
        let (first, mut first_code) = self.apart(|builder| builder.lower(then))?;
        let (second, mut second_code) = self.apart(|builder| builder.lower(otherwise))?;
        let result = match (first, second) {
            (Lowered::Long(first), Lowered::Long(second)) if first_code.is_empty() && second_code.is_empty() => {
                return Ok(Lowered::Long(Value::Conditional(Box::new(condition), Box::new(first), Box::new(second))));
            }
            (Lowered::Long(first), second) => {
                let to = self.temporary();
                first_code.push(Instr::SetLong(to, first));
                second_code.push(Instr::SetLong(to, second.long(span)?));
                Lowered::Long(Value::Long(to))
            }
            (Lowered::Text(first), second) => {
                let (buffer, to) = self.temporary_text();
                first_code.push(Instr::Copy { from: first, buffer, to });
                second_code.push(Instr::Copy { from: second.text(span)?, buffer, to });
                Lowered::Text(Text::Variable(to))
            }
        };
        self.push(Instr::If { condition, then: first_code, otherwise: second_code });
        Ok(result)
    }
}
