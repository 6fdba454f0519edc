// SPDX-License-Identifier: GPL-2.0-or-later

//! The tables of docs/kernels.md and docs/debug-kernel.md: results of the guest tests on other kernels, a row for each
//! kernel and set of tests. A run of all tests, or of whole directories (`probe/`), replaces its row.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::place::Place;
use crate::tree::{commit, output_of};

const HEAD: &str = "| line | release | compiler | tests | passed | failed | not applicable | commit | date |\n|---|---|---|---|---|---|---|---|---|\n";
/// Precedes the table on its page; an empty line ends it.
const MARK: &str = "<!-- The table below is written by cargo xtask. -->\n\n";
const NOT_APPLICABLE_HEAD: &str = "| line | not applicable | only for |\n|---|---|---|\n";

/// The result of a run.
pub(super) struct Counts {
    /// Number of tests that passed.
    pub(super) passed: usize,
    /// Number of tests that failed.
    pub(super) failed: usize,
    /// Tests that are not for this kernel, and the kernels that they are for: the words of `guest:` in their header.
    pub(super) not_applicable: Vec<(String, String)>,
}

/// Writes the run's row, unless it was a run of single tests. `line` is the value of `--kernel`; without it, a run on
/// this machine's kernel has no row.
pub(super) fn record(root: &Path, place: &Place, line: Option<&str>, names: &[String], counts: &Counts) -> Result<()> {
    let (page, line) = match line {
        _ if place.is_own_build() => ("docs/debug-kernel.md", "debug"),
        Some(line) => ("docs/kernels.md", line),
        None => return Ok(()),
    };
    if !names.iter().all(|name| name.ends_with('/')) {
        return Ok(());
    }
    let tests = match names {
        [] => "all".to_string(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    };
    let compiler = place.command("gcc", root).arg("-dumpfullversion").output();
    let compiler = compiler.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    let cells = [
        line.to_string(),
        place.kernel.release.clone(),
        format!("gcc {}", compiler.unwrap_or_default()),
        tests,
        counts.passed.to_string(),
        counts.failed.to_string(),
        counts.not_applicable.len().to_string(),
        commit(root),
        output_of("date", &["-u", "+%F"]),
    ];
    let file = root.join(page);
    let text = fs::read_to_string(&file).with_context(|| format!("reading {page}"))?;
    let text = with_row(&text, &cells).with_context(|| format!("{page} has no table of results"))?;
    // Runs of some directories only have results of their own tests.
    let text = match names {
        [] => with_not_applicable(&text, line, &counts.not_applicable)
            .with_context(|| format!("{page} has no table of tests that are not applicable"))?,
        _ => text,
    };
    fs::write(&file, text).with_context(|| format!("writing {page}"))
}

/// Bytes of the rows that a text begins with.
fn length_of_rows(text: &str) -> usize {
    text.split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum()
}

/// The page with this row in its table, replacing the row of the same line and tests. None without a table.
fn with_row(page: &str, cells: &[String; 9]) -> Option<String> {
    let (before, rest) = page.split_once(&format!("{MARK}{HEAD}"))?;
    let (table, after) = rest.split_at(length_of_rows(rest));
    let same = |row: &str| {
        let old: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        old.first() == Some(&cells[0].as_str()) && old.get(3) == Some(&cells[3].as_str())
    };
    let new = format!("| {} |", cells.join(" | "));
    let mut rows: Vec<&str> = table.lines().collect();
    match rows.iter().position(|row| same(row)) {
        Some(index) => rows[index] = &new,
        None => rows.push(&new),
    }
    Some(format!("{before}{MARK}{HEAD}{}\n{after}", rows.join("\n")))
}

/// The page with the tests that are not for the kernels of this line, a row for each set of kernels that they are for, in the
/// place of the old rows.
fn with_not_applicable(page: &str, line: &str, tests: &[(String, String)]) -> Option<String> {
    let (before, rest) = page.split_once(NOT_APPLICABLE_HEAD)?;
    let (table, after) = rest.split_at(length_of_rows(rest));
    let start = format!("| {line} |");
    let others = table.lines().filter(|row| !row.is_empty() && !row.starts_with(&start)).map(String::from);
    let mut by_kernels: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, only) in tests {
        by_kernels.entry(only).or_default().push(format!("`{name}`"));
    }
    let own = by_kernels.iter().map(|(only, names)| format!("{start} {} | {only} |", names.join(", ")));
    let mut rows: Vec<String> = others.chain(own).collect();
    rows.sort();
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    Some(format!("{before}{NOT_APPLICABLE_HEAD}{rows}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(line: &str, tests: &str, passed: &str) -> [String; 9] {
        [line, "6.1.0", "gcc 12", tests, passed, "0", "1", "abc", "2026-01-02"].map(String::from)
    }

    #[test]
    fn a_run_has_one_row() {
        let page = format!("# Kernels\n\n{MARK}{HEAD}\n## More\n");
        let page = with_row(&page, &cells("6.1", "all", "10")).expect("a table");
        let page = with_row(&page, &cells("6.1", "`probe/`", "3")).expect("a table");
        let page = with_row(&page, &cells("6.1", "all", "11")).expect("a table");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| 6.1 ")).collect();
        assert_eq!(rows.len(), 2, "{page}");
        assert!(rows[0].contains("| all | 11 |") && rows[1].contains("| `probe/` | 3 |"), "{page}");
        assert!(page.ends_with("|\n\n## More\n"), "{page}");
    }

    #[test]
    fn the_pages_have_their_tables() {
        for page in ["docs/kernels.md", "docs/debug-kernel.md"] {
            let text = fs::read_to_string(crate::root().join(page)).expect("the page");
            assert!(with_row(&text, &cells("6.1", "all", "10")).is_some(), "{page}");
            assert!(with_not_applicable(&text, "6.1", &[]).is_some(), "{page}");
        }
    }

    #[test]
    fn tests_of_a_line_that_are_not_applicable_are_replaced() {
        let page = format!("# Kernels\n\n{NOT_APPLICABLE_HEAD}\n## More\n");
        let tests = |names: &[&str]| names.iter().map(|name| (name.to_string(), "6.1".to_string())).collect::<Vec<_>>();
        let page = with_not_applicable(&page, "6.12", &tests(&["b"])).expect("a table");
        let page = with_not_applicable(&page, "5.10", &tests(&["a"])).expect("a table");
        let page = with_not_applicable(&page, "6.12", &tests(&["c", "d"])).expect("a table");
        let rows: Vec<&str> = page.lines().filter(|line| line.ends_with("| 6.1 |")).collect();
        assert_eq!(rows, ["| 5.10 | `a` | 6.1 |", "| 6.12 | `c`, `d` | 6.1 |"], "{page}");
        assert!(page.ends_with("|\n\n## More\n"), "{page}");
        assert!(page.contains(&format!("{NOT_APPLICABLE_HEAD}| 5.10")), "{page}");
    }
}
