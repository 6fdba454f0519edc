// SPDX-License-Identifier: GPL-2.0-or-later

//! What a script needs from a kernel: the sites of each probe point, and the meaning of its target expressions there.
//!
//! Unlike [`super::elaborate`] it continues where something is missing: that is a result. Branches that are dead on this
//! kernel are left out, as in compilation.

use super::Options;
use super::environment::Environment;
use super::expand;
use super::infer;
use super::lookup::{Lookup, is_text};
use super::names::{self, Names};
use super::typed::{ProgramFunction, Typed};
use super::unit::{Handler, Unit};
use crate::probe::{Resolver, Site, TypedLocation};
use spile_debuginfo::target::Object;
use spile_debuginfo::{Type as CType, TypeId};
use spile_source::diagnostic::Diagnostic;
use spile_source::{SourceMap, Span};
use spile_syntax::ast::{self, ExprKind, Index, StmtKind};
use spile_syntax::print;
use std::rc::Rc;

/// All results.
pub struct Survey {
    /// In script order.
    pub points: Vec<Point>,
    /// Functions with target expressions of their own, independent of any probe: casts and typed pointers.
    pub functions: Vec<Function>,
}

/// One probe point of the script.
pub struct Point {
    /// Its components as written.
    pub text: String,
    /// Where it is written.
    pub span: Span,
    /// `?` or `!`: its absence is not an error.
    pub optional: bool,
    /// Empty where it has none, for the reasons in `problems`, or where an earlier one was sufficient.
    pub sites: Vec<Surveyed>,
    /// Why it has no sites.
    pub problems: Vec<Diagnostic>,
}

/// A site with the expressions of its handler.
pub struct Surveyed {
    /// Where the point landed.
    pub site: Site,
    /// Each spelling once, in the order of the handler.
    pub targets: Vec<Target>,
}

/// A function with target expressions.
pub struct Function {
    /// Its name.
    pub name: String,
    /// The place of its name in the declaration.
    pub span: Span,
    /// Each spelling once, in the order of the body.
    pub targets: Vec<Target>,
}

/// A target expression: `$file->f_path->dentry`, `@cast(p, "inode")->i_ino`, `@var("jiffies")`.
pub struct Target {
    /// Its spelling.
    pub text: String,
    /// Where it is written.
    pub span: Span,
    /// The object that it refers to there, or why there is none.
    pub found: Result<TypedLocation, Diagnostic>,
    /// It is printed whole: the number of dollars after it.
    pub dollars: u8,
    /// The members along the path, as far as they exist, outermost struct first.
    pub members: Vec<Member>,
}

/// One `->member`.
pub struct Member {
    /// The member's name.
    pub name: String,
    /// The object whose debug information has the type.
    pub object: Rc<Object>,
    /// The struct or union that should have it.
    pub container: TypeId,
}

/// Surveys the user's `scripts`, with the library's after them.
pub fn survey<'a>(
    sources: &'a SourceMap,
    scripts: &'a [ast::Script],
    options: &Options,
    resolver: &'a mut Resolver<'a>,
) -> Survey {
    let mut env = Environment::new(sources, options, resolver);
    let names = names::declare(&mut env, scripts);
    let mut points = Vec::new();
    let mut handlers: Vec<Handler<'a>> = Vec::new();
    let mut counts = Vec::new();
    for probe in scripts.iter().flat_map(|script| &script.items).filter_map(|item| match item {
        ast::Item::Probe(probe) => Some(probe),
        _ => None,
    }) {
        survey_points(&mut env, &names, probe, &mut points, &mut handlers, &mut counts);
    }
    let mut typed = infer::infer_for_survey(&mut env, &names, &mut handlers);
    let mut surveyor = Surveyor { env: &mut env, names: &names, typed: &mut typed };
    let mut rest = handlers.into_iter();
    for (point, count) in points.iter_mut().zip(counts) {
        point.sites = rest.by_ref().take(count).map(|handler| surveyor.survey_handler(handler)).collect();
    }
    let functions = surveyor.survey_functions();
    Survey { points, functions }
}

fn survey_points<'a>(
    env: &mut Environment<'a>,
    names: &Names<'a>,
    probe: &'a ast::Probe,
    points: &mut Vec<Point>,
    handlers: &mut Vec<Handler<'a>>,
    counts: &mut Vec<usize>,
) {
    let mut satisfied = false;
    for point in &probe.points {
        let before = env.mark();
        let (found, present) = if satisfied { (Vec::new(), false) } else { expand::sites_of(env, names, point) };
        counts.push(found.len());
        for (site, wrapping) in found {
            let number = handlers.len() as u32;
            handlers.push(expand::handler(names, site, number, wrapping, point, probe));
        }
        let mut problems = env.take_problems(before);
        if !satisfied && !present && problems.is_empty() {
            problems.extend(why_absent(env, names, point));
        }
        let text = crate::probe::spelling(&point.components);
        let optional = point.optional || point.sufficient || satisfied;
        points.push(Point { text, span: point.span, optional, sites: Vec::new(), problems });
        satisfied |= present && point.sufficient;
    }
}

/// The error of an optional point without sites.
fn why_absent(env: &mut Environment, names: &Names, point: &ast::ProbePoint) -> Option<Diagnostic> {
    if expand::is_alias(names, &point.components) {
        return None;
    }
    let error = crate::probe::resolve(&point.components, point.span, env.resolver).err()?;
    Some(error.diagnostic(point.span))
}

struct Surveyor<'e, 'a> {
    env: &'e mut Environment<'a>,
    names: &'e Names<'a>,
    typed: &'e mut Typed<'a>,
}

impl<'a> Surveyor<'_, 'a> {
    fn lookup(&mut self) -> Lookup<'_, 'a> {
        Lookup::new(self.env, self.names, self.typed)
    }

    fn survey_handler(&mut self, handler: Handler<'a>) -> Surveyed {
        let mut uses = Uses::default();
        for condition in &handler.condition {
            self.collect(&handler.unit, condition, &mut uses);
        }
        for statement in &handler.body {
            self.collect_in(&handler.unit, statement, &mut uses);
        }
        let targets =
            uses.0.into_iter().map(|(expr, dollars)| self.survey_target(&handler.unit, expr, dollars)).collect();
        Surveyed { site: handler.site, targets }
    }

    fn survey_functions(&mut self) -> Vec<Function> {
        let mut functions = Vec::new();
        for index in self.typed.reached.clone() {
            let (ProgramFunction::Instance(index) | ProgramFunction::Wrapper(index)) = index;
            let declared = self.typed.functions[index.index()].ast;
            let ast::FunctionBody::Script(block) = &declared.body else { continue };
            let unit = self.typed.functions[index.index()].unit.clone();
            let mut uses = Uses::default();
            for statement in &block.statements {
                self.collect_in(&unit, statement, &mut uses);
            }
            let targets: Vec<Target> =
                uses.0.into_iter().map(|(expr, dollars)| self.survey_target(&unit, expr, dollars)).collect();
            let known = functions.iter().any(|function: &Function| function.span == declared.name.span);
            if !targets.is_empty() && !known {
                functions.push(Function { name: declared.name.text.clone(), span: declared.name.span, targets });
            }
        }
        functions
    }

    fn survey_target(&mut self, unit: &Unit, expr: &'a ast::Expr, dollars: u8) -> Target {
        let found = self.lookup().find(unit, expr).map_err(|error| error.diagnostic());
        let mut members = Vec::new();
        let mut inner = expr;
        loop {
            inner = match &inner.kind {
                ExprKind::Member(base, name) => {
                    if let Some((object, container)) = self.container(unit, base) {
                        members.push(Member { name: name.text.clone(), object, container });
                    }
                    base
                }
                ExprKind::Index(base, _) => base,
                _ => break,
            };
        }
        members.reverse();
        let text = format!("{}{}", print::expr(expr), "$".repeat(usize::from(dollars)));
        Target { text, span: expr.span, found, dollars, members }
    }

    /// The struct that a member of `base` would be in.
    fn container(&mut self, unit: &Unit, base: &ast::Expr) -> Option<(Rc<Object>, TypeId)> {
        let found = self.lookup().find(unit, base).ok()?;
        let debug = found.object.debug().ok()?;
        let container = match debug.resolve(found.type_id).ok()? {
            (_, CType::Pointer(target)) => debug.resolve(target?).ok()?.0,
            (id, _) => id,
        };
        Some((found.object.clone(), container))
    }

    fn collect_in(&mut self, unit: &Unit, statement: &'a ast::Stmt, uses: &mut Uses<'a>) {
        match &statement.kind {
            StmtKind::Empty | StmtKind::Break | StmtKind::Continue | StmtKind::Next => {}
            StmtKind::Block(block) => self.collect_all(unit, &block.statements, uses),
            StmtKind::Expr(expr) | StmtKind::Delete(expr) => self.collect(unit, expr, uses),
            StmtKind::If { condition, then, otherwise } => {
                let known = self.lookup().fold(unit, condition);
                if known.is_none() {
                    self.collect(unit, condition, uses);
                }
                if known != Some(0) {
                    self.collect_in(unit, then, uses);
                }
                if let Some(otherwise) = otherwise.as_ref().filter(|_| known.is_none_or(|value| value == 0)) {
                    self.collect_in(unit, otherwise, uses);
                }
            }
            StmtKind::While { condition, body } => {
                self.collect(unit, condition, uses);
                self.collect_in(unit, body, uses);
            }
            StmtKind::For { init, condition, step, body } => {
                for expr in [init, condition, step].into_iter().flatten() {
                    self.collect(unit, expr, uses);
                }
                self.collect_in(unit, body, uses);
            }
            StmtKind::Foreach(foreach) => {
                for index in foreach.slice.iter().flatten() {
                    self.collect_index(unit, index, uses);
                }
                if let Some(limit) = &foreach.limit {
                    self.collect(unit, limit, uses);
                }
                self.collect_in(unit, &foreach.body, uses);
            }
            StmtKind::Return(value) => value.iter().for_each(|value| self.collect(unit, value, uses)),
            StmtKind::Try { body, handler, .. } => {
                self.collect_all(unit, &body.statements, uses);
                self.collect_all(unit, &handler.statements, uses);
            }
        }
    }

    fn collect_all(&mut self, unit: &Unit, statements: &'a [ast::Stmt], uses: &mut Uses<'a>) {
        statements.iter().for_each(|statement| self.collect_in(unit, statement, uses));
    }

    fn collect_index(&mut self, unit: &Unit, index: &'a Index, uses: &mut Uses<'a>) {
        if let Index::Expr(expr) = index {
            self.collect(unit, expr, uses);
        }
    }

    /// Records the outermost target expressions in an expression, and those in their indices.
    fn collect(&mut self, unit: &Unit, expr: &'a ast::Expr, uses: &mut Uses<'a>) {
        match &expr.kind {
            ExprKind::Conditional(condition, then, otherwise) => match self.lookup().fold(unit, condition) {
                Some(0) => self.collect(unit, otherwise, uses),
                Some(_) => self.collect(unit, then, uses),
                None => [condition, then, otherwise].into_iter().for_each(|expr| self.collect(unit, expr, uses)),
            },
            ExprKind::Defined(_) => {}
            ExprKind::Target(name) if is_text(name) || unit.at.text_variable(expr).is_some() => {}
            ExprKind::Pretty(base, dollars) => {
                self.collect(unit, base, uses);
                uses.whole(base, *dollars);
            }
            ExprKind::Target(_) | ExprKind::Var { .. } => uses.add(expr),
            ExprKind::Member(base, _) => {
                uses.add(expr);
                self.collect_below(unit, base, uses);
            }
            ExprKind::Index(base, indices) => {
                let variable = matches!(base.kind, ExprKind::Ident(_) | ExprKind::Histogram { .. });
                match self.names.is_element(expr) || variable {
                    true => indices.iter().for_each(|index| self.collect_index(unit, index, uses)),
                    false => {
                        uses.add(expr);
                        self.collect_below(unit, expr, uses);
                    }
                }
            }
            ExprKind::Cast { value, .. } => {
                uses.add(expr);
                self.collect(unit, value, uses);
            }
            _ => {
                let mut children = Vec::new();
                spile_syntax::visit::children(expr, &mut |child| children.push(child));
                children.into_iter().for_each(|child| self.collect(unit, child, uses));
            }
        }
    }

    /// The base of a target expression is part of it; operands computed for it are not.
    fn collect_below(&mut self, unit: &Unit, expr: &'a ast::Expr, uses: &mut Uses<'a>) {
        match &expr.kind {
            ExprKind::Member(base, _) => self.collect_below(unit, base, uses),
            ExprKind::Index(base, indices) if !self.names.is_element(expr) => {
                indices.iter().for_each(|index| self.collect_index(unit, index, uses));
                self.collect_below(unit, base, uses);
            }
            ExprKind::Target(_) | ExprKind::Var { .. } => {}
            ExprKind::Cast { value, .. } => self.collect(unit, value, uses),
            _ => self.collect(unit, expr, uses),
        }
    }
}

/// Target expressions, each spelling once; with the dollars after those that are printed whole.
#[derive(Default)]
struct Uses<'a>(Vec<(&'a ast::Expr, u8)>);

impl<'a> Uses<'a> {
    fn add(&mut self, expr: &'a ast::Expr) {
        let text = print::expr(expr);
        if !self.0.iter().any(|(known, _)| print::expr(known) == text) {
            self.0.push((expr, 0));
        }
    }

    /// What has been added is printed whole.
    fn whole(&mut self, expr: &ast::Expr, dollars: u8) {
        let text = print::expr(expr);
        for (_, known) in self.0.iter_mut().filter(|(known, _)| print::expr(known) == text) {
            *known = (*known).max(dollars);
        }
    }
}
