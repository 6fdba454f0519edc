// SPDX-License-Identifier: GPL-2.0-or-later

//! The third phase: types. Walks every handler and every function they reach, and takes from each use what follows for types.

mod arrays;
mod check;
mod flow;
pub(super) mod functions;
pub(super) mod types;

use super::counter::Counters;
use super::environment::Environment;
use super::error::Error;
use super::format::{self, Piece};
use super::guru;
use super::lookup::pointee::Pointees;
use super::lookup::{Lookup, is_text};
use super::lower::embedded;
use super::names::{DeclaredId, Names};
use super::unit::{Handler, Local, Unit};
use super::unneeded::{self, Elided};
use crate::program::uses::Access;
use crate::program::{GlobalId, Holds, Type};
pub(super) use arrays::MAX_KEYS;
use arrays::Shape;
use flow::Flow;
use functions::{Function, InstanceId};
use spile_abi::format::Size;
use spile_source::Span;
use spile_syntax::ast::{self, AssignOp, BinaryOp, ExprKind, PrintForm, StmtKind};
use spile_syntax::visit;
use std::collections::HashMap;
use types::{Conflict, TypeVar, Types};

/// What inference finds, beside the local variables of each [`Unit`].
pub(super) struct Typed<'a> {
    pub types: Types,
    /// By [`GlobalId`].
    pub globals: Vec<Global>,
    /// Those of [`Names::functions`] in their order, and copies for probe sites.
    pub functions: Vec<Function<'a>>,
    /// By declared function and site.
    copies: HashMap<(DeclaredId, u32), InstanceId>,
    /// Functions reached, in order; those not yet inferred come last.
    pub reached: Vec<functions::Reached>,
    pub pointees: Pointees,
    /// Something in the program asks what a pattern matched.
    pub groups_asked: bool,
    /// Source lines are asked for somewhere.
    pub lines_asked: bool,
}

/// What is known of a global.
pub(super) struct Global {
    /// Of the value or, of an array, of its elements.
    pub ty: TypeVar,
    pub shape: Shape,
    pub read: bool,
    pub written: bool,
}

impl<'a> Typed<'a> {
    /// Nothing known but what the declarations say.
    fn new(names: &Names<'a>) -> Typed<'a> {
        let mut typed = Typed {
            types: Types::default(),
            globals: Vec::new(),
            functions: Vec::new(),
            copies: HashMap::new(),
            reached: Vec::new(),
            pointees: HashMap::new(),
            groups_asked: false,
            lines_asked: false,
        };
        for global in &names.globals {
            let ty = match &global.initial {
                None => typed.types.fresh(),
                Some((ast::Literal::Number(_), span)) => typed.types.known(Type::Long, *span),
                Some((ast::Literal::String(_), span)) => typed.types.known(Type::String, *span),
            };
            typed.globals.push(Global { ty, shape: Shape::default(), read: false, written: false });
        }
        for function in &names.functions {
            typed.copy_function(function, Unit::default());
        }
        typed
    }

    /// The type of a variable or result; `long` where no use decides it.
    pub fn type_of(&mut self, var: TypeVar) -> Type {
        self.types.get(var).unwrap_or(Type::Long)
    }

    /// What a global holds, once all uses are seen.
    pub fn holds(&mut self, id: GlobalId) -> Holds {
        let global = &self.globals[id.index()];
        match global.shape.stats {
            Some((stats, _)) => Holds::Stats(stats),
            // One that is never used has no type, and no memory either.
            None => Holds::Value(self.type_of(global.ty)),
        }
    }

    /// The types of an array's keys; none of what is no array.
    pub fn key_types(&mut self, id: GlobalId) -> Vec<Type> {
        let keys = self.globals[id.index()].shape.keys.as_ref();
        let vars = keys.map(|(vars, _)| vars.clone()).unwrap_or_default();
        vars.into_iter().map(|var| self.type_of(var)).collect()
    }
}

/// The walk over all code.
pub(super) struct Inference<'e, 'a> {
    pub env: &'e mut Environment<'a>,
    pub names: &'e Names<'a>,
    counters: &'e Counters,
    pub typed: Typed<'a>,
    flows: Vec<Flow<'a>>,
    /// Calls whose results are printed as they are: they need a type.
    printed_calls: Vec<(TypeVar, &'a ast::Name)>,
    /// Loops around the statement.
    loops: usize,
    /// Depth of code that never runs.
    pub dead: usize,
}

/// The types of everything that the handlers reach; reports what disagrees and what has none.
pub(super) fn infer<'a>(
    env: &mut Environment<'a>,
    names: &Names<'a>,
    counters: &Counters,
    handlers: &mut [Handler<'a>],
) -> Typed<'a> {
    let mut inference = Inference::new(env, names, counters);
    inference.walk(handlers);
    inference.find_pointees(handlers);
    inference.check_globals();
    inference.check_types(handlers);
    inference.typed
}

/// The same without the checks of the whole: some of it need not be there.
pub(super) fn infer_for_survey<'a>(
    env: &mut Environment<'a>,
    names: &Names<'a>,
    handlers: &mut [Handler<'a>],
) -> Typed<'a> {
    let counters = Counters::default();
    let mut inference = Inference::new(env, names, &counters);
    inference.walk(handlers);
    inference.find_pointees(handlers);
    inference.typed
}

/// What an expression does with a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Written,
    None,
}

impl<'e, 'a> Inference<'e, 'a> {
    fn new(env: &'e mut Environment<'a>, names: &'e Names<'a>, counters: &'e Counters) -> Inference<'e, 'a> {
        let typed = Typed::new(names);
        Inference { env, names, counters, typed, flows: Vec::new(), printed_calls: Vec::new(), loops: 0, dead: 0 }
    }

    pub fn lookup(&mut self) -> Lookup<'_, 'a> {
        Lookup::new(self.env, self.names, &mut self.typed)
    }

    fn walk(&mut self, handlers: &mut [Handler<'a>]) {
        let mut last: Option<(Vec<*const ast::Stmt>, Elided)> = None;
        for handler in handlers {
            // The sites of one probe have the same statements.
            let same = |(statements, _): &(Vec<*const ast::Stmt>, Elided)| {
                statements.iter().copied().eq(handler.body.iter().map(|statement| std::ptr::from_ref(*statement)))
            };
            if !last.as_ref().is_some_and(same) {
                let statements = handler.body.iter().map(|statement| std::ptr::from_ref(*statement)).collect();
                last = Some((statements, unneeded::elided(self.env, self.names, &handler.body)));
            }
            handler.unit.elided = last.as_ref().map(|(_, elided)| elided.clone()).unwrap_or_default();
            for condition in &handler.condition {
                self.check_condition(condition);
                self.want(&mut handler.unit, condition, Type::Long);
            }
            for statement in &handler.body {
                self.infer_statement(&mut handler.unit, statement);
            }
        }
        self.infer_functions();
    }

    /// The condition of a probe point reads globals and does nothing else.
    fn check_condition(&mut self, condition: &'a ast::Expr) {
        let mut errors = Vec::new();
        visit::in_expression(condition, &mut |expr| {
            let what = match &expr.kind {
                ExprKind::Ident(name) if self.names.find_global(expr.span.file, name).is_none() => {
                    "a variable that is no global"
                }
                ExprKind::Assign(..) | ExprKind::Step { .. } => "an assignment",
                ExprKind::Call(..) => "a call",
                ExprKind::EmbeddedC(_) => "embedded C",
                ExprKind::Print(print) if !print.to_string => "a print",
                ExprKind::Target(_) | ExprKind::Var { .. } | ExprKind::Entry(_) => "a context variable",
                _ => return,
            };
            errors.push(Error::Condition { what, span: expr.span });
        });
        errors.into_iter().for_each(|error| self.env.report(error));
        guru::check_condition(self.env, condition);
    }

    pub(super) fn infer_statements(&mut self, unit: &mut Unit, statements: &'a [ast::Stmt]) {
        for statement in statements {
            self.infer_statement(unit, statement);
        }
    }

    pub fn infer_statement(&mut self, unit: &mut Unit, statement: &'a ast::Stmt) {
        if unit.elided.has(statement) {
            return;
        }
        match &statement.kind {
            StmtKind::Empty | StmtKind::Next => {}
            StmtKind::Block(block) => self.infer_statements(unit, &block.statements),
            StmtKind::Expr(expr) => {
                self.infer_any(unit, expr);
            }
            StmtKind::If { condition, then, otherwise } => match self.lookup().fold(unit, condition) {
                Some(0) => {
                    self.infer_dead_condition(unit, condition);
                    self.infer_dead_statement(unit, then);
                    if let Some(otherwise) = otherwise {
                        self.infer_statement(unit, otherwise);
                    }
                }
                Some(_) => {
                    self.infer_dead_condition(unit, condition);
                    self.infer_statement(unit, then);
                    if let Some(otherwise) = otherwise {
                        self.infer_dead_statement(unit, otherwise);
                    }
                }
                None => {
                    self.want(unit, condition, Type::Long);
                    self.infer_statement(unit, then);
                    if let Some(otherwise) = otherwise {
                        self.infer_statement(unit, otherwise);
                    }
                }
            },
            StmtKind::While { condition, body } => {
                self.want(unit, condition, Type::Long);
                self.infer_loop(unit, body);
            }
            StmtKind::For { init, condition, step, body } => {
                if let Some(init) = init {
                    self.infer_any(unit, init);
                }
                if let Some(condition) = condition {
                    self.want(unit, condition, Type::Long);
                }
                if let Some(step) = step {
                    self.infer_any(unit, step);
                }
                self.infer_loop(unit, body);
            }
            StmtKind::Foreach(foreach) => self.infer_foreach(unit, foreach, statement.span),
            StmtKind::Break => self.in_loop("break", statement.span),
            StmtKind::Continue => self.in_loop("continue", statement.span),
            StmtKind::Return(value) => match (unit.function, value) {
                // Refused when the text was read.
                (None, _) => {}
                (Some(index), None) => self.infer_bare_return(index, statement.span),
                (Some(index), Some(value)) => self.infer_return(unit, index, value),
            },
            StmtKind::Delete(expr) => {
                if !self.infer_delete(unit, expr) {
                    if let ast::ExprKind::Ident(name) = &expr.kind
                        && unit.find_variable(self.names, name, expr.span).is_none()
                    {
                        self.env.report(Error::NotGlobal { what: "array", span: expr.span });
                    }
                    self.infer_written(unit, expr);
                }
            }
            StmtKind::Try { body, message, handler } => {
                self.infer_statements(unit, &body.statements);
                if let Some(name) = message {
                    let ty = self.variable(unit, name, Use::Written);
                    self.set(ty, Type::String, name.span);
                }
                self.infer_statements(unit, &handler.statements);
            }
        }
    }

    pub(super) fn infer_loop(&mut self, unit: &mut Unit, body: &'a ast::Stmt) {
        self.loops += 1;
        self.infer_statement(unit, body);
        self.loops -= 1;
    }

    fn in_loop(&mut self, word: &'static str, span: Span) {
        if self.loops == 0 {
            self.env.report(Error::OutsideLoop { word, span });
        }
    }

    pub(super) fn set(&mut self, var: TypeVar, ty: Type, span: Span) {
        if let Err(conflict) = self.typed.types.set(var, ty, span) {
            self.env.report(Error::Types(conflict));
        }
    }

    /// Equates what a place has with what the expression at `span` gives.
    pub(super) fn equate_at(&mut self, place: TypeVar, value: TypeVar, span: Span) {
        if let Err(Conflict { first, second }) = self.typed.types.equate(place, value) {
            self.env.report(Error::Types(Conflict { first, second: (second.0, span) }));
        }
    }

    /// The expression must have that type.
    pub fn want(&mut self, unit: &mut Unit, expr: &'a ast::Expr, ty: Type) {
        let var = self.infer(unit, expr);
        match self.typed.types.decided(var) {
            Some(found) if found.0 != ty => {
                let first = (ty, expr.span);
                let conflict = Conflict { first, second: (found.0, expr.span) };
                let mut diagnostic = Error::Types(conflict).diagnostic();
                diagnostic.labels.truncate(1);
                if found.1 != expr.span {
                    diagnostic = diagnostic.also(found.1, format!("it is a {} because of this", found.0.name()));
                }
                self.env.add(diagnostic);
            }
            _ => self.set(var, ty, expr.span),
        }
    }

    /// An expression used as a statement: one that returns nothing is fine.
    fn infer_any(&mut self, unit: &mut Unit, expr: &'a ast::Expr) {
        match &expr.kind {
            ExprKind::Call(name, arguments) => {
                self.infer_call(unit, name, arguments);
            }
            ExprKind::Assign(op, left, right) => {
                self.infer_assign(unit, *op, left, right, expr.span);
            }
            ExprKind::Step { target, .. } => {
                self.infer_step(unit, target);
            }
            // A name alone has a type only if something else gives it one.
            ExprKind::Ident(text) => {
                self.variable(unit, &ast::Name { text: text.clone(), span: expr.span }, Use::None);
            }
            _ => {
                self.infer(unit, expr);
            }
        }
    }

    fn infer_step(&mut self, unit: &mut Unit, target: &'a ast::Expr) {
        let ty = self.infer_written(unit, target);
        self.set(ty, Type::Long, target.span);
    }

    /// The value of an assignment is used: that reads what it wrote.
    fn infer_result(&mut self, target: &'a ast::Expr) {
        let base = match &target.kind {
            ExprKind::Index(base, _) => base,
            _ => target,
        };
        if let ExprKind::Ident(name) = &base.kind {
            if let Some(id) = self.names.find_global(base.span.file, name) {
                self.typed.globals[id.index()].read = true;
            }
        }
    }

    /// The variable of that name: a global, a local, or a local made now.
    pub(super) fn variable(&mut self, unit: &mut Unit, name: &ast::Name, used: Use) -> TypeVar {
        let (read, written) = (used == Use::Read && self.dead == 0, used == Use::Written);
        if let Some(id) = unit.find_local(self.names, name.span.file, &name.text) {
            let local = &mut unit.locals[id.index()];
            local.assigned |= written;
            local.read |= read;
            return local.ty;
        }
        if let Some(id) = self.names.find_global(name.span.file, &name.text) {
            let global = &mut self.typed.globals[id.index()];
            if written {
                global.written = true;
            } else if used == Use::Read {
                global.read = true;
            }
            global.shape.scalar.get_or_insert(name.span);
            return global.ty;
        }
        let ty = self.typed.types.fresh();
        unit.add(Local { name: name.text.clone(), ty, span: name.span, assigned: written, read });
        ty
    }

    /// The type of what an assignment writes. A compound one reads it too, which does not count as a use.
    fn infer_written(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> TypeVar {
        match &expr.kind {
            ExprKind::Ident(text) => {
                self.variable(unit, &ast::Name { text: text.clone(), span: expr.span }, Use::Written)
            }
            ExprKind::Index(..) if self.names.is_element(expr) => self.infer_element(unit, expr, true),
            ExprKind::Index(base, _) if matches!(base.kind, ExprKind::Ident(_)) && !self.is_known(unit, base) => {
                self.infer_element(unit, expr, true)
            }
            ExprKind::Target(_) if unit.at.text_variable(expr).is_some() => {
                self.typed.types.known(Type::String, expr.span)
            }
            ExprKind::Target(_) | ExprKind::Member(..) | ExprKind::Index(..) | ExprKind::Var { .. } => {
                if !self.env.options.guru {
                    self.env.report(Error::Guru { what: "writing to a context variable", span: expr.span });
                }
                self.infer(unit, expr)
            }
            _ => {
                self.env.report(Error::NotAssignable { span: expr.span });
                self.typed.types.fresh()
            }
        }
    }

    /// Infers an expression whose value is used.
    pub fn infer(&mut self, unit: &mut Unit, expr: &'a ast::Expr) -> TypeVar {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Number(_) => self.typed.types.known(Type::Long, span),
            ExprKind::String(_) => self.typed.types.known(Type::String, span),
            ExprKind::Ident(text) => self.variable(unit, &ast::Name { text: text.clone(), span }, Use::Read),
            // It may be there, and have any type, where this runs.
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
                ExprKind::Ident(_) if self.names.is_element(expr) || !self.is_known(unit, base) => {
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
                self.infer_result(left);
                self.infer_assign(unit, *op, left, right, span)
            }
            ExprKind::Step { target, .. } => {
                self.infer_result(target);
                self.infer_step(unit, target);
                self.typed.types.known(Type::Long, span)
            }
            ExprKind::Conditional(condition, then, otherwise) => match self.lookup().fold(unit, condition) {
                Some(value) => {
                    self.infer_dead_condition(unit, condition);
                    let (taken, other) = if value == 0 { (otherwise, then) } else { (then, otherwise) };
                    let ty = self.infer(unit, taken);
                    if let Some(other_type) = self.infer_dead(unit, other) {
                        self.equate_at(ty, other_type, other.span);
                    }
                    ty
                }
                None => {
                    self.want(unit, condition, Type::Long);
                    let ty = self.infer(unit, then);
                    let other = self.infer(unit, otherwise);
                    self.equate_at(ty, other, otherwise.span);
                    ty
                }
            },
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
                self.typed.types.known(embedded::value_type(code), span)
            }
        }
    }

    /// What a `->`, `[`, `$` or `&` stands on: a target expression or a cast.
    fn infer_base(&mut self, unit: &mut Unit, base: &'a ast::Expr) {
        match &base.kind {
            ExprKind::Target(_) => {}
            _ => self.want(unit, base, Type::Long),
        }
    }

    /// Whether the name is that of a variable seen before.
    fn is_known(&self, unit: &Unit, expr: &ast::Expr) -> bool {
        matches!(&expr.kind, ExprKind::Ident(name) if unit.names.contains_key(name))
    }

    fn infer_index(&mut self, unit: &mut Unit, base: &'a ast::Expr, indices: &'a [ast::Index], span: Span) -> TypeVar {
        self.infer_base(unit, base);
        for index in indices {
            match index {
                ast::Index::Expr(index) => self.want(unit, index, Type::Long),
                ast::Index::Any(span) => self.env.report(Error::NotIndexable { type_name: "*".into(), span: *span }),
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
                    self.env.report(Error::Types(conflict));
                }
                self.typed.types.known(Type::Long, span)
            }
            Concatenate if self.is_dot_member(unit, left, right) => self.typed.types.known(Type::String, span),
            Concatenate => {
                self.want(unit, left, Type::String);
                self.want(unit, right, Type::String);
                self.typed.types.known(Type::String, span)
            }
            _ => {
                self.want(unit, left, Type::Long);
                self.want(unit, right, Type::Long);
                self.typed.types.known(Type::Long, span)
            }
        }
    }

    /// Whether `left . right` was meant as a member in C's own spelling; reports it.
    fn is_dot_member(&mut self, unit: &mut Unit, left: &'a ast::Expr, right: &'a ast::Expr) -> bool {
        let mut head = right;
        while let ExprKind::Member(base, _) | ExprKind::Index(base, _) | ExprKind::Pretty(base, _) = &head.kind {
            head = base;
        }
        let ExprKind::Ident(name) = &head.kind else { return false };
        if unit.names.contains_key(name) || self.names.find_global(head.span.file, name).is_some() {
            return false;
        }
        let number = match &left.kind {
            ExprKind::Target(word) => !is_text(word) && unit.at.text_variable(left).is_none(),
            ExprKind::Member(..) | ExprKind::Cast { .. } | ExprKind::Var { .. } | ExprKind::AddressOf(_) => true,
            ExprKind::Index(base, _) => matches!(
                base.kind,
                ExprKind::Target(_) | ExprKind::Member(..) | ExprKind::Cast { .. } | ExprKind::Var { .. }
            ),
            // A number as such has no members: written apart, a string is meant.
            ExprKind::Ident(word) if left.span.end + 1 == right.span.start => {
                let known = unit.names.contains_key(word) || self.names.find_global(left.span.file, word).is_some();
                let ty = known.then(|| self.infer(unit, left));
                ty.is_some_and(|ty| self.typed.types.get(ty) == Some(Type::Long))
            }
            _ => false,
        };
        if number {
            let (text, right) = (spile_syntax::print::expr(left), spile_syntax::print::expr(right));
            self.env.report(Error::DotMember { left: text, right, span: left.span });
        }
        number
    }

    fn infer_assign(
        &mut self,
        unit: &mut Unit,
        op: AssignOp,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        span: Span,
    ) -> TypeVar {
        match op {
            AssignOp::Aggregate => {
                self.infer_feed(unit, left, right);
                self.typed.types.known(Type::Long, span)
            }
            AssignOp::Set => {
                let value = self.infer(unit, right);
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
                    let span = super::literal::span_inside(self.env.sources, *literal, text, error.start, error.end);
                    self.env.report(Error::Format { kind: error.kind, span });
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
            self.env.report(Error::FormatArguments { wanted, given: print.arguments.len(), span: literal });
        }
    }
    /// Checks the pattern where it is written; what is matched must be a string.
    fn infer_matches(&mut self, unit: &mut Unit, text: &'a ast::Expr, pattern: &[u8], pattern_span: Span) {
        self.want(unit, text, Type::String);
        // Whether groups are asked is known when everything is inferred.
        if let Err(error) = spile_regex::check(pattern) {
            self.env.report(super::lower::regex::regex_error(self.env.sources, error, pattern, pattern_span));
        }
    }

    /// Marks the globals that comments in the C declare as used.
    fn infer_embedded(&mut self, code: &ast::EmbeddedC) {
        for (name, access) in embedded::pragmas(code) {
            match self.names.find_global(code.span.file, name) {
                Some(id) => {
                    let global = &mut self.typed.globals[id.index()];
                    global.read |= access == Access::Read;
                    global.written |= access == Access::Write;
                }
                None => {
                    self.env.report(Error::NotGlobal { what: "variable that embedded C declares", span: code.span })
                }
            }
        }
    }
}
