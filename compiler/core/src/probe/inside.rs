// SPDX-License-Identifier: GPL-2.0-or-later

//! The contents of a function: the functions that it calls (see [`super::callees`]) and `.label("l")`.

use std::rc::Rc;

use super::callees::{CalleeSelection, Callees};
use super::code::Code;
use super::error::UnplacedError;
use super::function::{FunctionContext, in_each, no_place, nothing, objects, owner_of};
use super::lines::parse;
use super::taken::Taken;
use super::{Form, Point, PointError, ProbeFamily, Resolver, Site};
use spile_base::glob;
use spile_debuginfo::target::Object;
use spile_debuginfo::{Function, FunctionId};
use spile_source::Span;

/// The family of `.callee` and `.callees`.
pub(super) static FAMILY: ProbeFamily = ProbeFamily::new(
    &[
        Form {
            spelling: "kernel.function(string).callee(string)",
            doc: "a function, where the other one calls it or has it inlined",
        },
        Form { spelling: "kernel.function(string).callee(string).call", doc: "the same, inlined calls left out" },
        Form {
            spelling: "kernel.function(string).callee(string).return",
            doc: "its return, where the other one has called it",
        },
        Form { spelling: "kernel.function(string).callees", doc: "every function that it calls" },
        Form { spelling: "kernel.function(string).callees.call", doc: "the same, inlined calls left out" },
        Form { spelling: "kernel.function(string).callees.return", doc: "the returns of those that are called" },
        Form {
            spelling: "kernel.function(string).callees(number)",
            doc: "the same, and their callees to that depth; only when called along that path",
        },
        Form { spelling: "kernel.function(string).callees(number).call", doc: "the same, inlined calls left out" },
        Form {
            spelling: "kernel.function(string).callees(number).return",
            doc: "the returns of those that are called along that path",
        },
        Form { spelling: "kernel.function(string).label(string)", doc: "a label in a kernel function" },
        Form {
            spelling: "module(string).function(string).callee(string)",
            doc: "a function, where the module's one calls it or has it inlined",
        },
        Form {
            spelling: "module(string).function(string).callee(string).call",
            doc: "the same, inlined calls left out",
        },
        Form {
            spelling: "module(string).function(string).callee(string).return",
            doc: "its return, where the other one has called it",
        },
        Form { spelling: "module(string).function(string).callees", doc: "every function of the module that it calls" },
        Form { spelling: "module(string).function(string).callees.call", doc: "the same, inlined calls left out" },
        Form {
            spelling: "module(string).function(string).callees.return",
            doc: "the returns of those that are called",
        },
        Form {
            spelling: "module(string).function(string).callees(number)",
            doc: "the same, and their callees to that depth; only when called along that path",
        },
        Form {
            spelling: "module(string).function(string).callees(number).call",
            doc: "the same, inlined calls left out",
        },
        Form {
            spelling: "module(string).function(string).callees(number).return",
            doc: "the returns of those that are called along that path",
        },
        Form { spelling: "module(string).function(string).label(string)", doc: "a label in a module's function" },
    ],
    resolve,
);

/// Most levels of calls that are followed: the guard checks as many frames.
const MAX_DEPTH: i64 = 16;

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    if let Some((depth, component)) = point.number("callees")
        && !(1..=MAX_DEPTH).contains(&depth)
    {
        return Err(PointError::Range { component, low: 1, high: MAX_DEPTH });
    }
    let objects = objects(point, resolver)?;
    let sites = in_each(&objects, |object| resolve_in(point, object, resolver))?;
    if sites.is_empty() {
        let component = point.components.last().map_or(point.span(), |component| component.span);
        return Err(PointError::NoMatch { component, pattern: point.spelling(), object: "any of the modules".into() });
    }
    Ok(sites)
}

pub(super) fn resolve_in(point: &Point, object: &Rc<Object>, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let (text, component) = point.string("function").unwrap_or((String::new(), point.span()));
    let failed = |error: spile_debuginfo::Error| PointError::DebugInfo { component, message: error.to_string() };
    let (pattern, _) = parse(&text).ok_or_else(|| no_place(&text, component))?;
    let debug = object.debug().map_err(failed)?;
    let functions = debug.find_functions(&pattern).map_err(failed)?;
    if functions.is_empty() {
        return Err(nothing(debug, &pattern, &text, component, object));
    }
    if let Some((wanted, inner)) = point.string("label") {
        let code = Code::of(point, object, resolver)?;
        let taken = Taken::default();
        let mut labels = Labels { object, code, resolver, taken, sites: Vec::new(), near: Vec::new() };
        for id in functions {
            let function = debug.function(id).map_err(failed)?;
            labels.of(id, &function, &wanted).map_err(|error| error.at(inner))?;
        }
        return found(labels.sites, labels.near, "labels", &pattern.name, wanted, inner);
    }
    let (callee, inner) = point.string("callee").unwrap_or(("*".to_string(), component));
    let depth = point.number("callees").and_then(|(depth, _)| usize::try_from(depth).ok()).unwrap_or(1);
    let (only_calls, returning) = (point.has("call"), point.has("return"));
    let selection = CalleeSelection { pattern: callee.clone(), depth, only_calls, returning, component: inner };
    let code = Code::of(point, object, resolver)?;
    let mut callees = Callees::new(object, code, resolver, &selection);
    let mut taken = Taken::default();
    for id in functions {
        let function = debug.function(id).map_err(failed)?;
        let mut entries = function.bodies.iter().map(|body| body.entry).take(usize::from(object.is_program()));
        if entries.any(|entry| !taken.take(&function.name, &function.file, function.line, entry)) {
            continue;
        }
        callees.of(id, &function).map_err(|error| error.at(inner))?;
    }
    let (sites, near) = (callees.sites, callees.near);
    if sites.is_empty() && callees.only_inlined {
        let why =
            format!("the function of that name is inlined where `{}` calls it, so it has no return", pattern.name);
        return Err(PointError::NotProbeable { component: inner, name: callee, why });
    }
    found(sites, near, "calls", &pattern.name, callee, inner)
}

/// The sites; if there are none, what exists instead. `near`: names of that kind in the function.
fn found(
    sites: Vec<Site>,
    mut near: Vec<String>,
    kind: &str,
    function: &str,
    name: String,
    component: Span,
) -> Result<Vec<Site>, PointError> {
    if !sites.is_empty() {
        return Ok(sites);
    }
    near.sort();
    near.dedup();
    let why = match near.is_empty() {
        true => format!("`{function}` has no {kind} in the debug information"),
        false => format!("the {kind} of `{function}` are {}", near.join(", ")),
    };
    Err(PointError::NotProbeable { component, name, why })
}

struct Labels<'o, 'r, 'k> {
    object: &'o Rc<Object>,
    code: Code,
    resolver: &'r mut Resolver<'k>,
    taken: Taken,
    sites: Vec<Site>,
    /// Names of what exists.
    near: Vec<String>,
}

impl Labels<'_, '_, '_> {
    fn of(&mut self, id: FunctionId, function: &Function, wanted: &str) -> Result<(), UnplacedError> {
        // As in a listing: `out@fs/x.c:12`.
        let wanted = wanted.split('@').next().unwrap_or(wanted);
        for label in self.object.debug()?.labels(id)? {
            if !glob::matches(wanted, &label.name) {
                self.near.push(label.name);
                continue;
            }
            let (name, file) = (&function.name, &function.file);
            let full = format!("{name}:{}", label.name);
            if self.object.is_program() && !self.taken.take(&full, file, label.line, label.address) {
                continue;
            }
            let place = format!("{name} ({file}:{}), label {}", label.line, label.name);
            let context = FunctionContext::at(self.object, id, place, label.address);
            // The line is that of the label, as in SystemTap.
            let suffix = format!("function(\"{name}@{file}:{}\").label(\"{}\")", label.line, label.name);
            let attachment = match self.code.at(self.object, label.address) {
                Ok(attachment) => attachment,
                Err(why) => {
                    self.resolver.skip(&context.place, why);
                    continue;
                }
            };
            let module = if self.object.is_kernel() { "kernel".to_string() } else { self.object.name().to_string() };
            let point = format!("{}.{suffix}", owner_of(self.object));
            self.sites.push(Site { point, function: name.clone(), module, attachment, context: Rc::new(context) });
        }
        Ok(())
    }
}
