// SPDX-License-Identifier: GPL-2.0-or-later

//! Builds the programs of the workspace.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The message before cargo is run while another one builds in the same tree: cargo would wait without one, as its
/// messages are not shown.
pub const WAITING: &str = "another cargo builds in this tree (rust-analyzer, for instance): waiting for it";

/// The programs under test, as users get them.
pub fn build_programs(root: &Path) -> Result<()> {
    announce_wait(root);
    let status = Command::new(cargo())
        .args(["build", "--quiet", "--package", "spile", "--package", "spilerun"])
        .current_dir(root)
        .status()
        .context("running cargo build")?;
    ensure!(status.success(), "the programs do not build");
    Ok(())
}

/// The cargo that runs this.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string())
}

/// Prints [`WAITING`] if a cargo that is about to be run will wait for its lock on this tree's debug build.
pub fn announce_wait(root: &Path) {
    if is_building(&root.join("target/debug")) {
        println!("{WAITING}");
    }
}

/// Whether a cargo holds its lock, a flock(2), on this directory of artifacts.
fn is_building(artifacts: &Path) -> bool {
    let lock = File::options().write(true).open(artifacts.join(".cargo-lock"));
    lock.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_in_progress_is_noticed() {
        let artifacts = tempfile::tempdir().expect("a temporary directory");
        assert!(!is_building(artifacts.path()), "nothing was built there");
        let lock = File::create(artifacts.path().join(".cargo-lock")).expect("a file");
        assert!(!is_building(artifacts.path()), "nobody builds there");
        lock.lock().expect("the lock");
        assert!(is_building(artifacts.path()));
        drop(lock);
        assert!(!is_building(artifacts.path()), "the build has ended");
    }

    #[test]
    fn cargo_has_its_lock_in_this_file() {
        // The directory of this test program's artifacts, where cargo has built it.
        let program = std::env::current_exe().expect("this program");
        let artifacts = program.ancestors().nth(2).expect("a directory");
        assert!(artifacts.join(".cargo-lock").exists(), "{}", artifacts.display());
    }
}
