// SPDX-License-Identifier: GPL-2.0-or-later

//! The type of a target expression at the probe points of its handler: a struct for its members, a type to show.
//!
//! An incomplete script does not parse, so a smaller one is surveyed as by `--resolve`: the probe with only the
//! expression, or the script up to the expression with all brackets closed.

use std::ops::Range;
use std::rc::Rc;

use spile_core::elaborate;
use spile_core::elaborate::survey::{Survey, survey};
use spile_core::library::LibraryRequest;
use spile_core::probe::TypedLocation;
use spile_debuginfo::target::Object;
use spile_debuginfo::{DebugInfo, Member, Type, TypeId};
use spile_source::{Origin, SourceMap};
use spile_syntax as syntax;
use spile_syntax::words::WordKind;

use crate::scan::{Item, ItemKind, Scan};
use crate::workspace::Workspace;

/// Placeholder for a member that has not been typed yet. No struct has a member of this name.
const PLACEHOLDER: &str = "__spile_member__";
/// Maximum number of nested anonymous structs.
const MAX_NESTING: usize = 16;

/// A struct or union, in the object whose debug information has it.
pub struct Container {
    /// The object.
    pub object: Rc<Object>,
    /// The type in it.
    pub type_id: TypeId,
}

/// The struct that the chain's member would be in; the chain ends with an arrow.
pub fn container(workspace: &Workspace, scan: &Scan, item: &Item, chain: &Range<usize>) -> Option<Container> {
    let text = scan.text().get(chain.clone())?;
    asked(workspace, scan, item, chain, &format!("{text}{PLACEHOLDER}"), |survey| {
        targets(survey).find_map(|target| {
            let member = target.members.iter().find(|member| member.name == PLACEHOLDER)?;
            Some(Container { object: member.object.clone(), type_id: member.container })
        })
    })
}

/// The type of an expression that ends with a member, and the struct that has the member.
pub fn member(
    workspace: &Workspace,
    scan: &Scan,
    item: &Item,
    chain: &Range<usize>,
) -> Option<(TypedLocation, Option<Container>)> {
    let text = scan.text().get(chain.clone())?;
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let wanted = plain(text);
    asked(workspace, scan, item, chain, text, |survey| {
        let mut found = targets(survey).filter(|target| plain(&target.text) == wanted);
        found.find_map(|target| {
            let container = target.members.last();
            let container =
                container.map(|member| Container { object: member.object.clone(), type_id: member.container });
            Some((target.found.as_ref().ok()?.clone(), container))
        })
    })
}

fn targets(survey: &Survey) -> impl Iterator<Item = &elaborate::survey::Target> {
    let sites = survey.points.iter().flat_map(|point| &point.sites).flat_map(|site| &site.targets);
    sites.chain(survey.functions.iter().flat_map(|function| &function.targets))
}

/// Surveys the scripts that have the expression `text` in place of the chain, until one has an answer.
fn asked<T>(
    workspace: &Workspace,
    scan: &Scan,
    item: &Item,
    chain: &Range<usize>,
    text: &str,
    answer: impl Fn(&Survey) -> Option<T>,
) -> Option<T> {
    let header = header(scan, item).unwrap_or("begin");
    // `$file->f_path` depends only on the probe point.
    let alone = text.starts_with(['$', '@']).then(|| {
        let aliases = scan.items.iter().filter(|item| item.kind == ItemKind::Alias && item.closed);
        let aliases: String = aliases.filter_map(|item| scan.text().get(scan.bytes(&item.words))).collect();
        format!("{aliases}\nprobe {header} {{ print({text}) }}\n")
    });
    let scripts = alone.into_iter().chain(until(scan, item, chain, text));
    scripts.into_iter().find_map(|script| surveyed(workspace, &script, &answer))
}

/// The points of a probe or alias.
pub fn header<'s>(scan: &'s Scan, item: &Item) -> Option<&'s str> {
    if !matches!(item.kind, ItemKind::Probe | ItemKind::Alias) || item.header.is_empty() {
        return None;
    }
    let is_definition = |at: &usize| matches!(scan.word(*at), "=" | "+=");
    let definition = item.header.clone().rfind(is_definition).filter(|_| item.kind == ItemKind::Alias);
    let points = definition.map_or(item.header.start, |at| at + 1)..item.header.end;
    scan.text().get(scan.bytes(&points))
}

/// The script with its item ended directly after the expression.
fn until(scan: &Scan, item: &Item, chain: &Range<usize>, text: &str) -> Option<String> {
    let whole = scan.text();
    let start = scan.bytes(&item.words).start;
    let mut open = Vec::new();
    for at in item.words.clone() {
        let Some(word) = scan.words.get(at).filter(|word| word.range.end <= chain.start) else { break };
        if word.kind != WordKind::Operator {
            continue;
        }
        match scan.word(at) {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" => drop(open.pop()),
            _ => {}
        }
    }
    // Printed in its own statement: code without effect would be left out, and the surrounding code may have none.
    let mut closing = String::new();
    let mut printed = format!("; print({text})");
    for bracket in open.iter().rev() {
        if *bracket == "}" {
            closing.push_str(&std::mem::take(&mut printed));
            closing.push_str("; ");
        }
        closing.push_str(bracket);
    }
    let typed = whole.get(start..chain.start)?;
    // An unfinished item could swallow the items after it.
    let others = |is_before: bool| -> String {
        let others = scan.items.iter().filter(|other| other.closed && other.words.start != item.words.start);
        let others = others.filter(|other| (other.words.start < item.words.start) == is_before);
        others.filter_map(|other| whole.get(scan.bytes(&other.words))).map(|text| format!("{text}\n")).collect()
    };
    Some(format!("{}{typed}0{closing}\n{}", others(true), others(false)))
}

fn surveyed<T>(workspace: &Workspace, script: &str, answer: impl Fn(&Survey) -> Option<T>) -> Option<T> {
    let mut sources = SourceMap::new();
    let arguments = workspace.settings.args.clone().unwrap_or_else(|| vec!["1".into(); 16]);
    let environment = workspace.environment(arguments, true);
    let mut problems = Vec::new();
    let macros = workspace.library().macros(&mut sources, &environment, &mut problems).ok()?;
    let file = sources.add("script", script.as_bytes().to_vec(), Origin::User);
    let mut scripts = vec![syntax::parse(&mut sources, file, &environment, &macros).0];
    let request = LibraryRequest { scripts: &scripts, points: &[], all: false };
    let selected = workspace.library().select(&mut sources, &environment, &macros, request, &mut problems);
    scripts.extend(selected.unwrap_or_default());
    let options =
        elaborate::Options { guru: true, offered: workspace.offered().clone(), ..elaborate::Options::default() };
    let mut resolver = workspace.resolver(true);
    let survey = survey(&sources, &scripts, &options, &mut resolver);
    answer(&survey)
}

/// A member as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    /// Its name.
    pub name: String,
    /// C type.
    pub type_name: String,
    /// `offset 16, 8 bytes`.
    pub place: String,
}

/// All members of a struct or union, those of anonymous ones in it included.
pub fn members(container: &Container) -> Vec<MemberInfo> {
    let Ok(debug) = container.object.debug() else { return Vec::new() };
    let mut shown = Vec::new();
    collect(debug, container.type_id, 0, 0, &mut shown);
    shown
}

fn collect(debug: &DebugInfo, id: TypeId, offset: u64, depth: usize, shown: &mut Vec<MemberInfo>) {
    let Ok((_, Type::Struct { members, .. })) = debug.resolve(id) else { return };
    for member in members {
        let at = offset.saturating_add(member.offset);
        match &member.name {
            Some(name) => shown.push(MemberInfo {
                name: name.clone(),
                type_name: debug.type_name(member.type_id),
                place: place(debug, &member, at),
            }),
            None if depth < MAX_NESTING => collect(debug, member.type_id, at, depth + 1, shown),
            None => {}
        }
    }
}

fn place(debug: &DebugInfo, member: &Member, offset: u64) -> String {
    match member.bits {
        Some(bits) => {
            format!("offset {offset}, bits {}-{}", bits.first, bits.first + u64::from(bits.bits).saturating_sub(1))
        }
        None => format!("offset {offset}{}", size(debug, member.type_id)),
    }
}

/// `, 8 bytes`; empty for a type without a size.
pub fn size(debug: &DebugInfo, id: TypeId) -> String {
    match debug.size_of(id) {
        Ok(Some(1)) => ", 1 byte".to_string(),
        Ok(Some(bytes)) => format!(", {bytes} bytes"),
        _ => String::new(),
    }
}

/// C spelling of a struct's name.
pub fn name(container: &Container) -> String {
    container.object.debug().map(|debug| debug.type_name(container.type_id)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_ended_behind_the_expression() {
        let text = "global g\nprobe begin { if (g > 1) { f(a[task->\nprobe end { }";
        let scan = Scan::new(text);
        let start = text.find("task").unwrap();
        let script = until(&scan, &scan.items[1], &(start..start + 6), "task->x").unwrap();
        assert_eq!(script, "global g\nprobe begin { if (g > 1) { f(a[0]); print(task->x); }; }\nprobe end { }\n");
    }

    #[test]
    fn points_of_a_probe() {
        let scan = Scan::new("probe a = b, c if (1) { }\nprobe d.e { }\nfunction f() { }");
        let headers: Vec<Option<&str>> = scan.items.iter().map(|item| header(&scan, item)).collect();
        assert_eq!(headers, [Some("b, c if (1)"), Some("d.e"), None]);
    }
}
