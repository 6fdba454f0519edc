// SPDX-License-Identifier: GPL-2.0-or-later

//! Where the debug information of a file may be: by its build-id, by its path, and by the name that it gives (.gnu_debuglink).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::Elf;

/// Files that may have the debug information of the one at `path`, in the order in which they are preferred. `debug_dirs` are as
/// /usr/lib/debug is; `sysroot`: the directory that stands for `/`.
pub(super) fn debug_places(path: &Path, own: &Elf, debug_dirs: &[PathBuf], sysroot: Option<&Path>) -> Vec<PathBuf> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let absolute = std::path::absolute(Path::new(".").join(directory)).unwrap_or_else(|_| directory.to_path_buf());
    let below = sysroot.map_or(absolute.as_path(), |root| directory.strip_prefix(root).unwrap_or(&absolute));
    let below = below.strip_prefix("/").unwrap_or(below);
    let file = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
    // The debug file of a compressed module is not compressed.
    let plain = file.rsplit_once(".ko").map_or(file.clone(), |(stem, _)| format!("{stem}.ko"));
    let link = own.debug_link();
    let mut places = Vec::new();
    if let [first, rest @ ..] = own.build_id() {
        let rest = hex::encode(rest);
        places.extend(debug_dirs.iter().map(|dir| dir.join(format!(".build-id/{first:02x}/{rest}.debug"))));
    }
    for dir in debug_dirs {
        // With /usr merged into /, either path may be the package's.
        for below in [
            below.to_path_buf(),
            below.strip_prefix("usr").unwrap_or(below).to_path_buf(),
            Path::new("usr").join(below),
        ] {
            let dir = dir.join(below);
            places.push(dir.join(&plain));
            places.push(dir.join(format!("{plain}.debug")));
            places.extend(link.iter().map(|link| dir.join(link)));
        }
    }
    places.push(directory.join(format!("{plain}.debug")));
    places.extend(link.iter().flat_map(|link| [directory.join(link), directory.join(".debug").join(link)]));
    places.retain(|place| place != path);
    let mut seen = HashSet::new();
    places.retain(|place| seen.insert(place.clone()));
    places
}
