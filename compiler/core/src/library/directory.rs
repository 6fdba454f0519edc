// SPDX-License-Identifier: GPL-2.0-or-later

//! The files of a library directory that apply to a kernel.
//!
//! Scripts are in the directory itself and in subdirectories for a runtime (`linux`), a kernel version and an architecture,
//! in this order: `DIR/linux/6.1/x86_64`, `DIR/6.1`, `DIR/x86_64`, `DIR`. All versions that are prefixes of the release are
//! used, the longest first; a file of a longer one hides those of its name in shorter ones.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{ReadError, unreadable};

const RUNTIME: &str = "linux";

/// `.stp` and `.stpm` files, those of the most specific directories first, each directory sorted by name.
pub fn files(directory: &Path, release: &str, arch: &str) -> Result<Vec<PathBuf>, ReadError> {
    // A directory given by the user must exist; its subdirectories need not.
    std::fs::read_dir(directory).map_err(|error| unreadable(directory, &error))?;
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for runtime in [RUNTIME, ""] {
        for version in versions(release) {
            for arch in [arch, ""] {
                let place = directory.join(runtime).join(&version).join(arch);
                let mut names = scripts(&place)?;
                names.sort();
                for name in names {
                    let path = place.join(&name);
                    if seen.insert((runtime, arch.is_empty(), name)) {
                        found.push(path);
                    }
                }
            }
        }
    }
    Ok(found)
}

/// `6.1.0-56-cloud-amd64`, `6.1.0`, `6.1`, `6` and the empty string.
fn versions(release: &str) -> Vec<String> {
    let base = release.split('-').next().unwrap_or("");
    let mut versions = vec![release.to_string()];
    let mut rest = base;
    while !rest.is_empty() {
        versions.push(rest.to_string());
        rest = rest.rsplit_once('.').map_or("", |(shorter, _)| shorter);
    }
    versions.push(String::new());
    versions.dedup();
    versions
}

/// Names of the scripts directly in a directory; empty if it does not exist.
fn scripts(place: &Path) -> Result<Vec<String>, ReadError> {
    let entries = match std::fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(unreadable(place, &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(place, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let script = name.ends_with(".stp") || name.ends_with(".stpm");
        if script && entry.file_type().is_ok_and(|kind| !kind.is_dir()) {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_special_first() {
        let directory = tempfile::tempdir().unwrap();
        for name in [
            "a.stp",
            "x86_64/a.stp",
            "arm64/a.stp",
            "linux/a.stp",
            "linux/x86_64/b.stp",
            "6.1/a.stp",
            "6/a.stp",
            "6/c.stpm",
            "6.2/d.stp",
            "e.txt",
            "sub/f.stp",
        ] {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = files(directory.path(), "6.1.0-5-x", "x86_64").unwrap();
        let found: Vec<&str> =
            found.iter().map(|path| path.strip_prefix(directory.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(found, ["linux/x86_64/b.stp", "linux/a.stp", "6.1/a.stp", "6/c.stpm", "x86_64/a.stp"]);
        assert!(files(&directory.path().join("none"), "6.1", "x86_64").is_err());
    }
}
