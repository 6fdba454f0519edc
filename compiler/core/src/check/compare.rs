// SPDX-License-Identifier: GPL-2.0-or-later

//! Compares two surveys of one script.

use std::collections::BTreeMap;

use super::types::{Typed, is_same, other_layout};
use super::{Item, Kind, Outcome, Report, Verdict, rename};
use crate::elaborate::survey::{Point, Survey, Surveyed, Target};
use crate::probe::CodePlace;
use crate::program::Registers;
use spile_debuginfo::target::Kernel;
use spile_debuginfo::{DebugInfo, Function, FunctionPattern};
use spile_source::SourceMap;
use spile_source::diagnostic::Diagnostic;

/// Most names that a message lists.
const NAMED: usize = 6;

/// A kernel and the survey of the script on it.
pub struct Subject {
    /// As on the command line.
    pub name: String,
    /// Answers queries about it.
    pub kernel: Kernel,
    /// The survey: the script's probe points and variables, and how the kernel has them.
    pub survey: Survey,
}

/// Compares each kernel with the first; empty if there is no kernel.
pub fn compare(sources: &SourceMap, kernels: &[Subject]) -> Report {
    let names = kernels.iter().map(|kernel| kernel.name.clone()).collect();
    let Some((first, others)) = kernels.split_first() else {
        return Report { kernels: names, items: Vec::new(), well: true };
    };
    let mut items = Vec::new();
    for point in &first.survey.points {
        let place = sources.place(point.span);
        let same: Vec<Option<&Point>> = others.iter().map(|other| find(&other.survey, sources, point)).collect();
        let pairs = same.iter().zip(others);
        let outcomes = pairs.map(|(other, subject)| match other {
            Some(other) => compare_points(point, other, &subject.kernel),
            None => not_asked(),
        });
        let outcomes: Vec<Outcome> = outcomes.collect();
        let unknown: Vec<bool> = outcomes.iter().map(|outcome| outcome.verdict == Verdict::Unknown).collect();
        let first = described(point);
        items.push(Item { kind: Kind::Probe, text: point.text.clone(), place, within: String::new(), first, outcomes });
        let sites: Vec<&Surveyed> = point.sites.iter().collect();
        let others: Vec<Vec<&Surveyed>> =
            same.iter().map(|other| other.iter().flat_map(|point| &point.sites).collect()).collect();
        variables(
            sources,
            &point.text,
            point.optional,
            &sites,
            &others.into_iter().zip(unknown).collect::<Vec<_>>(),
            &mut items,
        );
    }
    for function in &first.survey.functions {
        let others: Vec<Vec<&Target>> = others.iter().map(|other| targets_of(&other.survey, &function.name)).collect();
        for target in &function.targets {
            let of = |targets: &Vec<&Target>| -> Outcome {
                match targets.iter().find(|other| other.text == target.text) {
                    Some(other) => compare_targets(&[(target, None)], &[(other, None)]),
                    None => not_asked(),
                }
            };
            items.push(Item {
                kind: Kind::Variable,
                text: target.text.clone(),
                place: sources.place(target.span),
                within: format!("function {}", function.name),
                first: type_of(target),
                outcomes: others.iter().map(of).collect(),
            });
        }
    }
    let well = items.iter().flat_map(|item| &item.outcomes).all(|outcome| outcome.well);
    Report { kernels: names, items, well }
}

/// The same point in the other survey, which may lack it because of conditionals.
fn find<'s>(survey: &'s Survey, sources: &SourceMap, point: &Point) -> Option<&'s Point> {
    let place = sources.place(point.span);
    survey.points.iter().find(|other| other.text == point.text && sources.place(other.span) == place)
}

/// The target expressions of a function of the script.
fn targets_of<'s>(survey: &'s Survey, name: &str) -> Vec<&'s Target> {
    survey.functions.iter().filter(|function| function.name == name).flat_map(|function| &function.targets).collect()
}

fn not_asked() -> Outcome {
    Outcome::new(Verdict::Same, "the script leaves it out there")
}

/// What identifies corresponding sites.
fn key(surveyed: &Surveyed) -> String {
    let site = &surveyed.site;
    match site.attachment.mechanism.registers {
        Registers::Arguments => format!("tracepoint {}", site.attachment.subject),
        _ if !site.function.is_empty() => site.function.clone(),
        _ => site.point.clone(),
    }
}

fn grouped<'s>(sites: impl Iterator<Item = &'s Surveyed>) -> BTreeMap<String, Vec<&'s Surveyed>> {
    let mut groups: BTreeMap<String, Vec<&Surveyed>> = BTreeMap::new();
    for site in sites {
        groups.entry(key(site)).or_default().push(site);
    }
    groups
}

/// The point on the first kernel, in words.
fn described(point: &Point) -> String {
    let groups = grouped(point.sites.iter());
    match groups.len() {
        0 if is_without_command(point) => "not known without -c or -x".to_string(),
        0 => point
            .problems
            .first()
            .map_or_else(|| "not looked at".to_string(), |problem| format!("not there: {}", problem.message)),
        1 => groups.into_values().next().map(|sites| shape(&sites)).unwrap_or_default(),
        count => format!("{count} functions"),
    }
}

/// A point of the session's own process, of which nothing is known: it does not depend on the kernel.
fn is_without_command(point: &Point) -> bool {
    point.sites.is_empty() && point.problems.first().is_some_and(|problem| problem.code.0 == "E0213")
}

/// Where one function is available: `fs/read_write.c:450, 3 inlined copies`.
fn shape(sites: &[&Surveyed]) -> String {
    let Some((code, function)) = sites.iter().find_map(|site| located(site)) else {
        return sites.first().map(|site| site.site.point.clone()).unwrap_or_default();
    };
    let place = if function.file.is_empty() {
        code.object.name().to_string()
    } else {
        format!("{}:{}", function.file, function.line)
    };
    match (bodies(sites), sites.len()) {
        (0, count) => format!("{place}, inlined, {count} sites"),
        (1, 1) => place,
        (_, count) => format!("{place}, {count} sites"),
    }
}

fn located(surveyed: &Surveyed) -> Option<(CodePlace, Function)> {
    let code = surveyed.site.context.code()?;
    let function = code.object.debug().ok()?.function(code.function).ok()?;
    Some((code, function))
}

/// The function of the first site.
fn first_located(sites: &[&Surveyed]) -> Option<(CodePlace, Function)> {
    located(sites.first()?)
}

/// How many of the sites are in out-of-line code.
fn bodies(sites: &[&Surveyed]) -> usize {
    let called = |surveyed: &&&Surveyed| {
        let Some((code, function)) = located(surveyed) else { return true };
        !function.inlined.iter().any(|instance| instance.address == code.address)
    };
    sites.iter().filter(called).count()
}

fn compare_points(first: &Point, second: &Point, kernel: &Kernel) -> Outcome {
    let outcome = compare_sites(first, second, kernel);
    match second.optional || first.optional {
        true => Outcome { well: true, ..outcome },
        false => outcome,
    }
}

fn compare_sites(first: &Point, second: &Point, kernel: &Kernel) -> Outcome {
    let (old, new) = (grouped(first.sites.iter()), grouped(second.sites.iter()));
    if old.is_empty() {
        return match new.is_empty() {
            true if is_without_command(second) => Outcome::new(Verdict::Unknown, "needs -c or -x"),
            true if first.problems.is_empty() => Outcome::new(Verdict::Same, "not looked at"),
            true => Outcome::new(Verdict::Gone, "on neither kernel"),
            false => Outcome::new(Verdict::New, counted(new.len(), "function")),
        };
    }
    let mut each: Vec<(String, Outcome)> = Vec::new();
    for (name, sites) in &old {
        let outcome = match new.get(name) {
            Some(others) => compare_function(first, sites, others),
            None => missing(first, name, sites, second, kernel),
        };
        each.push((name.clone(), outcome));
    }
    if let [(_, outcome)] = each.as_slice() {
        return outcome.clone();
    }
    summary(each, new.keys().filter(|name| !old.contains_key(*name)).count())
}

/// For a point with several functions.
fn summary(each: Vec<(String, Outcome)>, added: usize) -> Outcome {
    let worst = each.iter().map(|(_, outcome)| outcome.verdict).max().unwrap_or(Verdict::Same);
    let well = each.iter().all(|(_, outcome)| outcome.well);
    let differ: Vec<&(String, Outcome)> = each.iter().filter(|(_, outcome)| outcome.verdict != Verdict::Same).collect();
    let mut parts = Vec::new();
    let mut verdicts: Vec<Verdict> = differ.iter().map(|(_, outcome)| outcome.verdict).collect();
    verdicts.sort();
    verdicts.dedup();
    for verdict in verdicts.into_iter().rev() {
        let of: Vec<&&(String, Outcome)> = differ.iter().filter(|(_, outcome)| outcome.verdict == verdict).collect();
        let name = |(name, outcome): &(String, Outcome)| match &outcome.to {
            Some(to) => format!("{name} -> {to}"),
            None => name.clone(),
        };
        let mut names: Vec<String> = of.iter().take(NAMED).map(|item| name(item)).collect();
        if of.len() > NAMED {
            names.push("...".into());
        }
        parts.push(format!("{} of {} {}: {}", of.len(), each.len(), verdict.text(), names.join(", ")));
    }
    if parts.is_empty() {
        parts.push(counted(each.len(), "function"));
    }
    if added > 0 {
        parts.push(format!("{} more than before", counted(added, "function")));
    }
    let functions = differ.iter().map(|(name, outcome)| (name.clone(), outcome.verdict)).collect();
    Outcome { verdict: worst, detail: parts.join("; "), to: None, well, functions }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A function that both kernels have.
fn compare_function(point: &Point, old: &[&Surveyed], new: &[&Surveyed]) -> Outcome {
    if bodies(old) > 0 && bodies(new) == 0 {
        return Outcome::new(Verdict::Inlined, format!("{}; was {}", shape(new), shape(old)));
    }
    let (Some((_, one)), Some((_, other))) = (first_located(old), first_located(new)) else {
        return Outcome::new(Verdict::Same, "");
    };
    let place = |function: &Function| format!("{}:{}", function.file, function.line);
    let (from, to) = (place(&one), place(&other));
    if is_statement(point) && relative_lines(old, &one) != relative_lines(new, &other) {
        return statement_moved(old, &one, &other);
    }
    if one.file != other.file && !other.file.is_empty() {
        return Outcome::new(Verdict::Moved, format!("{from} -> {to}")).to(to);
    }
    let detail = if from == to || other.file.is_empty() {
        String::new()
    } else {
        format!("now line {}, was {}", other.line, one.line)
    };
    Outcome::new(Verdict::Same, detail)
}

fn is_statement(point: &Point) -> bool {
    point.text.contains(".statement(\"")
}

/// The lines of a function with probed statements, relative to its first.
fn relative_lines(sites: &[&Surveyed], function: &Function) -> Vec<i64> {
    let mut lines: Vec<i64> =
        sites.iter().filter_map(|site| line(&site.site.point)).map(|line| line - i64::from(function.line)).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// A line number in a script means a place in a function: after the function has moved, it is another place.
fn statement_moved(old: &[&Surveyed], one: &Function, other: &Function) -> Outcome {
    let meant: Vec<String> = relative_lines(old, one)
        .into_iter()
        .take(NAMED)
        .map(|line| (line + i64::from(other.line)).to_string())
        .collect();
    let meant = meant.join(",");
    let detail = format!(
        "{} begins at {}:{}, was {}:{}: as far from its beginning as the script means is line {meant}",
        one.name, other.file, other.line, one.file, one.line
    );
    Outcome::new(Verdict::Moved, detail).to(format!("{}:{meant}", other.file)).degraded()
}

/// The line in a canonical spelling: `kernel.statement("f@fs/x.c:12")`.
fn line(point: &str) -> Option<i64> {
    let (before, _) = point.rsplit_once("\")")?;
    before.rsplit_once(':')?.1.parse().ok()
}

/// Why something is not known about a kernel.
const NO_DWARF: &str =
    "no debug information there: BTF does not describe inlined functions, .isra parts, lines or local variables";

/// Whether that is why the point lacks this function: BTF does not list it, so it may be inlined, or BTF lists it, but not
/// the place in it.
fn without_dwarf(new: &DebugInfo, name: &str, problems: &[Diagnostic]) -> bool {
    let listed =
        new.find_functions(&FunctionPattern { name: name.into(), file: None }).is_ok_and(|found| !found.is_empty());
    !listed || problems.iter().any(|problem| problem.code.0 == "E0207")
}

/// A function that the first kernel's point has and the second's has not.
fn missing(first: &Point, name: &str, sites: &[&Surveyed], second: &Point, kernel: &Kernel) -> Outcome {
    let why = second.problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
    let gone = Outcome::new(Verdict::Gone, why);
    let Some((code, function)) = first_located(sites) else { return gone };
    let other = if code.object.is_kernel() { kernel.vmlinux() } else { kernel.module(code.object.name()) };
    let Ok(other) = other else { return gone };
    let (Ok(old), Ok(new)) = (code.object.debug(), other.debug()) else { return gone };
    if new.is_btf() && !old.is_btf() && without_dwarf(new, name, &second.problems) {
        return Outcome::new(Verdict::Unknown, NO_DWARF);
    }
    let there = new.find_functions(&FunctionPattern { name: name.into(), file: None }).unwrap_or_default();
    let there: Vec<Function> = there.into_iter().filter_map(|id| new.function(id).ok()).collect();
    if let Some(other) = there.iter().find(|other| !other.bodies.is_empty()) {
        if is_statement(first) {
            return statement_moved(sites, &function, other);
        }
        let to = format!("{}:{}", other.file, other.line);
        let detail = format!("{}:{} -> {to}, which `{}` does not name", function.file, function.line, first.text);
        return Outcome::new(Verdict::Moved, detail).to(to).degraded();
    }
    let copies: usize = there.iter().map(|other| other.inlined.len()).sum();
    if copies > 0 {
        return Outcome::new(
            Verdict::Inlined,
            format!("only its {} left", counted(copies, "inlined copy").replace("copys", "copies")),
        )
        .degraded();
    }
    match rename::function(old, code.function, new) {
        Some(found) => {
            let detail = format!("{name} -> {} ({}:{})", found.name, found.file, found.line);
            Outcome::new(Verdict::Renamed, detail).to(found.name)
        }
        None => gone,
    }
}

/// The target expressions of one point, by their text.
fn variables(
    sources: &SourceMap,
    point: &str,
    optional: bool,
    sites: &[&Surveyed],
    others: &[(Vec<&Surveyed>, bool)],
    items: &mut Vec<Item>,
) {
    let mut seen: Vec<&str> = Vec::new();
    for target in sites.iter().flat_map(|site| &site.targets) {
        if seen.contains(&target.text.as_str()) {
            continue;
        }
        seen.push(&target.text);
        let old = uses(sites.iter().copied(), &target.text);
        let of = |(others, unknown): &(Vec<&Surveyed>, bool)| {
            let new = uses(others.iter().copied(), &target.text);
            if new.is_empty() && !others.is_empty() {
                return not_asked();
            }
            let outcome = compare_by_function(&old, &new, *unknown);
            if optional && others.is_empty() { Outcome { well: true, ..outcome } } else { outcome }
        };
        items.push(Item {
            kind: Kind::Variable,
            text: target.text.clone(),
            place: sources.place(target.span),
            within: point.to_string(),
            first: old
                .values()
                .flatten()
                .find(|(target, _)| target.found.is_ok())
                .map_or_else(|| type_of(target), |(target, _)| type_of(target)),
            outcomes: others.iter().map(of).collect(),
        });
    }
}

type Use<'s> = (&'s Target, Option<CodePlace>);

fn uses<'s>(sites: impl Iterator<Item = &'s Surveyed>, text: &str) -> BTreeMap<String, Vec<Use<'s>>> {
    let mut uses: BTreeMap<String, Vec<Use>> = BTreeMap::new();
    for site in sites {
        for target in site.targets.iter().filter(|target| target.text == text) {
            uses.entry(key(site)).or_default().push((target, site.site.context.code()));
        }
    }
    uses
}

/// `unknown`: it is not known whether the point exists there.
fn compare_by_function(old: &BTreeMap<String, Vec<Use>>, new: &BTreeMap<String, Vec<Use>>, unknown: bool) -> Outcome {
    let both: Vec<(String, Outcome)> =
        old.iter().filter_map(|(name, old)| Some((name.clone(), compare_targets(old, new.get(name)?)))).collect();
    match both.as_slice() {
        [] if unknown => Outcome::new(Verdict::Unknown, "its probe point is not known"),
        [] => Outcome::new(Verdict::Gone, "its probe point is not there"),
        [(_, outcome)] => outcome.clone(),
        _ => summary(both, 0),
    }
}

fn compare_targets(old: &[Use], new: &[Use]) -> Outcome {
    fn there<'u, 's>(uses: &'u [Use<'s>]) -> Option<&'u Use<'s>> {
        uses.iter().find(|(target, _)| target.found.is_ok())
    }
    let (one, other) = match (there(old), there(new), new.first()) {
        (Some(one), Some(other), _) => (one, other),
        (None, Some(_), Some(first)) => return Outcome::new(Verdict::New, type_of(first.0)),
        (Some(one), None, Some(first)) => return absent(one, first),
        _ => return Outcome::new(Verdict::Gone, "on neither kernel"),
    };
    let (Ok(found), Ok(now)) = (&one.0.found, &other.0.found) else { return Outcome::new(Verdict::Same, "") };
    let (Ok(first), Ok(second)) = (found.object.debug(), now.object.debug()) else {
        return Outcome::new(Verdict::Same, "");
    };
    let (before, after) = (Typed { debug: first, id: found.type_id }, Typed { debug: second, id: now.type_id });
    let (from, to) = (before.name(), after.name());
    if !is_same(before, after) {
        return Outcome::new(Verdict::TypeChanged, format!("{from} -> {to}")).to(to);
    }
    let whole = one.0.dollars > 0 || other.0.dollars > 0;
    if let Some(difference) = whole.then(|| other_layout(before, after, one.0.dollars > 1)).flatten() {
        return Outcome::new(Verdict::Changed, difference);
    }
    let lost = new.iter().filter(|(target, _)| target.found.is_err()).count();
    let had = old.iter().filter(|(target, _)| target.found.is_err()).count();
    if lost > 0 && had == 0 {
        return Outcome::new(Verdict::Gone, format!("at {lost} of {} sites: {}", new.len(), why(new)));
    }
    Outcome::new(Verdict::Same, if from == to { String::new() } else { format!("spelled {to}, was {from}") })
}

fn why(uses: &[Use]) -> String {
    let problem = uses.iter().find_map(|(target, _)| target.found.as_ref().err());
    problem.map(|problem| problem.message.clone()).unwrap_or_default()
}

/// A target that is missing on the second kernel, possibly renamed.
fn absent((old, code): &Use, (new, now): &Use) -> Outcome {
    let why = new.found.as_ref().err().map(|problem| {
        let notes = problem
            .notes
            .iter()
            .chain(problem.labels.iter().map(|label| &label.message))
            .find(|note| note.contains("optimised out"));
        notes.map_or_else(|| problem.message.clone(), |note| format!("{}: {note}", problem.message))
    });
    let renamed = member_renamed(old, new).or_else(|| {
        let (code, now) = (code.as_ref()?, now.as_ref()?);
        let root = old.text.strip_prefix('$')?;
        let name = root.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        let in_scope = |debug: &DebugInfo| {
            debug.parameters(now.function).is_ok_and(|all| all.iter().any(|variable| variable.name == name))
        };
        let (first, second) = (code.object.debug().ok()?, now.object.debug().ok()?);
        if in_scope(second) {
            return None;
        }
        let found = rename::parameter((first, code.function), name, (second, now.function))?;
        Some((format!("${name}"), format!("${found}")))
    });
    match renamed {
        Some((from, to)) => Outcome::new(Verdict::Renamed, format!("{from} -> {to}")).to(to),
        None if local_unknown(old, code.as_ref(), now.as_ref()) => Outcome::new(Verdict::Unknown, NO_DWARF),
        None => Outcome::new(Verdict::Gone, why.unwrap_or_default()),
    }
}

/// Whether it is a local variable, on a kernel where only arguments are known.
fn local_unknown(old: &Target, code: Option<&CodePlace>, now: Option<&CodePlace>) -> bool {
    let Some(root) = old.text.strip_prefix('$') else { return false };
    let name = root.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    let (Some(code), Some(now)) = (code, now) else { return false };
    let (Ok(first), Ok(second)) = (code.object.debug(), now.object.debug()) else { return false };
    let argument = first.parameters(code.function).is_ok_and(|all| all.iter().any(|variable| variable.name == name));
    second.is_btf() && !first.is_btf() && !argument && name != "return"
}

fn member_renamed(old: &Target, new: &Target) -> Option<(String, String)> {
    let missing = |member: &&crate::elaborate::survey::Member| {
        member.object.debug().is_ok_and(|debug| debug.member(member.container, &member.name).is_err())
    };
    let at = new.members.iter().position(|member| missing(&member))?;
    let (one, other) = (old.members.get(at)?, new.members.get(at)?);
    let (first, second) = (one.object.debug().ok()?, other.object.debug().ok()?);
    let found = rename::member(
        Typed { debug: first, id: one.container },
        &one.name,
        Typed { debug: second, id: other.container },
    )?;
    let container = second.type_name(other.container);
    Some((format!("{container}.{}", one.name), found))
}

fn type_of(target: &Target) -> String {
    match &target.found {
        Ok(found) => found.object.debug().map(|debug| debug.type_name(found.type_id)).unwrap_or_default(),
        Err(problem) => format!("not there: {}", problem.message),
    }
}
