// SPDX-License-Identifier: GPL-2.0-or-later

//! Arrays and aggregates: their types, and expressions over them to the resolved program.
//!
//! Only globals can be either. What a global is (a scalar, an array of so many keys, an aggregate) is seen from its uses,
//! as its types are; every use notes what it says, and [`Elaborator::check_globals`] tells what disagrees.

use super::error::Error;
use super::infer::Use;
use super::types::TypeVar;
use super::{Elaborator, Unit};
use crate::program::{
    Element, Expr, ExprKind, Foreach, GlobalId, Histogram, Holds, Iterated, MAX_BUCKETS, Order, Slice, SortBy, Stats,
    Stmt, StmtKind, Type, Variable,
};
use spile_source::Span;
use spile_syntax::ast::{self, Index};

/// Keys of an array at the most, as in SystemTap.
pub(super) const MAX_KEYS: usize = 9;

/// What the uses of a global say about its shape, with the first place that said it.
#[derive(Default)]
pub(super) struct Shape {
    /// Used as a plain value.
    pub scalar: Option<Span>,
    /// Used with keys.
    pub keys: Option<(Vec<TypeVar>, Span)>,
    /// Fed by `<<<` or asked by an extractor.
    pub stats: Option<(Stats, Span)>,
    /// A loop variable that is to hold the value of an element.
    looped: Option<Span>,
    histogram: Option<Span>,
    shift: Option<(u8, Span)>,
}

impl<'a> Elaborator<'a> {
    /// The global that an array expression names, and its indices.
    fn array_of(&self, expr: &'a ast::Expr) -> Option<(GlobalId, &'a [Index])> {
        match &expr.kind {
            ast::ExprKind::Ident(name) => Some((self.find_global(expr.span.file, name)?, &[])),
            ast::ExprKind::Index(base, indices) => match &base.kind {
                ast::ExprKind::Ident(name) => Some((self.find_global(base.span.file, name)?, indices)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the expression is an element of a global array.
    pub(super) fn is_element(&self, expr: &ast::Expr) -> bool {
        match &expr.kind {
            ast::ExprKind::Index(base, _) => match &base.kind {
                ast::ExprKind::Ident(name) => self.find_global(base.span.file, name).is_some(),
                _ => false,
            },
            _ => false,
        }
    }

    fn infer_keys(&mut self, unit: &mut Unit, id: GlobalId, indices: &'a [Index], span: Span, any: bool) {
        let vars = self.key_types(id, indices.len(), span);
        for (number, index) in indices.iter().enumerate() {
            match index {
                Index::Expr(index) => {
                    let given = self.infer(unit, index);
                    if let Some(&var) = vars.get(number) {
                        self.note_flow(unit, index, var);
                        self.equate_at(var, given, index.span);
                    }
                }
                Index::Any(span) if !any => self.report(Error::AnyKey { span: *span }),
                Index::Any(_) => {}
            }
        }
    }

    /// Types of the keys of an array that is used with so many; none if it has another number.
    fn key_types(&mut self, id: GlobalId, count: usize, span: Span) -> Vec<TypeVar> {
        let name = || self.globals[id.index()].ast.name.text.clone();
        if let Some((vars, first)) = &self.globals[id.index()].shape.keys {
            if vars.len() == count {
                return vars.clone();
            }
            let error = Error::KeyCount { name: name(), keys: vars.len(), given: count, span, first: *first };
            self.report(error);
            return Vec::new();
        }
        if count > MAX_KEYS {
            let error = Error::TooManyKeys { name: name(), given: count, span };
            self.report(error);
        }
        let vars: Vec<TypeVar> = (0..count).map(|_| self.types.fresh()).collect();
        self.globals[id.index()].shape.keys = Some((vars.clone(), span));
        vars
    }

    /// The type of `array[indices]`.
    pub(super) fn infer_element(&mut self, unit: &mut Unit, expr: &'a ast::Expr, written: bool) -> TypeVar {
        let Some((id, indices)) = self.array_of(expr) else {
            self.report(Error::NotGlobal { what: "array", span: expr.span });
            return self.types.fresh();
        };
        self.infer_keys(unit, id, indices, expr.span, false);
        self.touch(id, written);
        self.globals[id.index()].ty
    }

    fn touch(&mut self, id: GlobalId, written: bool) {
        let global = &mut self.globals[id.index()];
        if written {
            global.written = true;
        } else {
            global.read = true;
        }
    }

    /// `[keys] in array`, `n in @hist_log(x)`.
    pub(super) fn infer_in(&mut self, unit: &mut Unit, indices: &'a [Index], array: &'a ast::Expr) {
        if let ast::ExprKind::Histogram { .. } = &array.kind {
            self.infer_histogram(unit, array);
            return self.infer_bucket(unit, indices, array.span);
        }
        match self.array_of(array) {
            Some((id, [])) => {
                self.infer_keys(unit, id, indices, array.span, true);
                self.touch(id, false);
            }
            _ => self.report(Error::NotGlobal { what: "array", span: array.span }),
        }
    }

    pub(super) fn infer_bucket(&mut self, unit: &mut Unit, indices: &'a [Index], span: Span) {
        match indices {
            [Index::Expr(index)] => self.want(unit, index, Type::Long),
            [Index::Any(span)] => self.report(Error::AnyKey { span: *span }),
            _ => self.report(Error::BucketKeys { given: indices.len(), span }),
        }
    }

    /// What `<<<` feeds or an extractor reads.
    fn infer_aggregate(&mut self, unit: &mut Unit, expr: &'a ast::Expr, written: bool) -> Option<GlobalId> {
        let Some((id, indices)) = self.array_of(expr) else {
            self.report(Error::NotGlobal { what: "aggregate", span: expr.span });
            return None;
        };
        if let ast::ExprKind::Index(..) = &expr.kind {
            self.infer_keys(unit, id, indices, expr.span, false);
        } else {
            self.globals[id.index()].shape.scalar.get_or_insert(expr.span);
        }
        self.globals[id.index()].shape.stats.get_or_insert((Stats::default(), expr.span));
        self.touch(id, written);
        Some(id)
    }

    pub(super) fn infer_feed(&mut self, unit: &mut Unit, left: &'a ast::Expr, right: &'a ast::Expr) {
        self.want(unit, right, Type::Long);
        self.infer_aggregate(unit, left, true);
    }

    pub(super) fn infer_extract(&mut self, unit: &mut Unit, expr: &'a ast::Expr) {
        let ast::ExprKind::Extract { extractor, aggregate, parameters } = &expr.kind else { return };
        let Some(id) = self.infer_aggregate(unit, aggregate, false) else { return };
        if *extractor != ast::Extractor::Variance {
            return;
        }
        let name = self.globals[id.index()].ast.name.text.clone();
        let shape = &mut self.globals[id.index()].shape;
        let shift = match parameters.first() {
            None => None,
            Some(&shift @ 0..=62) => Some(shift as u8),
            Some(&given) => return self.report(Error::Shift { given, span: expr.span }),
        };
        if let Some((stats, _)) = &mut shape.stats {
            stats.variance = true;
            stats.shift = shift.unwrap_or(stats.shift);
        }
        match (shift, shape.shift) {
            (Some(shift), None) => shape.shift = Some((shift, expr.span)),
            (Some(shift), Some((before, first))) if before != shift => {
                self.report(Error::TwoShapes { what: "bit shifts of @variance", name, span: expr.span, first });
            }
            _ => {}
        }
    }

    pub(super) fn infer_histogram(&mut self, unit: &mut Unit, expr: &'a ast::Expr) {
        let ast::ExprKind::Histogram { linear, aggregate, parameters } = &expr.kind else { return };
        let Some(id) = self.infer_aggregate(unit, aggregate, false) else { return };
        let histogram = match (linear, parameters.as_slice()) {
            (false, _) => Histogram::Log,
            (true, &[low, high, width]) => match linear_buckets(low, high, width) {
                Some(3..=128) => Histogram::Linear { low, high, width },
                buckets => return self.report(Error::LinearHistogram { low, high, width, buckets, span: expr.span }),
            },
            (true, _) => return,
        };
        let name = self.globals[id.index()].ast.name.text.clone();
        let shape = &mut self.globals[id.index()].shape;
        let first = *shape.histogram.get_or_insert(expr.span);
        let Some((stats, _)) = &mut shape.stats else { return };
        match stats.histogram {
            Some(before) if before != histogram => {
                self.report(Error::TwoShapes { what: "histograms", name, span: expr.span, first });
            }
            _ => stats.histogram = Some(histogram),
        }
    }

    /// `delete` of an array, an element, some elements or an aggregate; false: of something else.
    pub(super) fn infer_delete(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> bool {
        let Some((id, indices)) = self.array_of(expr) else { return false };
        if let ast::ExprKind::Index(..) = &expr.kind {
            self.infer_keys(unit, id, indices, expr.span, true);
        }
        self.touch(id, true);
        true
    }

    pub(super) fn infer_foreach(
        &mut self,
        unit: &mut Unit,
        foreach: &'a ast::Foreach,
        function: Option<usize>,
        span: Span,
    ) {
        if let ast::ExprKind::Histogram { .. } = &foreach.array.kind {
            self.infer_histogram(unit, &foreach.array);
            for name in foreach.keys.iter().chain(&foreach.value) {
                let ty = self.variable(unit, name, Use::Written);
                self.set(ty, Type::Long, name.span);
            }
            if foreach.keys.len() != 1 {
                self.report(Error::BucketKeys { given: foreach.keys.len(), span });
            }
        } else if let Some((id, [])) = self.array_of(&foreach.array) {
            self.touch(id, false);
            let vars = self.key_types(id, foreach.keys.len(), foreach.array.span);
            for (number, name) in foreach.keys.iter().enumerate() {
                let local = self.variable(unit, name, Use::Written);
                if let Some(&var) = vars.get(number) {
                    self.equate_at(var, local, name.span);
                }
            }
            if let Some(name) = &foreach.value {
                let local = self.variable(unit, name, Use::Written);
                let ty = self.globals[id.index()].ty;
                self.equate_at(ty, local, name.span);
                self.globals[id.index()].shape.looped.get_or_insert(name.span);
            }
            if let Some(slice) = &foreach.slice {
                self.infer_keys(unit, id, slice, foreach.array.span, true);
            }
        } else {
            self.report(Error::NotGlobal { what: "array", span: foreach.array.span });
            for name in foreach.keys.iter().chain(&foreach.value) {
                self.variable(unit, name, Use::Written);
            }
        }
        if let Some(limit) = &foreach.limit {
            self.want(unit, limit, Type::Long);
        }
        self.infer_loop(unit, &foreach.body, function);
    }

    /// Says what disagrees about the shape of globals.
    pub(super) fn check_globals(&mut self) {
        for index in 0..self.globals.len() {
            let global = &self.globals[index];
            let (ast, shape) = (global.ast, &global.shape);
            let name = || ast.name.text.clone();
            let mut errors = Vec::new();
            if let (Some(scalar), Some((_, keys))) = (shape.scalar, &shape.keys) {
                errors.push(Error::ArrayAsValue { name: name(), span: scalar, keys: Some(*keys) });
            } else if let (Some(_), Some(scalar)) = (global.ast.size, shape.scalar) {
                errors.push(Error::ArrayAsValue { name: name(), span: scalar, keys: None });
            } else if global.ast.wrap && shape.scalar.is_some() {
                errors.push(Error::WrappedScalar { name: name(), span: ast.span });
            }
            if let Some((_, initial)) = &ast.initial {
                let what = match (&shape.keys, &shape.stats) {
                    (Some((_, span)), _) => Some(("an array", *span)),
                    (None, Some((_, span))) => Some(("an aggregate", *span)),
                    _ => None,
                };
                if let Some((what, used)) = what {
                    errors.push(Error::InitialValue { name: name(), what, span: *initial, used });
                }
            }
            if let (Some(_), Some(looped)) = (&shape.stats, shape.looped) {
                errors.push(Error::ForeachAggregate { span: looped });
            }
            let ty = global.ty;
            if let (Some((_, stats)), Some((_, value))) = (&self.globals[index].shape.stats, self.types.decided(ty)) {
                let name = self.globals[index].ast.name.text.clone();
                errors.push(Error::AggregateAsValue { name, span: value, stats: Some(*stats) });
            }
            errors.into_iter().for_each(|error| self.report(error));
        }
    }

    /// What a global holds, once all uses are seen.
    pub(super) fn holds(&mut self, index: usize) -> Holds {
        let ty = self.globals[index].ty;
        match self.globals[index].shape.stats {
            Some((stats, _)) => Holds::Stats(stats),
            // One that is never used has no type, and no memory either.
            None => Holds::Value(self.types.get(ty).unwrap_or(Type::Long)),
        }
    }

    pub(super) fn key_types_of(&mut self, index: usize) -> Vec<Type> {
        let vars = self.globals[index].shape.keys.as_ref().map(|(vars, _)| vars.clone()).unwrap_or_default();
        vars.into_iter().map(|var| self.types.get(var).unwrap_or(Type::Long)).collect()
    }

    fn lower_keys(&mut self, unit: &mut Unit, indices: &[Index]) -> Result<Vec<Expr>, Error> {
        indices
            .iter()
            .map(|index| match index {
                Index::Expr(index) => self.lower(unit, index),
                Index::Any(span) => Err(Error::AnyKey { span: *span }),
            })
            .collect()
    }

    fn lower_slice(&mut self, unit: &mut Unit, indices: &[Index]) -> Result<Slice, Error> {
        indices
            .iter()
            .map(|index| match index {
                Index::Expr(index) => self.lower(unit, index).map(Some),
                Index::Any(_) => Ok(None),
            })
            .collect()
    }

    /// An array's element or an aggregate.
    pub(super) fn lower_element(&mut self, unit: &mut Unit, expr: &ast::Expr) -> Result<Element, Error> {
        let not_global = Error::NotGlobal { what: "array", span: expr.span };
        let (name, base, indices): (_, _, &[Index]) = match &expr.kind {
            ast::ExprKind::Ident(name) => (name, expr, &[]),
            ast::ExprKind::Index(base, indices) => match &base.kind {
                ast::ExprKind::Ident(name) => (name, &**base, indices),
                _ => return Err(not_global),
            },
            _ => return Err(not_global),
        };
        let global = self.find_global(base.span.file, name).ok_or(not_global)?;
        Ok(Element { global, keys: self.lower_keys(unit, indices)?, span: base.span })
    }

    /// `array[keys]` as a value.
    pub(super) fn lower_element_value(&mut self, unit: &mut Unit, expr: &ast::Expr) -> Result<Expr, Error> {
        let element = self.lower_element(unit, expr)?;
        let ty = match self.holds(element.global.index()) {
            Holds::Value(ty) => ty,
            Holds::Stats(_) => {
                let name = self.globals[element.global.index()].ast.name.text.clone();
                return Err(Error::AggregateAsValue { name, span: expr.span, stats: None });
            }
        };
        Ok(Expr { kind: ExprKind::Element(element), ty, span: expr.span })
    }

    pub(super) fn lower_in(
        &mut self,
        unit: &mut Unit,
        indices: &[Index],
        array: &ast::Expr,
        span: Span,
    ) -> Result<Expr, Error> {
        let kind = match &array.kind {
            ast::ExprKind::Histogram { aggregate, .. } => {
                let index = self.lower_keys(unit, indices)?.pop().ok_or(Error::BucketKeys { given: 0, span })?;
                ExprKind::HasBucket { aggregate: self.lower_element(unit, aggregate)?, index: Box::new(index) }
            }
            _ => {
                let global = self.lower_element(unit, array)?.global;
                ExprKind::Contains { global, keys: self.lower_slice(unit, indices)? }
            }
        };
        Ok(Expr { kind, ty: Type::Long, span })
    }

    /// `@hist_log(x)[index]`.
    pub(super) fn lower_bucket(
        &mut self,
        unit: &mut Unit,
        histogram: &ast::Expr,
        indices: &[Index],
        span: Span,
    ) -> Result<Expr, Error> {
        let ast::ExprKind::Histogram { aggregate, .. } = &histogram.kind else {
            return Err(Error::NotGlobal { what: "array", span });
        };
        let index = self.lower_keys(unit, indices)?.pop().ok_or(Error::BucketKeys { given: 0, span })?;
        let kind = ExprKind::Bucket { aggregate: self.lower_element(unit, aggregate)?, index: Box::new(index) };
        Ok(Expr { kind, ty: Type::Long, span })
    }

    /// `delete` of what [`Elaborator::infer_delete`] took.
    pub(super) fn lower_delete(&mut self, unit: &mut Unit, expr: &ast::Expr) -> Result<Option<StmtKind>, Error> {
        match &expr.kind {
            ast::ExprKind::Ident(name) => {
                let Some(id) = self.find_global(expr.span.file, name) else { return Ok(None) };
                let array =
                    self.globals[id.index()].shape.keys.is_some() || self.globals[id.index()].shape.stats.is_some();
                Ok(Some(if array { StmtKind::Clear(id) } else { StmtKind::Delete(Variable::Global(id)) }))
            }
            ast::ExprKind::Index(base, indices) => {
                let ast::ExprKind::Ident(name) = &base.kind else { return Ok(None) };
                let Some(global) = self.find_global(base.span.file, name) else { return Ok(None) };
                Ok(Some(StmtKind::DeleteElements { global, keys: self.lower_slice(unit, indices)? }))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn lower_foreach(
        &mut self,
        unit: &mut Unit,
        foreach: &ast::Foreach,
        span: Span,
    ) -> Result<StmtKind, Error> {
        let over = match &foreach.array.kind {
            ast::ExprKind::Histogram { aggregate, .. } => Iterated::Histogram(self.lower_element(unit, aggregate)?),
            _ => Iterated::Array(self.lower_element(unit, &foreach.array)?.global),
        };
        let stats = match &over {
            Iterated::Array(id) => matches!(self.holds(id.index()), Holds::Stats(_)),
            Iterated::Histogram(_) => false,
        };
        let mut variables = Vec::new();
        for name in foreach.keys.iter().chain(&foreach.value) {
            let variable = self.variable_named(unit, &name.text, name.span);
            variables.push(variable.ok_or(Error::NotAssignable { span: name.span })?);
        }
        let value = variables.split_off(foreach.keys.len()).pop();
        let sort = match foreach.sort {
            None => None,
            Some(sort) => {
                let by = match sort.by {
                    SortBy::Value if stats => SortBy::Extractor(ast::Extractor::Count),
                    SortBy::Extractor(_) if !stats => {
                        return Err(Error::NotAggregate { span: foreach.array.span });
                    }
                    by => by,
                };
                Some((by, if sort.descending { Order::Descending } else { Order::Ascending }))
            }
        };
        let slice = match &foreach.slice {
            Some(slice) => self.lower_slice(unit, slice)?,
            None => Vec::new(),
        };
        let limit = foreach.limit.as_ref().map(|limit| self.lower(unit, limit)).transpose()?;
        let body = self.lower_statement(unit, &foreach.body)?;
        let body = body.unwrap_or(Stmt { kind: StmtKind::Block(Vec::new()), span });
        Ok(StmtKind::Foreach(Box::new(Foreach { over, keys: variables, value, slice, sort, limit, body })))
    }
}

/// Buckets of a linear histogram with the two outer ones; None where the numbers make none.
fn linear_buckets(low: i64, high: i64, width: i64) -> Option<i64> {
    if width <= 0 || high < low {
        return None;
    }
    Some(high.checked_sub(low)?.checked_div(width)?.saturating_add(3))
}

const _: () = assert!(MAX_BUCKETS == 128, "the range in infer_histogram");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_of_linear_histograms() {
        assert_eq!(linear_buckets(0, 100, 10), Some(13));
        assert_eq!(linear_buckets(5, 5, 1), Some(3));
        assert_eq!(linear_buckets(0, 10, 0), None);
        assert_eq!(linear_buckets(10, 0, 1), None);
        assert_eq!(linear_buckets(i64::MIN, i64::MAX, 1), None);
    }
}
