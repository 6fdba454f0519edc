// SPDX-License-Identifier: GPL-2.0-or-later

//! Standard streams that cannot be written, and limits for files and for the stack, end in a status and a message, never in a panic or a signal.

#![allow(clippy::unwrap_used, reason = "a test that fails may say so in any way")]

use std::process::{Command, Stdio};

/// The status of `spile WORDS` with these redirections of a shell, and what it writes to standard error.
fn status(words: &str, redirections: &str) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("{redirections} \"$0\" {words}");
    let mut command = Command::new("sh");
    command.args(["-c", &line, env!("CARGO_BIN_EXE_spile")]).current_dir(directory.path()).stdin(Stdio::null());
    let output = command.env("SPILE_CACHE_DIR", directory.path().join("cache")).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const RIGHT: &str = "-p1 -e 'probe begin { println(1) }'";
const WRONG: &str = "-p1 -e 'probe begin { println(1 }'";

#[test]
fn standard_error_that_is_full_or_closed() {
    for stream in ["2>/dev/full", "2>&-", "2>/dev/null >&-"] {
        assert_eq!(status(WRONG, stream).0, Some(1), "{stream}");
    }
    assert_eq!(status(RIGHT, "2>/dev/full").0, Some(0));
    // A misspelt option.
    assert_eq!(status("--nonsense", "2>/dev/full").0, Some(1));
}

#[test]
fn standard_output_that_is_full() {
    let (status, messages) = status(RIGHT, ">/dev/full");
    assert_eq!(status, Some(1));
    assert!(messages.contains("writing standard output: No space left on device"), "{messages}");
}

#[test]
fn a_limit_for_files() {
    let (status, messages) = status(RIGHT, "ulimit -f 0; exec >out;");
    assert_eq!(status, Some(1), "{messages}");
    assert!(messages.contains("writing standard output: File too large"), "{messages}");
}

#[test]
fn a_limit_for_the_stack() {
    // The deepest expression that is accepted.
    let deep = format!("-p3 -e 'probe begin {{ println({}1{}) }}'", "(".repeat(200), ")".repeat(200));
    for words in [RIGHT, &deep, "--help"] {
        let (status, messages) = status(words, "ulimit -s 64; exec >/dev/null;");
        assert_eq!(status, Some(0), "{messages}");
    }
    assert_eq!(status(WRONG, "ulimit -s 64;").0, Some(1));
}
