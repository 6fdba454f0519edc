// SPDX-License-Identifier: GPL-2.0-or-later

//! Trees to the resolved program, once every type is known.

use super::context::{is_text, long};
use super::error::Error;
use super::format::{self, Piece};
use super::pretty;
use super::{Elaborator, Handler, Unit};
use crate::probe::{Found, Location};
use crate::program::{
    Constant, Directive, Expr, ExprKind, Global, Holds, LValue, Local, LocalId, Print, PrintPiece, Probe, Program,
    SavedId, Stmt, StmtKind, Type, Variable,
};
use spile_abi::format::{Flags, Size};
use spile_debuginfo::Type as CType;
use spile_source::Span;
use spile_syntax::ast::{self, AssignOp, BinaryOp, PrintForm};
use std::rc::Rc;

type Lowered<T = Expr> = Result<T, Error>;

impl<'a> Elaborator<'a> {
    pub(super) fn lower_all(&mut self, scripts: &'a [ast::Script], handlers: Vec<Handler<'a>>) -> Program {
        let mut program = Program::default();
        program.globals = (0..self.globals.len()).map(|index| self.lower_global(index)).collect();
        for reached in self.reached.clone() {
            let function = self.lower_reached(reached);
            program.functions.push(function);
        }
        for handler in handlers {
            let probe = self.lower_handler(handler);
            program.probes.push(probe);
        }
        program.functions.append(&mut self.made);
        if self.options.display_globals {
            program.probes.extend(self.display_globals());
        }
        for item in scripts.iter().flat_map(|script| &script.items) {
            if let ast::Item::EmbeddedC(code) = item {
                program.embedded.push(self.lower_embedded(code));
            }
        }
        program.regexes = std::mem::take(&mut self.regexes.compiled);
        if self.lines_asked {
            program.lines = self.resolver.line_tables();
        }
        (program.targets, program.anchor_address) = self.resolver.take_targets();
        program.left_out = self.resolver.take_left_out();
        program
    }

    pub(super) fn lower_global(&mut self, index: usize) -> Global {
        let ast = self.globals[index].ast;
        let initial = ast.initial.as_ref().map(|(literal, _)| match literal {
            ast::Literal::Number(value) => Constant::Long(*value),
            ast::Literal::String(bytes) => Constant::String(bytes.clone()),
        });
        Global {
            name: ast.name.text.clone(),
            holds: self.holds(index),
            keys: self.key_types_of(index),
            size: ast.size.and_then(|size| u32::try_from(size).ok()),
            wrap: ast.wrap,
            initial,
            span: ast.span,
        }
    }

    pub(super) fn locals(&mut self, unit: &Unit) -> Vec<Local> {
        let types = &mut self.types;
        let ty = |local: &super::Local| types.get(local.ty).unwrap_or(Type::Long);
        unit.locals.iter().map(ty).zip(&unit.locals).map(|(ty, local)| Local { name: local.name.clone(), ty }).collect()
    }

    fn lower_handler(&mut self, handler: Handler<'a>) -> Probe {
        let mut unit = handler.unit;
        let mut body = Vec::new();
        for condition in &handler.condition {
            match self.lower(&mut unit, condition) {
                Ok(condition) => {
                    let span = condition.span;
                    let next = Stmt { kind: StmtKind::Filter, span };
                    let not = Expr { kind: ExprKind::Not(Box::new(condition)), ty: Type::Long, span };
                    body.push(Stmt {
                        kind: StmtKind::If { condition: not, then: Box::new(next), otherwise: None },
                        span,
                    });
                }
                Err(error) => self.report(error),
            }
        }
        body.extend(self.lower_guard(&unit, handler.span));
        let statements = if self.options.counts_only { &[] } else { &handler.body[..] };
        for statement in statements {
            body.extend(self.lower_statements(&mut unit, std::slice::from_ref(statement)));
        }
        let locals = self.locals(&unit);
        Probe {
            point: handler.site.point,
            script_point: handler.script_point,
            function: handler.site.function,
            module: handler.site.module,
            attachment: handler.site.attachment,
            locals,
            saved: unit.site.and_then(|site| self.saved.remove(&site)).unwrap_or_default().values,
            body,
            span: handler.span,
        }
    }

    /// The test of what the site itself asks of a hit. In a block: it is no condition that can be asked without a hit.
    fn lower_guard(&mut self, unit: &Unit, span: Span) -> Option<Stmt> {
        let mut guard = unit.context.as_ref()?.guard()?;
        if let Some(site) = unit.site.filter(|_| unit.context.as_ref().is_some_and(|context| context.is_return())) {
            let saved = self.saved.entry(site).or_default();
            let id = SavedId(saved.values.len() as u32);
            saved.values.push(guard);
            guard = Expr { kind: ExprKind::Saved(id), ty: Type::Long, span };
        }
        let not = Expr { kind: ExprKind::Not(Box::new(guard)), ty: Type::Long, span };
        let filter = Box::new(Stmt { kind: StmtKind::Filter, span });
        let test = Stmt { kind: StmtKind::If { condition: not, then: filter, otherwise: None }, span };
        Some(Stmt { kind: StmtKind::Block(vec![test]), span })
    }

    pub(super) fn lower_statements(&mut self, unit: &mut Unit, statements: &[ast::Stmt]) -> Vec<Stmt> {
        statements
            .iter()
            .filter_map(|statement| match self.lower_statement(unit, statement) {
                Ok(statement) => statement,
                Err(error) => {
                    self.report(error);
                    None
                }
            })
            .collect()
    }

    fn lower_boxed(&mut self, unit: &mut Unit, statement: &ast::Stmt) -> Lowered<Box<Stmt>> {
        let span = statement.span;
        let lowered = self.lower_statement(unit, statement)?;
        Ok(Box::new(lowered.unwrap_or(Stmt { kind: StmtKind::Block(Vec::new()), span })))
    }

    pub(super) fn lower_statement(&mut self, unit: &mut Unit, statement: &ast::Stmt) -> Lowered<Option<Stmt>> {
        use ast::StmtKind as Ast;
        if unit.elided.has(statement) {
            return Ok(None);
        }
        let kind = match &statement.kind {
            Ast::Empty => return Ok(None),
            Ast::Block(block) => StmtKind::Block(self.lower_statements(unit, &block.statements)),
            Ast::Expr(ast::Expr { kind: ast::ExprKind::Ident(_), .. }) => return Ok(None),
            Ast::Expr(expr) => StmtKind::Expr(self.lower(unit, expr)?),
            Ast::If { condition, then, otherwise } => match (self.fold(unit, condition), otherwise) {
                (Some(0), None) => return Ok(None),
                (Some(0), Some(otherwise)) => return self.lower_statement(unit, otherwise),
                (Some(_), _) => return self.lower_statement(unit, then),
                (None, _) => StmtKind::If {
                    condition: self.lower(unit, condition)?,
                    then: self.lower_boxed(unit, then)?,
                    otherwise: otherwise.as_ref().map(|otherwise| self.lower_boxed(unit, otherwise)).transpose()?,
                },
            },
            Ast::While { condition, body } => StmtKind::Loop {
                condition: Some(self.lower(unit, condition)?),
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
                    condition: condition.as_ref().map(|condition| self.lower(unit, condition)).transpose()?,
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
                Some(function) => self.lower_next(unit, function, statement.span),
                None => StmtKind::Next,
            },
            Ast::Return(value) => StmtKind::Return(value.as_ref().map(|value| self.lower(unit, value)).transpose()?),
            Ast::Delete(expr) => match (self.lower_delete(unit, expr)?, self.variable_of(unit, expr)) {
                (Some(deleted), _) => deleted,
                (None, Some(variable)) => StmtKind::Delete(variable),
                (None, None) => return Err(Error::NotAssignable { span: expr.span }),
            },
            Ast::Try { body, message, handler } => StmtKind::Try {
                body: self.lower_statements(unit, &body.statements),
                message: match message {
                    Some(name) => self.variable_named(unit, &name.text, name.span),
                    None => None,
                },
                handler: self.lower_statements(unit, &handler.statements),
            },
        };
        Ok(Some(Stmt { kind, span: statement.span }))
    }

    fn variable_of(&self, unit: &Unit, expr: &ast::Expr) -> Option<Variable> {
        match &expr.kind {
            ast::ExprKind::Ident(name) => self.variable_named(unit, name, expr.span),
            _ => None,
        }
    }

    pub(super) fn variable_named(&self, unit: &Unit, name: &str, span: Span) -> Option<Variable> {
        let local = self.find_local(unit, span.file, name).map(Variable::Local);
        local.or_else(|| self.find_global(span.file, name).map(Variable::Global))
    }

    fn type_of(&mut self, unit: &Unit, variable: Variable) -> Type {
        let var = match variable {
            Variable::Local(LocalId(index)) => unit.locals[index as usize].ty,
            Variable::Global(id) => self.globals[id.index()].ty,
        };
        self.types.get(var).unwrap_or(Type::Long)
    }

    fn lower_boxed_expr(&mut self, unit: &mut Unit, expr: &ast::Expr) -> Lowered<Box<Expr>> {
        self.lower(unit, expr).map(Box::new)
    }

    pub(super) fn lower(&mut self, unit: &mut Unit, expr: &ast::Expr) -> Lowered {
        use ast::ExprKind as Ast;
        let mut span = expr.span;
        let mut ty = Type::Long;
        let kind = match &expr.kind {
            Ast::Number(value) => ExprKind::Long(*value),
            Ast::String(bytes) => {
                ty = Type::String;
                ExprKind::String(bytes.clone())
            }
            Ast::Ident(name) => {
                let variable = self.variable_named(unit, name, span).ok_or(Error::NotAssignable { span })?;
                if unit.at_entry && matches!(variable, Variable::Local(_)) {
                    return Err(Error::LocalAtEntry { name: name.clone(), span });
                }
                if let Variable::Global(id) = variable {
                    if let Holds::Stats(_) = self.holds(id.index()) {
                        return Err(Error::AggregateAsValue { name: name.clone(), span, stats: None });
                    }
                }
                ty = self.type_of(unit, variable);
                ExprKind::Variable(variable)
            }
            Ast::Index(..) if self.is_element(expr) => return self.lower_element_value(unit, expr),
            Ast::Index(base, indices) if matches!(base.kind, Ast::Histogram { .. }) => {
                return self.lower_bucket(unit, base, indices, span);
            }
            Ast::In(indices, array) => return self.lower_in(unit, indices, array, span),
            Ast::Extract { extractor, aggregate, .. } => {
                ExprKind::Extract { aggregate: self.lower_element(unit, aggregate)?, extractor: *extractor }
            }
            Ast::Histogram { aggregate, .. } => {
                ty = Type::String;
                ExprKind::Chart(self.lower_element(unit, aggregate)?)
            }
            // A cast alone is its value, with a type.
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
                return match self.text_variable(unit, expr) {
                    Some(variable) => self.read_text(variable, span),
                    None => self.lower_target(unit, expr),
                };
            }
            Ast::Entry(value) => return self.save(unit, value, span),
            Ast::Perf(name) => return self.lower_counter(name, span),
            Ast::ProbeWrite(_) => ExprKind::Long(self.fold(unit, expr).unwrap_or(0)),
            Ast::Deref { user, size, address } => return self.lower_deref(unit, *user, size, address, span),
            Ast::Register { user, number } => return self.lower_register(unit, *user, number, span),
            Ast::Const(text) => return Ok(self.lower_const(text, span)),
            Ast::Enum(name) => return self.lower_enum(unit, name, span),
            Ast::EnumName { value, type_name, module } => {
                return self.lower_enum_name(unit, value, type_name.as_deref(), module.as_deref(), span);
            }
            Ast::Defined(operand) => ExprKind::Long(i64::from(self.is_defined(unit, operand))),
            Ast::Matches { left, pattern, pattern_span, negated } => {
                span = self.operator_span(left.span, *pattern_span, span);
                return self.lower_matches(unit, left, (pattern, *pattern_span), *negated, span);
            }
            Ast::Call(name, arguments) => return self.lower_call(unit, name, arguments),
            Ast::Unary(op, operand) => {
                let operand = self.lower_boxed_expr(unit, operand)?;
                match op {
                    ast::UnaryOp::Plus => return Ok(*operand),
                    ast::UnaryOp::Minus => match operand.kind {
                        ExprKind::Long(value) => ExprKind::Long(value.wrapping_neg()),
                        _ => ExprKind::Negate(operand),
                    },
                    ast::UnaryOp::Not => ExprKind::Not(operand),
                    ast::UnaryOp::Complement => ExprKind::Complement(operand),
                }
            }
            Ast::Binary(op, left, right) => {
                span = self.operator_span(left.span, right.span, span);
                if *op == BinaryOp::Concatenate {
                    ty = Type::String;
                }
                ExprKind::Binary(*op, self.lower_boxed_expr(unit, left)?, self.lower_boxed_expr(unit, right)?)
            }
            Ast::Assign(op, left, right) => {
                let operator = self.operator_span(left.span, right.span, span);
                let value = self.lower_boxed_expr(unit, right)?;
                ty = value.ty;
                if *op == AssignOp::Aggregate {
                    let kind = ExprKind::Feed { aggregate: self.lower_element(unit, left)?, value };
                    return Ok(Expr { kind, ty, span: operator });
                }
                if let Some(variable) = self.text_variable(unit, left) {
                    return self.write_text(variable, *op, *value, operator);
                }
                let place = Box::new(self.lower_place(unit, left)?);
                span = operator;
                match op {
                    AssignOp::Compound(op) => ExprKind::Update { left: place, op: *op, value, old: false },
                    AssignOp::Set | AssignOp::Aggregate => ExprKind::Assign(place, value),
                }
            }
            Ast::Step { delta, prefix, target } => {
                let left = Box::new(self.lower_place(unit, target)?);
                let value = Box::new(long(*delta, span));
                ExprKind::Update { left, op: BinaryOp::Add, value, old: !prefix }
            }
            Ast::Conditional(condition, then, otherwise) => match self.fold(unit, condition) {
                Some(0) => return self.lower(unit, otherwise),
                Some(_) => return self.lower(unit, then),
                None => {
                    let condition = self.lower_boxed_expr(unit, condition)?;
                    let then = self.lower_boxed_expr(unit, then)?;
                    ty = then.ty;
                    ExprKind::Conditional(condition, then, self.lower_boxed_expr(unit, otherwise)?)
                }
            },
            Ast::Print(print) => {
                let pieces = Box::new(self.lower_print(unit, print)?);
                if print.to_string {
                    ty = Type::String;
                    ExprKind::Format(pieces)
                } else {
                    ExprKind::Print(pieces)
                }
            }
            Ast::EmbeddedC(code) => {
                ty = super::embedded::value_type(code);
                ExprKind::EmbeddedC(self.lower_embedded_in(unit, code))
            }
        };
        Ok(Expr { kind, ty, span })
    }

    /// The operator between two operands, for run-time errors: what is left of the text between them.
    fn operator_span(&self, left: Span, right: Span, whole: Span) -> Span {
        if left.file != right.file || left.via != right.via || left.end > right.start {
            return whole;
        }
        let between = Span { start: left.end, end: right.start, ..left };
        let text = self.sources.text(between);
        let Some(at) = text.find(|byte: char| "=<>+-*/%&|^!.~".contains(byte)) else { return whole };
        let length = text[at..].find(|byte: char| !"=<>+-*/%&|^!.~".contains(byte)).unwrap_or(text.len() - at);
        let start = between.start + at as u32;
        Span { start, end: start + length as u32, ..between }
    }

    fn lower_place(&mut self, unit: &mut Unit, expr: &ast::Expr) -> Lowered<LValue> {
        if self.is_element(expr) {
            return self.lower_element(unit, expr).map(LValue::Element);
        }
        if let Some(variable) = self.variable_of(unit, expr) {
            return Ok(LValue::Variable(variable));
        }
        if self.is_captured(unit, expr) {
            return Err(Error::CapturedWrite { span: expr.span });
        }
        let found = self.find_here(unit, expr)?;
        self.place_of(&found, expr.span)
    }

    /// In a return probe, whether the target expression's root is a variable of the function's entry.
    fn is_captured(&self, unit: &Unit, expr: &ast::Expr) -> bool {
        let returning = unit.context.as_ref().is_some_and(|context| context.is_return());
        let mut root = expr;
        loop {
            root = match &root.kind {
                ast::ExprKind::Member(base, _)
                | ast::ExprKind::Index(base, _)
                | ast::ExprKind::Pretty(base, _)
                | ast::ExprKind::AddressOf(base) => base,
                ast::ExprKind::Target(name) => {
                    return returning && !unit.at_entry && name != "$return" && name != "$$return";
                }
                _ => return false,
            };
        }
    }

    pub(super) fn find_here(&mut self, unit: &mut Unit, expr: &ast::Expr) -> Lowered<Found> {
        // `find` reads the unit while indices are lowered with it.
        let seen = unit.clone();
        self.find(&seen, expr, &mut |elaborator, index| elaborator.lower(unit, index))
    }

    /// With `--skip-badvars` what is not there is 0.
    fn lower_target(&mut self, unit: &mut Unit, expr: &ast::Expr) -> Lowered {
        let lowered = self.lower_present(unit, expr);
        let number = !matches!(&expr.kind, ast::ExprKind::Pretty(..))
            && !matches!(&expr.kind, ast::ExprKind::Target(name) if is_text(name));
        match lowered {
            Err(error) if self.options.skip_bad_variables && number && error.is_bad_variable() => {
                Ok(Expr { kind: ExprKind::Long(0), ty: Type::Long, span: expr.span })
            }
            lowered => lowered,
        }
    }

    fn lower_present(&mut self, unit: &mut Unit, expr: &ast::Expr) -> Lowered {
        if self.is_captured(unit, expr) {
            return self.save(unit, expr, expr.span);
        }
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Target(name) if is_text(name) => self.lower_all_variables(unit, name, 0, span),
            ast::ExprKind::Pretty(base, dollars) => match &base.kind {
                ast::ExprKind::Target(name) if is_text(name) => self.lower_all_variables(unit, name, *dollars, span),
                _ => {
                    let found = self.find_here(unit, base)?;
                    self.pretty(&found, *dollars, span)
                }
            },
            ast::ExprKind::AddressOf(base) => {
                let found = self.find_here(unit, base)?;
                self.address_of(&found, span)
            }
            _ => {
                let found = self.find_here(unit, expr)?;
                self.load(&found, span)
            }
        }
    }

    /// Evaluates at the probed function's entry; the value is there at its return.
    fn save(&mut self, unit: &mut Unit, expr: &ast::Expr, span: Span) -> Lowered {
        if unit.at_entry {
            return self.lower(unit, expr);
        }
        if !unit.context.as_ref().is_some_and(|context| context.is_return()) {
            return Err(Error::NotReturnProbe { span });
        }
        let site = unit.site.ok_or(Error::NotReturnProbe { span })?;
        let key = spile_syntax::print::expr(expr);
        let known = self.saved.entry(site).or_default();
        if let Some(&id) = known.names.get(&key) {
            let ty = known.values[id.index()].ty;
            return Ok(Expr { kind: ExprKind::Saved(id), ty, span });
        }
        unit.at_entry = true;
        let value = self.lower(unit, expr);
        unit.at_entry = false;
        let value = value?;
        let known = self.saved.entry(site).or_default();
        let (ty, id) = (value.ty, SavedId(known.values.len() as u32));
        known.values.push(value);
        known.names.insert(key, id);
        Ok(Expr { kind: ExprKind::Saved(id), ty, span })
    }

    /// An object as text.
    fn pretty(&mut self, found: &Found, dollars: u8, span: Span) -> Lowered {
        let object = found.object.clone();
        let debug = object.debug().map_err(|error| super::context::debug_error(error, span))?;
        let resolve = |id| debug.resolve(id).map_err(|error| super::context::debug_error(error, span));
        let (address, type_id) = match (resolve(found.type_id)?.1, &found.location) {
            (CType::Pointer(Some(target)), _) if matches!(resolve(target)?.1, CType::Struct { .. }) => {
                (self.load(found, span)?, target)
            }
            (_, Location::Memory { address, bits: None }) => (address.clone(), found.type_id),
            (ctype, _) => return self.pretty_number(found, &ctype, span),
        };
        let levels = if dollars > 1 { self.options.struct_depth.map_or(usize::MAX, |depth| depth as usize) } else { 1 };
        let description = Rc::new(pretty::describe(debug, type_id, levels, span)?);
        let kind = ExprKind::Pretty { address: Box::new(address), description };
        Ok(Expr { kind, ty: Type::String, span })
    }

    /// A value in a register, or a bit-field, as text.
    fn pretty_number(&mut self, found: &Found, ctype: &CType, span: Span) -> Lowered {
        let value = self.load(found, span)?;
        let signed = match ctype {
            CType::Base { encoding, .. } => {
                use spile_debuginfo::BaseEncoding;
                matches!(encoding, BaseEncoding::Signed | BaseEncoding::SignedChar)
            }
            CType::Enum { signed, .. } => *signed,
            _ => false,
        };
        let conversion = match ctype {
            CType::Pointer(_) => b'p',
            _ if signed => b'd',
            _ => b'u',
        };
        let pieces = vec![PrintPiece::Directive {
            directive: directive(conversion),
            width: None,
            precision: None,
            argument: value,
        }];
        Ok(Expr { kind: ExprKind::Format(Box::new(Print { pieces })), ty: Type::String, span })
    }

    /// `$$vars`, `$$parms`, `$$locals`, `$$return`, also with dollars after: `name=value ...`.
    fn lower_all_variables(&mut self, unit: &mut Unit, name: &str, dollars: u8, span: Span) -> Lowered {
        let Some(context) = unit.context.clone() else {
            return Err(Error::NoContext { name: name.into(), point: None, span });
        };
        if !context.has_variables() {
            return Err(Error::NoContext { name: name.into(), point: Some(unit.point.clone()), span });
        }
        if let Some(text) = context.text(name) {
            return Ok(Expr { kind: ExprKind::String(text.into_bytes()), ty: Type::String, span });
        }
        let names = match name {
            "$$vars" => context.parameters().into_iter().chain(context.locals()).collect(),
            "$$parms" => context.parameters(),
            "$$locals" => context.locals(),
            "$$return" if !context.is_return() => return Err(Error::NotReturnProbe { span }),
            "$$return" => vec!["return".to_string()],
            _ => {
                let available = ["$$vars", "$$parms", "$$locals", "$$return"].map(String::from).to_vec();
                return Err(Error::UnknownVariable { name: name.into(), place: context.place(), available, span });
            }
        };
        let mut pieces = Vec::new();
        for (index, variable) in names.iter().enumerate() {
            let space = if index > 0 { " " } else { "" };
            pieces.push(PrintPiece::Literal(format!("{space}{variable}=").into_bytes()));
            let value = match context.variable(variable) {
                // A list of all is no reason for a handler to fail.
                Ok(Found { location: Location::Told(_), .. }) => Ok(PrintPiece::Literal(b"?".to_vec())),
                Ok(found) if dollars > 0 => self.pretty(&found, dollars, span).map(plain),
                Ok(found) => self.load(&found, span).map(|argument| {
                    let mut directive = directive(b'x');
                    directive.flags.sharp = true;
                    PrintPiece::Directive { directive, width: None, precision: None, argument }
                }),
                Err(_) if name == "$$return" => {
                    pieces.clear();
                    break;
                }
                Err(_) => Ok(PrintPiece::Literal(b"?".to_vec())),
            };
            pieces.push(match value {
                Ok(piece) => piece,
                Err(Error::WholeStruct { .. } | Error::NoAddress { .. }) => PrintPiece::Literal(b"{...}".to_vec()),
                Err(_) => PrintPiece::Literal(b"?".to_vec()),
            });
        }
        Ok(Expr { kind: ExprKind::Format(Box::new(Print { pieces })), ty: Type::String, span })
    }

    fn lower_print(&mut self, unit: &mut Unit, print: &ast::Print) -> Lowered<Print> {
        let mut pieces = Vec::new();
        match &print.form {
            PrintForm::Plain => {
                for argument in &print.arguments {
                    pieces.push(plain(self.lower(unit, argument)?));
                }
            }
            PrintForm::Char => {
                for argument in &print.arguments {
                    let argument = self.lower(unit, argument)?;
                    pieces.push(PrintPiece::Directive {
                        directive: directive(b'c'),
                        width: None,
                        precision: None,
                        argument,
                    });
                }
            }
            PrintForm::Delimited(delimiter) => {
                for (index, argument) in print.arguments.iter().enumerate() {
                    if index > 0 {
                        pieces.push(PrintPiece::Literal(delimiter.clone()));
                    }
                    pieces.push(plain(self.lower(unit, argument)?));
                }
            }
            PrintForm::Format(text, span) => {
                let parsed = format::parse(text).map_err(|error| Error::Format { kind: error.kind, span: *span })?;
                let mut arguments = print.arguments.iter();
                let missing = Error::FormatArguments { wanted: 0, given: print.arguments.len(), span: *span };
                for piece in parsed {
                    pieces.push(match piece {
                        Piece::Literal(bytes) => PrintPiece::Literal(bytes),
                        Piece::Directive { directive, .. } => {
                            let mut next = || arguments.next().ok_or(missing.clone());
                            let width = if directive.width == Size::Star { Some(next()?) } else { None };
                            let precision = if directive.precision == Size::Star { Some(next()?) } else { None };
                            let argument = next()?;
                            let width = width.map(|width| self.lower(unit, width)).transpose()?;
                            let precision = precision.map(|precision| self.lower(unit, precision)).transpose()?;
                            PrintPiece::Directive { directive, width, precision, argument: self.lower(unit, argument)? }
                        }
                    });
                }
            }
        }
        if print.newline {
            pieces.push(PrintPiece::Literal(b"\n".to_vec()));
        }
        Ok(Print { pieces })
    }
}

fn directive(conversion: u8) -> Directive {
    Directive { conversion, flags: Flags::default(), width: Size::None, precision: Size::None }
}

/// A value as print shows it.
pub(super) fn plain(argument: Expr) -> PrintPiece {
    match (argument.kind, argument.ty) {
        (ExprKind::String(bytes), _) => PrintPiece::Literal(bytes),
        (kind, ty) => {
            let conversion = if ty == Type::String { b's' } else { b'd' };
            let argument = Expr { kind, ..argument };
            PrintPiece::Directive { directive: directive(conversion), width: None, precision: None, argument }
        }
    }
}
