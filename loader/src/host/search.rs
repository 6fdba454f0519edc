// SPDX-License-Identifier: GPL-2.0-or-later

//! Programs by name.
//!
//! Not the crate `which`: that is 1,700 lines in a set-uid program, for the four below. Whether the file is executable
//! is left to exec(3), which has its own error.

/// Whether a directory of PATH has a file of this name.
pub fn is_in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::is_in_path;

    #[test]
    fn programs_are_found_and_builtins_of_shells_are_not() {
        assert!(is_in_path("sh"));
        assert!(!is_in_path("no-such-program"));
    }
}
