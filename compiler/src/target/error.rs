//! What may be missing of a kernel.

use std::path::PathBuf;

use crate::debuginfo;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// Neither modules nor an image of that release are here.
    NoSuchKernel { release: String, looked: Vec<PathBuf> },
    /// No file with debug information; `object` is `the kernel` or `module NAME`.
    NoDebugInfo { object: String, release: String, looked: Vec<PathBuf> },
    NoSuchModule { name: String, release: String, near: Vec<String>, looked: Vec<PathBuf> },
    /// The debug file belongs to another build.
    BuildIdMismatch { object: PathBuf, expected: String, debug: PathBuf, found: String },
    Read(debuginfo::Error),
}

impl TargetError {
    /// For a question about a kernel of which nothing is installed.
    pub fn no_kernel(release: &str) -> TargetError {
        TargetError::NoSuchKernel { release: release.to_string(), looked: Vec::new() }
    }

    /// What else there is to say: where was looked, which package has it, which names come near.
    pub fn notes(&self) -> Vec<String> {
        let looked = |paths: &[PathBuf]| {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            if paths.is_empty() { None } else { Some(format!("looked at {}", paths.join(", "))) }
        };
        match self {
            TargetError::NoSuchKernel { looked: paths, release } => looked(paths)
                .into_iter()
                .chain([format!("Debian's packages are linux-image-{release} and linux-headers-{release}; -r chooses a release that is installed")])
                .collect(),
            TargetError::NoDebugInfo { looked: paths, release, object } => {
                let package = if object == "the kernel" || object.starts_with("module ") {
                    format!("Debian's package is linux-image-{release}-dbg; a module of your own needs to be built with -g")
                } else {
                    String::new()
                };
                looked(paths).into_iter().chain([package]).filter(|note| !note.is_empty()).collect()
            }
            TargetError::NoSuchModule { near, looked: paths, .. } => {
                let near = (!near.is_empty()).then(|| format!("did you mean {}?", near.join(", ")));
                let path = "a module of your own can be named by its path: module(\"/path/x.ko\"), or given with -d".to_string();
                near.into_iter().chain(looked(paths)).chain([path]).collect()
            }
            TargetError::BuildIdMismatch { .. } => vec!["install the debug information of the very same build".to_string()],
            TargetError::Read(_) => Vec::new(),
        }
    }
}

impl std::fmt::Display for TargetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TargetError::NoSuchKernel { release, .. } => write!(f, "kernel {release} is not installed here"),
            TargetError::NoDebugInfo { object, release, .. } => write!(f, "no debug information of {object} ({release})"),
            TargetError::NoSuchModule { name, release, .. } => write!(f, "no module `{name}` for kernel {release}"),
            TargetError::BuildIdMismatch { object, expected, debug, found } => {
                write!(f, "{} has build-id {expected}, its debug file {} has {found}", object.display(), debug.display())
            }
            TargetError::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TargetError {}

impl From<debuginfo::Error> for TargetError {
    fn from(error: debuginfo::Error) -> TargetError {
        TargetError::Read(error)
    }
}
