// SPDX-License-Identifier: GPL-2.0-or-later

//! The kernel half of spile, embedded in the program: a single file is a complete installation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use include_dir::{Dir, DirEntry, include_dir};
use sha2::{Digest, Sha256};

use super::BuildError;
use super::make::write;

static RUNTIME: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../runtime-c");
static MAKEFILE: &[u8] = include_bytes!("../../../Makefile.kbuild");

fn collect(directory: &'static Dir, files: &mut BTreeMap<PathBuf, &'static [u8]>) {
    for entry in directory.entries() {
        match entry {
            DirEntry::Dir(inner) => collect(inner, files),
            DirEntry::File(file) => {
                files.insert(file.path().to_path_buf(), file.contents());
            }
        }
    }
}

/// Sources of the runtime and the Makefile that builds them.
pub(super) struct Runtime {
    /// Below `runtime-c/`.
    files: BTreeMap<PathBuf, Vec<u8>>,
    makefile: Vec<u8>,
}

impl Runtime {
    /// The embedded runtime, or that of a directory.
    pub(super) fn read(directory: Option<&Path>) -> Result<Runtime, BuildError> {
        let Some(directory) = directory else {
            let mut files = BTreeMap::new();
            collect(&RUNTIME, &mut files);
            let files = files.into_iter().filter(|(path, _)| is_source(path));
            let files = files.map(|(path, bytes)| (path, bytes.to_vec())).collect();
            return Ok(Runtime { files, makefile: MAKEFILE.to_vec() });
        };
        let failed = |path: &Path, error: std::io::Error| BuildError::Runtime {
            path: path.to_path_buf(),
            error: error.to_string(),
        };
        let mut files = BTreeMap::new();
        let mut open = vec![directory.to_path_buf()];
        while let Some(next) = open.pop() {
            for entry in std::fs::read_dir(&next).map_err(|error| failed(&next, error))? {
                let path = entry.map_err(|error| failed(&next, error))?.path();
                if path.is_dir() {
                    open.push(path);
                } else if let Ok(inner) = path.strip_prefix(directory)
                    && is_source(inner)
                {
                    files.insert(inner.to_path_buf(), std::fs::read(&path).map_err(|error| failed(&path, error))?);
                }
            }
        }
        let beside = directory.join("../Makefile.kbuild");
        let makefile = std::fs::read(&beside).map_err(|error| failed(&beside, error))?;
        Ok(Runtime { files, makefile })
    }

    /// Everything that its object depends on.
    pub(super) fn digest(&self) -> Sha256 {
        let mut hash = Sha256::new();
        hash.update(&self.makefile);
        for (path, bytes) in &self.files {
            hash.update(path.as_os_str().as_encoded_bytes());
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        hash
    }

    /// A file below `runtime-c/`.
    pub(super) fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(Path::new(path)).map(Vec::as_slice)
    }

    /// Writes the headers that generated units include, and the linker's script, into `runtime-c/` of a directory.
    pub(super) fn unpack_headers(&self, directory: &Path) -> Result<(), BuildError> {
        let headers = self
            .files
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "h" || extension == "lds"));
        for (path, bytes) in headers {
            write(&directory.join("runtime-c").join(path), bytes)?;
        }
        Ok(())
    }

    /// Writes `Kbuild` and `runtime-c/` into a directory.
    pub(super) fn unpack(&self, directory: &Path) -> Result<(), BuildError> {
        write(&directory.join("Kbuild"), &self.makefile)?;
        for (path, bytes) in &self.files {
            write(&directory.join("runtime-c").join(path), bytes)?;
        }
        Ok(())
    }
}

/// C text and the linker's script, without the Rust half of the ABI and tests.
fn is_source(path: &Path) -> bool {
    let c = path.extension().is_some_and(|extension| extension == "c" || extension == "h" || extension == "lds");
    c && !path.starts_with("tests") && !path.starts_with("abi/tests")
}
