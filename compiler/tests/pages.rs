// SPDX-License-Identifier: GPL-2.0-or-later

//! The page of each code: every code has one, and its examples behave as stated.

#![allow(clippy::unwrap_used, reason = "a test that fails may say so in any way")]

use std::collections::BTreeSet;
use std::path::Path;

use spile_core::elaborate::{self, Options};
use spile_core::probe::Resolver;
use spile_debuginfo::target::{Programs, SearchOptions};
use spile_source::diagnostic::Severity;
use spile_source::diagnostic::explain::{page, pages};
use spile_source::{Origin, SourceMap};
use spile_syntax::{self as syntax, Environment, Macros};

/// The codes in the program's text, without those made up by tests.
fn codes() -> BTreeSet<String> {
    let compiler = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = std::fs::read_dir(compiler).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let code = regex::Regex::new("\"([EW][0-9]{4})\"").unwrap();
    let mut found = BTreeSet::new();
    let mut open: Vec<_> = sources.filter(|source| source.is_dir()).chain([compiler.join("src")]).collect();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]").next().unwrap_or("");
                found.extend(code.captures_iter(text).map(|found| found[1].to_string()));
            }
        }
    }
    found
}

#[test]
fn every_code_has_its_page_and_every_page_its_code() {
    let codes = codes();
    let missing: Vec<&String> = codes.iter().filter(|code| page(code).is_none()).collect();
    assert!(missing.is_empty(), "no page in diagnostic/pages for {missing:?}");
    for (name, text) in pages() {
        assert!(codes.contains(name), "{name} is no code");
        assert!(text.starts_with(&format!("# {name}: ")), "{name}");
    }
    assert_eq!(page("e10"), page("E0010"));
    assert_eq!((page("E9999"), page(""), page("é"), page("../E0010")), (None, None, None, None));
}

/// The script after a word of a page.
fn script(page: &str, word: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("\n{word}:\n\n"))?;
    Some(rest.lines().take_while(|line| line.starts_with("    ")).map(|line| format!("{}\n", &line[4..])).collect())
}

/// The messages of passes 1 and 2 without a kernel: code and severity.
fn diagnostics_for(script: &str) -> Vec<(&'static str, Severity)> {
    let mut sources = SourceMap::new();
    let file = sources.add("page.stp", script.into(), Origin::User);
    let environment = Environment { kernel_release: "6.1.0".into(), arch: "x86_64".into(), ..Environment::default() };
    let (script, mut problems) = syntax::parse(&mut sources, file, &environment, &Macros::default());
    if problems.iter().all(|problem| problem.severity == Severity::Warning) {
        let scripts = [script];
        let programs = Programs::new(SearchOptions::default());
        let mut resolver = Resolver::new(None, "6.1.0").with_programs(&programs, None);
        problems.extend(elaborate::elaborate(&sources, &scripts, &Options::default(), &mut resolver).1);
    }
    problems.iter().map(|problem| (problem.code.0, problem.severity)).collect()
}

/// Examples that are tried here: those that need a kernel are tried by tests/diagnostic/pages.host.sh.
fn is_tried(example: &str) -> bool {
    !["kernel.function", "\"kernel\"", "probe vfs."].iter().any(|word| example.contains(word))
}

/// The texts of all other tests: of those that run the program, of the units, and of what these compare with.
fn texts_of_tests() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut text = String::new();
    let mut open = vec![root.join("tests"), root.join("compiler")];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
            let is_unit_test =
                path.components().any(|part| ["tests", "tests.rs"].iter().any(|name| part.as_os_str() == *name));
            let is_test = match extension {
                "stp" | "sh" | "cases" | "snap" => true,
                "rs" => is_unit_test && !path.ends_with("pages.rs"),
                _ => false,
            };
            if path.is_dir() && !path.ends_with("xtask") && !path.ends_with("target") {
                open.push(path);
            } else if is_test {
                text.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap()));
            }
        }
    }
    text
}

/// Either its page's wrong script is compiled below or in tests/diagnostic/pages.host.sh, or another test names it.
#[test]
fn every_code_has_a_test() {
    let tests = texts_of_tests();
    let is_tested = |code: &str| page(code).is_some_and(|text| script(text, "Wrong").is_some()) || tests.contains(code);
    let untested: Vec<String> = codes().into_iter().filter(|code| !is_tested(code)).collect();
    assert!(untested.is_empty(), "no test gives {untested:?}");
}

#[test]
fn the_examples_are_true() {
    let mut tried = 0;
    let mut untrue = String::new();
    for (code, text) in pages() {
        let (wrong, right) = (script(text, "Wrong"), script(text, "Right"));
        for (example, mistaken) in [(wrong, true), (right, false)] {
            let Some(example) = example.filter(|example| is_tried(example)) else { continue };
            let found = diagnostics_for(&example);
            tried += 1;
            let fine = match mistaken {
                // The first error, or one of the warnings.
                true => match found.iter().find(|(_, severity)| *severity != Severity::Warning) {
                    Some((first, _)) => *first == code,
                    None => found.iter().any(|(other, _)| *other == code),
                },
                false => found.iter().all(|(other, severity)| *severity == Severity::Warning && *other != code),
            };
            if !fine {
                untrue.push_str(&format!("{code}: {example}{found:?}\n"));
            }
        }
    }
    assert!(untrue.is_empty(), "{untrue}");
    assert!(tried > 100, "{tried}");
}
