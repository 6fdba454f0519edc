// SPDX-License-Identifier: GPL-2.0-or-later

//! The files in which exceptions of a program's processes are thrown and caught: the program, its libraries, and those that
//! processes load for it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::kernel::Root;
use super::object::Object;
use super::program::{Programs, in_root_of_process};
use crate::Elf;
use crate::object::Unwinder;

/// Libraries that processes load when they need them, also if none of their files names them: glibc for the end of a thread.
const USUAL: [&str; 2] = ["libgcc_s.so.1", "libstdc++.so.6"];

impl Programs {
    /// Those of the processes that map the program or library; `pid`: of that process only. Files that cannot be read are left out.
    pub fn unwinders(&self, object: &Object, pid: Option<i64>) -> Vec<Unwinder> {
        let (mapped, described) = (&**object.mapped(), object.elf());
        let needed: BTreeSet<PathBuf> = self.libraries(object, pid, "*").unwrap_or_default().into_iter().collect();
        let usual = USUAL.iter().filter_map(|name| self.usual_library(object.path(), name, mapped.is_narrow()));
        let all: BTreeSet<PathBuf> = usual.chain(needed.iter().cloned()).collect();
        let others = all.iter().filter(|path| *path != object.path()).filter_map(|path| {
            let found = self.unwinder_at(path, mapped.is_narrow())?;
            Some(Unwinder { is_needed: needed.contains(path), ..found })
        });
        Unwinder::of(object.path(), mapped, described).into_iter().chain(others).collect()
    }

    /// That in the library at a path, which many programs may have; `None`: there is none, or the file is for others.
    fn unwinder_at(&self, path: &Path, narrow: bool) -> Option<Unwinder> {
        let key = (path.to_path_buf(), narrow);
        if let Some(known) = self.unwinders.borrow().get(&key) {
            return known.clone();
        }
        let elf = Elf::open_program(path).ok().filter(|elf| elf.is_narrow() == narrow);
        let found = elf.and_then(|elf| Unwinder::of(path, &elf, &elf));
        self.unwinders.borrow_mut().insert(key, found.clone());
        found
    }

    /// A library of the system that the program at `path` is of, for files of 32 bits (`narrow`) or of 64.
    fn usual_library(&self, path: &Path, name: &str, narrow: bool) -> Option<PathBuf> {
        let inside = in_root_of_process(path).map(|(root, _)| Root(Some(root)));
        self.library_in(&inside.unwrap_or_else(|| self.root()), name, narrow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::SearchOptions;
    use std::process::Command;

    fn unwinders(text: &str, options: &[&str], strip: &[&str]) -> (Vec<Unwinder>, PathBuf, tempfile::TempDir) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("program");
        std::fs::write(directory.path().join("text.cc"), text).expect("written");
        let mut gxx = Command::new("g++");
        let made = gxx.current_dir(directory.path()).args(["text.cc", "-o", "program"]).args(options).status();
        assert!(made.expect("g++ runs").success());
        if !strip.is_empty() {
            let made = Command::new("objcopy").args(strip).arg(&path).status();
            assert!(made.expect("objcopy runs").success());
        }
        let programs = Programs::new(SearchOptions::default());
        let object = programs.open(&path).expect("an ELF file");
        let found = programs.unwinders(&object, None);
        let looked = programs.looked().places;
        assert!(
            found.iter().all(|unwinder| unwinder.path == path || looked.iter().any(|place| is_at(place, unwinder)))
        );
        (found, path, directory)
    }

    /// What was looked at may be a link.
    fn is_at(place: &Path, unwinder: &Unwinder) -> bool {
        std::fs::canonicalize(place).is_ok_and(|place| place == unwinder.path)
    }

    fn file_names(found: &[Unwinder]) -> Vec<String> {
        let name = |unwinder: &Unwinder| unwinder.path.file_name().expect("one").to_string_lossy().into_owned();
        found.iter().map(name).collect()
    }

    const CATCHES_ONE: &str = "int main() { try { throw 1; } catch (int) { return 0; } }";

    #[test]
    fn of_a_program_with_libraries() {
        let (found, ..) = unwinders(CATCHES_ONE, &[], &[]);
        assert!(file_names(&found).concat().starts_with("libgcc_s.so.1libstdc++.so.6"), "{found:?}");
        assert!(found.iter().all(|unwinder| unwinder.is_needed && !unwinder.build_id.is_empty()));
        assert_eq!(found.iter().map(|unwinder| unwinder.searches.len()).collect::<Vec<_>>(), [4, 0]);
        assert_eq!(found.iter().map(|unwinder| unwinder.catches.len()).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn of_a_program_in_c() {
        let (found, ..) = unwinders("int main() { return 0; }", &["-Wl,--as-needed"], &[]);
        assert!(!found.iter().any(|unwinder| unwinder.is_needed), "{found:?}");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn of_a_static_program() {
        let (found, path, _directory) = unwinders(CATCHES_ONE, &["-static"], &[]);
        let own = found.first().expect("one");
        assert_eq!((&own.path, own.is_needed, own.searches.len(), own.catches.len()), (&path, true, 4, 1));
        let elf = Elf::open_program(&path).expect("an ELF file");
        let search = elf.symbol_address("_Unwind_RaiseException").expect("read").expect("there");
        assert!(own.searches.contains(&elf.file_offset(search.offset).expect("in the file")));
        let (found, path, _directory) = unwinders(CATCHES_ONE, &["-static"], &["--strip-all"]);
        assert!(found.iter().all(|unwinder| unwinder.path != path));
    }

    #[test]
    fn names_of_rust() {
        let text = "extern \"C\" void _RNvCsabc_7___rustc20___rust_panic_cleanup() {} \
            extern \"C\" void not_rust_panic_cleanup() {} int main() { return 0; }";
        let (found, path, _directory) = unwinders(text, &[], &[]);
        let own = found.first().expect("one");
        assert_eq!((&own.path, own.searches.len(), own.catches.len()), (&path, 0, 1));
    }
}
