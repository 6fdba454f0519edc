// SPDX-License-Identifier: GPL-2.0-or-later

//! Input files of an entry that become known only while it is made (headers included by C text, objects with probes):
//! the entry is valid as long as none of them changed.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files and directories, each with size, change time, device and inode, or recorded as missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs(BTreeMap<PathBuf, String>);

impl Inputs {
    /// The current state of the files.
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Inputs {
        Inputs(paths.into_iter().map(|path| (path.clone(), state(&path))).collect())
    }

    /// Whether all files are unchanged since they were recorded.
    pub fn is_unchanged(&self) -> bool {
        self.0.iter().all(|(path, known)| state(path) == *known)
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// A part of an entry: `STATE\tPATH
    /// ` each.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|(path, state)| format!("{state}\t{}\n", path.display())).collect()
    }

    /// Paths that are not valid UTF-8 do not survive the round trip, and count as changed.
    pub fn from_text(text: &str) -> Inputs {
        let line = |line: &str| line.split_once('\t').map(|(state, path)| (PathBuf::from(path), state.to_string()));
        Inputs(text.lines().filter_map(line).collect())
    }
}

fn state(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(metadata) => {
            let (device, inode) = (metadata.dev(), metadata.ino());
            format!("{}/{}.{:09}/{device}:{inode}", metadata.size(), metadata.mtime(), metadata.mtime_nsec())
        }
        Err(_) => "absent".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a"), "1").unwrap();
        let inputs = Inputs::of([path("a"), path("absent")]);
        assert!(Inputs::from_text(&inputs.to_text()) == inputs && inputs.is_unchanged());
        assert_eq!(inputs.paths().count(), 2);
        std::fs::write(path("absent"), "").unwrap();
        assert!(!inputs.is_unchanged());
        std::fs::remove_file(path("absent")).unwrap();
        assert!(inputs.is_unchanged());
        std::fs::write(path("a"), "12").unwrap();
        assert!(!inputs.is_unchanged());
    }
}
