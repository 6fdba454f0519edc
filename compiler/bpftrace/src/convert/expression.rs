// SPDX-License-Identifier: GPL-2.0-or-later

//! Expressions.

use spile_source::Span;

use super::super::ast::{Expr, ExprKind, Type};
use super::super::error::Problem;
use super::maps::{Map, MapFunction};
use super::value::{Kind, Pointee, Value};
use super::{Handler, RESERVED};

/// The script's name of a local variable.
pub fn local_name(script_maps: &[Map], name: &str) -> String {
    let taken = RESERVED.contains(&name) || script_maps.iter().any(|map| map.global == name);
    if taken { format!("{name}_local") } else { name.to_string() }
}

impl Handler<'_> {
    /// Records an expression without a counterpart; the value represents it until the translation ends with the
    /// message.
    pub fn no_counterpart(&mut self, what: impl Into<String>, span: Span, instead: impl Into<String>) -> Value {
        self.script.problems.push(Problem::NoCounterpart { what: what.into(), span, instead: instead.into() });
        Value::number("0")
    }

    /// Records a message about the expression, and returns a placeholder for it.
    pub fn wrong(&mut self, message: impl Into<String>, span: Span) -> Value {
        self.script.problems.push(Problem::Syntax { message: message.into(), span });
        Value::number("0")
    }

    /// The script's expression for an expression of bpftrace.
    pub fn value(&mut self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Number(text) => Value::number(text),
            ExprKind::Text(text) => Value::string(text),
            ExprKind::Parameter(number) => Value::number(format!("${number}")),
            ExprKind::ParameterCount => Value::number("$#"),
            ExprKind::Variable(name) => self.variable(name, expr.span),
            ExprKind::Map { name, keys } => self.map_element(name, keys),
            ExprKind::Name(name) => self.builtin(name, expr.span),
            ExprKind::Call { name, arguments } => self.call(name, arguments, expr.span),
            ExprKind::Member { base, name } => self.member(base, name),
            ExprKind::Field { base, number } => self.field(base, *number, expr.span),
            ExprKind::Index { base, index } => self.index(base, index),
            ExprKind::Unary { op, operand } => self.unary(op, operand),
            ExprKind::Step { op, before, operand } => self.step(op, *before, operand),
            ExprKind::Binary { op, left, right } => {
                let (left, right) = (self.value(left), self.value(right));
                if matches!(*op, "/" | "%") && !right.is_fixed() {
                    return self.divided(&left.text, op, &right);
                }
                Value::compound(format!("{} {op} {}", left.operand(), right.operand()))
            }
            ExprKind::Ternary { condition, then, otherwise } => {
                let (condition, then, otherwise) = (self.value(condition), self.value(then), self.value(otherwise));
                let text = format!("{} ? {} : {}", condition.operand(), then.operand(), otherwise.operand());
                Value { compound: true, ..Value::of(then.kind, text) }
            }
            ExprKind::Cast { to, operand } => self.cast(to, operand),
            // The address of the second element of an array at 0 is the size of the first.
            ExprKind::SizeOf(of) if of.is_struct() && of.pointers == 0 => {
                Value::number(format!("&@cast(0, \"{}\")[1]", of.name))
            }
            ExprKind::SizeOf(of) => Value::number(size(of).to_string()),
            ExprKind::OffsetOf(of, name) => Value::number(format!("&@cast(0, \"{}\")->{name}", of.name)),
            ExprKind::Tuple(_) => {
                self.no_counterpart("a tuple as a value", expr.span, "use a variable for each of its fields")
            }
        }
    }

    /// A quotient or remainder whose divisor may be 0.
    pub fn divided(&mut self, left: &str, op: &str, right: &Value) -> Value {
        let helper = if op == "/" { "quotient" } else { "remainder" };
        self.script.helpers.insert(helper);
        Value::number(format!("{helper}({left}, {})", right.text))
    }

    fn variable(&mut self, name: &str, span: Span) -> Value {
        let text = local_name(&self.script.maps, name);
        let Some(local) = self.locals.get(name) else { return Value::of(Kind::Unknown, text) };
        if local.entry.is_some() {
            return self
                .wrong(format!("`${name}` is used by its fields: ${name}.0 is the key, ${name}.1 the value"), span);
        }
        let mut value = Value::of(local.kind.unwrap_or(Kind::Unknown), text);
        value.pointee = local.pointee.clone();
        value.typed = local.typed;
        value
    }

    /// The keys of a map, recorded as its keys.
    pub fn keys(&mut self, name: &str, keys: &[Expr]) -> Vec<String> {
        let values: Vec<Value> = keys.iter().map(|key| self.value(key)).collect();
        let map = self.script.map(name);
        if map.keys.len() < values.len() {
            map.keys = values.iter().map(|value| value.kind).collect();
        }
        values.into_iter().map(|value| value.text).collect()
    }

    /// A map's value where it is read.
    fn map_element(&mut self, name: &str, keys: &[Expr]) -> Value {
        let keys = self.keys(name, keys);
        let map = self.script.map(name);
        Value::of(map.kind(), map.value(&map.element(&keys)))
    }

    /// The text in an array of char that is a member or a field.
    pub fn characters(&mut self, array: &Value) -> Value {
        self.script.helpers.insert("text_at");
        Value::string(format!("text_at({}, {})", array.text, super::call::TEXT_LENGTH))
    }

    /// A member. Of all members whose type nobody says here, the names of processes are arrays of char.
    fn member(&mut self, base: &Expr, name: &str) -> Value {
        let value = self.any_member(base, name);
        if value.typed && name.ends_with("comm") { self.characters(&value) } else { value }
    }

    fn any_member(&mut self, base: &Expr, name: &str) -> Value {
        let is_argument = matches!(&base.kind, ExprKind::Name(word) if word == "args");
        self.script.members |= !is_argument;
        match &base.kind {
            ExprKind::Name(word) if word == "args" => return self.argument(name, base.span),
            ExprKind::Name(word) if word == "curtask" => {
                return Value::typed(format!("@cast(task_current(), \"struct task_struct\")->{name}"));
            }
            _ => {}
        }
        let value = self.value(base);
        match &value.pointee {
            Some(Pointee::Struct(of)) => Value::typed(format!("@cast({}, \"{of}\")->{name}", value.text)),
            _ if value.typed => Value::typed(format!("{}->{name}", value.text)),
            _ => self.no_counterpart(
                format!("`->{name}` of a pointer whose type is not written"),
                base.span,
                "cast it: ((struct NAME *)pointer)->member",
            ),
        }
    }

    /// A field of a tuple: of the entry that a loop over a map is at.
    fn field(&mut self, base: &Expr, number: usize, span: Span) -> Value {
        let (variable, inner) = match &base.kind {
            ExprKind::Variable(name) => (name, None),
            ExprKind::Field { base, number: 0 } => match &base.kind {
                ExprKind::Variable(name) => (name, Some(number)),
                _ => return self.wrong("this has no fields", span),
            },
            _ => return self.wrong("this has no fields", span),
        };
        let entry = self.locals.get(variable).and_then(|local| local.entry.clone());
        let Some((keys, value)) = entry else {
            return self.no_counterpart("a tuple as a value", span, "use a variable for each of its fields");
        };
        let found = match (inner, number, keys.len()) {
            (Some(at), _, _) => keys.get(at).cloned(),
            (None, 0, 1) => keys.first().cloned(),
            (None, 1, _) => Some(value),
            _ => None,
        };
        found.unwrap_or_else(|| self.wrong(format!("`${variable}` has the fields 0, the key, and 1, the value"), span))
    }

    fn index(&mut self, base: &Expr, index: &Expr) -> Value {
        let (value, index_value) = (self.value(base), self.value(index));
        match &value.pointee {
            Some(Pointee::Number(of)) => {
                let size = size(&Type { name: of.clone(), pointers: 0 });
                self.script.helpers.insert("number_at");
                Value::number(format!("number_at({} + {size} * {}, {size})", value.operand(), index_value.operand()))
            }
            Some(Pointee::Struct(of)) => Value::typed(format!("@cast({}, \"{of}\")[{}]", value.text, index_value.text)),
            None if value.typed => Value::typed(format!("{}[{}]", value.text, index_value.text)),
            None => {
                self.no_counterpart("an element of this", base.span, "only members and context variables have elements")
            }
        }
    }

    fn unary(&mut self, op: &str, operand: &Expr) -> Value {
        let value = self.value(operand);
        match (op, &value.pointee) {
            ("*", Some(Pointee::Struct(_))) => value,
            ("*", Some(Pointee::Number(of))) => {
                let size = size(&Type { name: of.clone(), pointers: 0 });
                self.script.helpers.insert("number_at");
                Value::number(format!("number_at({}, {size})", value.text))
            }
            ("*", None) if value.typed => Value::typed(format!("{}[0]", value.text)),
            ("*", None) => {
                self.script.helpers.insert("number_at");
                Value::number(format!("number_at({}, 8)", value.text))
            }
            ("&", _) if value.typed => Value::number(format!("&{}", value.text)),
            ("&", _) => self.no_counterpart("the address of this", operand.span, "only members of structs have one"),
            _ => Value { compound: true, ..Value::number(format!("{op}{}", value.operand())) },
        }
    }

    fn step(&mut self, op: &str, before: bool, operand: &Expr) -> Value {
        if let ExprKind::Map { name, .. } = &operand.kind {
            self.script.map(name).collects.get_or_insert(MapFunction::Values(Kind::Number));
        }
        let value = self.value(operand);
        let text = if before { format!("{op}{}", value.text) } else { format!("{}{op}", value.text) };
        Value::compound(text)
    }

    fn cast(&mut self, to: &Type, operand: &Expr) -> Value {
        let value = self.value(operand);
        match (to.pointers, to.is_struct()) {
            (1, true) => Value { pointee: Some(Pointee::Struct(to.name.clone())), kind: Kind::Number, ..value },
            (1, false) => Value { pointee: Some(Pointee::Number(to.name.clone())), kind: Kind::Number, ..value },
            (0, true) => {
                self.no_counterpart("a cast to a struct", operand.span, "cast to a pointer to it: (struct NAME *)")
            }
            (0, false) => {
                let bits = 8 * size(to);
                match bits {
                    64 => Value { pointee: None, ..value },
                    _ if is_signed(to) => {
                        let shift = 64 - bits;
                        Value::compound(format!("{} << {shift} >> {shift}", value.operand()))
                    }
                    _ => Value::compound(format!("{} & {:#x}", value.operand(), (1_u64 << bits) - 1)),
                }
            }
            _ => Value { pointee: Some(Pointee::Number("uint64".to_string())), kind: Kind::Number, ..value },
        }
    }
}

/// The bytes of a type of numbers, or of a pointer.
fn size(of: &Type) -> u64 {
    let has = |part: &str| of.name.contains(part);
    match () {
        () if of.pointers > 0 || has("long") || has("64") || has("size_t") => 8,
        () if has("char") || has("bool") || has("int8") => 1,
        () if has("short") || has("16") => 2,
        () => 4,
    }
}

fn is_signed(of: &Type) -> bool {
    !of.name.starts_with('u') && of.name != "bool" && of.name != "size_t"
}
