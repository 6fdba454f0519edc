// SPDX-License-Identifier: GPL-2.0-or-later

//! Evaluates expressions.

use super::aggregate::extract;
use super::array::agree;
use super::{Cell, DEPTH, Evaluated, Frame, Machine, Stop, error, format, pattern, text};
use crate::model::tree::*;

/// A variable whose keys have been evaluated.
pub(super) enum EvaluatedPlace {
    Local(usize),
    Global(usize),
    Element(usize, Vec<Value>),
}

impl Machine<'_> {
    /// The expression's value, with its effects on globals and locals.
    pub(super) fn evaluate(&mut self, frame: &mut Frame, expression: &Expression) -> Evaluated<Value> {
        self.step()?;
        Ok(match expression {
            Expression::Number(number, _) => Value::Long(*number),
            Expression::Text(text) => Value::Text(text.clone()),
            Expression::Read(place) => {
                let found = self.find(frame, place)?;
                self.read(frame, &found)
            }
            Expression::Unary(operator, operand) => {
                let operand = self.long(frame, operand)?;
                Value::Long(match operator {
                    Unary::Plus => operand,
                    Unary::Minus => operand.wrapping_neg(),
                    Unary::Not => i64::from(operand == 0),
                    Unary::Complement => !operand,
                })
            }
            Expression::Binary(Binary::And, left, right) => {
                Value::Long(i64::from(self.long(frame, left)? != 0 && self.long(frame, right)? != 0))
            }
            Expression::Binary(Binary::Or, left, right) => {
                Value::Long(i64::from(self.long(frame, left)? != 0 || self.long(frame, right)? != 0))
            }
            Expression::Binary(operator, left, right) => {
                let left = self.evaluate(frame, left)?;
                let right = self.evaluate(frame, right)?;
                self.binary(*operator, left, right)?
            }
            Expression::Ternary(condition, yes, no) => {
                let chosen = if self.long(frame, condition)? != 0 { yes } else { no };
                self.evaluate(frame, chosen)?
            }
            Expression::In(keys, array) => {
                let keys = self.some_keys(frame, keys)?;
                let found = match &self.globals[*array] {
                    Cell::Array(array) => array.elements().iter().any(|(own, _)| agree(own, &keys)),
                    Cell::Aggregate(array) => array.elements().iter().any(|(own, _)| agree(own, &keys)),
                    Cell::Scalar(_) => false,
                };
                Value::Long(i64::from(found))
            }
            Expression::Assign(place, value) => {
                let found = self.find(frame, place)?;
                let value = self.evaluate(frame, value)?;
                self.store(frame, &found, value)?
            }
            Expression::Update(operator, place, value) => {
                let found = self.find(frame, place)?;
                let value = self.evaluate(frame, value)?;
                // The target is read after the operand is evaluated.
                let old = self.read(frame, &found);
                let new = self.binary(*operator, old, value)?;
                self.store(frame, &found, new)?
            }
            Expression::Step(step, place) => {
                let found = self.find(frame, place)?;
                let old = self.read(frame, &found);
                let by = if matches!(step, Step::PreIncrement | Step::PostIncrement) { 1 } else { -1 };
                let new = self.binary(Binary::Add, old.clone(), Value::Long(by))?;
                let new = self.store(frame, &found, new)?;
                if matches!(step, Step::PreIncrement | Step::PreDecrement) { new } else { old }
            }
            Expression::Feed(place, value) => {
                let found = self.find(frame, place)?;
                let sample = self.long(frame, value)?;
                let (EvaluatedPlace::Local(index) | EvaluatedPlace::Global(index) | EvaluatedPlace::Element(index, _)) =
                    found;
                let keys = if let EvaluatedPlace::Element(_, keys) = found { keys } else { Vec::new() };
                if let Cell::Aggregate(array) = &mut self.globals[index] {
                    array.make(&keys, Vec::new())?.push(sample);
                }
                Value::Long(sample)
            }
            Expression::Call(function, arguments) => self.call(frame, *function, arguments)?,
            Expression::Builtin(builtin, arguments) => self.builtin(frame, *builtin, arguments)?,
            Expression::Sprint(print) => {
                let text = self.print_text(frame, print)?;
                Value::Text(self.cut(text))
            }
            Expression::Extract(extractor, place) => {
                let samples = self.samples(frame, place)?;
                Value::Long(extract(*extractor, &samples)?)
            }
            Expression::Bucket(place, index) => {
                let index = self.long(frame, index)?;
                let samples = self.samples(frame, place)?;
                let counts = self.histogram(place).count(&samples);
                let Some(count) = usize::try_from(index).ok().and_then(|index| counts.get(index)) else {
                    return error("histogram index out of range");
                };
                if samples.is_empty() {
                    return error("empty aggregate");
                }
                Value::Long(*count)
            }
            Expression::Match(text, pattern, positive) => {
                let text = self.text(frame, text)?;
                Value::Long(i64::from(pattern::is_found(pattern, &text) == *positive))
            }
        })
    }

    /// A number. (Programs are type-correct.)
    pub(super) fn long(&mut self, frame: &mut Frame, expression: &Expression) -> Evaluated<i64> {
        match self.evaluate(frame, expression)? {
            Value::Long(number) => Ok(number),
            Value::Text(_) => Err(Stop::Unfit),
        }
    }

    /// The value of an expression whose type is string.
    pub(super) fn text(&mut self, frame: &mut Frame, expression: &Expression) -> Evaluated<Vec<u8>> {
        match self.evaluate(frame, expression)? {
            Value::Text(text) => Ok(text),
            Value::Long(_) => Err(Stop::Unfit),
        }
    }

    fn binary(&mut self, operator: Binary, left: Value, right: Value) -> Evaluated<Value> {
        let (left, right) = match (left, right) {
            (Value::Long(left), Value::Long(right)) => (left, right),
            (Value::Text(left), Value::Text(right)) if operator == Binary::Concat => {
                return Ok(Value::Text(self.cut([left, right].concat())));
            }
            (left @ Value::Text(_), right @ Value::Text(_)) => {
                return Ok(Value::Long(i64::from(compared(operator, &left, &right))));
            }
            _ => return Err(Stop::Unfit),
        };
        // A shift's count is taken modulo 64.
        let count = right as u32 & 63;
        Ok(Value::Long(match operator {
            Binary::BitOr => left | right,
            Binary::BitXor => left ^ right,
            Binary::BitAnd => left & right,
            Binary::ShiftLeft => left << count,
            Binary::ShiftRight => left >> count,
            Binary::ShiftRightLogical => (left as u64 >> count) as i64,
            Binary::Add => left.wrapping_add(right),
            Binary::Subtract => left.wrapping_sub(right),
            Binary::Multiply => left.wrapping_mul(right),
            Binary::Divide | Binary::Modulo if right == 0 => return error("division by 0"),
            Binary::Divide => left.wrapping_div(right),
            Binary::Modulo => left.wrapping_rem(right),
            _ => i64::from(compared(operator, &left, &right)),
        }))
    }

    /// Evaluates the keys of a variable, and finds the cell that it names.
    pub(super) fn find(&mut self, frame: &mut Frame, place: &Variable) -> Evaluated<EvaluatedPlace> {
        Ok(match place {
            Variable::Local(index) => EvaluatedPlace::Local(*index),
            Variable::Global(index) => EvaluatedPlace::Global(*index),
            Variable::Element(index, keys) => EvaluatedPlace::Element(*index, self.keys(frame, keys)?),
        })
    }

    fn keys(&mut self, frame: &mut Frame, keys: &[Expression]) -> Evaluated<Vec<Value>> {
        keys.iter()
            .map(|key| {
                Ok(match self.evaluate(frame, key)? {
                    Value::Text(text) => Value::Text(self.cut(text)),
                    number @ Value::Long(_) => number,
                })
            })
            .collect()
    }

    /// The keys of a slice; `None` stands for `*`.
    pub(super) fn some_keys(
        &mut self,
        frame: &mut Frame,
        keys: &[Option<Expression>],
    ) -> Evaluated<Vec<Option<Value>>> {
        keys.iter()
            .map(|key| match key {
                Some(key) => Ok(self.keys(frame, std::slice::from_ref(key))?.pop()),
                None => Ok(None),
            })
            .collect()
    }

    fn read(&self, frame: &Frame, found: &EvaluatedPlace) -> Value {
        match found {
            EvaluatedPlace::Local(index) => frame.locals[*index].clone(),
            EvaluatedPlace::Global(index) => match &self.globals[*index] {
                Cell::Scalar(value) => value.clone(),
                _ => Value::Long(0),
            },
            EvaluatedPlace::Element(index, keys) => match (&self.globals[*index], &self.program.globals[*index].kind) {
                (Cell::Array(array), GlobalKind::Array { kind, .. }) => {
                    array.get(keys).cloned().unwrap_or(Value::unset(*kind))
                }
                _ => Value::Long(0),
            },
        }
    }

    /// Returns the stored value.
    pub(super) fn store(&mut self, frame: &mut Frame, found: &EvaluatedPlace, value: Value) -> Evaluated<Value> {
        let value = match value {
            Value::Text(text) => Value::Text(self.cut(text)),
            number @ Value::Long(_) => number,
        };
        match found {
            EvaluatedPlace::Local(index) => frame.locals[*index] = value.clone(),
            EvaluatedPlace::Global(index) => self.globals[*index] = Cell::Scalar(value.clone()),
            EvaluatedPlace::Element(index, keys) => {
                if let Cell::Array(array) = &mut self.globals[*index] {
                    *array.make(keys, value.clone())? = value.clone();
                }
            }
        }
        Ok(value)
    }

    /// Of an aggregate; None if the element does not exist.
    pub(super) fn samples(&mut self, frame: &mut Frame, place: &Variable) -> Evaluated<Vec<i64>> {
        let (index, keys) = match self.find(frame, place)? {
            EvaluatedPlace::Local(index) | EvaluatedPlace::Global(index) => (index, Vec::new()),
            EvaluatedPlace::Element(index, keys) => (index, keys),
        };
        match &self.globals[index] {
            Cell::Aggregate(array) => Ok(array.get(&keys).cloned().unwrap_or_default()),
            _ => Err(Stop::Unfit),
        }
    }

    /// The histogram that the aggregate declares.
    pub(super) fn histogram(&self, place: &Variable) -> Histogram {
        let (Variable::Local(index) | Variable::Global(index) | Variable::Element(index, _)) = place;
        match self.program.globals[*index].kind {
            GlobalKind::Aggregate { histogram: Some(histogram), .. } => histogram,
            _ => Histogram::Log,
        }
    }

    fn call(&mut self, frame: &mut Frame, function: usize, arguments: &[Expression]) -> Evaluated<Value> {
        let program = self.program;
        let function = &program.functions[function];
        let mut own = Frame::new(&function.body);
        for (index, argument) in arguments.iter().enumerate() {
            let value = self.evaluate(frame, argument)?;
            self.store(&mut own, &EvaluatedPlace::Local(index), value)?;
        }
        if self.depth == DEPTH {
            return Err(Stop::Unfit);
        }
        self.depth += 1;
        let outcome = self.all(&mut own, &function.body.statements);
        self.depth -= 1;
        match outcome {
            Ok(()) => Ok(Value::unset(function.returns)),
            Err(Stop::Return(Value::Text(text))) => Ok(Value::Text(self.cut(text))),
            Err(Stop::Return(number)) => Ok(number),
            // None of these leaves a function.
            Err(Stop::Next | Stop::Break | Stop::Continue) => Err(Stop::Unfit),
            Err(stop) => Err(stop),
        }
    }

    fn builtin(&mut self, frame: &mut Frame, builtin: Builtin, arguments: &[Expression]) -> Evaluated<Value> {
        let values: Vec<Value> =
            arguments.iter().map(|argument| self.evaluate(frame, argument)).collect::<Evaluated<_>>()?;
        let values: Vec<Value> = values
            .into_iter()
            .map(|value| match value {
                Value::Text(text) => Value::Text(self.cut(text)),
                number @ Value::Long(_) => number,
            })
            .collect();
        let text = match (builtin, values.as_slice()) {
            (Builtin::Strlen, [Value::Text(text)]) => return Ok(Value::Long(text.len() as i64)),
            (Builtin::Isinstr, [Value::Text(text), Value::Text(part)]) => {
                return Ok(Value::Long(i64::from(text::find(text, part).is_some())));
            }
            (Builtin::Strpos, [Value::Text(text), Value::Text(part)]) => {
                return Ok(Value::Long(text::find(text, part).map_or(-1, |at| at as i64)));
            }
            (Builtin::Stringat, [Value::Text(text), Value::Long(at)]) => {
                return Ok(Value::Long(text::stringat(text, *at)?));
            }
            (Builtin::Strtol, [Value::Text(text), Value::Long(base)]) => {
                return Ok(Value::Long(text::strtol(text, *base)));
            }
            (Builtin::Isdigit, [Value::Text(text)]) => {
                return Ok(Value::Long(i64::from(text.first().is_some_and(u8::is_ascii_digit))));
            }
            (Builtin::Substr, [Value::Text(text), Value::Long(start), Value::Long(length)]) => {
                text::substr(text, *start, *length)
            }
            (Builtin::StrReplace, [Value::Text(text), Value::Text(part), Value::Text(with)]) => {
                text::replace(text, part, with)
            }
            (Builtin::Tokenize, [Value::Text(text), Value::Text(delimiters)]) => {
                if !text.is_empty() {
                    self.untokenized = Some(text.clone());
                }
                self.next_token(delimiters)
            }
            (Builtin::TokenizeNext, [Value::Text(delimiters)]) => self.next_token(delimiters),
            (Builtin::Uid, []) => return Ok(Value::Long(self.hit.user)),
            (Builtin::Pp, []) => self.hit.point.clone().into_bytes(),
            (Builtin::Probefunc, []) => self.hit.function.as_bytes().to_vec(),
            (Builtin::Error, [Value::Text(message)]) => return Err(Stop::Error(message.clone())),
            _ => return Err(Stop::Unfit),
        };
        Ok(Value::Text(self.cut(text)))
    }

    fn next_token(&mut self, delimiters: &[u8]) -> Vec<u8> {
        let Some(text) = self.untokenized.take() else {
            return Vec::new();
        };
        let (token, rest) = text::token(&text, delimiters);
        self.untokenized = rest;
        token
    }

    /// The output of a print, without limit; also for one that only formats.
    pub(super) fn print_text(&mut self, frame: &mut Frame, print: &Print) -> Evaluated<Vec<u8>> {
        let mut plain: Vec<bool> = vec![true; print.arguments.len()];
        if let Form::Formatted(pieces) = &print.form {
            plain = pieces.iter().flat_map(arguments_of).collect();
        }
        let mut values = Vec::new();
        for (argument, plain) in print.arguments.iter().zip(plain) {
            values.push(match argument {
                Expression::Sprint(print) if plain => Value::Text(self.print_text(frame, print)?),
                _ => self.evaluate(frame, argument)?,
            });
        }
        let texts: Vec<Vec<u8>> = values
            .iter()
            .map(|value| match value {
                Value::Long(number) => number.to_string().into_bytes(),
                Value::Text(text) => text.clone(),
            })
            .collect();
        Ok(match &print.form {
            Form::Plain => texts.concat(),
            Form::Line => [texts.concat(), b"\n".to_vec()].concat(),
            Form::Delimited(delimiter) => texts.join(delimiter.as_slice()),
            Form::DelimitedLine(delimiter) => [texts.join(delimiter.as_slice()), b"\n".to_vec()].concat(),
            Form::Formatted(pieces) => formatted(pieces, &values)?,
        })
    }
}

/// The arguments of a piece; whether it is printed unchanged.
fn arguments_of(piece: &Piece) -> Vec<bool> {
    let Piece::Directive(directive) = piece else {
        return Vec::new();
    };
    let sizes = [directive.width, directive.precision];
    let mut arguments: Vec<bool> = sizes.iter().filter(|size| **size == Some(Width::Argument)).map(|_| false).collect();
    arguments.push(directive.flag.is_none() && sizes == [None, None]);
    arguments
}

fn compared<T: PartialOrd>(operator: Binary, left: &T, right: &T) -> bool {
    match operator {
        Binary::Less => left < right,
        Binary::Greater => left > right,
        Binary::LessEqual => left <= right,
        Binary::GreaterEqual => left >= right,
        Binary::Equal => left == right,
        _ => left != right,
    }
}

fn formatted(pieces: &[Piece], values: &[Value]) -> Evaluated<Vec<u8>> {
    let mut values = values.iter();
    let mut text = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(bytes) => text.extend_from_slice(bytes),
            Piece::Percent => text.push(b'%'),
            Piece::Directive(directive) => {
                let mut settled = |width: Option<Width>| match width {
                    Some(Width::Fixed(width)) => Ok(Some(width)),
                    Some(Width::Argument) => match values.next() {
                        Some(Value::Long(width @ 0..=99)) => Ok(Some(*width as usize)),
                        // A negative one is unspecified.
                        _ => Err(Stop::Unfit),
                    },
                    None => Ok(None),
                };
                let width = settled(directive.width)?.unwrap_or(0);
                let precision = settled(directive.precision)?;
                let value = values.next().ok_or(Stop::Unfit)?;
                text.extend(format::directive(directive, width, precision, value));
            }
        }
    }
    Ok(text)
}
