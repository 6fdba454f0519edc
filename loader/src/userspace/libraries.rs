// SPDX-License-Identifier: GPL-2.0-or-later

//! The files that a program will map when it starts: itself, the program that loads it, and the libraries that it
//! names. Files that are missed here are found later.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use spile_abi::libraries::{self, Asked, Places};

use crate::host::search;
use crate::userspace::image::{Elf, Image};
use crate::userspace::locate;

/// Files of one program, at most.
const MOST: usize = 64;
/// Programs of one command, at most.
const MOST_PROGRAMS: usize = 8;
/// Files that are looked for, for one program: a usual one has 20 libraries, each in one of the first ten directories.
const MOST_TRIES: usize = 16 << 10;

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
    with_tries(program, MOST_TRIES, is_over)
}

fn with_tries(program: &Path, tries: usize, is_over: &dyn Fn() -> bool) -> Vec<PathBuf> {
    let mut found = vec![program.to_path_buf()];
    let Some((narrow, asked)) = asked(program).filter(|_| !is_over()) else { return found };
    let value = |name| std::env::var_os(name).unwrap_or_default();
    let places = Places {
        narrow,
        named: Places::named_in(&value("LD_LIBRARY_PATH")),
        preloaded: Places::preloaded_in(&value("LD_PRELOAD")),
        system: libraries::system(Path::new("/etc"), narrow),
        most: MOST - 1,
        tries,
    };
    let mut open = |path: &Path| {
        let path = Some(path).filter(|path| is_for(path, narrow))?;
        self::asked(path).map(|(_, asked)| asked)
    };
    found.extend(libraries::find(program, asked, &places, &mut open, is_over).files);
    found
}

/// What a file asks for, and whether its code is of 32 bits.
fn asked(path: &Path) -> Option<(bool, Asked)> {
    Image::of(locate::open(path)?).with(|elf: &dyn Elf| (elf.is_narrow(), elf.asked()))
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
        let none = with_tries(Path::new("/bin/bash"), 0, &|| false);
        assert!(none.iter().all(|path| !path.to_string_lossy().contains("libc.so")), "without tries: {none:?}");
        assert_eq!(of(Path::new("/bin/bash"), &|| true).len(), 1);
    }
}
