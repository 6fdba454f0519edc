// SPDX-License-Identifier: GPL-2.0-or-later

//! Expressions and statements over arrays and aggregates.

use super::{Lowering, not_a};
use crate::elaborate::error::{AggregateError, ArrayError, Error, StatementError};
use crate::elaborate::unit::Unit;
use crate::program::{
    Contents, Element, Expr, Foreach, Iterated, LongExpr, LongKind, Order, Slice, SortBy, Stmt, StmtKind, Type,
    Variable,
};
use spile_source::Span;
use spile_syntax::ast::{self, Index};

impl Lowering<'_, '_> {
    fn lower_keys(&mut self, unit: &Unit, indices: &[Index]) -> Result<Vec<Expr>, Error> {
        indices
            .iter()
            .map(|index| match index {
                Index::Expr(index) => self.lower(unit, index),
                Index::Any(span) => Err(ArrayError::AnyKey { span: *span }.into()),
            })
            .collect()
    }

    fn lower_slice(&mut self, unit: &Unit, indices: &[Index]) -> Result<Slice, Error> {
        indices
            .iter()
            .map(|index| match index {
                Index::Expr(index) => self.lower(unit, index).map(Some),
                Index::Any(_) => Ok(None),
            })
            .collect()
    }

    /// An array's element or an aggregate.
    pub(super) fn lower_element(&mut self, unit: &Unit, expr: &ast::Expr) -> Result<Element, Error> {
        let not_global = ArrayError::NotGlobal { what: "array", span: expr.span }.into();
        let (name, base, indices): (_, _, &[Index]) = match &expr.kind {
            ast::ExprKind::Ident(name) => (name, expr, &[]),
            ast::ExprKind::Index(base, indices) => match &base.kind {
                ast::ExprKind::Ident(name) => (name, &**base, indices),
                _ => return Err(not_global),
            },
            _ => return Err(not_global),
        };
        let global = self.names.find_global(base.span, name).ok_or(not_global)?;
        Ok(Element { global, keys: self.lower_keys(unit, indices)?, span: base.span })
    }

    /// `array[keys]` as a value.
    pub(super) fn lower_element_value(&mut self, unit: &Unit, expr: &ast::Expr) -> Result<Expr, Error> {
        let element = self.lower_element(unit, expr)?;
        let ty = match self.typed.contents(element.global) {
            Contents::Value(ty) => ty,
            Contents::Stats(_) => {
                let name = self.names.global_name(element.global);
                return Err(AggregateError::AggregateAsValue { name, span: expr.span, stats: None }.into());
            }
        };
        Ok(Expr::element(element, ty, expr.span))
    }

    pub(super) fn lower_in(
        &mut self,
        unit: &Unit,
        indices: &[Index],
        array: &ast::Expr,
        span: Span,
    ) -> Result<Expr, Error> {
        let kind = match &array.kind {
            ast::ExprKind::Histogram { aggregate, .. } => {
                let index = self.lower_bucket_number(unit, indices, span)?;
                LongKind::HasBucket { aggregate: self.lower_element(unit, aggregate)?, index: Box::new(index) }
            }
            _ => {
                let global = self.lower_element(unit, array)?.global;
                LongKind::Contains { global, keys: self.lower_slice(unit, indices)? }
            }
        };
        Ok(LongExpr { kind, span }.into())
    }

    fn lower_bucket_number(&mut self, unit: &Unit, indices: &[Index], span: Span) -> Result<LongExpr, Error> {
        let index = self.lower_keys(unit, indices)?.pop().ok_or(AggregateError::BucketKeys { given: 0, span })?;
        index.long().ok_or(not_a(Type::Long, span))
    }

    /// `@hist_log(x)[index]`.
    pub(super) fn lower_bucket(
        &mut self,
        unit: &Unit,
        histogram: &ast::Expr,
        indices: &[Index],
        span: Span,
    ) -> Result<Expr, Error> {
        let ast::ExprKind::Histogram { aggregate, .. } = &histogram.kind else {
            return Err(ArrayError::NotGlobal { what: "array", span }.into());
        };
        let index = self.lower_bucket_number(unit, indices, span)?;
        let kind = LongKind::Bucket { aggregate: self.lower_element(unit, aggregate)?, index: Box::new(index) };
        Ok(LongExpr { kind, span }.into())
    }

    /// `delete` of something that [`Elaborator::infer_delete`] accepted.
    pub(super) fn lower_delete(&mut self, unit: &Unit, expr: &ast::Expr) -> Result<Option<StmtKind>, Error> {
        match &expr.kind {
            ast::ExprKind::Ident(name) => {
                let Some(Variable::Global(id)) = unit.find_variable(self.names, name, expr.span) else {
                    return Ok(None);
                };
                let array = self.typed.globals[id.index()].shape.keys.is_some()
                    || self.typed.globals[id.index()].shape.stats.is_some();
                Ok(Some(if array { StmtKind::Clear(id) } else { StmtKind::Delete(Variable::Global(id)) }))
            }
            ast::ExprKind::Index(base, indices) => {
                let ast::ExprKind::Ident(name) = &base.kind else { return Ok(None) };
                let Some(global) = self.names.find_global(base.span, name) else { return Ok(None) };
                Ok(Some(StmtKind::DeleteElements { global, keys: self.lower_slice(unit, indices)? }))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn lower_foreach(&mut self, unit: &Unit, foreach: &ast::Foreach, span: Span) -> Result<StmtKind, Error> {
        let over = match &foreach.array.kind {
            ast::ExprKind::Histogram { aggregate, .. } => Iterated::Histogram(self.lower_element(unit, aggregate)?),
            _ => Iterated::Array(self.lower_element(unit, &foreach.array)?.global),
        };
        let stats = match &over {
            Iterated::Array(id) => matches!(self.typed.contents(*id), Contents::Stats(_)),
            Iterated::Histogram(_) => false,
        };
        let mut variables = Vec::new();
        for name in foreach.keys.iter().chain(&foreach.value) {
            let variable = unit.find_variable(self.names, &name.text, name.span);
            variables.push(variable.ok_or(StatementError::NotAssignable { span: name.span })?);
        }
        let value = variables.split_off(foreach.keys.len()).pop();
        let sort = match foreach.sort {
            None => None,
            Some(sort) => {
                let by = match sort.by {
                    SortBy::Value if stats => SortBy::Extractor(ast::Extractor::Count),
                    SortBy::Extractor(_) if !stats => {
                        return Err(AggregateError::NotAggregate { span: foreach.array.span }.into());
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
        let limit = foreach.limit.as_ref().map(|limit| self.lower_long(unit, limit)).transpose()?;
        let body = self.lower_statement(unit, &foreach.body)?;
        let body = body.unwrap_or(Stmt { kind: StmtKind::Block(Vec::new()), span });
        Ok(StmtKind::Foreach(Box::new(Foreach { over, keys: variables, value, slice, sort, limit, body })))
    }
}
