// SPDX-License-Identifier: GPL-2.0-or-later

//! The library scripts that are part of the program.

use include_dir::{Dir, include_dir};

static TAPSET: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../tapset");

/// Prefix of the names of its library scripts, and of those it generates.
pub const TAPSET_NAMES: &str = "tapset/";

/// Library scripts (.stp and .stpm) with their bytes, sorted by name.
pub fn embedded_tapset() -> Vec<(String, &'static [u8])> {
    let mut scripts = Vec::new();
    collect(&TAPSET, &mut scripts);
    scripts.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    scripts
}

fn collect(directory: &'static Dir, scripts: &mut Vec<(String, &'static [u8])>) {
    for file in directory.files() {
        if file.path().extension().is_some_and(|extension| extension == "stp" || extension == "stpm") {
            scripts.push((format!("{TAPSET_NAMES}{}", file.path().display()), file.contents()));
        }
    }
    for inner in directory.dirs() {
        collect(inner, scripts);
    }
}
