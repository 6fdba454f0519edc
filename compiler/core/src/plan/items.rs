// SPDX-License-Identifier: GPL-2.0-or-later

//! Parts of records as tables (`struct spile_item`), which the C compiler handles faster than code. A script that prints
//! `$$vars$$` of thousands of functions has few handlers then, which get their tables from their probes.

use super::code::{Instr, Item, Part, Value};
use super::tables::Tables;
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

/// The part's entry in a table; None: the part needs code.
fn item(part: &Part) -> Option<Item> {
    let (description, value) = match part {
        Part::Long(value) => (None, value),
        Part::Pretty { table, address } => (Some(*table), address),
        _ => return None,
    };
    let (sum, first, bits, signed) = match value {
        Value::Bits(operand, field) => (Sum::of(operand)?, field.first, field.bits, false),
        Value::SignExtend(operand, bits) => (Sum::of(operand)?, 0, *bits, true),
        value => (Sum::of(value)?, 0, 64, false),
    };
    Some(Item { description, register: sum.register, add: sum.add, first, bits, signed })
}

/// Replaces parts that tables can describe in all records with objects. Objects take much longer to print than numbers:
/// with them, a table costs a hit next to nothing.
pub(super) fn gather(code: &mut [Instr], tables: &mut Tables) {
    for instr in code {
        match instr {
            Instr::Record { parts, .. } | Instr::Format { parts, .. } => gather_parts(parts, tables),
            Instr::If { then, otherwise, .. } => {
                gather(then, tables);
                gather(otherwise, tables);
            }
            Instr::Foreach(foreach) => gather(&mut foreach.body, tables),
            Instr::Loop(body) => gather(body, tables),
            _ => {}
        }
    }
}

fn gather_parts(parts: &mut Vec<Part>, tables: &mut Tables) {
    if !parts.iter().any(|part| matches!(part, Part::Pretty { .. })) {
        return;
    }
    let mut gathered = Vec::new();
    let mut rest = parts.as_slice();
    while let Some(part) = rest.first() {
        let items: Vec<Item> = rest.iter().map_while(item).collect();
        let taken = items.len().max(1);
        gathered.push(if items.len() < FEWEST {
            part.clone()
        } else {
            let objects = items.iter().filter(|item| item.description.is_some()).count() as u32;
            let longs = items.len() as u32 - objects;
            Part::Items { items: tables.items(items), objects, longs }
        });
        rest = rest.get(taken..).unwrap_or_default();
    }
    *parts = gathered;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::code::{Operator, TableId};
    use spile_source::SourceMap;

    fn sum(left: Value, right: Value) -> Value {
        Value::binary(Operator::ADD, left, right)
    }

    const PLAIN: Item = Item { description: None, register: None, add: 0, first: 0, bits: 64, signed: false };

    #[test]
    fn a_register_and_numbers_are_added_up() {
        let local = sum(sum(Value::Register(152), Value::Const(8)), Value::Const(-72));
        assert_eq!(item(&Part::Long(local)), Some(Item { register: Some(152), add: -64, ..PLAIN }));
        assert_eq!(item(&Part::Long(Value::Const(5))), Some(Item { add: 5, ..PLAIN }));
        let signed = Value::SignExtend(Box::new(Value::Register(112)), 32);
        assert_eq!(item(&Part::Long(signed)), Some(Item { register: Some(112), bits: 32, signed: true, ..PLAIN }));
    }

    #[test]
    fn other_expressions_need_code() {
        let two = sum(Value::Register(112), Value::Register(104));
        assert!(item(&Part::Long(two)).is_none());
        assert!(item(&Part::Long(Value::Saved(8))).is_none() && item(&Part::UserStack).is_none());
    }

    #[test]
    fn parts_beside_objects_are_gathered() {
        let sources = SourceMap::new();
        let mut tables = Tables::new(&sources, 512);
        let long = || Part::Long(Value::Register(112));
        let object = || Part::Pretty { table: TableId(7), address: Value::Register(104) };
        let gathered = |mut parts: Vec<Part>, tables: &mut Tables| {
            gather_parts(&mut parts, tables);
            parts
        };
        assert_eq!(gathered(vec![long(), long()], &mut tables), [long(), long()]);
        assert_eq!(gathered(vec![object(), Part::UserStack], &mut tables), [object(), Part::UserStack]);
        let parts = || vec![Part::UserStack, long(), object(), long(), Part::UserStack, long()];
        let first = gathered(parts(), &mut tables);
        assert!(matches!(
            first[..],
            [Part::UserStack, Part::Items { objects: 1, longs: 2, .. }, Part::UserStack, Part::Long(_)]
        ));
        // Equal tables are one.
        assert_eq!(gathered(parts(), &mut tables), first);
    }
}
