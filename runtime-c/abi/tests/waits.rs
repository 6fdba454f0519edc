// SPDX-License-Identifier: GPL-2.0-or-later

//! How long runs wait for locks, and how many skips end the session, on 256 CPUs: runtime-c/tests/threads/waits.c. By hand:
//! `target/tmp/waits`.

#![allow(clippy::expect_used, reason = "a test that fails may say so in any way")]

use std::path::Path;
use std::process::Command;

#[test]
fn waiting_and_skipping_are_bounded_for_each_run_and_cpu() {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("abi lies in runtime-c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("waits");
    let built = Command::new(runtime.join("tests/threads/build.sh"))
        .arg("-")
        .arg(&program)
        .args(["-DSPILE_TESTS_CLOCK", "-DSHIM_MOST_CPUS=256"])
        .env("MAIN", "waits.c")
        .output()
        .expect("running build.sh");
    assert!(built.status.success() && built.stderr.is_empty(), "{}", String::from_utf8_lossy(&built.stderr));
    let output = Command::new(&program).output().expect("running the program");
    assert!(output.status.success() && output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}
