// SPDX-License-Identifier: GPL-2.0-or-later

//! What comes out of a build.

use std::path::{Path, PathBuf};

use super::request::Stage;

/// A module, and how it was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// `NAME.ko` in the work directory.
    pub module: PathBuf,
    /// Messages for `-v`.
    pub notes: Vec<String>,
    /// Warnings for the user, a line each.
    pub warnings: Vec<String>,
    /// Input files outside the work directory that became known during the build.
    pub inputs: Vec<PathBuf>,
    /// The stack usage of the script's functions (GCC manual, -fstack-usage), if the compiler reports it.
    pub stack: Option<String>,
    /// The module has the values of the [`StackTable`](super::StackTable).
    pub stacks_set: bool,
    /// Steps and their times; programs that ran in parallel both count in full.
    pub stages: Vec<Stage>,
}

/// Beside the script's object. None: the compiler does not write it.
pub(super) fn stack_usage(directory: &Path) -> Option<String> {
    std::fs::read_to_string(directory.join("script.su")).ok()
}
