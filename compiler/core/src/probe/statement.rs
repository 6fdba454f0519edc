// SPDX-License-Identifier: GPL-2.0-or-later

//! `kernel.statement("f@file:line")`, `module("m").statement("...")`: the statements of functions, by line.
//!
//! The suffix of the file selects them: `:452` a line, `+3` a line relative to the function's, `:*` every line, `:450-460`
//! and `:450,455` several. Without a line it is the function's first.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::code::Code;
use super::function::{FunctionContext, described, in_each, no_place, nothing, objects, owner_of, quoted};
use super::lines::{FunctionStarts, Lines, line_number, parse, wanted_lines};
use super::taken::last_part;
use super::{Form, Point, PointError, ProbeFamily, Resolver, Site};
use crate::program::Attachment;
use spile_debuginfo::target::Object;
use spile_debuginfo::{Address, DebugInfo, Function, FunctionId, FunctionPattern, Statement, path_fits};
use spile_source::Span;

/// The family of `kernel.statement`, `module().statement`.
pub(super) static FAMILY: ProbeFamily = ProbeFamily::new(
    &[
        Form { spelling: "kernel.statement(string)", doc: "a source line of the kernel" },
        Form { spelling: "kernel.statement(string).nearest", doc: "the source line nearest to it that has code" },
        Form { spelling: "module(string).statement(string)", doc: "a source line of a module" },
        Form {
            spelling: "module(string).statement(string).nearest",
            doc: "the source line nearest to it that has code",
        },
    ],
    resolve,
);

/// Most lines with code that are named if there is none on the line.
const NEAR: usize = 4;

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let (text, component) = point.string("statement").unwrap_or((String::new(), point.span()));
    let (pattern, lines) = parse(&text).ok_or_else(|| no_place(&text, component))?;
    let objects = objects(point, resolver)?;
    let sites = in_each(&objects, |object| resolve_in(point, object, &pattern, &lines, &text, component, resolver))?;
    if sites.is_empty() {
        return Err(PointError::NoMatch { component, pattern: text, object: "any of the modules".into() });
    }
    Ok(sites)
}

pub(super) fn resolve_in(
    point: &Point,
    object: &Rc<Object>,
    pattern: &FunctionPattern,
    lines: &Lines,
    text: &str,
    component: Span,
    resolver: &mut Resolver,
) -> Result<Vec<Site>, PointError> {
    let debug_failed = |error: &dyn std::fmt::Display| PointError::DebugInfo { component, message: error.to_string() };
    let debug = object.debug().map_err(|error| debug_error(error, component))?;
    let functions = debug.find_functions(pattern).map_err(|error| debug_failed(&error))?;
    let asked = Asked { point, object, lines, text, component };
    // A file in which no function begins: a generator of parsers names it by `#line`, or a function has it included.
    let part = pattern.file.as_deref().filter(|_| object.is_program());
    let others = || -> Result<Vec<FunctionId>, PointError> {
        let anywhere = FunctionPattern { name: pattern.name.clone(), file: None };
        let mut all = debug.find_functions(&anywhere).map_err(|error| debug_failed(&error))?;
        all.retain(|id| !functions.contains(id));
        Ok(all)
    };
    let found = match functions.is_empty() {
        true => Err(nothing(debug, pattern, text, component, object)),
        false => {
            let starts = resolver.function_starts(object, debug, pattern).map_err(|error| debug_failed(&error))?;
            asked.sites(debug, &functions, Place::Begins(&starts), resolver)
        }
    };
    match (found, part) {
        (
            Err(error @ (PointError::NoFunction { .. } | PointError::NoMatch { .. } | PointError::NotProbeable { .. })),
            Some(file),
        ) if functions.is_empty() => asked.sites_in_part(debug, &others()?, file, resolver)?.unwrap_or(Err(error)),
        // The functions that begin in the file have no code on the line.
        (Err(error @ PointError::NoLine { .. }), Some(file)) => {
            match asked.sites_in_part(debug, &others()?, file, resolver)? {
                Some(Ok(sites)) => Ok(sites),
                _ => Err(error),
            }
        }
        (found, _) => found,
    }
}

fn debug_error(error: impl std::fmt::Display, component: Span) -> PointError {
    PointError::DebugInfo { component, message: error.to_string() }
}

/// Which of a function's statements are looked at.
#[derive(Clone, Copy)]
enum Place<'p> {
    /// Its own, by where the functions of its file begin.
    Begins(&'p FunctionStarts),
    /// Those in a file that fits, in which it does not begin.
    Part(&'p str),
}

/// What a point asks for.
struct Asked<'a> {
    point: &'a Point<'a>,
    object: &'a Rc<Object>,
    lines: &'a Lines,
    text: &'a str,
    component: Span,
}

impl Asked<'_> {
    /// The sites in a part of functions that is in a file in which they do not begin. None: none of them has such a part.
    fn sites_in_part(
        &self,
        debug: &DebugInfo,
        functions: &[FunctionId],
        file: &str,
        resolver: &mut Resolver,
    ) -> Result<Option<Result<Vec<Site>, PointError>>, PointError> {
        const NOT_COUNTED: &str = "+N counts from the line where a function begins, and no function of that name begins in this file: give the line itself, as :N";
        let Asked { lines, text, component, .. } = *self;
        if matches!(lines, Lines::Relative(_)) {
            for id in functions {
                let function = debug.function(*id).map_err(|error| debug_error(error, component))?;
                let statements = debug.statements(*id).map_err(|error| debug_error(error, component))?;
                if in_file(function, statements, file, debug.compiled_in(*id).as_deref()).is_some() {
                    let (name, why) = (text.to_string(), NOT_COUNTED.into());
                    return Ok(Some(Err(PointError::NotProbeable { component, name, why })));
                }
            }
            return Ok(None);
        }
        let found = self.sites(debug, functions, Place::Part(file), resolver);
        Ok(match found {
            Err(PointError::NoMatch { .. }) => None,
            found => Some(found),
        })
    }

    /// The sites of these functions; NoMatch where none of them is in the file.
    fn sites(
        &self,
        debug: &DebugInfo,
        functions: &[FunctionId],
        place: Place,
        resolver: &mut Resolver,
    ) -> Result<Vec<Site>, PointError> {
        let Asked { point, object, lines, text, component } = *self;
        // A program without a place is none of the session's.
        let mut code: Option<Code> = None;
        let mut sites = Vec::new();
        // Of a program: which sites have a statement, and where the function begins that each is of.
        let mut taken: BTreeMap<(Address, String, u32), (usize, u32)> = BTreeMap::new();
        let mut near = Vec::new();
        let mut refused = None;
        let mut found_file = false;
        for &id in functions {
            let function = debug.function(id).map_err(|error| debug_error(error, component))?;
            let statements = debug.statements(id).map_err(|error| debug_error(error, component))?;
            let (function, statements) = match place {
                Place::Begins(function_starts) => {
                    let own = function_starts.own(&function, statements);
                    (function, own)
                }
                Place::Part(file) => match in_file(function, statements, file, debug.compiled_in(id).as_deref()) {
                    Some(found) => found,
                    None => continue,
                },
            };
            found_file = true;
            let wanted = wanted_lines(lines, &function, &statements, point.has("nearest"), &mut near);
            let begun = beginnings_of(object, &statements, &wanted);
            for (line, address) in begun.iter().copied() {
                let alike = begun.iter().filter(|(other, _)| *other == line).count();
                let code = match code {
                    Some(code) => code,
                    None => *code.insert(Code::of(point, object, resolver)?),
                };
                match code.at_statement(object, address) {
                    Ok(attachment) => {
                        let found = site(object, id, &function, (line, alike), address, attachment);
                        let key = (address, last_part(&function.file).to_string(), line);
                        match taken.get_mut(&key).filter(|_| object.is_program()) {
                            None => {
                                taken.insert(key, (sites.len(), function.line));
                                sites.push(found);
                            }
                            // The same of another unit, or what is around it.
                            Some((_, begun)) if *begun >= function.line => {}
                            Some((index, begun)) => {
                                *begun = function.line;
                                sites.get_mut(*index).into_iter().for_each(|site| *site = found.clone());
                            }
                        }
                    }
                    Err(why) => {
                        resolver.skip(&format!("{} ({}:{line})", function.name, function.file), why);
                        refused = Some(why);
                    }
                }
            }
        }
        if !found_file {
            return Err(PointError::NoMatch { component, pattern: text.to_string(), object: described(object) });
        }
        if let Some(why) = refused.filter(|_| sites.is_empty()) {
            return Err(PointError::NotProbeable { component, name: text.to_string(), why: why.into() });
        }
        if sites.is_empty() {
            near.sort_unstable();
            near.dedup();
            if let Some(asked) = line_number(lines) {
                near.sort_by_key(|line| line.abs_diff(asked));
                near.truncate(NEAR);
                near.sort_unstable();
            }
            return Err(PointError::NoLine { component, pattern: text.to_string(), near });
        }
        Ok(sites)
    }
}

/// The function's statements in a file that fits, and the function as if that were its own file; None: it has none.
/// `built_in`: the directory of the compilation, with which the path of the file may be written.
fn in_file(
    function: Function,
    mut statements: Vec<Statement>,
    file: &str,
    built_in: Option<&str>,
) -> Option<(Function, Vec<Statement>)> {
    let file = file.strip_prefix("./").unwrap_or(file);
    let whole = built_in.filter(|_| file.contains('/')).map(|directory| directory.trim_end_matches('/'));
    let fits = |path: &str| {
        path_fits(file, path)
            || !path.starts_with('/') && whole.is_some_and(|whole| path_fits(file, &format!("{whole}/{path}")))
    };
    statements.retain(|statement| fits(&statement.file));
    let file = statements.first()?.file.clone();
    statements.retain(|statement| statement.file == file);
    Some((Function { file, ..function }, statements))
}

/// Where each line begins, in each body and inlined copy of the function: all places where an execution of it begins,
/// without those that cannot be probed if another one can.
fn beginnings_of(object: &Object, statements: &[Statement], wanted: &[u32]) -> Vec<(u32, Address)> {
    let mut places: BTreeMap<(u32, u32), Vec<Address>> = BTreeMap::new();
    let mut before: Option<&Statement> = None;
    let mut following: BTreeSet<Address> = BTreeSet::new();
    for statement in statements {
        if before.is_some_and(|before| (before.line, before.copy) == (statement.line, statement.copy)) {
            following.insert(statement.address);
        }
        before = Some(statement);
        if wanted.contains(&statement.line) {
            places.entry((statement.line, statement.copy)).or_default().push(statement.address);
        }
    }
    let mut all: BTreeSet<(u32, Address)> = BTreeSet::new();
    for ((line, _), mut addresses) in places {
        addresses.dedup();
        if addresses.iter().any(|address| object.reserved(*address).is_none()) {
            addresses.retain(|address| object.reserved(*address).is_none());
        }
        if addresses.len() > 1 {
            // Without the code, adjacent rows of the line table count as one.
            addresses = object.first_reached(&addresses).unwrap_or_else(|| {
                let first = addresses.first().copied();
                addresses.iter().filter(|at| !following.contains(at) || Some(**at) == first).copied().collect()
            });
        }
        all.extend(addresses.into_iter().map(|address| (line, address)));
    }
    all.into_iter().collect()
}

/// `alike`: the number of addresses at which the line is probed.
fn site(
    object: &Rc<Object>,
    id: FunctionId,
    function: &Function,
    (line, alike): (u32, usize),
    address: Address,
    attachment: Attachment,
) -> Site {
    let (name, file) = (&function.name, &function.file);
    let module = if object.is_kernel() { "kernel".to_string() } else { object.name().to_string() };
    let owner = owner_of(object);
    let place = match alike {
        1 => format!("{name} ({file}:{line})"),
        _ => format!(
            "{name} ({file}:{line}), one of the line's {alike} addresses: @defined() is 1 at those that have it"
        ),
    };
    let context = FunctionContext::at(object, id, place, address);
    Site {
        point: format!("{owner}.statement(\"{}@{file}:{line}\")", quoted(name)),
        function: name.clone(),
        module,
        attachment,
        context: Rc::new(context),
    }
}
