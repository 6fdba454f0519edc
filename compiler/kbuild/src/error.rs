// SPDX-License-Identifier: GPL-2.0-or-later

//! Errors of building a module.

use std::path::PathBuf;

/// Why a module was not built. Displayed as one line; [`BuildError::notes`] are the lines below it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The kernel's build directory is not installed.
    #[error("the headers of kernel {release}, which modules are built with, are not installed")]
    NoHeaders {
        /// The kernel's release.
        release: String,
        /// The directory that is missing.
        looked: PathBuf,
    },
    /// The headers are not installed, and this script needs more than the stored recipe.
    #[error("the headers of kernel {release} are not installed; C in a script (%{{ %}}) and --kbuild need them")]
    NeedsHeaders {
        /// The kernel's release.
        release: String,
    },
    /// The headers are not installed, and the compiler is not the one that compiled the cached runtime.
    #[error("the headers of kernel {release} are not installed, and its runtime was compiled by another compiler")]
    OtherCompiler {
        /// The kernel's release.
        release: String,
        /// What the runtime was compiled by.
        recorded: String,
        /// What is here.
        version: String,
    },
    /// make is not installed.
    #[error("no make to build modules with")]
    NoMake,
    /// Neither the kernel's compiler nor one of a near version is installed.
    #[error("no compiler: the kernel was built with {wanted}")]
    NoCompiler {
        /// The command, `gcc-12`.
        wanted: String,
    },
    /// The module did not compile.
    #[error("the C compiler refused the module")]
    Compile {
        /// Its messages.
        lines: Vec<String>,
    },
    /// make failed for another reason.
    #[error("the kernel's Kbuild failed")]
    Failed {
        /// The end of its output.
        log: String,
    },
    /// The headers have no scripts/sign-file.
    #[error("no sign-file to sign the module with")]
    NoSigner {
        /// The paths that were searched.
        looked: PathBuf,
    },
    /// There are no keys in the usual places.
    #[error("no key to sign the module with")]
    NoKeys {
        /// The paths that were searched.
        looked: Vec<PathBuf>,
    },
    /// sign-file failed.
    #[error("the module could not be signed")]
    Sign {
        /// Its output.
        log: String,
    },
    /// The directory of `-R` has no runtime.
    #[error("{}: {error}", path.display())]
    Runtime {
        /// The file or directory of it that cannot be read.
        path: PathBuf,
        /// The system's error.
        error: String,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: String,
    },
}

impl BuildError {
    /// What to do, and the tools' messages.
    pub fn notes(&self) -> Vec<String> {
        match self {
            BuildError::NoHeaders { release, looked } => {
                vec![
                    format!("looked at {}", looked.display()),
                    format!("Debian's package is linux-headers-{release}"),
                    "a script is compiled without them if the cache has the runtime of this kernel, compiled when they were installed"
                        .into(),
                ]
            }
            BuildError::NeedsHeaders { release } => vec![format!("Debian's package is linux-headers-{release}")],
            BuildError::OtherCompiler { release, recorded, version } => vec![
                format!("the runtime was compiled by {recorded}, this compiler is {version}"),
                format!("Debian's package of the headers is linux-headers-{release}"),
            ],
            BuildError::NoMake => vec!["Debian's package is make".into()],
            BuildError::NoCompiler { wanted } => vec![format!("Debian's package is {wanted}")],
            BuildError::Compile { lines } => lines.clone(),
            BuildError::Failed { log } => vec![log.clone()],
            BuildError::NoSigner { looked } => vec![format!("looked at {}", looked.display()), "Debian has it in the package linux-kbuild of the kernel's version".into()],
            BuildError::NoKeys { looked } => looked
                .iter()
                .map(|path| format!("looked at {}", path.display()))
                .chain(["--sign-key FILE --sign-cert FILE name others; mokutil --import CERTIFICATE makes one known to the kernel".into()])
                .collect(),
            BuildError::Sign { log } => log.lines().map(str::to_string).collect(),
            BuildError::Runtime { .. } => vec![
                "-R takes the directory runtime-c of spile's sources, with Makefile.kbuild beside it; without -R the built-in one is used".into(),
            ],
            BuildError::File { .. } => vec!["is the disk full? TMPDIR and SPILE_CACHE_DIR choose other places".into()],
        }
    }
}
