//! The invariants of ARCHITECTURE.md, which are mostly about what is absent: read off the sources' text.
//!
//! What stands behind `#[cfg(test)]`, in `tests.rs` and `tests/` and in comments does not count.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Lines of code below `directories` that match, as `file:line: text`.
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

/// Numbered lines before a module of tests, without those that are comments.
fn code_lines(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let opens_tests = |pair: &[&str]| pair[0].trim() == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    let end = lines.windows(2).position(opens_tests).unwrap_or(lines.len());
    let is_comment = |line: &str| ["//", "/*", "* "].iter().any(|start| line.trim_start().starts_with(start));
    let code = lines[..end].iter().enumerate().filter(|(_, line)| !is_comment(line));
    code.map(|(index, line)| (index + 1, *line)).collect()
}

fn files_below(path: &Path, suffixes: &[&str]) -> Vec<PathBuf> {
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
    assert!(lines.is_empty(), "the house has no room for:\n{}", lines.join("\n"));
}

#[test]
fn debug_information_and_targets_know_nothing_of_scripts() {
    let pattern = r"\b(crate|super::super)::(syntax|program|diagnostic|elaborate|plan|emit|driver|cli)\b";
    none(found(&["compiler/src/debuginfo", "compiler/src/target"], &[".rs"], pattern));
}

#[test]
fn passes_between_text_and_c_touch_nothing_of_the_world() {
    let pattern = r"\b(std::fs|File::open|std::process|Command::new|e?println!|e?print!|Instant::now|SystemTime|std::env::|std::net)";
    let passes = ["syntax", "elaborate", "plan", "emit"].map(|pass| format!("compiler/src/{pass}"));
    none(found(&passes.each_ref().map(String::as_str), &[".rs"], pattern));
}

#[test]
fn plan_and_emit_look_nothing_up() {
    let pattern = r"\bcrate::(debuginfo|target|kbuild|driver|cli|guest)\b";
    none(found(&["compiler/src/plan", "compiler/src/emit"], &[".rs"], pattern));
}

#[test]
fn emit_decides_nothing() {
    none(found(&["compiler/src/emit"], &[".rs"], r"\bcrate::(probe|elaborate|syntax)\b"));
}

#[test]
fn kernel_headers_are_for_the_runtime_alone() {
    let pattern = r#"#\s*include\s*[<"\\]+(linux|asm|net|trace|uapi)/"#;
    none(found(&["compiler/src", "loader", "runtime-c/abi", "runtime-c/script.h"], &[".rs", ".c", ".h", ".tera"], pattern));
}

#[test]
fn what_everybody_uses_uses_nobody() {
    none(found(&["compiler/src/source.rs"], &[".rs"], r"\bcrate::"));
    none(found(&["compiler/src/diagnostic"], &[".rs"], r"\bcrate::(syntax|program|elaborate|plan|emit|kbuild|probe|builtin|debuginfo|target|guest|driver|cli)\b"));
    none(found(&["runtime-c/abi/src"], &[".rs"], r"\b(spile|spilerun)::"));
}

#[test]
fn the_loader_shares_only_the_abi() {
    none(found(&["loader/src"], &[".rs"], r"\bspile::"));
    let root = crate::root();
    let manifest = fs::read_to_string(root.join("loader/Cargo.toml")).expect("a manifest");
    assert!(!manifest.lines().any(|line| line.starts_with("spile =") || line.starts_with("spile.")), "{manifest}");
    let manifest = fs::read_to_string(root.join("runtime-c/abi/Cargo.toml")).expect("a manifest");
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let used = dependencies.lines().take_while(|line| !line.starts_with('[')).filter(|line| !line.trim().is_empty());
    assert_eq!(used.count(), 0, "{manifest}");
}

#[test]
fn the_compiler_calls_and_is_not_called() {
    // driver is the only one that knows all passes; a pass that imports it reaches back.
    let pattern = r"\bcrate::(driver|cli)\b";
    let rooms = ["syntax", "elaborate", "plan", "emit", "kbuild", "probe", "builtin", "debuginfo", "target", "guest", "diagnostic"];
    let rooms = rooms.map(|room| format!("compiler/src/{room}"));
    none(found(&rooms.each_ref().map(String::as_str), &[".rs"], pattern));
}

#[test]
fn c_sources_name_their_licence() {
    let root = crate::root();
    for directory in ["runtime-c", "tests/fixtures"] {
        for file in files_below(&root.join(directory), &[".c", ".h"]) {
            let text = fs::read_to_string(&file).expect("a text file");
            let first = text.lines().next().unwrap_or_default();
            assert!(first.contains("SPDX-License-Identifier: GPL-2.0-or-later"), "{}: {first}", file.display());
        }
    }
}

#[test]
fn the_search_itself_finds() {
    let text = "use crate::plan;\n// use crate::cli;\n#[cfg(test)]\nmod tests {\nuse crate::driver;\n}\n";
    assert_eq!(code_lines(text), [(1, "use crate::plan;")]);
    assert!(!found(&["tests/xtask/src/main.rs"], &[".rs"], r"\bmod house;").is_empty());
}
