// SPDX-License-Identifier: GPL-2.0-or-later

//! Extractors of aggregates, and histograms.

use std::fmt::Write;

use super::{Evaluated, error};
use crate::model::tree::{Extractor, Histogram};

/// The extractor's value over all samples; an error if there are none, except for @count and @sum.
pub(super) fn extract(extractor: Extractor, samples: &[i64]) -> Evaluated<i64> {
    let sum = samples.iter().fold(0i64, |sum, sample| sum.wrapping_add(*sample));
    let found = match extractor {
        Extractor::Count => Some(samples.len() as i64),
        Extractor::Sum => Some(sum),
        Extractor::Min => samples.iter().min().copied(),
        Extractor::Max => samples.iter().max().copied(),
        // Of the samples, not of their sum, which may have wrapped.
        Extractor::Avg => (!samples.is_empty()).then(|| (exact_sum(samples) / samples.len() as i128) as i64),
    };
    found.map_or_else(|| error("empty aggregate"), Ok)
}

fn exact_sum(samples: &[i64]) -> i128 {
    samples.iter().map(|sample| i128::from(*sample)).sum()
}

/// The sample variance, divided by n - 1. None if sums of squares would overflow.
pub(super) fn variance(samples: &[i64]) -> Evaluated<Option<i64>> {
    const LARGEST: i64 = 20_000;
    let count = samples.len() as i128;
    match count {
        0 => return error("empty aggregate"),
        1 => return Ok(Some(-1)),
        _ => {}
    }
    if samples.iter().any(|sample| sample.abs() > LARGEST) {
        return Ok(None);
    }
    let sum = exact_sum(samples);
    let squares: i128 = samples.iter().map(|sample| i128::from(*sample).pow(2)).sum();
    Ok(Some(((count * squares - sum * sum) / (count * (count - 1))) as i64))
}

impl Histogram {
    const LOG_BUCKETS: usize = 128;
    const LOG_ZERO: usize = 64;

    fn bucket_count(self) -> usize {
        match self {
            Histogram::Log => Self::LOG_BUCKETS,
            // Below, above, and one for the rest between the last full step and `high`.
            Histogram::Linear { low, high, width } => ((high - low) / width) as usize + 3,
        }
    }

    fn bucket_of(self, sample: i64) -> usize {
        let last = self.bucket_count() - 1;
        match self {
            Histogram::Log => {
                let bits = (64 - sample.unsigned_abs().leading_zeros()) as usize;
                if sample < 0 { Self::LOG_ZERO - bits.min(Self::LOG_ZERO) } else { (Self::LOG_ZERO + bits).min(last) }
            }
            Histogram::Linear { low, .. } if sample < low => 0,
            Histogram::Linear { low, width, .. } => {
                let step = (i128::from(sample) - i128::from(low)) / i128::from(width);
                usize::try_from(step).map_or(last, |step| step.saturating_add(1).min(last))
            }
        }
    }

    /// The number of samples in each bucket.
    pub fn count(self, samples: &[i64]) -> Vec<i64> {
        let mut buckets = vec![0; self.bucket_count()];
        for sample in samples {
            buckets[self.bucket_of(*sample)] += 1;
        }
        buckets
    }

    /// The label of a bucket.
    fn label(self, bucket: usize) -> String {
        match self {
            Histogram::Log => {
                let distance = bucket.abs_diff(Self::LOG_ZERO) as u32;
                let power = if distance == 0 { 0 } else { 1u64 << (distance - 1) };
                let value = if bucket < Self::LOG_ZERO { (power as i64).wrapping_neg() } else { power as i64 };
                value.to_string()
            }
            Histogram::Linear { low, width, .. } => {
                let last = self.bucket_count() - 1;
                if bucket == 0 {
                    format!("<{low}")
                } else if bucket == last {
                    format!(">{}", low + (last as i64 - 2) * width)
                } else {
                    (low + (bucket as i64 - 1) * width).to_string()
                }
            }
        }
    }

    /// The histogram. Rows more than two away from any sample are omitted, with a mark if in the middle.
    pub(super) fn chart(self, samples: &[i64]) -> Evaluated<String> {
        const WIDTH: i64 = 50;
        const MARGIN: usize = 2;
        let buckets = self.count(samples);
        let last = buckets.len() - 1;
        let Some(first_used) = buckets.iter().position(|count| *count > 0) else {
            return error("empty aggregate");
        };
        let last_used = buckets.iter().rposition(|count| *count > 0).unwrap_or(first_used);
        let most = buckets.iter().max().copied().unwrap_or(0);
        let (low, high) = match self {
            // Negative rows are omitted if there are no such values.
            Histogram::Log if first_used >= Self::LOG_ZERO => {
                (first_used.saturating_sub(MARGIN).max(Self::LOG_ZERO), (last_used + MARGIN).min(last))
            }
            Histogram::Log => (first_used.saturating_sub(MARGIN), (last_used + MARGIN).min(last)),
            Histogram::Linear { .. } => {
                let low = first_used.saturating_sub(MARGIN);
                let high = (last_used + MARGIN).min(last);
                // Values out of range have a row only if there are any.
                (
                    if low == 0 && buckets[0] == 0 { 1 } else { low },
                    if high == last && buckets[last] == 0 { last - 1 } else { high },
                )
            }
        };
        let scale = (most + WIDTH - 1) / WIDTH;
        let count_width = most.to_string().len();
        let value_width = self.label(low).len().max(self.label(high).len()).max("value".len());
        let mut chart = format!("{:>value_width$} |{} count\n", "value", "-".repeat(WIDTH as usize));
        let mut left_out = false;
        for row in low..=high {
            let near = row.saturating_sub(MARGIN).max(low)..=(row + MARGIN).min(high);
            if near.into_iter().all(|row| buckets[row] == 0) {
                left_out = true;
                continue;
            }
            if std::mem::take(&mut left_out) {
                let _ = writeln!(chart, "{:value_width$} ~", "");
            }
            let bar = (buckets[row] / scale.max(1)) as usize;
            let count_width = WIDTH as usize - bar + 1 + count_width;
            let _ =
                writeln!(chart, "{:>value_width$} |{}{:>count_width$}", self.label(row), "@".repeat(bar), buckets[row]);
        }
        chart.push('\n');
        Ok(chart)
    }
}
