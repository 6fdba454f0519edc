// SPDX-License-Identifier: GPL-2.0-or-later

//! include_dir! sees the files of a directory change, but none come or go.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../examples");
}
