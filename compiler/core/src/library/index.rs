// SPDX-License-Identifier: GPL-2.0-or-later

//! What the files of library directories may define, stored between runs.
//!
//! A line for each file: its state, which shows a change, the outline, the path. A changed file is read again.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::{ReadError, unreadable};
use spile_base::cache::{Cache, Entry, Key, Kind};
use spile_base::read;
use spile_syntax::outline::{Outline, outline};

/// Version of the line format and of how outlines are made.
const FORMAT: u32 = 5;

/// Outlines of tapset files, held in the cache between sessions.
pub struct Index {
    key: Key,
    /// By path: the state of the file, and its outline.
    known: HashMap<PathBuf, (String, Outline)>,
    changed: bool,
}

impl Index {
    /// The index of a set of directories: those that hold `paths`.
    pub fn open(cache: &Cache, paths: &[PathBuf]) -> Index {
        let mut directories: Vec<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
        directories.dedup();
        let mut hash = Sha256::new();
        hash.update(format!("library {FORMAT} {} {directories:?}", env!("CARGO_PKG_VERSION")));
        let key = Key::new(hash);
        let entry = if paths.is_empty() { None } else { cache.get(Kind::Library, &key) };
        let known = entry
            .as_ref()
            .and_then(|entry| entry.text("outlines"))
            .map(|text| text.lines().filter_map(from_line).collect());
        Index { key, known: known.unwrap_or_default(), changed: false }
    }

    /// The outlines of these files.
    pub fn outlines(&mut self, paths: &[PathBuf]) -> Result<Vec<Outline>, ReadError> {
        let states: Vec<String> = paths.iter().map(|path| state(path)).collect::<Result<_, _>>()?;
        let is_known = |path: &PathBuf, state: &String| self.known.get(path).is_some_and(|(known, _)| known == state);
        let unknown: Vec<(&PathBuf, String)> =
            paths.iter().zip(states).filter(|(path, state)| !is_known(path, state)).collect();
        // Mostly there are none: not even threads are started then.
        if unknown.is_empty() {
            return Ok(self.known_outlines(paths));
        }
        let fresh: Vec<(PathBuf, (String, Outline))> = unknown
            .into_par_iter()
            .map(|(path, state)| {
                let bytes = read::regular(path, read::MAX_TEXT).map_err(|error| unreadable(path, &error))?;
                let macros = path.extension().is_some_and(|extension| extension == "stpm");
                Ok((path.clone(), (state, if macros { Outline::default() } else { outline(&bytes) })))
            })
            .collect::<Result<_, ReadError>>()?;
        self.changed = true;
        self.known.extend(fresh);
        Ok(self.known_outlines(paths))
    }

    fn known_outlines(&self, paths: &[PathBuf]) -> Vec<Outline> {
        let known = |path| self.known.get(path).map(|(_, outline)| outline.clone()).unwrap_or_default();
        paths.iter().map(known).collect()
    }

    /// Writes new entries to the cache.
    pub fn keep(&self, cache: &Cache) {
        if self.changed {
            let mut lines: Vec<String> =
                self.known.iter().map(|(path, (state, outline))| to_line(path, state, outline)).collect();
            lines.sort();
            let entry = Entry::new(&format!("library scripts, {} files", lines.len())).with("outlines", lines.concat());
            cache.put(Kind::Library, &self.key, &entry);
        }
    }
}

/// The outlines of the files that are part of this program.
pub fn of_embedded(cache: &Cache, files: &[(String, &'static [u8])]) -> Vec<Outline> {
    let hash = format!("embedded library {FORMAT} {} {}", env!("CARGO_PKG_VERSION"), env!("SPILE_TAPSET_DIGEST"));
    let key = Key::new(Sha256::new_with_prefix(hash));
    let entry = cache.get(Kind::Library, &key);
    let known = entry.as_ref().and_then(|entry| entry.text("outlines"));
    let known: Vec<(PathBuf, (String, Outline))> =
        known.map(|text| text.lines().filter_map(from_line).collect()).unwrap_or_default();
    if known.len() == files.len() && known.iter().zip(files).all(|((path, _), (name, _))| *path == *name) {
        return known.into_iter().map(|(_, (_, outline))| outline).collect();
    }
    let is_macros = |name: &str| name.ends_with(".stpm");
    let outlines: Vec<Outline> =
        files.iter().map(|(name, bytes)| if is_macros(name) { Outline::default() } else { outline(bytes) }).collect();
    let lines = files.iter().zip(&outlines).map(|((name, _), outline)| to_line(Path::new(name), "", outline));
    let entry = Entry::new(&format!("library scripts of spile, {} files", files.len()));
    cache.put(Kind::Library, &key, &entry.with("outlines", lines.collect::<String>()));
    outlines
}

/// A value that changes with the file's text.
fn state(path: &Path) -> Result<String, ReadError> {
    let file = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    Ok(format!("{}/{}.{:09}/{}", file.size(), file.mtime(), file.mtime_nsec(), file.ino()))
}

/// A path that is not UTF-8, or has a newline, is not stored: its file is read each time.
fn to_line(path: &Path, state: &str, outline: &Outline) -> String {
    let aliases: Vec<String> = outline.aliases.iter().map(|alias| alias.join(".")).collect();
    let opaque = if outline.opaque { "opaque" } else { "" };
    format!("{state}\t{opaque}\t{}\t{}\t{}\n", outline.names.join(" "), aliases.join(" "), path.display())
}

fn from_line(line: &str) -> Option<(PathBuf, (String, Outline))> {
    let mut fields = line.splitn(5, '\t');
    let (state, opaque, names, aliases, path) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let outline = Outline {
        names: names.split_whitespace().map(str::to_string).collect(),
        aliases: aliases.split_whitespace().map(|alias| alias.split('.').map(str::to_string).collect()).collect(),
        opaque: opaque == "opaque",
    };
    Some((path.into(), (state.to_string(), outline)))
}
