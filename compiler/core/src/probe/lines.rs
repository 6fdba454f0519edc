// SPDX-License-Identifier: GPL-2.0-or-later

//! The argument of `function("...")` and `statement("...")`: functions by name and file, and lines in them.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use spile_debuginfo::{
    self as debuginfo, DebugInfo, Function, FunctionId, FunctionPattern, Statement, without_arguments,
};

/// Which lines of a function are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// None given: the function's first.
    First,
    All,
    /// Relative to the function's line.
    Relative(u32),
    /// Ranges, inclusive.
    Some(Vec<(u32, u32)>),
}

/// `FUNCTION[@FILE[:LINE | +LINES | :* | :A-B | :A,B,...]]`.
pub(super) fn parse(text: &str) -> Option<(FunctionPattern, Lines)> {
    let pattern =
        |name: &str, file: Option<&str>| FunctionPattern { name: name.to_string(), file: file.map(str::to_string) };
    let Some((name, rest)) = text.split_once('@') else {
        return Some((pattern(text, None), Lines::First));
    };
    // Both may be in the name of a file, too: `c++/x.c`.
    let is_of_name = |at: &usize| {
        let after = rest.get(*at..).unwrap_or_default();
        after.contains(['/', '.']) || after.strip_prefix('+').is_some_and(|number| number.parse::<u32>().is_err())
    };
    let Some(at) = rest.rfind([':', '+']).filter(|at| !is_of_name(at)) else {
        return Some((pattern(name, Some(rest)), Lines::First));
    };
    let (file, lines) = (rest.get(..at)?, rest.get(at + 1..)?);
    let lines = match (rest.as_bytes().get(at), lines) {
        (Some(b'+'), lines) => Lines::Relative(lines.parse().ok()?),
        (_, "*") => Lines::All,
        (_, lines) => {
            let range = |part: &str| match part.split_once('-') {
                None => part.parse().ok().map(|line| (line, line)),
                Some((low, high)) => Some((low.parse().ok()?, high.parse().ok()?)),
            };
            Lines::Some(lines.split(',').map(range).collect::<Option<Vec<(u32, u32)>>>()?)
        }
    };
    Some((pattern(name, Some(file)), lines))
}

/// Where the functions of files begin, to distinguish a function's own lines from those of code inlined into it.
pub(super) struct FunctionStarts {
    /// By file, sorted by line.
    starts: BTreeMap<String, Vec<Start>>,
    /// Where functions of a file, line and name end: a template has an instance in each of many classes.
    ends: RefCell<HashMap<(String, u32, String), u32>>,
}

/// Where one begins.
struct Start {
    line: u32,
    /// With namespaces, types and functions around it: `outer::Local::method`.
    name: String,
}

impl FunctionStarts {
    /// Of the functions in the files that the pattern names; empty if it names no file.
    pub(super) fn new(debug: &DebugInfo, pattern: &FunctionPattern) -> Result<FunctionStarts, debuginfo::Error> {
        let mut starts: BTreeMap<String, Vec<Start>> = BTreeMap::new();
        if pattern.file.is_some() {
            let mut scopes: (String, HashMap<FunctionId, String>) = Default::default();
            for id in debug.find_functions(&FunctionPattern { name: "*".into(), file: pattern.file.clone() })? {
                let Function { name, file, line, .. } = debug.function(id)?;
                // They come sorted by name.
                if scopes.0 != name {
                    scopes = (name.clone(), debug.scopes(&name)?.into_iter().collect());
                }
                let scope = scopes.1.get(&id).map_or("", String::as_str);
                let name = if scope.is_empty() { name } else { [scope, "::", &name].concat() };
                starts.entry(file).or_default().push(Start { line, name });
            }
        }
        Ok(FunctionStarts::of(starts))
    }

    fn of(mut starts: BTreeMap<String, Vec<Start>>) -> FunctionStarts {
        starts.values_mut().for_each(|all| all.sort_by_key(|start| start.line));
        FunctionStarts { starts, ends: RefCell::default() }
    }

    /// The statements from a function's line to where the next one begins.
    pub(super) fn own(&self, function: &Function, mut statements: Vec<Statement>) -> Vec<Statement> {
        let own = self.lines_of(function);
        statements.retain(|statement| statement.file == function.file && own.contains(&statement.line));
        statements
    }

    /// From the function's own line to where the next one of its file begins that is not in it, as lambdas are, methods of local
    /// classes, closures, and nested functions of gcc's.
    pub(super) fn lines_of(&self, function: &Function) -> std::ops::Range<u32> {
        let key = (function.file.clone(), function.line, function.name.clone());
        let end = *self.ends.borrow_mut().entry(key).or_insert_with(|| self.end_of(function));
        function.line..end
    }

    fn end_of(&self, function: &Function) -> u32 {
        let all = self.starts.get(&function.file).map_or(&[][..], Vec::as_slice);
        let [first, behind] = [function.line, function.line.saturating_add(1)]
            .map(|line| all.partition_point(|start| start.line < line).min(all.len()));
        let (here, later) = (all.get(first..behind).unwrap_or_default(), all.get(behind..).unwrap_or_default());
        let own: HashSet<String> = here
            .iter()
            .filter(|start| is_called(&start.name, &function.name))
            .flat_map(|start| names_in_scopes(&start.name))
            .collect();
        let is_within = |start: &Start| {
            let name = in_scopes(&start.name);
            name.match_indices("::").any(|(at, _)| name.get(..at).is_some_and(|around| own.contains(around)))
        };
        later.iter().find(|start| !is_within(start)).map_or(u32::MAX, |start| start.line)
    }
}

/// What rustc has in the scopes of what is in a function of an `impl`, for the type. The number is that of the `impl` in its module.
const IMPLEMENTATION: &str = "{impl#";

/// A name as the scopes of what is in that function have it: compilers spell template arguments there in other ways, or leave them out.
fn in_scopes(name: &str) -> String {
    let name = without_arguments(name);
    let parts = name.split("::").map(|part| if part.starts_with(IMPLEMENTATION) { IMPLEMENTATION } else { part });
    parts.collect::<Vec<&str>>().join("::")
}

/// The same, and in place of the type what rustc has.
fn names_in_scopes(name: &str) -> Vec<String> {
    let name = in_scopes(name);
    let of_type = name.rsplit_once("::").map(|(around, last)| {
        let outer = around.rsplit_once("::").map_or(String::new(), |(outer, _)| format!("{outer}::"));
        format!("{outer}{IMPLEMENTATION}::{last}")
    });
    std::iter::once(name.clone()).chain(of_type).collect()
}

/// Whether the qualified name ends with that one.
fn is_called(qualified: &str, name: &str) -> bool {
    qualified.strip_suffix(name).is_some_and(|scope| scope.is_empty() || scope.ends_with("::"))
}

/// The requested line, if there is one: nearby lines are relative to it.
pub(super) fn line_number(lines: &Lines) -> Option<u32> {
    match lines {
        Lines::Some(ranges) => ranges.first().map(|range| range.0),
        _ => None,
    }
}

/// Whether the function's text, from its own line to its last statement, contains one of the lines.
pub(super) fn covers(lines: &Lines, function: &Function, statements: &[Statement]) -> bool {
    let last = statements.iter().map(|statement| statement.line).max().unwrap_or(function.line);
    match lines {
        Lines::First | Lines::All => true,
        Lines::Relative(more) => function.line.saturating_add(*more) <= last,
        Lines::Some(ranges) => ranges.iter().any(|&(low, high)| low <= last && high >= function.line),
    }
}

/// The selected lines of one function that have code. If one line is requested that has none, the neighbouring lines that
/// do go into `near`, and with `nearest` the closest is taken.
pub(super) fn wanted_lines(
    lines: &Lines,
    function: &Function,
    statements: &[Statement],
    nearest: bool,
    near: &mut Vec<u32>,
) -> Vec<u32> {
    let mut there: Vec<u32> = statements.iter().map(|statement| statement.line).collect();
    there.sort_unstable();
    there.dedup();
    let one = |line: u32, near: &mut Vec<u32>| {
        if there.binary_search(&line).is_ok() {
            return vec![line];
        }
        let below = there.iter().rev().find(|other| **other < line).copied();
        let above = there.iter().find(|other| **other > line).copied();
        near.extend(below.into_iter().chain(above));
        let closest = below.into_iter().chain(above).min_by_key(|other| other.abs_diff(line));
        if nearest { closest.into_iter().collect() } else { Vec::new() }
    };
    match lines {
        Lines::All => there,
        Lines::First => statements.first().map(|statement| statement.line).into_iter().collect(),
        Lines::Relative(more) => one(function.line.saturating_add(*more), near),
        Lines::Some(ranges) => {
            let mut wanted = Vec::new();
            for &(low, high) in ranges {
                match low == high {
                    true => wanted.extend(one(low, near)),
                    false => wanted.extend(there.iter().filter(|line| (low..=high).contains(line))),
                }
            }
            wanted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_functions_around_others() {
        let start = |line, name: &str| Start { line, name: name.into() };
        let starts =
            [start(3, "ns::f"), start(5, "ns::f::{lambda#1}::operator()"), start(9, "ns::f::In::g"), start(12, "h")];
        let others = [
            start(20, "ns::Ring<long int, 4>::push"),
            start(21, "ns::Ring<long, 4>::push::{lambda(long)#1}::operator()"),
            start(30, "r::gen<u8>"),
            start(31, "r::gen::{closure#0}"),
            start(40, "r::S::m"),
            start(41, "r::{impl#0}::m::{closure#0}"),
            start(50, "r::T::m"),
            start(51, "r::{impl#1}::m::{closure#0}"),
        ];
        let starts = starts.into_iter().chain(others).collect::<Vec<Start>>();
        let starts = FunctionStarts::of([("a.cc".to_string(), starts)].into());
        let lines_of = |line, name: &str| {
            starts.lines_of(&Function {
                name: name.into(),
                file: "a.cc".into(),
                line,
                external: true,
                return_type: None,
                bodies: Vec::new(),
                inlined: Vec::new(),
            })
        };
        assert_eq!(lines_of(3, "f"), 3..12);
        assert_eq!(lines_of(5, "operator()"), 5..9);
        assert_eq!(lines_of(12, "h"), 12..20);
        assert_eq!((lines_of(20, "push"), lines_of(30, "gen<u8>")), (20..30, 30..40));
        assert_eq!((lines_of(40, "m"), lines_of(50, "m")), (40..50, 50..u32::MAX));
    }

    #[test]
    fn places() {
        let parsed = |text| parse(text).map(|(pattern, lines)| (pattern.name, pattern.file, lines));
        let file = || Some("fs/a.c".to_string());
        assert_eq!(parsed("f"), Some(("f".into(), None, Lines::First)));
        assert_eq!(parsed("f@fs/a.c"), Some(("f".into(), file(), Lines::First)));
        assert_eq!(parsed("f@fs/a.c:*"), Some(("f".into(), file(), Lines::All)));
        assert_eq!(parsed("*@fs/a.c:12"), Some(("*".into(), file(), Lines::Some(vec![(12, 12)]))));
        assert_eq!(parsed("f@fs/a.c:1,5-7"), Some(("f".into(), file(), Lines::Some(vec![(1, 1), (5, 7)]))));
        assert_eq!(parsed("f@fs/a.c+3"), Some(("f".into(), file(), Lines::Relative(3))));
        let named = |file: &str, lines| Some(("f".into(), Some(file.into()), lines));
        assert_eq!(parsed("f@c++/12/a.c"), named("c++/12/a.c", Lines::First));
        assert_eq!(parsed("f@c++/a:b.c:7"), named("c++/a:b.c", Lines::Some(vec![(7, 7)])));
        assert_eq!(parsed("f@a.c++"), named("a.c++", Lines::First));
        assert_eq!(parsed("f@a.c+++3"), named("a.c++", Lines::Relative(3)));
        assert_eq!(parsed("f@fs/a.c:x"), None);
        assert_eq!(parsed("f@fs/a.c:"), None);
    }
}
