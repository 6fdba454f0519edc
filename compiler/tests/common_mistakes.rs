// SPDX-License-Identifier: GPL-2.0-or-later

//! Scripts with one typical mistake each (tests/diagnostic/common_mistakes.cases): the first message must name the mistake and say
//! what to write instead.
//!
//!     === a title
//!     probe begin { prntf("x") }
//!     ---
//!     a part of the first message
//!     another part of it

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may say so in any way"
)]

use std::path::{Path, PathBuf};

use spile_base::cache::Cache;
use spile_core::builtin;
use spile_core::elaborate::{self, Options};
use spile_core::library::{Library, LibraryRequest, Places};
use spile_core::probe::Resolver;
use spile_source::diagnostic::{Diagnostic, Severity, foreign, render::render};
use spile_source::{Origin, SourceMap};
use spile_syntax::{self as syntax, Environment};

/// The least share of the scripts, in percent, whose first message must name the mistake.
const GOAL: usize = 90;

struct Case {
    title: String,
    script: String,
    parts: Vec<String>,
}

fn cases() -> Vec<Case> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/diagnostic/common_mistakes.cases");
    let text = std::fs::read_to_string(path).unwrap();
    text.split("\n=== ").skip(1).map(case).collect()
}

fn case(text: &str) -> Case {
    let (title, rest) = text.split_once('\n').unwrap();
    let (script, parts) = rest.split_once("\n---\n").unwrap_or_else(|| panic!("{title}: no ---"));
    let parts: Vec<String> = parts.lines().map(str::to_string).collect();
    assert!(!parts.is_empty(), "{title}: nothing to look for");
    Case { title: title.into(), script: format!("{script}\n"), parts }
}

/// A message as judged, and as a user sees it.
#[derive(Default)]
struct Message {
    words: String,
    shown: String,
}

/// The compiler's message, without the script's lines and without the code.
fn words(problem: &Diagnostic) -> String {
    let labels = problem.labels.iter().map(|label| label.message.as_str());
    let notes = problem.notes.iter().map(String::as_str);
    [problem.message.as_str()].into_iter().chain(labels).chain(notes).collect::<Vec<_>>().join("\n")
}

/// The first message of passes 1 and 2 with the library and without a kernel; errors come before warnings.
fn first_message(library: &Library, script: &str) -> Message {
    let environment = Environment {
        kernel_release: "6.1.0-5-amd64".into(),
        arch: "x86_64".into(),
        compatible: syntax::LANGUAGE_VERSION.into(),
        ..Environment::default()
    };
    let mut sources = SourceMap::new();
    let mut problems = Vec::new();
    let macros = library.macros(&mut sources, &environment, &mut problems).unwrap();
    let file = sources.add("slip.stp", script.as_bytes().to_vec(), Origin::User);
    let (script, wrong) = syntax::parse(&mut sources, file, &environment, &macros);
    problems.extend(wrong);
    let failed = |problems: &[Diagnostic]| problems.iter().any(|problem| problem.severity == Severity::Error);
    if !failed(&problems) {
        let mut scripts = vec![script];
        let request = LibraryRequest { scripts: &scripts, points: &[], all: false };
        let selected = library.select(&mut sources, &environment, &macros, request, &mut problems).unwrap();
        scripts.extend(selected);
        let options = Options { offered: library.offered().into(), ..Options::default() };
        let mut resolver = Resolver::new(None, "6.1.0-5-amd64");
        problems.extend(elaborate::elaborate(&sources, &scripts, &options, &mut resolver).1);
    }
    let first = problems.iter().find(|problem| problem.severity == Severity::Error).or(problems.first());
    first.map_or_else(Message::default, |problem| Message {
        words: words(problem),
        shown: render(&sources, problem, false),
    })
}

#[test]
fn the_first_message_names_the_mistake() {
    let library = Library::open(&Places::default(), &Cache::none()).unwrap();
    let cases = cases();
    let mut missed = Vec::new();
    for case in &cases {
        let message = first_message(&library, &case.script);
        if !case.parts.iter().all(|part| message.words.contains(part.as_str())) {
            missed.push(format!("=== {}\n{}wanted: {:?}\n{}", case.title, case.script, case.parts, message.shown));
        }
    }
    let named = cases.len() - missed.len();
    println!("{named} of {} mistakes named\n{}", cases.len(), missed.join("\n"));
    assert!(cases.len() >= 190, "{} cases", cases.len());
    assert!(named * 100 >= cases.len() * GOAL, "{named} of {}:\n{}", cases.len(), missed.join("\n"));
}

/// Each function that a note suggests for one of another language exists.
#[test]
fn what_is_suggested_exists() {
    let library = Library::open(&Places::default(), &Cache::none()).unwrap();
    let offered = library.offered();
    let called = regex::Regex::new("([a-z_]+)\\(").unwrap();
    for text in foreign::suggestions() {
        for name in called.captures_iter(text).map(|found| found.get(1).unwrap()) {
            if matches!(text[..name.start()].chars().last(), Some('@' | '.'))
                || ["for", "foreach"].contains(&name.as_str())
            {
                continue;
            }
            let name = name.as_str();
            let known = builtin::all().any(|builtin| builtin.name == name)
                || syntax::print_words().any(|word| word == name)
                || offered.functions.iter().any(|function| function == name);
            assert!(known, "{text}: no function {name}");
        }
    }
}
