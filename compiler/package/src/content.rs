// SPDX-License-Identifier: GPL-2.0-or-later

//! The content of a package, independent of its format.

use std::collections::BTreeSet;
use std::io::Write;

use flate2::{Compression, GzBuilder};

/// The package that has the loader.
pub const LOADER: &str = "spile-loader";

/// A package.
#[derive(Clone, Debug)]
pub struct Package {
    /// The package's name.
    pub name: String,
    /// Its version, without the package revision.
    pub version: String,
    /// One line, no full stop.
    pub summary: String,
    /// The description, in several lines.
    pub description: String,
    /// `NAME <ADDRESS>` of the maintainer.
    pub maintainer: String,
    /// Names of packages.
    pub depends: Vec<String>,
    /// Packages that it replaces, with their version: their files have the same names.
    pub stands_for: Vec<(String, String)>,
    /// Sorted by path.
    pub entries: Vec<Entry>,
    /// The maintainer scripts.
    pub scripts: Scripts,
    /// Modification time of its files; seconds since 1970.
    pub time: u64,
}

/// Shell commands that the package manager runs as root; empty: none.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    /// After it or another version of it was installed.
    pub installed: String,
    /// Before removal; not before an upgrade.
    pub removing: String,
    /// After its files were removed or upgraded.
    pub removed: String,
}

/// A file owned by root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path without a leading slash.
    pub path: String,
    /// Its kind.
    pub kind: Kind,
}

/// The kinds of entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File {
        /// Its bytes.
        contents: Vec<u8>,
        /// Permission bits.
        mode: u32,
        /// A configuration file: the administrator's changes are preserved.
        configuration: bool,
    },
    /// A symbolic link to this path.
    Link(String),
    /// A directory of the package: removed with it if empty. Tar archives contain all of them anyway.
    Directory,
}

impl Entry {
    /// A file with these permission bits.
    pub fn file(path: &str, mode: u32, contents: Vec<u8>) -> Entry {
        Entry { path: path.to_string(), kind: Kind::File { contents, mode, configuration: false } }
    }

    /// A configuration file.
    pub fn configuration(path: &str, contents: Vec<u8>) -> Entry {
        Entry { path: path.to_string(), kind: Kind::File { contents, mode: 0o644, configuration: true } }
    }

    /// Size in bytes, as the package's tables give it.
    pub(crate) fn bytes(&self) -> usize {
        match &self.kind {
            Kind::File { contents, .. } => contents.len(),
            Kind::Link(target) => target.len(),
            Kind::Directory => 0,
        }
    }

    /// Target of a symbolic link; `None` for anything else.
    pub(crate) fn link(&self) -> Option<&str> {
        match &self.kind {
            Kind::File { .. } | Kind::Directory => None,
            Kind::Link(target) => Some(target),
        }
    }
}

/// All parent directories of the entries, outermost first.
pub(crate) fn directories(entries: &[Entry]) -> BTreeSet<String> {
    let above = |path: &str| path.match_indices('/').map(|(at, _)| path.split_at(at).0.to_string()).collect::<Vec<_>>();
    entries.iter().flat_map(|entry| above(&entry.path)).collect()
}

/// The entries with the directories that only spile uses, sorted. (rpm removes no other directories with a package;
/// dpkg removes those that become empty.)
pub(crate) fn with_own_directories(entries: &[Entry]) -> Vec<Entry> {
    let is_own = |path: &String| path.rsplit('/').next().is_some_and(|name| name.contains("spile"));
    let own = directories(entries).into_iter().filter(is_own).map(|path| Entry { path, kind: Kind::Directory });
    let mut all: Vec<Entry> = entries.iter().cloned().chain(own).collect();
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all
}

/// gzip without name and time, so that equal contents give equal bytes.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| format!("compressing: {error}"))
}

/// Required by Debian Policy 12.5; Red Hat's tools treat it as documentation.
pub fn copyright(package: &str, what: &str) -> Entry {
    let text = format!(
        "{what}\n\nspile is free software under the terms of the GNU General Public License, version 2\nor (at your option) any later version (GPL-2.0-or-later). On Debian systems its text\nis in /usr/share/common-licenses/GPL-2.\n"
    );
    Entry::file(&format!("usr/share/doc/{package}/copyright"), 0o644, text.into_bytes())
}
