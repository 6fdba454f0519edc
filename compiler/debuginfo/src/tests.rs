// SPDX-License-Identifier: GPL-2.0-or-later

//! Tests of debug information written by gcc: of small C files, which the test compiles into relocatable files like
//! modules, and of the installed kernel.

mod btf;
mod compiled;
mod damaged;
mod interpreter;
mod scopes;
mod shared;
pub(super) mod vmlinux;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::*;

/// An object compiled from C text, in a directory that is removed with it.
struct Compiled {
    directory: tempfile::TempDir,
}

impl Compiled {
    fn new(text: &str, options: &[&str]) -> Compiled {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("test.c"), text).expect("written");
        let gcc = Command::new("gcc")
            .current_dir(directory.path())
            .args([
                "-c",
                "-g",
                "-O2",
                "-mno-red-zone",
                "-mcmodel=kernel",
                "-fno-pie",
                "-fno-asynchronous-unwind-tables",
            ])
            .args(options)
            .arg("test.c")
            .output()
            .expect("gcc runs");
        assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
        Compiled { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("test.o")
    }

    fn open(&self) -> DebugInfo {
        open(&self.path())
    }
}

fn open(path: &Path) -> DebugInfo {
    DebugInfo::open(Arc::new(Elf::open(path).expect("an ELF file")), None, None).expect("has DWARF")
}

/// The only function of that name.
fn only(debug: &DebugInfo, name: &str) -> FunctionId {
    let found = debug.find_functions(&FunctionPattern { name: name.into(), file: None }).expect("an index");
    assert_eq!(found.len(), 1, "{name}");
    found[0]
}

fn type_named(debug: &DebugInfo, name: &str) -> TypeId {
    debug.find_type(name).expect("an index").expect("is there")
}
