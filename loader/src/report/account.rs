// SPDX-License-Identifier: GPL-2.0-or-later

//! Accounting of hits: the outcome of every hit of every probe, as a line, a table, or JSON.
//!
//! `hits = handled + filtered + nested + lock_skipped + low_stack + stopped + sampled + return_misses`, all counted by
//! the module; a call whose return could not be probed is a hit too. Lost records are counted separately.
//!
//! JSON is written by hand: two objects, in whose strings control characters must be escaped too (serde_json would need
//! a custom formatter for that, five crates and 6 KB).

use std::fmt::Write;

use spile_abi::device::{Counters, MECHANISMS};
use spile_abi::meta::Probe;

use spile_abi::escape;

/// Output format of `--stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Table,
    /// One object in one line.
    Json,
    /// As SystemTap's `-t` prints it, in the script's output.
    Report,
}

/// A counter and its value.
type Count = (&'static str, u64);

fn misses(counters: &Counters) -> [Count; 5] {
    [
        ("another handler was running on that CPU", counters.nested),
        ("a global was locked", counters.lock_skipped),
        ("little stack was left", counters.low_stack),
        ("returns missed, see .maxactive()", counters.return_misses),
        ("records lost", counters.lost_records),
    ]
}

/// Warnings at the end; None if all hits were handled and no record was lost.
pub fn missed(all: &[Counters]) -> Option<String> {
    let mut sums = misses(&Counters::default());
    let mut hits = 0u64;
    for counters in all {
        hits = hits.saturating_add(counters.hits);
        for (sum, (_, count)) in sums.iter_mut().zip(misses(counters)) {
            sum.1 = sum.1.saturating_add(count);
        }
    }
    let missed: Vec<String> =
        sums.iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{count} ({what})")).collect();
    (!missed.is_empty())
        .then(|| format!("of {hits} hits were missed: {}; --stats shows which probes missed them", missed.join(", ")))
}

/// The name of the attachment mechanism; empty if the probe was not attached.
pub fn mechanism(counters: &Counters) -> &'static str {
    MECHANISMS.get(counters.mechanism as usize).copied().unwrap_or_default()
}

/// All counters of a probe, by short names.
pub fn columns(counters: &Counters) -> [Count; 11] {
    [
        ("hits", counters.hits),
        ("handled", counters.handled),
        ("filtered", counters.filtered),
        ("nested", counters.nested),
        ("locked", counters.lock_skipped),
        ("low stack", counters.low_stack),
        ("stopped", counters.stopped),
        ("sampled", counters.sampled),
        ("returns missed", counters.return_misses),
        ("records lost", counters.lost_records),
        ("faulted in", counters.faulted_in),
    ]
}

/// Minimum, average and maximum cycles of the timed runs; None if none was timed.
fn cycles(counters: &Counters) -> Option<(u64, u64, u64)> {
    let average = counters.cycles.checked_div(counters.timed)?;
    Some((counters.least_cycles, average, counters.most_cycles))
}

/// A row for each probe; columns that are empty for all probes are omitted, except hits and handled.
pub fn table(probes: &[Probe], all: &[Counters]) -> String {
    let shown: Vec<bool> = (0..columns(&Counters::default()).len())
        .map(|column| {
            column < 2 || all.iter().any(|counters| columns(counters).get(column).is_some_and(|(_, count)| *count > 0))
        })
        .collect();
    let pick = |cells: Vec<String>| {
        cells.into_iter().zip(&shown).filter(|(_, shown)| **shown).map(|(cell, _)| cell).collect::<Vec<_>>()
    };
    let mut head = pick(columns(&Counters::default()).iter().map(|(name, _)| name.to_string()).collect());
    head.extend(["cycles min/avg/max".to_string(), "by".to_string(), "probe".to_string()]);
    let mut rows = vec![head];
    for (probe, counters) in probes.iter().zip(all) {
        let mut row = pick(columns(counters).iter().map(|(_, count)| count.to_string()).collect());
        row.push(cycles(counters).map_or("-".into(), |(least, average, most)| format!("{least}/{average}/{most}")));
        row.push(Some(mechanism(counters)).filter(|name| !name.is_empty()).unwrap_or("-").to_string());
        row.push(format!("{} ({})", probe.point, probe.place));
        rows.push(row);
    }
    let count = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..count)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Numbers are right-aligned, names left-aligned, without trailing blanks.
            let _ = match () {
                () if column + 1 == count => writeln!(text, "{cell}"),
                () if column + 2 == count => write!(text, "{cell:<width$}  "),
                () => write!(text, "{cell:>width$}  "),
            };
        }
    }
    text
}

/// A line for each probe in SystemTap's words. It lacks the variance of the cycles, as that of older versions did.
pub fn report(probes: &[Probe], all: &[Counters]) -> String {
    let mut text = String::from("----- probe hit report: \n");
    for (index, (probe, counters)) in probes.iter().zip(all).enumerate() {
        let cycles = cycles(counters)
            .map_or_else(String::new, |(least, average, most)| format!(" cycles: {least}min/{average}avg/{most}max,"));
        let Probe { point, script_point, place } = probe;
        let hits = counters.handled;
        let _ = writeln!(text, "{point}, ({place}), hits: {hits},{cycles} from: {script_point}, index: {index}");
    }
    text
}

/// One object in one line.
pub fn json(probes: &[Probe], all: &[Counters]) -> String {
    format!("{{\"probes\":{}}}", json_list(probes, all))
}

/// The list of probes in [`json`].
pub fn json_list(probes: &[Probe], all: &[Counters]) -> String {
    let mut text = String::from("[");
    for (index, (probe, counters)) in probes.iter().zip(all).enumerate() {
        let separator = if index > 0 { "," } else { "" };
        let _ = write!(text, "{separator}{{\"point\":{},\"place\":{}", quoted(&probe.point), quoted(&probe.place));
        for (name, count) in columns(counters) {
            let _ = write!(text, ",\"{}\":{count}", name.replace(' ', "_"));
        }
        let (armed, errors, by) = (counters.armed, counters.errors, quoted(mechanism(counters)));
        let _ = write!(text, ",\"errors\":{errors},\"armed\":{armed},\"by\":{by}");
        if let Some((least, average, most)) = cycles(counters) {
            let timed = counters.timed;
            let _ = write!(text, ",\"cycles\":{{\"timed\":{timed},\"min\":{least},\"avg\":{average},\"max\":{most}}}");
        }
        text.push('}');
    }
    text.push(']');
    text
}

/// A string as in JSON and Prometheus. Terminal control characters are escaped as in JSON.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            c if escape::is_obeyed(c) => out.push_str(&escape::json(c.encode_utf8(&mut [0; 4]))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes() -> Vec<Probe> {
        let probe = |point: &str| Probe { point: point.into(), script_point: point.into(), place: "a.stp:1:1".into() };
        vec![probe("kernel.function(\"f\")"), probe("end")]
    }

    fn counters() -> Vec<Counters> {
        let first = Counters {
            hits: 13,
            handled: 7,
            nested: 2,
            stopped: 1,
            return_misses: 3,
            timed: 2,
            cycles: 9,
            least_cycles: 4,
            most_cycles: 5,
            mechanism: 5,
            ..Counters::default()
        };
        vec![first, Counters { hits: 1, handled: 1, ..Counters::default() }]
    }

    #[test]
    fn missed_hits_are_one_line() {
        assert_eq!(missed(&[Counters { hits: 5, handled: 4, filtered: 1, ..Counters::default() }]), None);
        let expected = "of 14 hits were missed: 2 (another handler was running on that CPU), \
                        3 (returns missed, see .maxactive()); --stats shows which probes missed them";
        assert_eq!(missed(&counters()).as_deref(), Some(expected));
    }

    #[test]
    fn tables_omit_empty_columns() {
        let expected = "\
hits  handled  nested  stopped  returns missed  cycles min/avg/max  by         probe
  13        7       2        1               3               4/4/5  kretprobe  kernel.function(\"f\") (a.stp:1:1)
   1        1       0        0               0                   -  -          end (a.stp:1:1)
";
        assert_eq!(table(&probes(), &counters()), expected);
    }

    #[test]
    fn the_report_is_systemtaps() {
        let expected = "\
----- probe hit report: 
kernel.function(\"f\"), (a.stp:1:1), hits: 7, cycles: 4min/4avg/5max, from: kernel.function(\"f\"), index: 0
end, (a.stp:1:1), hits: 1, from: end, index: 1
";
        assert_eq!(report(&probes(), &counters()), expected);
    }

    #[test]
    fn strings_are_json_without_control_characters() {
        assert_eq!(quoted("a\"\\\n\x1b\u{9b}\u{202e}\u{e0041}é"), r#""a\"\\\n\u001b\u009b\u202e\udb40\udc41é""#);
    }

    #[test]
    fn json_has_every_count() {
        let text = json(&probes(), &counters());
        assert!(
            text.starts_with(
                r#"{"probes":[{"point":"kernel.function(\"f\")","place":"a.stp:1:1","hits":13,"handled":7,"#
            ),
            "{text}"
        );
        assert!(text.contains(r#""returns_missed":3,"records_lost":0,"faulted_in":0,"errors":0,"armed":0,"by":"kretprobe","cycles":{"timed":2,"min":4,"avg":4,"max":5}}"#));
        assert!(text.ends_with(r#""by":""}]}"#));
    }
}
