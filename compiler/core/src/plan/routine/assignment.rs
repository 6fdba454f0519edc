// SPDX-License-Identifier: GPL-2.0-or-later

//! Assignments to variables, memory and registers; those to elements of arrays are in [`super::array`].

use super::{Builder, Local, Lowered, Scalar};
use crate::plan::code::*;
use crate::plan::error::{InternalError, Planned};
use crate::program::{self, BinaryOp, BitField, Expr, LValue};
use spile_source::Span;

/// What is read and written by one statement, with its address computed once.
enum FixedPlace {
    Variable(program::Variable),
    Memory { address: Value, size: u8, field: Option<BitField>, signed: bool },
    Register { offset: u32, size: u8, signed: bool },
}

impl Builder<'_, '_> {
    /// Stores to a variable of the same type.
    pub(super) fn store(&mut self, variable: program::Variable, new: Lowered, span: Span) -> Planned<()> {
        let instr = match (self.scalar(variable, span)?, new) {
            (Scalar::Number(global), new) => Instr::SetGlobalLong(global, new.long(span)?),
            (Scalar::Text(global), new) => Instr::SetGlobalText(global, new.text(span)?),
            (Scalar::LocalLong(to), new) => Instr::SetLong(to, new.long(span)?),
            (Scalar::LocalText(id, to), new) => match new.text(span)? {
                text @ Text::Literal(_) => Instr::SetText(to, text),
                Text::Variable(from) if from == to => return Ok(()),
                from => Instr::Copy { from, buffer: self.local_buffer(id, span)?, to },
            },
        };
        self.push(instr);
        Ok(())
    }

    /// The memory of a local string.
    fn local_buffer(&mut self, id: program::LocalId, span: Span) -> Planned<BufferId> {
        match self.local(id, span)? {
            Local::Text(_, Some(buffer)) => Ok(buffer),
            Local::Text(text, None) => {
                let buffer = self.new_buffer(self.texts[text.index()].name.clone());
                self.locals[id.index()] = Local::Text(text, Some(buffer));
                Ok(buffer)
            }
            Local::Long(_) => Err(InternalError::new("a string stored to a number", span)),
        }
    }

    /// `left = value`: the new value.
    pub(super) fn assign(&mut self, left: &LValue, value: &Expr, span: Span) -> Planned<Lowered> {
        match left {
            LValue::Variable(variable) => {
                let value = self.lower(value)?;
                if let Scalar::Number(NumberRef { access: NumberAccess::Single, .. }) = self.scalar(*variable, span)? {
                    // Not read back: others may write it in between.
                    let value = self.keep(value.long(span)?);
                    self.store(*variable, Lowered::Long(value.clone()), span)?;
                    return Ok(Lowered::Long(value));
                }
                self.store(*variable, value, span)?;
                self.read(*variable, span)
            }
            LValue::Element(element) => {
                let (keys, value) = self.keys_and(&element.keys, value)?;
                self.set_element(element.global, keys, value, element.span)
            }
            LValue::Memory { address, size, field, signed } => {
                let address = self.value(address)?;
                let address = self.keep(address);
                let value = self.value(value)?;
                let value = self.keep(value);
                self.write(&address, *size, *field, value.clone(), span);
                Ok(Lowered::Long(narrowed(value, field.map_or(size * 8, |field| field.bits), *signed)))
            }
            LValue::Register { offset, size, signed } => {
                let value = self.value(value)?;
                let value = narrowed(self.keep(value), size * 8, *signed);
                self.push(Instr::SetRegister(*offset, value.clone()));
                Ok(Lowered::Long(value))
            }
        }
    }

    fn write(&mut self, address: &Value, size: u8, field: Option<BitField>, value: Value, span: Span) {
        let location = self.location(span);
        let value = match field {
            None => value,
            Some(field) => {
                let old = self.temporary();
                self.push(Instr::Read { to: old, address: address.clone(), size, user: false, location });
                self.check();
                let mask = (u64::MAX >> (64 - u32::from(field.bits))) << field.first;
                let others = and(Value::Long(old), Value::Const(!mask as i64));
                let shifted = shift_left(value, field.first);
                let new = and(shifted, Value::Const(mask as i64));
                Value::Binary(BinaryOp::BitOr, Box::new(others), Box::new(new))
            }
        };
        self.push(Instr::Write { address: address.clone(), size, value, location });
        self.check();
    }

    /// `left op= value`: the new value, or the one before (`old`).
    pub(super) fn update(
        &mut self,
        left: &LValue,
        op: BinaryOp,
        value: &Expr,
        old: bool,
        span: Span,
    ) -> Planned<Lowered> {
        let place = match left {
            LValue::Element(element) => return self.update_element(element, op, value, old, span),
            LValue::Variable(variable) => FixedPlace::Variable(*variable),
            LValue::Memory { address, size, field, signed } => {
                let address = self.value(address)?;
                FixedPlace::Memory { address: self.keep(address), size: *size, field: *field, signed: *signed }
            }
            LValue::Register { offset, size, signed } => {
                FixedPlace::Register { offset: *offset, size: *size, signed: *signed }
            }
        };
        // As in SystemTap, what is there is looked at when the value is known: `c += --c` adds to what is left of c.
        let value = self.lower(value)?;
        let before = match self.load_place(&place, span)? {
            Lowered::Long(value) if old => Lowered::Long(self.keep(value)),
            other => other,
        };
        let new = match before.clone() {
            Lowered::Text(current) => {
                if op != BinaryOp::Concatenate {
                    return Err(InternalError::new("arithmetic with a string", span));
                }
                Lowered::Text(self.concatenate(current, value.text(span)?))
            }
            Lowered::Long(current) => {
                let value = value.long(span)?;
                Lowered::Long(match op {
                    BinaryOp::Divide | BinaryOp::Modulo => self.divide(op == BinaryOp::Modulo, current, value, span),
                    _ => Value::Binary(op, Box::new(current), Box::new(value)),
                })
            }
        };
        let result = self.store_place(place, new, span)?;
        Ok(if old { before } else { result })
    }

    fn load_place(&mut self, place: &FixedPlace, span: Span) -> Planned<Lowered> {
        match place {
            FixedPlace::Variable(variable) => self.read(*variable, span),
            FixedPlace::Memory { address, size, field, signed } => {
                let (to, location) = (self.temporary(), self.location(span));
                self.push(Instr::Read { to, address: address.clone(), size: *size, user: false, location });
                self.check();
                let value = match field {
                    None => Value::Long(to),
                    Some(field) => Value::Bits(Box::new(Value::Long(to)), *field),
                };
                let bits = field.map_or(size * 8, |field| field.bits);
                Ok(Lowered::Long(narrowed(value, bits, *signed)))
            }
            FixedPlace::Register { offset, size, signed } => {
                Ok(Lowered::Long(narrowed(Value::Register(*offset), size * 8, *signed)))
            }
        }
    }

    /// Stores the new value; gives what the whole expression is.
    fn store_place(&mut self, place: FixedPlace, new: Lowered, span: Span) -> Planned<Lowered> {
        match place {
            FixedPlace::Variable(variable) => {
                self.store(variable, new, span)?;
                self.read(variable, span)
            }
            FixedPlace::Memory { address, size, field, .. } => {
                let new = self.keep(new.long(span)?);
                self.write(&address, size, field, new.clone(), span);
                Ok(Lowered::Long(new))
            }
            FixedPlace::Register { offset, size, signed } => {
                let new = self.keep(new.long(span)?);
                self.push(Instr::SetRegister(offset, narrowed(new.clone(), size * 8, signed)));
                Ok(Lowered::Long(new))
            }
        }
    }
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
