// SPDX-License-Identifier: GPL-2.0-or-later

//! Statements, one after the other.

use super::aggregate::{extract, variance};
use super::array::agree;
use super::expression::EvaluatedPlace;
use super::{Cell, Evaluated, Frame, Machine, Stop};
use crate::model::tree::*;

/// An element as foreach sorts it.
struct ForeachElement {
    keys: Vec<Value>,
    value: Value,
}

impl Machine<'_> {
    /// Runs the statements up to the first error or jump.
    pub(super) fn all(&mut self, frame: &mut Frame, statements: &[Statement]) -> Evaluated<()> {
        statements.iter().try_for_each(|statement| self.one(frame, statement))
    }

    fn one(&mut self, frame: &mut Frame, statement: &Statement) -> Evaluated<()> {
        self.step()?;
        match statement {
            Statement::Do(expression) => {
                self.evaluate(frame, expression)?;
            }
            Statement::If(condition, then, otherwise) => {
                let chosen = if self.long(frame, condition)? != 0 { then } else { otherwise };
                self.all(frame, chosen)?;
            }
            Statement::While(condition, body) => {
                while self.long(frame, condition)? != 0 && self.goes_on(frame, body)? {}
            }
            Statement::For(first, condition, step, body) => {
                self.maybe(frame, first)?;
                while self.maybe(frame, condition)? != Some(Value::Long(0)) && self.goes_on(frame, body)? {
                    self.maybe(frame, step)?;
                    self.step()?;
                }
            }
            Statement::Foreach(foreach) => self.foreach(frame, foreach)?,
            Statement::Break => return Err(Stop::Break),
            Statement::Continue => return Err(Stop::Continue),
            Statement::Next => return Err(Stop::Next),
            Statement::Return(value) => return Err(Stop::Return(self.evaluate(frame, value)?)),
            Statement::Delete(place) => self.delete(frame, place)?,
            Statement::DeleteSlice(array, keys) => {
                let keys = self.some_keys(frame, keys)?;
                self.remove(*array, &keys);
            }
            Statement::Try(body, caught, handling) => match self.all(frame, body) {
                Err(Stop::Error(message)) => {
                    if let Some(caught) = caught {
                        self.store(frame, &EvaluatedPlace::Local(*caught), Value::Text(message))?;
                    }
                    self.all(frame, handling)?;
                }
                other => other?,
            },
            Statement::Print(print) => {
                let text = self.print_text(frame, print)?;
                self.printed.extend(text);
            }
            Statement::Chart(place) => {
                let samples = self.samples(frame, place)?;
                let chart = self.histogram(place).chart(&samples)?;
                self.printed.extend(chart.into_bytes());
            }
            Statement::Variance(place, _) => {
                let samples = self.samples(frame, place)?;
                let variance = variance(&samples)?.ok_or(Stop::Unfit)?;
                self.printed.extend(format!("~{variance}~\n").into_bytes());
            }
            Statement::Block(statements) => self.all(frame, statements)?,
        }
        Ok(())
    }

    /// Runs a loop's body once; returns whether the loop continues.
    fn goes_on(&mut self, frame: &mut Frame, body: &[Statement]) -> Evaluated<bool> {
        match self.all(frame, body) {
            Ok(()) | Err(Stop::Continue) => Ok(true),
            Err(Stop::Break) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    fn maybe(&mut self, frame: &mut Frame, expression: &Option<Expression>) -> Evaluated<Option<Value>> {
        expression.as_ref().map(|expression| self.evaluate(frame, expression)).transpose()
    }

    fn delete(&mut self, frame: &mut Frame, place: &Variable) -> Evaluated<()> {
        match self.find(frame, place)? {
            EvaluatedPlace::Local(_) => return Err(Stop::Unfit),
            EvaluatedPlace::Global(index) => match &mut self.globals[index] {
                Cell::Scalar(Value::Long(number)) => *number = 0,
                Cell::Scalar(Value::Text(text)) => text.clear(),
                Cell::Array(array) => array.clear(),
                Cell::Aggregate(array) => array.clear(),
            },
            EvaluatedPlace::Element(index, keys) => {
                let keys: Vec<Option<Value>> = keys.into_iter().map(Some).collect();
                self.remove(index, &keys);
            }
        }
        Ok(())
    }

    fn remove(&mut self, array: usize, keys: &[Option<Value>]) {
        match &mut self.globals[array] {
            Cell::Array(array) => array.remove(keys),
            Cell::Aggregate(array) => array.remove(keys),
            Cell::Scalar(_) => {}
        }
    }

    fn foreach(&mut self, frame: &mut Frame, foreach: &Foreach) -> Evaluated<()> {
        let slice = foreach.slice.as_ref().map(|slice| self.some_keys(frame, slice)).transpose()?;
        let limit = match &foreach.limit {
            Some(limit) => usize::try_from(self.long(frame, limit)?).map_err(|_| Stop::Unfit)?,
            None => usize::MAX,
        };
        let mut elements = self.visited(foreach)?;
        elements.retain(|element| slice.as_ref().is_none_or(|slice| agree(&element.keys, slice)));
        if let Some(sort) = foreach.sort {
            // Stable: equals stay in the order in which they were made.
            elements.sort_by(|a, b| {
                let order = match sort.by {
                    SortBy::Key(index) => a.keys[index].cmp(&b.keys[index]),
                    _ => a.value.cmp(&b.value),
                };
                if sort.descending { order.reverse() } else { order }
            });
        }
        for element in elements.into_iter().take(limit) {
            for (local, key) in foreach.keys.iter().zip(element.keys) {
                frame.locals[*local] = key;
            }
            if let Some(local) = foreach.value {
                frame.locals[local] = element.value;
            }
            self.step()?;
            if !self.goes_on(frame, &foreach.body)? {
                break;
            }
        }
        Ok(())
    }

    /// The array's elements in the order in which they were created; aggregates with their sort keys.
    fn visited(&self, foreach: &Foreach) -> Evaluated<Vec<ForeachElement>> {
        match &self.globals[foreach.array] {
            Cell::Array(array) => Ok(array
                .elements()
                .iter()
                .map(|(keys, value)| ForeachElement { keys: keys.clone(), value: value.clone() })
                .collect()),
            Cell::Aggregate(array) => {
                let extractor = match foreach.sort {
                    Some(Sort { by: SortBy::Extracted(extractor), .. }) => extractor,
                    _ => Extractor::Count,
                };
                let visited = |(keys, samples): &(Vec<Value>, Vec<i64>)| {
                    Ok(ForeachElement { keys: keys.clone(), value: Value::Long(extract(extractor, samples)?) })
                };
                array.elements().iter().map(visited).collect()
            }
            Cell::Scalar(_) => Err(Stop::Unfit),
        }
    }
}
