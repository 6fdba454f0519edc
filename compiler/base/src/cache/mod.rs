// SPDX-License-Identifier: GPL-2.0-or-later

//! What is kept from one run to the next: one directory, one format, for everything that is cheaper to keep than to make.
//!
//! An entry ([`Entry`]) is a file `KIND/KEY`: named parts behind their SHA-256 and one line that says what it is. The key is
//! a hash of everything that went into it, so an entry is never changed, only found or not. It is written beside and
//! renamed, so that a crash leaves nothing half-written, and checked when it is read, so that a damaged one is made again.
//!
//! A cache that cannot be used (no home, a read-only or full disk, a directory that others can write, or one above or below it) costs time, nothing
//! else: the reason is among [`Cache::take_notices`].

mod bound;
mod entry;
mod inputs;
mod place;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};

pub use bound::{Listed, size_text};
pub use entry::{Entry, FILE_PART, Mapped, file_in};
pub use inputs::Inputs;
pub use place::{DEFAULT_LIMIT, Settings, fit_for_scratch};

/// What an entry is; each kind has a directory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// spile's kernel half compiled for one kernel, and how Kbuild makes modules for it.
    Runtime,
    /// The object of a script's own C.
    Embedded,
    /// A finished module.
    Module,
    /// What debug information was found to hold.
    Index,
    /// What library scripts may define.
    Library,
    /// A file with debug information that was fetched.
    Debug,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 6] = [Kind::Runtime, Kind::Embedded, Kind::Module, Kind::Index, Kind::Library, Kind::Debug];

    /// Name of the directory, and in listings.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Runtime => "runtime",
            Kind::Embedded => "embedded",
            Kind::Module => "module",
            Kind::Index => "index",
            Kind::Library => "library",
            Kind::Debug => "debug",
        }
    }
}

/// Hash of everything that an entry depends on, as 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The key for what `hash` was fed with.
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

/// Temporary files of writers begin so.
const NEW: &str = ".new-";
/// The lock of an entry that is being made.
const LOCK: &str = ".lock";
/// What a writer or a lock's holder that was killed left is older than this.
const STRAY: Duration = Duration::from_secs(3600);

/// A user's cache; clones share it. Without a directory nothing is found and nothing is stored.
pub struct Cache {
    /// None: there is none.
    directory: Option<PathBuf>,
    /// Kinds of which nothing is kept: somebody else can write in their directory.
    refused: Vec<Kind>,
    /// Bytes that all entries together may have.
    limit: u64,
    /// Entries are written and not read.
    poisoned: bool,
    notices: Mutex<Vec<String>>,
}

impl Cache {
    /// Opens the cache in the directory of `settings`, and makes it if it is not there. What keeps it from being used is in [`Cache::take_notices`].
    pub fn open(settings: &Settings) -> Cache {
        let place::Usable { directory, refused, notices } = place::usable(settings);
        let notices = Mutex::new(notices);
        Cache { directory, refused, limit: settings.limit, poisoned: settings.poisoned, notices }
    }

    /// Keeps nothing.
    pub fn none() -> Cache {
        Cache { directory: None, refused: Vec::new(), limit: 0, poisoned: false, notices: Mutex::default() }
    }

    /// Where it is; None: there is no cache.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// What kept the cache from being used since the last call, a sentence each.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices())
    }

    /// The entry, if it is there and undamaged. A damaged one is removed.
    pub fn get(&self, kind: Kind, key: &Key) -> Option<Entry> {
        let path = self.path(kind, key).filter(|_| !self.poisoned)?;
        let file = self.open_entry(&path)?;
        // The oldest go first when the bound is reached: using one makes it young.
        let _ = file.set_modified(SystemTime::now());
        let entry = entry::read(file);
        if entry.is_none() {
            self.notice(format!("{} was damaged, and is made again", path.display()));
            let _ = std::fs::remove_file(&path);
        }
        entry
    }

    /// One part of an entry as it lies in the file, if it is there and `whole`, which stands for the entry's own check: what
    /// is mapped is large, and read only in part. A damaged entry is removed.
    pub fn map(&self, kind: Kind, key: &Key, part: &str, whole: impl Fn(&[u8]) -> bool) -> Option<Mapped> {
        let path = self.path(kind, key).filter(|_| !self.poisoned)?;
        let file = self.open_entry(&path)?;
        let _ = file.set_modified(SystemTime::now());
        let mapped = entry::map(&file, part).filter(|mapped| whole(mapped));
        if mapped.is_none() {
            self.notice(format!("{} was damaged, and is made again", path.display()));
            let _ = std::fs::remove_file(&path);
        }
        mapped
    }

    /// An entry's file. One that somebody else may have put there, while others could write, is removed.
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
        let _ = std::fs::remove_file(path);
        None
    }

    /// Keeps an entry, and then the bound. True: it will be found.
    pub fn put(&self, kind: Kind, key: &Key, entry: &Entry) -> bool {
        let Some(path) = self.path(kind, key) else { return false };
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

    /// Keeps an entry whose only part is a file ([`FILE_PART`]) that `fill` writes: one too large to have in memory. Nothing is
    /// kept of what fails, or of what `check` refuses of the written entry.
    pub fn put_streamed(
        &self,
        kind: Kind,
        key: &Key,
        about: &str,
        fill: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
        check: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let path = self.path(kind, key).ok_or_else(|| std::io::Error::other("there is no cache"))?;
        let directory = path.parent().unwrap_or(Path::new("."));
        make_directory(directory)?;
        let mut file = tempfile::Builder::new().prefix(NEW).tempfile_in(directory)?;
        entry::write_streamed(file.as_file_mut(), about, fill)?;
        check(file.path())?;
        file.persist(&path).map_err(|error| error.error)?;
        self.keep_bound(&path);
        Ok(())
    }

    /// Whether there is an entry whose part is a file; it is made young. Its contents are for whoever opens it to judge.
    pub fn use_file(&self, kind: Kind, key: &Key) -> bool {
        let file = self.path(kind, key).filter(|_| !self.poisoned).and_then(|path| self.open_entry(&path));
        let file = file.filter(|file| entry::map(file, FILE_PART).is_some());
        file.is_some_and(|file| file.set_modified(SystemTime::now()).is_ok() || file.metadata().is_ok())
    }

    /// Held while an entry is made, so that of several that need it one makes it and the others wait. None: no lock is to
    /// be had, and several may do the same work.
    pub fn lock(&self, kind: Kind, key: &Key) -> Option<Lock> {
        let path = self.path(kind, key)?.with_extension(&LOCK[1..]);
        make_directory(path.parent()?).ok()?;
        loop {
            let lock = Flock::lock(File::create(&path).ok()?, FlockArg::LockExclusive).ok()?;
            // Whoever held it before may have removed the file that is locked now.
            let same =
                std::fs::metadata(&path).is_ok_and(|there| lock.metadata().is_ok_and(|own| own.ino() == there.ino()));
            if same {
                return Some(Lock { path, _held: lock });
            }
        }
    }

    /// `KIND/KEY`.
    pub fn path(&self, kind: Kind, key: &Key) -> Option<PathBuf> {
        let directory = self.directory.as_ref().filter(|_| !self.refused.contains(&kind))?;
        Some(directory.join(kind.name()).join(key.text()))
    }

    /// A thread that panicked left them whole.
    fn notices(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.notices.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn notice(&self, text: String) {
        self.notices().push(text);
    }
}

/// An entry is being made; the file goes with its holder.
pub struct Lock {
    path: PathBuf,
    _held: Flock<File>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Makes a directory that its owner alone can write, with those above it.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700).create(directory)
}

fn write(path: &Path, entry: &Entry) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    make_directory(directory)?;
    let mut file = tempfile::Builder::new().prefix(NEW).tempfile_in(directory)?;
    entry.write(file.as_file_mut())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests;
