// SPDX-License-Identifier: GPL-2.0-or-later

//! A compiler that is set-uid, or set-gid, does nothing: its caller chooses the name that it is called by, its PATH, and its files.

#![allow(clippy::unwrap_used, reason = "a test that fails may say so in any way")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::{getegid, geteuid, getgroups};

/// A user who has nothing.
const NOBODY: u32 = 65534;

/// Gives the file rights that its next caller does not have; `None`: this user has none to give.
fn elevate(file: &Path) -> Option<()> {
    let mode = match geteuid().is_root() {
        true => 0o4755,
        false => {
            let other = getgroups().ok()?.into_iter().find(|group| *group != getegid())?;
            chown(file, None, Some(other.as_raw())).unwrap();
            0o2755
        }
    };
    fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
    Some(())
}

#[test]
fn only_the_loader_runs_with_rights_of_others() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let file = directory.path().join("spilerun");
    fs::copy(env!("CARGO_BIN_EXE_spile"), &file).unwrap();
    let run = |name: &str, words: &[&str]| {
        let mut command = Command::new(&file);
        command
            .arg0(name)
            .args(words)
            .current_dir("/")
            .env("SPILE_CACHE_DIR", directory.path().join("cache"))
            .env("HOME", "/");
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let script = ["-p1", "-e", "probe begin { }"];
    let (status, messages) = run("spile", &script);
    assert_eq!(status, Some(0), "{messages}");
    if elevate(&file).is_none() {
        return;
    }
    for (name, words) in [
        ("spile", &script[..]),
        ("stap", &script),
        ("", &script),
        ("x", &["package", "x"]),
        ("-spile", &["--help"]),
        ("spile-ended", &["15", "0"]),
    ] {
        let (status, messages) = run(name, words);
        assert!(
            status == Some(4) && messages.starts_with("ERROR: this file is set-uid"),
            "{name}: {status:?} {messages} (TMPDIR must not be mounted nosuid)"
        );
    }
    // As in a file of its own.
    assert_eq!(run("spilerun", &["--help"]).0, Some(0));
}
