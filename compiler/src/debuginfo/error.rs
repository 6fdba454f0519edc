//! What can be wrong with an object file or its debug information.

use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The file cannot be read.
    File { path: PathBuf, error: String },
    /// It is no ELF file, or a damaged one.
    Elf { path: PathBuf, error: String },
    NoDebugInfo,
    /// A section does not hold what DWARF says it holds.
    Dwarf(gimli::Error),
    /// A reference leads nowhere, or in a circle.
    Damaged(&'static str),
}

impl From<gimli::Error> for Error {
    fn from(error: gimli::Error) -> Error {
        Error::Dwarf(error)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::File { path, error } => write!(f, "reading {}: {error}", path.display()),
            Error::Elf { path, error } => write!(f, "{} is no usable ELF file: {error}", path.display()),
            Error::NoDebugInfo => write!(f, "the object has no debug information (.debug_info)"),
            Error::Dwarf(error) => write!(f, "damaged debug information: {error}"),
            Error::Damaged(what) => write!(f, "damaged debug information: {what}"),
        }
    }
}

impl std::error::Error for Error {}
