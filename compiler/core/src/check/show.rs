// SPDX-License-Identifier: GPL-2.0-or-later

//! The report as a table for people, or as JSON for programs.

use super::{Item, Kind, Report, Verdict};

/// A line for each probe point and, indented below it, each of its variables:
///
/// ```text
/// a.stp:1:7   kernel.function("vfs_read")   fs/read_write.c:450
///                 6.12   same      now line 471, was 450
/// ```
pub fn table(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let names = report.kernels.get(1..).unwrap_or_default();
    let first = report.kernels.first().map_or("", String::as_str);
    lines.push(format!("Against {first}:"));
    let width = names.iter().map(String::len).max().unwrap_or(0);
    for item in &report.items {
        lines.push(heading(item));
        for (name, outcome) in names.iter().zip(&item.outcomes) {
            let mark = if outcome.well { " " } else { "!" };
            let line = format!("  {mark}   {name:width$}  {:12}  {}", outcome.verdict.text(), outcome.detail);
            lines.push(line.trim_end().to_string());
        }
    }
    for (index, name) in names.iter().enumerate() {
        lines.push(format!("{name}: {}", counts(report, index)));
    }
    lines
}

fn heading(item: &Item) -> String {
    match item.kind {
        Kind::Probe => format!("{}  {}  ({})", item.place, item.text, item.first),
        Kind::Variable => format!("{}    {}  ({}; {})", item.place, item.text, item.first, item.within),
    }
}

/// `12 same, 1 renamed, 2 gone: will not work as it does`.
fn counts(report: &Report, index: usize) -> String {
    let outcomes = || report.items.iter().filter_map(|item| item.outcomes.get(index));
    let all = [
        Verdict::Same,
        Verdict::New,
        Verdict::Moved,
        Verdict::Inlined,
        Verdict::Renamed,
        Verdict::Changed,
        Verdict::TypeChanged,
        Verdict::Gone,
        Verdict::Unknown,
    ];
    let counted = all.iter().map(|verdict| (verdict, outcomes().filter(|outcome| outcome.verdict == *verdict).count()));
    let parts: Vec<String> =
        counted.filter(|(_, count)| *count > 0).map(|(verdict, count)| format!("{count} {}", verdict.text())).collect();
    let well = outcomes().all(|outcome| outcome.well);
    let verdict = if well {
        "the script works there as on the first"
    } else {
        "the script does not work there as it does on the first"
    };
    format!("{}: {verdict}", if parts.is_empty() { "nothing asked".to_string() } else { parts.join(", ") })
}

/// One object: `{"kernels":[...],"items":[{"kind":"probe","text":...,"place":...,"first":...,"outcomes":[{"verdict":"same",
/// "detail":"","well":true}]}],"well":true}`.
pub fn json(report: &Report) -> String {
    serde_json::to_string(report).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;

    #[test]
    fn a_table_and_an_object() {
        let outcome = Outcome::new(Verdict::Renamed, "f -> g").to("g");
        let item = Item {
            kind: Kind::Probe,
            text: "kernel.function(\"f\")".into(),
            place: "a.stp:1:7".into(),
            within: String::new(),
            first: "a.c:3".into(),
            outcomes: vec![outcome],
        };
        let report = Report { kernels: vec!["6.1".into(), "6.12".into()], items: vec![item], well: false };
        let expected = [
            "Against 6.1:",
            "a.stp:1:7  kernel.function(\"f\")  (a.c:3)",
            "  !   6.12  renamed       f -> g",
            "6.12: 1 renamed: the script does not work there as it does on the first",
        ];
        assert_eq!(table(&report), expected);
        let object: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
        assert_eq!(object["items"][0]["outcomes"][0]["to"], "g");
        assert_eq!(object["items"][0]["outcomes"][0]["verdict"], "renamed");
        assert_eq!(object["well"], false);
    }
}
