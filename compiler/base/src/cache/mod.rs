// SPDX-License-Identifier: GPL-2.0-or-later

//! The cache across runs: one directory and one format for everything that is expensive to make.
//!
//! An entry ([`Entry`]) is a file `KIND/KEY`: a SHA-256, a one-line description and named parts. The key is a hash of
//! all inputs, so an entry is never changed, only found or not. It is written to a temporary file and renamed, so a
//! crash leaves no partial entry, and verified when read, so a damaged one is made again.
//!
//! A cache that cannot be used (no home, a read-only or full disk, a directory that others can write to, or one above
//! or below it) only costs time; the reason is in [`Cache::take_notices`].

mod beside;
mod bound;
mod entry;
mod inputs;
mod lock;
mod place;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::unfinished::NewFile;

pub use bound::{CacheEntry, size_text};
pub use entry::{Entry, FILE_PART, Mapped, file_in};
pub use inputs::Inputs;
pub use lock::Lock;
pub use place::{DEFAULT_LIMIT, Settings, check_scratch_parent};

/// The kind of an entry; each has its own directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// spile's runtime compiled for one kernel, and the recipe for modules of that kernel.
    Runtime,
    /// The object of a script's embedded C.
    Embedded,
    /// A finished module.
    Module,
    /// Results of searching debug information.
    Index,
    /// Names that library scripts may define.
    Library,
    /// A fetched file with debug information.
    Debug,
    /// The saved state of a guest that has booted; its memory is beside it.
    Guest,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 7] =
        [Kind::Runtime, Kind::Embedded, Kind::Module, Kind::Index, Kind::Library, Kind::Debug, Kind::Guest];

    /// Name of the directory, and in listings.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Runtime => "runtime",
            Kind::Embedded => "embedded",
            Kind::Module => "module",
            Kind::Index => "index",
            Kind::Library => "library",
            Kind::Debug => "debug",
            Kind::Guest => "guest",
        }
    }
}

/// Hash of all inputs of an entry, as 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The key for the data fed to `hash`.
    pub fn new(hash: Sha256) -> Key {
        let mut text = hex::encode(hash.finalize());
        text.truncate(32);
        Key(text)
    }

    /// The key as 32 hexadecimal digits.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Prefix of writers' temporary files.
const NEW: &str = ".new-";
/// The lock of an entry being made.
const LOCK: &str = ".lock";
/// Temporary files and locks older than this were left by killed processes.
const STRAY: Duration = Duration::from_secs(3600);

/// A user's cache; clones share it. Without a directory nothing is found and nothing is stored.
pub struct Cache {
    /// None: no cache.
    directory: Option<PathBuf>,
    /// Kinds that are disabled because another user can write to their directory.
    refused: Vec<Kind>,
    /// Maximum total size of entries in bytes.
    limit: u64,
    /// Entries are written but not read.
    poisoned: bool,
    /// Entries are read but not written.
    read_only: bool,
    notices: Mutex<Vec<String>>,
    /// Prints a line at once.
    say: fn(&str),
}

impl Cache {
    /// Opens the cache in the directory of `settings`, creating it if needed. Reasons why it cannot be used are in
    /// [`Cache::take_notices`].
    pub fn open(settings: &Settings) -> Cache {
        let place::UsableCache { directory, refused, notices } = place::usable(settings);
        let notices = Mutex::new(notices);
        Cache {
            directory,
            refused,
            limit: settings.limit,
            poisoned: settings.poisoned,
            read_only: false,
            notices,
            say: |_| {},
        }
    }

    /// The same for a process that writes nothing: entries are found, and none is stored.
    pub fn open_read_only(settings: &Settings) -> Cache {
        let is_there = settings.directory.as_ref().is_some_and(|directory| directory.is_dir());
        if is_there { Cache { read_only: true, ..Cache::open(settings) } } else { Cache::none() }
    }

    /// A disabled cache.
    pub fn none() -> Cache {
        Cache {
            directory: None,
            refused: Vec::new(),
            limit: 0,
            poisoned: false,
            read_only: false,
            notices: Mutex::default(),
            say: |_| {},
        }
    }

    /// With a function that prints a line at once: what another process is waited for.
    pub fn saying(self, say: fn(&str)) -> Cache {
        Cache { say, ..self }
    }

    /// Its directory; None: no cache.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Reasons why the cache could not be used since the last call, a sentence each.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices())
    }

    /// The entry, if it exists and is undamaged. A damaged one is removed.
    pub fn get(&self, kind: Kind, key: &Key) -> Option<Entry> {
        let path = self.path(kind, key).filter(|_| !self.poisoned)?;
        let file = self.open_entry(&path)?;
        // Eviction removes the least recently used: update the time.
        let _ = file.set_modified(SystemTime::now());
        let entry = entry::read(file);
        if entry.is_none() {
            self.notice(format!("{} was damaged, and is made again", path.display()));
            self.remove(&path);
        }
        entry
    }

    /// Maps one part of an entry, if it exists and `whole` accepts it. `whole` replaces the entry's own check, because
    /// what is mapped is large and only partly read. A damaged entry is removed.
    pub fn map(&self, kind: Kind, key: &Key, part: &str, whole: impl Fn(&Mapped) -> bool) -> Option<Mapped> {
        let path = self.path(kind, key).filter(|_| !self.poisoned)?;
        let file = self.open_entry(&path)?;
        let _ = file.set_modified(SystemTime::now());
        let mapped = entry::map(&file, part).filter(|mapped| whole(mapped));
        if mapped.is_none() {
            self.notice(format!("{} was damaged, and is made again", path.display()));
            self.remove(&path);
        }
        mapped
    }

    /// Opens an entry's file. One that another user may have created, while others could write, is removed.
    fn open_entry(&self, path: &Path) -> Option<File> {
        let why = match OpenOptions::new()
            .read(true)
            .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
            .open(path)
        {
            Ok(file) => match file.metadata() {
                Ok(metadata) if metadata.is_file() => match place::is_ours(&metadata) {
                    Ok(()) => return Some(file),
                    Err(why) => why,
                },
                _ => "it is no regular file".to_string(),
            },
            Err(error) if error.raw_os_error() == Some(nix::libc::ELOOP) => "it is a symbolic link".to_string(),
            Err(_) => return None,
        };
        self.notice(format!("{} is not used: {why}; it is made again", path.display()));
        self.remove(path);
        None
    }

    fn remove(&self, path: &Path) {
        if !self.read_only {
            let _ = beside::remove_both(path);
        }
    }

    /// Stores an entry, then enforces the size limit. True if it was stored.
    pub fn put(&self, kind: Kind, key: &Key, entry: &Entry) -> bool {
        let Some(path) = self.path(kind, key).filter(|_| !self.read_only) else { return false };
        match write(&path, entry) {
            Ok(()) => {
                self.keep_bound(&path);
                true
            }
            Err(error) => {
                self.notice(format!("{} cannot be written ({error}): working without", path.display()));
                false
            }
        }
    }

    /// Stores an entry with a single file part ([`FILE_PART`]), written by `fill`, that is too large for memory.
    /// Nothing is stored if `fill` fails or `check` rejects the written entry.
    pub fn put_streamed(
        &self,
        kind: Kind,
        key: &Key,
        about: &str,
        fill: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
        check: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let path = self.path(kind, key).filter(|_| !self.read_only);
        let path = path.ok_or_else(|| std::io::Error::other("there is no cache to write to"))?;
        let directory = path.parent().unwrap_or(Path::new("."));
        make_directory(directory)?;
        let mut file = NewFile::in_directory(directory, NEW)?;
        entry::write_streamed(file.file(), about, fill)?;
        check(file.path())?;
        file.persist(&path)?;
        self.keep_bound(&path);
        Ok(())
    }

    /// Whether there is an entry with a file part; updates its time of use. The caller checks the contents.
    pub fn use_file(&self, kind: Kind, key: &Key) -> bool {
        let file = self.path(kind, key).filter(|_| !self.poisoned).and_then(|path| self.open_entry(&path));
        let file = file.filter(|file| entry::map(file, FILE_PART).is_some());
        file.is_some_and(|file| file.set_modified(SystemTime::now()).is_ok() || file.metadata().is_ok())
    }

    /// Held while an entry, `what`, is made, so that of several processes that need it one makes it and the others wait. None: the
    /// lock is not available, or whoever has it makes no progress, and several may do the same work.
    pub fn lock(&self, kind: Kind, key: &Key, what: &str) -> Option<Lock> {
        let path = self.path(kind, key).filter(|_| !self.read_only)?.with_extension(&LOCK[1..]);
        make_directory(path.parent()?).ok()?;
        lock::take(path, what, self.say, &mut || std::thread::sleep(lock::PAUSE))
    }

    /// `KIND/KEY`.
    pub fn path(&self, kind: Kind, key: &Key) -> Option<PathBuf> {
        let directory = self.directory.as_ref().filter(|_| !self.refused.contains(&kind))?;
        Some(directory.join(kind.name()).join(key.text()))
    }

    /// Ignores poisoning: the data is always consistent.
    fn notices(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.notices.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn notice(&self, text: String) {
        self.notices().push(text);
    }
}

/// Creates a directory that only its owner can write to, with its parents.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700).create(directory)
}

fn write(path: &Path, entry: &Entry) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    make_directory(directory)?;
    let mut file = NewFile::in_directory(directory, NEW)?;
    entry.write(file.file())?;
    file.persist(path)
}

#[cfg(test)]
mod tests;
