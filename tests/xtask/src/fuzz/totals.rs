// SPDX-License-Identifier: GPL-2.0-or-later

//! docs/fuzz-runs.md: how many inputs each reader has been given in all runs.

/// Below the tree.
pub const PATH: &str = "docs/fuzz-runs.md";

/// `| reader | inputs | commit | date | found |`
fn cells(line: &str) -> Option<[&str; 5]> {
    let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
    inner.split(" | ").collect::<Vec<_>>().try_into().ok()
}

fn inputs(cell: &str) -> Option<u64> {
    cell.replace(' ', "").parse().ok()
}

/// The inputs of a reader so far; 0 if it is not in the table.
pub fn of(text: &str, reader: &str) -> u64 {
    text.lines().filter_map(cells).find(|cells| cells[0] == reader).and_then(|cells| inputs(cells[1])).unwrap_or(0)
}

/// The text with more inputs of a reader, tried at this commit and date, of which this many failed.
pub fn with(text: &str, reader: &str, more: u64, failures: usize, commit: &str, date: &str) -> String {
    let before = text.lines().filter_map(cells).find(|cells| cells[0] == reader);
    let found = before.and_then(|cells| cells[4].parse::<usize>().ok()).unwrap_or(0) + failures;
    let total = of(text, reader) + more;
    let line = format!("| {reader} | {total} | {commit} | {date} | {found} |");
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter().position(|line| cells(line).is_some_and(|cells| cells[0] == reader)) {
        Some(at) => lines[at] = &line,
        None => lines.push(&line),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_grow() {
        let text =
            "# x\n\n| reader | inputs | commit | date | found |\n|---|---|---|---|---|\n| meta | 10 | a | b | 1 |\n";
        assert_eq!((of(text, "meta"), of(text, "conf")), (10, 0));
        let text = with(&with(text, "meta", 5, 1, "c1", "2026-01-02"), "conf", 7, 0, "c2", "2026-01-02");
        assert_eq!((of(&text, "meta"), of(&text, "conf")), (15, 7));
        assert!(text.contains("| meta | 15 | c1 | ") && text.lines().count() == 6);
        assert!(text.lines().nth(4).is_some_and(|line| line.ends_with(" | 2 |")));
    }
}
