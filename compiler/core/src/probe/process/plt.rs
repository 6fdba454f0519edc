// SPDX-License-Identifier: GPL-2.0-or-later

//! `.plt("f")`: calls of another file's function, at the stub by which a program reaches it.

use std::rc::Rc;

use super::symbol::SymbolContext;
use crate::probe::code::Code;
use crate::probe::function::{described, owner_of};
use crate::probe::{Context, ContextError, Point, PointError, Resolver, Site, TypedLocation};
use spile_base::glob;
use spile_debuginfo::target::Object;
use spile_source::diagnostic::suggest;

/// The stubs that a point names, or all.
pub(super) fn resolve_in(point: &Point, object: &Rc<Object>, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let component = point.component("plt").map_or(point.span(), |component| component.span);
    let wanted = point.string("plt").map_or_else(|| "*".to_string(), |(name, _)| name);
    let stubs = object.mapped().import_stubs();
    let fitting = || stubs.iter().filter(|(name, _)| glob::matches(&wanted, name));
    if fitting().next().is_none() {
        let near = suggest::suggest(&wanted, stubs.iter().map(|(name, _)| name.as_str()));
        let is_imported = || object.mapped().imported_functions().iter().any(|name| glob::matches(&wanted, name));
        let why = match (stubs.is_empty(), near.is_empty()) {
            (_, true) if is_imported() => format!(
                "{} calls it through the global offset table, not by a stub that is known (-fno-plt, -z retpolineplt): probe it in its library, with .library(\"*\").function(\"{wanted}\")",
                described(object)
            ),
            (true, _) => format!("{} has no import stubs", described(object)),
            (_, true) => format!("{} has no import stub for a function of that name", described(object)),
            _ => format!("the import stubs of {} are {}", described(object), near.join(", ")),
        };
        return Err(PointError::NotProbeable { component, name: wanted, why });
    }
    let code = Code::of(point, object, resolver)?;
    let returning = point.has("return");
    let suffix = if returning { ".return" } else { "" };
    let (mut sites, mut refused) = (Vec::new(), None);
    for (name, address) in fitting() {
        let attachment = match code.attach(object, *address, returning) {
            Ok(attachment) => attachment,
            Err(why) => {
                resolver.skip(name, why);
                refused = Some(PointError::NotProbeable { component, name: name.clone(), why: why.to_string() });
                continue;
            }
        };
        // No frame has been made there, whether a symbol tells that it is an entry or not.
        let attachment = attachment.changed("uprobe.at_entry", true.into());
        let inner = SymbolContext { object: object.clone(), symbol: name.clone(), returning };
        sites.push(Site {
            point: format!("{}.plt(\"{name}\"){suffix}", owner_of(object)),
            function: name.clone(),
            module: object.name().to_string(),
            attachment,
            context: Rc::new(StubContext(inner)),
        });
    }
    match refused.filter(|_| sites.is_empty()) {
        Some(refused) => Err(refused),
        None => Ok(sites),
    }
}

/// That of a function of which nothing is known, with its name as `$$name`.
struct StubContext(SymbolContext);

impl Context for StubContext {
    fn variable(&self, name: &str) -> Result<TypedLocation, ContextError> {
        self.0.variable(name)
    }

    fn text(&self, name: &str) -> Option<String> {
        (name == "$$name").then(|| self.0.symbol.clone())
    }

    fn is_return(&self) -> bool {
        self.0.is_return()
    }

    fn has_variables(&self) -> bool {
        true
    }

    fn has_registers(&self) -> bool {
        true
    }

    fn object(&self) -> Option<Rc<Object>> {
        self.0.object()
    }

    fn place(&self) -> String {
        format!("the import stub of {}", self.0.symbol)
    }
}
