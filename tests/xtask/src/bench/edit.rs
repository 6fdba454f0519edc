// SPDX-License-Identifier: GPL-2.0-or-later

//! Measures the time from an edit to the result of the unit tests: one file of a layer is touched, and `cargo test` of
//! its crate is timed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};

use super::compiler::{busy, load};
use crate::measure;
use crate::programs::cargo;

const PAGE: &str = "docs/bench-edit.md";

const HEAD: &str = "# Edit-to-test times

Written by `cargo xtask bench edit`: after a build, one file is touched and the unit tests of its crate are run. \"Build\" is
`cargo test --no-run`, \"tests\" the run of the test programs. CPU times include all programs that cargo starts; on a busy
machine they are larger than usual, and elapsed times much larger. \"Load\" is the load average before the row was measured.

| tree | edited | crate | build | CPU | tests | CPU | load |
|---|---|---|---|---|---|---|---|
";

/// The arguments of `cargo xtask bench edit`.
#[derive(clap::Args)]
pub struct Options {
    /// The checkout to measure, for example of an older commit; this one by default
    #[arg(long, value_name = "DIR")]
    tree: Option<PathBuf>,
    /// Name of the tree in the table; rows of that name are replaced
    #[arg(long, default_value = "this")]
    label: String,
    /// A file to touch, and the crate whose tests are run; may be repeated [default: one file of syntax, debuginfo and plan]
    #[arg(long = "edit", value_name = "NAME=CRATE:FILE", value_parser = Edit::parse)]
    edits: Vec<Edit>,
}

/// A file of a layer, below the tree.
#[derive(Clone, Debug, PartialEq)]
struct Edit {
    name: String,
    package: String,
    file: PathBuf,
}

impl Edit {
    fn new(name: &str, package: &str, file: &str) -> Edit {
        Edit { name: name.into(), package: package.into(), file: file.into() }
    }

    fn parse(text: &str) -> Result<Edit, String> {
        let (name, rest) = text.split_once('=').ok_or("expected NAME=CRATE:FILE")?;
        let (package, file) = rest.split_once(':').ok_or("expected NAME=CRATE:FILE")?;
        Ok(Edit::new(name, package, file))
    }
}

/// The layers that the page is about.
fn usual() -> Vec<Edit> {
    vec![
        Edit::new("syntax", "spile-syntax", "compiler/syntax/src/lexer.rs"),
        Edit::new("debuginfo", "spile-debuginfo", "compiler/debuginfo/src/dwarf/scope.rs"),
        Edit::new("plan", "spile-core", "compiler/core/src/plan/mod.rs"),
    ]
}

/// Measures the time from an edit to the result of the tests, and writes the page in docs/.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    let tree = options.tree.clone().unwrap_or_else(|| root.clone());
    let edits = if options.edits.is_empty() { usual() } else { options.edits.clone() };
    if busy() {
        println!("the machine is busy: compare CPU times only");
    }
    let mut rows = Vec::new();
    for edit in &edits {
        let load = load();
        let file = tree.join(&edit.file);
        // Everything else is built before.
        test(&tree, &edit.package, &["--no-run"])?;
        let opened = File::options().write(true).open(&file).with_context(|| format!("opening {}", file.display()))?;
        opened.set_modified(SystemTime::now()).with_context(|| format!("touching {}", file.display()))?;
        let built = test(&tree, &edit.package, &["--no-run"])?;
        let ran = test(&tree, &edit.package, &[])?;
        let row = [
            &options.label,
            &edit.name,
            &edit.package,
            &seconds(built.0),
            &seconds(built.1),
            &seconds(ran.0),
            &seconds(ran.1),
            &load,
        ];
        let row = format!("| {} |", row.map(String::as_str).join(" | "));
        println!("{row}");
        rows.push(row);
    }
    let page = root.join(PAGE);
    let old = fs::read_to_string(&page).unwrap_or_default();
    fs::write(&page, merged(&old, &rows)).with_context(|| format!("writing {PAGE}"))?;
    println!("wrote {PAGE}");
    Ok(ExitCode::SUCCESS)
}

/// Elapsed and CPU time of `cargo test` of one crate.
fn test(tree: &Path, package: &str, arguments: &[&str]) -> Result<(Duration, Duration)> {
    let mut command = Command::new(cargo());
    command.args(["test", "--quiet", "--package", package]).args(arguments).current_dir(tree);
    let ran = measure::output(&mut command)?;
    let elapsed = ran.began.elapsed();
    ensure!(ran.status.success(), "cargo test of {package} failed:\n{}\n{}", ran.stdout, ran.stderr);
    Ok((elapsed, ran.processor))
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The page with these rows in place of those with the same tree and name; other rows stay.
fn merged(old: &str, rows: &[String]) -> String {
    let key = |row: &str| row.split('|').skip(1).take(2).map(|cell| cell.trim().to_string()).collect::<Vec<_>>();
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| tree |");
    let stays = |line: &&str| rows.iter().all(|row| key(row) != key(line));
    let mut all: Vec<&str> = old.lines().filter(is_row).filter(stays).collect();
    all.extend(rows.iter().map(String::as_str));
    format!("{HEAD}{}\n", all.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_same_tree_and_name_are_replaced() {
        let row =
            |tree: &str, time: &str| format!("| {tree} | plan | spile-core | {time} | 1.0 s | 1.0 s | 1.0 s | 0.10 |");
        let first = merged("", &[row("before", "9.0 s"), row("this", "3.0 s")]);
        let second = merged(&first, &[row("this", "2.0 s")]);
        assert_eq!(second, format!("{HEAD}{}\n{}\n", row("before", "9.0 s"), row("this", "2.0 s")));
    }

    #[test]
    fn edits_name_a_crate_and_a_file_that_exists() {
        assert_eq!(Edit::parse("a=b:c/d.rs"), Ok(Edit::new("a", "b", "c/d.rs")));
        assert!(Edit::parse("a=b").is_err());
        assert!(usual().iter().all(|edit| crate::root().join(&edit.file).is_file()));
    }
}
