// SPDX-License-Identifier: GPL-2.0-or-later

//! The invariants of ARCHITECTURE.md, mostly about absence: checked in the text of the sources.
//!
//! Code after `#[cfg(test)]`, in `tests.rs` and `tests/`, and comments do not count.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Lines of code below `directories` that match, as `file:line:text`.
fn found(directories: &[&str], suffixes: &[&str], pattern: &str) -> Vec<String> {
    let root = crate::root();
    let pattern = Regex::new(pattern).expect("a regular expression");
    let mut lines = Vec::new();
    for directory in directories {
        for file in files_below(&root.join(directory), suffixes) {
            let text = fs::read_to_string(&file).expect("a text file");
            let shown = file.strip_prefix(&root).unwrap_or(&file).display();
            let code = code_lines(&text).into_iter().filter(|(_, line)| pattern.is_match(line));
            lines.extend(code.map(|(number, line)| format!("{shown}:{number}: {}", line.trim())));
        }
    }
    lines
}

/// Numbered lines before the test module, without comments.
pub(crate) fn code_lines(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_module = |line: &str| line.trim_start_matches("pub(crate) ").starts_with("mod ") && line.ends_with('{');
    let opens_tests = |pair: &[&str]| pair[0].trim() == "#[cfg(test)]" && is_module(pair[1]);
    let end = lines.windows(2).position(opens_tests).unwrap_or(lines.len());
    let is_comment = |line: &str| ["//", "/*", "* "].iter().any(|start| line.trim_start().starts_with(start));
    let code = lines[..end].iter().enumerate().filter(|(_, line)| !is_comment(line));
    code.map(|(index, line)| (index + 1, *line)).collect()
}

/// All files below the directory whose names end with one of the suffixes, sorted.
pub(crate) fn files_below(path: &Path, suffixes: &[&str]) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_path_buf()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut files = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            if name != "target" && name != "tests" && !name.starts_with('.') {
                files.extend(files_below(&entry.path(), suffixes));
            }
        } else if suffixes.iter().any(|suffix| name.ends_with(suffix)) && name != "tests.rs" {
            files.push(entry.path());
        }
    }
    files.sort();
    files
}

fn none(lines: Vec<String>) {
    assert!(lines.is_empty(), "what the layout does not allow:\n{}", lines.join("\n"));
}

#[test]
fn passes_between_text_and_c_touch_nothing_of_the_world() {
    let pattern = r"\b(std::fs|File::open|std::process|Command::new|e?println!|e?print!|Instant::now|SystemTime|std::env::|std::net)";
    none(found(
        &["compiler/syntax/src", "compiler/core/src/elaborate", "compiler/core/src/plan", "compiler/core/src/emit"],
        &[".rs"],
        pattern,
    ));
}

#[test]
fn plan_and_emit_look_nothing_up() {
    none(found(&["compiler/core/src/plan", "compiler/core/src/emit"], &[".rs"], r"\bspile_debuginfo\b"));
}

#[test]
fn emit_decides_nothing() {
    none(found(&["compiler/core/src/emit"], &[".rs"], r"\bcrate::(probe|elaborate)\b|\bspile_syntax\b"));
}

#[test]
fn kernel_headers_are_for_the_runtime_alone() {
    let pattern = r#"#\s*include\s*[<"\\]+(linux|asm|net|trace|uapi)/"#;
    none(found(&["compiler", "loader", "runtime-c/abi", "runtime-c/script.h"], &[".rs", ".c", ".h", ".tera"], pattern));
}

#[test]
fn the_loader_shares_only_the_abi() {
    let graph = crate_graph();
    let line = |start: &str| graph.iter().find(|line| line.starts_with(start)).cloned().unwrap_or_default();
    assert_eq!([line("spilerun ->"), line("spile-abi ->")], ["spilerun -> spile-abi", "spile-abi -> none"]);
    let packages = metadata()["packages"].take();
    let abi = packages.as_array().expect("packages").iter().find(|package| package["name"] == "spile-abi");
    let dependencies = abi.and_then(|abi| abi["dependencies"].as_array()).expect("dependencies");
    assert!(dependencies.iter().all(|used| used["kind"] == "dev"), "{dependencies:?}");
}

/// The workspace's crates and which of each other they are built with, from `cargo metadata`: `NAME -> NAME NAME ...`, sorted.
/// Without xtask, which uses most of them and is used by none.
fn crate_graph() -> Vec<String> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let name_of = |package: &serde_json::Value| package["name"].as_str().expect("a name").to_string();
    let dependencies_of = |package: &serde_json::Value| {
        let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
        // A dependency of tests or of a build script has a kind; one of the workspace has a path.
        let used = dependencies.filter(|used| used["kind"].is_null() && !used["path"].is_null());
        let names: BTreeSet<String> = used.map(name_of).collect();
        if names.is_empty() { "none".into() } else { names.into_iter().collect::<Vec<_>>().join(" ") }
    };
    let crates = packages.iter().filter(|package| package["name"] != "xtask");
    let mut graph: Vec<String> =
        crates.map(|package| format!("{} -> {}", name_of(package), dependencies_of(package))).collect();
    graph.sort();
    graph
}

/// The workspace as cargo knows it (the Cargo Book, `cargo metadata`).
fn metadata() -> serde_json::Value {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(crate::root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_picture_of_the_crates_is_true() {
    let text = fs::read_to_string(crate::root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let mut drawn: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("    spile") && line.contains("->"))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    drawn.sort();
    assert_eq!(drawn, crate_graph());
}

#[test]
fn sources_name_their_licence() {
    let root = crate::root();
    for directory in ["compiler", "loader", "runtime-c", "tests"] {
        for file in files_below(&root.join(directory), &[".c", ".h", ".rs"]) {
            let text = fs::read_to_string(&file).expect("a text file");
            let first = text.lines().next().unwrap_or_default();
            assert!(first.contains("SPDX-License-Identifier: GPL-2.0-or-later"), "{}: {first}", file.display());
        }
    }
}

#[test]
fn the_sources_are_formatted() {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["fmt", "--all", "--check"])
        .current_dir(crate::root())
        .output()
        .expect("cargo runs");
    let unformatted = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "run `cargo fmt --all`:\n{}{unformatted}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_search_itself_finds() {
    let text = "use crate::plan;\n// use crate::cli;\n#[cfg(test)]\nmod tests {\nuse crate::driver;\n}\n";
    assert_eq!(code_lines(text), [(1, "use crate::plan;")]);
    assert!(!found(&["tests/xtask/src/main.rs"], &[".rs"], r"\bmod layout;").is_empty());
}
