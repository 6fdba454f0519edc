// SPDX-License-Identifier: GPL-2.0-or-later

//! Arrays, aggregates and `foreach`.

use super::{Builder, Evaluated, ExprRef, Held, Scalar};
use crate::plan::analysis::{self, HeldElement};
use crate::plan::code::*;
use crate::plan::error::{InternalError, Planned};
use crate::program::uses::CounterUpdate;
use crate::program::{
    self, BinaryOp, Contents, Element, Expr, Foreach, GlobalId, Iterated, LongExpr, Slice, SortBy, Stmt, StringExpr,
    StringKind, Type, Variable,
};
use spile_abi::format::Histogram;
use spile_source::Span;

/// SPILE_ORDER_STRIPES of script.h.
const STRIPES: u32 = 64;

/// The value as a key.
pub(super) fn key(result: Evaluated) -> Key {
    match result {
        Evaluated::Long(value) => Key::Long(value),
        Evaluated::Text(text) => Key::Text(text),
    }
}

fn is_task_name(key: &Expr) -> bool {
    let Expr::String(key) = key else { return false };
    matches!(&key.kind, StringKind::Builtin(builtin, _) if builtin.symbol == "execname")
}

impl Builder<'_, '_> {
    /// The histogram that an aggregate has.
    pub(super) fn histogram(&self, id: GlobalId, span: Span) -> Planned<Histogram> {
        let histogram = match self.global(id).contents {
            Contents::Stats(stats) => stats.histogram,
            Contents::Value(_) => None,
        };
        match histogram {
            Some(program::Histogram::Linear { low, high, width }) => Ok(Histogram::Linear { low, high, width }),
            Some(program::Histogram::Log) => Ok(Histogram::Log),
            None => Err(InternalError::new("an aggregate without the histogram that is asked for", span)),
        }
    }

    /// The array or aggregate; the keys must be none, or one for each of its keys, with the right types.
    pub(super) fn map_of(&self, id: GlobalId, keys: &[Key], span: Span) -> Planned<MapRef> {
        let types = &self.global(id).keys;
        let fits = |(key, ty): (&Key, &Type)| match key {
            Key::Long(_) => *ty == Type::Long,
            Key::Text(_) => *ty == Type::String,
            Key::TaskName => *ty == Type::String,
            Key::Any => true,
            Key::Held(_) => false,
        };
        if matches!(keys, [Key::Held(_)]) {
            return self.map_ref(id, span);
        }
        let fit = keys.len() == types.len() && keys.iter().zip(types).all(fits);
        if !keys.is_empty() && !fit {
            return Err(InternalError::new("keys of other types than the array has", span));
        }
        self.map_ref(id, span)
    }

    /// The element that the routine holds, if it is one of that array: then every element of the array that the routine
    /// names is that one, by keys without effect.
    fn held_of(&mut self, id: GlobalId) -> Planned<Option<Vec<Key>>> {
        let is_it = |held: &Option<Held>| held.as_ref().is_some_and(|held| held.array == id);
        let Some(index) = self.held.iter().position(is_it) else { return Ok(None) };
        let early = self.held[index].as_ref().map(|held| held.early.clone()).unwrap_or_default();
        for expr in &early {
            self.early_value(expr)?;
        }
        Ok(Some(vec![Key::Held(index as u32)]))
    }

    /// Keys of an element of the array.
    pub(super) fn keys(&mut self, id: GlobalId, keys: &[Expr]) -> Planned<Vec<Key>> {
        if let Some(held) = self.held_of(id)? {
            return Ok(held);
        }
        let exprs: Vec<ExprRef> = keys.iter().map(ExprRef::from).collect();
        Ok(self.in_order(&exprs)?.into_iter().map(key).collect())
    }

    /// Keys, and a number evaluated after them.
    pub(super) fn keys_and_long(&mut self, id: GlobalId, keys: &[Expr], last: &LongExpr) -> Planned<(Vec<Key>, Value)> {
        if let Some(held) = self.held_of(id)? {
            return Ok((held, self.value(last)?));
        }
        let keys = self.evaluated(keys.iter().map(ExprRef::from))?;
        let last = self.value(last)?;
        Ok((self.unchanged(keys).into_iter().map(key).collect(), last))
    }

    /// The same for an element that each CPU feeds separately: the runtime reads the task's name itself.
    fn fed_keys_and_long(&mut self, id: GlobalId, keys: &[Expr], last: &LongExpr) -> Planned<(Vec<Key>, Value)> {
        match keys {
            [key] if is_task_name(key) => Ok((vec![Key::TaskName], self.value(last)?)),
            _ => self.keys_and_long(id, keys, last),
        }
    }

    /// Keys, and a string evaluated after them.
    fn keys_and_text(&mut self, id: GlobalId, keys: &[Expr], last: &StringExpr) -> Planned<(Vec<Key>, Text)> {
        if let Some(held) = self.held_of(id)? {
            return Ok((held, self.text(last)?));
        }
        let keys = self.evaluated(keys.iter().map(ExprRef::from))?;
        let last = self.text(last)?;
        Ok((self.unchanged(keys).into_iter().map(key).collect(), last))
    }

    fn slice(&mut self, id: GlobalId, slice: &Slice) -> Planned<Vec<Key>> {
        if let Some(held) = self.held_of(id)? {
            return Ok(held);
        }
        let exprs: Vec<ExprRef> = slice.iter().flatten().map(ExprRef::from).collect();
        let mut results = self.in_order(&exprs)?.into_iter();
        let keys = slice.iter().map(|expr| expr.as_ref().and_then(|_| results.next()).map_or(Key::Any, key));
        Ok(keys.collect())
    }

    /// One operation on an array or aggregate, whose values must have the right type.
    pub(super) fn map(&mut self, id: GlobalId, keys: Vec<Key>, op: MapOp, span: Span) -> Planned<()> {
        if !fits(&op, self.global(id).contents) {
            return Err(InternalError::new("an operation on values of another type than the array has", span));
        }
        if matches!(keys.as_slice(), [Key::Held(_)]) && !works_on_held(&op) {
            return Err(InternalError::new("an operation on a held element that is done to others only", span));
        }
        let map = self.map_of(id, &keys, span)?;
        let location = op.fails(&keys).then(|| self.location(span));
        self.push(Instr::Map { map, keys, op, location });
        if location.is_some() {
            self.check();
        }
        Ok(())
    }

    /// The value of an element with numbers.
    pub(super) fn long_element(&mut self, element: &Element, span: Span) -> Planned<Value> {
        let keys = self.keys(element.global, &element.keys)?;
        self.get_long(element.global, keys, span)
    }

    /// The value of an element with strings.
    pub(super) fn text_element(&mut self, element: &Element, span: Span) -> Planned<Text> {
        let keys = self.keys(element.global, &element.keys)?;
        self.get_text(element.global, keys, span)
    }

    fn get_long(&mut self, map: GlobalId, keys: Vec<Key>, span: Span) -> Planned<Value> {
        let to = self.temporary();
        self.map(map, keys, MapOp::Long(to), span)?;
        Ok(Value::Long(to))
    }

    fn get_text(&mut self, map: GlobalId, keys: Vec<Key>, span: Span) -> Planned<Text> {
        let (buffer, to) = self.temporary_text();
        self.map(map, keys, MapOp::Text(buffer, to), span)?;
        Ok(Text::Variable(to))
    }

    pub(super) fn contains(&mut self, map: GlobalId, keys: &Slice, span: Span) -> Planned<Value> {
        let keys = self.slice(map, keys)?;
        let to = self.temporary();
        self.map(map, keys, MapOp::Has(to), span)?;
        Ok(Value::Long(to))
    }

    /// `aggregate <<< value`: the value.
    pub(super) fn feed(&mut self, aggregate: &Element, value: &LongExpr) -> Planned<Value> {
        let (keys, value) = self.fed_keys_and_long(aggregate.global, &aggregate.keys, value)?;
        self.map(aggregate.global, keys, MapOp::Feed(value.clone()), aggregate.span)?;
        Ok(value)
    }

    /// `array[keys] = value`: the value.
    pub(super) fn assign_long_element(&mut self, element: &Element, value: &LongExpr) -> Planned<Value> {
        let (keys, value) = self.keys_and_long(element.global, &element.keys, value)?;
        self.map(element.global, keys, MapOp::SetLong(value.clone()), element.span)?;
        Ok(value)
    }

    /// The same for a string.
    pub(super) fn assign_text_element(&mut self, element: &Element, text: &StringExpr) -> Planned<Text> {
        let (keys, text) = self.keys_and_text(element.global, &element.keys, text)?;
        self.map(element.global, keys, MapOp::SetText(text.clone()), element.span)?;
        Ok(text)
    }

    /// Takes the stripes that the handler takes before this statement; None: behind its lead-in.
    pub(in crate::plan) fn hold(&mut self, before: Option<&Stmt>, span: Span) -> Planned<()> {
        let (Some(probe), analysis) = (self.handler, self.analysis) else { return Ok(()) };
        for held in analysis.held(probe, before) {
            match held {
                analysis::Held::Element(element) => self.hold_element(&element, span)?,
                analysis::Held::Whole { array, late } => {
                    let late = late.then(|| self.location(span));
                    let map = self.map_ref(array, span)?;
                    self.push(Instr::HoldWhole { number: self.whole, map, late });
                    self.whole += 1;
                }
            }
        }
        Ok(())
    }

    fn hold_element(&mut self, held: &HeldElement, span: Span) -> Planned<()> {
        let keys = self.keys(held.array, held.keys)?;
        let map = self.map_of(held.array, &keys, span)?;
        let HeldElement { array, called, drops, several, .. } = *held;
        let late = held.late.then(|| self.location(span));
        self.push(Instr::Hold { held: self.held.len() as u32, map, keys, drops, several, late });
        // Changes that functions make to the element are not visible in the cached copy; nor are those by the keys of another
        // element that is the same.
        let early = held.early.iter().copied().cloned().collect();
        self.held.push((!called && several.is_none()).then_some(Held { array, early }));
        Ok(())
    }

    /// Adds to an element that each CPU counts separately.
    pub(super) fn count_element(&mut self, counted: &CounterUpdate) -> Planned<()> {
        let (keys, value) = self.fed_keys_and_long(counted.global, counted.keys, counted.value)?;
        let value = if counted.subtract { Value::Negate(Box::new(value)) } else { value };
        self.map(counted.global, keys, MapOp::Count(value), counted.span)
    }

    /// `array[keys] op= value`: the new value, or the one before (`old`).
    pub(super) fn update_element(
        &mut self,
        element: &Element,
        op: BinaryOp,
        value: &LongExpr,
        old: bool,
        span: Span,
    ) -> Planned<Value> {
        let (keys, value) = self.keys_and_long(element.global, &element.keys, value)?;
        let map = element.global;
        let delta = match op {
            BinaryOp::Add => Some(value.clone()),
            BinaryOp::Subtract => Some(Value::Negate(Box::new(value.clone()))),
            _ => None,
        };
        if let Some(delta) = delta {
            let to = self.temporary();
            self.map(map, keys, MapOp::Add(to, delta.clone()), element.span)?;
            return Ok(if old { Value::binary(Operator::SUBTRACT, Value::Long(to), delta) } else { Value::Long(to) });
        }
        let keys = self.computed_keys(keys);
        let before = self.get_long(map, keys.clone(), element.span)?;
        let new = match self.operate(op, before.clone(), value, span) {
            quotient @ Value::Long(_) => quotient,
            value => {
                let to = self.temporary();
                self.push(Instr::SetLong(to, value));
                Value::Long(to)
            }
        };
        self.map(map, keys, MapOp::SetLong(new.clone()), element.span)?;
        Ok(if old { before } else { new })
    }

    /// `array[keys] .= text`: the new value.
    pub(super) fn append_to_element(&mut self, element: &Element, text: &StringExpr) -> Planned<Text> {
        let (keys, text) = self.keys_and_text(element.global, &element.keys, text)?;
        let keys = self.computed_keys(keys);
        let before = self.get_text(element.global, keys.clone(), element.span)?;
        let new = self.concatenate(before, text);
        self.map(element.global, keys, MapOp::SetText(new.clone()), element.span)?;
        Ok(new)
    }

    /// Keys that are used twice: each evaluated once.
    fn computed_keys(&mut self, keys: Vec<Key>) -> Vec<Key> {
        keys.into_iter()
            .map(|key| match key {
                Key::Long(value) => Key::Long(self.keep(value)),
                other => other,
            })
            .collect()
    }

    pub(super) fn delete_elements(&mut self, map: GlobalId, keys: &Slice, span: Span) -> Planned<()> {
        let keys = self.slice(map, keys)?;
        self.map(map, keys, MapOp::Delete, span)
    }

    pub(super) fn clear(&mut self, map: GlobalId, span: Span) -> Planned<()> {
        self.map(map, Vec::new(), MapOp::Clear, span)
    }

    pub(super) fn foreach(&mut self, foreach: &Foreach, span: Span) -> Planned<()> {
        let (id, histogram) = match &foreach.over {
            Iterated::Array(id) => (*id, false),
            Iterated::Histogram(element) => (element.global, true),
        };
        let keys = match &foreach.over {
            Iterated::Array(_) => self.slice(id, &foreach.slice)?,
            Iterated::Histogram(element) => self.keys(id, &element.keys)?,
        };
        let map = self.map_of(id, &keys, span)?;
        let limit = foreach.limit.as_ref().map(|limit| self.value(limit)).transpose()?;
        let order = match foreach.sort {
            _ if histogram => program::MAX_BUCKETS,
            // Elements that match a slice are collected first, like those that are sorted.
            None if foreach.slice.is_empty() && map.striped => STRIPES,
            None if foreach.slice.is_empty() => 0,
            _ => self.global(id).size.unwrap_or(self.analysis.limits.map_entries),
        };
        let iterator = self.new_iterator(IteratorMemory { order, buckets: histogram });
        let sort = match foreach.sort {
            Some((SortBy::Extractor(_), order)) if histogram => Some((SortBy::Value, order)),
            sort => sort,
        };
        let (again, out) = (self.label(), self.label());
        let location = self.location(span);
        let ((), body) = self.apart(|builder| {
            builder.charge_loop(&foreach.body, location);
            for (number, &variable) in foreach.keys.iter().enumerate() {
                builder.load(variable, iterator, Some(number as u32), span)?;
            }
            if let Some(variable) = foreach.value {
                builder.load(variable, iterator, None, span)?;
            }
            builder.in_loop(again, out, &foreach.body)
        })?;
        self.push(Instr::Foreach(Box::new(Loop { iterator, map, histogram, keys, sort, limit, location, body })));
        self.check();
        self.push(Instr::Label(out));
        Ok(())
    }

    /// Copies a key of the iterator's element, or its value, to a variable.
    fn load(&mut self, variable: Variable, iterator: IteratorId, key: Option<u32>, span: Span) -> Planned<()> {
        match self.scalar(variable, span)? {
            Scalar::LocalLong(_) | Scalar::Number(_) => {
                let to = self.temporary();
                self.push(Instr::IteratorLong(to, iterator, key));
                self.store_long(variable, Value::Long(to), span)
            }
            Scalar::LocalText(..) | Scalar::Text(_) => {
                let (buffer, to) = self.temporary_text();
                self.push(Instr::IteratorText(buffer, to, iterator, key));
                self.store_text(variable, Text::Variable(to), span)
            }
        }
    }
}

/// Whether the operation suits the type of the array's elements.
fn fits(op: &MapOp, contents: Contents) -> bool {
    match op {
        MapOp::Long(_) | MapOp::SetLong(_) | MapOp::Add(..) | MapOp::Count(_) => {
            contents == Contents::Value(Type::Long)
        }
        MapOp::Text(..) | MapOp::SetText(_) => contents == Contents::Value(Type::String),
        MapOp::Feed(_) | MapOp::Extract(..) | MapOp::Bucket(..) | MapOp::HasBucket(..) => {
            matches!(contents, Contents::Stats(_))
        }
        MapOp::Has(_) | MapOp::Delete | MapOp::Clear => true,
    }
}

/// Whether the operation can be applied to an element that the handler holds: one of an array of numbers or strings that
/// CPUs share.
fn works_on_held(op: &MapOp) -> bool {
    match op {
        MapOp::Long(_)
        | MapOp::Text(..)
        | MapOp::Has(_)
        | MapOp::SetLong(_)
        | MapOp::SetText(_)
        | MapOp::Add(..)
        | MapOp::Delete => true,
        MapOp::Clear
        | MapOp::Count(_)
        | MapOp::Feed(_)
        | MapOp::Extract(..)
        | MapOp::Bucket(..)
        | MapOp::HasBucket(..) => false,
    }
}
