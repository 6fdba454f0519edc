// SPDX-License-Identifier: GPL-2.0-or-later

//! Names in handlers and functions: variables, members, functions, macros, keywords.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use lsp_types::CompletionItemKind;
use spile_core::{builtin, library};
use spile_syntax::words::WordKind;

use super::{Candidate, Request, header};
use crate::language::{self, Entry};
use crate::members;
use crate::scan::{Item, ItemKind};

fn entries(entries: &'static [Entry], kind: CompletionItemKind) -> impl Iterator<Item = Candidate> {
    entries.iter().map(move |entry| Candidate::new(entry.word, kind).detail(entry.usage).doc(entry.doc))
}

/// Keywords of the top level.
pub fn top() -> Vec<Candidate> {
    entries(language::TOP, CompletionItemKind::KEYWORD).collect()
}

/// Macros, parameters of the macro that is being written, and operators.
pub fn at_words(request: &Request, item: Option<&Item>) -> Vec<Candidate> {
    let scan = request.scan;
    let mut offers = Vec::new();
    for own in scan.items.iter().filter(|own| own.kind == ItemKind::Macro) {
        let Some(name) = own.names.first() else { continue };
        let parameters: Vec<&str> = own.parameters.iter().map(|at| scan.word(*at)).collect();
        offers.push(called(scan.word(*name), &parameters).detail("macro of this script"));
    }
    if let Some(own) = item.filter(|item| item.kind == ItemKind::Macro) {
        let parameter = |at: &usize| Candidate::new(format!("@{}", scan.word(*at)), CompletionItemKind::VARIABLE);
        offers.extend(own.parameters.iter().map(|at| parameter(at).detail("parameter")));
    }
    offers.extend(entries(language::OPERATORS, CompletionItemKind::OPERATOR));
    for found in request.workspace.parsed().macros.iter().filter(|found| !found.name.starts_with('_')) {
        let parameters: Vec<&str> = found.parameters.iter().flatten().map(String::as_str).collect();
        offers.push(called(&found.name, &parameters).doc(found.doc.clone()));
    }
    if item.is_none() {
        offers.extend(entries(language::TOP, CompletionItemKind::KEYWORD).filter(|offer| offer.label.starts_with('@')));
    }
    offers
}

fn called(name: &str, parameters: &[&str]) -> Candidate {
    let detail = if parameters.is_empty() { String::new() } else { format!("({})", parameters.join(", ")) };
    Candidate::new(format!("@{name}"), CompletionItemKind::CONSTANT).detail(detail)
}

/// The context variables of a probe, with their C types.
pub fn targets(request: &Request, item: &Item) -> Vec<Candidate> {
    let sites = request.workspace.sites(header(request.scan, item), request.scan.text());
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let mut has_variables = false;
    for listed in sites.iter() {
        let context = &listed.site.context;
        has_variables |= context.has_variables();
        let returns = context.is_return().then(|| "return".to_string());
        for name in returns.into_iter().chain(context.parameters()).chain(context.locals()) {
            let Ok(variable) = context.variable(&name) else { continue };
            let type_name = variable.object.debug().map(|debug| debug.type_name(variable.type_id)).unwrap_or_default();
            found.entry(format!("${name}")).or_insert((type_name, 0)).1 += 1;
        }
    }
    let count = sites.len();
    let mut offers: Vec<Candidate> = found
        .into_iter()
        .map(|(name, (type_name, places))| {
            let note = match places == count {
                true => String::new(),
                false => format!("At {places} of the {count} places of this probe."),
            };
            Candidate::new(name, CompletionItemKind::VARIABLE).detail(type_name).doc(note)
        })
        .collect();
    let fits = |entry: &&Entry| match entry.word {
        "$$return" => sites.iter().any(|listed| listed.site.context.is_return()),
        "$$name" | "$$system" => sites.iter().any(|listed| listed.site.context.text(entry.word).is_some()),
        _ => has_variables,
    };
    let words = language::DOLLARS.iter().filter(fits);
    offers.extend(
        words.map(|entry| Candidate::new(entry.word, CompletionItemKind::VARIABLE).detail("string").doc(entry.doc)),
    );
    offers
}

/// The members of the struct that a chain points to.
pub fn members(request: &Request, item: &Item, chain: &Range<usize>) -> Vec<Candidate> {
    let Some(container) = members::container(request.workspace, request.scan, item, chain) else { return Vec::new() };
    let owner = members::name(&container);
    let offer = |member: members::MemberInfo| {
        Candidate::new(member.name, CompletionItemKind::FIELD)
            .detail(member.type_name)
            .doc(format!("{owner}: {}", member.place))
    };
    members::members(&container).into_iter().map(offer).collect()
}

/// Variables, functions and keywords.
pub fn in_body(request: &Request, offset: usize) -> Vec<Candidate> {
    let scan = request.scan;
    let owner = scan.item_at(offset);
    let item = owner.and_then(|owner| scan.items.get(owner));
    let mut offers = Vec::new();
    // The word that is being typed is itself a name in the script.
    let typed = scan.word_at(offset).filter(|at| scan.kind(*at) == Some(WordKind::Name));
    let others = item.map(|item| item.words.clone()).unwrap_or_default().filter(|at| Some(*at) != typed);
    let elsewhere: HashSet<&str> = others.map(|at| scan.word(at)).collect();
    let locals = owner.map(|owner| scan.locals(owner)).unwrap_or_default();
    for name in locals.into_iter().filter(|name| elsewhere.contains(name.as_str())) {
        offers.push(Candidate::new(name, CompletionItemKind::VARIABLE).detail("local"));
    }
    if let Some(item) = item.filter(|item| matches!(item.kind, ItemKind::Probe | ItemKind::Alias)) {
        let sites = request.workspace.sites(header(scan, item), scan.text());
        let mut offered: HashSet<String> = offers.iter().map(|offer| offer.label.clone()).collect();
        for (name, is_text) in sites.iter().flat_map(|listed| &listed.set) {
            if offered.insert(name.clone()) {
                let detail = if *is_text { "string, set by the alias" } else { "long, set by the alias" };
                offers.push(Candidate::new(name.clone(), CompletionItemKind::VARIABLE).detail(detail));
            }
        }
    }
    for own in scan.items.iter().filter(|own| own.kind == ItemKind::Global) {
        let globals =
            own.names.iter().map(|at| Candidate::new(scan.word(*at), CompletionItemKind::VARIABLE).detail("global"));
        offers.extend(globals);
    }
    for own in scan.items.iter().filter(|own| own.kind == ItemKind::Function) {
        let Some(name) = own.names.first() else { continue };
        let parameters: Vec<&str> = own.parameters.iter().map(|at| scan.word(*at)).collect();
        let detail = format!("({})", parameters.join(", "));
        offers.push(
            Candidate::new(scan.word(*name), CompletionItemKind::FUNCTION)
                .detail(detail)
                .doc("Function of this script."),
        );
    }
    offers.extend(entries(language::STATEMENTS, CompletionItemKind::KEYWORD));
    offers.extend(entries(language::PRINT, CompletionItemKind::FUNCTION));
    offers.extend(functions(request));
    offers
}

/// The functions of the library and the builtins, except those that begin with `_`, which are internal.
fn functions(request: &Request) -> Vec<Candidate> {
    let mut found: BTreeMap<String, Candidate> = BTreeMap::new();
    let mut add = |name: &str, signature: String, doc: String| {
        if !name.starts_with('_') {
            let detail = signature.strip_prefix(name).unwrap_or_default().trim_start_matches(':').to_string();
            let offer = Candidate::new(name, CompletionItemKind::FUNCTION).detail(detail).doc(doc);
            found.entry(name.to_string()).or_insert(offer);
        }
    };
    for builtin in builtin::offered() {
        add(builtin.name, builtin.signature(), builtin.doc.to_string());
    }
    for found in request.workspace.all_functions() {
        add(&found.function.name.text, library::signature(found.function), found.doc);
    }
    found.into_values().collect()
}
