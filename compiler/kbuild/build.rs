// SPDX-License-Identifier: GPL-2.0-or-later

//! include_dir! notices changed files of a directory, but not added or removed ones. And a digest of the embedded runtime,
//! which is part of the key of each module in the cache.

use std::path::Path;

#[path = "../embedded_digest.rs"]
mod embedded_digest;

const RUNTIME: &str = "../../runtime-c";
const MAKEFILE: &str = "../../Makefile.kbuild";

fn main() -> std::io::Result<()> {
    for source in ["build.rs", "../embedded_digest.rs", RUNTIME, MAKEFILE] {
        println!("cargo::rerun-if-changed={source}");
    }
    let mut files = embedded_digest::files_below(Path::new(RUNTIME), is_source)?;
    files.push(MAKEFILE.into());
    println!("cargo::rustc-env=SPILE_RUNTIME_DIGEST={}", embedded_digest::digest(files)?);
    Ok(())
}

/// At least what src/embed.rs takes.
fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["c", "h", "lds", "sh"].contains(&extension))
}
