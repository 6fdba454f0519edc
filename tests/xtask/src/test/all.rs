// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask test --all`: what takes hours, after the ordinary tests. Each part is a command that can also be run by
//! hand; docs/test-runs.md has the date, commit and result of the last run of each.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::report::Report;
use crate::tree::{commit, output_of};

/// A task of this program, or one of its tests for longer than usual.
struct Part {
    name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const PARTS: [Part; 16] = [
    Part { name: "clippy", arguments: &["lint"], environment: &[] },
    Part { name: "every kernel line", arguments: &["matrix"], environment: &[] },
    Part { name: "guest tests beside a busy CPU, 20 times", arguments: &["beside-load"], environment: &[] },
    Part { name: "kernel with KASAN and lockdep", arguments: &["debug-kernel"], environment: &[] },
    Part { name: "a service's whole life, with systemd", arguments: &["systemd"], environment: &[] },
    Part {
        name: "torture, ten minutes",
        arguments: &["test", "lifecycle/torture"],
        environment: &[("SPILE_TEST_SECONDS", "600")],
    },
    Part {
        name: "random programs, 2000",
        arguments: &["model", "--seed", "100000", "--count", "2000"],
        environment: &[],
    },
    Part {
        name: "random inputs, a million for each reader",
        arguments: &["fuzz", "--inputs", "1000000"],
        environment: &[],
    },
    Part { name: "random calls of the device, with KASAN", arguments: &["fuzz", "device"], environment: &[] },
    Part {
        name: "attack, ten hours",
        arguments: &["attack", "--seed", "1000", "--hours", "10", "--seconds", "3"],
        environment: &[],
    },
    Part { name: "attack by scripts written by hand", arguments: &["attack", "--list"], environment: &[] },
    Part {
        name: "the same, with KASAN and lockdep",
        arguments: &["attack", "--list", "--debug-kernel"],
        environment: &[],
    },
    Part {
        name: "attack on 6.12, two hours",
        arguments: &["attack", "--kernel", "6.12", "--seed", "500000", "--hours", "2", "--seconds", "3"],
        environment: &[],
    },
    Part { name: "build times", arguments: &["bench", "build", "--check"], environment: &[] },
    Part { name: "times of listings", arguments: &["bench", "debuginfo", "--check"], environment: &[] },
    Part { name: "cost of a hit", arguments: &["bench", "runtime", "--check"], environment: &[] },
];

const PAGE: &str = "docs/test-runs.md";
const HEAD: &str = "# Long tests\n\nWritten by `cargo xtask test --all`: the last run of each part.\n\n| part | command | date | commit | duration | result |\n|---|---|---|---|---|---|\n";

/// Runs the parts one after the other; a failed part does not stop the rest.
pub fn run(root: &Path, report: &Report) -> Result<()> {
    for part in &PARTS {
        println!("\n{}: cargo xtask {}", part.name, part.arguments.join(" "));
        let began = Instant::now();
        let mut command = Command::new(crate::tree::own_program());
        command.args(part.arguments).envs(part.environment.iter().copied()).current_dir(root).stdin(Stdio::null());
        let status = command.status().with_context(|| format!("running the part {}", part.name))?;
        report.report_one(part.name, status.success(), "see above");
        note(root, part, began.elapsed(), status.success())?;
    }
    Ok(())
}

/// Writes the row of the part, replacing its old one.
fn note(root: &Path, part: &Part, took: Duration, ok: bool) -> Result<()> {
    let page = root.join(PAGE);
    let before = fs::read_to_string(&page).unwrap_or_default();
    let environment: String = part.environment.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    let command = format!("`{environment}cargo xtask {}`", part.arguments.join(" "));
    let minutes = took.as_secs().div_ceil(60);
    let cells = [
        part.name,
        &command,
        &output_of("date", &["-u", "+%F %R"]),
        &commit(root),
        &format!("{minutes} min"),
        if ok { "passed" } else { "failed" },
    ];
    fs::write(&page, with_row(&before, &cells)).with_context(|| format!("writing {}", page.display()))
}

/// The page with this row; others are unchanged.
fn with_row(page: &str, cells: &[&str; 6]) -> String {
    let start = format!("| {} |", cells[0]);
    let row = format!("| {} |\n", cells.join(" | "));
    let rows: Vec<&str> = page.strip_prefix(HEAD).unwrap_or_default().lines().collect();
    let known = rows.iter().any(|line| line.starts_with(&start));
    let rows = rows.into_iter().map(|line| if line.starts_with(&start) { row.clone() } else { format!("{line}\n") });
    let last = (!known).then(|| row.clone());
    HEAD.to_string() + &rows.chain(last).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_one_row() {
        let page = with_row("", &["a", "`x`", "then", "c1", "1 min", "failed"]);
        let page = with_row(&page, &["b", "`y`", "then", "c1", "2 min", "passed"]);
        let page = with_row(&page, &["a", "`x`", "now", "c2", "3 min", "passed"]);
        assert_eq!(
            page,
            format!("{HEAD}| a | `x` | now | c2 | 3 min | passed |\n| b | `y` | then | c1 | 2 min | passed |\n")
        );
    }
}
