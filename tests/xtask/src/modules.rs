// SPDX-License-Identifier: GPL-2.0-or-later

//! The modules at the top level of each crate must not depend on each other in a cycle, so that each can be read,
//! tested and moved with only its dependencies. Nor must those directly inside one of them, such as `elaborate::infer` and
//! `elaborate::lookup`.
//!
//! The crate's root counts as a module: one that uses definitions of the root, and that the root uses, makes a cycle
//! too. The file of a module that has others inside does not: it declares what they share. Dependencies are taken from the
//! text of the sources: paths that start with `crate` or with enough `super` to leave the module. A name that the crate's
//! root re-exports counts as its module's. Uses in tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::layout::{code_lines, files_below};

/// Each module's name, and those it uses; the crate's root has the name `crate`.
type Graph = BTreeMap<String, BTreeSet<String>>;

const ROOT: &str = "crate";

#[test]
fn no_cycle_between_modules_of_a_crates_top_level() {
    let mut wrong = Vec::new();
    for source in source_directories() {
        let crate_name = source.strip_prefix(crate::root()).unwrap_or(&source).display().to_string();
        let graph = graph_of(&source);
        wrong.extend(cycles(&graph).iter().map(|cycle| format!("{crate_name}: {}", shown(&graph, cycle))));
    }
    assert!(wrong.is_empty(), "modules that depend on each other:\n{}", wrong.join("\n"));
}

#[test]
fn no_cycle_inside_a_module_of_a_crates_top_level() {
    let mut wrong = Vec::new();
    for source in source_directories() {
        let entries = fs::read_dir(&source).expect("a crate's sources").flatten().map(|entry| entry.path());
        for module in entries.filter(|path| path.is_dir()) {
            let graph = graph_inside(&source, &module_path(&source, &module));
            let name = module.strip_prefix(crate::root()).unwrap_or(&module).display().to_string();
            wrong.extend(cycles(&graph).iter().map(|cycle| format!("{name}: {}", shown(&graph, cycle))));
        }
    }
    assert!(wrong.is_empty(), "modules that depend on each other:\n{}", wrong.join("\n"));
}

/// The `src` of each crate.
fn source_directories() -> Vec<PathBuf> {
    let root = crate::root();
    let mut manifests = vec![root.join("compiler"), root.join("loader"), root.join("tests/xtask")];
    manifests.extend([root.join("runtime-c/abi")]);
    let entries = fs::read_dir(root.join("compiler")).expect("the compiler's directory").flatten();
    manifests.extend(entries.map(|entry| entry.path()).filter(|path| path.join("Cargo.toml").is_file()));
    let mut sources: Vec<PathBuf> = manifests.into_iter().map(|path| path.join("src")).collect();
    sources.retain(|path| path.is_dir());
    sources.sort();
    sources
}

/// A cycle as `a -> b c; b -> a`.
fn shown(graph: &Graph, cycle: &[String]) -> String {
    let inside = |name: &String| {
        let used = graph[name].iter().filter(|used| cycle.contains(used)).cloned().collect::<Vec<_>>();
        format!("{name} -> {}", used.join(" "))
    };
    cycle.iter().map(inside).collect::<Vec<_>>().join("; ")
}

fn graph_of(source: &Path) -> Graph {
    let files: Vec<(Vec<String>, String)> =
        files_below(source, &[".rs"]).iter().map(|file| (module_path(source, file), code_of(file))).collect();
    graph_of_files(&files)
}

/// From the path and the text of each file.
fn graph_of_files(files: &[(Vec<String>, String)]) -> Graph {
    let tops: BTreeSet<String> = files.iter().filter_map(|(path, _)| path.first().cloned()).collect();
    let exported = files.iter().filter(|(path, _)| path.is_empty()).flat_map(|(_, text)| root_names(text, &tops));
    let exported: BTreeMap<String, String> = exported.collect();
    let mut graph: Graph = tops.iter().map(|name| (name.clone(), BTreeSet::new())).collect();
    graph.insert(ROOT.into(), BTreeSet::new());
    for (path, text) in files {
        let own = path.first().map_or(ROOT, String::as_str);
        for name in names_of_root(path, text) {
            let used = match exported.get(&name) {
                Some(module) => module.as_str(),
                None if tops.contains(&name) => &name,
                None => ROOT,
            };
            if used != own {
                graph.entry(own.into()).or_default().insert(used.into());
            }
        }
    }
    graph
}

/// As [`graph_of`], of the modules inside the one with that path.
fn graph_inside(source: &Path, outer: &[String]) -> Graph {
    let directory = outer.iter().fold(source.to_path_buf(), |path, name| path.join(name));
    let mut files = files_below(&directory, &[".rs"]);
    files.extend(Some(directory.with_extension("rs")).filter(|path| path.is_file()));
    let files: Vec<(Vec<String>, String)> = files
        .iter()
        .map(|file| (module_path(source, file).split_off(outer.len()), as_root(&code_of(file), outer)))
        .collect();
    let mut graph = graph_of_files(&files);
    graph.remove(ROOT);
    graph
}

/// The text with the module in the place of the crate's root: `crate::elaborate::infer` is `crate::infer`.
fn as_root(text: &str, outer: &[String]) -> String {
    let path = format!("{ROOT}::{}::", outer.join("::"));
    text.replace(&path, &format!("{ROOT}::"))
}

/// `src/a/b.rs` and `src/a/b/mod.rs` are `[a, b]`; the root has no name.
fn module_path(source: &Path, file: &Path) -> Vec<String> {
    let inside = file.strip_prefix(source).unwrap_or(file).with_extension("");
    let mut path: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| last == "mod") || path.len() == 1 && ["lib", "main"].contains(&path[0].as_str()) {
        path.pop();
    }
    path
}

/// Without comments and tests, on one line.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a text file");
    let comment = Regex::new(r"\s//.*$").expect("a regular expression");
    let lines = code_lines(&text).into_iter().map(|(_, line)| comment.replace(line, "").into_owned());
    lines.collect::<Vec<_>>().join(" ")
}

/// Names that `use` imports into the crate's root, with their modules.
fn root_names(text: &str, tops: &BTreeSet<String>) -> Vec<(String, String)> {
    let statement = Regex::new(r"\buse ([^;]+);").expect("a regular expression");
    let mut names = Vec::new();
    for found in statement.captures_iter(text) {
        for path in expanded(&found[1]) {
            let mut parts = path.iter().skip_while(|part| [ROOT, "self"].contains(&part.as_str()));
            if let (Some(first), Some(last)) = (parts.next().filter(|first| tops.contains(*first)), parts.last()) {
                names.push((last.clone(), first.clone()));
            }
        }
    }
    names
}

/// The paths of a `use`: `a::{b, c as d}` is `[a, b]` and `[a, d]`.
fn expanded(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let mut path: Vec<String> = tree.split("::").map(|part| part.trim().to_string()).collect();
        if let Some((_, alias)) = path.last().and_then(|last| last.split_once(" as ")) {
            let alias = alias.trim().to_string();
            path.pop();
            path.push(alias);
        }
        return vec![path];
    };
    let prefix: Vec<String> =
        tree[..open].split("::").map(|part| part.trim().to_string()).filter(|part| !part.is_empty()).collect();
    let inside = tree[open + 1..].trim_end().trim_end_matches('}');
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, letter) in inside.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    let paths = parts.filter_map(closed).flat_map(|part| expanded(&part));
    paths.map(|path| prefix.iter().cloned().chain(path).collect()).collect()
}

/// An item of the list; the list's end has lost its brace.
fn closed(part: &str) -> Option<String> {
    let missing = part.matches('{').count().checked_sub(part.matches('}').count())?;
    Some(format!("{part}{}", "}".repeat(missing)))
}

/// Names in the crate's root used by the text of the module.
fn names_of_root(module: &[String], text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let statement = Regex::new(r"(\bpub )?\buse ([^;]+);").expect("a regular expression");
    let alias = Regex::new(r"^crate(?:::\{self)? as (\w+)").expect("a regular expression");
    let renamed = Regex::new(r" as \w+").expect("a regular expression");
    let mut roots = vec![ROOT.to_string()];
    for found in statement.captures_iter(text) {
        // Re-exports are not uses.
        if !module.is_empty() || found.get(1).is_none() {
            // By its own name, whatever it is called here.
            let paths = expanded(&renamed.replace_all(&found[2], ""));
            names.extend(paths.iter().filter_map(|path| after_root(module, path)));
        }
        roots.extend(alias.captures(&found[2]).map(|found| found[1].to_string()));
    }
    let rest = statement.replace_all(text, "");
    let inline = Regex::new(r"\b(?:\w+::)+\w+\b(!?)").expect("a regular expression");
    for found in inline.captures_iter(&rest).filter(|found| found[1].is_empty()) {
        let mut path: Vec<String> = found[0].split("::").map(str::to_string).collect();
        if roots.contains(&path[0]) {
            path[0] = ROOT.into();
        }
        names.extend(after_root(module, &path));
    }
    names
}

/// The name after `crate`, or after as many `super` as lead to the root. In the root itself paths start with modules.
fn after_root(module: &[String], path: &[String]) -> Option<String> {
    let first = path.first()?;
    let supers = path.iter().take_while(|part| *part == "super").count();
    let behind = match supers {
        0 if first == ROOT => path.get(1),
        0 if module.is_empty() => Some(if first == "self" { path.get(1)? } else { first }),
        supers if supers > 0 && supers == module.len() => path.get(supers),
        _ => None,
    };
    behind.filter(|name| *name != "self").cloned()
}

/// Groups of more than one module that all reach each other.
fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = graph.keys().map(|name| (name, reach(graph, name))).collect();
    let mut groups: BTreeSet<Vec<String>> = BTreeSet::new();
    for (name, from_here) in &reached {
        let group: Vec<String> =
            from_here.iter().filter(|other| reached[**other].contains(name)).map(|other| (*other).clone()).collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

fn reach<'g>(graph: &'g Graph, from: &'g String) -> BTreeSet<&'g String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(name) = open.pop() {
        for used in graph.get(name).into_iter().flatten().filter(|used| graph.contains_key(*used)) {
            if seen.insert(used) {
                open.push(used);
            }
        }
    }
    seen
}

#[test]
fn paths_lead_to_modules() {
    let path = |text: &str| text.split("::").map(str::to_string).collect::<Vec<_>>();
    let tree = "crate::{self as whole, a::{B, c::D as E}, f}";
    let all = ["crate::whole", "crate::a::B", "crate::a::c::E", "crate::f"];
    assert_eq!(expanded(tree), all.map(path));
    let module = [String::from("x"), String::from("y")];
    let names = "use super::super::a::B; use super::z::Z; fn f(b: crate::c::D) { super::super::e::f(); crate::g!() }";
    assert_eq!(names_of_root(&module, names), ["a", "c", "e"]);
    assert_eq!(
        names_of_root(&module, "use crate::a as b; use crate::{self as whole, c as d}; whole::e()"),
        ["a", "c", "e"]
    );
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry((*from).into()).or_default().insert((*to).into());
            graph.entry((*to).into()).or_default();
        }
        graph
    };
    assert!(cycles(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    assert_eq!(cycles(&graph(&[("a", "b"), ("b", "c"), ("c", "b")])), [["b", "c"]]);
}
