// SPDX-License-Identifier: GPL-2.0-or-later

//! The barriers of lock.c, stripe.h, ring.c, parts.c and condition.c: runtime-c/tests/threads/explore.c tries all interleavings of some CPUs, with loads that
//! see old values. By hand with more of them: `target/tmp/explore 4 2 v` (v: prints how many were tried).

#![allow(clippy::expect_used, reason = "a test that fails may say so in any way")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program; `without`: an order of accesses that it is to leave out everywhere.
fn build(without: Option<&str>) -> PathBuf {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("abi lies in runtime-c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("explore{}", without.unwrap_or_default()));
    let output = Command::new(runtime.join("tests/threads/build.sh"))
        .arg("-")
        .arg(&program)
        .args(["-O3", "-DSPILE_TESTS_EXPLORE"])
        .args(without.map(|order| format!("-DEXPLORE_WITHOUT_{order}")))
        .env("MAIN", "explore.c")
        .output()
        .expect("running build.sh");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// At most three switches between CPUs where one could have gone on, and one old value; `scenario`: only in that one.
fn explore(program: &Path, scenario: Option<&str>) -> Output {
    Command::new(program).args(["3", "1"]).args(scenario).output().expect("running the explorer")
}

#[test]
fn locks_exclude_and_the_reader_is_woken_in_all_interleavings() {
    let output = explore(&build(None), None);
    assert!(output.status.success() && output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn every_kind_of_order_is_needed() {
    let expected: [(&str, &[&str]); 3] = [
        (
            "ACQUIRE",
            &[
                "LOCAL, LOCAL, ALL: accesses race",
                "stripe again, ALL: accesses race",
                "a ring and its reader: accesses race",
                "a reserve that is filled and used: a group is lost",
            ],
        ),
        (
            "RELEASE",
            &[
                "ALL, ALL: accesses race",
                "stripe again, ALL: accesses race",
                "a ring and its reader: accesses race",
                "a reserve that is filled and used: accesses race",
            ],
        ),
        (
            "FULL",
            &[
                "LOCAL, LOCAL, ALL: accesses race",
                "stripe, the same stripe, ALL: accesses race",
                "a ring and its reader: the reader sleeps although there is a record",
                "a condition without a lock: the probe stays off",
            ],
        ),
    ];
    let scenario = "one array after the other, all of both";
    let output = explore(&build(Some("ORDER")), Some(scenario));
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.lines().any(|line| line == format!("{scenario}: too many steps")), "{stdout}");
    for (without, lines) in expected {
        let output = explore(&build(Some(without)), None);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "without {without}");
        for line in lines {
            assert!(stdout.lines().any(|printed| printed == *line), "without {without}: no \"{line}\" in\n{stdout}");
        }
    }
}
