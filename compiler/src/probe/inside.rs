//! What is inside a function: `.callee("g")`, `.callees` (the functions that it calls, when it is this one that calls them)
//! and `.label("l")`.
//!
//! A call that is not inlined is probed at the instruction that calls, where the arguments lie in their registers already:
//! calls from elsewhere cost nothing, and modules need no address at run time.

use std::rc::Rc;

use super::function::{FunctionContext, described, no_place, nothing, objects, owner_of, place_in};
use super::lines::parse;
use super::{CodePlace, Context, ContextError, Form, Found, Location, Point, PointError, ProbeFamily, Resolver, Site};
use crate::debuginfo::{Address, Function, FunctionId};
use crate::glob;
use crate::program::Attachment;
use crate::source::Span;
use crate::target::Object;

pub(super) static FAMILY: ProbeFamily = ProbeFamily {
    forms: &[
        Form { spelling: "kernel.function(string).callee(string)", doc: "a function, where the other one calls it or has it inlined" },
        Form { spelling: "kernel.function(string).callee(string).call", doc: "the same, inlined calls left out" },
        Form { spelling: "kernel.function(string).callees", doc: "every function that it calls" },
        Form { spelling: "kernel.function(string).callees(number)", doc: "the same; only calls of depth 1" },
        Form { spelling: "kernel.function(string).label(string)", doc: "a label in a kernel function" },
        Form { spelling: "module(string).function(string).callee(string)", doc: "a function, where the module's one calls it or has it inlined" },
        Form { spelling: "module(string).function(string).callee(string).call", doc: "the same, inlined calls left out" },
        Form { spelling: "module(string).function(string).callees", doc: "every function of the module that it calls" },
        Form { spelling: "module(string).function(string).callees(number)", doc: "the same; only calls of depth 1" },
        Form { spelling: "module(string).function(string).label(string)", doc: "a label in a module's function" },
    ],
    resolve,
};

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    if let Some((depth, component)) = point.number("callees") {
        if depth != 1 {
            return Err(PointError::Range { component, low: 1, high: 1 });
        }
    }
    let mut sites = Vec::new();
    let objects = objects(point, resolver)?;
    for object in &objects {
        match resolve_in(point, object, resolver) {
            Ok(found) => sites.extend(found),
            Err(error) if objects.len() == 1 => return Err(error),
            Err(_) => {}
        }
    }
    if sites.is_empty() {
        let component = point.components.last().map_or(point.components[0].span, |component| component.span);
        return Err(PointError::NoMatch { component, pattern: point.spelling(), object: "any of the modules".into() });
    }
    Ok(sites)
}

fn resolve_in(point: &Point, object: &Rc<Object>, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let (text, component) = point.string("function").unwrap_or((String::new(), point.components[0].span));
    let failed = |error: crate::debuginfo::Error| PointError::DebugInfo { component, message: error.to_string() };
    let (pattern, _) = parse(&text).ok_or_else(|| no_place(&text, component))?;
    let debug = object.debug().map_err(failed)?;
    if debug.is_portable() {
        let why = "an exported index knows nothing of labels and calls".to_string();
        return Err(PointError::NotProbeable { component, name: text, why });
    }
    let functions = debug.find_functions(&pattern).map_err(failed)?;
    if functions.is_empty() {
        return Err(nothing(debug, &pattern, &text, component, &described(object)));
    }
    let mut found = Inside { object, resolver, sites: Vec::new(), near: Vec::new() };
    let (wanted, inner) = match point.string("label").or_else(|| point.string("callee")) {
        Some((wanted, component)) => (wanted, component),
        None => ("*".to_string(), component),
    };
    for id in functions {
        let function = debug.function(id).map_err(failed)?;
        match point.has("label") {
            true => found.labels(id, &function, &wanted).map_err(|error| error.at(inner))?,
            false => found.callees(id, &function, &wanted, point.has("call")).map_err(|error| error.at(inner))?,
        }
    }
    if found.sites.is_empty() {
        let Inside { mut near, .. } = found;
        near.sort();
        near.dedup();
        let what = if point.has("label") { "labels" } else { "calls" };
        let why = match near.is_empty() {
            true => format!("`{}` has no {what} that debug information knows of", pattern.name),
            false => format!("the {what} of `{}` are {}", pattern.name, near.join(", ")),
        };
        return Err(PointError::NotProbeable { component: inner, name: wanted, why });
    }
    Ok(found.sites)
}

/// What can fail, before it is known which component is to blame.
enum Failed {
    Debug(crate::debuginfo::Error),
    Point(PointError),
}

impl Failed {
    fn at(self, component: Span) -> PointError {
        match self {
            Failed::Debug(error) => PointError::DebugInfo { component, message: error.to_string() },
            Failed::Point(error) => error,
        }
    }
}

impl From<crate::debuginfo::Error> for Failed {
    fn from(error: crate::debuginfo::Error) -> Failed {
        Failed::Debug(error)
    }
}

struct Inside<'o, 'r, 'k> {
    object: &'o Rc<Object>,
    resolver: &'r mut Resolver<'k>,
    sites: Vec<Site>,
    /// Names of what is there.
    near: Vec<String>,
}

impl Inside<'_, '_, '_> {
    fn labels(&mut self, id: FunctionId, function: &Function, wanted: &str) -> Result<(), Failed> {
        // As a listing spells it: `out@fs/x.c:12`.
        let wanted = wanted.split('@').next().unwrap_or(wanted);
        for label in self.object.debug()?.labels(id)? {
            if !glob::matches(wanted, &label.name) {
                self.near.push(label.name);
                continue;
            }
            let (name, file, line) = (&function.name, &function.file, function.line);
            let context = FunctionContext {
                object: self.object.clone(),
                function: id,
                place: format!("{name} ({file}:{}), label {}", label.line, label.name),
                address: label.address,
                returning: false,
            };
            let suffix = format!("function(\"{name}@{file}:{line}\").label(\"{}@{file}:{}\")", label.name, label.line);
            self.add(label.address, suffix, name, Rc::new(context))?;
        }
        Ok(())
    }

    fn callees(&mut self, id: FunctionId, function: &Function, wanted: &str, only_calls: bool) -> Result<(), Failed> {
        let (wanted, file) = wanted.split_once('@').map_or((wanted, None), |(name, file)| (name, Some(file)));
        let file = file.map(|file| file.split(':').next().unwrap_or(file));
        for call in self.object.debug()?.calls(id)? {
            let callee = self.object.debug()?.function(call.callee)?;
            let filed = file.is_none_or(|file| callee.file.ends_with(file));
            if !glob::matches(wanted, &callee.name) || !filed || (only_calls && call.inlined) {
                self.near.push(callee.name);
                continue;
            }
            let place = format!("{} ({}:{}), called by {}", callee.name, callee.file, callee.line, function.name);
            // Without a body here the callee is another object's, and its variables are not known.
            let address = match call.inlined {
                true => Some(call.address),
                false => callee.bodies.first().map(|body| body.entry),
            };
            let Some(address) = address else { continue };
            let context = FunctionContext { object: self.object.clone(), function: call.callee, place, address, returning: false };
            let context: Rc<dyn Context> = if call.inlined { Rc::new(context) } else { Rc::new(CallContext(context)) };
            let called = if only_calls { ".call" } else { "" };
            let suffix = format!(
                "function(\"{}@{}:{}\").callee(\"{}@{}:{}\"){called}",
                function.name, function.file, function.line, callee.name, callee.file, callee.line
            );
            self.add(call.address, suffix, &callee.name, context)?;
        }
        Ok(())
    }

    fn add(&mut self, address: Address, suffix: String, function: &str, context: Rc<dyn Context>) -> Result<(), Failed> {
        let target = self.resolver.target(self.object).map_err(Failed::Point)?;
        let Some(place) = place_in(self.object, target, address) else { return Ok(()) };
        let module = if self.object.is_kernel() { "kernel".to_string() } else { self.object.name().to_string() };
        let point = format!("{}.{suffix}", owner_of(self.object));
        self.sites.push(Site { point, function: function.into(), module, attachment: Attachment::Kprobe(place), context });
        Ok(())
    }
}

/// The callee's variables, at the instruction that is about to call it.
struct CallContext(FunctionContext);

impl Context for CallContext {
    fn variable(&self, name: &str) -> Result<Found, ContextError> {
        let found = self.0.variable(name)?;
        match found.location {
            Location::Register { .. } => Ok(found),
            // The return address is not on the stack yet: everything there is eight bytes away from where it will be.
            _ => Err(ContextError::NoValue(vec!["it is passed on the stack: probe the function itself".into()])),
        }
    }

    fn parameters(&self) -> Vec<String> {
        self.0.parameters()
    }

    fn has_registers(&self) -> bool {
        true
    }

    fn has_variables(&self) -> bool {
        true
    }

    fn object(&self) -> Option<Rc<Object>> {
        self.0.object()
    }

    fn place(&self) -> String {
        self.0.place()
    }

    fn code(&self) -> Option<CodePlace> {
        self.0.code()
    }
}
