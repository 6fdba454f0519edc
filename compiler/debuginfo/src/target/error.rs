// SPDX-License-Identifier: GPL-2.0-or-later

//! What can be missing of a kernel.

use std::fmt;
use std::path::PathBuf;

use crate as debuginfo;

#[derive(Clone, Debug)]
pub enum TargetError {
    /// Nothing of this release is installed.
    NoSuchKernel {
        release: String,
        looked: Vec<PathBuf>,
    },
    /// The object may be there, its debug information is not. `asked`: what debuginfod servers said; `package`: the Debian
    /// package that has it.
    NoDebugInfo {
        object: String,
        looked: Vec<PathBuf>,
        asked: Vec<String>,
        package: Option<String>,
    },
    NoSuchModule {
        name: String,
        near: Vec<String>,
        looked: Vec<PathBuf>,
    },
    /// The module is part of the kernel's image.
    BuiltIn {
        name: String,
    },
    /// The file with the debug information is of another build than the object.
    BuildIdMismatch {
        object: PathBuf,
        build_id: Vec<u8>,
        debug: PathBuf,
        debug_build_id: Vec<u8>,
    },
    /// A file that `--export-index` should have made, or is to make.
    NoIndex {
        path: PathBuf,
        message: String,
    },
    /// A directory that should hold the system of one kernel.
    NotOneKernel {
        directory: PathBuf,
        releases: Vec<String>,
    },
    Object(debuginfo::Error),
}

impl TargetError {
    /// That nothing of the release is known.
    pub fn no_kernel(release: &str) -> TargetError {
        TargetError::NoSuchKernel { release: release.into(), looked: Vec::new() }
    }

    /// What else helps, a line each: where was looked, what to install, what was perhaps meant.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self {
            TargetError::NoSuchKernel { release, looked } => {
                notes.extend(looked_at(looked));
                notes.push(format!(
                    "apt-get install linux-image-{release} linux-headers-{release} linux-image-{release}-dbg"
                ));
            }
            TargetError::NoDebugInfo { looked, asked, package, .. } => {
                notes.extend(looked_at(looked));
                notes.extend(asked.iter().map(|answer| format!("asked {answer}")));
                notes.extend(package.iter().map(|package| format!("apt-get install {package}")));
            }
            TargetError::NoSuchModule { near, looked, .. } => {
                if !near.is_empty() {
                    notes.push(format!("did you mean {}?", near.join(", ")));
                }
                notes.extend(looked_at(looked));
            }
            TargetError::BuiltIn { .. } => notes.push("its functions are the kernel's: kernel.function(...)".into()),
            TargetError::BuildIdMismatch { build_id, debug, debug_build_id, .. } => {
                notes.push(format!(
                    "build-id {} against {} of {}",
                    hex(build_id),
                    hex(debug_build_id),
                    debug.display()
                ));
            }
            TargetError::NotOneKernel { releases, .. } if releases.is_empty() => {
                notes.push(
                    "neither lib/modules nor usr/lib/debug/lib/modules below it has a release, and it is no build tree"
                        .into(),
                );
            }
            TargetError::NotOneKernel { releases, .. } => {
                notes.push(format!("it has {}: name one, with --sysroot", releases.join(", ")));
            }
            TargetError::NoIndex { .. } | TargetError::Object(_) => {}
        }
        notes
    }
}

impl From<debuginfo::Error> for TargetError {
    fn from(error: debuginfo::Error) -> TargetError {
        TargetError::Object(error)
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            TargetError::NoSuchKernel { release, .. } => {
                write!(f, "kernel {release} is not installed here")
            }
            TargetError::NoDebugInfo { object, .. } => {
                write!(f, "no debug information for {object}")
            }
            TargetError::NoSuchModule { name, .. } => write!(f, "no module `{name}`"),
            TargetError::BuiltIn { name } => {
                write!(f, "`{name}` is built into this kernel, not a module")
            }
            TargetError::BuildIdMismatch { object, debug, .. } => {
                write!(f, "{} is not of the same build as {}", debug.display(), object.display())
            }
            TargetError::NotOneKernel { directory, .. } => {
                write!(f, "{} does not hold one kernel's system", directory.display())
            }
            TargetError::NoIndex { path, message } => write!(f, "the index {}: {message}", path.display()),
            TargetError::Object(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TargetError {}

fn looked_at(paths: &[PathBuf]) -> Option<String> {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    (!paths.is_empty()).then(|| format!("looked at {}", paths.join(", ")))
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "(none)".into();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
