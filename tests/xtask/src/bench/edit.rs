// SPDX-License-Identifier: GPL-2.0-or-later

//! Measures the time from an edit to the result of the unit tests: one file of a layer is touched, and `cargo test` of
//! its crate is timed. For the edits of users, the time from a change of a script to the diagnostics of the language server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};

use super::compiler::{busy, load};
use crate::converse::diagnostics_costs;
use crate::measure;
use crate::place::Place;
use crate::programs::cargo;

const PAGE: &str = "docs/bench-edit.md";

const HEAD: &str = "# Edit-to-test times

Written by `cargo xtask bench edit`: after a build, one file is touched and the unit tests of its crate are run. \"Build\" is
`cargo test --no-run`, \"tests\" the run of the test programs. CPU times include all programs that cargo starts; on a busy
machine they are larger than usual, and elapsed times much larger. \"Load\" is the load average before the row was measured.

| tree | edited | crate | build | CPU | tests | CPU | load |
|---|---|---|---|---|---|---|---|
";

const DIAGNOSTICS_HEAD: &str = "
## Diagnostics in an editor

A script of 202 lines with 25 probes at 10 functions of the kernel is open in `spile --language-server` (a release build); the index of the
kernel is in the cache. \"First\" is from the start of the server to the first diagnostics. Then a word is misspelt and corrected again, 40
changes in all: \"median\" and \"slowest\" are from a change to its diagnostics, \"CPU\" is a change's part of the server's CPU time. The goal is 100 ms.

| tree | kernel | first | median | slowest | CPU | load |
|---|---|---|---|---|---|---|
";

/// Changes of the script that are timed.
const CHANGES: usize = 40;

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
    /// Only the diagnostics of the language server
    #[arg(long, conflicts_with_all = ["edits", "tree"])]
    diagnostics: bool,
    /// The compiler whose language server is measured; default: that of cargo build --release
    #[arg(long, value_name = "FILE")]
    spile: Option<PathBuf>,
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
    let edits = match options.diagnostics {
        true => Vec::new(),
        false if options.edits.is_empty() => usual(),
        false => options.edits.clone(),
    };
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
    let looked = match options.tree.is_none() && options.edits.is_empty() {
        true => vec![diagnostics(options)?],
        false => Vec::new(),
    };
    let page = root.join(PAGE);
    let old = fs::read_to_string(&page).unwrap_or_default();
    fs::write(&page, merged(&old, &rows, &looked)).with_context(|| format!("writing {PAGE}"))?;
    println!("wrote {PAGE}");
    Ok(ExitCode::SUCCESS)
}

/// The row of the language server.
fn diagnostics(options: &Options) -> Result<String> {
    let program = match &options.spile {
        Some(file) => file.canonicalize().with_context(|| format!("finding {}", file.display()))?,
        None => super::compiler::released()?,
    };
    let release = Place::find(None)?.kernel.release;
    let text = script();
    // It fills the cache: the server itself writes none.
    let mut compiler = Command::new(&program);
    let compiled = compiler.args(["-r", &release, "-p2", "-e", &text]).output().context("running spile")?;
    ensure!(compiled.status.success(), "the script is wrong:\n{}", String::from_utf8_lossy(&compiled.stderr));
    let load = load();
    let mut costs = diagnostics_costs(&program, &release, &text, ["println(n, p", "prntln(n, p"], CHANGES)?;
    costs.changes.sort();
    let median = costs.changes.get(CHANGES / 2).copied().unwrap_or_default();
    let slowest = costs.changes.last().copied().unwrap_or_default();
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    let processor = costs.processor / CHANGES as u32;
    let cells =
        [options.label.as_str(), &release, &seconds(costs.first), &ms(median), &ms(slowest), &ms(processor), &load];
    let row = format!("| {} |", cells.join(" | "));
    println!("{row}");
    Ok(row)
}

/// 202 lines.
fn script() -> String {
    const FUNCTIONS: [&str; 10] = [
        "vfs_read",
        "vfs_write",
        "vfs_open",
        "vfs_fsync",
        "vfs_unlink",
        "vfs_mkdir",
        "vfs_rmdir",
        "vfs_statx",
        "do_exit",
        "wake_up_process",
    ];
    let probe = |(number, function): (usize, &str)| {
        format!(
            "probe kernel.function(\"{function}\")\n{{\n  count[execname(), pid()]++\n  if (pid() == target())\n    \
             printf(\"%s %d\\n\", execname(), tid())\n  sizes[pid()] <<< gettimeofday_us()\n  last = \"{number}\"\n}}\n"
        )
    };
    let probes: String = FUNCTIONS.iter().copied().cycle().take(25).enumerate().map(probe).collect();
    let end =
        "probe end { foreach ([n, p] in count-) println(n, p, count[n, p]) println(@count(sizes[1])) println(last) }";
    format!("global count, sizes, last\n{probes}{end}\n")
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

/// The page with these rows in place of those with the same tree and name; other rows stay. `looked`: those of the language server.
fn merged(old: &str, rows: &[String], looked: &[String]) -> String {
    let (edits, diagnostics) = old.split_once("\n## ").unwrap_or((old, ""));
    format!("{HEAD}{}\n{DIAGNOSTICS_HEAD}{}\n", table(edits, rows), table(diagnostics, looked))
}

/// The rows of a table.
fn table(old: &str, rows: &[String]) -> String {
    let key = |row: &str| row.split('|').skip(1).take(2).map(|cell| cell.trim().to_string()).collect::<Vec<_>>();
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| tree |");
    let stays = |line: &&str| rows.iter().all(|row| key(row) != key(line));
    let mut all: Vec<&str> = old.lines().filter(is_row).filter(stays).collect();
    all.extend(rows.iter().map(String::as_str));
    all.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_same_tree_and_name_are_replaced() {
        let row =
            |tree: &str, time: &str| format!("| {tree} | plan | spile-core | {time} | 1.0 s | 1.0 s | 1.0 s | 0.10 |");
        let looked = |time: &str| format!("| this | 6.1 | 1.0 s | {time} | 9.0 ms | 8.0 ms | 0.10 |");
        let first = merged("", &[row("before", "9.0 s"), row("this", "3.0 s")], &[looked("8.0 ms")]);
        let second = merged(&first, &[row("this", "2.0 s")], &[]);
        let third = merged(&second, &[], &[looked("7.0 ms")]);
        let rows = format!("{}\n{}", row("before", "9.0 s"), row("this", "2.0 s"));
        assert_eq!(third, format!("{HEAD}{rows}\n{DIAGNOSTICS_HEAD}{}\n", looked("7.0 ms")));
    }

    #[test]
    fn the_script_has_202_lines() {
        assert_eq!(script().lines().count(), 202);
    }

    #[test]
    fn edits_name_a_crate_and_a_file_that_exists() {
        assert_eq!(Edit::parse("a=b:c/d.rs"), Ok(Edit::new("a", "b", "c/d.rs")));
        assert!(Edit::parse("a=b").is_err());
        assert!(usual().iter().all(|edit| crate::root().join(&edit.file).is_file()));
    }
}
