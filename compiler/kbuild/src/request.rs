// SPDX-License-Identifier: GPL-2.0-or-later

//! What to build, and callbacks for progress.

use std::path::PathBuf;
use std::time::Duration;

use spile_abi::sites::Tables;

/// The C of one module.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The script's C, which includes only `script.h`.
    pub script: String,
    /// Embedded C, which includes kernel headers; None if the script has none.
    pub embedded: Option<String>,
    /// What the script's C lacks, and what is written into its object; None: it is whole.
    pub tables: Option<Tables>,
}

/// What to build.
#[derive(Clone, Debug)]
pub struct Request {
    /// Release of the kernel to build for.
    pub release: String,
    /// Headers and Makefiles of the kernel.
    pub build_dir: PathBuf,
    /// Module name.
    pub module: String,
    /// The C text.
    pub sources: Sources,
    /// Replaces the embedded runtime; its Makefile.kbuild is beside the directory.
    pub runtime: Option<PathBuf>,
    /// Build the module by Kbuild itself.
    pub kbuild: bool,
    /// `NAME=VALUE` for make.
    pub make: Vec<String>,
    /// The number of `-v` for pass 4.
    pub verbosity: u8,
}

/// Called with the current step, for interactive users.
pub type ReportProgress<'a> = &'a (dyn Fn(&str) + Sync);

/// Called with the stack usage of the script's functions (GCC manual, -fstack-usage) once they are compiled. Returns the
/// values of the compiled array `spile_stacks`, in its order, if they are to be others than the C text has.
pub type StackTable<'a> = &'a dyn Fn(&str) -> Option<Vec<u32>>;

/// Returns the script's C with all its tables, for compilations by Kbuild.
pub type WholeScript<'a> = &'a dyn Fn() -> Result<String, String>;

/// Called with a finished step and its time.
pub type Stage = (String, Duration);
