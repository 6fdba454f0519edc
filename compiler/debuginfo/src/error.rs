// SPDX-License-Identifier: GPL-2.0-or-later

//! Errors of files and their debug information.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a file or its debug information cannot be used. Cloned where the failure of something read once is remembered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The operating system could not read the file.
    #[error("reading {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: Arc<io::Error>,
    },
    /// Not an object file for this architecture, or a damaged one.
    #[error("{path}: {message}")]
    Elf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A compressed file or section that cannot be unpacked.
    #[error("unpacking {path}: {message}")]
    Unpack {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The object is intact, but has no `.debug_info`.
    #[error("{path} has no debug information (.debug_info)")]
    NoDwarf {
        /// The file.
        path: PathBuf,
    },
    /// Damaged, or of a kind that no compiler of kernels writes.
    #[error("debug information of {path}{}: {message}", .offset.map_or(String::new(), |at| format!(", entry {at:#x}")))]
    Dwarf {
        /// The file.
        path: PathBuf,
        /// The entry in `.debug_info` that is to blame, if known.
        offset: Option<u64>,
        /// What is wrong with it.
        message: String,
    },
}

impl Error {
    /// For `map_err`: the error of a file that cannot be read.
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |error| Error::Read { path, error: Arc::new(error) }
    }
}
