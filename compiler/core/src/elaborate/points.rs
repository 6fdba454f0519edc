// SPDX-License-Identifier: GPL-2.0-or-later

//! Probe points to sites: aliases expanded, `?` and `!` obeyed, bodies put together.

use super::{Elaborator, Handler, Unit, gone};
use crate::probe::{self, PointError, Site};
use crate::program::Attachment;
use spile_base::glob;
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic};
use spile_syntax::{ast, print, visit};

/// What the aliases on the way to a point have added around the user's body.
#[derive(Clone, Default)]
pub(super) struct Wrapping<'a> {
    conditions: Vec<&'a ast::Expr>,
    /// Outermost first.
    prologues: Vec<&'a ast::Block>,
    /// Innermost first.
    epilogues: Vec<&'a ast::Block>,
    /// Aliases being expanded, to find loops.
    via: Vec<*const ast::Alias>,
    /// The outermost alias as a script names it, with what follows: `vm.brk.return`.
    pub(super) listed: Option<String>,
}

impl<'a> Wrapping<'a> {
    /// What runs around the user's body, in order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &'a ast::Block> {
        self.prologues.iter().chain(&self.epilogues).copied()
    }
}

impl<'a> Elaborator<'a> {
    pub(super) fn expand_probes(&mut self, scripts: &'a [ast::Script]) -> Vec<Handler<'a>> {
        let mut handlers = Vec::new();
        for script in scripts {
            for item in &script.items {
                let ast::Item::Probe(probe) = item else { continue };
                for point in &probe.points {
                    let mut found = Vec::new();
                    let present = self.expand_point(&point.components, point, &Wrapping::default(), &mut found);
                    for (site, wrapping) in found {
                        let number = handlers.len() as u32;
                        handlers.push(self.handler(site, number, wrapping, point, probe));
                    }
                    if present && point.sufficient {
                        break;
                    }
                }
            }
        }
        self.check_files(&handlers);
        handlers
    }

    /// The file of one probe is no directory of another's.
    fn check_files(&mut self, handlers: &[Handler<'a>]) {
        let path = |handler: &Handler<'a>| match &handler.site.attachment {
            Attachment::Procfs { path, .. } => Some((path.clone(), handler.span)),
            _ => None,
        };
        let files: Vec<(String, Span)> = handlers.iter().filter_map(path).collect();
        for (path, span) in &files {
            let is_below = |other: &str| path.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
            if let Some((other, other_span)) = files.iter().find(|(other, _)| is_below(other)) {
                let diagnostic =
                    Diagnostic::error(Code("E0202"), format!("`{path}` cannot be below `{other}`, which is a file"));
                self.tell(
                    diagnostic
                        .at(*span, "give one of them another name")
                        .also(*other_span, "this probe makes it a file"),
                );
            }
        }
    }

    /// Sites of points that stand for themselves (`-l`).
    pub(super) fn list_sites(&mut self, points: &'a [ast::ProbePoint]) -> Vec<(Site, Wrapping<'a>)> {
        let mut found = Vec::new();
        for point in points {
            self.expand_point(&point.components, point, &Wrapping::default(), &mut found);
        }
        found
    }

    /// Adds the sites of a point; false if it has none.
    pub(super) fn expand_point(
        &mut self,
        components: &[ast::Component],
        point: &'a ast::ProbePoint,
        around: &Wrapping<'a>,
        found: &mut Vec<(Site, Wrapping<'a>)>,
    ) -> bool {
        let mut around = around.clone();
        around.conditions.extend(point.condition.as_deref());
        let quiet = point.optional || point.sufficient;
        let aliases = self.matching_aliases(components);
        // Of what a wildcard finds, some may be absent here.
        let wild = components.iter().any(|component| component.argument.is_none() && glob::is_pattern(&component.name));
        let families = if wild { probe::matching(components) } else { Vec::new() };
        if aliases.is_empty() && families.is_empty() {
            return self.resolve_point(components, point.span, quiet, around, found);
        }
        let mut present = false;
        for (alias, name, suffix) in aliases {
            let outermost = around.listed.is_none();
            if outermost {
                around.listed = Some(print::components(&[name, &suffix].concat()));
            }
            present |= self.expand_alias(alias, &suffix, point, quiet || wild, &around, found);
            if outermost {
                around.listed = None;
            }
        }
        for components in families {
            present |= self.resolve_point(&components, point.span, true, around.clone(), found);
        }
        if wild && !present && !quiet {
            let diagnostic = Diagnostic::error(Code("E0209"), "probe point mismatch: didn't find any wildcard matches");
            self.tell(diagnostic.at(point.span, "nothing that it names is there on this kernel"));
        }
        present
    }

    fn expand_alias(
        &mut self,
        alias: &'a ast::Alias,
        suffix: &[ast::Component],
        point: &'a ast::ProbePoint,
        quiet: bool,
        around: &Wrapping<'a>,
        found: &mut Vec<(Site, Wrapping<'a>)>,
    ) -> bool {
        if around.via.contains(&(alias as *const _)) {
            let diagnostic = Diagnostic::error(Code("E0208"), "recursive loop in alias expansion");
            self.tell(diagnostic.at(point.span, "").also(alias.span, "this alias leads to itself"));
            return false;
        }
        let mut inner = around.clone();
        inner.via.push(alias);
        // The alias nearest the event is outermost: its prologue runs first, its epilogue last.
        inner.prologues.splice(0..0, alias.prologue.as_ref());
        inner.epilogues.extend(alias.epilogue.as_ref());
        let mut present = false;
        let before = self.problems.len();
        let failed = self.failed;
        for base in &alias.points {
            let mut components = base.components.clone();
            components.extend_from_slice(suffix);
            let here = self.expand_point(&components, base, &inner, found);
            present |= here;
            if here && base.sufficient {
                break;
            }
        }
        if quiet && !present {
            self.problems.truncate(before);
            self.failed = failed;
        }
        if !quiet
            && !present
            && let Some(instead) = alias.names.first().and_then(|name| gone::instead(name))
            && let Some(problem) = self.problems[before..].last_mut()
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
        around: Wrapping<'a>,
        found: &mut Vec<(Site, Wrapping<'a>)>,
    ) -> bool {
        let names = self.alias_names();
        match probe::resolve(components, span, &names, self.resolver) {
            Ok(sites) => {
                let present = !sites.is_empty();
                found.extend(sites.into_iter().map(|site| (site, around.clone())));
                present
            }
            Err(error) => {
                if !quiet || matches!(error, PointError::Argument { .. } | PointError::Range { .. }) {
                    let diagnostic = error.diagnostic(span);
                    self.tell(match gone::instead(components) {
                        Some(instead) => diagnostic.note(instead),
                        None => diagnostic,
                    });
                }
                false
            }
        }
    }

    /// Aliases whose name the components begin with, each with that name and the components after it; only those with the
    /// fewest: `a.return.maxactive(5)` is the alias `a.return` with a suffix, and not `a` with two.
    pub(super) fn matching_aliases(
        &self,
        components: &[ast::Component],
    ) -> Vec<(&'a ast::Alias, &'a [ast::Component], Vec<ast::Component>)> {
        let mut matching = Vec::new();
        for alias in &self.aliases {
            for name in &alias.names {
                if let Some(rest) = after_alias(name, components) {
                    matching.push((*alias, name.as_slice(), rest.to_vec()));
                }
            }
        }
        let fewest = matching.iter().map(|(_, _, rest)| rest.len()).min();
        matching.retain(|(_, _, rest)| Some(rest.len()) == fewest);
        matching
    }

    fn alias_names(&self) -> Vec<String> {
        let names = self.aliases.iter().flat_map(|alias| &alias.names);
        names.filter_map(|name| name.first()).map(|component| component.name.clone()).collect()
    }
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
                glob::matches(&first.name, &part.name) && !(part.name.starts_with('_') && !first.name.starts_with('_'))
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

impl<'a> Elaborator<'a> {
    pub(super) fn handler(
        &self,
        site: Site,
        number: u32,
        around: Wrapping<'a>,
        point: &'a ast::ProbePoint,
        probe: &'a ast::Probe,
    ) -> Handler<'a> {
        let body = self.needed(&around.prologues, &probe.body, &around.epilogues);
        let mut user_writes = Vec::new();
        visit::expressions(&probe.body, &mut |expr| match &expr.kind {
            ast::ExprKind::Assign(_, target, _) | ast::ExprKind::Step { target, .. } => {
                if let ast::ExprKind::Ident(name) = &target.kind {
                    user_writes.push(name.clone());
                }
            }
            _ => {}
        });
        let (context, point_text) = (site.context.clone(), site.point.clone());
        let unit =
            Unit { context: Some(context), point: point_text, site: Some(number), user_writes, ..Unit::default() };
        Handler {
            site,
            script_point: probe::spelling(&point.components),
            span: point.span,
            condition: around.conditions,
            body,
            unit,
        }
    }
}
