// SPDX-License-Identifier: GPL-2.0-or-later

//! A digest of files that are part of a crate, for its build script. It is part of keys in the cache. It is computed when the
//! crate is built, so that no run of the compiler has to.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// 32 hexadecimal digits that change with the names and contents of the files, whatever their order here. A collision by chance is what
/// matters: who can choose these files can choose the program.
pub fn digest(mut files: Vec<PathBuf>) -> std::io::Result<String> {
    files.sort();
    let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
    halves[1].write_u8(1);
    for path in &files {
        let bytes = fs::read(path)?;
        halves.iter_mut().for_each(|half| (path, &bytes).hash(half));
    }
    Ok(format!("{:016x}{:016x}", halves[0].finish(), halves[1].finish()))
}

/// The files below a directory that `takes` selects.
pub fn files_below(directory: &Path, takes: fn(&Path) -> bool) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if takes(&path) {
                files.push(path);
            }
        }
    }
    Ok(files)
}
