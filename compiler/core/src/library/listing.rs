// SPDX-License-Identifier: GPL-2.0-or-later

//! What the library offers, one line each: `task_pid:long (task:long) /* the process of a task */`.
//!
//! The text is the first sentence of the comment `/** ... */` directly above.

use spile_source::{SourceMap, Span};
use spile_syntax as syntax;
use spile_syntax::ast::{Component, Function, Item, Script, TypeName};
use spile_syntax::outline::Outline;

/// The functions of the scripts and the builtins, sorted; those that begin with `_` are internal. Builtins that unprivileged scripts
/// may call are marked.
pub fn functions(scripts: &[Script], sources: &SourceMap, is_unprivileged: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines: Vec<String> = crate::builtin::offered()
        .filter(|builtin| is_public(builtin.name))
        .map(|builtin| {
            let mark = if is_unprivileged(builtin.name) { " /* unprivileged */" } else { "" };
            documented(format!("{}{mark}", builtin.signature()), builtin.doc)
        })
        .collect();
    for function in scripts.iter().flat_map(|script| &script.items).filter_map(|item| match item {
        Item::Function(function) if !function.private && is_public(&function.name.text) => Some(function),
        _ => None,
    }) {
        lines.push(documented(signature(function), &doc(sources, function.span)));
    }
    lines.sort();
    lines.dedup();
    lines
}

/// The names of all probe aliases, sorted; those that begin with `_` are internal.
pub fn aliases(scripts: &[Script], sources: &SourceMap) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for script in scripts {
        for item in &script.items {
            let Item::Alias(alias) = item else { continue };
            let text = doc(sources, alias.span);
            let shown = |name: &&Vec<Component>| name.iter().all(|component| is_public(&component.name));
            found.extend(alias.names.iter().filter(shown).map(|name| {
                let name = syntax::print::components(name);
                // The word "returns" adds nothing here.
                let text = match name.strip_suffix(".return") {
                    Some(entry) if text.is_empty() => format!("The return of {entry}"),
                    _ => text.clone(),
                };
                documented(name, &text)
            }));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The same as stap lists them, with the points that each stands for: `vfs.read = kernel.function("vfs_read") /* A file is read */`.
pub fn alias_definitions(scripts: &[Script], sources: &SourceMap) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for script in scripts {
        for item in &script.items {
            let Item::Alias(alias) = item else { continue };
            let text = doc(sources, alias.span);
            let points: Vec<String> = alias.points.iter().map(syntax::print::point).collect();
            let points = points.join(", ");
            let shown = |name: &&Vec<Component>| name.iter().all(|component| is_public(&component.name));
            for name in alias.names.iter().filter(shown).map(|name| syntax::print::components(name)) {
                if let Some(call) = name.strip_prefix("syscall.") {
                    // Their other names are made from the same table, where a script uses them.
                    found.extend(crate::syscalls::OTHERS.map(|prefix| format!("{prefix}.{call} = syscall.{call}")));
                }
                found.push(documented(format!("{name} = {points}"), &text));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Public names of the whole library, whether a script needs the file or not: for suggestions.
#[derive(Clone, Debug, Default)]
pub struct PublicNames {
    /// Functions and globals of its scripts; builtins are not among them.
    pub functions: Vec<String>,
    /// Probe aliases, each the names of its components: `["vfs", "read"]`.
    pub aliases: Vec<Vec<String>>,
}

impl PublicNames {
    /// The public names that files define.
    pub(super) fn of(outlines: impl Iterator<Item = Outline>) -> PublicNames {
        let mut names = PublicNames::default();
        let shown = |alias: &Vec<String>| alias.iter().all(|component| is_public(component));
        for outline in outlines {
            names.functions.extend(outline.names.into_iter().filter(|name| is_public(name)));
            names.aliases.extend(outline.aliases.into_iter().filter(shown));
        }
        names
    }
}

fn is_public(name: &str) -> bool {
    !name.starts_with('_')
}

fn documented(what: String, text: &str) -> String {
    if text.is_empty() { what } else { format!("{what} /* {text} */") }
}

/// `substr:string (text:string, start:long)`, as listings show it.
pub fn signature(function: &Function) -> String {
    let typed = |name: &str, ty: Option<TypeName>| match ty {
        Some(ty) => format!("{name}:{}", type_name(ty)),
        None => format!("{name}:unknown"),
    };
    let parameters: Vec<String> =
        function.parameters.iter().map(|parameter| typed(&parameter.name.text, parameter.type_name)).collect();
    format!("{} ({})", typed(&function.name.text, function.returns), parameters.join(", "))
}

fn type_name(ty: TypeName) -> &'static str {
    match ty {
        TypeName::Long => "long",
        TypeName::String => "string",
    }
}

/// The first sentence of the comment directly above a definition; empty where there is none.
fn doc(sources: &SourceMap, span: Span) -> String {
    let comment = comment(sources.file(span.file).text.as_str(), span.start as usize);
    comment.split_once(". ").map_or(comment.trim_end_matches('.'), |(first, _)| first).to_string()
}

/// The comment `/** ... */` right above a definition that begins at `start`, on one line; empty where there is none.
pub fn comment(text: &str, start: usize) -> String {
    let above = text.get(..start).unwrap_or_default().trim_end();
    let Some(comment) = above.strip_suffix("*/") else { return String::new() };
    let Some((_, comment)) = comment.rsplit_once("/**") else { return String::new() };
    let words: Vec<&str> = comment.split_whitespace().filter(|word| *word != "*").collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_source::Origin;
    use spile_syntax::{Environment, Macros};

    #[test]
    fn signatures_with_the_first_sentence_above() {
        let mut sources = SourceMap::new();
        let text = "/** How many. Rarely\n    asked. */\nfunction f:long (a:string, b) { return strlen(a) + b }\nfunction g () { }\nfunction __h () { }\n\
                    /** Opens. */\nprobe x.open = begin { }\n\nprobe x.open.return = end { }\nprobe x._y = begin { }";
        let file = sources.add("t.stp", text.into(), Origin::Tapset);
        let (script, wrong) = syntax::parse(&mut sources, file, &Environment::default(), &Macros::default());
        assert_eq!(wrong, []);
        let scripts = [script];
        let lines = functions(&scripts, &sources, |name| name == "cpu");
        assert!(lines.contains(&"f:long (a:string, b:unknown) /* How many */".to_string()), "{lines:?}");
        assert!(lines.contains(&"g:unknown ()".to_string()) && !lines.iter().any(|line| line.starts_with('_')));
        assert!(lines.iter().any(|line| line.starts_with("pid:long () /* ") && !line.contains("unprivileged")));
        assert!(lines.iter().any(|line| line.starts_with("cpu:long () /* unprivileged */ /* ")));
        assert_eq!(aliases(&scripts, &sources), ["x.open /* Opens */", "x.open.return /* The return of x.open */"]);
        assert_eq!(alias_definitions(&scripts, &sources), ["x.open = begin /* Opens */", "x.open.return = end"]);
    }
}
