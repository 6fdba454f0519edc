// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds the files that a dynamically linked program needs: its interpreter and its shared libraries.
//!
//! Read from the ELF file (PT_INTERP, DT_NEEDED, DT_RUNPATH; gABI, "Dynamic Linking"), without running it as `ldd`
//! does. Libraries are searched as by ld.so(8), without its cache: the program's RUNPATH, the directories of
//! /etc/ld.so.conf, the default ones. A static program or a script needs nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use super::error::Error;

const DEFAULT_DIRECTORIES: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// The dependencies in one ELF file.
#[derive(Debug, Default, PartialEq, Eq)]
struct ElfDependencies {
    interpreter: Option<String>,
    libraries: Vec<String>,
    run_path: Vec<String>,
}

/// Paths of all files that `program` needs to run, if this host has them.
pub(super) fn needed_files(program: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    let mut found = BTreeSet::new();
    let mut open = vec![program.to_path_buf()];
    let configured = configured_directories(Path::new("/etc/ld.so.conf"), 0);
    while let Some(file) = open.pop() {
        let bytes = fs::read(&file).map_err(Error::file("reading", &file))?;
        let needs = needs_of(&bytes);
        let origin = file.parent().map(|dir| dir.display().to_string()).unwrap_or_default();
        let run_path = needs.run_path.iter().map(|dir| dir.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin));
        let directories: Vec<PathBuf> = run_path
            .map(PathBuf::from)
            .chain(configured.iter().cloned())
            .chain(DEFAULT_DIRECTORIES.map(PathBuf::from))
            .collect();
        for name in needs.libraries {
            let library = directories
                .iter()
                .map(|directory| directory.join(&name))
                .find(|path| path.is_file())
                .ok_or_else(|| Error::NoLibrary { name, program: program.to_path_buf() })?;
            if found.insert(library.clone()) {
                open.push(library);
            }
        }
        found.extend(needs.interpreter.map(PathBuf::from));
    }
    Ok(found)
}

/// Empty for a file that is not a 64-bit ELF file, or is damaged: running it reports the error.
fn needs_of(bytes: &[u8]) -> ElfDependencies {
    read_needs(bytes).unwrap_or_default()
}

fn read_needs(bytes: &[u8]) -> Option<ElfDependencies> {
    let header = elf::FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, bytes).ok()?;
    let mut needs = ElfDependencies::default();
    let mut entries = Vec::new();
    for segment in segments {
        if let Ok(Some(path)) = segment.interpreter(endian, bytes) {
            needs.interpreter = Some(String::from_utf8_lossy(path).into_owned());
        }
        if let Ok(Some(dynamic)) = segment.dynamic(endian, bytes) {
            entries.extend(dynamic.iter().map(|entry| (entry.d_tag(endian), entry.d_val(endian))));
        }
    }
    let strings = entries.iter().find(|(tag, _)| *tag == elf::DT_STRTAB).map(|(_, value)| *value)?;
    let text = |offset: u64| {
        let address = strings.checked_add(offset)?;
        let in_segment = segments.iter().find_map(|segment| {
            let start = address.checked_sub(segment.p_vaddr(endian))?;
            let data = segment.data(endian, bytes).ok()?;
            data.get(usize::try_from(start).ok()?..).filter(|_| segment.p_type(endian) == elf::PT_LOAD)
        })?;
        let end = in_segment.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(in_segment.get(..end)?).into_owned())
    };
    for (tag, value) in entries {
        if tag == elf::DT_NEEDED {
            needs.libraries.extend(text(value));
        } else if tag == elf::DT_RUNPATH || tag == elf::DT_RPATH {
            needs.run_path.extend(text(value).iter().flat_map(|list| list.split(':')).map(String::from));
        }
    }
    Some(needs)
}

/// Directories in an ld.so.conf, including its `include` lines; the only supported pattern is `DIR/*.conf`.
fn configured_directories(file: &Path, depth: usize) -> Vec<PathBuf> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut directories = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("include").map(str::trim) {
            None if line.starts_with('/') => directories.push(PathBuf::from(line)),
            Some(pattern) if depth < 4 => {
                let directory = Path::new(pattern).parent().unwrap_or(Path::new("/"));
                let mut included: Vec<PathBuf> =
                    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
                included.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
                included.sort();
                directories.extend(included.iter().flat_map(|path| configured_directories(path, depth + 1)));
            }
            _ => {}
        }
    }
    directories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_needs_libc_and_its_interpreter() {
        let program = std::env::current_exe().expect("a running program");
        let files = needed_files(&program).expect("all found, as it runs");
        let named = |part: &str| files.iter().any(|file| file.to_string_lossy().contains(part));
        assert!(named("libc.so") && named("ld-linux"), "{files:?}");
    }

    #[test]
    fn what_is_no_elf_file_needs_nothing() {
        assert_eq!(needs_of(b"#!/bin/sh\n"), ElfDependencies::default());
        assert_eq!(needs_of(b"\x7fELF\x02\x01\x01"), ElfDependencies::default());
    }

    #[test]
    fn damaged_files_are_read_without_a_panic() {
        let program = fs::read(std::env::current_exe().expect("a running program")).expect("readable");
        let head = &program[..program.len().min(4096)];
        for at in 0..head.len().min(1024) {
            let mut damaged = head.to_vec();
            damaged[at] ^= 0xff;
            needs_of(&damaged);
            needs_of(&head[..at]);
        }
    }
}
