// SPDX-License-Identifier: GPL-2.0-or-later

//! The kernel that a script is for, and where its debug information is.

use std::path::PathBuf;

use clap::Args;

/// The kernel that a script is for, and where its debug information is.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Kernel")]
pub struct KernelOptions {
    /// Kernel release to compile for, or the path of its build tree
    #[arg(short = 'r', value_name = "RELEASE")]
    pub release: Option<String>,

    /// A directory that holds the target's files as / does
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,

    /// Know the kernel by such a file alone: for -l, -L, --list-lines, --resolve and -p2; --kernel takes one too
    #[arg(long, value_name = "FILE", conflicts_with_all = ["release", "sysroot", "check"])]
    pub index: Option<PathBuf>,

    /// A module's file, beside the kernel's own modules: module("NAME") finds it
    #[arg(short = 'd', value_name = "FILE")]
    pub objects: Vec<PathBuf>,

    /// Fetch debug information from the servers in $DEBUGINFOD_URLS: yes, if there are any, or no
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "yes")]
    pub download_debuginfo: Option<String>,

    /// Look for parameters behind a function's prologue: never; auto and always are the same here
    #[arg(long, value_name = "WHEN", value_parser = ["never", "auto", "always"], num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    pub prologue_searching: Option<String>,

    /// Symbols of all modules, for backtraces: the kernel's own table has them, so this is always so
    #[arg(long)]
    pub all_modules: bool,
}

impl KernelOptions {
    /// The files of `-d`. A name without a file is a module of the kernel, or it: their symbols are always known.
    pub fn files(&self) -> Vec<PathBuf> {
        let named = |path: &&PathBuf| path.components().count() == 1 && !path.exists();
        self.objects.iter().filter(|path| !named(path)).cloned().collect()
    }
}
