// SPDX-License-Identifier: GPL-2.0-or-later

//! The directory of the workspace.

use std::path::{Path, PathBuf};

/// The workspace's directory.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}
