// SPDX-License-Identifier: GPL-2.0-or-later

//! The shared libraries that a program is started with: those that it and they need (DT_NEEDED), as ld.so(8) finds
//! them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::kernel::Root;
use crate::Elf;

/// Directories that are searched whatever the configuration says.
const USUAL: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Libraries of one program that are followed.
const MOST: usize = 1000;

/// The directories of the system, in the order in which they are searched.
pub(super) fn system_directories(root: &Root) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    let mut files = vec![root.at("/etc/ld.so.conf")];
    let below = fs::read_dir(root.at("/etc/ld.so.conf.d")).into_iter().flatten().flatten();
    let mut below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
    below.sort();
    files.extend(below.into_iter().filter(|path| path.extension().is_some_and(|end| end == "conf")));
    for file in files {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        directories.extend(lines.filter(|line| line.starts_with('/')).map(|line| root.at(line)));
    }
    directories.extend(USUAL.map(|directory| root.at(directory)));
    directories
}

/// The directories of `LD_LIBRARY_PATH`, whose entries end with a colon or semicolon.
pub(super) fn directories_in(variable: &str) -> Vec<PathBuf> {
    variable.split([':', ';']).filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

/// What `$LIB` may stand for, which is compiled into the dynamic linker: as Debian has it, and as others do.
const LIB: [&str; 3] = ["lib/x86_64-linux-gnu", "lib64", "lib"];
const NARROW_LIB: [&str; 3] = ["lib/i386-linux-gnu", "lib", "lib32"];

/// The libraries of `LD_PRELOAD`, with blanks or colons between them.
pub(super) fn preloaded_in(variable: &str) -> Vec<String> {
    variable.split([':', ' ']).filter(|name| !name.is_empty()).map(str::to_string).collect()
}

/// What a file needs, and who asks for it.
struct Wanted {
    name: String,
    /// Directories of DT_RPATH, of the file and of those that it was loaded for: searched first.
    first: Rc<Vec<PathBuf>>,
    /// Directories of the file's DT_RUNPATH.
    own: Rc<Vec<PathBuf>>,
    /// Directories of DT_RPATH that the libraries' own are added to.
    passed_on: Rc<Vec<PathBuf>>,
}

/// Paths of the libraries that the program at `path` needs, and that those need, each once; and of the dynamic linker. `named`:
/// the directories that LD_LIBRARY_PATH names; `preloaded`: the libraries of LD_PRELOAD.
pub(super) fn of_program(path: &Path, elf: &Elf, root: &Root, named: &[PathBuf], preloaded: &[String]) -> Vec<PathBuf> {
    let system = system_directories(root);
    let mut found: Vec<PathBuf> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut waiting = wanted(path, elf, &Rc::default(), preloaded);
    while let Some(Wanted { name, first, own, passed_on }) = waiting.pop() {
        if !seen.insert(name.clone()) || seen.len() > MOST {
            continue;
        }
        let places = first.iter().chain(named).chain(own.iter()).chain(&system).map(|directory| directory.join(&name));
        let places = if name.contains('/') { vec![root.at(&name)] } else { places.collect() };
        let Some((place, library)) = places.into_iter().find_map(|place| {
            let library = Elf::open_program(&place).ok()?;
            (library.is_narrow() == elf.is_narrow()).then_some((place, library))
        }) else {
            continue;
        };
        waiting.extend(wanted(&place, &library, &passed_on, &[]));
        found.push(place);
    }
    found.sort();
    found
}

/// What the file needs; `around`: the directories of DT_RPATH of those that it was loaded for, which do not count where a file has
/// DT_RUNPATH; `others`: what is loaded besides.
fn wanted(path: &Path, elf: &Elf, around: &Rc<Vec<PathBuf>>, others: &[String]) -> Vec<Wanted> {
    let origin = path.parent().unwrap_or(Path::new("/")).display().to_string();
    let all = if elf.is_narrow() { NARROW_LIB } else { LIB };
    let replaced = |paths: Vec<String>| -> Vec<PathBuf> {
        let whole = |path: &String| path.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin);
        let each = |path: String| -> Vec<PathBuf> {
            match path.contains("$LIB") || path.contains("${LIB}") {
                true => all.iter().map(|lib| path.replace("$LIB", lib).replace("${LIB}", lib).into()).collect(),
                false => vec![path.into()],
            }
        };
        paths.iter().map(whole).flat_map(each).collect()
    };
    let own = Rc::new(replaced(elf.run_path()));
    let (first, passed_on) = match own.is_empty() {
        true => {
            let all = Rc::new([replaced(elf.load_path()), around.to_vec()].concat());
            (all.clone(), all)
        }
        false => (Rc::default(), around.clone()),
    };
    let names = others.iter().cloned().chain(elf.needed()).chain(elf.interpreter());
    let wanted = |name| Wanted { name, first: first.clone(), own: own.clone(), passed_on: passed_on.clone() };
    names.map(wanted).collect()
}
