// SPDX-License-Identifier: GPL-2.0-or-later

//! Describes a word, as Markdown.

use std::ops::Range;

use spile_core::probe::ContextError;
use spile_core::program::Contents;
use spile_core::{builtin, elaborate, inspect, library};
use spile_syntax::words::WordKind;

use crate::check::Checked;
use crate::complete::points;
use crate::context::{self, Component};
use crate::language;
use crate::members::{self, header};
use crate::scan::{Item, ItemKind, Role, Scan, Symbol};
use crate::workspace::Workspace;

/// Maximum number of listed places.
const MAX_PLACES: usize = 8;

/// The data from which a hover request is answered.
pub struct Query<'q> {
    /// The kernel and the library.
    pub workspace: &'q Workspace,
    /// The script.
    pub scan: &'q Scan,
    /// The results of its check.
    pub checked: Option<&'q Checked>,
}

/// Describes the word at the offset; with its bytes.
pub fn hover(query: &Query, offset: usize) -> Option<(String, Range<usize>)> {
    let scan = query.scan;
    if scan.in_comment(offset) {
        return None;
    }
    let index = scan.word_at(offset)?;
    let item = scan.item_of(index).and_then(|owner| scan.items.get(owner));
    let text = match scan.kind(index)? {
        WordKind::Target => target(query, item?, scan.word(index))?,
        WordKind::String => argument(query, item?, index)?,
        WordKind::Keyword if scan.role(index) == Role::Other => entry(scan.word(index))?,
        _ => match scan.role(index) {
            Role::Member => member(query, item?, index)?,
            Role::Component => component(query, item?, index)?,
            Role::Symbol(symbol) => named(query, &symbol)?,
            Role::Other => entry(scan.word(index))?,
        },
    };
    Some((text, scan.words.get(index)?.range.clone()))
}

fn code(language: &str, text: &str) -> String {
    format!("```{language}\n{text}\n```\n")
}

fn entry(word: &str) -> Option<String> {
    let entry = language::find(word)?;
    let example = language::example(word).map(shown_example).unwrap_or_default();
    Some(format!("{}\n{}\n{example}", code("systemtap", entry.usage), entry.doc))
}

fn shown_example(body: &str) -> String {
    format!("\nExample:\n\n{}", code("systemtap", body))
}

/// Documentation of a function by its name, as calls of it are completed too.
pub fn function(query: &Query, name: &str) -> Option<String> {
    let mut text = String::new();
    let own = query.scan.items.iter().filter(|item| item.kind == ItemKind::Function);
    for item in own.filter(|item| item.names.first().is_some_and(|at| query.scan.word(*at) == name)) {
        let range = query.scan.bytes(&(item.words.start..item.body.start));
        let start = range.start;
        text.push_str(&code("systemtap", query.scan.text().get(range).unwrap_or_default().trim()));
        text.push_str(&library::comment(query.scan.text(), start));
        let calls = query.scan.occurrences(&Symbol::Function(name.into())).len().saturating_sub(1);
        text.push_str(&format!("\n\nCalled at {calls} place{} of this script.\n", if calls == 1 { "" } else { "s" }));
    }
    if !text.is_empty() {
        return Some(text);
    }
    for found in query.workspace.functions(name) {
        text.push_str(&format!("{}\n{}\n\n", code("systemtap", &library::signature(found.function)), found.doc));
    }
    for builtin in builtin::offered().filter(|builtin| builtin.name == name) {
        text.push_str(&format!("{}\n{}\n\n", code("systemtap", &builtin.signature()), builtin.doc));
        if builtin.guru {
            text.push_str("Only in guru mode (`-g`).\n\n");
        }
    }
    if text.is_empty() {
        return entry(name);
    }
    text.push_str(&language::example(name).map(shown_example).unwrap_or_default());
    Some(text)
}

fn named(query: &Query, symbol: &Symbol) -> Option<String> {
    let scan = query.scan;
    match symbol {
        Symbol::Function(name) => function(query, name),
        Symbol::Global(name) => {
            let span = scan.declaration(symbol).unwrap_or_default();
            let inferred = query.checked.and_then(|checked| {
                checked
                    .globals
                    .iter()
                    .find(|global| global.span.file == checked.file && global.span.start as usize == span.start)
            });
            let shown = inferred.map_or_else(|| name.clone(), |inferred| format!("{name}{}", type_of(inferred)));
            Some(format!("{}\nGlobal variable.", code("systemtap", &format!("global {shown}"))))
        }
        Symbol::Local(owner, name) => local(query, scan.items.get(*owner)?, name),
        Symbol::Macro(name) => definition(query, name),
        Symbol::MacroParameter(_, name) => {
            Some(format!("{}\nParameter of the macro.", code("systemtap", &format!("@{name}"))))
        }
    }
}

/// `[string, long]:stats`
pub fn type_of(inferred: &elaborate::Inferred) -> String {
    let keys: Vec<&str> = inferred.keys.iter().map(|key| key.name()).collect();
    let keys = if keys.is_empty() { String::new() } else { format!("[{}]", keys.join(", ")) };
    match inferred.contents {
        Contents::Stats(_) => format!("{keys}:stats"),
        Contents::Value(ty) => format!("{keys}:{}", ty.name()),
    }
}

fn local(query: &Query, item: &Item, name: &str) -> Option<String> {
    let scan = query.scan;
    if item.parameters.iter().any(|at| scan.word(*at) == name) {
        return Some(format!("{}\nParameter.", code("systemtap", name)));
    }
    let sites = header(scan, item).map(|header| query.workspace.sites(header, scan.text()));
    let set = sites.iter().flat_map(|sites| sites.iter()).find_map(|listed| {
        let (_, is_text) = listed.set.iter().find(|(known, _)| known == name)?;
        Some((listed.name.clone(), *is_text))
    });
    if let Some((alias, is_text)) = set {
        let type_name = if is_text { "string" } else { "long" };
        return Some(format!("{}\nSet by the alias `{alias}`.", code("systemtap", &format!("{name}:{type_name}"))));
    }
    if let Some(global) = query.workspace.library_global(name) {
        let doc = query.workspace.comment(global.span);
        return Some(format!(
            "{}\nGlobal variable of the library. {doc}",
            code("systemtap", &format!("global {name}"))
        ));
    }
    Some(format!("{}\nLocal variable.", code("systemtap", name)))
}

fn definition(query: &Query, name: &str) -> Option<String> {
    let scan = query.scan;
    let own = scan
        .items
        .iter()
        .find(|item| item.kind == ItemKind::Macro && item.names.first().is_some_and(|at| scan.word(*at) == name));
    if let Some(item) = own {
        let range = scan.bytes(&item.words);
        let comment = library::comment(scan.text(), range.start);
        return Some(format!("{}\n{comment}", code("systemtap", scan.text().get(range).unwrap_or_default())));
    }
    let whole = query.workspace.parsed();
    let found = whole.macros.iter().find(|found| found.name == name)?;
    let parameters = found.parameters.as_ref().map(|all| format!("({})", all.join(", "))).unwrap_or_default();
    let example = language::example(&format!("@{name}")).map(shown_example).unwrap_or_default();
    Some(format!("{}\n{}\n{example}", code("systemtap", &format!("@{name}{parameters}")), found.doc))
}

/// A context variable: its declaration in C, and its location at each site of the probe.
fn target(query: &Query, item: &Item, word: &str) -> Option<String> {
    if word.starts_with("$$") {
        return entry(word);
    }
    let name = word.trim_start_matches('$');
    let sites = query.workspace.sites(header(query.scan, item)?, query.scan.text());
    let mut declaration = None;
    let mut lines = Vec::new();
    for listed in sites.iter() {
        let site = &listed.site;
        let place = match site.context.variable(name) {
            Ok(found) => {
                let debug = found.object.debug().ok()?;
                let size = members::size(debug, found.type_id);
                declaration.get_or_insert_with(|| (debug.type_name(found.type_id), size));
                format!("in {}", inspect::place(site, &found))
            }
            Err(error) => why_not(&error, site.context.other_lines(name)),
        };
        lines.push(format!("- `{}`: {place}", site.point));
    }
    lines.dedup();
    let shown = declaration.map(|(type_name, size)| {
        let about = size.trim_start_matches([',', ' ']).to_string();
        format!("{}\n{about}\n\n", code("c", &format!("{type_name} {name}")))
    });
    let more = lines.len().saturating_sub(MAX_PLACES);
    lines.truncate(MAX_PLACES);
    if more > 0 {
        lines.push(format!("- and at {more} other places"));
    }
    (!lines.is_empty()).then(|| format!("{}{}\n", shown.unwrap_or_default(), lines.join("\n")))
}

fn why_not(error: &ContextError, elsewhere: Option<String>) -> String {
    let reason = match error {
        ContextError::None => "there are no context variables".to_string(),
        ContextError::Unknown => "no variable of that name".to_string(),
        ContextError::NoValue(lines) => format!("no value: {}", lines.join("; ")),
        ContextError::OptimizedOut => "no value here: the compiler has optimised it out".to_string(),
        ContextError::NotReturn => "only in a return probe".to_string(),
        ContextError::Void => "the function returns nothing".to_string(),
        ContextError::DebugInfo(message) => message.clone(),
    };
    match elsewhere {
        Some(elsewhere) => format!("{reason} ({elsewhere})"),
        None => reason,
    }
}

/// A member: its declaration in C, with its place in the struct.
fn member(query: &Query, item: &Item, index: usize) -> Option<String> {
    let chain = context::chain_of(query.scan, index)?;
    let name = query.scan.word(index);
    let (found, container) = members::member(query.workspace, query.scan, item, &chain)?;
    let type_name = found.object.debug().ok()?.type_name(found.type_id);
    let mut text = code("c", &format!("{type_name} {name}"));
    if let Some(container) = container
        && let Some(shown) = members::members(&container).into_iter().find(|shown| shown.name == name)
    {
        text.push_str(&format!("\n{} of `{}`\n", shown.place, members::name(&container)));
    }
    Some(text)
}

/// A component: the kind of the probe point up to it, and its sites.
fn component(query: &Query, item: &Item, index: usize) -> Option<String> {
    let scan = query.scan;
    let mut components = context::components(scan, item, index)?;
    let argument = (scan.word(index + 1) == "(").then(|| scan.word(index + 2).trim_matches('"').to_string());
    components.push(Component { name: scan.word(index).to_string(), argument });
    let spelled: Vec<String> = components.iter().map(spelling).collect();
    let mut text = code("systemtap", &spelled.join("."));
    let alias = points::alias_of(query.workspace.aliases(), &components);
    let doc = points::doc_of(&components).map(str::to_string);
    let doc = doc.or_else(|| alias.map(|alias| query.workspace.comment(alias.span)).filter(|doc| !doc.is_empty()));
    if let Some(doc) = &doc {
        text.push_str(&format!("\n{doc}\n"));
    }
    let is_own =
        points::own_aliases(scan).iter().any(|name| name.iter().eq(components.iter().map(|component| &component.name)));
    if doc.is_none() && alias.is_none() && !is_own {
        return None;
    }
    if is_own {
        text.push_str("\nAlias of this script.\n");
    }
    let sites = query.workspace.sites(&spelled.join("."), scan.text());
    let mut places: Vec<String> = sites.iter().map(|listed| format!("- `{}`", listed.site.point)).collect();
    places.dedup();
    let more = places.len().saturating_sub(MAX_PLACES);
    places.truncate(MAX_PLACES);
    if more > 0 {
        places.push(format!("- and {more} more"));
    }
    if !places.is_empty() {
        text.push_str(&format!("\n{}\n", places.join("\n")));
    }
    if let Some(first) = sites.first().filter(|listed| !listed.set.is_empty()) {
        let set: Vec<String> = first
            .set
            .iter()
            .map(|(name, is_text)| format!("`{name}:{}`", if *is_text { "string" } else { "long" }))
            .collect();
        text.push_str(&format!("\nVariables: {}\n", set.join(", ")));
    }
    Some(text)
}

fn spelling(component: &Component) -> String {
    match &component.argument {
        None => component.name.clone(),
        Some(number) if number.parse::<i64>().is_ok() => format!("{}({number})", component.name),
        Some(text) => format!("{}(\"{text}\")", component.name),
    }
}

/// The function, tracepoint or module that a string of a probe point names.
fn argument(query: &Query, item: &Item, index: usize) -> Option<String> {
    let scan = query.scan;
    let head = index.checked_sub(2)?;
    if !item.header.contains(&index) || scan.word(head + 1) != "(" {
        return None;
    }
    let components = context::components(scan, item, head)?;
    let module = components
        .iter()
        .find(|component| component.name == "module")
        .and_then(|component| component.argument.as_deref());
    let text = scan.word(index).trim_matches('"');
    let object = query.workspace.object(if scan.word(head) == "module" { Some(text) } else { module })?;
    let name = text.split('@').next().unwrap_or_default();
    let prototypes = |name: &str| {
        let debug = object.debug().ok()?;
        let found = inspect::names::prototypes(debug, name);
        let one = |(prototype, place): &(String, String)| format!("{}\n{place}\n", code("c", prototype));
        let shown: Vec<String> = found.iter().take(MAX_PLACES).map(one).collect();
        (!shown.is_empty()).then(|| shown.join("\n"))
    };
    match scan.word(head) {
        "function" | "statement" | "callee" | "inline" if !name.contains(['*', '?', '[']) => prototypes(name),
        "trace" | "tracepoint" => {
            let name = name.split(':').next_back().unwrap_or_default();
            let found = prototypes(&format!("__traceiter_{name}"))?;
            Some(found.replace("__traceiter_", "").replace("void* __data, ", ""))
        }
        "module" => Some(format!("Module `{}`: {}", object.name(), object.path().display())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;
    use crate::settings::for_tests;

    fn shown(text: &str, at: &str) -> String {
        let (workspace, scan) = (Workspace::open(for_tests()), Scan::new(text));
        let checked = check(&workspace, "a.stp", text);
        let query = Query { workspace: &workspace, scan: &scan, checked: Some(&checked) };
        hover(&query, text.find(at).unwrap()).map(|(text, _)| text).unwrap_or_default()
    }

    #[test]
    fn functions_and_variables() {
        let text = "global seen\n/** Mine. */\nfunction mine:long(a) { return a }\nprobe timer.s(5) { seen[execname()] = mine(1); left = 2; printf(\"%d\", left) }\nprobe end { foreach (name in seen) println(name) }";
        assert!(shown(text, "seen").contains("global seen[string]:long"), "{}", shown(text, "seen"));
        let own = shown(text, "mine(1");
        assert!(own.contains("function mine:long(a)") && own.contains("Mine.") && own.contains("at 1 place"), "{own}");
        assert!(shown(text, "execname").contains("execname:string ()"));
        assert!(shown(text, "left").contains("Local variable"));
        assert!(shown(text, "a) {").contains("Parameter"));
        let print = shown(text, "printf");
        assert!(print.contains("FORMAT") && print.contains("Example"), "{print}");
        assert!(shown(text, "foreach").contains("element"));
        let timer = shown(text, "s(5");
        assert!(timer.contains("timer.s(5)"), "{timer}");
        assert_eq!(shown(text, " {"), "");
    }

    #[test]
    fn aliases_and_macros() {
        let text = "@define twice(x) %( (@x * 2) %)\nprobe mine = begin { who = \"x\" }\nprobe mine { println(who, @twice(1)) exit() }";
        assert!(shown(text, "twice(1").contains("@define twice"));
        assert!(shown(text, "who,").contains("Set by the alias `mine`"), "{}", shown(text, "who,"));
        let alias = shown(text, "mine {");
        assert!(alias.contains("Alias of this script") && alias.contains("`who:string`"), "{alias}");
    }
}
