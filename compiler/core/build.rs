// SPDX-License-Identifier: GPL-2.0-or-later

//! include_dir! sees the files of a directory change, but none come or go. And a digest of the embedded library, under which
//! what its files define is in the cache.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// What finds the definitions in a file.
const OUTLINE: &str = "../syntax/src/outline.rs";

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../tapset");
    println!("cargo::rerun-if-changed={OUTLINE}");
    let mut files = vec![PathBuf::from(OUTLINE)];
    collect(Path::new("../../tapset"), &mut files)?;
    files.sort();
    let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
    halves[1].write_u8(1);
    for path in &files {
        let bytes = fs::read(path)?;
        halves.iter_mut().for_each(|half| (path, &bytes).hash(half));
    }
    println!("cargo::rustc-env=SPILE_TAPSET_DIGEST={:016x}{:016x}", halves[0].finish(), halves[1].finish());
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
