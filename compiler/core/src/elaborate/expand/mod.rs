// SPDX-License-Identifier: GPL-2.0-or-later

//! The second phase: probe points to sites. Expands aliases, handles `?` and `!`, and joins the bodies.
//!
//! Each site gets a handler of its own: the same statement can mean different things in different contexts.

mod entry;
mod gone;

use super::environment::Environment;
use super::names::Names;
use super::unit::{Handler, Unit, UnitContext};
use super::unneeded;
use crate::probe::{self, PointError, Site};
use crate::program::GlobalId;
use spile_base::glob;
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic};
use spile_syntax::{ast, print, visit};

/// Most aliases in the expansion of all probe points together: a SystemTap script that probes all its aliases needs some
/// 5,000.
const MAX_EXPANSIONS: u32 = 100_000;

/// What the aliases along the expansion have added around the user's body.
#[derive(Clone, Default)]
pub(super) struct Wrapping<'a> {
    conditions: Vec<&'a ast::Expr>,
    /// Outermost first.
    prologues: Vec<&'a ast::Block>,
    /// Innermost first.
    epilogues: Vec<&'a ast::Block>,
    /// Aliases being expanded, to detect loops.
    via: Vec<*const ast::Alias>,
    /// The outermost alias as named in the script, with the rest of the point: `vm.brk.return`.
    pub(super) listed: Option<String>,
}

impl<'a> Wrapping<'a> {
    /// What runs around the user's body, in order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &'a ast::Block> {
        self.prologues.iter().chain(&self.epilogues).copied()
    }
}

/// The handlers of all probes in the scripts, in their order: one for each site.
pub(super) fn expand<'a>(env: &mut Environment<'a>, names: &Names<'a>, scripts: &'a [ast::Script]) -> Vec<Handler<'a>> {
    let mut handlers = Vec::new();
    for script in scripts {
        for item in &script.items {
            let ast::Item::Probe(probe) = item else { continue };
            for point in &probe.points {
                let (found, present) = sites_of(env, names, point);
                let mut last: Option<&[&ast::Block]> = None;
                for (_, wrapping) in &found {
                    let prologues = wrapping.prologues.as_slice();
                    // The sites of an alias share its blocks.
                    if !last.is_some_and(|last| same_blocks(last, prologues)) {
                        for warning in unneeded::hidden(names, prologues, &probe.body) {
                            env.add_first(warning.diagnostic());
                        }
                        last = Some(prologues);
                    }
                }
                for (site, wrapping) in found {
                    let number = handlers.len() as u32;
                    handlers.push(handler(names, site, number, wrapping, point, probe));
                }
                if present && point.sufficient {
                    break;
                }
            }
        }
    }
    let sites: Vec<_> = handlers.iter().map(|handler| (&handler.site.attachment, handler.span)).collect();
    probe::check(&sites).into_iter().for_each(|problem| env.add(problem));
    handlers
}

/// Sites of the points as they are (`-l`).
pub(super) fn list_sites<'a>(
    env: &mut Environment<'a>,
    names: &Names<'a>,
    points: &'a [ast::ProbePoint],
) -> Vec<(Site, Wrapping<'a>)> {
    points.iter().flat_map(|point| sites_of(env, names, point).0).collect()
}

/// The sites of one point of a script, each with what aliases add around the body; and whether there are any.
pub(super) fn sites_of<'a>(
    env: &mut Environment<'a>,
    names: &Names<'a>,
    point: &'a ast::ProbePoint,
) -> (Vec<(Site, Wrapping<'a>)>, bool) {
    let mut found = Vec::new();
    let present = Expansion { env, names }.expand_point(&point.components, point, &Wrapping::default(), &mut found);
    (found, present)
}

struct Expansion<'e, 'a> {
    env: &'e mut Environment<'a>,
    names: &'e Names<'a>,
}

impl<'a> Expansion<'_, 'a> {
    /// Adds the sites of a point; false if it has none.
    fn expand_point(
        &mut self,
        components: &[ast::Component],
        point: &'a ast::ProbePoint,
        wrapping: &Wrapping<'a>,
        found: &mut Vec<(Site, Wrapping<'a>)>,
    ) -> bool {
        let mut wrapping = wrapping.clone();
        wrapping.conditions.extend(point.condition.as_deref());
        let quiet = point.optional || point.sufficient;
        let aliases = matching_aliases(self.names, components);
        // Of the points that a wildcard matches, some may be absent on this kernel.
        let wild = components.iter().any(|component| glob::is_pattern(&component.name));
        let families = if wild { probe::matching(components) } else { Vec::new() };
        if aliases.is_empty() && families.is_empty() {
            return self.resolve_point(components, point.span, quiet, wrapping, found);
        }
        let mut present = false;
        for (alias, name, suffix) in aliases {
            let outermost = wrapping.listed.is_none();
            if outermost {
                wrapping.listed = Some(print::components(&[name, &suffix].concat()));
            }
            present |= self.expand_alias(alias, &suffix, point, quiet || wild, &wrapping, found);
            if outermost {
                wrapping.listed = None;
            }
        }
        for components in families {
            present |= self.resolve_point(&components, point.span, true, wrapping.clone(), found);
        }
        if wild && !present && !quiet {
            let diagnostic = Diagnostic::error(Code("E0209"), "probe point mismatch: didn't find any wildcard matches");
            self.env.add(diagnostic.at(point.span, "this kernel has nothing that matches"));
        }
        present
    }

    fn expand_alias(
        &mut self,
        alias: &'a ast::Alias,
        suffix: &[ast::Component],
        point: &'a ast::ProbePoint,
        quiet: bool,
        wrapping: &Wrapping<'a>,
        found: &mut Vec<(Site, Wrapping<'a>)>,
    ) -> bool {
        if wrapping.via.contains(&(alias as *const _)) {
            let diagnostic = Diagnostic::error(Code("E0208"), "recursive loop in alias expansion");
            self.env.add(diagnostic.at(point.span, "").also(alias.span, "this alias leads to itself"));
            return false;
        }
        self.env.expansions += 1;
        if self.env.expansions > MAX_EXPANSIONS {
            let diagnostic =
                Diagnostic::error(Code("E0211"), format!("more than {MAX_EXPANSIONS} aliases in one script"));
            self.env.add(diagnostic.at(point.span, "").also(alias.span, "this alias is the one too many"));
            return false;
        }
        let mut inner = wrapping.clone();
        inner.via.push(alias);
        // The alias nearest the event is outermost: its prologue runs first, its epilogue last.
        inner.prologues.splice(0..0, alias.prologue.as_ref());
        inner.epilogues.extend(alias.epilogue.as_ref());
        let mut present = false;
        let before = self.env.mark();
        for base in &alias.points {
            let mut components = base.components.clone();
            // The library's `.call` leaves out inlined copies; SystemTap's aliases have none, and take `.return`.
            let calls = components.last().is_some_and(|last| last.name == "call" && last.argument.is_none());
            if calls && !suffix.is_empty() && self.env.is_library(alias.span.file) {
                components.pop();
            }
            components.extend_from_slice(suffix);
            let here = self.expand_point(&components, base, &inner, found);
            present |= here;
            if here && base.sufficient {
                break;
            }
        }
        if quiet && !present {
            self.env.forget(before);
        }
        if !quiet
            && !present
            && let Some(instead) = alias.names.first().and_then(|name| gone::instead(name))
            && let Some(problem) = self.env.last_problem(before)
        {
            problem.notes.push(instead.into());
        }
        present
    }

    fn resolve_point(
        &mut self,
        components: &[ast::Component],
        span: Span,
        quiet: bool,
        wrapping: Wrapping<'a>,
        found: &mut Vec<(Site, Wrapping<'a>)>,
    ) -> bool {
        let resolved = probe::resolve(components, span, self.env.resolver);
        self.env.resolver.take_warnings().into_iter().for_each(|warning| self.env.add_first(warning));
        match resolved {
            Ok(sites) => {
                let present = !sites.is_empty();
                found.extend(sites.into_iter().map(|site| (site, wrapping.clone())));
                present
            }
            Err(error) => {
                let braces = components.iter().find(|component| has_braces(component));
                if !quiet || matches!(error, PointError::Argument { .. } | PointError::Range { .. }) {
                    let aliases = self.names.offered.aliases.iter().cloned().chain(self.names.alias_names());
                    let owners = |name: &str| probe::other_owners(components, name, self.env.resolver);
                    let error = error.with_aliases(components, aliases).with_owners(owners);
                    let mut diagnostic = error.diagnostic(span);
                    diagnostic.notes.extend(gone::instead(components).map(Into::into));
                    diagnostic.notes.extend(braces.map(|_| probe::BRACES_IN_STRING.into()));
                    self.env.add(diagnostic);
                } else if let Some(component) = braces {
                    let diagnostic = Diagnostic::warning(Code("W0106"), "braces in a string are no pattern");
                    self.env.add(diagnostic.at(component.span, "matches nothing").note(probe::BRACES_IN_STRING));
                }
                false
            }
        }
    }
}

/// Whether the component names functions, modules or the like by a string with braces. No such name has one.
fn has_braces(component: &ast::Component) -> bool {
    let named = ["function", "module", "statement", "trace", "tracepoint", "callee", "label", "data"];
    let braces = matches!(&component.argument, Some(ast::Literal::String(name)) if name.contains(&b'{'));
    braces && named.contains(&component.name.as_str())
}

/// The aliases whose names are prefixes of the components, each with that name and the remaining components. Not those
/// that another one continues: `a.return.maxactive(5)` is the alias `a.return` with a suffix, not `a` with two; and where
/// `a.*.return` matches an alias `a.b.return`, it is not `a.b` with a suffix.
fn matching_aliases<'a>(
    names: &Names<'a>,
    components: &[ast::Component],
) -> Vec<(&'a ast::Alias, &'a [ast::Component], Vec<ast::Component>)> {
    let Some(first) = components.first() else { return Vec::new() };
    let fits = |(alias, name): (&'a ast::Alias, &'a [ast::Component])| {
        after_alias(name, components).map(|rest| (alias, name, rest.to_vec()))
    };
    let mut matching: Vec<_> = names.aliases_like(&first.name).into_iter().filter_map(fits).collect();
    let fewest = matching.iter().map(|(_, _, rest)| rest.len()).min();
    if matching.iter().any(|(_, _, rest)| Some(rest.len()) != fewest) {
        let longer: Vec<&[ast::Component]> = matching.iter().map(|(_, name, _)| *name).collect();
        matching.retain(|(_, name, _)| !longer.iter().any(|other| continues(other, name)));
    }
    matching
}

/// Whether a name begins with another one and is longer.
fn continues(name: &[ast::Component], beginning: &[ast::Component]) -> bool {
    let same = |(a, b): (&ast::Component, &ast::Component)| a.name == b.name && a.argument == b.argument;
    name.len() > beginning.len() && name.iter().zip(beginning).all(same)
}

/// Whether the components begin with the name of an alias.
pub(super) fn is_alias(names: &Names, components: &[ast::Component]) -> bool {
    !matching_aliases(names, components).is_empty()
}

/// The components after those that name an alias; None if they do not name it. A `*` stands for a component that does
/// not begin with `_`, `**` for the rest of the name.
fn after_alias<'c>(name: &[ast::Component], components: &'c [ast::Component]) -> Option<&'c [ast::Component]> {
    let mut rest = components;
    for (at, part) in name.iter().enumerate() {
        let (first, after) = rest.split_first()?;
        if first.name.contains("**") && first.argument.is_none() {
            let spelled: Vec<&str> = name[at..].iter().map(|part| part.name.as_str()).collect();
            let shown = name[at..].iter().all(|part| !part.name.starts_with('_') && part.argument.is_none());
            return (shown && glob::matches(&first.name, &spelled.join("."))).then_some(after);
        }
        let wild = glob::is_pattern(&first.name) && first.argument.is_none();
        let fits = match wild {
            true => {
                glob::matches(&first.name, &part.name) && (first.name.starts_with('_') || !part.name.starts_with('_'))
            }
            false => first.name == part.name,
        };
        if !fits || first.argument != part.argument {
            return None;
        }
        rest = after;
    }
    Some(rest)
}

/// The handler of a site; `number` is its number among all.
pub(super) fn handler<'a>(
    names: &Names<'a>,
    site: Site,
    number: u32,
    wrapping: Wrapping<'a>,
    point: &'a ast::ProbePoint,
    probe: &'a ast::Probe,
) -> Handler<'a> {
    let body = unneeded::needed(names, &wrapping.prologues, &probe.body, &wrapping.epilogues);
    let user_writes = written(names, &probe.body);
    let site = entry::placed(names, site, &body, &wrapping.conditions);
    let at = UnitContext {
        context: Some(site.context.clone()),
        point: site.point.clone(),
        site: Some(number),
        at_entry: false,
    };
    let unit = Unit { user_writes, ..Unit::new(at) };
    Handler {
        site,
        script_point: probe::spelling(&point.components),
        span: point.span,
        condition: wrapping.conditions,
        body,
        unit,
    }
}

fn same_blocks(left: &[&ast::Block], right: &[&ast::Block]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| std::ptr::eq(*left, *right))
}

/// The variables that the statements write, with the globals that they are.
fn written(names: &Names, block: &ast::Block) -> Vec<(String, Option<GlobalId>)> {
    let mut found = Vec::new();
    let mut add = |name: &str, span: Span| found.push((name.to_string(), names.find_global(span, name)));
    visit::statements(block, &mut |statement| match &statement.kind {
        ast::StmtKind::Foreach(foreach) => {
            foreach.keys.iter().chain(&foreach.value).for_each(|name| add(&name.text, name.span));
        }
        ast::StmtKind::Try { message: Some(name), .. } => add(&name.text, name.span),
        ast::StmtKind::Delete(ast::Expr { kind: ast::ExprKind::Ident(name), span }) => add(name, *span),
        _ => {}
    });
    visit::expressions(block, &mut |expr| match &expr.kind {
        ast::ExprKind::Assign(_, target, _) | ast::ExprKind::Step { target, .. } => {
            if let ast::ExprKind::Ident(name) = &target.kind {
                add(name, target.span);
            }
        }
        _ => {}
    });
    found
}
