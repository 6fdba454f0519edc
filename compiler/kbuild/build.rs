// SPDX-License-Identifier: GPL-2.0-or-later

//! include_dir! notices changed files of a directory, but not added or removed ones. And a digest of the embedded runtime,
//! which is part of the key of each module in the cache.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../runtime-c");
    println!("cargo::rerun-if-changed=../../Makefile.kbuild");
    let mut files = vec![PathBuf::from("../../Makefile.kbuild")];
    collect(Path::new("../../runtime-c"), &mut files)?;
    files.sort();
    // A collision by chance is what matters: who can choose these files can choose the program.
    let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
    halves[1].write_u8(1);
    for path in &files {
        let bytes = fs::read(path)?;
        halves.iter_mut().for_each(|half| (path, &bytes).hash(half));
    }
    println!("cargo::rustc-env=SPILE_RUNTIME_DIGEST={:016x}{:016x}", halves[0].finish(), halves[1].finish());
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| ["c", "h", "lds", "sh"].iter().any(|source| extension == *source))
        {
            files.push(path);
        }
    }
    Ok(())
}
