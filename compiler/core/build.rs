// SPDX-License-Identifier: GPL-2.0-or-later

//! include_dir! sees the files of a directory change, but none come or go. And a digest of the embedded library, under which
//! what its files define is in the cache.

use std::path::Path;

#[path = "../embedded_digest.rs"]
mod embedded_digest;

/// What finds the definitions in a file.
const OUTLINE: &str = "../syntax/src/outline.rs";
const LIBRARY: &str = "../../tapset";

fn main() -> std::io::Result<()> {
    for source in ["build.rs", "../embedded_digest.rs", LIBRARY, OUTLINE] {
        println!("cargo::rerun-if-changed={source}");
    }
    let mut files = embedded_digest::files_below(Path::new(LIBRARY), |_| true)?;
    files.push(OUTLINE.into());
    println!("cargo::rustc-env=SPILE_TAPSET_DIGEST={}", embedded_digest::digest(files)?);
    Ok(())
}
