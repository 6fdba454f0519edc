// SPDX-License-Identifier: GPL-2.0-or-later

//! Arrays, aggregates and `foreach` as instructions.

use super::code::*;
use super::routine::{Builder, Result};
use crate::program::{
    self, BinaryOp, Element, Expr, Foreach, GlobalId, Holds, Iterated, Slice, SortBy, Type, Variable,
};
use spile_abi::format::Histogram;
use spile_source::Span;

/// A lowered key.
pub(super) fn key(result: Result) -> Key {
    match result {
        Result::Long(value) => Key::Long(value),
        Result::Text(text) => Key::Text(text),
    }
}

impl Builder<'_, '_> {
    fn program_global(&self, id: GlobalId) -> &program::Global {
        &self.program().globals[id.index()]
    }

    /// The histogram that an aggregate keeps.
    pub(super) fn histogram(&self, id: GlobalId) -> Histogram {
        let histogram = match self.program_global(id).holds {
            Holds::Stats(stats) => stats.histogram,
            Holds::Value(_) => None,
        };
        match histogram {
            Some(program::Histogram::Linear { low, high, width }) => Histogram::Linear { low, high, width },
            // SANITY: elaboration notes a histogram for each that is used.
            Some(program::Histogram::Log) | None => Histogram::Log,
        }
    }

    pub(super) fn keys(&mut self, keys: &[Expr]) -> Vec<Key> {
        let exprs: Vec<&Expr> = keys.iter().collect();
        self.in_order(&exprs).into_iter().map(key).collect()
    }

    /// Keys, and an expression evaluated after them.
    pub(super) fn keys_and(&mut self, keys: &[Expr], last: &Expr) -> (Vec<Key>, Result) {
        let exprs: Vec<&Expr> = keys.iter().chain([last]).collect();
        let mut results = self.in_order(&exprs);
        let last = results.pop().unwrap_or(Result::Long(Value::Const(0)));
        (results.into_iter().map(key).collect(), last)
    }

    fn slice(&mut self, slice: &Slice) -> Vec<Key> {
        let exprs: Vec<&Expr> = slice.iter().flatten().collect();
        let mut results = self.in_order(&exprs).into_iter();
        let keys = slice.iter().map(|expr| expr.as_ref().and_then(|_| results.next()).map_or(Key::Any, key));
        keys.collect()
    }

    pub(super) fn map(&mut self, map: GlobalId, keys: Vec<Key>, op: MapOp, span: Span) {
        let location = op.fails(&keys).then(|| self.location(span));
        self.push(Instr::Map { map, keys, op, location });
        if location.is_some() {
            self.check();
        }
    }

    pub(super) fn element(&mut self, element: &Element, expr: &Expr) -> Result {
        let keys = self.keys(&element.keys);
        self.get(element.global, keys, expr.ty, expr.span)
    }

    fn get(&mut self, map: GlobalId, keys: Vec<Key>, ty: Type, span: Span) -> Result {
        match ty {
            Type::Long => {
                let to = self.temporary();
                self.map(map, keys, MapOp::Long(to), span);
                Result::Long(Value::Long(to))
            }
            Type::String => {
                let (buffer, to) = self.temporary_text();
                self.map(map, keys, MapOp::Text(buffer, to), span);
                Result::Text(Text::Variable(to))
            }
        }
    }

    pub(super) fn contains(&mut self, map: GlobalId, keys: &Slice, span: Span) -> Value {
        let keys = self.slice(keys);
        let to = self.temporary();
        self.map(map, keys, MapOp::Has(to), span);
        Value::Long(to)
    }

    /// `aggregate <<< value`: the value.
    pub(super) fn feed(&mut self, aggregate: &Element, value: &Expr) -> Value {
        let (keys, value) = self.keys_and(&aggregate.keys, value);
        let value = value.long();
        self.map(aggregate.global, keys, MapOp::Feed(value.clone()), aggregate.span);
        value
    }

    pub(super) fn set_element(&mut self, map: GlobalId, keys: Vec<Key>, value: Result, span: Span) -> Result {
        let op = match &value {
            Result::Long(value) => MapOp::SetLong(value.clone()),
            Result::Text(text) => MapOp::SetText(text.clone()),
        };
        self.map(map, keys, op, span);
        value
    }

    pub(super) fn update_element(
        &mut self,
        element: &Element,
        op: BinaryOp,
        value: &Expr,
        old: bool,
        span: Span,
    ) -> Result {
        let (keys, value) = self.keys_and(&element.keys, value);
        let map = element.global;
        let delta = match (op, &value) {
            (BinaryOp::Add, Result::Long(value)) => Some(value.clone()),
            (BinaryOp::Subtract, Result::Long(value)) => Some(Value::Negate(Box::new(value.clone()))),
            _ => None,
        };
        if let Some(delta) = delta {
            let to = self.temporary();
            self.map(map, keys, MapOp::Add(to, delta.clone()), element.span);
            return Result::Long(if old {
                Value::Binary(BinaryOp::Subtract, Box::new(Value::Long(to)), Box::new(delta))
            } else {
                Value::Long(to)
            });
        }
        let keys = self.kept_keys(keys);
        let ty = if op == BinaryOp::Concatenate { Type::String } else { Type::Long };
        let before = self.get(map, keys.clone(), ty, element.span);
        let new = match (before.clone(), value) {
            (Result::Text(before), value) => Result::Text(self.concatenate(before, value.text())),
            (Result::Long(before), value) if matches!(op, BinaryOp::Divide | BinaryOp::Modulo) => {
                Result::Long(self.divide(op == BinaryOp::Modulo, before, value.long(), span))
            }
            (Result::Long(before), value) => {
                let to = self.temporary();
                let value = Value::Binary(op, Box::new(before), Box::new(value.long()));
                self.push(Instr::SetLong(to, value));
                Result::Long(Value::Long(to))
            }
        };
        let new = self.set_element(map, keys, new, element.span);
        if old { before } else { new }
    }

    /// Keys that are used twice: each computed once.
    fn kept_keys(&mut self, keys: Vec<Key>) -> Vec<Key> {
        keys.into_iter()
            .map(|key| match key {
                Key::Long(value) => Key::Long(self.keep(value)),
                other => other,
            })
            .collect()
    }

    pub(super) fn delete_elements(&mut self, map: GlobalId, keys: &Slice, span: Span) {
        let keys = self.slice(keys);
        self.map(map, keys, MapOp::Delete, span);
    }

    pub(super) fn clear(&mut self, map: GlobalId, span: Span) {
        self.map(map, Vec::new(), MapOp::Clear, span);
    }

    pub(super) fn foreach(&mut self, foreach: &Foreach, span: Span) {
        let (map, histogram) = match &foreach.over {
            Iterated::Array(id) => (*id, false),
            Iterated::Histogram(element) => (element.global, true),
        };
        let keys = match &foreach.over {
            Iterated::Array(_) => self.slice(&foreach.slice),
            Iterated::Histogram(element) => self.keys(&element.keys),
        };
        let limit = foreach.limit.as_ref().map(|limit| self.value(limit));
        let order = match foreach.sort {
            _ if histogram => program::MAX_BUCKETS,
            // Elements that a slice lets through are found first, as those that are sorted.
            None if foreach.slice.is_empty() => 0,
            _ => self.entries(map),
        };
        let iterator = self.iterator(IteratorMemory { order, buckets: histogram });
        let sort = match foreach.sort {
            Some((SortBy::Extractor(_), order)) if histogram => Some((SortBy::Value, order)),
            sort => sort,
        };
        let (again, out) = (self.label(), self.label());
        let location = self.location(span);
        let ((), body) = self.apart(|builder| {
            builder.charge_loop(&foreach.body, location);
            for (number, &variable) in foreach.keys.iter().enumerate() {
                builder.load(variable, iterator, Some(number as u32));
            }
            if let Some(variable) = foreach.value {
                builder.load(variable, iterator, None);
            }
            builder.in_loop(again, out, &foreach.body);
        });
        self.push(Instr::Foreach(Box::new(Loop { iterator, map, histogram, keys, sort, limit, location, body })));
        self.check();
        self.push(Instr::Label(out));
    }

    /// A key of the iterator's element, or its value, into a variable.
    fn load(&mut self, variable: Variable, iterator: IteratorId, key: Option<u32>) {
        match self.read(variable) {
            Result::Long(_) => {
                let to = self.temporary();
                self.push(Instr::IteratorLong(to, iterator, key));
                self.store_long(variable, Value::Long(to));
            }
            Result::Text(_) => {
                let (buffer, to) = self.temporary_text();
                self.push(Instr::IteratorText(buffer, to, iterator, key));
                self.store_text(variable, Text::Variable(to));
            }
        }
    }
}
