// SPDX-License-Identifier: GPL-2.0-or-later

//! The output of `--version`.

use spile_syntax::LANGUAGE_VERSION;

/// Tools that drive stap read a version from the first line: that of the language.
pub fn lines() -> Vec<String> {
    let own = env!("CARGO_PKG_VERSION");
    vec![
        format!("Systemtap translator/driver (version {LANGUAGE_VERSION}/spile {own})"),
        format!("spile {own}, a compiler for the language of SystemTap {LANGUAGE_VERSION}; not SystemTap itself"),
        "This is free software, GPL-2.0-or-later; there is no warranty.".to_string(),
        "tested kernel versions: 5.10 ... 6.12".to_string(),
        "enabled features: DEBUGINFOD BTF".to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_find_the_version_of_the_language() {
        let lines = lines();
        let first = lines[0].strip_prefix("Systemtap translator/driver (version ").unwrap();
        assert_eq!(first.split_once('/').unwrap().0, LANGUAGE_VERSION);
        assert!(first.ends_with(')') && lines[1].starts_with(&format!("spile {}", env!("CARGO_PKG_VERSION"))));
    }
}
