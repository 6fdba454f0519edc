// SPDX-License-Identifier: GPL-2.0-or-later

//! What can be wrong with a file and its debug information.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Errors are remembered where a lazily read thing failed, so they can be cloned.
#[derive(Clone, Debug)]
pub enum Error {
    /// The operating system did not give the file.
    Read { path: PathBuf, error: Arc<io::Error> },
    /// Not an object file for this architecture, or a damaged one.
    Elf { path: PathBuf, message: String },
    /// A compressed file or section that cannot be unpacked.
    Unpack { path: PathBuf, message: String },
    /// The object is whole, and has no `.debug_info`.
    NoDwarf { path: PathBuf },
    /// Damaged, or of a kind that no kernel compiler writes. `offset` is that of the entry in `.debug_info`.
    Dwarf { path: PathBuf, offset: Option<u64>, message: String },
}

impl Error {
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |error| Error::Read { path, error: Arc::new(error) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Read { path, error } => write!(f, "reading {}: {error}", path.display()),
            Error::Elf { path, message } => write!(f, "{}: {message}", path.display()),
            Error::Unpack { path, message } => write!(f, "unpacking {}: {message}", path.display()),
            Error::NoDwarf { path } => write!(f, "{} has no debug information (.debug_info)", path.display()),
            Error::Dwarf { path, offset: Some(offset), message } => {
                write!(f, "debug information of {}, entry {offset:#x}: {message}", path.display())
            }
            Error::Dwarf { path, offset: None, message } => {
                write!(f, "debug information of {}: {message}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {}
