//! The runtime's object, kept for each kernel: a directory of files named by what went into them.
//!
//! An entry is the object behind its SHA-256; it is written beside and renamed, so that a crash leaves nothing
//! half-written, and checked when it is read, so that a damaged one is built again. A cache that cannot be written costs
//! time, nothing else.

use std::fs::File;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};

use super::compiler::Compiler;
use super::embed::Runtime;
use super::{BuildError, Request, make};

pub struct Cache {
    /// None: there is no place for one.
    directory: Option<PathBuf>,
}

/// Bytes of a SHA-256.
const DIGEST: usize = 32;

impl Cache {
    /// In `$SPILE_CACHE`, else `$XDG_CACHE_HOME/spile`, else `~/.cache/spile`.
    pub fn open() -> Cache {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let directory = var("SPILE_CACHE")
            .or_else(|| Some(var("XDG_CACHE_HOME")?.join("spile")))
            .or_else(|| Some(var("HOME")?.join(".cache/spile")));
        Cache::at(directory)
    }

    /// In a directory that is made when it is needed.
    pub fn at(directory: Option<PathBuf>) -> Cache {
        let usable = |directory: &PathBuf| std::fs::create_dir_all(directory.join("runtime")).is_ok();
        Cache { directory: directory.filter(usable) }
    }

    /// `spile_plain.o` for the request's kernel: kept, or built now.
    pub(super) fn runtime_object(&self, request: &Request, runtime: &Runtime, compiler: &Compiler) -> Result<Vec<u8>, BuildError> {
        let Some(directory) = &self.directory else { return build(request, runtime, compiler) };
        let entry = directory.join("runtime").join(format!("{}.o", key(request, runtime, compiler)));
        if let Some(object) = read(&entry) {
            return Ok(object);
        }
        // Of several that need the same object one builds, the others wait for it.
        let lock = File::create(entry.with_extension("lock")).ok();
        let _held = lock.and_then(|file| Flock::lock(file, FlockArg::LockExclusive).ok());
        if let Some(object) = read(&entry) {
            return Ok(object);
        }
        let object = build(request, runtime, compiler)?;
        store(&entry, &object);
        Ok(object)
    }
}

/// Everything that the object depends on.
fn key(request: &Request, runtime: &Runtime, compiler: &Compiler) -> String {
    let mut hash = runtime.digest();
    hash.update(&request.release);
    hash.update(&compiler.command);
    hash.update(&compiler.version);
    for file in [".config", "Module.symvers", "include/generated/utsrelease.h"] {
        hash.update(std::fs::read(request.build_dir.join(file)).unwrap_or_default());
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn read(entry: &Path) -> Option<Vec<u8>> {
    let mut bytes = std::fs::read(entry).ok()?;
    let (digest, object) = bytes.split_at_checked(DIGEST)?;
    if Sha256::digest(object).as_slice() != digest {
        return None;
    }
    Some(bytes.split_off(DIGEST))
}

/// What cannot be stored (a full disk) is built again the next time.
fn store(entry: &Path, object: &[u8]) {
    let written = || -> std::io::Result<()> {
        let directory = entry.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        std::io::Write::write_all(&mut file, Sha256::digest(object).as_slice())?;
        std::io::Write::write_all(&mut file, object)?;
        file.persist(entry)?;
        Ok(())
    };
    let _ = written();
}

fn build(request: &Request, runtime: &Runtime, compiler: &Compiler) -> Result<Vec<u8>, BuildError> {
    let work = tempfile::Builder::new().prefix("spile-runtime").tempdir();
    let work = work.map_err(|error| BuildError::File { path: std::env::temp_dir(), error: error.to_string() })?;
    runtime.unpack(work.path())?;
    make::run(request, compiler, work.path(), &[], &["spile_plain.o"])?;
    let object = work.path().join("spile_plain.o");
    std::fs::read(&object).map_err(|error| BuildError::File { path: object, error: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_entry_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let entry = directory.path().join("x.o");
        store(&entry, b"object");
        assert_eq!(read(&entry).as_deref(), Some(&b"object"[..]));
        let mut bytes = std::fs::read(&entry).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&entry, &bytes).unwrap();
        assert_eq!(read(&entry), None);
        std::fs::write(&entry, b"short").unwrap();
        assert_eq!(read(&entry), None);
    }
}
