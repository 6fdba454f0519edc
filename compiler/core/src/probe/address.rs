// SPDX-License-Identifier: GPL-2.0-or-later

//! Kernel code by its address: `kernel.function(N)`, `kernel.statement(N)` and, without debug information,
//! `kernel.statement(N).absolute`. A module's addresses count from the start of its `.text`.

use std::rc::Rc;

use super::code::{self, Code};
use super::function::{FunctionContext, described, objects, owner_of, quoted};
use super::{Form, NoContext, Point, PointError, ProbeFamily, Resolver, Site};
use spile_debuginfo::target::Object;
use spile_debuginfo::{Address, Function, FunctionId};
use spile_source::Span;

/// The family of functions and statements at a numeric address.
pub(super) static FAMILY: ProbeFamily = ProbeFamily::new(
    &[
        Form {
            spelling: "kernel.function(number)",
            doc: "entry of the kernel function that has the link-time address",
        },
        Form { spelling: "kernel.function(number).call", doc: "the same" },
        Form { spelling: "kernel.function(number).exported", doc: "the same, of a function that modules may call" },
        Form { spelling: "kernel.function(number).return", doc: "its return" },
        Form {
            spelling: "kernel.function(number).return.maxactive(number)",
            doc: "the same, for at most N calls at once",
        },
        Form {
            spelling: "module(string).function(number)",
            doc: "entry of the module's function that has the offset in .text",
        },
        Form { spelling: "module(string).function(number).call", doc: "the same" },
        Form {
            spelling: "module(string).function(number).exported",
            doc: "the same, of a function that others may call",
        },
        Form { spelling: "module(string).function(number).return", doc: "its return" },
        Form {
            spelling: "module(string).function(number).return.maxactive(number)",
            doc: "the same, for at most N calls at once",
        },
        Form { spelling: "kernel.statement(number)", doc: "the kernel's statement at a link-time address" },
        Form { spelling: "kernel.statement(number).nearest", doc: "the last statement that begins at or before it" },
        Form {
            spelling: "kernel.statement(number).absolute",
            doc: "the instruction at an address of the running kernel",
        },
        Form { spelling: "module(string).statement(number)", doc: "the module's statement at an offset in .text" },
        Form {
            spelling: "module(string).statement(number).nearest",
            doc: "the last statement that begins at or before it",
        },
    ],
    resolve,
);

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let (number, component) =
        point.number("statement").or_else(|| point.number("function")).unwrap_or((0, point.span()));
    if point.has("absolute") {
        // Whether an instruction begins there is not known, and a probe in the middle of one breaks the kernel.
        if !resolver.is_guru() {
            return Err(PointError::Guru { component, what: "a probe at an absolute address" });
        }
        let attachment = code::at_address(number as u64);
        let (point, module) = (format!("kernel.statement({number:#x}).absolute"), "kernel".to_string());
        return Ok(vec![Site { point, function: String::new(), module, attachment, context: Rc::new(NoContext) }]);
    }
    let mut sites = Vec::new();
    for object in objects(point, resolver)? {
        sites.push(resolve_in(point, number as u64, component, &object, resolver)?);
    }
    Ok(sites)
}

pub(super) fn resolve_in(
    point: &Point,
    number: u64,
    component: Span,
    object: &Rc<Object>,
    resolver: &mut Resolver,
) -> Result<Site, PointError> {
    let failed = |error: spile_debuginfo::Error| PointError::DebugInfo { component, message: error.to_string() };
    let name = || format!("{number:#x}");
    let refused = |why: String| PointError::NotProbeable { component, name: name(), why };
    let address =
        object.code_address(number).ok_or_else(|| refused(format!("{} has no code there", described(object))))?;
    let debug = object.debug().map_err(failed)?;
    let id = debug.function_at(address).map_err(failed)?;
    let id = id
        .ok_or_else(|| refused(format!("no function of {} in the debug information contains it", described(object))))?;
    let function = debug.function(id).map_err(failed)?;
    if point.has("exported") && !function.external {
        return Err(refused(format!("{} is static: other files cannot call it", function.name)));
    }
    let maxactive = match point.number("maxactive") {
        None => 0,
        Some((value, _)) if (0..=65535).contains(&value) => value as u32,
        Some((_, component)) => return Err(PointError::Range { component, low: 0, high: 65535 }),
    };
    let at = match point.has("statement") {
        true => statement(debug, id, address, point.has("nearest")).map_err(failed)?.map_err(|near| match near {
            Some(near) => {
                refused(format!("no statement begins there; one begins at {:#x}, and .nearest takes it", near.offset))
            }
            None => refused("no statement begins there or before".into()),
        })?,
        false => body_with(&function, address).ok_or_else(|| refused("its function has no entry".into()))?,
    };
    // As for a debugger, and in SystemTap, the innermost function is the one that has the statement.
    let innermost = match point.has("statement") {
        true => debug.innermost(id, at).map_err(failed)?,
        false => id,
    };
    let function = if innermost == id { function } else { debug.function(innermost).map_err(failed)? };
    let code = Code::of(point, object, resolver)?;
    let returning = point.has("return");
    let attachment = match returning {
        true => code.at_return(object, at, maxactive),
        false if point.has("statement") => code.at_statement(object, at),
        false => code.at(object, at),
    };
    let attachment = attachment.map_err(|why| refused(why.into()))?;
    let (name, file, line) = (function.name, function.file, function.line);
    let suffix = match () {
        () if returning => ".return",
        () if point.has("call") => ".call",
        () if point.has("exported") => ".exported",
        () => "",
    };
    let canonical = match point.has("statement") {
        true => format!("{}.statement({:#x})", owner_of(object), at.offset),
        false => format!("{}.function(\"{}@{file}:{line}\"){suffix}", owner_of(object), quoted(&name)),
    };
    let around = Some(id).filter(|id| *id != innermost);
    let at_address = FunctionContext::at(object, innermost, format!("{name} ({file}:{line})"), at);
    let context = FunctionContext { around, returning, ..at_address };
    let module = if object.is_kernel() { "kernel".to_string() } else { object.name().to_string() };
    Ok(Site { point: canonical, function: name, module, attachment, context: Rc::new(context) })
}

/// The statement at the address; otherwise the last one that begins before it.
fn statement(
    debug: &spile_debuginfo::DebugInfo,
    id: FunctionId,
    address: Address,
    nearest: bool,
) -> Result<Result<Address, Option<Address>>, spile_debuginfo::Error> {
    let statements = debug.statements(id)?;
    let before = statements
        .iter()
        .map(|statement| statement.address)
        .filter(|at| at.section == address.section && *at <= address);
    Ok(match before.max() {
        Some(at) if at == address || nearest => Ok(at),
        other => Err(other),
    })
}

/// Entry of the body that contains the address, otherwise of the first one.
fn body_with(function: &Function, address: Address) -> Option<Address> {
    let inside = |entry: Address, size: u64| {
        entry.section == address.section && (entry.offset..entry.offset.saturating_add(size)).contains(&address.offset)
    };
    let body = function.bodies.iter().find(|body| inside(body.entry, body.size)).or(function.bodies.first());
    body.map(|body| body.entry)
}
