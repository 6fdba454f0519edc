// SPDX-License-Identifier: GPL-2.0-or-later

//! The shared libraries that a program of this or of another system is started with.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use spile_abi::libraries::{self, Places};
use spile_base::regular;

use super::kernel::Root;
use crate::Elf;

/// Libraries of one program that are followed, and files that are looked for.
const MOST: usize = 1000;
const MOST_TRIES: usize = 128 << 10;

/// Symbolic links that are followed in one path (MAXSYMLINKS of the kernel).
const MOST_LINKS: usize = 40;

/// The directories of the system, in the order in which they are searched.
pub(super) fn system_directories(root: &Root) -> Vec<PathBuf> {
    directories(root, false)
}

/// The same for files of 32 bits (`narrow`) or of 64.
pub(super) fn directories(root: &Root, narrow: bool) -> Vec<PathBuf> {
    libraries::system(&root.at("/etc"), narrow).iter().map(|directory| below(root, directory)).collect()
}

/// Paths of the libraries that the program at `path` needs, and that those need, each once; and of the dynamic linker. `value`: of
/// a variable of the program's environment.
pub(super) fn of_program(
    path: &Path,
    elf: &Elf,
    root: &Root,
    value: impl Fn(&str) -> Option<OsString>,
) -> Vec<PathBuf> {
    let narrow = elf.is_narrow();
    let places = Places {
        narrow,
        named: Places::named_in(&value("LD_LIBRARY_PATH").unwrap_or_default()),
        preloaded: Places::preloaded_in(&value("LD_PRELOAD").unwrap_or_default()),
        system: libraries::system(&root.at("/etc"), narrow),
        most: MOST,
        tries: MOST_TRIES,
    };
    let mut open = |place: &Path| {
        // Links lead below the root directory.
        let file = root.0.as_ref().map_or_else(|| place.to_path_buf(), |root| resolved(root, place));
        let file = Some(file).filter(|file| is_for(file, narrow))?;
        Some(Elf::open_program(&file).ok()?.asked())
    };
    let seen = root.0.as_ref().and_then(|root| Some(Path::new("/").join(path.strip_prefix(root).ok()?)));
    let found = libraries::find(seen.as_deref().unwrap_or(path), elf.asked(), &places, &mut open, &|| false);
    let mut files: Vec<PathBuf> = found.files.iter().map(|file| below(root, file)).collect();
    files.sort();
    files
}

/// A path of the system, below the root.
fn below(root: &Root, path: &Path) -> PathBuf {
    match &root.0 {
        Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
        None => path.to_path_buf(),
    }
}

/// A path below a directory that stands for `/`, without symbolic links.
pub(super) fn resolved(root: &Path, inside: &Path) -> PathBuf {
    let reversed = |path: &Path| -> Vec<PathBuf> {
        let parts = path.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir));
        let mut parts: Vec<PathBuf> = parts.map(|part| PathBuf::from(part.as_os_str())).collect();
        parts.reverse();
        parts
    };
    let (mut at, mut left, mut links) = (PathBuf::new(), reversed(inside), 0);
    while let Some(part) = left.pop() {
        if part == Path::new("..") {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        match fs::read_link(root.join(&next)) {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                if target.is_absolute() {
                    at = PathBuf::new();
                }
                left.extend(reversed(&target));
            }
            _ => at = next,
        }
    }
    root.join(at)
}

/// Whether it is a file with code of 32 bits (`narrow`), or of 64, by its header (elf(5)): directories may have both, and to read
/// the whole file takes longer.
pub(super) fn is_for(path: &Path, narrow: bool) -> bool {
    const CLASS: usize = 4;
    const MACHINE: std::ops::Range<usize> = 18..20;
    let mut head = [0; 20];
    let mut read = |mut file: File| file.read_exact(&mut head).is_ok();
    if !regular::open(path).is_ok_and(&mut read) || !head.starts_with(b"\x7fELF") {
        return false;
    }
    let (class, machine) = if narrow { (1, 3u16) } else { (2, 62u16) };
    head.get(CLASS) == Some(&class) && head.get(MACHINE) == Some(&machine.to_le_bytes()[..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::process::Command;

    /// The libraries `NAME.so` at these places below the directory, each with options and what it is linked with.
    fn link(directory: &Path, files: &[(&str, &[&str])]) {
        std::fs::write(directory.join("empty.c"), "int of_nothing;").expect("written");
        std::fs::write(directory.join("main.c"), "int main(void) { return 0; }").expect("written");
        for (file, options) in files {
            let path = directory.join(file);
            std::fs::create_dir_all(path.parent().expect("one")).expect("made");
            let of_kind =
                if file.ends_with(".so") { ["-shared", "-fPIC", "empty.c"] } else { ["-O1", "-fPIE", "main.c"] };
            let mut gcc = Command::new("gcc");
            gcc.current_dir(directory).args(of_kind).args(["-Wl,--no-as-needed", "-o", file]);
            let output = gcc.args(*options).output().expect("gcc runs");
            assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// What the dynamic linker itself loads (ld.so(8), LD_TRACE_LOADED_OBJECTS).
    fn loaded(program: &Path, variables: &[(&str, String)]) -> BTreeSet<PathBuf> {
        let mut command = Command::new(program);
        command.env("LD_TRACE_LOADED_OBJECTS", "1").envs(variables.iter().map(|(name, value)| (name, value)));
        let output = command.output().expect("runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let path = |line: &str| {
            let line = line.trim().rsplit_once(" (")?.0;
            let path = line.split_once(" => ").map_or(line, |(_, path)| path);
            path.starts_with('/').then(|| std::fs::canonicalize(path).expect("is there"))
        };
        text.lines().filter_map(path).collect()
    }

    fn found(program: &Path, variables: &[(&str, String)]) -> BTreeSet<PathBuf> {
        let elf = Elf::open_program(program).expect("an ELF file");
        let value =
            |wanted: &str| variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| OsString::from(value));
        let found = of_program(program, &elf, &Root(None), value);
        found.iter().map(|path| std::fs::canonicalize(path).expect("is there")).collect()
    }

    #[test]
    fn the_dynamic_linker_finds_the_same() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let of_path = |tag: &str, path: &str| format!("-Wl,--{tag}-new-dtags,-rpath,{path}");
        let old = of_path("disable", "$ORIGIN/a:$ORIGIN/b:$ORIGIN/c:$ORIGIN/d");
        let new = of_path("enable", "$ORIGIN/a:${ORIGIN}/b:$ORIGIN/c:$ORIGIN/d");
        let (first, second) = (of_path("enable", "$ORIGIN/../x1"), of_path("disable", "${ORIGIN}/../x2"));
        let all = ["a/liba.so", "b/libb.so", "c/libc2.so", "d/libd.so"];
        link(
            directory.path(),
            &[
                ("x1/libx.so", &["-Wl,-soname,libx.so"]),
                ("x2/libx.so", &["-Wl,-soname,libx.so"]),
                ("d/libd.so", &["-Wl,-soname,libd.so"]),
                // By its name it is another one, which is not loaded then.
                ("c/libc2.so", &["-Wl,-soname,libd.so"]),
                ("e/libe.so", &["-Wl,-soname,libd.so"]),
                ("a/liba.so", &[&first, "-Wl,-soname,liba.so", "x1/libx.so"]),
                ("b/libb.so", &[&second, "-Wl,-soname,libb.so", "x2/libx.so", "d/libd.so"]),
                ("old", &[&[old.as_str()][..], &all].concat()),
                ("new", &[&[new.as_str()][..], &all].concat()),
                ("reversed", &[&[new.as_str()][..], &[all[3], all[2], all[1], all[0]]].concat()),
                ("by_path", &["-Wl,-rpath,", "a/liba.so"]),
            ],
        );
        let of =
            |name: &'static str, value: &str| (name, value.replace("HERE", &directory.path().display().to_string()));
        let environments = [
            vec![],
            vec![of("LD_LIBRARY_PATH", "HERE/x2;HERE/d")],
            vec![of("LD_PRELOAD", "HERE/e/libe.so HERE/x2/libx.so")],
            vec![of("LD_LIBRARY_PATH", "HERE/none:HERE/a"), of("LD_PRELOAD", "libx.so:HERE/b/libb.so")],
        ];
        for (program, variables) in ["old", "new", "reversed", "by_path"]
            .iter()
            .flat_map(|program| environments.iter().map(move |variables| (program, variables)))
        {
            let expected = loaded(&at(program), variables);
            assert!(expected.len() > 1, "{program} {variables:?}");
            assert_eq!(found(&at(program), variables), expected, "{program} {variables:?}");
        }
    }
}
