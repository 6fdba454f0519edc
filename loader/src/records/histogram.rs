// SPDX-License-Identifier: GPL-2.0-or-later

//! Prints a histogram as SystemTap does: a row for each bucket from two before the first non-empty one to two after the
//! last, bars of at most 50 columns, and gaps of more than four empty rows replaced by one with `~`, unless the script was
//! compiled with other numbers (`-D HIST_WIDTH`, `-D HIST_ELISION`). Values out of a linear histogram's range have rows
//! only if there are any.
//!
//! Must match runtime-c/histogram.c; `tests/parity.rs` compares the two.

use spile_abi::format::{Chart, Histogram};

use crate::records::payload::{Payload, ShortPayload};
use crate::records::text::Text;

/// Empty rows before the first non-empty one and after the last.
const MARGIN: usize = 2;
/// The bucket of 0 in a logarithmic histogram.
const LOG_ZERO: usize = 64;

/// Appends the histogram whose counts are next in the payload.
pub fn render(kind: Histogram, chart: Chart, payload: &mut Payload<'_>, text: &mut Text) -> Result<(), ShortPayload> {
    if let Some(bytes) = payload.bytes()? {
        let mut counts: Vec<u64> = bytes.chunks_exact(8).map(number).collect();
        counts.resize(kind.buckets() as usize, 0);
        Drawing { kind, chart, counts }.draw(text);
    }
    Ok(())
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

struct Drawing {
    kind: Histogram,
    chart: Chart,
    counts: Vec<u64>,
}

impl Drawing {
    fn draw(&self, text: &mut Text) {
        let filled = |count: &u64| *count > 0;
        let (Some(mut first), Some(mut last)) =
            (self.counts.iter().position(filled), self.counts.iter().rposition(filled))
        else {
            return;
        };
        for _ in 0..MARGIN {
            // Without negative values there are no negative rows.
            if first > 0 && (self.kind != Histogram::Log || first != LOG_ZERO) {
                first -= 1;
            }
            last = (last + 1).min(self.counts.len() - 1);
        }
        if self.kind != Histogram::Log {
            let outer = self.counts.len() - 1;
            first += usize::from(first == 0 && self.counts.first() == Some(&0));
            last -= usize::from(last == outer && self.counts.last() == Some(&0));
        }
        let most = self.counts.iter().copied().max().unwrap_or(0);
        let width = usize::from(self.chart.columns);
        let scale = most.div_ceil(u64::from(self.chart.columns).max(1)).max(1);
        let labels: Vec<String> = (first..=last).map(|bucket| self.label(bucket)).collect();
        let columns = labels.iter().map(String::len).max().unwrap_or(0).max("value".len());
        let count_columns = most.to_string().len();
        text.push(format!("{:>columns$} |{} count\n", "value", "-".repeat(width)).as_bytes());
        let mut gap = false;
        for (bucket, label) in (first..=last).zip(labels) {
            if self.is_in_gap(bucket, last) {
                gap = true;
                continue;
            }
            if std::mem::take(&mut gap) {
                text.push(format!("{:>columns$} ~\n", "").as_bytes());
            }
            let count = self.counts.get(bucket).copied().unwrap_or(0);
            let bar = "@".repeat((count / scale) as usize);
            text.push(format!("{label:>columns$} |{bar:width$} {count:>count_columns$}\n").as_bytes());
        }
        text.push_byte(b'\n');
    }

    /// Neither the bucket nor those beside it have values.
    fn is_in_gap(&self, bucket: usize, last: usize) -> bool {
        let Some(kept) = self.chart.kept.map(usize::from) else { return false };
        let beside = bucket.saturating_sub(kept)..=(bucket + kept).min(last);
        self.counts.get(beside).unwrap_or_default().iter().all(|&count| count == 0)
    }

    /// The lower bound of a bucket, with `<` or `>` for the outer ones of a linear histogram.
    fn label(&self, bucket: usize) -> String {
        match self.kind {
            Histogram::Log => match bucket.checked_sub(LOG_ZERO) {
                Some(0) => 0,
                Some(power) => (1u64 << (power - 1)) as i64,
                None => (1u64 << (LOG_ZERO - 1 - bucket)).wrapping_neg() as i64,
            }
            .to_string(),
            Histogram::Linear { low, width, .. } => {
                let at = |steps: usize| low.wrapping_add(width.wrapping_mul(steps as i64));
                match bucket {
                    0 => format!("<{low}"),
                    _ if bucket + 1 == self.counts.len() => format!(">{}", at(bucket - 2)),
                    _ => at(bucket - 1).to_string(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(kind: Histogram, filled: &[(usize, u64)]) -> String {
        drawn_as(Chart::default(), kind, filled)
    }

    fn drawn_as(chart: Chart, kind: Histogram, filled: &[(usize, u64)]) -> String {
        let mut counts = vec![0; kind.buckets() as usize];
        filled.iter().for_each(|&(bucket, count)| counts[bucket] = count);
        let mut text = Text::new(1 << 16);
        Drawing { kind, chart, counts }.draw(&mut text);
        String::from_utf8(text.as_bytes().to_vec()).expect("a chart is ASCII")
    }

    #[test]
    fn rows_bars_and_gaps() {
        let chart = drawn(Histogram::Log, &[(65, 3), (66, 60), (75, 1)]);
        let lines: Vec<&str> = chart.lines().collect();
        assert_eq!(lines[0], format!("value |{} count", "-".repeat(50)));
        assert_eq!(lines[1], format!("    0 |{} {:>2}", " ".repeat(50), 0));
        assert_eq!(lines[2], format!("    1 |@{} {:>2}", " ".repeat(49), 3));
        assert_eq!(lines[3], format!("    2 |{}{} 60", "@".repeat(30), " ".repeat(20)));
        assert_eq!(lines[6], "      ~");
        assert_eq!(lines[9], format!(" 1024 |{} {:>2}", " ".repeat(50), 1));
        assert_eq!(lines.len(), 13);
        assert!(chart.ends_with("\n\n"));
    }

    /// HIST_WIDTH and HIST_ELISION.
    #[test]
    fn other_columns_and_gaps() {
        let rows = |columns, kept| {
            let text = drawn_as(Chart { columns, kept }, Histogram::Log, &[(65, 3), (66, 60), (75, 1)]);
            text.lines().map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(
            rows(20, Some(0)),
            [
                "value |-------------------- count",
                "      ~",
                "    1 |@                     3",
                "    2 |@@@@@@@@@@@@@@@@@@@@ 60",
                "      ~",
                " 1024 |                      1",
                "",
            ]
        );
        assert_eq!(rows(50, None).len(), 16);
        assert_eq!(rows(50, Some(200)).len(), 16);
        assert!(rows(255, Some(2)).iter().all(|line| line.len() < 270));
    }

    #[test]
    fn outer_buckets_of_linear_histograms() {
        let chart = drawn(Histogram::Linear { low: -10, high: 20, width: 10 }, &[(0, 1), (5, 2)]);
        let labels: Vec<&str> =
            chart.lines().filter_map(|line| line.split_once(" |")).map(|(label, _)| label).collect();
        assert_eq!(labels, ["value", " <-10", "  -10", "    0", "   10", "   20", "  >20"]);
    }

    #[test]
    fn an_empty_histogram_prints_nothing() {
        assert_eq!(drawn(Histogram::Log, &[]), "");
    }
}
