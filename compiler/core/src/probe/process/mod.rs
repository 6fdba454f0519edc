// SPDX-License-Identifier: GPL-2.0-or-later

//! `process("PATH")`, `process(PID)`, `process`: programs and libraries in user space.
//!
//! A point in their code is resolved as one of the kernel's is, by the same functions; `super::code` attaches it to the file
//! instead. What only programs have is in files of its own here: symbols without debug information, markers, import stubs, and
//! what happens to whole processes.

pub(super) mod data;
pub(super) mod event;
mod mark;
mod named_values;
mod plt;
mod symbol;

use std::path::PathBuf;
use std::rc::Rc;

use super::code::Scope;
use super::{Form, Point, PointError, ProbeFamily, Resolver, Site};
use super::{address, function, inside, lines, statement};
use crate::program::Value;
use spile_base::glob;
use spile_debuginfo::Returning;
use spile_debuginfo::target::{Object, Programs};
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic};
use spile_syntax::ast::Literal;

/// The points in the code of the programs that `$owner` names.
macro_rules! in_code {
    ($owner:literal) => {
        in_code!($owner:
            ".function(string)" "entry of a function of the program, inlined copies included",
            ".function(string).call" "the same, inlined copies left out",
            ".function(string).inline" "inlined copies of a function",
            ".function(string).exported" "entry of a function that other files may call",
            ".function(string).return" "return of a function",
            ".function(string).callee(string)" "a function, where the other one calls it or has it inlined",
            ".function(string).callee(string).call" "the same, inlined calls left out",
            ".function(string).callee(string).return" "its return, where the other one has called it",
            ".function(string).callees" "every function that it calls",
            ".function(string).callees.call" "the same, inlined calls left out",
            ".function(string).callees.return" "the returns of those that are called",
            ".function(string).callees(number)" "the same, and their callees to that depth",
            ".function(string).callees(number).call" "the same, inlined calls left out",
            ".function(string).callees(number).return" "the returns of those that are called along that path",
            ".function(string).label(string)" "a label in a function",
            ".function(number)" "entry of the function that has the link-time address",
            ".function(number).call" "the same",
            ".function(number).exported" "the same, of a function that other files may call",
            ".function(number).return" "its return",
            ".statement(string)" "a source line of the program",
            ".statement(string).nearest" "the source line nearest to it that has code",
            ".statement(number)" "the statement at a link-time address",
            ".statement(number).nearest" "the last statement that begins at or before it",
            ".statement(number).absolute" "the instruction at a link-time address, without debug information",
            ".plt" "every call of another file's function, by its import stub",
            ".plt.return" "the returns of those calls",
            ".plt(string)" "calls of a function of another file, by its import stub",
            ".plt(string).return" "the returns of those calls",
            ".mark(string)" "a marker of the program (<sys/sdt.h>); its arguments are $arg1, $arg2, ...",
            ".provider(string).mark(string)" "the same, of one provider"
        )
    };
    ($owner:literal: $($rest:literal $doc:literal),*) => {
        ProbeFamily::new(&[$(Form { spelling: concat!($owner, $rest), doc: $doc }),*], resolve)
    };
}

/// The families of code in programs: of a path, a process, the session's own; and in their libraries.
pub(super) static CODE: [ProbeFamily; 6] = [
    in_code!("process(string)"),
    in_code!("process(number)"),
    in_code!("process"),
    in_code!("process(string).library(string)"),
    in_code!("process(number).library(string)"),
    in_code!("process.library(string)"),
];

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let objects = objects(point, resolver)?;
    let sites = function::in_each(&objects, |object| {
        let sites = resolve_in(point, object, resolver)?;
        warn_of_uses(point, object, &sites, resolver);
        Ok(sites)
    })?;
    if sites.is_empty() {
        let component = point.components.last().map_or(point.span(), |component| component.span);
        return Err(PointError::NoMatch { component, pattern: point.spelling(), object: "any of the programs".into() });
    }
    if point.has("return") {
        let component = point.components.iter().rfind(|component| component.argument.is_some());
        look_for_unwinders(point, component.map_or(point.span(), |component| component.span), &objects, resolver)?;
    }
    Ok(sites)
}

/// The kernel puts an address of its own in place of the return address of a call whose return is probed. No table for unwinding has
/// that, so that the search for who catches an exception would end there, and with it the program: the runtime puts the
/// addresses back when a search begins. That needs to be known where searches begin.
fn look_for_unwinders(
    point: &Point,
    component: Span,
    objects: &[Rc<Object>],
    resolver: &mut Resolver,
) -> Result<(), PointError> {
    let pid = match Scope::of(point) {
        Scope::Target => resolver.own_pid(),
        _ => point.number("process").map(|(pid, _)| pid),
    };
    for object in objects {
        if !resolver.is_first_look_at(object) {
            continue;
        }
        let unwinders = programs(point, resolver)?.unwinders(object, pid);
        unwinders.iter().for_each(|unwinder| resolver.unwinder(unwinder));
        let is_found = unwinders.iter().any(|unwinder| unwinder.is_needed && !unwinder.searches.is_empty());
        if is_found || !object.catches_exceptions() {
            continue;
        }
        let message = "an exception that passes through a function whose return is probed ends the program";
        let note = format!(
            "{} catches exceptions, and the function that looks for who catches one, _Unwind_RaiseException, is not found in it or its libraries: it would find an address that the kernel has put in place of the return address",
            object.name()
        );
        let help = "probe entries, or .statement at the lines where it returns, of functions that exceptions leave";
        let warning = Diagnostic::warning(Code("W0116"), message).at(component, "").note(note);
        resolver.warn(warning.note(help));
    }
    Ok(())
}

/// Patterns leave out functions that use their return address otherwise than to return to it. One that is named is probed.
fn warn_of_uses(point: &Point, object: &Object, sites: &[Site], resolver: &mut Resolver) {
    let named = point.string("function").filter(|(name, _)| !symbol::is_pattern(name));
    let Some((name, component)) = named.filter(|_| point.has("return") && !resolver.names_only()) else { return };
    let uses = |site: &Site| {
        let at = site.attachment.members.iter().find_map(|(member, value)| match value {
            Value::Unsigned(at) if *member == "uprobe.address" => object.code_address(*at),
            _ => None,
        });
        at.and_then(|at| object.returning(at)) == Some(Returning::Uses)
    };
    if point.has("callee") || point.has("callees") || !sites.iter().any(uses) {
        return;
    }
    let message = format!("`{name}` uses its return address otherwise than to return to it");
    let note = "in place of it there is an address of the kernel while the return is probed: functions that look for their caller (dlopen, dlsym) find none, and the program ends where one keeps the address for later (setjmp) or is entered without one";
    resolver.warn(Diagnostic::warning(Code("W0117"), message).at(component, "its return is probed").note(note));
}

fn resolve_in(point: &Point, object: &Rc<Object>, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    if point.has("plt") {
        return plt::resolve_in(point, object, resolver);
    }
    if point.has("mark") {
        return mark::resolve_in(point, object, resolver);
    }
    if point.has("label") || point.has("callee") || point.has("callees") {
        return inside::resolve_in(point, object, resolver);
    }
    if let Some((number, component)) = point.number("statement").or(point.number("function")) {
        let number = number as u64;
        let debug = object.debug().ok().filter(|debug| !debug.is_symbols());
        let tells = |code| debug.is_some_and(|debug| debug.function_at(code).is_ok_and(|found| found.is_some()));
        let is_untold = |code| point.has("absolute") || !tells(code);
        return match object.code_address(number).is_some_and(is_untold) {
            true => symbol::at_address(point, number, component, object, resolver),
            false => address::resolve_in(point, number, component, object, resolver).map(|site| vec![site]),
        };
    }
    if let Some((text, component)) = point.string("statement") {
        let (pattern, lines) = lines::parse(&text).ok_or_else(|| function::no_place(&text, component))?;
        return statement::resolve_in(point, object, &pattern, &lines, &text, component, resolver);
    }
    match function::resolve_in(point, object, resolver) {
        Err(error @ (PointError::NoFunction { .. } | PointError::NoMatch { .. })) => {
            symbol::resolve_in(point, object, resolver, error)
        }
        Err(error @ (PointError::OnlyInlined { .. } | PointError::NotProbeable { .. })) => {
            // What looks like a file may be a symbol's version.
            if point.string("function").is_some_and(|(name, _)| name.contains('@')) {
                return symbol::resolve_in(point, object, resolver, error);
            }
            let others = symbol::others(point, object, resolver)?;
            if others.is_empty() { Err(error) } else { Ok(others) }
        }
        Ok(mut sites) => {
            sites.extend(symbol::others(point, object, resolver)?);
            Ok(sites)
        }
        Err(error) => Err(error),
    }
}

/// The programs that the point's first component names, or their libraries that `.library` names.
pub(in crate::probe) fn objects(point: &Point, resolver: &Resolver) -> Result<Vec<Rc<Object>>, PointError> {
    let component = point.span();
    let failed = |error| PointError::Target { component, error: Rc::new(error) };
    let paths = paths(point, resolver)?;
    let programs = programs(point, resolver)?;
    let opened = paths.iter().map(|path| programs.open(path).map_err(failed));
    let opened = opened.collect::<Result<Vec<Rc<Object>>, PointError>>()?;
    let Some((name, component)) = point.string("library") else { return Ok(opened) };
    let pid = match Scope::of(point) {
        Scope::Target => resolver.own_pid(),
        _ => point.number("process").map(|(pid, _)| pid),
    };
    let mut libraries: Vec<PathBuf> = Vec::new();
    for program in &opened {
        match programs.libraries(program, pid, &name) {
            Ok(found) => libraries.extend(found),
            Err(error) if opened.len() == 1 => return Err(PointError::Target { component, error: Rc::new(error) }),
            Err(_) => {}
        }
    }
    libraries.sort();
    libraries.dedup();
    libraries.iter().map(|path| programs.open(path).map_err(failed)).collect()
}

fn programs<'k>(point: &Point, resolver: &Resolver<'k>) -> Result<&'k Programs, PointError> {
    resolver.programs().ok_or_else(|| PointError::Unsupported {
        component: point.span(),
        what: "probes in programs, which cannot be examined here".into(),
    })
}

/// Paths of the programs that the point's first component names.
fn paths(point: &Point, resolver: &Resolver) -> Result<Vec<PathBuf>, PointError> {
    let component = point.span();
    let failed = |error| PointError::Target { component, error: Rc::new(error) };
    if Scope::of(point) == Scope::Target {
        return Ok(vec![resolver.own_program(component)?]);
    }
    let programs = programs(point, resolver)?;
    match point.component("process").and_then(|component| component.argument.as_ref()) {
        Some(Literal::Number(pid)) => Ok(vec![programs.of_process(*pid).map_err(failed)?]),
        Some(Literal::String(name)) => {
            let name = String::from_utf8_lossy(name).into_owned();
            if !glob::is_pattern(&name) {
                return Ok(vec![programs.find(&name).map_err(failed)?]);
            }
            let found = programs.find_all(&name);
            if found.is_empty() {
                return Err(PointError::NoMatch { component, pattern: name, object: "the file system".into() });
            }
            Ok(found)
        }
        None => Ok(Vec::new()),
    }
}
