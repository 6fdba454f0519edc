// SPDX-License-Identifier: GPL-2.0-or-later

//! `--example NAME`: runs an installed example.

use std::path::{Component, Path, PathBuf};

/// Directories below one for a system's data, as $XDG_DATA_DIRS names them.
const PLACES: [&str; 5] = [
    "spile/examples",
    "doc/spile/examples",
    "systemtap/examples",
    "doc/systemtap-doc/examples",
    "doc/systemtap/examples",
];
/// Nested directories that are searched.
const DEEPEST: usize = 8;

/// The example's file: NAME, with or without `.stp`, anywhere below those directories; of several, the first by directory
/// and path. The error names the directories searched.
pub fn find(name: &Path) -> Result<PathBuf, String> {
    let given = std::env::var("XDG_DATA_DIRS").ok().filter(|list| !list.is_empty());
    let data = given.unwrap_or_else(|| "/usr/local/share:/usr/share".to_string());
    // Relative paths are ignored, as the specification of $XDG_DATA_DIRS says.
    let places = data.split(':').filter(|data| data.starts_with('/'));
    let places: Vec<PathBuf> = places.flat_map(|data| PLACES.map(|place| Path::new(data).join(place))).collect();
    find_in(name, &places)
}

fn find_in(name: &Path, places: &[PathBuf]) -> Result<PathBuf, String> {
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(format!(
            "--example {}: this is a path, not the name of an example: leave out --example",
            name.display()
        ));
    }
    let mut wanted = vec![name.to_path_buf()];
    if name.extension().is_none_or(|extension| extension != "stp") {
        wanted.push(PathBuf::from(format!("{}.stp", name.display())));
    }
    let found = places.iter().find_map(|place| below(place, &wanted, DEEPEST));
    found.ok_or_else(|| {
        let there: Vec<String> =
            places.iter().filter(|place| place.is_dir()).map(|place| place.display().to_string()).collect();
        match there.is_empty() {
            true => format!("--example {}: no examples are installed (systemtap-doc has many)", name.display()),
            false => format!("--example {}: there is no such example below {}", name.display(), there.join(", ")),
        }
    })
}

/// Sorted, so that the result does not depend on the file system. A link to a directory is not followed: it could be a
/// cycle.
fn below(directory: &Path, wanted: &[PathBuf], depth: usize) -> Option<PathBuf> {
    if let Some(path) = wanted.iter().map(|name| directory.join(name)).find(|path| path.is_file()) {
        return Some(path);
    }
    let depth = depth.checked_sub(1)?;
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let mut deeper: Vec<PathBuf> =
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect();
    deeper.sort();
    deeper.iter().find_map(|directory| below(directory, wanted, depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_found_by_its_name() {
        let top = tempfile::tempdir().unwrap();
        let network = top.path().join("examples/network");
        std::fs::create_dir_all(&network).unwrap();
        std::fs::write(network.join("nettop.stp"), "probe begin {}").unwrap();
        let places = [top.path().join("none"), top.path().join("examples")];
        for name in ["nettop", "nettop.stp", "network/nettop.stp"] {
            assert_eq!(find_in(Path::new(name), &places), Ok(network.join("nettop.stp")), "{name}");
        }
        std::fs::write(top.path().join("secret.stp"), "").unwrap();
        for path in ["../secret", "network/../nettop", "/etc/passwd", "./nettop"] {
            assert!(find_in(Path::new(path), &places).unwrap_err().contains("not the name of an example"), "{path}");
        }
        assert!(find_in(Path::new("iotop"), &places).unwrap_err().contains("no such example below"));
        assert!(find_in(Path::new("iotop"), &places[..1]).unwrap_err().contains("no examples are installed"));
    }
}
