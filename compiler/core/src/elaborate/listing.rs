// SPDX-License-Identifier: GPL-2.0-or-later

//! The lines of `-l` and `-L`: the probe points that match patterns, each under the name that a script would use.
//!
//! A point of the kernel is listed in its canonical spelling, an alias by its own name if it has sites on this kernel. With
//! variables, `name:type` of those that the alias sets come first, then `$name:type` of the point itself.

use std::collections::HashMap;
use std::rc::Rc;

use super::Options;
use super::environment::Environment;
use super::expand::{self, Wrapping};
use super::names::Names;
use crate::builtin;
use crate::library::PublicNames;
use crate::probe::{Resolver, Site};
use crate::program::Type;
use spile_source::SourceMap;
use spile_source::diagnostic::Diagnostic;
use spile_syntax::ast::{self, AssignOp, BinaryOp, Expr, ExprKind, Item};
use spile_syntax::visit;

/// The probe points that `points` resolve to, with their variables if `variables`; and the problems found.
pub fn list<'a>(
    sources: &'a SourceMap,
    points: &'a [ast::ProbePoint],
    library: &'a [ast::Script],
    variables: bool,
    resolver: &'a mut Resolver<'a>,
) -> (Vec<String>, Vec<Diagnostic>) {
    if !variables {
        resolver.want_names_only();
    }
    let (found, problems) = sites(sources, points, library, Rc::default(), resolver);
    (found.into_iter().map(|listed| line(listed, variables)).collect(), problems)
}

/// A site of a probe point.
pub struct ListedSite {
    /// As a script would name it: the alias, or the canonical spelling of the point.
    pub name: String,
    /// Variables that aliases set, in their order, and whether each is text; those that begin with `__` are their own.
    pub set: Vec<(String, bool)>,
    /// Where it is, with its context variables.
    pub site: Site,
}

/// The sites that `points` resolve to, and the problems; `offered`: suggestions for wrong names.
pub fn sites<'a>(
    sources: &'a SourceMap,
    points: &'a [ast::ProbePoint],
    library: &'a [ast::Script],
    offered: Rc<PublicNames>,
    resolver: &'a mut Resolver<'a>,
) -> (Vec<ListedSite>, Vec<Diagnostic>) {
    let options = Options { guru: true, ..Options::default() };
    let mut env = Environment::new(sources, &options, resolver);
    let mut names = Names::new(sources);
    names.offered = offered;
    let items = || library.iter().flat_map(|script| &script.items);
    for item in items() {
        if let Item::Alias(alias) = item {
            names.add_alias(alias);
        }
    }
    let texts = Texts {
        functions: items()
            .filter_map(|item| match item {
                Item::Function(function) => {
                    Some((function.name.text.as_str(), function.returns == Some(ast::TypeName::String)))
                }
                _ => None,
            })
            .collect(),
    };
    let listed = |(site, wrapping): (Site, Wrapping)| {
        let set = texts.set_by(&wrapping);
        ListedSite { name: wrapping.listed.unwrap_or_else(|| site.point.clone()), set, site }
    };
    let found = expand::list_sites(&mut env, &names, points).into_iter().map(listed).collect();
    (found, env.into_problems())
}

/// `kernel.function("f@x.c:1") $a:int $b:char*`; `scheduler.wakeup name:string task:long $p:struct task_struct*`.
fn line(listed: ListedSite, variables: bool) -> String {
    let mut line = listed.name;
    if !variables {
        return line;
    }
    for (name, is_text) in &listed.set {
        line.push_str(&format!(" {name}:{}", if *is_text { "string" } else { "long" }));
    }
    let context = &listed.site.context;
    let returned = context.is_return().then(|| Some(("return".to_string(), context.variable("return").ok()?)));
    for (name, found) in returned.flatten().into_iter().chain(context.readable()) {
        let Ok(debug) = found.object.debug() else { continue };
        line.push_str(&format!(" ${name}:{}", debug.type_name(found.type_id)));
    }
    line
}

/// Which expressions are strings, by their form and declared types: nothing is inferred for a listing.
struct Texts<'a> {
    functions: HashMap<&'a str, bool>,
}

impl Texts<'_> {
    /// The variables that aliases set, in order, without the internal ones that begin with `__`.
    fn set_by(&self, wrapping: &Wrapping) -> Vec<(String, bool)> {
        let mut set: Vec<(String, bool)> = Vec::new();
        for block in wrapping.blocks() {
            visit::expressions(block, &mut |expr| {
                let ExprKind::Assign(op, target, value) = &expr.kind else { return };
                let ExprKind::Ident(name) = &target.kind else { return };
                let is_text = *op == AssignOp::Compound(BinaryOp::Concatenate) || self.is_text(value, &set);
                match set.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) => *known |= is_text,
                    None => set.push((name.clone(), is_text)),
                }
            });
        }
        set.retain(|(name, _)| !name.starts_with("__"));
        set
    }

    fn is_text(&self, expr: &Expr, set: &[(String, bool)]) -> bool {
        match &expr.kind {
            ExprKind::String(_) | ExprKind::Pretty(..) | ExprKind::EnumName { .. } => true,
            ExprKind::Target(name) => name.starts_with("$$"),
            ExprKind::Ident(name) => set.iter().any(|(known, is_text)| known == name && *is_text),
            ExprKind::Print(print) => print.to_string,
            ExprKind::Binary(op, ..) => *op == BinaryOp::Concatenate,
            ExprKind::Conditional(_, yes, no) => self.is_text(yes, set) || self.is_text(no, set),
            ExprKind::Entry(value) | ExprKind::Assign(_, _, value) => self.is_text(value, set),
            ExprKind::Call(name, arguments) => match self.functions.get(name.text.as_str()) {
                Some(is_text) => *is_text,
                None => builtin::find(&name.text, arguments.len())
                    .is_some_and(|builtin| builtin.returns == Some(Type::String)),
            },
            _ => false,
        }
    }
}
