// SPDX-License-Identifier: GPL-2.0-or-later

//! A large file beside an entry, `KEY.memory`, which is used in place and not read into memory: it may have holes, and counts as much
//! as it takes on the disk.
//!
//! The entry says which file it is and when that was last changed, so one that is missing, damaged or another's is noticed without
//! reading it. It comes and goes with its entry.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Cache, Entry, Key, Kind, NEW, make_directory, place};
use crate::unfinished::NewFile;

/// The end of its name.
pub(super) const BESIDE: &str = ".memory";
/// The part of an entry that says which file is beside it.
const IDENTITY: &str = "beside";

impl Cache {
    /// A file that is to be beside an entry, with a temporary name; what a killed process has left of it goes. The caller has the
    /// entry's lock. Errors: those of the system; there is no cache to write to.
    pub fn new_beside(&self, kind: Kind, key: &Key) -> std::io::Result<NewFile> {
        let path = self.path(kind, key).filter(|_| !self.read_only);
        let path = path.ok_or_else(|| std::io::Error::other("there is no cache to write to"))?;
        let directory = path.parent().unwrap_or(Path::new("."));
        make_directory(directory)?;
        let prefix = format!("{NEW}{}-", key.text());
        for stray in std::fs::read_dir(directory)?.flatten() {
            if stray.file_name().to_string_lossy().starts_with(&prefix) {
                let _ = std::fs::remove_file(stray.path());
            }
        }
        NewFile::in_directory(directory, &prefix)
    }

    /// Stores an entry with a file beside it, which nothing changes any more, in place of what there was. True if it was stored.
    pub fn put_beside(&self, kind: Kind, key: &Key, entry: Entry, mut file: NewFile) -> bool {
        let Some(path) = self.path(kind, key).filter(|_| !self.read_only) else { return false };
        // What was mapped has got the time of the last write to it now.
        let stored = file.file().set_modified(SystemTime::now()).and_then(|()| {
            let identity = identity(file.file())?;
            self.discard(kind, key);
            file.persist(&beside(&path))?;
            Ok(identity)
        });
        match stored {
            Ok(identity) => {
                let stored = self.put(kind, key, &entry.with(IDENTITY, identity));
                if !stored {
                    let _ = std::fs::remove_file(beside(&path));
                }
                stored
            }
            Err(error) => {
                self.notice(format!("{} cannot be written ({error}): working without", path.display()));
                false
            }
        }
    }

    /// The file beside an entry, for reading and writing: None if it is not the one that was stored, or was changed.
    pub fn open_beside(&self, kind: Kind, key: &Key, entry: &Entry) -> Option<File> {
        let path = beside(&self.path(kind, key)?);
        let file = OpenOptions::new().read(true).write(true).custom_flags(nix::libc::O_NOFOLLOW).open(path).ok()?;
        let metadata = file.metadata().ok()?;
        let is_own = metadata.is_file() && place::is_ours(&metadata).is_ok();
        (is_own && entry.text(IDENTITY) == Some(identity(&file).ok()?.as_str())).then_some(file)
    }

    /// Removes an entry and what is beside it.
    pub fn discard(&self, kind: Kind, key: &Key) {
        if let Some(path) = self.path(kind, key) {
            self.remove(&path);
        }
    }
}

/// The path of what is beside an entry.
pub(super) fn beside(entry: &Path) -> PathBuf {
    let mut path = entry.as_os_str().to_os_string();
    path.push(BESIDE);
    path.into()
}

/// Bytes that it takes on the disk; 0: there is none.
pub(super) fn size_beside(entry: &Path) -> u64 {
    std::fs::symlink_metadata(beside(entry)).map_or(0, |metadata| metadata.blocks() * 512)
}

/// Removes an entry's file and what is beside it.
pub(super) fn remove_both(entry: &Path) -> std::io::Result<()> {
    // In this order: one without an entry is a stray, which goes later.
    let removed = std::fs::remove_file(entry);
    let _ = std::fs::remove_file(beside(entry));
    removed
}

fn identity(file: &File) -> std::io::Result<String> {
    let metadata = file.metadata()?;
    let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.size());
    Ok(format!("{device}:{inode} {size} {}.{:09}", metadata.mtime(), metadata.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use sha2::{Digest, Sha256};

    use super::*;
    use crate::cache::Settings;

    const KIND: Kind = Kind::Guest;

    fn key(text: &str) -> Key {
        Key::new(Sha256::new().chain_update(text))
    }

    fn stored(cache: &Cache, key: &Key) -> PathBuf {
        let mut file = cache.new_beside(KIND, key).unwrap();
        file.file().set_len(1 << 30).unwrap();
        file.file().write_all_at(&[1; 8192], 4096).unwrap();
        assert!(cache.put_beside(KIND, key, Entry::new("a guest").with("state", "s"), file));
        beside(&cache.path(KIND, key).unwrap())
    }

    #[test]
    fn it_comes_and_goes_with_its_entry() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings { directory: Some(directory.path().join("cache")), limit: 1 << 20, poisoned: false };
        let cache = Cache::open(&settings);
        let one = key("one");
        let path = stored(&cache, &one);
        let entry = cache.get(KIND, &one).unwrap();
        assert!(cache.open_beside(KIND, &one, &entry).is_some());
        // Holes do not count.
        assert!((8192..65536).contains(&cache.size()), "{}", cache.size());
        // One that was changed, one that is another, and none.
        OpenOptions::new().write(true).open(&path).unwrap().write_all_at(b"x", 0).unwrap();
        assert!(cache.open_beside(KIND, &one, &entry).is_none());
        let left = path.with_file_name(format!("{NEW}{}-x", one.text()));
        std::fs::write(&left, "of a killed process").unwrap();
        stored(&cache, &one);
        assert!(!left.exists() && cache.open_beside(KIND, &one, &entry).is_none());
        let entry = cache.get(KIND, &one).unwrap();
        assert!(cache.open_beside(KIND, &one, &entry).is_some());
        std::fs::remove_file(&path).unwrap();
        assert!(cache.open_beside(KIND, &one, &entry).is_none());

        stored(&cache, &one);
        assert_eq!(cache.clear().0, 1);
        assert!(!path.exists());
        cache.put(Kind::Index, &key("other"), &Entry::new("of another kind"));
        let [two, three] = ["two", "three"].map(|text| (key(text), stored(&cache, &key(text))));
        cache.get(KIND, &two.0).unwrap();
        cache.keep_part(KIND, cache.size() / 2 + 200);
        assert!(two.1.exists() && !three.1.exists() && cache.list().len() == 2);
    }

    #[test]
    fn one_without_an_entry_goes_after_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings { directory: Some(directory.path().join("cache")), limit: 1 << 20, poisoned: false };
        let cache = Cache::open(&settings);
        let path = stored(&cache, &key("one"));
        std::fs::remove_file(cache.path(KIND, &key("one")).unwrap()).unwrap();
        cache.prune(0);
        assert!(path.exists());
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - crate::cache::STRAY * 2).unwrap();
        cache.prune(0);
        assert!(!path.exists());
    }
}
