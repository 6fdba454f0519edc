// SPDX-License-Identifier: GPL-2.0-or-later

//! What is to be built, and what is reported meanwhile.

use std::path::PathBuf;
use std::time::Duration;

/// The C of one module.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The script's C, which includes `script.h` alone.
    pub script: String,
    /// Embedded C, which includes kernel headers; None if the script has none.
    pub embedded: Option<String>,
}

/// What is to be built.
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
    /// Instead of the runtime that is part of this program; its Makefile.kbuild stands beside the directory.
    pub runtime: Option<PathBuf>,
    /// Make the module by Kbuild itself.
    pub kbuild: bool,
    /// `NAME=VALUE` for make.
    pub make: Vec<String>,
    /// How many `-v` pass 4 got.
    pub verbosity: u8,
}

/// Told what is going on, for people who wait.
pub type Say<'a> = &'a (dyn Fn(&str) + Sync);

/// Something that was done, and the time it took.
pub type Stage = (String, Duration);
