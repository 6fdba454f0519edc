// SPDX-License-Identifier: GPL-2.0-or-later

//! include_dir! notices changed files of a directory, but not added or removed ones.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/diagnostic/pages");
}
