// SPDX-License-Identifier: GPL-2.0-or-later

//! One test run in a tree at a time. Two would empty each other's target/tests, and the second would replace programs
//! that the first is about to copy into its guest.
//!
//! The lock is a flock(2): a killed run does not hold it.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use anyhow::{Context, Result};

/// The message of a run that has to wait.
pub const WAITING: &str = "another cargo xtask test runs in this tree: waiting";

/// Holds the lock of this tree. It is close-on-exec, so programs started meanwhile do not hold it.
pub struct TreeLock {
    _held: File,
}

impl TreeLock {
    /// Waits for the run that has `target`, the build directory; `announce` is called before waiting.
    pub fn in_tree(target: &Path, announce: impl FnOnce()) -> Result<TreeLock> {
        fs::create_dir_all(target).with_context(|| format!("making {}", target.display()))?;
        let path = target.join("tests.lock");
        // The file has no contents; opening it does not affect the holder.
        let file = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                announce();
                file.lock().with_context(|| format!("waiting for {}", path.display()))?;
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
        Ok(TreeLock { _held: file })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_second_run_reports_that_it_waits_and_runs_after_the_first() {
        let target = tempfile::tempdir().expect("a temporary directory");
        let first = TreeLock::in_tree(target.path(), || panic!("nobody else is there")).expect("the lock");
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let waits = sender.clone();
                let _lock =
                    TreeLock::in_tree(target.path(), move || waits.send("waits").expect("heard")).expect("the lock");
                sender.send("has it").expect("heard");
            });
            assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok("waits"));
            assert!(receiver.recv_timeout(Duration::from_millis(200)).is_err(), "both have it");
            drop(first);
            assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok("has it"));
            second.join().expect("the second run");
        });
    }

    #[test]
    fn a_stale_lock_file_does_not_block() {
        let target = tempfile::tempdir().expect("a temporary directory");
        for _ in 0..2 {
            TreeLock::in_tree(&target.path().join("target"), || panic!("nobody is there")).expect("the lock");
        }
    }
}
