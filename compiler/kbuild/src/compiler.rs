// SPDX-License-Identifier: GPL-2.0-or-later

//! Chooses the C compiler: the one that the kernel was built with, by its configuration, or a near version.
//!
//! `CROSS_COMPILE` is the prefix of a GNU toolchain's programs; `ARCH` is handled by the kernel's Makefile.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::BuildError;

/// A compiler, as passed to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compiler {
    /// Variables for make: `CC=gcc-12`; for kernels linked by LLVM's tools these too.
    pub(super) make: Vec<String>,
    /// Identifies the compiler; changes with an upgrade.
    pub(super) identity: String,
    /// Its programs may be run without it; false for a wrapper such as ccache, which has its reasons to be in between.
    pub(super) is_driver: bool,
    /// It is not the kernel's compiler.
    pub(super) warning: Option<String>,
}

/// The compiler in a kernel's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConfiguredCompiler {
    name: &'static str,
    /// 0: unknown.
    major: u32,
    /// Linked by LLVM's ld.lld.
    lld: bool,
}

/// Chooses a compiler by the configuration of the kernel in `build_dir`.
pub(super) fn choose(build_dir: &Path) -> Result<Compiler, BuildError> {
    let config = std::fs::read_to_string(build_dir.join(".config")).unwrap_or_default();
    let cross = std::env::var("CROSS_COMPILE").unwrap_or_default();
    let wanted = wanted(&config);
    let (command, major) =
        nearest(wanted, &cross, &on_path, &version).ok_or_else(|| BuildError::NoCompiler { wanted: wanted.exact() })?;
    let warning = (wanted.major != 0 && major != wanted.major).then(|| {
        let is = if major == 0 { "of an unknown version".to_string() } else { format!("version {major}") };
        format!("the kernel was built with {}, {command} is {is}: install {0} if the build fails", wanted.exact())
    });
    let files: Vec<PathBuf> = which::which_all(&command).into_iter().flatten().map(resolved).collect();
    let is_driver = files.first().is_some_and(|file| is_driver(file));
    Ok(Compiler {
        make: variables(wanted, &command, &on_path),
        identity: identity(&command, if is_driver { files.get(..1).unwrap_or_default() } else { &files }),
        is_driver,
        warning,
    })
}

impl ConfiguredCompiler {
    /// `gcc-12`
    fn exact(self) -> String {
        if self.major == 0 { self.name.to_string() } else { format!("{}-{}", self.name, self.major) }
    }
}

/// CONFIG_GCC_VERSION and CONFIG_CLANG_VERSION: `120200` is 12.2; that of the other compiler is 0.
fn wanted(config: &str) -> ConfiguredCompiler {
    // Not line by line: there are ten thousand, and these are among the first.
    let number = |name: &str| {
        let mut values = config
            .match_indices(name)
            .filter(|(at, _)| config.get(..*at).is_some_and(|before| before.is_empty() || before.ends_with('\n')));
        values
            .find_map(|(at, _)| config[at..].lines().next()?.strip_prefix(name)?.strip_prefix('=')?.parse::<u32>().ok())
            .unwrap_or(0)
    };
    let (gcc, clang) = (number("CONFIG_GCC_VERSION") / 10_000, number("CONFIG_CLANG_VERSION") / 10_000);
    let lld = clang > 0 && config.lines().any(|line| line == "CONFIG_LD_IS_LLD=y");
    if clang > 0 {
        ConfiguredCompiler { name: "clang", major: clang, lld }
    } else {
        ConfiguredCompiler { name: "gcc", major: gcc, lld }
    }
}

/// The command of the nearest version, the newer of two equally near ones, and its major version (0: unknown).
fn nearest(
    wanted: ConfiguredCompiler,
    cross: &str,
    there: &dyn Fn(&str) -> Option<PathBuf>,
    version: &dyn Fn(&str) -> Option<u32>,
) -> Option<(String, u32)> {
    let cross = if wanted.name == "gcc" { cross } else { "" };
    let plain = format!("{cross}{}", wanted.name);
    let numbered = |major: u32| format!("{plain}-{major}");
    if wanted.major == 0 {
        return there(&plain).map(|_| (plain.clone(), 0));
    }
    if there(&numbered(wanted.major)).is_some() {
        return Some((numbered(wanted.major), wanted.major));
    }
    // The headers do not support compilers of versions further away.
    const FAR: u32 = 10;
    let low = wanted.major.saturating_sub(FAR).max(1);
    let mut found: Vec<(String, u32)> = (low..=wanted.major + FAR)
        .filter(|major| there(&numbered(*major)).is_some())
        .map(|major| (numbered(major), major))
        .collect();
    if there(&plain).is_some() {
        found.push((plain.clone(), version(&plain).unwrap_or(0)));
    }
    let distance = |major: u32| {
        if major == 0 { u32::MAX } else { 2 * major.abs_diff(wanted.major) + u32::from(major < wanted.major) }
    };
    found.into_iter().min_by_key(|(_, major)| distance(*major))
}

/// Variables for make. A kernel linked by LLVM's linker gets LLVM's other tools too, in the compiler's version if
/// installed.
fn variables(wanted: ConfiguredCompiler, command: &str, there: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<String> {
    let mut variables = vec![format!("CC={command}")];
    if wanted.name == "clang" {
        // A table for linkers that fold functions; modules do not need it and ELF readers do not know it.
        variables.push("KCFLAGS=-fno-addrsig".into());
    }
    if wanted.name == "clang" && wanted.lld {
        variables.push("LLVM=1".into());
        let suffix = command.strip_prefix("clang").unwrap_or_default();
        let tools = [
            ("LD", "ld.lld"),
            ("AR", "llvm-ar"),
            ("NM", "llvm-nm"),
            ("OBJCOPY", "llvm-objcopy"),
            ("OBJDUMP", "llvm-objdump"),
            ("READELF", "llvm-readelf"),
            ("STRIP", "llvm-strip"),
        ];
        let tools = tools.map(|(variable, tool)| (variable, format!("{tool}{suffix}")));
        variables.extend(
            tools.iter().filter(|(_, tool)| there(tool).is_some()).map(|(variable, tool)| format!("{variable}={tool}")),
        );
    }
    variables
}

fn on_path(command: &str) -> Option<PathBuf> {
    which::which(command).ok()
}

fn resolved(file: PathBuf) -> PathBuf {
    file.canonicalize().unwrap_or(file)
}

/// Whether the file is a compiler, not a wrapper that has the name of one: a script, or a link to a program of another name.
fn is_driver(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut start = [0; 4];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut start));
    ["gcc", "clang"].iter().any(|compiler| name.contains(compiler)) && read.is_ok() && start == *b"\x7fELF"
}

/// The program's file, identified by attributes that an upgrade changes. A wrapper runs one of the others with its name.
fn identity(command: &str, files: &[PathBuf]) -> String {
    let state = |file: &PathBuf| {
        let state = std::fs::metadata(file)
            .map(|metadata| format!("{} {}.{}", metadata.size(), metadata.mtime(), metadata.mtime_nsec()));
        format!("{} {}", file.display(), state.unwrap_or_default())
    };
    let states: Vec<String> = files.iter().map(state).collect();
    if states.is_empty() { command.to_string() } else { states.join("\n") }
}

fn version(command: &str) -> Option<u32> {
    let output = Command::new(command).arg("--version").output().ok().filter(|output| output.status.success())?;
    version_number(String::from_utf8_lossy(&output.stdout).lines().next()?)
}

/// Major version: the last word that looks like a version (`gcc (Debian 12.2.0-14) 12.2.0`, `clang version 16.0.6`).
fn version_number(line: &str) -> Option<u32> {
    let words = line.split([' ', ')', '(']).rev();
    words.filter_map(|word| word.split_once('.')?.0.parse().ok()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GCC_12: ConfiguredCompiler = ConfiguredCompiler { name: "gcc", major: 12, lld: false };

    #[test]
    fn major_versions() {
        assert_eq!(version_number("gcc (Debian 12.2.0-14+deb12u1) 12.2.0"), Some(12));
        assert_eq!(version_number("Debian clang version 16.0.6 (27+b1)"), Some(16));
        assert_eq!(version_number("gcc"), None);
    }

    #[test]
    fn what_a_configuration_wants() {
        assert_eq!(wanted("CONFIG_CC_IS_GCC=y\nCONFIG_GCC_VERSION=120200\nCONFIG_CLANG_VERSION=0\n"), GCC_12);
        let clang = wanted("CONFIG_GCC_VERSION=0\nCONFIG_CLANG_VERSION=160006\nCONFIG_LD_IS_LLD=y\n");
        assert_eq!((clang.exact().as_str(), clang.lld), ("clang-16", true));
        assert_eq!(wanted("").exact(), "gcc");
    }

    #[test]
    fn wrappers_are_not_taken_for_compilers() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8]| {
            std::fs::write(directory.path().join(name), text).unwrap();
            directory.path().join(name)
        };
        assert!(is_driver(&file("x86_64-linux-gnu-gcc-12", b"\x7fELF...")));
        assert!(is_driver(&file("clang", b"\x7fELF...")));
        assert!(!is_driver(&file("ccache", b"\x7fELF...")));
        assert!(!is_driver(&file("gcc-12", b"#!/bin/sh\n")));
        assert!(!is_driver(&directory.path().join("gcc")));
        // Of a wrapper the compiler behind it counts too.
        let files = ["ccache", "clang"].map(|name| directory.path().join(name));
        let before = identity("gcc", &files);
        std::fs::write(&files[1], b"\x7fELF....").unwrap();
        assert!(identity("gcc", &files) != before && identity("gcc", &files[..1]) == identity("gcc", &files[..1]));
    }

    fn choice(wanted: ConfiguredCompiler, cross: &str, here: &[&str], plain: u32) -> Option<(String, u32)> {
        nearest(wanted, cross, &|command| here.contains(&command).then(PathBuf::new), &|_| Some(plain))
    }

    #[test]
    fn the_nearest_version() {
        let chosen = |here: &[&str]| choice(GCC_12, "", here, 14).map(|(command, _)| command);
        assert_eq!(chosen(&["gcc", "gcc-12"]).as_deref(), Some("gcc-12"));
        assert_eq!(chosen(&["gcc", "gcc-11", "gcc-9"]).as_deref(), Some("gcc-11"));
        assert_eq!(chosen(&["gcc-11", "gcc-13"]).as_deref(), Some("gcc-13"));
        assert_eq!(chosen(&["gcc", "gcc-9"]).as_deref(), Some("gcc"));
        assert_eq!(chosen(&["clang", "clang-12"]), None);
        assert_eq!(choice(GCC_12, "x-linux-", &["gcc-12", "x-linux-gcc"], 12), Some(("x-linux-gcc".into(), 12)));
        let unknown = ConfiguredCompiler { major: 0, ..GCC_12 };
        assert_eq!(choice(unknown, "", &["gcc"], 14), Some(("gcc".into(), 0)));
    }

    #[test]
    fn tools_of_llvm() {
        let clang = ConfiguredCompiler { name: "clang", major: 16, lld: true };
        let there = |command: &str| ["ld.lld-16", "llvm-nm"].contains(&command).then(PathBuf::new);
        assert_eq!(
            variables(clang, "clang-16", &there),
            ["CC=clang-16", "KCFLAGS=-fno-addrsig", "LLVM=1", "LD=ld.lld-16"]
        );
        assert_eq!(variables(clang, "clang", &there), ["CC=clang", "KCFLAGS=-fno-addrsig", "LLVM=1", "NM=llvm-nm"]);
        assert_eq!(variables(GCC_12, "gcc-12", &there), ["CC=gcc-12"]);
    }
}
