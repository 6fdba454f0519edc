// SPDX-License-Identifier: GPL-2.0-or-later

//! Expressions: the type of each, and the types it requires of its operands.

use super::{Inference, Use};
use crate::elaborate::error::{ArrayError, LiteralError, StatementError, TypeError};
use crate::elaborate::format::{self, Piece};
use crate::elaborate::lookup::is_text;
use crate::elaborate::lower::regex;
use crate::elaborate::types::{Conflict, TypeVar};
use crate::elaborate::unit::Unit;
use crate::elaborate::{guru, literal, mark};
use crate::program::uses::Access;
use crate::program::{Type, Variable};
use spile_abi::format::Size;
use spile_source::Span;
use spile_syntax::ast::{self, AssignOp, BinaryOp, ExprKind, PrintForm};

impl<'a> Inference<'_, 'a> {
    /// An expression used as a statement: it may return nothing.
    pub(super) fn infer_any(&mut self, unit: &mut Unit, expr: &'a ast::Expr) {
        match &expr.kind {
            ExprKind::Call(name, arguments) => {
                self.infer_call(unit, name, arguments);
            }
            ExprKind::Assign(..) | ExprKind::Step { .. } => {
                self.infer_unused(unit, expr);
            }
            // A name by itself has a type only if another use gives it one.
            ExprKind::Ident(text) => {
                self.variable(unit, &ast::Name { text: text.clone(), span: expr.span }, Use::None);
            }
            _ => {
                self.infer(unit, expr);
            }
        }
    }

    /// An expression whose value nothing uses: one that writes does not read.
    fn infer_unused(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> TypeVar {
        match &expr.kind {
            ExprKind::Assign(op, left, right) => self.infer_assign(unit, *op, left, right, (expr.span, false)),
            ExprKind::Step { target, .. } => {
                self.infer_step(unit, target);
                self.typed.types.known(Type::Long, expr.span)
            }
            _ => self.infer(unit, expr),
        }
    }

    fn infer_step(&mut self, unit: &mut Unit, target: &'a ast::Expr) {
        let ty = self.infer_written(unit, target);
        self.set(ty, Type::Long, target.span);
    }

    /// The value of `x op= y` or `x++` is used: that counts as a read.
    fn infer_result(&mut self, unit: &Unit, target: &'a ast::Expr) {
        let global = match &target.kind {
            ExprKind::Ident(name) => match unit.find_variable(self.names, name, target.span) {
                Some(Variable::Global(id)) => Some(id),
                _ => None,
            },
            _ => self.names.array_of(target).map(|(id, _)| id),
        };
        if let Some(id) = global {
            self.typed.globals[id.index()].read = true;
        }
    }

    /// The type of the value that an assignment writes. A compound one also reads it, which does not count as a use.
    pub(super) fn infer_written(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> TypeVar {
        match &expr.kind {
            ExprKind::Ident(text) => {
                self.variable(unit, &ast::Name { text: text.clone(), span: expr.span }, Use::Written)
            }
            ExprKind::Index(..) if self.names.is_element(expr) => self.infer_element(unit, expr, true),
            ExprKind::Index(base, _) if matches!(base.kind, ExprKind::Ident(_)) && !is_known(unit, base) => {
                self.infer_element(unit, expr, true)
            }
            ExprKind::Target(_) if unit.at.text_variable(expr).is_some() => {
                self.typed.types.known(Type::String, expr.span)
            }
            ExprKind::Target(_) | ExprKind::Member(..) | ExprKind::Index(..) | ExprKind::Var { .. } => {
                if !self.env.options.guru {
                    self.env.report(StatementError::Guru { what: "writing to a context variable", span: expr.span });
                }
                self.infer(unit, expr)
            }
            _ => {
                self.env.report(StatementError::NotAssignable { span: expr.span });
                self.typed.types.fresh()
            }
        }
    }

    /// Infers an expression whose value is used.
    pub fn infer(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> TypeVar {
        match &expr.kind {
            ExprKind::Entry(value) => self.infer_at_entry(unit, value),
            // So are the indices of such a variable.
            _ if self.typed.is_captured(&unit.at, expr) => self.infer_at_entry(unit, expr),
            _ => self.infer_here(unit, expr),
        }
    }

    /// One that is evaluated at the probed function's entry.
    fn infer_at_entry(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> TypeVar {
        let before = std::mem::replace(&mut self.typed.at_entry, true);
        let ty = self.infer_here(unit, expr);
        self.typed.at_entry = before;
        ty
    }

    fn infer_here(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> TypeVar {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Number(_) => self.typed.types.known(Type::Long, span),
            ExprKind::String(_) => self.typed.types.known(Type::String, span),
            ExprKind::Ident(text) => self.variable(unit, &ast::Name { text: text.clone(), span }, Use::Read),
            // Where this runs it may exist, and have any type.
            ExprKind::Target(_) | ExprKind::Var { .. } if self.dead > 0 => self.typed.types.fresh(),
            ExprKind::Target(name) => {
                let text = is_text(name) || unit.at.text_variable(expr).is_some();
                let ty = if text { Type::String } else { Type::Long };
                self.typed.types.known(ty, span)
            }
            ExprKind::Member(base, _) => {
                self.infer_base(unit, base);
                if self.dead > 0 {
                    return self.typed.types.fresh();
                }
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Index(base, indices) => match &base.kind {
                ExprKind::Ident(_) if self.names.is_element(expr) || !is_known(unit, base) => {
                    self.infer_element(unit, expr, false)
                }
                ExprKind::Histogram { .. } => {
                    self.infer_histogram(unit, base);
                    self.infer_bucket(unit, indices, span);
                    self.typed.types.known(Type::Long, span)
                }
                _ => self.infer_index(unit, base, indices, span),
            },
            ExprKind::In(indices, array) => {
                self.infer_in(unit, indices, array);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Extract { .. } => {
                self.infer_extract(unit, expr);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Histogram { .. } => {
                self.infer_histogram(unit, expr);
                self.typed.types.known(Type::String, span)
            }
            ExprKind::Pretty(base, _) => {
                self.infer_base(unit, base);
                self.typed.types.known(Type::String, span)
            }
            ExprKind::AddressOf(base) => {
                self.infer_base(unit, base);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Cast { value, .. } => {
                self.want(unit, value, Type::Long);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Call(name, arguments) => self.infer_call(unit, name, arguments),
            ExprKind::Unary(_, operand) => {
                self.want(unit, operand, Type::Long);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Binary(op, left, right) => self.infer_binary(unit, *op, left, right, span),
            ExprKind::Assign(op, left, right) => {
                if let AssignOp::Compound(_) = op {
                    self.infer_result(unit, left);
                }
                self.infer_assign(unit, *op, left, right, (span, true))
            }
            ExprKind::Step { target, .. } => {
                self.infer_result(unit, target);
                self.infer_step(unit, target);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Conditional(condition, then, otherwise) => {
                self.infer_conditional(unit, condition, then, otherwise)
            }
            ExprKind::Print(print) => self.infer_print(unit, print, span),
            ExprKind::Defined(_) | ExprKind::Var { .. } | ExprKind::ProbeWrite(_) | ExprKind::Enum(_) => {
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::EnumName { value, .. } => {
                self.want(unit, value, Type::Long);
                self.typed.types.known(Type::String, span)
            }
            ExprKind::Const(_) => self.typed.types.known(Type::Long, span),
            ExprKind::Register { user: _, number } => {
                self.want(unit, number, Type::Long);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Deref { user: _, size, address } => {
                self.want(unit, size, Type::Long);
                self.want(unit, address, Type::Long);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Matches { left, pattern, pattern_span, .. } => {
                self.infer_matches(unit, left, pattern, *pattern_span);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Entry(value) => self.infer(unit, value),
            ExprKind::Perf(name) => {
                self.counters.check(self.env, name, span);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::EmbeddedC(code) => {
                guru::check_embedded(self.env, code);
                self.infer_embedded(code);
                self.typed.types.known(mark::value_type(code), span)
            }
        }
    }

    /// `condition ? then : otherwise`: both have one type, also if the condition is known.
    fn infer_conditional(
        &mut self,
        unit: &mut Unit,
        condition: &'a ast::Expr,
        then: &'a ast::Expr,
        otherwise: &'a ast::Expr,
    ) -> TypeVar {
        let Some(value) = self.lookup().fold(unit, condition) else {
            self.want(unit, condition, Type::Long);
            let ty = self.infer(unit, then);
            let other = self.infer(unit, otherwise);
            self.equate_at(ty, other, otherwise.span);
            return ty;
        };
        self.infer_dead_condition(unit, condition);
        let (taken, other) = if value == 0 { (otherwise, then) } else { (then, otherwise) };
        let ty = self.infer(unit, taken);
        if let Some(other_type) = self.infer_dead(unit, other) {
            self.equate_at(ty, other_type, other.span);
        }
        ty
    }

    /// The operand of `->`, `[`, `$` or `&`: a target expression or a cast.
    fn infer_base(&mut self, unit: &mut Unit, base: &'a ast::Expr) {
        match &base.kind {
            ExprKind::Target(_) => {}
            _ => self.want(unit, base, Type::Long),
        }
    }

    fn infer_index(&mut self, unit: &mut Unit, base: &'a ast::Expr, indices: &'a [ast::Index], span: Span) -> TypeVar {
        self.infer_base(unit, base);
        for index in indices {
            match index {
                ast::Index::Expr(index) => self.want(unit, index, Type::Long),
                ast::Index::Any(span) => {
                    self.env.report(TypeError::NotIndexable { type_name: "*".into(), span: *span });
                }
            }
        }
        self.typed.types.known(Type::Long, span)
    }

    fn infer_binary(
        &mut self,
        unit: &mut Unit,
        op: BinaryOp,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        span: Span,
    ) -> TypeVar {
        use BinaryOp::*;
        match op {
            Less | Greater | LessEqual | GreaterEqual | Equal | NotEqual => {
                let first = self.infer(unit, left);
                let second = self.infer(unit, right);
                if let Err(Conflict { first, second }) = self.typed.types.equate(first, second) {
                    let conflict = Conflict { first: (first.0, left.span), second: (second.0, right.span) };
                    self.env.report(StatementError::Types(conflict));
                }
                self.typed.types.known(Type::Long, span)
            }
            Concatenate if self.is_dot_member(unit, left, right) => self.typed.types.known(Type::String, span),
            Concatenate => {
                self.want(unit, left, Type::String);
                self.want(unit, right, Type::String);
                self.typed.types.known(Type::String, span)
            }
            And | Or if self.lookup().decided(unit, op, left).is_some() => {
                self.infer_dead_condition(unit, left);
                self.infer_dead_condition(unit, right);
                self.typed.types.known(Type::Long, span)
            }
            _ => {
                self.want(unit, left, Type::Long);
                self.want(unit, right, Type::Long);
                self.typed.types.known(Type::Long, span)
            }
        }
    }

    /// Whether `left . right` was meant as C's member access; reports it.
    fn is_dot_member(&mut self, unit: &mut Unit, left: &'a ast::Expr, right: &'a ast::Expr) -> bool {
        let mut head = right;
        while let ExprKind::Member(base, _) | ExprKind::Index(base, _) | ExprKind::Pretty(base, _) = &head.kind {
            head = base;
        }
        let ExprKind::Ident(name) = &head.kind else { return false };
        if unit.names.contains_key(name) || self.names.find_global(head.span, name).is_some() {
            return false;
        }
        let number = match &left.kind {
            ExprKind::Target(word) => !is_text(word) && unit.at.text_variable(left).is_none(),
            ExprKind::Member(..) | ExprKind::Cast { .. } | ExprKind::Var { .. } | ExprKind::AddressOf(_) => true,
            ExprKind::Index(base, _) => matches!(
                base.kind,
                ExprKind::Target(_) | ExprKind::Member(..) | ExprKind::Cast { .. } | ExprKind::Var { .. }
            ),
            // A number has no members: with spaces around the dot, a string is meant.
            ExprKind::Ident(word) if left.span.end + 1 == right.span.start => {
                let known = unit.names.contains_key(word) || self.names.find_global(left.span, word).is_some();
                let ty = known.then(|| self.infer(unit, left));
                ty.is_some_and(|ty| self.typed.types.get(ty) == Some(Type::Long))
            }
            _ => false,
        };
        if number {
            let (text, right) = (spile_syntax::print::expr(left), spile_syntax::print::expr(right));
            self.env.report(StatementError::DotMember { left: text, right, span: left.span });
        }
        number
    }

    /// `used`: its value is.
    fn infer_assign(
        &mut self,
        unit: &mut Unit,
        op: AssignOp,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        (span, used): (Span, bool),
    ) -> TypeVar {
        match op {
            AssignOp::Aggregate => {
                self.infer_feed(unit, left, right);
                self.typed.types.known(Type::Long, span)
            }
            AssignOp::Set => {
                let value = match &left.kind {
                    ExprKind::Ident(name) if !used && unit.elided.is_unread(name) => self.infer_unused(unit, right),
                    _ => self.infer(unit, right),
                };
                let place = self.infer_written(unit, left);
                self.note_flow(unit, right, place);
                self.equate_at(place, value, right.span);
                place
            }
            AssignOp::Compound(op) => {
                let ty = if op == BinaryOp::Concatenate { Type::String } else { Type::Long };
                self.want(unit, right, ty);
                let place = self.infer_written(unit, left);
                self.set(place, ty, left.span);
                place
            }
        }
    }

    fn infer_print(&mut self, unit: &mut Unit, print: &'a ast::Print, span: Span) -> TypeVar {
        match &print.form {
            PrintForm::Format(text, literal) => match format::parse(text) {
                Ok(pieces) => self.infer_format(unit, &pieces, print, *literal),
                Err(error) => {
                    let span = literal::span_inside(self.env.sources, *literal, text, error.start, error.end);
                    self.env.report(LiteralError::Format { kind: error.kind, span });
                }
            },
            PrintForm::Char => {
                for argument in &print.arguments {
                    self.want(unit, argument, Type::Long);
                }
            }
            PrintForm::Plain | PrintForm::Delimited(_) => {
                for argument in &print.arguments {
                    let ty = self.infer(unit, argument);
                    if let (ExprKind::Call(name, _), 0) = (&argument.kind, self.dead) {
                        self.printed_calls.push((ty, name));
                    }
                }
            }
        }
        self.typed.types.known(if print.to_string { Type::String } else { Type::Long }, span)
    }

    fn infer_format(&mut self, unit: &mut Unit, pieces: &[Piece], print: &'a ast::Print, literal: Span) {
        let mut arguments = print.arguments.iter();
        let mut wanted = 0;
        for piece in pieces {
            let Piece::Directive { directive, .. } = piece else { continue };
            let stars = [directive.width, directive.precision].iter().filter(|size| **size == Size::Star).count();
            let value = if format::takes_string(directive) { Type::String } else { Type::Long };
            for ty in std::iter::repeat_n(Type::Long, stars).chain([value]) {
                wanted += 1;
                if let Some(argument) = arguments.next() {
                    self.want(unit, argument, ty);
                }
            }
        }
        if wanted != print.arguments.len() {
            self.env.report(LiteralError::FormatArguments { wanted, given: print.arguments.len(), span: literal });
        }
    }

    /// The pattern is checked here; the left operand must be a string.
    fn infer_matches(&mut self, unit: &mut Unit, text: &'a ast::Expr, pattern: &[u8], pattern_span: Span) {
        self.want(unit, text, Type::String);
        // Whether groups are used is known when everything is inferred.
        if let Err(error) = spile_regex::check(pattern) {
            self.env.report(regex::regex_error(self.env.sources, error, pattern, pattern_span));
        }
    }

    /// Marks the globals that comments in the C declare as used.
    pub(super) fn infer_embedded(&mut self, code: &ast::EmbeddedC) {
        for (name, access) in mark::pragmas(code) {
            match self.names.find_global(code.span, name) {
                Some(id) => {
                    let global = &mut self.typed.globals[id.index()];
                    global.read |= access == Access::Read;
                    global.written |= access == Access::Write;
                }
                None => {
                    self.env
                        .report(ArrayError::NotGlobal { what: "variable that embedded C declares", span: code.span });
                }
            }
        }
    }
}

/// Whether the name is that of a known variable.
fn is_known(unit: &Unit, expr: &ast::Expr) -> bool {
    matches!(&expr.kind, ExprKind::Ident(name) if unit.names.contains_key(name))
}
