// SPDX-License-Identifier: GPL-2.0-or-later

//! Programs by name.
//!
//! Not the crate `which`: that is 1,700 lines in a set-uid program, for the three below. Whether the file is executable
//! is left to exec(3), which has its own error.

use std::path::PathBuf;

/// The file of this name in the first directory of PATH that has one.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::in_path;

    #[test]
    fn programs_are_found_and_builtins_of_shells_are_not() {
        assert!(in_path("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(in_path("no-such-program"), None);
    }
}
