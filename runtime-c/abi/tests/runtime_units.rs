// SPDX-License-Identifier: GPL-2.0-or-later

//! Tests those units of runtime-c that also compile in user space: C programs in runtime-c/tests.
//!
//! Compiled with sanitizers; the output names failed cases.

#![allow(clippy::expect_used, reason = "a test that fails may say so in any way")]

use std::path::Path;
use std::process::Command;

/// Compiles a program of runtime-c/tests with the runtime's files that it tests, and runs it: it must print nothing.
fn run(name: &str, sanitizers: &str, files: &[&str], arguments: &[&str]) {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("abi lies in runtime-c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{sanitizers}"));
    let compiled = Command::new("cc")
        .args(["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-pthread"])
        .arg(format!("-fsanitize={sanitizers}"))
        .arg("-o")
        .arg(&program)
        .arg(runtime.join("tests").join(format!("{name}.c")))
        .args(files.iter().map(|file| runtime.join(file)))
        .output()
        .expect("running cc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    let ran = Command::new(&program).args(arguments).output().expect("running the units");
    let output = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success() && output.is_empty(), "{}", String::from_utf8_lossy(&output));
}

#[test]
fn units_of_the_runtime_give_the_expected_text() {
    run("units", "address,undefined", &["format.c", "histogram.c", "pretty.c", "float_text.c", "text.c"], &[]);
}

const MAPS: [&str; 7] = ["kept_text.c", "map.c", "parts.c", "stats.c", "counts.c", "iterate.c", "string.c"];

#[test]
fn arrays_and_aggregates_do_what_a_list_would() {
    run("maps", "address,undefined", &MAPS, &[]);
}

/// features.h has an entry for each compile probe of runtime-c/features, and no other.
#[test]
fn every_feature_says_what_moved_it_and_when_it_can_go() {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("abi lies in runtime-c");
    let header = std::fs::read_to_string(runtime.join("features.h")).expect("features.h");
    let comments = header.split("/*").skip(1).filter_map(|rest| rest.split("*/").next());
    let entries = comments.flat_map(|comment| comment.split("\n *\n"));
    let entries: Vec<String> = entries.map(|entry| entry.replace("\n *", " ").replace("  ", " ")).collect();
    let mut probes = 0;
    for probe in std::fs::read_dir(runtime.join("features")).expect("runtime-c/features") {
        let name = probe.expect("an entry of the directory").file_name().to_string_lossy().replace(".c", "");
        let title = format!(" SPILE_HAVE_{}: ", name.to_uppercase());
        let entry =
            entries.iter().find(|entry| entry.contains(&title)).unwrap_or_else(|| panic!("{name} has no entry"));
        assert!(entry.contains('"'), "{name}: the subject of the commit");
        assert!(entry.contains("first in ") || entry.contains(" in 7.3"), "{name}: the release");
        assert!(entry.contains("Can go ") || entry.contains("Need not go"), "{name}: when it can go");
        probes += 1;
    }
    assert_eq!(entries.iter().filter(|entry| entry.contains(" SPILE_HAVE_") && entry.contains(": ")).count(), probes);
}
