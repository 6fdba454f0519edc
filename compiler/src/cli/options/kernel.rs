// SPDX-License-Identifier: GPL-2.0-or-later

//! The kernel that a script is for, and where its debug information is.

use std::path::{Path, PathBuf};

use clap::Args;

use super::value;

/// The kernel that a script is for, and where its debug information is.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Kernel")]
pub struct KernelOptions {
    /// Compile for this kernel release; or the path of a kernel's build tree
    #[arg(short = 'r', value_name = "RELEASE")]
    pub release: Option<String>,

    /// Root directory of the target system's files
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,

    /// Use an index file written by --export-index instead of the kernel's debug information, and for programs that have none here;
    /// compiling also needs the kernel's headers (of --sysroot), or a runtime in the cache that was compiled with them. --kernel
    /// accepts an index too
    #[arg(long, value_name = "FILE", conflicts_with_all = ["release", "check"])]
    pub index: Option<PathBuf>,

    /// File of an out-of-tree module, which module("NAME") then finds; what is missing is left out, with a warning
    #[arg(short = 'd', value_name = "FILE")]
    pub objects: Vec<PathBuf>,

    /// Fetch debug information from the servers in $DEBUGINFOD_URLS: yes (as ask, or a number of seconds) or no (by default yes
    /// if there are any)
    #[arg(long, value_name = "WHEN", value_parser = value::download, num_args = 0..=1, require_equals = true, default_missing_value = "yes")]
    pub download_debuginfo: Option<String>,

    /// Accepted for compatibility: parameters are read where debug information says they are
    #[arg(long, value_name = "WHEN", value_parser = ["never", "auto", "always"], num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    pub prologue_searching: Option<String>,

    /// Accepted for compatibility: backtraces always have the symbols of all modules
    #[arg(long)]
    pub all_modules: bool,
}

impl KernelOptions {
    /// The files of `-d` that are there.
    pub fn files(&self) -> Vec<PathBuf> {
        self.objects.iter().filter(|path| path.is_file()).cloned().collect()
    }

    /// The others, each with the reason why it is left out; `None`: it may be the name of a module of the kernel, or of it,
    /// whose symbols are always known. What ends as the file of a module does is no name.
    pub fn no_files(&self) -> Vec<(&Path, Option<String>)> {
        const ENDS: [&str; 4] = [".ko", ".ko.xz", ".ko.zst", ".ko.gz"];
        let is_file = |path: &Path| path.to_str().is_some_and(|text| ENDS.iter().any(|end| text.ends_with(end)));
        let is_name = |path: &Path| path.components().count() == 1 && !path.exists() && !is_file(path);
        let others = self.objects.iter().filter(|path| !path.is_file());
        let reason = |path: &PathBuf| match std::fs::metadata(path) {
            _ if is_name(path) => None,
            Ok(found) if found.is_dir() => {
                Some("a directory; -d takes the file of a module, and may be repeated".into())
            }
            Ok(_) => Some("not a regular file".into()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("there is no such file".into()),
            Err(error) => Some(error.to_string()),
        };
        others.map(|path| (path.as_path(), reason(path))).collect()
    }
}
