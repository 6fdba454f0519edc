// SPDX-License-Identifier: GPL-2.0-or-later

//! Types of arrays and aggregates.
//!
//! Only globals can be arrays or aggregates. The shape of a global (a scalar, an array with this many keys, an aggregate)
//! follows from its uses, as its types do; every use is recorded, and [`Inference::check_globals`] reports contradictions.

use super::{Inference, Use};
use crate::elaborate::error::{AggregateError, ArrayError};
use crate::elaborate::types::{MAX_KEYS, TypeVar};
use crate::elaborate::unit::Unit;
use crate::program::{GlobalId, Histogram, MAX_BUCKETS, Stats, Type};
use spile_source::Span;
use spile_syntax::ast::{self, Index};

impl<'a> Inference<'_, 'a> {
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
                Index::Any(span) if !any => self.env.report(ArrayError::AnyKey { span: *span }),
                Index::Any(_) => {}
            }
        }
    }

    /// Types of the keys of an array with that many; empty if it has another number.
    fn key_types(&mut self, id: GlobalId, count: usize, span: Span) -> Vec<TypeVar> {
        let name = || self.names.global_name(id);
        if let Some((vars, first)) = &self.typed.globals[id.index()].shape.keys {
            if vars.len() == count {
                return vars.clone();
            }
            let error = ArrayError::KeyCount { name: name(), keys: vars.len(), given: count, span, first: *first };
            self.env.report(error);
            return Vec::new();
        }
        if count > MAX_KEYS {
            let error = ArrayError::TooManyKeys { name: name(), given: count, span };
            self.env.report(error);
        }
        let vars: Vec<TypeVar> = (0..count).map(|_| self.typed.types.fresh()).collect();
        self.typed.globals[id.index()].shape.keys = Some((vars.clone(), span));
        vars
    }

    /// The type of `array[indices]`.
    pub(super) fn infer_element(&mut self, unit: &mut Unit, expr: &'a ast::Expr, written: bool) -> TypeVar {
        let Some((id, indices)) = self.names.array_of(expr) else {
            self.env.report(ArrayError::NotGlobal { what: "array", span: expr.span });
            return self.typed.types.fresh();
        };
        self.infer_keys(unit, id, indices, expr.span, false);
        self.touch(id, written);
        self.typed.globals[id.index()].ty
    }

    fn touch(&mut self, id: GlobalId, written: bool) {
        let global = &mut self.typed.globals[id.index()];
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
        match self.names.array_of(array) {
            Some((id, [])) => {
                self.infer_keys(unit, id, indices, array.span, true);
                self.touch(id, false);
            }
            _ => self.env.report(ArrayError::NotGlobal { what: "array", span: array.span }),
        }
    }

    pub(super) fn infer_bucket(&mut self, unit: &mut Unit, indices: &'a [Index], span: Span) {
        match indices {
            [Index::Expr(index)] => self.want(unit, index, Type::Long),
            [Index::Any(span)] => self.env.report(ArrayError::AnyKey { span: *span }),
            _ => self.env.report(AggregateError::BucketKeys { given: indices.len(), span }),
        }
    }

    /// The operand of `<<<` or of an extractor.
    fn infer_aggregate(&mut self, unit: &mut Unit, expr: &'a ast::Expr, written: bool) -> Option<GlobalId> {
        let Some((id, indices)) = self.names.array_of(expr) else {
            self.env.report(ArrayError::NotGlobal { what: "aggregate", span: expr.span });
            return None;
        };
        if let ast::ExprKind::Index(..) = &expr.kind {
            self.infer_keys(unit, id, indices, expr.span, false);
        } else {
            self.typed.globals[id.index()].shape.scalar.get_or_insert(expr.span);
        }
        self.typed.globals[id.index()].shape.stats.get_or_insert((Stats::default(), expr.span));
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
        let name = self.names.global_name(id);
        let shape = &mut self.typed.globals[id.index()].shape;
        let shift = match parameters.first() {
            None => None,
            Some(&shift @ 0..=62) => Some(shift as u8),
            Some(&given) => return self.env.report(AggregateError::Shift { given, span: expr.span }),
        };
        if let Some((stats, _)) = &mut shape.stats {
            stats.variance = true;
            stats.shift = shift.unwrap_or(stats.shift);
        }
        match (shift, shape.shift) {
            (Some(shift), None) => shape.shift = Some((shift, expr.span)),
            (Some(shift), Some((before, first))) if before != shift => {
                self.env.report(AggregateError::TwoShapes {
                    what: "bit shifts of @variance",
                    name,
                    span: expr.span,
                    first,
                });
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
                buckets => {
                    return self.env.report(AggregateError::LinearHistogram {
                        low,
                        high,
                        width,
                        buckets,
                        span: expr.span,
                    });
                }
            },
            (true, _) => return,
        };
        let name = self.names.global_name(id);
        let shape = &mut self.typed.globals[id.index()].shape;
        let first = *shape.histogram.get_or_insert(expr.span);
        let Some((stats, _)) = &mut shape.stats else { return };
        match stats.histogram {
            Some(before) if before != histogram => {
                self.env.report(AggregateError::TwoShapes { what: "histograms", name, span: expr.span, first });
            }
            _ => stats.histogram = Some(histogram),
        }
    }

    /// `delete` of an array, an element, some elements or an aggregate; false: of something else.
    pub(super) fn infer_delete(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> bool {
        if let ast::ExprKind::Ident(name) = &expr.kind
            && unit.find_local(self.names, expr.span, name).is_some()
        {
            return false;
        }
        let Some((id, indices)) = self.names.array_of(expr) else { return false };
        if let ast::ExprKind::Index(..) = &expr.kind {
            self.infer_keys(unit, id, indices, expr.span, true);
        }
        self.touch(id, true);
        true
    }

    pub(super) fn infer_foreach(&mut self, unit: &mut Unit, foreach: &'a ast::Foreach, span: Span) {
        if let ast::ExprKind::Histogram { .. } = &foreach.array.kind {
            self.infer_histogram(unit, &foreach.array);
            for name in foreach.keys.iter().chain(&foreach.value) {
                let ty = self.variable(unit, name, Use::Written);
                self.set(ty, Type::Long, name.span);
            }
            if foreach.keys.len() != 1 {
                self.env.report(AggregateError::BucketKeys { given: foreach.keys.len(), span });
            }
        } else if let Some((id, [])) = self.names.array_of(&foreach.array) {
            self.touch(id, false);
            let by_variance = ast::SortBy::Extractor(ast::Extractor::Variance);
            self.typed.globals[id.index()].shape.sorted_by_variance |=
                foreach.sort.is_some_and(|sort| sort.by == by_variance);
            let vars = self.key_types(id, foreach.keys.len(), foreach.array.span);
            for (number, name) in foreach.keys.iter().enumerate() {
                let local = self.variable(unit, name, Use::Written);
                if let Some(&var) = vars.get(number) {
                    self.equate_at(var, local, name.span);
                }
            }
            if let Some(name) = &foreach.value {
                let local = self.variable(unit, name, Use::Written);
                let ty = self.typed.globals[id.index()].ty;
                self.equate_at(ty, local, name.span);
                self.typed.globals[id.index()].shape.looped.get_or_insert(name.span);
            }
            if let Some(slice) = &foreach.slice {
                self.infer_keys(unit, id, slice, foreach.array.span, true);
            }
        } else {
            self.env.report(ArrayError::NotGlobal { what: "array", span: foreach.array.span });
            for name in foreach.keys.iter().chain(&foreach.value) {
                self.variable(unit, name, Use::Written);
            }
        }
        if let Some(limit) = &foreach.limit {
            self.want(unit, limit, Type::Long);
        }
        self.infer_loop(unit, &foreach.body);
    }
}

/// Buckets of a linear histogram with the two outer ones; None where the numbers are invalid.
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
