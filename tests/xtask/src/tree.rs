// SPDX-License-Identifier: GPL-2.0-or-later

//! The directory of the workspace, and its commit.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace's directory.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}

/// This program, for processes that it starts: the file that runs, also after another build has replaced it (proc(5),
/// /proc/PID/exe).
pub fn own_program() -> PathBuf {
    PathBuf::from(format!("/proc/{}/exe", std::process::id()))
}

/// The commit that was tested; with a `+` where files outside of docs/ differ from it.
pub fn commit(root: &Path) -> String {
    let root = root.display().to_string();
    let changed =
        !output_of("git", &["-C", &root, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs"])
            .is_empty();
    output_of("git", &["-C", &root, "rev-parse", "--short", "HEAD"]) + if changed { "+" } else { "" }
}

/// Standard output of a program without surrounding blanks; empty if it cannot be run.
pub fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn own_program_is_the_file_that_runs() {
        let (own, file) = (own_program().metadata().unwrap(), std::env::current_exe().unwrap().metadata().unwrap());
        assert_eq!((own.dev(), own.ino()), (file.dev(), file.ino()));
    }
}
