// SPDX-License-Identifier: GPL-2.0-or-later

//! The crate's top-level modules use only those before them in [`LAYERS`], so that there is no cycle.

#![allow(clippy::expect_used, reason = "a test that fails may say so in any way")]

use std::fs;
use std::path::{Path, PathBuf};

const LAYERS: [&str; 13] = [
    "host",
    "elf",
    "error",
    "records",
    "module",
    "userspace",
    "report",
    "options",
    "output",
    "safety",
    "session",
    "service",
    "staprun",
];

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == name)
}

#[test]
fn modules_use_only_those_below_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in files(&source) {
        let inside = file.strip_prefix(&source).expect("below src").to_str().expect("a name");
        let own = inside.split('/').next().expect("a first part").trim_end_matches(".rs");
        if matches!(own, "lib" | "main") {
            continue;
        }
        let own = layer(own).unwrap_or_else(|| panic!("{inside} is in no layer: add it to LAYERS"));
        let text = fs::read_to_string(&file).expect("text");
        let names =
            text.split("crate::").skip(1).map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
        for name in names.flatten() {
            let used = layer(name).unwrap_or_else(|| panic!("{inside} uses crate::{name}: name its module in full"));
            assert!(used <= own, "{inside} uses {name}, which is above it");
        }
    }
}
