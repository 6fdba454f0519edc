// SPDX-License-Identifier: GPL-2.0-or-later

//! The workspace's unit tests: built at once with the programs, then one job for each test program. `cargo test` runs
//! them one after the other, and many have fewer tests than there are CPUs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::report::Report;
use super::timings::{Part, Timings};
use crate::measure;
use crate::parallel::Job;
use crate::programs::{announce_wait, cargo};

/// Tests that are run by one command, in the directory of their crate.
#[derive(Debug, PartialEq, Eq)]
pub struct Unit {
    name: String,
    tests: Tests,
    directory: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
enum Tests {
    /// A compiled test program.
    Program(PathBuf),
    /// The examples in the documentation of the library in this directory, relative to the root.
    Examples(String),
}

impl Unit {
    /// Other than the name, no two have the same: a library and a program may be called alike.
    fn identity(&self) -> String {
        match &self.tests {
            Tests::Program(program) => format!("{} {}", self.name, program.display()),
            Tests::Examples(library) => format!("{} {library}", self.name),
        }
    }
}

/// Builds the programs and the unit tests: nothing is compiled again later, except examples in the documentation.
pub fn build(root: &Path, timings: &Timings) -> Result<Vec<Unit>> {
    let mut command = Command::new(cargo());
    command.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    command.current_dir(root).stdin(Stdio::null());
    println!("building the programs and the unit tests");
    announce_wait(root);
    let built = measure::output(&mut command)?;
    timings.add(Part::Building, "cargo test --workspace --no-run", built.began, built.processor);
    ensure!(built.status.success(), "the programs or their unit tests do not build:\n{}", built.stderr);
    let units: Vec<Unit> = built.stdout.lines().filter_map(|message| unit(message, root)).collect();
    ensure!(!units.is_empty(), "cargo has built no test program");
    Ok(units)
}

/// From a message of cargo with the reason "compiler-artifact" (the Cargo Book, External Tools). Only crates below `root`.
fn unit(message: &str, root: &Path) -> Option<Unit> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let directory = Path::new(message["manifest_path"].as_str()?).parent().filter(|path| path.starts_with(root))?;
    let (crate_name, directory_name) = (message["target"]["name"].as_str()?, directory.file_name()?.to_str()?);
    let (name, tests) = if message["profile"]["test"] == true {
        (format!("{crate_name} of {directory_name}"), Tests::Program(message["executable"].as_str()?.into()))
    } else if message["target"]["doctest"] == true {
        let relative = directory.strip_prefix(root).ok()?.to_str()?;
        (format!("examples of {directory_name}"), Tests::Examples(format!("{relative}/")))
    } else {
        return None;
    };
    Some(Unit { name, tests, directory: directory.into() })
}

/// Those that take longest (docs/test-timings.md), the longest first: so none of them is the last, with the other CPUs idle.
const LONGEST: [&str; 4] =
    ["interleavings of abi", "agreement of compiler", "spile_debuginfo of debuginfo", "hostile of compiler"];

/// A job for each of the units, which runs its tests on at most `threads` threads; in the order in which they should begin.
pub fn jobs<'a>(units: &'a [Unit], threads: usize, report: &'a Report, timings: &'a Timings) -> Vec<Job<'a>> {
    let mut units: Vec<&Unit> = units.iter().collect();
    units.sort_by_key(|unit| LONGEST.iter().position(|name| *name == unit.name).unwrap_or(LONGEST.len()));
    let job = |unit: &'a Unit| -> Job<'a> { Box::new(move || run(unit, threads, report, timings)) };
    units.into_iter().map(job).collect()
}

fn run(unit: &Unit, threads: usize, report: &Report, timings: &Timings) -> Result<()> {
    let key = report.key_of_tree(&unit.identity());
    if report.has_passed(key.as_ref(), &unit.name) {
        return Ok(());
    }
    let mut command = match &unit.tests {
        Tests::Program(program) => measure::low_priority(program),
        Tests::Examples(_) => measure::low_priority(cargo()),
    };
    match &unit.tests {
        Tests::Program(_) => command.env("CARGO_MANIFEST_DIR", &unit.directory),
        // For a single package cargo would build its dependencies again, with fewer features.
        Tests::Examples(library) => command.args(["test", "--doc", "--workspace", "--", library]),
    };
    command.env("RUST_TEST_THREADS", threads.to_string()).current_dir(&unit.directory).stdin(Stdio::null());
    let ran = measure::output(&mut command)?;
    timings.add(Part::UnitTests, &unit.name, ran.began, ran.processor);
    let counted: Vec<_> = ran.stdout.lines().filter_map(counts).collect();
    let failed: usize = counted.iter().map(|(_, failed)| failed).sum();
    let passed = counted.iter().map(|(passed, _)| passed).sum();
    report.add(passed, failed);
    report.print(&format!("{}:\n{}", unit.name, ran.stdout.trim_end()));
    if failed > 0 {
        report.print_failure(&format!("FAILED  {}:\n{}", unit.name, failures(&ran.stdout)));
        report.print(ran.stderr.trim_end());
    }
    let output = [ran.stdout, ran.stderr].concat();
    ensure!(ran.status.success() || failed > 0, "{}: its tests ended with {}:\n{output}", unit.name, ran.status);
    if ran.status.success() {
        report.note_passed(key.as_ref(), &unit.name, passed);
    }
    Ok(())
}

/// The part of the tests' output about failures, from "failures:" to the counts.
fn failures(output: &str) -> String {
    let mut is_inside = false;
    let lines = output.lines().filter(|line| {
        is_inside = (is_inside || *line == "failures:") && !line.starts_with("test result: ");
        is_inside
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// From "test result: ok. 14 passed; 0 failed; 0 ignored; ...".
fn counts(line: &str) -> Option<(usize, usize)> {
    passed_and_failed(line.strip_prefix("test result: ")?)
}

/// The first two numbers.
fn passed_and_failed(text: &str) -> Option<(usize, usize)> {
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn counts_of_a_test_program() {
        let line = "test result: FAILED. 14 passed; 2 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.02s";
        assert_eq!(counts(line), Some((14, 2)));
        assert_eq!(counts("running 3 tests"), None);
    }

    #[test]
    fn failures_of_a_test_program() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nwhy\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed\n\nrunning 0 tests\n";
        assert_eq!(
            failures(output).split_whitespace().collect::<Vec<_>>().join(" "),
            "failures: ---- b stdout ---- why failures: b"
        );
    }

    #[test]
    fn counts_of_the_story() {
        assert_eq!(passed_and_failed("61 passed, 1 failed"), Some((61, 1)));
        assert_eq!(passed_and_failed("boot"), None);
    }

    #[test]
    fn units_of_cargo() {
        let message = |directory: &str, rest: &str| {
            let text = format!(r#"{{"manifest_path":"{directory}/Cargo.toml",{rest}}}"#);
            unit(&text, Path::new("/s"))
        };
        let test = r#""target":{"name":"t","doctest":true},"profile":{"test":true},"executable":"/s/t-1""#;
        let library = r#""target":{"name":"l","doctest":true},"profile":{"test":false},"executable":null"#;
        let other = r#""target":{"name":"l","doctest":false},"profile":{"test":false},"executable":"/s/l""#;
        let found = |name: &str, tests: Tests| Some(Unit { name: name.into(), tests, directory: "/s/loader".into() });
        let other_program = test.replace("t-1", "t-2");
        let identity = |rest: &str| message("/s/loader", rest).unwrap().identity();
        assert_ne!(identity(test), identity(&other_program), "of the same name");
        assert_eq!(message("/s/loader", test), found("t of loader", Tests::Program("/s/t-1".into())));
        assert_eq!(message("/s/loader", library), found("examples of loader", Tests::Examples("loader/".into())));
        assert_eq!(message("/s/loader", other), None);
        assert_eq!(message("/registry/n", library), None);
        assert_eq!(unit("warning", Path::new("/s")), None);
    }

    #[test]
    fn the_longest_are_there() {
        let mut command = Command::new(cargo());
        command.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]).current_dir(crate::root());
        let metadata: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        let packages = metadata["packages"].as_array().unwrap().iter();
        let names: BTreeSet<String> = packages
            .flat_map(|package| {
                let directory = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
                let directory = directory.file_name().unwrap().to_str().unwrap().to_string();
                let targets = package["targets"].as_array().unwrap().iter();
                targets.map(move |target| format!("{} of {directory}", target["name"].as_str().unwrap()))
            })
            .collect();
        assert!(LONGEST.iter().all(|name| names.contains(*name)), "{names:?}");
    }

    /// Packages with the features that cargo selects for them.
    fn packages(of: &[&str]) -> BTreeSet<String> {
        let mut command = Command::new(cargo());
        command.args(["tree", "--offline", "--prefix", "none", "--format", "{p} {f}"]).args(of);
        let output = command.current_dir(crate::root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.trim_end_matches(" (*)").to_string()).collect()
    }

    #[test]
    fn the_workspace_has_the_features_of_its_programs() {
        let workspace = packages(&["--workspace"]);
        for programs in [&["--package", "xtask"][..], &["--package", "spile", "--package", "spilerun"]] {
            let selected = packages(&[programs, &["--edges", "normal,build"]].concat());
            let twice: Vec<_> = selected.difference(&workspace).collect();
            assert!(twice.is_empty(), "built twice, with all that depends on it: {twice:?}");
        }
    }

    #[test]
    fn regular_expressions_are_built_once() {
        let all: Vec<_> = packages(&["--workspace", "--edges", "normal,build"])
            .into_iter()
            .filter(|package| ["regex ", "regex-", "aho-"].iter().any(|name| package.starts_with(name)))
            .collect();
        assert_eq!(all.len(), 4, "{all:?}");
    }

    #[test]
    fn programs_link_only_optimised_libraries() {
        let profiles = std::fs::read_to_string(crate::root().join("Cargo.toml")).unwrap();
        let lines: Vec<&str> = profiles.lines().collect();
        let unoptimised = lines
            .array_windows()
            .filter(|[_, level]| *level == "opt-level = 0")
            .filter_map(|[section, _]| section.strip_prefix("[profile.dev.package.")?.strip_suffix(']'));
        let linked = packages(&["--workspace", "--edges", "normal,no-proc-macro"]);
        let slow: Vec<&str> =
            unoptimised.filter(|name| linked.iter().any(|package| package.split(' ').next() == Some(name))).collect();
        assert!(slow.is_empty(), "{slow:?}");
    }
}
