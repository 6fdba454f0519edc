// SPDX-License-Identifier: GPL-2.0-or-later

//! The language, feature by feature: tests/language/FEATURE/*.cases contain many small scripts each, with the messages of
//! passes 1 and 2 without a kernel. A script without messages is accepted.
//!
//!     === a title | guru | arguments: one two | compatible: 4.0
//!     probe begin { println(x }
//!     ---
//!     error[E0033]: ...
//!
//! `SPILE_BLESS=1 cargo test -p spile --test conformance` records the present messages; review the difference.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that fails may say so in any way")]

use std::path::{Path, PathBuf};

use spile_core::elaborate::{self, Options, Privilege};
use spile_core::probe::Resolver;
use spile_source::diagnostic::{Severity, render::render};
use spile_source::{Origin, SourceMap};
use spile_syntax::{self as syntax, Environment, Macros};

struct Case {
    title: String,
    script: String,
    messages: String,
}

/// The text before a file's first case, and the cases.
fn read(text: &str) -> (String, Vec<Case>) {
    let (mut head, mut cases): (String, Vec<Case>) = Default::default();
    let mut in_messages = false;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("=== ") {
            cases.push(Case { title: title.to_string(), script: String::new(), messages: String::new() });
            in_messages = false;
        } else if let (Some(case), "---") = (cases.last_mut(), line) {
            assert!(!in_messages, "two --- in {}", case.title);
            in_messages = true;
        } else {
            let text = match cases.last_mut() {
                None => &mut head,
                Some(case) if in_messages => &mut case.messages,
                Some(case) => &mut case.script,
            };
            text.push_str(line);
            text.push('\n');
        }
    }
    (head, cases)
}

fn write(head: &str, cases: &[Case]) -> String {
    let case = |case: &Case| format!("=== {}\n{}---\n{}", case.title, case.script, case.messages);
    format!("{head}{}", cases.iter().map(case).collect::<String>())
}

/// The messages for a case's script.
fn messages_for(case: &Case) -> String {
    let mut environment = Environment {
        kernel_release: "6.1.0-5-amd64".into(),
        arch: "x86_64".into(),
        config: syntax::Configuration::read_by(|| {
            [("CONFIG_SMP", "y"), ("CONFIG_HZ", "250")].map(|(name, value)| (name.into(), value.into())).into()
        }),
        guru: false,
        compatible: syntax::LANGUAGE_VERSION.into(),
        arguments: Vec::new(),
        privilege: "stapdev".into(),
        runtime: "kernel".into(),
    };
    let mut options = Options { display_globals: true, ..Options::default() };
    for option in case.title.split(" | ").skip(1) {
        match option.split_once(": ").unwrap_or((option, "")) {
            ("guru", _) => (environment.guru, options.guru) = (true, true),
            ("stapusr", _) => options.privilege = Privilege::Usr,
            ("unoptimised", _) => options.unoptimised = true,
            ("arguments", words) => environment.arguments = words.split(' ').map(str::to_string).collect(),
            ("compatible", version) => environment.compatible = version.into(),
            _ => panic!("{}: no option {option}", case.title),
        }
    }
    let mut sources = SourceMap::new();
    let file = sources.add("case.stp", case.script.clone().into_bytes(), Origin::User);
    let (script, mut problems) = syntax::parse(&mut sources, file, &environment, &Macros::default());
    let scripts = [script];
    problems.extend(syntax::unused_arguments(&scripts, &environment));
    if problems.iter().all(|problem| problem.severity == Severity::Warning) {
        let mut resolver = Resolver::new(None, "6.1.0-5-amd64");
        problems.extend(elaborate::elaborate(&sources, &scripts, &options, &mut resolver).1);
    }
    problems.iter().map(|problem| without_families(&render(&sources, problem, false))).collect()
}

/// The list of all families of probe points, which grows, replaced by one word.
fn without_families(messages: &str) -> String {
    let line = |line: &str| match line.split_once("there is: ") {
        Some((head, list)) if list.contains("begin(number)") => format!("{head}there is: FAMILIES\n"),
        _ => format!("{line}\n"),
    };
    messages.lines().map(line).collect()
}

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/language");
    let mut found = Vec::new();
    for feature in std::fs::read_dir(directory).unwrap() {
        let entries = std::fs::read_dir(feature.unwrap().path()).unwrap().map(|entry| entry.unwrap().path());
        found.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "cases")));
    }
    found.sort();
    found
}

#[test]
fn each_case_has_its_messages() {
    let bless = std::env::var_os("SPILE_BLESS").is_some();
    let (mut count, mut wrong) = (0, String::new());
    for path in files() {
        let (head, mut cases) = read(&std::fs::read_to_string(&path).unwrap());
        for case in &mut cases {
            count += 1;
            let messages = messages_for(case);
            if messages != case.messages && !bless {
                wrong.push_str(&format!(
                    "{}: {}\n{}wanted:\n{}found:
{messages}\n",
                    path.display(),
                    case.title,
                    case.script,
                    case.messages
                ));
            }
            case.messages = messages;
        }
        if bless {
            std::fs::write(&path, write(&head, &cases)).unwrap();
        }
    }
    println!("{count} cases");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 250, "{count}");
}
