// SPDX-License-Identifier: GPL-2.0-or-later

//! Numbers and strings as C expressions.

use super::Writer;
use crate::emit::text;
use crate::plan::code::{Key, NumberAccess, NumberRef, Text, TextRef, Value};
use crate::program::BinaryOp;

/// What an array of a map's keys begins with.
pub(super) const KEYS: &str = "(const union spile_key[])";

/// C precedence levels, as far as they matter here: operands that bind less tightly are put in parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Level {
    Any,
    Unary,
}

impl Writer<'_> {
    /// C expression for the length of a string, in bytes.
    pub(super) fn length(&self, text: &Text) -> String {
        match text {
            Text::Literal(bytes) => bytes.len().to_string(),
            Text::Own(constant) => format!("SPILE_OWN({constant}).text.length"),
            Text::Variable(id) => format!("{}.length", self.text_name(*id)),
            Text::Global(global) => format!("{}.length", global.symbol),
            Text::Saved(offset) => format!("SPILE_SAVED_LENGTH({offset})"),
        }
    }

    /// C expression of type `struct spile_string`.
    pub(super) fn text(&self, text: &Text) -> String {
        match text {
            Text::Literal(bytes) => format!("SPILE_LITERAL({})", text::literal(bytes)),
            Text::Own(constant) => format!("SPILE_OWN({constant}).text"),
            Text::Variable(id) => self.text_name(*id).to_string(),
            Text::Global(TextRef { symbol: name, .. }) => {
                format!("(struct spile_string){{ {name}.text, {name}.length }}")
            }
            Text::Saved(offset) => {
                format!("(struct spile_string){{ SPILE_SAVED_TEXT({offset}), SPILE_SAVED_LENGTH({offset}) }}")
            }
        }
    }

    /// C expression for a number; its outermost operator is not in parentheses.
    pub(super) fn value(&self, value: &Value) -> String {
        self.value_at(value, Level::Any)
    }

    /// The same as an operand: in parentheses if it binds less tightly than `level`.
    pub(super) fn value_at(&self, value: &Value, level: Level) -> String {
        let unary = |sign: &str, operand: &Value| format!("{sign}{}", self.value_at(operand, Level::Unary));
        let spelled = match value {
            Value::Const(value) => return number(*value),
            Value::Own(constant) => return format!("SPILE_OWN({constant}).number"),
            Value::Long(id) => return self.long(*id).to_string(),
            Value::Global(NumberRef { symbol: name, access, .. }) => {
                return match access {
                    NumberAccess::Counter(counter) => format!("spile_counter({counter}, {name})"),
                    NumberAccess::Single => format!("spile_single({name})"),
                    NumberAccess::Plain => name.to_string(),
                };
            }
            Value::Negate(operand) => return format!("spile_negate({})", self.value(operand)),
            Value::Not(operand) => return unary("!", operand),
            Value::Complement(operand) => return unary("~", operand),
            Value::Binary(op, left, right) => match function(op.op()) {
                Some(name) => return format!("{name}({}, {})", self.value(left), self.value(right)),
                None => {
                    // Compilers that warn of mistakes want a comparison as a condition.
                    let side = |side: &Value| match (op.op(), side) {
                        (BinaryOp::And | BinaryOp::Or, Value::Const(value)) => i32::from(*value != 0).to_string(),
                        _ => self.value_at(side, Level::Unary),
                    };
                    format!("{} {} {}", side(left), op.op().text(), side(right))
                }
            },
            Value::Compare(op, left, right) => {
                format!("spile_string_compare({}, {}) {} 0", self.text(left), self.text(right), op.text())
            }
            Value::Conditional(condition, then, otherwise) => {
                let at = |value| self.value_at(value, Level::Unary);
                format!("{} ? {} : {}", at(condition), at(then), at(otherwise))
            }
            Value::KernelAddress { address, per_cpu: false } => return format!("SPILE_KERNEL_ADDRESS({address:#x})"),
            // Since 6.15 the section is linked at an address like all others, and moves with the kernel; before, at 0.
            Value::KernelAddress { address, per_cpu: true } if (*address as i64) < 0 => {
                return format!("((spile_long)spile_per_cpu_offset() + SPILE_KERNEL_ADDRESS({address:#x}))");
            }
            Value::KernelAddress { address, per_cpu: true } => return format!("SPILE_PER_CPU_ADDRESS({address:#x})"),
            Value::ModuleAddress { symbol, offset, per_cpu } => {
                let name = if *per_cpu { "SPILE_MODULE_PER_CPU_ADDRESS" } else { "SPILE_MODULE_ADDRESS" };
                return format!("{name}({symbol}, {offset:#x})");
            }
            Value::Register(offset) => return format!("(spile_long)SPILE_REGISTER({offset})"),
            Value::Saved(offset) => return format!("SPILE_SAVED_LONG({offset})"),
            Value::SignExtend(operand, bits) => return format!("spile_sign_extend({}, {bits})", self.value(operand)),
            Value::Bits(operand, field) => {
                return format!("(spile_long)spile_bits({}, {}, {})", self.value(operand), field.first, field.bits);
            }
            Value::Length(text) => format!("(spile_long){}", self.length(text)),
        };
        if level == Level::Unary { format!("({spelled})") } else { spelled }
    }

    /// The keys as an array; 0 if there are none.
    pub(super) fn keys(&self, keys: &[Key]) -> String {
        if keys.is_empty() {
            return "SPILE_NONE".into();
        }
        let spelled: Vec<String> = keys
            .iter()
            .map(|key| match key {
                Key::Long(value) => format!("{{ .number = {} }}", self.value(value)),
                Key::Text(text) => format!("{{ .text = {} }}", self.text(text)),
                Key::TaskName | Key::Any | Key::Held(_) => "{ .number = 0 }".into(),
            })
            .collect();
        format!("{KEYS}{{ {} }}", spelled.join(", "))
    }
}

/// C literal of a number; negative ones are in parentheses.
pub(in crate::emit) fn number(value: i64) -> String {
    match value {
        i64::MIN => "(-9223372036854775807LL - 1)".into(),
        _ if value < 0 => format!("({value}LL)"),
        0..=0x7fff_ffff => value.to_string(),
        _ => format!("{value}LL"),
    }
}

/// Operators whose overflow is undefined in C are functions of `script.h`.
fn function(op: BinaryOp) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Add => "spile_add",
        BinaryOp::Subtract => "spile_subtract",
        BinaryOp::Multiply => "spile_multiply",
        BinaryOp::ShiftLeft => "spile_shift_left",
        BinaryOp::ShiftRight => "spile_shift_right",
        BinaryOp::ShiftRightLogical => "spile_shift_right_logical",
        _ => return None,
    })
}
