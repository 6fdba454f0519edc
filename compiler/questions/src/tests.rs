// SPDX-License-Identifier: GPL-2.0-or-later

use std::collections::BTreeSet;
use std::ffi::OsString;

use crate::line::{self, Action, OptionsOfSpile};
use crate::value::Kind;
use crate::{EXAMPLES, Questions, Target, search, text};

/// Some of spile's options.
struct Spile;

impl OptionsOfSpile for Spile {
    fn takes_value(&self, option: &str) -> Option<bool> {
        match option {
            "-x" | "-c" | "-o" | "-T" | "-G" | "-e" | "--remote" => Some(true),
            "-v" | "-g" | "--guest" => Some(false),
            _ => None,
        }
    }

    fn names(&self) -> Vec<String> {
        ["--remote", "--guest"].map(String::from).to_vec()
    }
}

fn read(line: &[&str]) -> Result<Action, String> {
    line::read(&line.iter().map(OsString::from).collect::<Vec<_>>(), &Spile)
}

/// The words up to the script, and those after it.
fn run(line: &[&str]) -> (Vec<String>, Vec<String>) {
    let Ok(Action::Run(words)) = read(line) else { panic!("{line:?}: {:?}", read(line)) };
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let at = words.iter().position(|word| word == "-e").unwrap();
    (words[..at].to_vec(), words[at + 2..].to_vec())
}

fn printed(line: &[&str]) -> String {
    let Ok(Action::Text(text)) = read(line) else { panic!("{line:?}: {:?}", read(line)) };
    text
}

fn error(line: &[&str]) -> String {
    read(line).unwrap_err()
}

#[test]
fn every_script_has_its_question() {
    let questions = Questions::read().unwrap();
    let mut scripts: BTreeSet<String> = questions.all.iter().map(|question| question.script.clone()).collect();
    assert_eq!(scripts.len(), questions.all.len());
    for directory in std::iter::once(&EXAMPLES).chain(EXAMPLES.dirs()) {
        for file in directory.files().filter(|file| file.path().extension().is_some_and(|end| end == "stp")) {
            let path = file.path().to_str().unwrap();
            assert!(scripts.remove(path), "{path} is not in examples/questions.toml");
        }
    }
    assert!(scripts.is_empty(), "in examples/questions.toml alone: {scripts:?}");
    assert!(questions.all.len() >= 60);
}

#[test]
fn every_question_is_whole() {
    for question in Questions::read().unwrap().all {
        let name = &question.name;
        let stem = question.script.rsplit('/').next().unwrap().trim_end_matches(".stp").replace('_', "-");
        assert_eq!(*name, stem);
        assert!(question.question.ends_with('?') && question.question.starts_with(char::is_uppercase), "{name}");
        for (what, text) in [
            ("topic", &question.topic),
            ("prints", &question.prints),
            ("output", &question.output),
            ("next", &question.next),
        ] {
            assert!(!text.trim().is_empty(), "{name} has no {what}");
        }
        assert!(question.output.lines().count() <= 30, "{name}: a long example");
        assert!(question.like.iter().all(|tool| tool.contains(' ')), "{name}: a tool without its collection");
        // What to ask then: each is a question.
        for (at, ask) in question.next.match_indices("spile ask ") {
            let word: String = question.next[at + ask.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || "-_".contains(*c))
                .collect();
            assert!(Questions::read().unwrap().named(&word).is_some(), "{name} leads to {word}");
        }
    }
}

#[test]
fn options_set_what_the_script_has() {
    for question in Questions::read().unwrap().all {
        let (name, script) = (&question.name, question.text());
        let mut arguments = 0;
        for option in &question.options {
            assert!(!["help", "print"].contains(&option.name.as_str()), "{name}");
            if let Some(default) = &option.default
                && option.kind != Kind::Flag
                && option.global.is_none()
            {
                assert!(option.kind.convert(default).is_some(), "{name} --{}: {default}", option.name);
            }
            match &option.global {
                Some(global) => assert!(script.contains(&format!("global {global} = ")), "{name}: {global}"),
                None => {
                    arguments += 1;
                    let is = |sign: char| script.contains(&format!("{sign}{arguments}"));
                    assert!(is('$') || is('@'), "{name}: argument {arguments}");
                }
            }
        }
        let next = arguments + 1;
        assert!(
            !script.contains(&format!("@{next})")) && !script.contains(&format!("${next})")),
            "{name}: argument {next}"
        );
        let looks_at_one =
            script.contains("target()") || script.contains("target_set_pid(") || script.contains("process.plt");
        assert_eq!(looks_at_one, question.target != Target::System, "{name}: -x and -c");
    }
}

#[test]
fn what_is_printed() {
    let list = printed(&[]);
    assert!(list.starts_with("Files and disks\n  ") && list.contains("\n\nNetwork\n"), "{list}");
    assert!(list.contains("  threshold "), "{list}");
    assert_eq!(printed(&["--help"]), list);
    // By words, and by the name of another collection's tool.
    let found = printed(&["TCP", "states"]);
    assert!(found.contains("tcpstates") && !found.contains("opensnoop"), "{found}");
    let found = printed(&["lock"]);
    assert!(found.contains("  lock-contention ") && !found.contains("biolatency"), "{found}");
    assert!(printed(&["snoop"]).contains("opensnoop"));
    assert!(printed(&["fileslower"]).contains("threshold"));
    let help = printed(&["threshold", "--help"]);
    for part in [
        "spile ask threshold [OPTIONS]",
        "--over TIME",
        "Output, for example:\n\n    ",
        "Then:\n\n    ",
        "examples/threshold.stp",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert_eq!(printed(&["threshold", "--over", "1s", "-h"]), help);
    assert!(printed(&["threshold", "--print"]).starts_with("#!/usr/bin/spile\n# "));
}

#[test]
fn options_become_those_of_spile() {
    let (before, after) = run(&["threshold", "--over", "10ms", "-vo", "out", "--remote", "--over"]);
    assert_eq!(before, ["-vo", "out", "--remote", "--over", "-G", "limit_us=10000"]);
    assert!(after.is_empty());
    // The last one counts; `_` and the file's name are as good.
    assert_eq!(run(&["threshold.stp", "--over=1s", "--over=2s"]).0, ["-G", "limit_us=2000000"]);
    assert_eq!(run(&["capable", "--failed", "-x", "1"]).0, ["-x", "1", "-G", "failed=1"]);
    assert_eq!(run(&["profile"]).0, ["-DMAXACTION=1000000"]);
    assert_eq!(run(&["funccount", "--function", "vfs_*"]).1, ["--", "vfs_*"]);
    assert_eq!(run(&["function_graph", "--function=vfs_read", "-c", "true"]).1, ["--", "vfs_read", "1"]);
    assert_eq!(run(&["pgqueries"]).1, ["--", "0"]);
}

#[test]
fn mistakes_are_told() {
    for (line, part) in [
        (&["treshold"][..], "did you mean threshold?"),
        (&["opensnop", "-v"], "did you mean opensnoop?"),
        (&["no", "such", "thing"], "spile ask lists all"),
        (&["-v", "threshold"], "the question comes first"),
        (&["threshold", "--over"], "--over: it takes a time"),
        (&["threshold", "--over", "10"], "--over 10: it takes a time"),
        (&["threshold", "--ovr", "10ms"], "there is no option --ovr: did you mean --over?"),
        (&["threshold", "--over", "1s", "file"], "`file` is no option: it takes --over TIME"),
        (&["threshold", "--", "file"], "`file` is no option"),
        (&["threshold", "-x", "1"], "it looks at the whole system"),
        (&["threshold", "-e", "probe begin {}"], "the script is that of the question"),
        (&["threshold", "-Z"], "there is no option -Z"),
        (&["capable", "--failed=yes"], "--failed=yes: it takes no value"),
        (&["funccount"], "--function TEXT is missing"),
        (&["libcalls"], "give -x PID, or -c COMMAND"),
    ] {
        assert!(error(line).contains(part), "{line:?}: {}", error(line));
    }
}

#[test]
fn tables() {
    let questions = Questions::read().unwrap();
    assert!(
        text::table(&questions)
            .contains("| Which files are opened, or fail to open? | [opensnoop.stp](opensnoop.stp) |")
    );
    assert!(text::counterparts(&questions).contains("\n| opensnoop | opensnoop |\n"));
    assert_eq!(search::hint(&questions, "xyzzyxyzzy"), None);
}
