// SPDX-License-Identifier: GPL-2.0-or-later

//! Bounds the size of the cache and lists its entries.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::beside::{BESIDE, remove_both, size_beside};
use super::{Cache, Kind, LOCK, NEW, STRAY, entry};

/// One entry, as `--cache show` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheEntry {
    /// The kind of entry.
    pub kind: Kind,
    /// Its file.
    pub path: PathBuf,
    /// Bytes on the disk, with what is beside it.
    pub size: u64,
    /// Last use.
    pub used: SystemTime,
    /// The writer's description, for people.
    pub about: String,
}

struct CacheFile {
    kind: Kind,
    path: PathBuf,
    size: u64,
    used: SystemTime,
}

impl Cache {
    /// All entries, most recently used first.
    pub fn list(&self) -> Vec<CacheEntry> {
        let about = |path: &Path| {
            File::open(path).ok().and_then(entry::read_about).unwrap_or_else(|| "not an entry of this version".into())
        };
        let mut listed: Vec<CacheEntry> = self
            .entries()
            .into_iter()
            .map(|found| CacheEntry {
                about: about(&found.path),
                kind: found.kind,
                path: found.path,
                size: found.size,
                used: found.used,
            })
            .collect();
        listed.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.path.cmp(&b.path)));
        listed
    }

    /// Total size of all entries in bytes.
    pub fn size(&self) -> u64 {
        self.entries().iter().map(|found| found.size).sum()
    }

    /// The size limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Removes the least recently used entries until at most `limit` bytes are left, and the temporary files of killed
    /// writers. Returns the number of removed entries and their bytes.
    pub fn prune(&self, limit: u64) -> (usize, u64) {
        self.remove_strays();
        self.remove_oldest(limit, None)
    }

    /// Removes all entries; other files in the directory stay.
    pub fn clear(&self) -> (usize, u64) {
        let removed = self.prune(0);
        for kind in Kind::ALL {
            if let Some(directory) = &self.directory {
                let _ = std::fs::remove_dir(directory.join(kind.name()));
            }
        }
        removed
    }

    /// Called after an entry was written: if the limit is exceeded, frees a tenth of it, so that not every run has to.
    pub(super) fn keep_bound(&self, written: &Path) {
        if self.size() > self.limit {
            self.remove_strays();
            self.remove_oldest(self.limit / 10 * 9, Some(written));
        }
    }

    fn remove_oldest(&self, limit: u64, keep: Option<&Path>) -> (usize, u64) {
        let mut entries = self.entries();
        entries.sort_by_key(|found| found.used);
        let mut size: u64 = entries.iter().map(|found| found.size).sum();
        let mut removed = (0, 0);
        for found in entries {
            if size <= limit {
                break;
            }
            if keep == Some(found.path.as_path()) {
                continue;
            }
            if remove_both(&found.path).is_ok() {
                size -= found.size;
                removed = (removed.0 + 1, removed.1 + found.size);
            }
        }
        removed
    }

    /// Removes the least recently used entries of a kind, so that those that stay take at most `bytes`.
    pub fn keep_part(&self, kind: Kind, bytes: u64) {
        let mut kept = 0;
        for entry in self.list().into_iter().filter(|entry| entry.kind == kind) {
            kept += entry.size;
            if kept > bytes {
                self.remove(&entry.path);
            }
        }
    }

    fn remove_strays(&self) {
        for (_, path, name) in self.files() {
            let alone = |entry: &str| !path.with_file_name(entry).exists();
            let stray = name.starts_with(NEW) || name.ends_with(LOCK) || name.strip_suffix(BESIDE).is_some_and(alone);
            let used = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
            let old = used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > STRAY));
            if stray && old {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn entries(&self) -> Vec<CacheFile> {
        let entry = |name: &str| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let found = self.files().into_iter().filter(|(_, _, name)| entry(name)).filter_map(|(kind, path, _)| {
            let metadata = std::fs::metadata(&path).ok()?;
            let size = metadata.len() + size_beside(&path);
            Some(CacheFile { kind, path, size, used: metadata.modified().ok()? })
        });
        found.collect()
    }

    fn files(&self) -> Vec<(Kind, PathBuf, String)> {
        let Some(directory) = &self.directory else { return Vec::new() };
        let mut files = Vec::new();
        for kind in Kind::ALL.into_iter().filter(|kind| !self.refused.contains(kind)) {
            let entries = std::fs::read_dir(directory.join(kind.name())).into_iter().flatten().flatten();
            files.extend(entries.map(|entry| (kind, entry.path(), entry.file_name().to_string_lossy().into_owned())));
        }
        files
    }
}

/// `927.6 KiB`, for people.
pub fn size_text(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes} bytes"),
    }
}
