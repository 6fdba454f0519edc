// SPDX-License-Identifier: GPL-2.0-or-later

//! Components of probe points, and the names that their arguments can have.

use std::ops::Range;
use std::rc::Rc;

use lsp_types::CompletionItemKind;
use spile_core::{inspect, probe};
use spile_syntax::ast;

use super::{Candidate, Request};
use crate::context::Component;
use crate::scan::{ItemKind, Scan};
use crate::workspace::Names;

/// Maximum number of directory entries.
const MAX_FILES: usize = 500;

/// The components that can follow those before.
pub fn components(request: &Request, before: &[Component]) -> Vec<Candidate> {
    let mut offers: Vec<Candidate> = Vec::new();
    let mut add = |offer: Candidate| match offers
        .iter_mut()
        .find(|known| known.label == offer.label && known.insert == offer.insert)
    {
        Some(known) if known.doc.is_empty() => known.doc = offer.doc,
        Some(_) => {}
        None => offers.push(offer),
    };
    for form in probe::forms().filter(|form| !form.spelling.starts_with('_')) {
        if let Some((part, is_last)) = next_of_form(form.spelling, before) {
            add(component(part, if is_last { form.doc } else { "" }));
        }
    }
    let own = own_aliases(request.scan);
    for name in own.iter().filter(|_| before.iter().all(|component| component.argument.is_none())) {
        if let Some((part, _)) = next_of_name(name, before) {
            add(Candidate::new(part, CompletionItemKind::EVENT).detail("alias of this script"));
        }
    }
    for alias in request.workspace.aliases() {
        let doc = || request.workspace.comment(alias.span);
        for name in &alias.names {
            let names: Vec<String> = name.iter().map(|component| component.name.clone()).collect();
            let Some((part, is_last)) = next_of_name(&names, before) else { continue };
            if !part.starts_with('_') {
                add(Candidate::new(part, CompletionItemKind::EVENT).doc(if is_last { doc() } else { String::new() }));
            }
        }
    }
    offers
}

fn next_of_form<'f>(spelling: &'f str, before: &[Component]) -> Option<(&'f str, bool)> {
    let mut parts = spelling.split('.');
    for component in before {
        let part = parts.next()?;
        let (name, kind) = part.split_once('(').unwrap_or((part, ""));
        if name != component.name || component.argument.is_none() != kind.is_empty() {
            return None;
        }
    }
    let part = parts.next()?;
    Some((part, parts.next().is_none()))
}

fn next_of_name<'n>(name: &'n [String], before: &[Component]) -> Option<(&'n str, bool)> {
    let fits = before.iter().zip(name).all(|(component, part)| component.name == *part);
    let next = name.get(before.len()).filter(|_| fits)?;
    Some((next, name.len() == before.len() + 1))
}

/// `function(string)` is typed with its parentheses.
fn component(part: &str, doc: &str) -> Candidate {
    let offer = match part.split_once('(') {
        Some((name, "string)")) => {
            Candidate::new(name, CompletionItemKind::FUNCTION).insert(format!("{name}(\"$0\")")).detail("(\"...\")")
        }
        Some((name, _)) => {
            Candidate::new(name, CompletionItemKind::FUNCTION).insert(format!("{name}($0)")).detail("(N)")
        }
        None => Candidate::new(part, CompletionItemKind::EVENT),
    };
    offer.doc(doc)
}

/// Names of the script's own aliases.
pub fn own_aliases(scan: &Scan) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for item in scan.items.iter().filter(|item| item.kind == ItemKind::Alias) {
        let names = item.header.clone().take_while(|at| !matches!(scan.word(*at), "=" | "+="));
        let name: Vec<String> = names.map(|at| scan.word(at)).filter(|word| *word != ".").map(str::to_string).collect();
        found.push(name);
    }
    found
}

/// Candidates for the text in the parentheses of the last component, and the bytes that they replace.
pub fn argument(request: &Request, components: &[Component], replace: Range<usize>) -> (Vec<Candidate>, Range<usize>) {
    let Some((last, before)) = components.split_last() else { return (Vec::new(), replace) };
    let typed = request.text.slice(replace.clone());
    let owner =
        before.iter().find(|component| component.name == "module").and_then(|component| component.argument.as_deref());
    let function =
        before.iter().find(|component| component.name == "function").and_then(|component| component.argument.clone());
    let named = |names: Rc<Vec<String>>, kind| names.iter().map(|name| Candidate::new(name.clone(), kind)).collect();
    match last.name.as_str() {
        "module" => {
            let modules = request.workspace.modules();
            (modules.into_iter().map(|name| Candidate::new(name, CompletionItemKind::MODULE)).collect(), replace)
        }
        "trace" | "tracepoint" => {
            let names = request.workspace.names(Names::Tracepoints, owner);
            let mut offers: Vec<Candidate> = named(names, CompletionItemKind::EVENT);
            if last.name == "tracepoint" || !typed.contains(':') {
                // A name without its system is accepted, too.
                let bare =
                    |offer: &Candidate| Some(Candidate::new(offer.label.split_once(':')?.1, CompletionItemKind::EVENT));
                let bare: Vec<Candidate> = offers.iter().filter_map(bare).collect();
                offers.extend(bare);
            }
            (offers, replace)
        }
        "function" | "statement" | "inline" | "call" => place(request, owner, typed, replace.clone()),
        "callee" | "label" => {
            let object = request.workspace.object(owner);
            let debug = object.as_ref().and_then(|object| object.debug().ok());
            let name = function.as_deref().and_then(|name| name.split('@').next()).unwrap_or_default();
            let names = match (debug, last.name.as_str()) {
                (Some(debug), "callee") => inspect::names::callees(debug, name),
                (Some(debug), _) => inspect::names::labels(debug, name),
                (None, _) => Vec::new(),
            };
            (named(Rc::new(names), CompletionItemKind::FUNCTION), replace)
        }
        "process" | "library" => files(typed, replace.clone()),
        _ => (Vec::new(), replace),
    }
}

/// `FUNCTION@FILE:LINE`: the part that the cursor is in.
fn place(
    request: &Request,
    module: Option<&str>,
    typed: &str,
    replace: Range<usize>,
) -> (Vec<Candidate>, Range<usize>) {
    let Some((name, rest)) = typed.split_once('@') else {
        let names = request.workspace.names(Names::Functions, module);
        return (functions(&names, typed), replace);
    };
    let object = request.workspace.object(module);
    let Some(debug) = object.as_ref().and_then(|object| object.debug().ok()) else { return (Vec::new(), replace) };
    let is_pattern = name.contains(['*', '?', '[']);
    match rest.split_once(':') {
        None => {
            let files = if name == "*" {
                request.workspace.names(Names::Files, module).to_vec()
            } else {
                inspect::names::files(debug, name)
            };
            let offers = files.into_iter().map(|file| Candidate::new(file, CompletionItemKind::FILE)).collect();
            (offers, replace.end - rest.len()..replace.end)
        }
        Some((file, line)) if !is_pattern => {
            let lines = inspect::names::lines(debug, name, file);
            let offers =
                lines.into_iter().map(|line| Candidate::new(line.to_string(), CompletionItemKind::CONSTANT)).collect();
            (offers, replace.end - line.len()..replace.end)
        }
        Some(_) => (Vec::new(), replace),
    }
}

/// Only names that contain the typed text, out of some fifty thousand.
fn functions(names: &[String], typed: &str) -> Vec<Candidate> {
    let fits = |name: &&String| typed.is_empty() || name.contains(typed);
    names.iter().filter(fits).map(|name| Candidate::new(name.clone(), CompletionItemKind::FUNCTION)).collect()
}

/// The entries of the directory that a path is being typed in.
fn files(typed: &str, replace: Range<usize>) -> (Vec<Candidate>, Range<usize>) {
    let Some(slash) = typed.rfind('/') else { return (Vec::new(), replace) };
    let directory = typed.get(..=slash).unwrap_or("/");
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut offers: Vec<Candidate> = entries
        .take(MAX_FILES)
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.path().is_dir() {
                true => Candidate::new(format!("{name}/"), CompletionItemKind::FOLDER),
                false => Candidate::new(name, CompletionItemKind::FILE),
            }
        })
        .collect();
    offers.sort_by(|one, other| one.label.cmp(&other.label));
    (offers, replace.start + slash + 1..replace.end)
}

/// Documentation of the form that a point begins with.
pub fn doc_of(components: &[Component]) -> Option<&'static str> {
    probe::forms().find_map(|form| {
        let parts: Vec<&str> = form.spelling.split('.').collect();
        let same = |(part, component): (&&str, &Component)| {
            let (name, kind) = part.split_once('(').unwrap_or((part, ""));
            name == component.name && kind.is_empty() == component.argument.is_none()
        };
        (parts.len() == components.len() && parts.iter().zip(components).all(same)).then_some(form.doc)
    })
}

/// The alias of the library with this name.
pub fn alias_of<'w>(aliases: impl Iterator<Item = &'w ast::Alias>, components: &[Component]) -> Option<&'w ast::Alias> {
    let names: Vec<&str> = components.iter().map(|component| component.name.as_str()).collect();
    let fits = |alias: &&ast::Alias| {
        alias.names.iter().any(|name| name.iter().map(|component| component.name.as_str()).eq(names.iter().copied()))
    };
    let mut aliases = aliases;
    aliases.find(fits)
}
