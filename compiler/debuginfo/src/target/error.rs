// SPDX-License-Identifier: GPL-2.0-or-later

//! Errors about kernels: missing files, and files that do not belong together.

use std::path::PathBuf;

use crate::error::Error;

/// Why a kernel, or a part of it, cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TargetError {
    /// Nothing of this release is installed.
    #[error("kernel {release} is not installed here")]
    NoSuchKernel {
        /// As printed by `uname -r`, or the path that was given instead.
        release: String,
        /// Where it was searched.
        looked: Vec<PathBuf>,
    },
    /// The object may exist, but not its debug information.
    #[error("no debug information for {object}")]
    NoDebugInfo {
        /// `the kernel RELEASE` or `module NAME`.
        object: String,
        /// Where it was searched.
        looked: Vec<PathBuf>,
        /// The answers of debuginfod servers, one line each.
        asked: Vec<String>,
        /// The Debian package that contains it.
        package: Option<String>,
        /// Other ways to get its debug information.
        hints: Vec<String>,
    },
    /// The release has no such module.
    #[error("no module `{name}`")]
    NoSuchModule {
        /// As it was given.
        name: String,
        /// Similar names.
        near: Vec<String>,
        /// Where it was searched.
        looked: Vec<PathBuf>,
    },
    /// The module is built into the kernel.
    #[error("`{name}` is built into this kernel, not a module")]
    BuiltIn {
        /// As it was given.
        name: String,
    },
    /// There is no program or library of this name, path or build-id.
    #[error("cannot find the program `{name}`")]
    NoSuchProgram {
        /// As it was given.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// The path of a program is a directory's.
    #[error("`{name}` is a directory, no program")]
    Directory {
        /// As it was given.
        name: String,
    },
    /// The program has no library that fits.
    #[error("no library of {program} fits `{name}`")]
    NoSuchLibrary {
        /// As it was given.
        name: String,
        /// The program's path.
        program: String,
        /// The file names of those that it has.
        there: Vec<String>,
    },
    /// No process of this number, or its program cannot be read.
    #[error("cannot tell what process {pid} runs: {message}")]
    NoSuchProcess {
        /// The number.
        pid: i64,
        /// What the operating system answered.
        message: String,
    },
    /// The file with the debug information is of another build than the object.
    #[error("{debug} is not of the same build as {object}")]
    BuildIdMismatch {
        /// The file that is loaded.
        object: PathBuf,
        /// Its build-id.
        build_id: Vec<u8>,
        /// The file with the debug information.
        debug: PathBuf,
        /// Its build-id.
        debug_build_id: Vec<u8>,
    },
    /// `--export-index` of a program that was linked without one.
    #[error("{program} has no build-id, by which an index knows programs: link it with -Wl,--build-id")]
    NoBuildId {
        /// The program's path.
        program: String,
    },
    /// `--export-index` of a 32-bit program.
    #[error("{program} is a 32-bit program, which an index cannot describe")]
    Narrow {
        /// The program's path.
        program: String,
    },
    /// A file that `--export-index` should have written, or cannot write.
    #[error("the index {path}: {message}")]
    NoIndex {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A directory that should hold the system of one kernel.
    #[error("{directory} does not hold one kernel's system")]
    NotOneKernel {
        /// The directory.
        directory: PathBuf,
        /// The releases in it: none, or several.
        releases: Vec<String>,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Object(#[from] Error),
}

impl TargetError {
    /// The error that nothing of the release is known.
    pub fn no_kernel(release: &str) -> TargetError {
        TargetError::NoSuchKernel { release: release.into(), looked: Vec::new() }
    }

    /// What may help, one line each: where it was searched, what to install, similar names.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self {
            TargetError::NoSuchKernel { release, looked } => {
                notes.extend(searched(looked));
                // A path is a build tree.
                if !release.contains('/') {
                    notes.push(format!(
                        "apt-get install linux-image-{release} linux-headers-{release} linux-image-{release}-dbg"
                    ));
                }
            }
            TargetError::NoDebugInfo { looked, asked, package, hints, .. } => {
                notes.extend(hints.iter().cloned());
                notes.extend(searched(looked));
                notes.extend(asked.iter().map(|answer| format!("asked {answer}")));
                notes.extend(package.iter().map(|package| format!("apt-get install {package}")));
            }
            TargetError::NoSuchModule { near, looked, .. } | TargetError::NoSuchProgram { near, looked, .. } => {
                if !near.is_empty() {
                    notes.push(format!("did you mean {}?", near.join(", ")));
                }
                notes.extend(searched(looked));
            }
            TargetError::NoSuchLibrary { there, .. } if there.is_empty() => {
                notes.push("it is linked with none; one that it opens itself is named by its path".into());
            }
            TargetError::NoSuchLibrary { there, .. } => {
                notes.push(format!("there is: {}", there.join(", ")));
                notes.push("one that the program opens itself (dlopen) is named by its path".into());
            }
            TargetError::BuiltIn { .. } => notes.push("its functions are the kernel's: kernel.function(...)".into()),
            TargetError::BuildIdMismatch { build_id, debug, debug_build_id, .. } => {
                notes.push(format!(
                    "build-id {} against {} of {}",
                    id_text(build_id),
                    id_text(debug_build_id),
                    debug.display()
                ));
            }
            TargetError::NotOneKernel { releases, .. } if releases.is_empty() => {
                notes.push(
                    "neither lib/modules nor usr/lib/debug/lib/modules below it has a release, and it is not a build tree"
                        .into(),
                );
            }
            TargetError::NotOneKernel { releases, .. } => {
                notes.push(format!("it has {}: name one, with --sysroot", releases.join(", ")));
            }
            TargetError::NoIndex { .. }
            | TargetError::NoBuildId { .. }
            | TargetError::Narrow { .. }
            | TargetError::NoSuchProcess { .. }
            | TargetError::Directory { .. }
            | TargetError::Object(_) => {}
        }
        notes
    }
}

fn searched(paths: &[PathBuf]) -> Option<String> {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    (!paths.is_empty()).then(|| format!("looked at {}", paths.join(", ")))
}

/// The build-id in hex digits, or `(none)`.
fn id_text(build_id: &[u8]) -> String {
    if build_id.is_empty() { "(none)".into() } else { hex::encode(build_id) }
}
