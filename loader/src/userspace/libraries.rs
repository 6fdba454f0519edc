// SPDX-License-Identifier: GPL-2.0-or-later

//! The files that a program will map when it starts: itself, the program that loads it, and the libraries that it
//! names. Found as ld.so does, except for its cache: files that are missed here are found later.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::host::search;
use crate::userspace::image::{Elf, Image};
use crate::userspace::locate;

/// Files of one program, at most.
const MOST: usize = 64;
/// Programs of one command, at most.
const MOST_PROGRAMS: usize = 8;
/// Directories that a program adds to those of the system, and files that are looked for in all of them for one command:
/// a usual program adds two, and has 20 libraries, each in one of the first ten.
const MOST_PLACES: usize = 64;
const MOST_TRIES: usize = 16 << 10;
const NEEDED: i64 = 1;
const RPATH: i64 = 15;
const RUNPATH: i64 = 29;

/// The programs that a command line names: its first word, and others that are one, as in `sh -c 'make && make install'`.
pub fn programs(command: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let words = command.split(|c: char| c.is_whitespace() || "'\"`;&|()<>$".contains(c));
    for path in words.filter_map(program) {
        if found.len() < MOST_PROGRAMS && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// The file that a shell would run; `None` if there is none.
fn program(word: &str) -> Option<PathBuf> {
    if word.is_empty() || word.starts_with('-') {
        return None;
    }
    if word.contains('/') {
        return Some(PathBuf::from(word)).filter(|path| path.is_file());
    }
    search::in_path(word)
}

/// The program and what it maps, in the order in which it is found. What has been found when `is_over` becomes true is all.
pub fn of(program: &Path, is_over: &dyn Fn() -> bool) -> Vec<PathBuf> {
    let mut found = vec![program.to_path_buf()];
    let system = directories();
    let mut tries = MOST_TRIES;
    let mut at = 0;
    while let Some(path) = found.get(at).cloned().filter(|_| !is_over()) {
        at += 1;
        for next in mapped_by(&path, &system, &mut tries) {
            if found.len() < MOST && !found.contains(&next) {
                found.push(next);
            }
        }
    }
    found
}

/// `tries`: files that may still be looked for.
fn mapped_by(path: &Path, system: &[PathBuf], tries: &mut usize) -> Vec<PathBuf> {
    let Some(file) = locate::open(path) else { return Vec::new() };
    let own = path.parent().unwrap_or(Path::new("/"));
    let read = |elf: &dyn Elf| {
        let mut places: Vec<PathBuf> = Vec::new();
        for list in elf.dynamic(RPATH).into_iter().chain(elf.dynamic(RUNPATH)) {
            let left = MOST_PLACES.saturating_sub(places.len());
            let list = String::from_utf8_lossy(&list).replace("${ORIGIN}", "$ORIGIN");
            // It is written once, at the begin.
            let place = |place: &str| PathBuf::from(place.replacen("$ORIGIN", &own.to_string_lossy(), 1));
            places.extend(list.split(':').take(left).map(place));
        }
        places.extend(system.iter().cloned());
        let mut is_left = || tries.checked_sub(1).map(|rest| *tries = rest).is_some();
        let library = |name: Vec<u8>| {
            let name = OsStr::from_bytes(&name);
            let tried = places.iter().map(|place| place.join(name)).take_while(|_| is_left());
            tried.into_iter().find(|path| is_for(path, elf.is_narrow()))
        };
        let libraries = elf.dynamic(NEEDED).into_iter().filter_map(library);
        elf.interpreter().into_iter().chain(libraries).collect()
    };
    Image::of(file).with(read).unwrap_or_default()
}

/// Whether it is a file with code of 32 bits (`narrow`), or of 64: programs of both kinds search directories that have both.
fn is_for(path: &Path, narrow: bool) -> bool {
    // Of its header: the magic number and class; and the machine (elf(5)).
    const CLASS: usize = 4;
    const MACHINE: std::ops::Range<usize> = 18..20;
    let mut head = [0; 20];
    let mut is_read = || locate::open(path).is_some_and(|file| file.read_exact_at(&mut head, 0).is_ok());
    if !path.is_file() || !is_read() || !head.starts_with(b"\x7fELF") {
        return false;
    }
    let (class, machine) = if narrow { (1, 3u16) } else { (2, 62u16) };
    head.get(CLASS) == Some(&class) && head.get(MACHINE) == Some(&machine.to_le_bytes()[..])
}

fn directories() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    if let Some(list) = std::env::var_os("LD_LIBRARY_PATH") {
        found.extend(std::env::split_paths(&list));
    }
    let mut files = vec![PathBuf::from("/etc/ld.so.conf")];
    files.extend(fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().flatten().map(|entry| entry.path()));
    files.sort();
    for file in files {
        let text = fs::read_to_string(file).unwrap_or_default();
        found.extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(PathBuf::from));
    }
    found.extend(
        ["lib/x86_64-linux-gnu", "lib64", "lib", "lib/i386-linux-gnu", "lib32"]
            .into_iter()
            .flat_map(|place| ["/", "/usr"].map(|base| Path::new(base).join(place))),
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_a_shell() {
        let named = programs("sh -c 'cat /no/such/file; sh'");
        assert!(named.first().is_some_and(|path| path.ends_with("sh")) && named.len() == 2, "{named:?}");
        assert!(named.iter().all(|path| of(path, &|| false).starts_with(std::slice::from_ref(path))));
        assert_eq!(programs("/no/such/program"), Vec::<PathBuf>::new());
        if !Path::new("/bin/bash").exists() {
            return;
        }
        let names = of(Path::new("/bin/bash"), &|| false);
        assert!(names.iter().any(|path| path.to_string_lossy().contains("libc.so")), "{names:?}");
        let mut tries = 0;
        let none = mapped_by(Path::new("/bin/bash"), &directories(), &mut tries);
        assert!(none.iter().all(|path| !path.to_string_lossy().contains("libc.so")), "without tries: {none:?}");
        assert_eq!(of(Path::new("/bin/bash"), &|| true).len(), 1);
    }
}
