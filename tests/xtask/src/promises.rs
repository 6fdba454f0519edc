// SPDX-License-Identifier: GPL-2.0-or-later

//! The tables of SECURITY.md and docs/safety.md: every row names a test, and everything that a row names exists.
//!
//! A row's last cell has names in backquotes: a test below tests/, or a directory of them; after the word `unit`,
//! modules or functions of unit tests; `cargo test ... --test FILE`; `cargo xtask TASK`; a file of the tree. In
//! parentheses after one of these are parts of it: tests of the directory, or functions of the file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

const PAGES: [&str; 2] = ["SECURITY.md", "docs/safety.md"];

/// The last cells of the rows of all tables whose last column is headed `test` or `tests`, each with its row's first cell.
fn rows(text: &str) -> Vec<(&str, &str)> {
    let mut rows = Vec::new();
    let mut is_table_of_tests = false;
    for line in text.lines() {
        let Some(inner) = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            is_table_of_tests = false;
            continue;
        };
        let (first, last) = (inner.split('|').next().unwrap_or_default(), inner.rsplit('|').next().unwrap_or_default());
        match last.trim() {
            "test" | "tests" => is_table_of_tests = true,
            last if last.starts_with("---") => {}
            last if is_table_of_tests => rows.push((first.trim(), last)),
            _ => {}
        }
    }
    rows
}

/// A name in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    /// A test, a directory of tests, or a file of the tree.
    Test(String),
    Unit(String),
    Command(String),
    /// A part of the object that is named before the parentheses.
    Part(Box<Named>, String),
}

/// The names in a cell, in order.
fn named(cell: &str) -> Vec<Named> {
    let (mut found, mut is_unit, mut whole) = (Vec::<Named>::new(), false, None::<Named>);
    for (number, piece) in cell.split('`').enumerate() {
        if number % 2 == 0 {
            is_unit = (is_unit && !piece.contains([';', '('])) || piece.trim_end().ends_with("unit");
            if piece.contains(')') {
                whole = None;
            }
            // Directly after the name.
            if piece.trim() == "(" {
                whole = found.last().cloned();
            }
            continue;
        }
        is_unit = is_unit && !piece.contains('/') && !piece.starts_with("cargo ");
        found.push(match &whole {
            _ if piece.starts_with("cargo ") => Named::Command(piece.to_string()),
            Some(whole) if !piece.contains('=') => Named::Part(Box::new(whole.clone()), piece.to_string()),
            _ if is_unit => Named::Unit(piece.to_string()),
            _ => Named::Test(piece.to_string()),
        });
    }
    found
}

/// The tests, functions and tasks of the tree.
struct Existing {
    /// Names of the tests below tests/.
    tests: BTreeSet<String>,
    /// Files with unit tests, as `safety::approved`, and the names of the functions in them.
    units: Vec<(String, String)>,
}

impl Existing {
    fn here() -> Existing {
        let root = crate::root();
        let tests = crate::test::find::find(&root, &[]).expect("the tests can be read");
        let mut sources = Vec::new();
        for directory in ["loader", "runtime-c/abi", "compiler", "tests/xtask"] {
            sources_below(&root.join(directory), &mut sources);
        }
        let module = |path: &Path| {
            let parts: Vec<&str> = path.to_str().expect("a name").trim_end_matches(".rs").split('/').collect();
            let inside = parts.iter().rposition(|part| *part == "src").map_or(&[][..], |at| &parts[at + 1..]);
            inside.iter().filter(|part| !["mod", "tests"].contains(part)).copied().collect::<Vec<_>>().join("::")
        };
        let unit = |path: &PathBuf| {
            let text = fs::read_to_string(path).expect("a source");
            text.contains("#[test]").then(|| (module(path), text))
        };
        Existing {
            tests: tests.into_iter().map(|test| test.name).collect(),
            units: sources.iter().filter_map(unit).collect(),
        }
    }

    /// Why it does not exist; `None`: it exists.
    fn find_missing(&self, named: &Named) -> Option<String> {
        let is_there = match named {
            Named::Test(name) => {
                let below = format!("{}/", name.trim_end_matches('/'));
                let is_test = |test: &String| test == name || test.starts_with(&below);
                // A case in a file of many, and files of the tree.
                self.tests.iter().any(is_test) || (name.contains('/') && crate::root().join(name).exists())
            }
            Named::Unit(name) => self.units.iter().any(|(module, text)| {
                format!("::{module}::").contains(&format!("::{name}::")) || text.contains(&format!("fn {name}("))
            }),
            Named::Command(line) => is_command(line),
            Named::Part(whole, name) => match whole.as_ref() {
                Named::Test(directory) => {
                    return self.find_missing(&Named::Test(format!("{}/{name}", directory.trim_end_matches('/'))));
                }
                Named::Command(line) => {
                    let mut files = test_files(line);
                    files.any(|file| {
                        fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("fn {}(", name.trim())))
                    })
                }
                _ => false,
            },
        };
        (!is_there).then(|| format!("{named:?}"))
    }
}

fn sources_below(directory: &Path, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => sources_below(&path, sources),
            false if path.extension().is_some_and(|end| end == "rs") => sources.push(path),
            false => {}
        }
    }
}

/// The files after `--test` of a `cargo test -p spile`.
fn test_files(line: &str) -> impl Iterator<Item = PathBuf> {
    let words: Vec<&str> = line.split(' ').collect();
    let files =
        words.windows(2).filter(|pair| pair[0] == "--test").map(|pair| format!("compiler/tests/{}.rs", pair[1]));
    files.map(|file| crate::root().join(file)).collect::<Vec<_>>().into_iter()
}

fn is_command(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["cargo", "test", "-p", "spile", ..] => {
            test_files(line).count() > 0 && test_files(line).all(|file| file.is_file())
        }
        ["cargo", "xtask", "fuzz", readers @ ..] => readers.iter().all(|reader| crate::fuzz::is_reader(reader)),
        ["cargo", "xtask", task, ..] => crate::Arguments::command().find_subcommand(task).is_some(),
        _ => false,
    }
}

#[test]
fn every_promise_names_tests_that_exist() {
    let known = Existing::here();
    let mut wrong = Vec::new();
    for page in PAGES {
        let text = fs::read_to_string(crate::root().join(page)).expect("a page");
        let rows = rows(&text);
        assert!(rows.len() > 10, "{page} has lost its table");
        for (first, cell) in rows {
            let named = named(cell);
            if named.is_empty() {
                wrong.push(format!("{page}: {first}: no test"));
            }
            wrong.extend(
                named
                    .iter()
                    .filter_map(|named| known.find_missing(named))
                    .map(|what| format!("{page}: {first}: {what}")),
            );
        }
    }
    assert!(wrong.is_empty(), "what is not there:\n{}", wrong.join("\n"));
}

#[test]
fn cells_are_understood() {
    let test = |name: &str| Named::Test(name.to_string());
    let unit = |name: &str| Named::Unit(name.to_string());
    let part = |whole: Named, name: &str| Named::Part(Box::new(whole), name.to_string());
    let command = "cargo test -p spile --test hostile";
    assert_eq!(
        named(&format!("`a/b` (with links), unit `c`, `d::e`; `{command}` (`f`, `g`), `h/` (`i`), others (`j/k`)")),
        [
            test("a/b"),
            unit("c"),
            unit("d::e"),
            Named::Command(command.into()),
            part(Named::Command(command.into()), "f"),
            part(Named::Command(command.into()), "g"),
            test("h/"),
            part(test("h/"), "i"),
            test("j/k")
        ]
    );
    assert_eq!(rows("| a | test |\n|---|---|\n| b | `c` |\n\n| d | e |\n|---|---|\n| f | g |\n"), [("b", "`c`")]);
    let known = Existing::here();
    for wrong in
        ["`loader/no_such_test`", "unit `no_such_module`", "`cargo xtask fuzz no_such_reader`", "`guard/` (`nothing`)"]
    {
        assert!(named(wrong).iter().any(|named| known.find_missing(named).is_some()), "{wrong}");
    }
    for wrong in [
        "`cargo test -p spile --test nothing`",
        "`cargo test -p spile --test hostile` (`nothing`)",
        "`cargo xtask nothing`",
    ] {
        assert!(named(wrong).iter().any(|named| known.find_missing(named).is_some()), "{wrong}");
    }
    let more = "`loader/privileges`, unit `approved`, `safety::approved`, `cargo xtask fuzz line device`";
    assert_eq!(
        named(more).iter().filter_map(|named| known.find_missing(named)).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
}
