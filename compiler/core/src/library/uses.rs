// SPDX-License-Identifier: GPL-2.0-or-later

//! The names that scripts mention, and whether a library file is needed for one.

use std::collections::{HashMap, HashSet};

use spile_base::glob;
use spile_syntax::ast::{Block, Component, ExprKind, FunctionBody, Item, ProbePoint, Script};
use spile_syntax::outline::Outline;
use spile_syntax::visit;

/// Names that are mentioned somewhere.
#[derive(Default)]
pub struct Uses {
    /// Variables and functions.
    names: HashSet<String>,
    /// Names of the components of probe points, including wildcards; by the first one, those with a wildcard there apart.
    points: HashMap<String, HashSet<Vec<String>>>,
    wild: HashSet<Vec<String>>,
}

impl Uses {
    /// Adds the names that a script mentions.
    pub fn script(&mut self, script: &Script) {
        for item in &script.items {
            match item {
                Item::Probe(probe) => {
                    self.points(&probe.points);
                    self.block(&probe.body);
                }
                Item::Alias(alias) => {
                    self.points(&alias.points);
                    alias.prologue.iter().chain(&alias.epilogue).for_each(|block| self.block(block));
                }
                Item::Function(function) => {
                    if let FunctionBody::Script(block) = &function.body {
                        self.block(block);
                    }
                }
                Item::Global(_) | Item::EmbeddedC(_) => {}
            }
        }
    }

    /// Adds the names that probe points and their conditions mention.
    pub fn points(&mut self, points: &[ProbePoint]) {
        for point in points {
            let names: Vec<String> = point.components.iter().map(|component| component.name.clone()).collect();
            match names.first().filter(|first| !glob::is_pattern(first)) {
                Some(first) => self.points.entry(first.clone()).or_default().insert(names),
                None => self.wild.insert(names),
            };
            if let Some(condition) = &point.condition {
                visit::in_expression(condition, &mut |expr| note(&mut self.names, &expr.kind));
            }
        }
    }

    fn block(&mut self, block: &Block) {
        visit::expressions(block, &mut |expr| note(&mut self.names, &expr.kind));
    }

    /// Whether a file with this outline may define something that is mentioned and not in `defined`.
    pub fn may_define_needed(&self, offers: &Outline, defined: &HashSet<String>) -> bool {
        offers.opaque
            || offers.names.iter().any(|name| self.needs_name(name, defined))
            || offers.aliases.iter().any(|alias| self.needs_alias(alias))
    }

    /// Whether the file defines it.
    pub fn needs(&self, script: &Script, defined: &HashSet<String>) -> bool {
        let alias = |name: &Vec<Component>| {
            self.needs_alias(&name.iter().map(|component| component.name.as_str()).collect::<Vec<_>>())
        };
        super::names(script).any(|name| self.needs_name(name, defined))
            || script.items.iter().any(|item| matches!(item, Item::Alias(found) if found.names.iter().any(alias)))
    }

    /// Whether a name with this prefix is mentioned.
    pub fn begins(&self, with: &str) -> bool {
        self.names.iter().any(|name| name.starts_with(with))
    }

    fn needs_name(&self, name: &str, defined: &HashSet<String>) -> bool {
        self.names.contains(name) && !defined.contains(name)
    }

    fn needs_alias<S: AsRef<str>>(&self, alias: &[S]) -> bool {
        let same = alias.first().and_then(|first| self.points.get(first.as_ref()));
        same.into_iter().flatten().chain(&self.wild).any(|point| leads_to(point, alias))
    }
}

fn note(names: &mut HashSet<String>, kind: &ExprKind) {
    let name = match kind {
        ExprKind::Ident(name) => name,
        ExprKind::Call(name, _) => &name.text,
        _ => return,
    };
    if !names.contains(name) {
        names.insert(name.clone());
    }
}

/// Whether the point may be the alias, possibly with further components after its name.
fn leads_to<S: AsRef<str>>(point: &[String], alias: &[S]) -> bool {
    for (index, component) in point.iter().enumerate() {
        let Some(name) = alias.get(index) else { return true };
        if component.contains("**") {
            return true;
        }
        let same = component == name.as_ref() || glob::is_pattern(component) && glob::matches(component, name.as_ref());
        if !same {
            return false;
        }
    }
    point.len() >= alias.len()
}
