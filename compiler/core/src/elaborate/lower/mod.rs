// SPDX-License-Identifier: GPL-2.0-or-later

//! The last phase: syntax trees to the resolved program, once every type is known.

mod arrays;
mod display;
mod embedded;
mod enums;
mod functions;
mod groups;
mod hit_symbol;
mod pretty;
mod print;
mod raw;
pub(super) mod regex;
mod rust_text;
mod text_variable;
mod variables;

use super::counter::Counters;
use super::environment::Environment;
use super::error::{AggregateError, Error, StatementError, VariableError};
use super::lookup::value::place_of;
use super::lookup::{Lookup, Operands, find, find_addressed, result_at_entry};
use super::mark;
use super::names::{DeclaredId, Names};
use super::typed::Typed;
use super::types::TypeVar;
use super::unit::{Handler, Unit};
use crate::probe::{Location, TypedLocation};
use crate::program::{
    self, BinaryOp, Constant, Contents, Expr, Global, GlobalId, Local, LocalId, LongExpr, LongKind, LongPlace, Probe,
    Program, SavedId, Stmt, StmtKind, StringExpr, StringKind, StringPlace, Type, Variable,
};
use regex::Regexes;
use spile_source::Span;
use spile_syntax::ast::{self, AssignOp};
use std::collections::HashMap;

/// The program of the handlers and of all functions they reach.
pub(super) fn lower<'a>(
    env: &mut Environment<'a>,
    names: &Names<'a>,
    counters: &Counters,
    typed: Typed<'a>,
    handlers: Vec<Handler<'a>>,
    scripts: &'a [ast::Script],
) -> Program {
    let mut lowering = Lowering {
        env,
        names,
        counters,
        typed,
        saved: HashMap::new(),
        made: Vec::new(),
        namers: HashMap::new(),
        regexes: Regexes::default(),
        descriptions: pretty::Descriptions::default(),
        some_nameless: handlers.iter().any(hit_symbol::is_nameless),
        nameless: None,
        arguments: Vec::new(),
    };
    lowering.lower_all(scripts, handlers)
}

/// Values that a probe site saves at the probed function's entry.
#[derive(Default)]
struct Saved {
    values: Vec<Expr>,
    /// Those of expressions that may be evaluated once for all their uses.
    known: HashMap<SavedKey, SavedId>,
    /// Where the caller wants the result.
    result: Option<SavedId>,
}

/// A saved expression: its spelling, and what the names in it refer to there.
#[derive(PartialEq, Eq, Hash)]
struct SavedKey {
    text: String,
    names: Vec<Referent>,
}

#[derive(PartialEq, Eq, Hash)]
enum Referent {
    Variable(Option<Variable>),
    Function(Option<DeclaredId>),
}

struct Lowering<'e, 'a> {
    env: &'e mut Environment<'a>,
    names: &'e Names<'a>,
    counters: &'e Counters,
    typed: Typed<'a>,
    /// By probe site.
    saved: HashMap<u32, Saved>,
    /// Functions that lowering adds to the script's: their numbers follow the script's.
    made: Vec<program::Function>,
    /// Those of them that give the names of enumerators, by what these are.
    namers: HashMap<Vec<(String, i64)>, program::FunctionId>,
    regexes: Regexes,
    descriptions: pretty::Descriptions,
    /// Some probe point names no function, and its hits are somewhere in code.
    some_nameless: bool,
    /// The same of the handler that is being lowered; None in a function.
    nameless: Option<bool>,
    /// In a function with `next`: where the arguments of the call are.
    arguments: Vec<(LocalId, TypeVar)>,
}

/// Operands of the target expression that is being lowered.
struct LoweredOperands<'l, 'e, 'a> {
    lowering: &'l mut Lowering<'e, 'a>,
    unit: &'l Unit,
}

impl<'a> Operands<'a> for LoweredOperands<'_, '_, 'a> {
    fn lookup(&mut self) -> Lookup<'_, 'a> {
        self.lowering.lookup()
    }

    fn value(&mut self, expr: &ast::Expr) -> Result<LongExpr, Error> {
        self.lowering.lower_long(self.unit, expr)
    }

    fn variable(&mut self, unit: &Unit, name: &str, found: TypedLocation) -> TypedLocation {
        self.lowering.where_wanted(unit, name, found)
    }
}

type Lowered<T = Expr> = Result<T, Error>;

impl<'a> Lowering<'_, 'a> {
    fn lookup(&mut self) -> Lookup<'_, 'a> {
        Lookup::new(self.env, self.names, &mut self.typed)
    }

    fn lower_all(&mut self, scripts: &[ast::Script], handlers: Vec<Handler>) -> Program {
        let globals = (0..self.names.globals.len()).map(|index| self.lower_global(GlobalId(index as u32))).collect();
        let mut program = Program { globals, ..Program::default() };
        program.functions = self.lower_functions();
        for handler in handlers {
            let probe = self.lower_handler(handler);
            program.probes.push(probe);
        }
        program.functions.append(&mut self.made);
        if self.env.options.display_globals {
            program.probes.extend(self.display_globals());
        }
        for item in scripts.iter().flat_map(|script| &script.items) {
            if let ast::Item::EmbeddedC(code) = item {
                program.embedded.push(self.lower_embedded(code));
            }
        }
        program.regexes = std::mem::take(&mut self.regexes.compiled);
        for error in self.regexes.take_errors(&program) {
            self.env.report(error);
        }
        if self.typed.lines_asked {
            program.lines = self.env.resolver.line_tables();
        }
        (program.targets, program.anchor_address) = self.env.resolver.take_targets();
        program.follows = self.typed.followed_asked || self.env.resolver.is_following();
        program.begins = self.env.resolver.has_beginnings();
        program.programs = self.env.resolver.take_programs();
        program.unwinders = self.env.resolver.take_unwinders();
        program.left_out = self.env.resolver.take_skipped();
        program
    }

    fn lower_global(&mut self, id: GlobalId) -> Global {
        let ast = self.names.globals[id.index()];
        let initial = ast.initial.as_ref().map(|(literal, _)| match literal {
            ast::Literal::Number(value) => Constant::Long(*value),
            ast::Literal::String(bytes) => Constant::String(bytes.clone()),
        });
        Global {
            name: ast.name.text.clone(),
            contents: self.typed.contents(id),
            keys: self.typed.key_types(id),
            size: ast.size.and_then(|size| u32::try_from(size).ok()),
            wrap: ast.wrap,
            initial,
            span: ast.span,
        }
    }

    fn locals(&mut self, unit: &Unit) -> Vec<Local> {
        let local = |local: &super::unit::Local| Local { name: local.name.clone(), ty: self.typed.type_of(local.ty) };
        unit.locals.iter().map(local).collect()
    }

    fn lower_handler(&mut self, handler: Handler) -> Probe {
        self.nameless = Some(hit_symbol::is_nameless(&handler));
        let unit = handler.unit;
        let mut body = Vec::new();
        for condition in &handler.condition {
            match self.lower_long(&unit, condition) {
                Ok(condition) => {
                    let span = condition.span;
                    let next = Stmt { kind: StmtKind::Filter, span };
                    let not = LongExpr::not(condition, span);
                    body.push(Stmt {
                        kind: StmtKind::If { condition: not, then: Box::new(next), otherwise: None },
                        span,
                    });
                }
                Err(error) => self.env.report(error),
            }
        }
        body.extend(self.lower_guard(&unit, handler.span));
        let statements = if self.env.options.counts_only { &[] } else { &handler.body[..] };
        for statement in statements {
            body.extend(self.lower_statements(&unit, std::slice::from_ref(statement)));
        }
        let locals = self.locals(&unit);
        Probe {
            point: handler.site.point,
            script_point: handler.script_point,
            function: handler.site.function,
            module: handler.site.module,
            attachment: handler.site.attachment,
            locals,
            saved: unit.at.site.and_then(|site| self.saved.remove(&site)).unwrap_or_default().values,
            body,
            span: handler.span,
        }
    }

    /// The test of the site's own guard. In a block: it is not a condition that can be evaluated without a hit.
    fn lower_guard(&mut self, unit: &Unit, span: Span) -> Option<Stmt> {
        let mut guard = unit.at.context.as_ref()?.guard()?;
        if let Some(site) = unit.at.site.filter(|_| unit.at.is_return()) {
            let saved = self.saved.entry(site).or_default();
            let id = SavedId(saved.values.len() as u32);
            saved.values.push(guard.into());
            guard = LongExpr { kind: LongKind::Saved(id), span };
        }
        let not = LongExpr::not(guard, span);
        let filter = Box::new(Stmt { kind: StmtKind::Filter, span });
        let test = Stmt { kind: StmtKind::If { condition: not, then: filter, otherwise: None }, span };
        Some(Stmt { kind: StmtKind::Block(vec![test]), span })
    }

    /// `$return` whose address only the registers at the entry have, by what is saved there; other variables as they are found.
    fn where_wanted(&mut self, unit: &Unit, name: &str, found: TypedLocation) -> TypedLocation {
        let Some((site, place)) = unit.at.site.zip(result_at_entry(unit, name, &found)) else { return found };
        let span = place.span;
        let saved = self.saved.entry(site).or_default();
        let id = *saved.result.get_or_insert_with(|| {
            saved.values.push(place.into());
            SavedId(saved.values.len() as u32 - 1)
        });
        let address = LongExpr { kind: LongKind::Saved(id), span };
        TypedLocation { location: Location::Memory { address, bits: None }, ..found }
    }

    fn lower_statements(&mut self, unit: &Unit, statements: &[ast::Stmt]) -> Vec<Stmt> {
        statements
            .iter()
            .filter_map(|statement| match self.lower_statement(unit, statement) {
                Ok(statement) => statement,
                Err(error) => {
                    self.env.report(error);
                    None
                }
            })
            .collect()
    }

    fn lower_boxed(&mut self, unit: &Unit, statement: &ast::Stmt) -> Lowered<Box<Stmt>> {
        let span = statement.span;
        let lowered = self.lower_statement(unit, statement)?;
        Ok(Box::new(lowered.unwrap_or(Stmt { kind: StmtKind::Block(Vec::new()), span })))
    }

    fn lower_statement(&mut self, unit: &Unit, statement: &ast::Stmt) -> Lowered<Option<Stmt>> {
        use ast::StmtKind as Ast;
        if unit.elided.has(statement) {
            return Ok(None);
        }
        let kind = match &statement.kind {
            Ast::Empty => return Ok(None),
            Ast::Block(block) => StmtKind::Block(self.lower_statements(unit, &block.statements)),
            Ast::Expr(ast::Expr { kind: ast::ExprKind::Ident(_), .. }) => return Ok(None),
            Ast::Expr(expr) => StmtKind::Expr(self.lower(unit, expr)?),
            Ast::If { condition, then, otherwise } => match (self.lookup().fold(unit, condition), otherwise) {
                (Some(0), None) => return Ok(None),
                (Some(0), Some(otherwise)) => return self.lower_statement(unit, otherwise),
                (Some(_), _) => return self.lower_statement(unit, then),
                (None, _) => StmtKind::If {
                    condition: self.lower_long(unit, condition)?,
                    then: self.lower_boxed(unit, then)?,
                    otherwise: otherwise.as_ref().map(|otherwise| self.lower_boxed(unit, otherwise)).transpose()?,
                },
            },
            Ast::While { condition, body } => StmtKind::Loop {
                condition: Some(self.lower_long(unit, condition)?),
                step: None,
                body: self.lower_boxed(unit, body)?,
            },
            Ast::For { init, condition, step, body } => {
                let mut statements = Vec::new();
                if let Some(init) = init {
                    let span = init.span;
                    statements.push(Stmt { kind: StmtKind::Expr(self.lower(unit, init)?), span });
                }
                let kind = StmtKind::Loop {
                    condition: condition.as_ref().map(|condition| self.lower_long(unit, condition)).transpose()?,
                    step: step.as_ref().map(|step| self.lower(unit, step)).transpose()?,
                    body: self.lower_boxed(unit, body)?,
                };
                statements.push(Stmt { kind, span: statement.span });
                StmtKind::Block(statements)
            }
            Ast::Foreach(foreach) => self.lower_foreach(unit, foreach, statement.span)?,
            Ast::Break => StmtKind::Break,
            Ast::Continue => StmtKind::Continue,
            Ast::Next => match unit.function {
                Some(function) => self.lower_next(function, statement.span),
                None => StmtKind::Next,
            },
            Ast::Return(value) => StmtKind::Return(value.as_ref().map(|value| self.lower(unit, value)).transpose()?),
            Ast::Delete(expr) => match (self.lower_delete(unit, expr)?, self.variable_of(unit, expr)) {
                (Some(deleted), _) => deleted,
                (None, Some(variable)) => StmtKind::Delete(variable),
                (None, None) => return Err(StatementError::NotAssignable { span: expr.span }.into()),
            },
            Ast::Try { body, message, handler } => StmtKind::Try {
                body: self.lower_statements(unit, &body.statements),
                message: match message {
                    Some(name) => unit.find_variable(self.names, &name.text, name.span),
                    None => None,
                },
                handler: self.lower_statements(unit, &handler.statements),
            },
        };
        Ok(Some(Stmt { kind, span: statement.span }))
    }

    fn variable_of(&self, unit: &Unit, expr: &ast::Expr) -> Option<Variable> {
        match &expr.kind {
            ast::ExprKind::Ident(name) => unit.find_variable(self.names, name, expr.span),
            _ => None,
        }
    }

    fn type_of(&mut self, unit: &Unit, variable: Variable) -> Type {
        self.typed.type_of(match variable {
            Variable::Local(id) => unit.locals[id.index()].ty,
            Variable::Global(id) => self.typed.globals[id.index()].ty,
        })
    }

    /// An expression that inference found to be a number.
    fn lower_long(&mut self, unit: &Unit, expr: &ast::Expr) -> Lowered<LongExpr> {
        self.lower(unit, expr)?.long().ok_or(not_a(Type::Long, expr.span))
    }

    /// An expression that inference found to be a string.
    fn lower_string(&mut self, unit: &Unit, expr: &ast::Expr) -> Lowered<StringExpr> {
        self.lower(unit, expr)?.string().ok_or(not_a(Type::String, expr.span))
    }

    fn lower(&mut self, unit: &Unit, expr: &ast::Expr) -> Lowered {
        use ast::ExprKind as Ast;
        let span = expr.span;
        let kind = match &expr.kind {
            Ast::Number(value) => LongKind::Const(*value),
            Ast::String(bytes) => return Ok(StringExpr::literal(bytes.clone(), span).into()),
            Ast::Ident(name) => return self.lower_variable(unit, name, span),
            Ast::Index(..) if self.names.is_element(expr) => return self.lower_element_value(unit, expr),
            Ast::Index(base, indices) if matches!(base.kind, Ast::Histogram { .. }) => {
                return self.lower_bucket(unit, base, indices, span);
            }
            Ast::In(indices, array) => return self.lower_in(unit, indices, array, span),
            Ast::Extract { extractor, aggregate, .. } => {
                LongKind::Extract { aggregate: self.lower_element(unit, aggregate)?, extractor: *extractor }
            }
            Ast::Histogram { aggregate, .. } => {
                let kind = StringKind::Chart(self.lower_element(unit, aggregate)?);
                return Ok(StringExpr { kind, span }.into());
            }
            // A cast by itself is its value, with a type.
            Ast::Cast { value, .. } => {
                self.find_here(unit, expr)?;
                return self.lower(unit, value);
            }
            Ast::Target(_)
            | Ast::Member(..)
            | Ast::Index(..)
            | Ast::AddressOf(_)
            | Ast::Pretty(..)
            | Ast::Var { .. } => {
                return match unit.at.text_variable(expr) {
                    Some(variable) => text_variable::read_text(variable, span),
                    None => self.lower_target(unit, expr),
                };
            }
            Ast::Entry(value) => return self.save(unit, value, span),
            Ast::Perf(name) => return self.counters.lower(name, span),
            Ast::ProbeWrite(_) => LongKind::Const(self.lookup().fold(unit, expr).unwrap_or(0)),
            Ast::Deref { user, size, address } => return self.lower_deref(unit, *user, size, address, span),
            Ast::Register { user, number } => return self.lower_register(unit, *user, number, span),
            Ast::Const(text) => return Ok(Self::lower_const(text, span)),
            Ast::Enum(name) => return self.lower_enum(unit, name, span),
            Ast::EnumName { value, type_name, module } => {
                return self.lower_enum_name(unit, value, type_name.as_deref(), module.as_deref(), span);
            }
            Ast::Defined(operand) => LongKind::Const(i64::from(self.lookup().is_defined(unit, operand))),
            Ast::Matches { left, pattern, pattern_span, negated } => {
                let span = self.operator_span(left.span, *pattern_span, span);
                return self.lower_matches(unit, left, (pattern, *pattern_span), *negated, span);
            }
            Ast::Call(name, arguments) => return self.lower_call(unit, name, arguments),
            Ast::Unary(ast::UnaryOp::Plus, operand) => return self.lower_long(unit, operand).map(Expr::Long),
            Ast::Unary(op, operand) => unary(*op, self.lower_long(unit, operand)?),
            Ast::Binary(op, left, right) => {
                let span = self.operator_span(left.span, right.span, span);
                return self.lower_binary(unit, *op, left, right, span);
            }
            Ast::Assign(op, left, right) => {
                let operator = self.operator_span(left.span, right.span, span);
                return match self.lower(unit, right)? {
                    Expr::Long(value) => self.lower_long_assign(unit, *op, left, value, operator).map(Expr::Long),
                    Expr::String(value) => self.lower_string_assign(unit, *op, left, value, operator).map(Expr::String),
                };
            }
            Ast::Step { delta, prefix, target } => {
                let left = Box::new(self.lower_long_place(unit, target)?);
                let value = Box::new(LongExpr::constant(*delta, span));
                LongKind::Update { left, op: BinaryOp::Add, value, old: !prefix }
            }
            Ast::Conditional(condition, then, otherwise) => {
                return self.lower_conditional(unit, [condition, then, otherwise], span);
            }
            Ast::Print(print) => {
                let pieces = self.lower_print(unit, print)?;
                if print.to_string {
                    return Ok(StringExpr::format(pieces, span).into());
                }
                LongKind::Print(Box::new(pieces))
            }
            Ast::EmbeddedC(code) => {
                let ty = mark::value_type(code);
                return Ok(Expr::embedded(self.lower_embedded_in(unit, code), ty, span));
            }
        };
        Ok(LongExpr { kind, span }.into())
    }

    /// The value of a variable of this name.
    fn lower_variable(&mut self, unit: &Unit, name: &str, span: Span) -> Lowered {
        let variable = unit.find_variable(self.names, name, span).ok_or(StatementError::NotAssignable { span })?;
        if self.typed.at_entry && matches!(variable, Variable::Local(_)) {
            return Err(VariableError::NotAtEntry { name: name.to_string(), span }.into());
        }
        if let Variable::Global(id) = variable
            && let Contents::Stats(_) = self.typed.contents(id)
        {
            return Err(AggregateError::AggregateAsValue { name: name.to_string(), span, stats: None }.into());
        }
        Ok(Expr::variable(variable, self.type_of(unit, variable), span))
    }

    /// `condition ? then : otherwise`; only one of them if the condition is known.
    fn lower_conditional(&mut self, unit: &Unit, [condition, then, otherwise]: [&ast::Expr; 3], span: Span) -> Lowered {
        match self.lookup().fold(unit, condition) {
            Some(0) => return self.lower(unit, otherwise),
            Some(_) => return self.lower(unit, then),
            None => {}
        }
        let condition = Box::new(self.lower_long(unit, condition)?);
        match self.lower(unit, then)? {
            Expr::Long(then) => {
                let otherwise = Box::new(self.lower_long(unit, otherwise)?);
                Ok(LongExpr { kind: LongKind::Conditional(condition, Box::new(then), otherwise), span }.into())
            }
            Expr::String(then) => {
                let otherwise = Box::new(self.lower_string(unit, otherwise)?);
                Ok(StringExpr { kind: StringKind::Conditional(condition, Box::new(then), otherwise), span }.into())
            }
        }
    }

    fn lower_binary(
        &mut self,
        unit: &Unit,
        op: ast::BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
        span: Span,
    ) -> Lowered {
        if matches!(op, ast::BinaryOp::And | ast::BinaryOp::Or)
            && let Some(value) = self.lookup().decided(unit, op, left)
        {
            return Ok(LongExpr::constant(value, span).into());
        }
        let Some(op) = BinaryOp::of(op) else {
            let (left, right) = (self.lower_string(unit, left)?, self.lower_string(unit, right)?);
            return Ok(StringExpr::concatenate(left, right, span).into());
        };
        let right_span = right.span;
        let kind = match (self.lower(unit, left)?, self.lower(unit, right)?, op) {
            (Expr::Long(left), right, op) => {
                let right = right.long().ok_or(not_a(Type::Long, right_span))?;
                LongKind::Binary(op, Box::new(left), Box::new(right))
            }
            (Expr::String(left), right, BinaryOp::Compare(comparison)) => {
                let right = right.string().ok_or(not_a(Type::String, right_span))?;
                LongKind::Compare(comparison, Box::new(left), Box::new(right))
            }
            (Expr::String(left), ..) => return Err(not_a(Type::Long, left.span)),
        };
        Ok(LongExpr { kind, span }.into())
    }

    fn lower_long_assign(
        &mut self,
        unit: &Unit,
        op: AssignOp,
        left: &ast::Expr,
        value: LongExpr,
        span: Span,
    ) -> Lowered<LongExpr> {
        let value = Box::new(value);
        let kind = match op {
            AssignOp::Aggregate => LongKind::Feed { aggregate: self.lower_element(unit, left)?, value },
            AssignOp::Set => LongKind::Assign(Box::new(self.lower_long_place(unit, left)?), value),
            AssignOp::Compound(op) => {
                let op = BinaryOp::of(op).ok_or(not_a(Type::String, value.span))?;
                LongKind::Update { left: Box::new(self.lower_long_place(unit, left)?), op, value, old: false }
            }
        };
        Ok(LongExpr { kind, span })
    }

    fn lower_string_assign(
        &mut self,
        unit: &Unit,
        op: AssignOp,
        left: &ast::Expr,
        value: StringExpr,
        span: Span,
    ) -> Lowered<StringExpr> {
        if let Some(variable) = unit.at.text_variable(left) {
            return text_variable::write_text(variable, op, value, span);
        }
        let value = Box::new(value);
        let kind = match op {
            AssignOp::Set => StringKind::Assign(Box::new(self.lower_string_place(unit, left)?), value),
            AssignOp::Compound(ast::BinaryOp::Concatenate) => {
                StringKind::Append(Box::new(self.lower_string_place(unit, left)?), value)
            }
            AssignOp::Compound(_) | AssignOp::Aggregate => return Err(not_a(Type::Long, value.span)),
        };
        Ok(StringExpr { kind, span })
    }

    /// The operator between two operands, for run-time errors: the text between them.
    fn operator_span(&self, left: Span, right: Span, whole: Span) -> Span {
        if left.file != right.file || left.via != right.via || left.end > right.start {
            return whole;
        }
        let between = Span { start: left.end, end: right.start, ..left };
        let text = self.env.sources.text(between);
        let Some(at) = text.find(|byte: char| "=<>+-*/%&|^!.~".contains(byte)) else { return whole };
        let length = text[at..].find(|byte: char| !"=<>+-*/%&|^!.~".contains(byte)).unwrap_or(text.len() - at);
        let start = between.start + at as u32;
        Span { start, end: start + length as u32, ..between }
    }

    fn lower_string_place(&mut self, unit: &Unit, expr: &ast::Expr) -> Lowered<StringPlace> {
        if self.names.is_element(expr) {
            return self.lower_element(unit, expr).map(StringPlace::Element);
        }
        self.variable_of(unit, expr).map(StringPlace::Variable).ok_or(not_a(Type::String, expr.span))
    }

    fn lower_long_place(&mut self, unit: &Unit, expr: &ast::Expr) -> Lowered<LongPlace> {
        if self.names.is_element(expr) {
            return self.lower_element(unit, expr).map(LongPlace::Element);
        }
        if let Some(variable) = self.variable_of(unit, expr) {
            return Ok(LongPlace::Variable(variable));
        }
        if self.typed.is_captured(&unit.at, expr) {
            return Err(VariableError::CapturedWrite { span: expr.span }.into());
        }
        let found = self.find_here(unit, expr)?;
        place_of(&found, expr.span)
    }

    fn find_addressed_here(&mut self, unit: &Unit, expr: &ast::Expr) -> Lowered<TypedLocation> {
        find_addressed(&mut LoweredOperands { lowering: self, unit }, unit, expr)
    }

    fn find_here(&mut self, unit: &Unit, expr: &ast::Expr) -> Lowered<TypedLocation> {
        find(&mut LoweredOperands { lowering: self, unit }, unit, expr)
    }
}

/// Cannot happen once inference has found no error: an expression does not have the type that it was found to have.
fn not_a(wanted: Type, span: Span) -> Error {
    Error::Internal {
        what: match wanted {
            Type::Long => "a string where a number belongs",
            Type::String => "a number where a string belongs",
        },
        span,
    }
}

fn unary(op: ast::UnaryOp, operand: LongExpr) -> LongKind {
    match op {
        ast::UnaryOp::Plus => operand.kind,
        ast::UnaryOp::Minus => match operand.kind {
            LongKind::Const(value) => LongKind::Const(value.wrapping_neg()),
            _ => LongKind::Negate(Box::new(operand)),
        },
        ast::UnaryOp::Not => LongKind::Not(Box::new(operand)),
        ast::UnaryOp::Complement => LongKind::Complement(Box::new(operand)),
    }
}
