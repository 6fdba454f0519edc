// SPDX-License-Identifier: GPL-2.0-or-later

//! Histograms, series and heat maps as SVG.

use std::fmt::Write;

use spile_abi::format::Histogram;

use super::markup::escape;
use crate::json;

const WIDTH: f64 = 720.0;

/// A short number: `1.5k`, `2M`.
pub fn short(number: i128) -> String {
    let units = [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")];
    let found = units.iter().find(|(size, _)| number.unsigned_abs() >= *size * 10);
    match found {
        Some((size, unit)) => format!("{:.1}{unit}", number as f64 / *size as f64).replace(&format!(".0{unit}"), unit),
        None => number.to_string(),
    }
}

/// `4 – 7`, as a label.
pub fn range(from: Option<i64>, to: Option<i64>) -> String {
    match (from, to) {
        (Some(from), Some(to)) if from == to => short(from.into()),
        (Some(from), Some(to)) => format!("{} – {}", short(from.into()), short(to.into())),
        (Some(from), None) => format!("≥ {}", short(from.into())),
        (None, Some(to)) => format!("≤ {}", short(to.into())),
        (None, None) => "all".to_string(),
    }
}

/// The buckets from the first to the last one that has values: label and count.
pub fn rows(kind: Histogram, counts: &[u64]) -> Vec<(String, u64)> {
    let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
    let last = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    let range_of = |bucket| {
        let (from, to) = json::bounds(kind, bucket, counts.len());
        range(from, to)
    };
    let bucket = |bucket: usize| Some((range_of(bucket), *counts.get(bucket)?));
    (first..last).filter_map(bucket).collect()
}

/// A bar for each bucket.
pub fn histogram(name: &str, kind: Histogram, counts: &[u64]) -> String {
    const ROW: usize = 20;
    const LEFT: f64 = 140.0;
    const RIGHT: f64 = 70.0;
    let rows = rows(kind, counts);
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let height = rows.len() * ROW + 4;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" class=\"chart\" role=\"img\" aria-label=\"Histogram of {}\">\n",
        escape(name)
    );
    for (index, (label, count)) in rows.iter().enumerate() {
        let top = index * ROW;
        let bar = (WIDTH - LEFT - RIGHT) * *count as f64 / most as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text><rect class=\"bar\" x=\"{LEFT}\" y=\"{}\" width=\"{bar:.1}\" height=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{}\">{count}</text>",
            LEFT - 8.0,
            top + 15,
            top + 2,
            ROW - 4,
            LEFT + bar + 6.0,
            top + 15
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// A line through the points.
pub fn series(name: &str, points: &[(u64, i128)], start: u64) -> String {
    const HEIGHT: f64 = 160.0;
    const LEFT: f64 = 70.0;
    const BOTTOM: f64 = 24.0;
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let low = points.iter().map(|(_, value)| *value).min().unwrap_or(0).min(0);
    let high = points.iter().map(|(_, value)| *value).max().unwrap_or(0).max(low + 1);
    let span = last.0.saturating_sub(first.0).max(1) as f64;
    let x = |time: u64| LEFT + (WIDTH - LEFT - 10.0) * time.saturating_sub(first.0) as f64 / span;
    let y = |value: i128| 8.0 + (HEIGHT - BOTTOM - 8.0) * (1.0 - (value - low) as f64 / (high - low) as f64);
    // No more points than pixels: the greatest of each.
    let mut shown: Vec<(i64, i128, u64)> = Vec::new();
    for (time, value) in points {
        let column = x(*time) as i64;
        match shown.last_mut() {
            Some((last, greatest, _)) if *last == column => *greatest = (*greatest).max(*value),
            _ => shown.push((column, *value, *time)),
        }
    }
    let line: Vec<String> = shown.iter().map(|(_, value, time)| format!("{:.1},{:.1}", x(*time), y(*value))).collect();
    let seconds = |time: u64| format!("{:.3} s", time.saturating_sub(start) as f64 / 1e9);
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" class=\"chart\" role=\"img\" aria-label=\"{name} over time, from {lowest} to {highest}\">\n\
         <line class=\"axis\" x1=\"{LEFT}\" y1=\"{base}\" x2=\"{right}\" y2=\"{base}\"/>\
         <text x=\"{label}\" y=\"16\" text-anchor=\"end\">{highest}</text><text x=\"{label}\" y=\"{base}\" text-anchor=\"end\">{lowest}</text>\
         <text x=\"{LEFT}\" y=\"{below}\">{from}</text><text x=\"{right}\" y=\"{below}\" text-anchor=\"end\">{to}</text>\
         <polyline class=\"line\" points=\"{line}\"/>\n</svg>\n",
        name = escape(name),
        lowest = short(low),
        highest = short(high),
        base = HEIGHT - BOTTOM,
        right = WIDTH - 10.0,
        label = LEFT - 6.0,
        below = HEIGHT - 6.0,
        from = seconds(first.0),
        to = seconds(last.0),
        line = line.join(" "),
    )
}

/// A column for each time, a row for each bucket. The counts of a histogram that grows are turned into those since the time
/// before.
pub fn heat_map(name: &str, kind: Histogram, times: &[(u64, Vec<u64>)], start: u64) -> String {
    const ROW: f64 = 14.0;
    const LEFT: f64 = 140.0;
    let columns = differences(times);
    let filled = |bucket: usize| columns.iter().any(|(_, counts)| counts.get(bucket).is_some_and(|count| *count > 0));
    let buckets = times.first().map_or(0, |(_, counts)| counts.len());
    let (Some(first), Some(last)) =
        ((0..buckets).find(|bucket| filled(*bucket)), (0..buckets).rfind(|bucket| filled(*bucket)))
    else {
        return String::new();
    };
    let most = columns.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or(1).max(1);
    let cell = (WIDTH - LEFT - 10.0) / columns.len() as f64;
    let height = (last - first + 1) as f64 * ROW + 24.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" class=\"chart\" role=\"img\" aria-label=\"{} over time\">\n",
        escape(name)
    );
    for bucket in first..=last {
        let top = (last - bucket) as f64 * ROW;
        let (from, to) = json::bounds(kind, bucket, buckets);
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            top + 11.0,
            range(from, to)
        );
        for (index, (_, counts)) in columns.iter().enumerate() {
            let count = counts.get(bucket).copied().unwrap_or(0);
            if count > 0 {
                // A tenth is visible, too.
                let shade = 0.15 + 0.85 * (count as f64).ln_1p() / (most as f64).ln_1p();
                let left = LEFT + index as f64 * cell;
                let _ = write!(
                    svg,
                    "<rect class=\"bar\" fill-opacity=\"{shade:.2}\" x=\"{left:.1}\" y=\"{top}\" width=\"{cell:.2}\" height=\"{}\"><title>{count}</title></rect>",
                    ROW - 1.0
                );
            }
        }
        svg.push('\n');
    }
    let seconds =
        |time: Option<&(u64, Vec<u64>)>| time.map_or(0.0, |(time, _)| time.saturating_sub(start) as f64 / 1e9);
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{0}\">{1:.3} s</text><text x=\"{2}\" y=\"{0}\" text-anchor=\"end\">{3:.3} s</text></svg>",
        height - 6.0,
        seconds(columns.first()),
        WIDTH - 10.0,
        seconds(columns.last())
    );
    svg
}

/// If no count ever falls, what each time added.
fn differences(times: &[(u64, Vec<u64>)]) -> Vec<(u64, Vec<u64>)> {
    let grows = times.windows(2).all(|pair| match pair {
        [(_, one), (_, next)] => one.iter().zip(next).all(|(one, next)| one <= next),
        _ => true,
    });
    if !grows {
        return times.to_vec();
    }
    let mut before: Vec<u64> = Vec::new();
    let mut added = Vec::new();
    for (time, counts) in times {
        let old = |bucket: usize| before.get(bucket).copied().unwrap_or(0);
        added.push((
            *time,
            counts.iter().enumerate().map(|(bucket, count)| count.saturating_sub(old(bucket))).collect(),
        ));
        before.clone_from(counts);
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_short() {
        assert_eq!(short(9999), "9999");
        assert_eq!(short(15_360), "15.4k");
        assert_eq!(short(-20_000_000), "-20M");
        assert_eq!(range(Some(4), Some(7)), "4 – 7");
        assert_eq!(range(None, Some(-1)), "≤ -1");
    }

    #[test]
    fn a_growing_histogram_shows_what_was_added() {
        let times = vec![(1, vec![1, 0]), (2, vec![3, 1]), (3, vec![3, 1])];
        assert_eq!(differences(&times), [(1, vec![1, 0]), (2, vec![2, 1]), (3, vec![0, 0])]);
        let fresh = vec![(1, vec![5, 0]), (2, vec![1, 1])];
        assert_eq!(differences(&fresh), fresh);
    }

    #[test]
    fn charts_escape_names_and_survive_extremes() {
        let mut counts = vec![0; 128];
        (counts[0], counts[64], counts[127]) = (1, u64::MAX, 2);
        let name = "<b>\"x\"";
        let all = [
            histogram(name, Histogram::Log, &counts),
            heat_map(name, Histogram::Log, &[(0, counts.clone()), (u64::MAX, counts.clone())], 0),
            series(name, &[(0, i128::from(i64::MIN)), (u64::MAX, i128::from(u64::MAX))], 5),
            series(name, &[(3, 0)], 0),
        ];
        for svg in all {
            assert!(
                svg.starts_with("<svg") && !svg.contains("<b>") && !svg.contains("NaN") && !svg.contains("inf"),
                "{svg}"
            );
        }
        assert_eq!(heat_map(name, Histogram::Log, &[], 0), "");
    }
}
