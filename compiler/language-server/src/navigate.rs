// SPDX-License-Identifier: GPL-2.0-or-later

//! Definition, references and renaming of a name.

use std::ops::Range;

use spile_core::inspect;
use spile_debuginfo::target::Kernel;
use spile_source::Span;
use spile_syntax::words::{WordKind, keywords};

use crate::complete::points;
use crate::context::{self, Component};
use crate::members::header;
use crate::scan::{Item, ItemKind, Role, Scan, Symbol};
use crate::workspace::Workspace;

/// The place of a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the script.
    Here(Range<usize>),
    /// In the library: the span refers to its source text.
    Library(Span),
    /// In the kernel's source: path and line.
    Source(std::path::PathBuf, u32),
}

/// The declaration of the word at the offset.
pub fn definition(workspace: &Workspace, scan: &Scan, offset: usize) -> Vec<Place> {
    let Some(index) = scan.word_at(offset).filter(|_| !scan.in_comment(offset)) else { return Vec::new() };
    let item = scan.item_of(index).and_then(|owner| scan.items.get(owner));
    match (scan.role(index), item) {
        (Role::Symbol(symbol), _) => of_symbol(workspace, scan, &symbol),
        (Role::Component, Some(item)) => of_component(workspace, scan, item, index),
        _ if scan.kind(index) == Some(WordKind::String) => {
            item.map(|item| in_kernel(workspace, scan, item, index)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn of_symbol(workspace: &Workspace, scan: &Scan, symbol: &Symbol) -> Vec<Place> {
    match symbol {
        Symbol::Function(name) => {
            // All overloads.
            let own = scan.items.iter().filter(|item| item.kind == ItemKind::Function).flat_map(|item| &item.names);
            let own = own.filter(|at| scan.word(**at) == name).filter_map(|at| scan.words.get(*at));
            let own: Vec<Place> = own.map(|word| Place::Here(word.range.clone())).collect();
            if !own.is_empty() {
                return own;
            }
            workspace.functions(name).iter().map(|found| Place::Library(found.function.name.span)).collect()
        }
        Symbol::Macro(name) => match scan.declaration(symbol) {
            Some(range) => vec![Place::Here(range)],
            None => {
                let macros = workspace.parsed().macros.iter().filter(|found| found.name == *name);
                macros.map(|found| Place::Library(found.span)).collect()
            }
        },
        Symbol::Local(owner, name) => {
            let by_alias = scan.items.get(*owner).and_then(|item| set_by_alias(workspace, scan, item, name));
            let global = || workspace.library_global(name).map(|global| Place::Library(global.name.span));
            let here = || scan.declaration(symbol).map(Place::Here);
            by_alias.or_else(global).or_else(here).into_iter().collect()
        }
        _ => scan.declaration(symbol).map(Place::Here).into_iter().collect(),
    }
}

/// Whether an alias that the probe uses sets the variable.
fn is_set_by_alias(workspace: &Workspace, scan: &Scan, item: &Item, name: &str) -> bool {
    let sites = header(scan, item).map(|header| workspace.sites(header, scan.text()));
    sites.is_some_and(|sites| sites.iter().any(|listed| listed.set.iter().any(|(known, _)| known == name)))
}

/// The alias that sets a variable of the probe.
fn set_by_alias(workspace: &Workspace, scan: &Scan, item: &Item, name: &str) -> Option<Place> {
    if item.kind != ItemKind::Probe || !is_set_by_alias(workspace, scan, item, name) {
        return None;
    }
    let own = scan.items.iter().enumerate().filter(|(_, item)| item.kind == ItemKind::Alias);
    for (owner, _) in own {
        let symbol = Symbol::Local(owner, name.to_string());
        if let Some(range) = scan.occurrences(&symbol).into_iter().next() {
            return Some(Place::Here(range));
        }
    }
    let components = all_components(scan, item)?;
    let alias = points::alias_of(workspace.aliases(), &components)?;
    // The first place that names it in the alias.
    let text = &workspace.parsed().sources.file(alias.span.file).text;
    let body = text.get(alias.span.start as usize..alias.span.end as usize)?;
    let library = Scan::new(body);
    let word =
        library.words.iter().enumerate().find(|(at, word)| word.kind == WordKind::Name && library.word(*at) == name)?.1;
    let start = alias.span.start as usize + word.range.start;
    Some(Place::Library(Span::new(alias.span.file, start, start + word.range.len())))
}

/// The components of the last point of a header that is complete.
fn all_components(scan: &Scan, item: &Item) -> Option<Vec<Component>> {
    let last =
        item.header.clone().rev().find(|at| matches!(scan.kind(*at), Some(WordKind::Name | WordKind::Keyword)))?;
    let mut components = context::components(scan, item, last)?;
    components.push(Component { name: scan.word(last).into(), argument: None });
    Some(components)
}

fn of_component(workspace: &Workspace, scan: &Scan, item: &Item, index: usize) -> Vec<Place> {
    // The alias may continue after the word.
    let mut end = index;
    let mut places = Vec::new();
    while let Some(mut components) = context::components(scan, item, end) {
        components.push(Component { name: scan.word(end).into(), argument: None });
        let own = scan.items.iter().filter(|item| item.kind == ItemKind::Alias);
        for alias in own {
            let names: Vec<usize> =
                alias.header.clone().take_while(|at| !matches!(scan.word(*at), "=" | "+=")).collect();
            let words: Vec<&str> = names.iter().map(|at| scan.word(*at)).filter(|word| *word != ".").collect();
            if words.iter().copied().eq(components.iter().map(|component| component.name.as_str()))
                && let (Some(first), Some(last)) = (names.first(), names.last())
            {
                places.push(Place::Here(scan.bytes(&(*first..last + 1))));
            }
        }
        if places.is_empty()
            && let Some(alias) = points::alias_of(workspace.aliases(), &components)
            && let Some(name) = alias.names.first().and_then(|name| name.first())
        {
            places.push(Place::Library(name.span));
        }
        if !places.is_empty() || scan.word(end + 1) != "." {
            break;
        }
        end += 2;
    }
    places
}

/// The function that a string of a probe point names, where the kernel's source is installed.
fn in_kernel(workspace: &Workspace, scan: &Scan, item: &Item, index: usize) -> Vec<Place> {
    let Some(head) = index.checked_sub(2).filter(|_| item.header.contains(&index)) else { return Vec::new() };
    if !matches!(scan.word(head), "function" | "statement" | "callee") {
        return Vec::new();
    }
    let components = context::components(scan, item, head).unwrap_or_default();
    let module = components
        .iter()
        .find(|component| component.name == "module")
        .and_then(|component| component.argument.as_deref());
    let name = scan.word(index).trim_matches('"').split('@').next().unwrap_or_default();
    let object = workspace.object(module);
    let Some(debug) = object.as_ref().and_then(|object| object.debug().ok()) else { return Vec::new() };
    let places = workspace.kernel.as_ref().map(Kernel::source_dirs).unwrap_or_default();
    let found = inspect::names::prototypes(debug, name);
    let source = |(_, place): &(String, String)| {
        let (file, line) = place.rsplit_once(':')?;
        let path = places.iter().map(|directory| directory.join(file)).find(|path| path.is_file())?;
        Some(Place::Source(path, line.parse().ok()?))
    };
    found.iter().filter_map(source).collect()
}

/// The places that name the symbol at the offset; without `declaration` only its uses.
pub fn references(scan: &Scan, offset: usize, declaration: bool) -> Vec<Range<usize>> {
    let Some(symbol) = scan.word_at(offset).filter(|_| !scan.in_comment(offset)).and_then(|index| scan.symbol(index))
    else {
        return Vec::new();
    };
    let declared = scan.declaration(&symbol);
    let mut found = scan.occurrences(&symbol);
    found.retain(|range| declaration || Some(range) != declared.as_ref());
    found
}

/// The bytes of the name at the offset if it can be renamed, else the reason why not.
pub fn can_rename(workspace: &Workspace, scan: &Scan, offset: usize) -> Result<Range<usize>, String> {
    let no_name = || "only functions, variables and macros of this script can be renamed".to_string();
    let index = scan.word_at(offset).filter(|_| !scan.in_comment(offset)).ok_or_else(no_name)?;
    let symbol = scan.symbol(index).ok_or_else(no_name)?;
    match &symbol {
        Symbol::Function(name) if scan.named(ItemKind::Function, name).is_none() => {
            return Err(format!("{name} is not a function of this script"));
        }
        Symbol::Macro(name) if scan.named(ItemKind::Macro, name).is_none() => {
            return Err(format!("@{name} is not a macro of this script"));
        }
        Symbol::Local(owner, name) => {
            let item = scan.items.get(*owner).ok_or_else(no_name)?;
            if item.kind != ItemKind::Function && is_set_by_alias(workspace, scan, item, name) {
                return Err(format!("{name} is set by the alias that the probe uses"));
            }
            if item.kind == ItemKind::Alias {
                return Err(format!("{name} is a variable of all probes that use the alias"));
            }
        }
        _ => {}
    }
    let word = scan.words.get(index).ok_or_else(no_name)?;
    let skip = usize::from(word.kind == WordKind::At);
    Ok(word.range.start + skip..word.range.end)
}

/// The places to change for a new name, or the reason why the name is not possible.
pub fn rename(workspace: &Workspace, scan: &Scan, offset: usize, name: &str) -> Result<Vec<Range<usize>>, String> {
    let range = can_rename(workspace, scan, offset)?;
    let name = name.strip_prefix('@').unwrap_or(name);
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !first || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Err(format!("`{name}` is not a valid name: letters, digits and _ make one"));
    }
    let is_word = keywords().chain(spile_syntax::print_words()).any(|word| word == name);
    if is_word {
        return Err(format!("`{name}` is a word of the language"));
    }
    let Some(symbol) = scan.word_at(range.start).and_then(|index| scan.symbol(index)) else { return Ok(Vec::new()) };
    if symbol.name() != name && is_taken(scan, &symbol, name) {
        return Err(format!("`{name}` exists already"));
    }
    if let Symbol::Local(owner, old) = &symbol
        && let Some(named) = [old.as_str(), name].into_iter().find(|name| in_macros(scan, *owner, name))
    {
        return Err(format!("a macro that is used here names `{named}`"));
    }
    Ok(scan.occurrences(&symbol))
}

/// Whether the item is a macro, or uses one, itself or by another, whose body names this variable: it is that of every item that uses
/// the macro.
fn in_macros(scan: &Scan, owner: usize, name: &str) -> bool {
    let mut seen = vec![owner];
    let mut at = 0;
    while let Some(item) = seen.get(at).and_then(|index| scan.items.get(*index)) {
        if item.kind == ItemKind::Macro
            && seen.get(at).is_some_and(|index| scan.locals(*index).iter().any(|local| local == name))
        {
            return true;
        }
        for word in item.words.clone() {
            if let Some(Symbol::Macro(used)) = scan.symbol(word)
                && let Some(index) = scan.named(ItemKind::Macro, &used).and_then(|word| scan.item_of(word))
                && !seen.contains(&index)
            {
                seen.push(index);
            }
        }
        at += 1;
    }
    false
}

fn is_taken(scan: &Scan, symbol: &Symbol, name: &str) -> bool {
    let has_local =
        |owner: usize| scan.locals(owner).iter().any(|local| local == name) || scan.parameter(owner, name).is_some();
    match symbol {
        // One of the library that the script uses would be hidden by it.
        Symbol::Function(_) | Symbol::Macro(_) => {
            let same = |found: Symbol| {
                found.name() == name && std::mem::discriminant(&found) == std::mem::discriminant(symbol)
            };
            (0..scan.words.len()).filter_map(|index| scan.symbol(index)).any(same)
        }
        Symbol::Global(_) => scan.declares_global(name) || (0..scan.items.len()).any(has_local),
        Symbol::Local(owner, _) => scan.declares_global(name) || has_local(*owner),
        Symbol::MacroParameter(owner, _) => has_local(*owner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::for_tests;

    const SCRIPT: &str = "global seen\nfunction mine(a) { return a + seen }\n@define two(x) %( @x %)\n\
                          probe alias.one = begin { who = 1 }\nprobe alias.one { left = mine(who); println(left, @two(left), execname()) }\n";

    fn workspace() -> Workspace {
        Workspace::open(for_tests())
    }

    fn defined(at: &str) -> Vec<String> {
        let workspace = workspace();
        let places = definition(&workspace, &Scan::new(SCRIPT), SCRIPT.find(at).unwrap());
        places
            .into_iter()
            .map(|place| match place {
                Place::Here(range) => format!("{}", range.start),
                Place::Library(span) => workspace.parsed().sources.file(span.file).name.clone(),
                Place::Source(path, line) => format!("{}:{line}", path.display()),
            })
            .collect()
    }

    #[test]
    fn definitions() {
        let at = |text: &str| vec![SCRIPT.find(text).unwrap().to_string()];
        assert_eq!(defined("mine(who"), at("mine(a"));
        assert_eq!(defined("seen }"), at("seen\n"));
        assert_eq!(defined("a + "), at("a) {"));
        assert_eq!(defined("two(left"), at("two(x"));
        assert_eq!(defined("one {"), at("alias.one ="));
        assert_eq!(defined("who)"), at("who = 1"));
        assert_eq!(defined("left,"), at("left ="));
        let workspace = workspace();
        let library = definition(&workspace, &Scan::new("probe begin { a = task_pid(0) }"), 20);
        assert!(matches!(library.first(), Some(Place::Library(_))), "{library:?}");
        let library = definition(&workspace, &Scan::new("probe vfs.read { println(bytes_to_read) }"), 12);
        assert!(matches!(library.first(), Some(Place::Library(_))), "{library:?}");
    }

    #[test]
    fn variables_that_macros_name_stay() {
        let script = "@define bump %( n++ %)\n@define twice %( @bump @bump %)\n\
                      probe begin { n = 1; @twice; m = n }\nprobe end { n = 2; println(n) }\n";
        let (workspace, scan) = (workspace(), Scan::new(script));
        let find = |text: &str| script.find(text).unwrap();
        for (at, name) in [("n = 1", "x"), ("m = n", "n"), ("n++", "x")] {
            assert!(rename(&workspace, &scan, find(at), name).is_err(), "{at} {name}");
        }
        assert_eq!(rename(&workspace, &scan, find("m = n"), "x").unwrap().len(), 1);
        assert_eq!(rename(&workspace, &scan, find("n = 2"), "x").unwrap().len(), 2);
    }

    #[test]
    fn references_and_new_names() {
        let (workspace, scan) = (workspace(), Scan::new(SCRIPT));
        let find = |text: &str| SCRIPT.find(text).unwrap();
        assert_eq!(references(&scan, find("left ="), true).len(), 3);
        assert_eq!(references(&scan, find("mine(a"), false).len(), 1);
        assert_eq!(rename(&workspace, &scan, find("seen }"), "reads").unwrap().len(), 2);
        assert_eq!(rename(&workspace, &scan, find("two(left"), "@zwei").unwrap().len(), 2);
        for (at, name) in [
            ("seen", "a"),
            ("seen", "1x"),
            ("seen", "foreach"),
            ("seen", "printf"),
            ("left", "seen"),
            ("who)", "x"),
            ("execname", "x"),
            ("begin", "x"),
            ("mine(a", "execname"),
        ] {
            assert!(rename(&workspace, &scan, find(at), name).is_err(), "{at} {name}");
        }
    }
}
