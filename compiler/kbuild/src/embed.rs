// SPDX-License-Identifier: GPL-2.0-or-later

//! The kernel half of spile, embedded in the program: a single file is a complete installation.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use include_dir::{Dir, DirEntry, include_dir};
use sha2::{Digest, Sha256};

use super::make::write;
use super::{BuildError, declarations};

static RUNTIME: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../runtime-c");
static MAKEFILE: &[u8] = include_bytes!("../../../Makefile.kbuild");
/// Of the two, by build.rs: each run needs it, and would need a millisecond for it.
const DIGEST: &str = env!("SPILE_RUNTIME_DIGEST");

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
    files: BTreeMap<PathBuf, Cow<'static, [u8]>>,
    makefile: Vec<u8>,
    is_embedded: bool,
}

impl Runtime {
    /// The embedded runtime, or that of a directory.
    pub(super) fn read(directory: Option<&Path>) -> Result<Runtime, BuildError> {
        let Some(directory) = directory else {
            let mut files = BTreeMap::new();
            collect(&RUNTIME, &mut files);
            let files = files.into_iter().filter(|(path, _)| is_source(path));
            let files = files.map(|(path, bytes)| (path, Cow::Borrowed(bytes))).collect();
            return Ok(Runtime { files, makefile: MAKEFILE.to_vec(), is_embedded: true });
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
                    let bytes = std::fs::read(&path).map_err(|error| failed(&path, error))?;
                    files.insert(inner.to_path_buf(), bytes.into());
                }
            }
        }
        let beside = directory.join("../Makefile.kbuild");
        let makefile = std::fs::read(&beside).map_err(|error| failed(&beside, error))?;
        Ok(Runtime { files, makefile, is_embedded: false })
    }

    /// The [`digest`](Runtime::digest) of the embedded runtime, or of that of a directory.
    pub(super) fn digest_of(directory: Option<&Path>) -> Result<Sha256, BuildError> {
        Ok(match directory {
            None => Sha256::new_with_prefix(DIGEST),
            Some(_) => Runtime::read(directory)?.digest(),
        })
    }

    /// Everything that its object depends on.
    pub(super) fn digest(&self) -> Sha256 {
        if self.is_embedded {
            return Sha256::new_with_prefix(DIGEST);
        }
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
        self.files.get(Path::new(path)).map(|bytes| &**bytes)
    }

    /// Writes what compiling `units`, the text of C files, and linking them takes into `runtime-c/` of a directory: the
    /// headers that they include by `#include "NAME"`, directly or not, and the linker's script. Names that are no
    /// files of the runtime are left to the C compiler.
    pub(super) fn unpack_for(&self, units: &[&[u8]], directory: &Path) -> Result<(), BuildError> {
        for (path, bytes) in self.needed(units) {
            write(&directory.join("runtime-c").join(path), bytes)?;
        }
        Ok(())
    }

    /// The same with headers that have only what `unit` uses of them.
    pub(super) fn unpack_used(&self, unit: &str, directory: &Path) -> Result<(), BuildError> {
        let needed = self.needed(&[unit.as_bytes()]);
        let headers = needed.iter().filter(|(path, _)| path.extension().is_some_and(|extension| extension == "h"));
        let texts: Vec<&str> = headers.map(|(_, bytes)| std::str::from_utf8(bytes).unwrap_or_default()).collect();
        let mut used = declarations::used(&texts, unit).into_iter();
        for (path, bytes) in needed {
            let is_header = path.extension().is_some_and(|extension| extension == "h");
            let text = if is_header { used.next() } else { None };
            write(&directory.join("runtime-c").join(path), text.as_ref().map_or(bytes, |text| text.as_bytes()))?;
        }
        Ok(())
    }

    /// What [`unpack_for`](Runtime::unpack_for) writes.
    fn needed<'r>(&'r self, units: &[&'r [u8]]) -> BTreeMap<&'r Path, &'r [u8]> {
        let is_script = |path: &Path| path.extension().is_some_and(|extension| extension == "lds");
        let scripts = self.files.iter().filter(|(path, _)| is_script(path));
        let mut needed: BTreeMap<&Path, &[u8]> = scripts.map(|(path, bytes)| (path.as_path(), &**bytes)).collect();
        let mut open: Vec<(&Path, &[u8])> = units.iter().map(|unit| (Path::new(""), *unit)).collect();
        while let Some((beside, text)) = open.pop() {
            for name in included(text) {
                let beside = self.files.get_key_value(&beside.join(name));
                let Some((path, bytes)) = beside.or_else(|| self.files.get_key_value(Path::new(name))) else {
                    continue;
                };
                if needed.insert(path, &**bytes).is_none() {
                    open.push((path.parent().unwrap_or(Path::new("")), bytes));
                }
            }
        }
        needed
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

/// The names of `#include "NAME"`. Conditions are not evaluated: these are all that may be included.
fn included(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = std::str::from_utf8(line).ok()?.trim_start().strip_prefix('#')?;
        let name = line.trim_start().strip_prefix("include")?.trim_start().strip_prefix('"')?;
        name.split_once('"').map(|(name, _)| name)
    })
}

/// C text, the linker's script and that of the compile probes, without the Rust half of the ABI and tests.
fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["c", "h", "lds", "sh"].contains(&extension))
        && !path.starts_with("tests")
        && !path.starts_with("abi/tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(unit: &str) -> Vec<String> {
        let files = [
            ("a.h", "# include \"sub/b.h\"\n"),
            ("sub/b.h", "#include \"c.h\"\n#include \"d.h\"\n#include <linux/list.h>\n"),
            ("sub/c.h", "#include \"b.h\"\n#include \"a.h\"\n"),
            ("d.h", ""),
            ("other.h", ""),
            ("runtime.c", "#include \"other.h\"\n"),
            ("text.lds", ""),
        ];
        let files = files.map(|(path, text)| (PathBuf::from(path), Cow::Borrowed(text.as_bytes()))).into();
        let runtime = Runtime { files, makefile: Vec::new(), is_embedded: false };
        let directory = tempfile::tempdir().unwrap();
        runtime.unpack_for(&[unit.as_bytes()], directory.path()).unwrap();
        let top = directory.path().join("runtime-c");
        let mut found = Vec::new();
        let mut open = vec![top.clone()];
        while let Some(next) = open.pop() {
            for entry in std::fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => open.push(path),
                    false => found.push(path.strip_prefix(&top).unwrap().display().to_string()),
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn only_the_headers_that_a_unit_includes_are_unpacked() {
        assert_eq!(unpacked("#include \"a.h\"\n"), ["a.h", "d.h", "sub/b.h", "sub/c.h", "text.lds"]);
        assert_eq!(unpacked("\t#include\t\"d.h\" /* d */\n#include \"none.h\"\n"), ["d.h", "text.lds"]);
        assert_eq!(unpacked("int a;\n"), ["text.lds"]);
    }
}
