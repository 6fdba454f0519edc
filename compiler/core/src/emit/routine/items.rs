// SPDX-License-Identifier: GPL-2.0-or-later

//! Parts of records as tables (`struct spile_item`), which the C compiler handles faster than code.

use super::print::bytecode;
use super::{Writer, expression};
use crate::plan::code::{Part, Value};
use crate::program::BinaryOp;

/// Fewer parts are not worth a table.
const FEWEST: usize = 2;

/// A register plus a number.
#[derive(Clone, Copy, Default)]
struct Sum {
    /// Offset of the register, if there is one.
    register: Option<u32>,
    add: i64,
}

impl Sum {
    /// None: another expression.
    fn of(value: &Value) -> Option<Sum> {
        match value {
            Value::Const(add) => Some(Sum { register: None, add: *add }),
            Value::Register(offset) => Some(Sum { register: Some(*offset), add: 0 }),
            Value::Binary(op, left, right) if op.op() == BinaryOp::Add => {
                let (left, right) = (Sum::of(left)?, Sum::of(right)?);
                let register = match (left.register, right.register) {
                    (Some(_), Some(_)) => return None,
                    (left, right) => left.or(right),
                };
                Some(Sum { register, add: left.add.wrapping_add(right.add) })
            }
            _ => None,
        }
    }
}

/// The initializer of a part's table entry; None: the part needs code.
fn item(part: &Part) -> Option<String> {
    let (description, value) = match part {
        Part::Long(value) => (None, value),
        Part::Pretty { table, address } if table.as_own().is_none() => (Some(*table), address),
        _ => return None,
    };
    let (sum, bits) = match value {
        Value::Bits(operand, field) => (Sum::of(operand)?, format!(".first = {}, .bits = {}", field.first, field.bits)),
        Value::SignExtend(operand, bits) => (Sum::of(operand)?, format!(".bits = {bits}, .is_signed = 1")),
        value => (Sum::of(value)?, ".bits = 64".to_string()),
    };
    let description = description.map_or_else(|| "SPILE_NONE, 0".to_string(), bytecode);
    let register = sum.register.map_or(0, |offset| offset / 8 + 1);
    let add = match sum.add {
        0 => String::new(),
        add => format!(", .add = {}", expression::number(add)),
    };
    Some(format!("{{ {description}, .registers = {register}, {bits}{add} }}"))
}

impl Writer<'_> {
    /// Writes the parts at the beginning of `parts` that a table can describe, if they are several; returns their number.
    pub(super) fn put_items(&mut self, parts: &[Part]) -> usize {
        let items: Vec<String> = parts.iter().map_while(item).collect();
        if items.len() < FEWEST {
            return 0;
        }
        self.line("{");
        self.indent += 1;
        self.line("static const struct spile_item items[] = {");
        items.iter().for_each(|item| self.line(&format!("\t{item},")));
        self.line("};");
        self.lines.push('\n');
        self.line(&format!("at = spile_put_items(c, at, items, {});", items.len()));
        self.indent -= 1;
        self.line("}");
        items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::code::Operator;

    fn sum(left: Value, right: Value) -> Value {
        Value::binary(Operator::ADD, left, right)
    }

    #[test]
    fn a_register_and_numbers_are_added_up() {
        let local = sum(sum(Value::Register(152), Value::Const(8)), Value::Const(-72));
        assert_eq!(item(&Part::Long(local)).unwrap(), "{ SPILE_NONE, 0, .registers = 20, .bits = 64, .add = (-64LL) }");
        assert_eq!(
            item(&Part::Long(Value::Const(5))).unwrap(),
            "{ SPILE_NONE, 0, .registers = 0, .bits = 64, .add = 5 }"
        );
        let signed = Value::SignExtend(Box::new(Value::Register(112)), 32);
        assert_eq!(
            item(&Part::Long(signed)).unwrap(),
            "{ SPILE_NONE, 0, .registers = 15, .bits = 32, .is_signed = 1 }"
        );
    }

    #[test]
    fn other_expressions_need_code() {
        let two = sum(Value::Register(112), Value::Register(104));
        assert!(item(&Part::Long(two)).is_none());
        assert!(item(&Part::Long(Value::Saved(8))).is_none() && item(&Part::UserStack).is_none());
    }
}
