// SPDX-License-Identifier: GPL-2.0-or-later

//! What can keep a module from being built.

use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    NoHeaders {
        release: String,
        looked: PathBuf,
    },
    NoMake,
    /// `wanted` is a command, `gcc-12`.
    NoCompiler {
        wanted: String,
    },
    /// The C compiler refused; the lines that say why.
    Compile {
        lines: Vec<String>,
    },
    /// make failed for another reason.
    Failed {
        log: String,
    },
    /// The headers have no scripts/sign-file.
    NoSigner {
        looked: PathBuf,
    },
    /// Keys were to be where they usually are.
    NoKeys {
        looked: Vec<PathBuf>,
    },
    /// sign-file refused.
    Sign {
        log: String,
    },
    /// A file could not be read or written.
    File {
        path: PathBuf,
        error: String,
    },
}

impl BuildError {
    /// What to do, and what the tools said.
    pub fn notes(&self) -> Vec<String> {
        match self {
            BuildError::NoHeaders { release, looked } => {
                vec![format!("looked at {}", looked.display()), format!("Debian's package is linux-headers-{release}")]
            }
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
            BuildError::File { .. } => vec!["is the disk full? TMPDIR and SPILE_CACHE_DIR choose other places".into()],
        }
    }
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BuildError::NoHeaders { release, .. } => write!(f, "no headers of kernel {release} to build modules with"),
            BuildError::NoMake => write!(f, "no make to build modules with"),
            BuildError::NoCompiler { wanted } => write!(f, "no compiler: the kernel was built with {wanted}"),
            BuildError::Compile { .. } => write!(f, "the C compiler refused the module"),
            BuildError::Failed { .. } => write!(f, "the kernel's Kbuild failed"),
            BuildError::NoSigner { .. } => write!(f, "no sign-file to sign the module with"),
            BuildError::NoKeys { .. } => write!(f, "no key to sign the module with"),
            BuildError::Sign { .. } => write!(f, "the module could not be signed"),
            BuildError::File { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for BuildError {}
