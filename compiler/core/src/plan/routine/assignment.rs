// SPDX-License-Identifier: GPL-2.0-or-later

//! Assignments to variables, memory and registers; those to elements of arrays are in [`super::array`].

use super::{Builder, Local, Scalar};
use crate::plan::code::*;
use crate::plan::error::{InternalError, Planned};
use crate::program::{self, BinaryOp, BitField, LongExpr, LongPlace, StringExpr, StringPlace};
use spile_source::Span;

/// A target that one statement reads and writes, with its address evaluated once.
enum FixedPlace {
    Variable(program::Variable),
    Memory { user: bool, address: Value, size: u8, field: Option<BitField>, signed: bool },
    Register { offset: u32, size: u8, signed: bool },
}

impl Builder<'_, '_> {
    /// Stores to a variable that holds a number.
    pub(super) fn store_long(&mut self, variable: program::Variable, new: Value, span: Span) -> Planned<()> {
        let instr = match self.scalar(variable, span)? {
            Scalar::Number(global) => Instr::SetGlobalLong(global, new),
            Scalar::LocalLong(to) => Instr::SetLong(to, new),
            Scalar::Text(_) | Scalar::LocalText(..) => {
                return Err(InternalError::new("a number stored to a string", span));
            }
        };
        self.push(instr);
        Ok(())
    }

    /// Stores to a variable that holds a string.
    pub(super) fn store_text(&mut self, variable: program::Variable, new: Text, span: Span) -> Planned<()> {
        let instr = match (self.scalar(variable, span)?, new) {
            (Scalar::Text(global), new) => Instr::SetGlobalText(global, new),
            (Scalar::LocalText(_, to), text @ Text::Literal(_)) => Instr::SetText(to, text),
            (Scalar::LocalText(_, to), Text::Variable(from)) if from == to => return Ok(()),
            (Scalar::LocalText(id, to), from) => Instr::Copy { from, buffer: self.local_buffer(id, span)?, to },
            (Scalar::Number(_) | Scalar::LocalLong(_), _) => {
                return Err(InternalError::new("a string stored to a number", span));
            }
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
    pub(super) fn assign_long(&mut self, left: &LongPlace, value: &LongExpr, span: Span) -> Planned<Value> {
        match left {
            LongPlace::Variable(variable) => {
                let value = self.value(value)?;
                if let Scalar::Number(NumberRef { access: NumberAccess::Single, .. }) = self.scalar(*variable, span)? {
                    // Not read back: others may write it in between.
                    let value = self.keep(value);
                    self.store_long(*variable, value.clone(), span)?;
                    return Ok(value);
                }
                self.store_long(*variable, value, span)?;
                self.read_long(*variable, span)
            }
            LongPlace::Element(element) => self.assign_long_element(element, value),
            LongPlace::Memory { user, address, size, field, signed } => {
                let address = self.value(address)?;
                let address = self.keep(address);
                let value = self.value(value)?;
                let value = self.keep(value);
                self.write(*user, &address, *size, *field, value.clone(), span);
                Ok(narrowed(value, field.map_or(size * 8, |field| field.bits), *signed))
            }
            LongPlace::Register { offset, size, signed } => {
                let value = self.value(value)?;
                let value = narrowed(self.keep(value), size * 8, *signed);
                self.push(Instr::SetRegister(*offset, value.clone()));
                Ok(value)
            }
        }
    }

    /// The same for a string.
    pub(super) fn assign_text(&mut self, left: &StringPlace, text: &StringExpr, span: Span) -> Planned<Text> {
        match left {
            StringPlace::Variable(variable) => {
                let text = self.text(text)?;
                self.store_text(*variable, text, span)?;
                self.read_text(*variable, span)
            }
            StringPlace::Element(element) => self.assign_text_element(element, text),
        }
    }

    fn write(&mut self, user: bool, address: &Value, size: u8, field: Option<BitField>, value: Value, span: Span) {
        let location = self.location(span);
        let value = match field {
            None => value,
            Some(field) => {
                let old = self.temporary();
                self.push(Instr::Read { to: old, address: address.clone(), size, user, location });
                self.check();
                let mask = (u64::MAX >> (64 - u32::from(field.bits))) << field.first;
                let others = and(Value::Long(old), Value::Const(!mask as i64));
                let shifted = shift_left(value, field.first);
                let new = and(shifted, Value::Const(mask as i64));
                Value::binary(Operator::BIT_OR, others, new)
            }
        };
        self.push(Instr::Write { user, address: address.clone(), size, value, location });
        self.check();
    }

    /// `left op= value`: the new value, or the one before (`old`).
    pub(super) fn update(
        &mut self,
        left: &LongPlace,
        op: BinaryOp,
        value: &LongExpr,
        old: bool,
        span: Span,
    ) -> Planned<Value> {
        let place = match left {
            LongPlace::Element(element) => return self.update_element(element, op, value, old, span),
            LongPlace::Variable(variable) => FixedPlace::Variable(*variable),
            LongPlace::Memory { user, address, size, field, signed } => {
                let address = self.value(address)?;
                let address = self.keep(address);
                FixedPlace::Memory { user: *user, address, size: *size, field: *field, signed: *signed }
            }
            LongPlace::Register { offset, size, signed } => {
                FixedPlace::Register { offset: *offset, size: *size, signed: *signed }
            }
        };
        // As in SystemTap, the old value is read after the right side is evaluated: `c += --c` adds to the decremented
        // c.
        let value = self.value(value)?;
        let before = self.load_place(&place, span)?;
        let before = if old { self.keep(before) } else { before };
        let new = self.operate(op, before.clone(), value, span);
        let result = self.store_place(place, new, span)?;
        Ok(if old { before } else { result })
    }

    /// `left .= text`: the new value.
    pub(super) fn append(&mut self, left: &StringPlace, text: &StringExpr, span: Span) -> Planned<Text> {
        match left {
            StringPlace::Element(element) => self.append_to_element(element, text),
            StringPlace::Variable(variable) => {
                // As above.
                let text = self.text(text)?;
                let before = self.read_text(*variable, span)?;
                let new = self.concatenate(before, text);
                self.store_text(*variable, new, span)?;
                self.read_text(*variable, span)
            }
        }
    }

    fn load_place(&mut self, place: &FixedPlace, span: Span) -> Planned<Value> {
        match place {
            FixedPlace::Variable(variable) => self.read_long(*variable, span),
            FixedPlace::Memory { user, address, size, field, signed } => {
                let (to, location) = (self.temporary(), self.location(span));
                self.push(Instr::Read { to, address: address.clone(), size: *size, user: *user, location });
                self.check();
                let value = match field {
                    None => Value::Long(to),
                    Some(field) => Value::Bits(Box::new(Value::Long(to)), *field),
                };
                let bits = field.map_or(size * 8, |field| field.bits);
                Ok(narrowed(value, bits, *signed))
            }
            FixedPlace::Register { offset, size, signed } => Ok(narrowed(Value::Register(*offset), size * 8, *signed)),
        }
    }

    /// Stores the new value; gives the value of the whole expression: what is then there.
    fn store_place(&mut self, place: FixedPlace, new: Value, span: Span) -> Planned<Value> {
        match place {
            FixedPlace::Variable(variable) => {
                self.store_long(variable, new, span)?;
                self.read_long(variable, span)
            }
            FixedPlace::Memory { user, address, size, field, signed } => {
                let new = self.keep(new);
                self.write(user, &address, size, field, new.clone(), span);
                Ok(narrowed(new, field.map_or(size * 8, |field| field.bits), signed))
            }
            FixedPlace::Register { offset, size, signed } => {
                let new = narrowed(self.keep(new), size * 8, signed);
                self.push(Instr::SetRegister(offset, new.clone()));
                Ok(new)
            }
        }
    }
}

fn and(left: Value, right: Value) -> Value {
    Value::binary(Operator::BIT_AND, left, right)
}

fn shift_left(value: Value, bits: u8) -> Value {
    match bits {
        0 => value,
        _ => Value::binary(Operator::SHIFT_LEFT, value, Value::Const(i64::from(bits))),
    }
}

/// The value that is read back from a field of `bits` bits.
fn narrowed(value: Value, bits: u8, signed: bool) -> Value {
    match (bits, signed) {
        (64, _) => value,
        (_, true) => Value::SignExtend(Box::new(value), bits),
        (_, false) => Value::Bits(Box::new(value), program::BitField { first: 0, bits }),
    }
}
