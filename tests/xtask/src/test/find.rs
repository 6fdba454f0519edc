// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds the tests: every `.stp` and `.sh` below tests/ with its header.
//!
//! A `.stp` is a test unless a shell test beside it names it in a `script` line. A shell test is `*.guest.sh` (runs in
//! the guest, in a directory with the modules of its `script` lines) or `*.host.sh` (runs on the host, with `SPILE` and
//! `RELEASE` in its environment).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::header::{self, Header, Script};

/// The kinds of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A script, run by spilerun in the guest or only compiled.
    Script,
    GuestShell,
    HostShell,
}

/// A test.
#[derive(Clone, Debug)]
pub struct Test {
    /// Path below tests/, without suffix: `language/foreach/sorted`.
    pub name: String,
    /// How it is run.
    pub kind: Kind,
    /// Its file.
    pub path: PathBuf,
    /// The header of the file.
    pub header: Header,
}

impl Test {
    /// The directory of its file.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Whether it needs a guest; else the host is enough.
    pub fn runs_in_guest(&self) -> bool {
        match self.kind {
            Kind::Script => self.header.pass == 5,
            Kind::GuestShell => true,
            Kind::HostShell => false,
        }
    }
}

/// All tests whose name contains one of `wanted`, sorted by name; all tests if there is none.
pub fn find(root: &Path, wanted: &[String]) -> Result<Vec<Test>> {
    let top = root.join("tests");
    let mut files = Vec::new();
    collect(&top, &mut files)?;
    files.sort();
    let mut tests = Vec::new();
    for path in files {
        let Some((name, kind)) = classify(&path, &top) else { continue };
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let header = header::parse(&text).with_context(|| format!("header of {}", path.display()))?;
        tests.push(Test { name, kind, path, header });
    }
    let parts: BTreeSet<PathBuf> = tests
        .iter()
        .flat_map(|test| test.header.scripts.iter().map(|script| script_path(root, test, script)))
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    tests.retain(|test| !test.path.canonicalize().is_ok_and(|path| parts.contains(&path)));
    tests.retain(|test| wanted.is_empty() || wanted.iter().any(|word| test.name.contains(word)));
    Ok(tests)
}

/// Of each directory below tests/, the first test that is a single script for the guest without a long limit.
pub fn one_of_each_area(mut tests: Vec<Test>) -> Vec<Test> {
    let mut areas = BTreeSet::new();
    tests.retain(|test| {
        let area = test.name.split('/').next().unwrap_or_default().to_string();
        test.kind == Kind::Script && test.runs_in_guest() && test.header.limit <= 30 && areas.insert(area)
    });
    tests
}

/// The path of a shell test's script: beside the test, else from the top of the tree.
pub fn script_path(root: &Path, test: &Test, script: &Script) -> PathBuf {
    let beside = test.directory().join(&script.file);
    if beside.is_file() { beside } else { root.join(&script.file) }
}

fn classify(path: &Path, top: &Path) -> Option<(String, Kind)> {
    let name = path.strip_prefix(top).ok()?.to_str()?;
    [(".stp", Kind::Script), (".guest.sh", Kind::GuestShell), (".host.sh", Kind::HostShell)]
        .into_iter()
        .find_map(|(suffix, kind)| Some((name.strip_suffix(suffix)?.to_string(), kind)))
}

/// All files below, except the fixtures and the crates.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if entry.file_name() != "fixtures" && !path.join("Cargo.toml").is_file() {
                collect(&path, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_a_shell_test_is_no_test() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = root.path().join("tests/life");
        fs::create_dir_all(&directory).expect("a directory");
        for (name, text) in [
            ("kill.guest.sh", "# script: a -g a.stp\n"),
            ("a.stp", "probe begin {}\n"),
            ("b.stp", "# pass: 2\n"),
            ("b.txt", ""),
        ] {
            fs::write(directory.join(name), text).expect("a file");
        }
        let names: Vec<String> = find(root.path(), &[]).expect("found").into_iter().map(|test| test.name).collect();
        assert_eq!(names, ["life/b", "life/kill"]);
        let count = |wanted: &[&str]| {
            find(root.path(), &wanted.iter().map(ToString::to_string).collect::<Vec<_>>()).expect("found").len()
        };
        assert_eq!(count(&["kill"]), 1);
        assert_eq!(count(&["kill", "no_such_test", "ill"]), 1);
        assert_eq!(count(&["no_such_test"]), 0);
    }

    #[test]
    fn one_script_of_each_area_is_taken() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let files = [
            ("a/1.stp", "# limit: 60\n"),
            ("a/x/2.stp", ""),
            ("a/x/3.stp", ""),
            ("b/4.guest.sh", ""),
            ("b/5.stp", "# pass: 2\n"),
            ("b/6.stp", ""),
        ];
        for (name, text) in files {
            let path = root.path().join("tests").join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, text).expect("a file");
        }
        let names: Vec<String> =
            one_of_each_area(find(root.path(), &[]).expect("found")).into_iter().map(|test| test.name).collect();
        assert_eq!(names, ["a/x/2", "b/6"]);
    }
}
