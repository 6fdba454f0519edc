// SPDX-License-Identifier: GPL-2.0-or-later

//! The constants in a routine's code: every number, string, error location, format and description, in a fixed order.

use crate::plan::code::{
    Argument, FormatId, Instr, ItemsId, Key, LocationId, MapOp, OwnConstant, Part, TableId, Text, Value,
};

/// A place in the code that has a constant; of a value, which could be another one, with the constant.
pub(super) enum ConstantPlace<'c> {
    Number(&'c mut Value, i64),
    Text(&'c mut Text, Vec<u8>),
    Location(&'c mut LocationId),
    Format(&'c mut FormatId),
    Table(&'c mut TableId),
    Items(&'c mut ItemsId),
}

impl ConstantPlace<'_> {
    /// Takes the constant; a placeholder remains, the same for all constants of the kind.
    pub fn take(self) -> OwnConstant {
        match self {
            ConstantPlace::Number(value, number) => {
                *value = Value::Const(0);
                OwnConstant::Long(number)
            }
            ConstantPlace::Text(text, bytes) => {
                *text = Text::Literal(Vec::new());
                OwnConstant::Text(bytes)
            }
            ConstantPlace::Location(location) => OwnConstant::Long(std::mem::replace(location, LocationId(0)).0.into()),
            ConstantPlace::Format(format) => OwnConstant::Long(std::mem::replace(format, FormatId(0)).0.into()),
            ConstantPlace::Table(table) => OwnConstant::Table(std::mem::replace(table, TableId(0))),
            ConstantPlace::Items(items) => OwnConstant::Items(std::mem::replace(items, ItemsId(0))),
        }
    }

    /// Makes it the probe's constant of that number.
    pub fn put(self, slot: u32) {
        match self {
            ConstantPlace::Number(value, _) => *value = Value::Own(slot),
            ConstantPlace::Text(text, _) => *text = Text::Own(slot),
            ConstantPlace::Location(location) => *location = LocationId::own(slot),
            ConstantPlace::Format(format) => *format = FormatId::own(slot),
            ConstantPlace::Table(table) => *table = TableId::own(slot),
            ConstantPlace::Items(items) => *items = ItemsId::own(slot),
        }
    }
}

type Visitor<'v> = dyn FnMut(ConstantPlace<'_>) + 'v;

/// Calls `see` for all constants, always in the same order.
pub(super) fn visit(code: &mut [Instr], see: &mut Visitor) {
    for instr in code {
        visit_instr(instr, see);
    }
}

fn visit_instr(instr: &mut Instr, see: &mut Visitor) {
    match instr {
        Instr::SetLong(_, value)
        | Instr::SetGlobalLong(_, value)
        | Instr::Count { value, .. }
        | Instr::SaveLong(_, value)
        | Instr::SetRegister(_, value)
        | Instr::ReturnLong(value) => visit_value(value, see),
        Instr::SetText(_, text)
        | Instr::Copy { from: text, .. }
        | Instr::SetGlobalText(_, text)
        | Instr::SaveText(_, text)
        | Instr::Match { text, .. }
        | Instr::ReturnText(text) => visit_text(text, see),
        Instr::Concatenate { left, right, .. } => {
            visit_text(left, see);
            visit_text(right, see);
        }
        Instr::Divide { left, right, location, .. } => {
            visit_value(left, see);
            visit_value(right, see);
            see(ConstantPlace::Location(location));
        }
        Instr::Read { address, location, .. } => {
            visit_value(address, see);
            see(ConstantPlace::Location(location));
        }
        Instr::Write { address, value, location, .. } => {
            visit_value(address, see);
            visit_value(value, see);
            see(ConstantPlace::Location(location));
        }
        Instr::Call { arguments, location, .. } => {
            for argument in arguments {
                match argument {
                    Argument::Long(value) => visit_value(value, see),
                    Argument::Text(text) => visit_text(text, see),
                    Argument::Bytes(_) => {}
                }
            }
            location.iter_mut().for_each(|location| see(ConstantPlace::Location(location)));
        }
        Instr::Record { format, parts, objects, location } => {
            see(ConstantPlace::Format(format));
            visit_parts(parts, see);
            visit_value(objects, see);
            location.iter_mut().for_each(|location| see(ConstantPlace::Location(location)));
        }
        Instr::Format { table, parts, location, .. } => {
            see(ConstantPlace::Table(table));
            visit_parts(parts, see);
            see(ConstantPlace::Location(location));
        }
        Instr::If { condition, then, otherwise } => {
            visit_value(condition, see);
            visit(then, see);
            visit(otherwise, see);
        }
        Instr::Map { keys, op, location, .. } => {
            visit_keys(keys, see);
            match op {
                MapOp::SetLong(value)
                | MapOp::Add(_, value)
                | MapOp::Count(value)
                | MapOp::Feed(value)
                | MapOp::Bucket(_, value)
                | MapOp::HasBucket(_, value) => {
                    visit_value(value, see);
                }
                MapOp::SetText(text) => visit_text(text, see),
                MapOp::Long(_)
                | MapOp::Text(..)
                | MapOp::Has(_)
                | MapOp::Delete
                | MapOp::Clear
                | MapOp::Extract(..) => {}
            }
            location.iter_mut().for_each(|location| see(ConstantPlace::Location(location)));
        }
        Instr::Hold { keys, late, .. } => {
            visit_keys(keys, see);
            late.iter_mut().for_each(|location| see(ConstantPlace::Location(location)));
        }
        Instr::HoldWhole { late, .. } => late.iter_mut().for_each(|location| see(ConstantPlace::Location(location))),
        Instr::Foreach(foreach) => {
            visit_keys(&mut foreach.keys, see);
            see(ConstantPlace::Location(&mut foreach.location));
            foreach.limit.iter_mut().for_each(|limit| visit_value(limit, see));
            visit(&mut foreach.body, see);
        }
        Instr::Loop(body) => visit(body, see),
        Instr::CheckCall { location, .. } | Instr::Charge { location, .. } => see(ConstantPlace::Location(location)),
        Instr::Comment(_)
        | Instr::IteratorLong(..)
        | Instr::IteratorText(..)
        | Instr::Label(_)
        | Instr::Goto(_)
        | Instr::Filter
        | Instr::Rearm
        | Instr::Check(_)
        | Instr::Catch { .. }
        | Instr::TakeNext(_)
        | Instr::SayNext
        | Instr::ReturnWritten(_) => {}
    }
}

fn visit_keys(keys: &mut [Key], see: &mut Visitor) {
    for key in keys {
        match key {
            Key::Long(value) => visit_value(value, see),
            Key::Text(text) => visit_text(text, see),
            Key::TaskName | Key::Any | Key::Held(_) => {}
        }
    }
}

fn visit_parts(parts: &mut [Part], see: &mut Visitor) {
    for part in parts {
        match part {
            Part::Long(value) => visit_value(value, see),
            Part::Pretty { table, address } => {
                see(ConstantPlace::Table(table));
                visit_value(address, see);
            }
            Part::Items { items, .. } => see(ConstantPlace::Items(items)),
            Part::Text(text) | Part::StoredStack(text) => visit_text(text, see),
            Part::Memory { address, bytes, .. } => {
                visit_value(address, see);
                visit_value(bytes, see);
            }
            Part::Stack { first, most, .. } => {
                visit_value(first, see);
                visit_value(most, see);
            }
            Part::UserFrame(address) => visit_value(address, see),
            Part::UserStack => {}
            Part::Histogram { keys, .. } => visit_keys(keys, see),
        }
    }
}

fn visit_value(value: &mut Value, see: &mut Visitor) {
    match value {
        &mut Value::Const(number) => see(ConstantPlace::Number(value, number)),
        Value::Negate(inner)
        | Value::Not(inner)
        | Value::Complement(inner)
        | Value::SignExtend(inner, _)
        | Value::Bits(inner, _) => {
            visit_value(inner, see);
        }
        Value::Binary(_, left, right) => {
            visit_value(left, see);
            visit_value(right, see);
        }
        Value::Compare(_, left, right) => {
            visit_text(left, see);
            visit_text(right, see);
        }
        Value::Conditional(condition, then, otherwise) => {
            for value in [condition, then, otherwise] {
                visit_value(value, see);
            }
        }
        Value::Length(text) => visit_text(text, see),
        Value::Own(_)
        | Value::Long(_)
        | Value::Global(_)
        | Value::KernelAddress { .. }
        | Value::ModuleAddress { .. }
        | Value::Register(_)
        | Value::Saved(_) => {}
    }
}

fn visit_text(text: &mut Text, see: &mut Visitor) {
    if let Text::Literal(bytes) = text {
        let bytes = bytes.clone();
        see(ConstantPlace::Text(text, bytes));
    }
}
