// SPDX-License-Identifier: GPL-2.0-or-later

//! Which module has a function, by the symbol tables of all: for messages about a name that was looked for elsewhere.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use crate::Elf;

/// Bytes of compressed modules that are unpacked in a search, which takes about a second; what looks most likely comes first.
const MAX_PACKED: u64 = 8 << 20;

/// Most names that are returned.
const MAX_FOUND: usize = 6;

/// What a search for the modules that have a function has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    /// Names of the modules, sorted.
    pub found: Vec<String>,
    /// Number of modules that were not searched, because unpacking them takes too long.
    pub unsearched: usize,
}

/// The modules among `files`, each given with its name, that have the function.
pub(super) fn with_function(files: Vec<(String, PathBuf)>, function: &str) -> Owners {
    search(files, function, MAX_PACKED)
}

fn search(files: Vec<(String, PathBuf)>, function: &str, mut left: u64) -> Owners {
    let mut files: Vec<(usize, String, PathBuf)> =
        files.into_iter().map(|(name, path)| (shared(&name, function), name, path)).collect();
    files.sort_by_key(|(shared, ..)| Reverse(*shared));
    let (mut found, mut unsearched) = (Vec::new(), 0);
    for (_, name, path) in files {
        if !is_plain(&path) {
            let size = path.metadata().map_or(0, |metadata| metadata.len());
            let Some(rest) = left.checked_sub(size) else {
                unsearched += 1;
                continue;
            };
            left = rest;
        }
        if has_function(&path, function) {
            found.push(name);
        }
        if found.len() == MAX_FOUND {
            break;
        }
    }
    found.sort();
    Owners { found, unsearched }
}

/// How many characters both names begin with.
fn shared(module: &str, function: &str) -> usize {
    module.bytes().zip(function.bytes()).take_while(|(a, b)| a == b).count()
}

fn is_plain(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ko")
}

fn has_function(path: &Path, name: &str) -> bool {
    let Ok(elf) = Elf::open(path) else { return false };
    let place = elf.symbol_address(name).ok().flatten();
    place.and_then(|place| elf.section_of(place)).is_some_and(|section| section.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_alike_come_first() {
        assert!(shared("nfs", "nfs_file_read") > shared("nls_utf8", "nfs_file_read"));
        assert_eq!(with_function(vec![("x".into(), "/no/such.ko".into())], "f"), Owners::default());
    }

    #[test]
    fn what_is_not_unpacked_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let files: Vec<(String, PathBuf)> = ["a.ko.xz", "b.ko.zst", "c.ko"]
            .map(|name| {
                let path = directory.path().join(name);
                std::fs::write(&path, [0; 100]).unwrap();
                (name.to_string(), path)
            })
            .into();
        assert_eq!(search(files.clone(), "f", 150).unsearched, 1);
        assert_eq!(search(files, "f", 200).unsearched, 0);
    }
}
