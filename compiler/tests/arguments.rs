// SPDX-License-Identifier: GPL-2.0-or-later

//! Arguments may come from elsewhere: what a message quotes of them forges no line and no terminal sequence.

#![allow(clippy::unwrap_used, reason = "a test that fails may say so in any way")]

use std::process::{Command, Stdio};

/// An escape sequence, a line of its own, the one-byte form of an escape sequence, and a change of the direction.
const HOSTILE: &str = "zz\u{1b}[2J\nERROR: forged\u{9b}\u{202e}";

fn check(words: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
    command.args(words).current_dir(directory.path()).stdin(Stdio::null());
    let output = command.env("SPILE_CACHE_DIR", directory.path().join("cache")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
    assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{words:?}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("ERROR: forged")), "{words:?}: {text}");
}

#[test]
fn values_of_options() {
    for option in
        ["-G", "-D", "-p", "-m", "-x", "-S", "-a", "--compatible", "--sysroot", "--remote", "--explain", "--format"]
    {
        check(&[option, HOSTILE]);
    }
}

#[test]
fn options() {
    check(&[&format!("--{HOSTILE}")]);
    check(&[HOSTILE]);
}

/// Help is no answer to a mistake before it.
#[test]
fn words_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let word = std::ffi::OsStr::from_bytes(b"\xff\n");
    for words in [&["-m"][..], &["package", "--set-version"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
        let output = command.args(words).arg(word).arg("--help").stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{words:?}: {text}");
        assert!(text.starts_with("error: "), "{text}");
    }
}

#[test]
fn packages() {
    for option in ["--set-version", "--format", "--directory", "--after", "--summary", "--conf"] {
        check(&["package", option, HOSTILE, "name", "name.ko"]);
    }
    check(&["package", "name", HOSTILE]);
    check(&["package", HOSTILE, "name.ko"]);
}
