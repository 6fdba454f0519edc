// SPDX-License-Identifier: GPL-2.0-or-later

//! An object for each event: one document (`json`), or a line for each (`ndjson`).

use std::io::Write;

use spile_abi::format::Histogram;
use spilerun::records::values::Value;

use crate::event::{Event, Session, What};
use crate::object;
use crate::quote::{quoted, write_quoted};
use crate::read::{ReadError, Receiver};

/// Writes events.
#[derive(Debug)]
pub struct Json<W> {
    to: W,
    /// One document, not a line for each event.
    is_document: bool,
    is_empty: bool,
}

impl<W: Write> Json<W> {
    /// `is_document`: one array.
    pub fn new(to: W, is_document: bool) -> Json<W> {
        Json { to, is_document, is_empty: true }
    }

    fn object(&mut self, object: &str) -> Result<(), ReadError> {
        let (first, next, last) = if self.is_document { ("[\n", ",\n", "") } else { ("", "", "\n") };
        let before = if std::mem::replace(&mut self.is_empty, false) { first } else { next };
        Ok(write!(self.to, "{before}{object}{last}")?)
    }

    /// After the last event.
    pub fn finish(mut self) -> Result<(), ReadError> {
        if self.is_document {
            self.to.write_all(if self.is_empty { b"[]\n" } else { b"\n]\n" })?;
        }
        Ok(self.to.flush()?)
    }
}

impl<W: Write> Receiver for Json<W> {
    fn session(&mut self, session: &Session) -> Result<(), ReadError> {
        let facts = session.about.iter().map(|(name, value)| format!(",{}:{}", quoted_text(name), quoted_text(value)));
        self.object(&format!("{{\"kind\":\"session\"{}}}", facts.collect::<String>()))
    }

    fn event(&mut self, _: &Session, event: &Event<'_>) -> Result<(), ReadError> {
        self.object(&object(event))
    }

    fn pause(&mut self) -> Result<(), ReadError> {
        Ok(self.to.flush()?)
    }
}

/// One event.
pub fn object(event: &Event<'_>) -> String {
    let mut json = format!("{{\"kind\":\"{}\",\"time\":{},\"cpu\":{}", event.what.kind(), event.time, event.cpu);
    if let Some(task) = event.task {
        json.push_str(&format!(",\"pid\":{},\"tid\":{},\"comm\":{}", task.pid, task.tid, quoted(&task.comm)));
    }
    if let Some(probe) = event.probe {
        json.push_str(",\"probe\":");
        write_quoted(probe.as_bytes(), &mut json);
    }
    match &event.what {
        What::Print(print) if print.names.is_empty() => {
            json.push_str(",\"text\":");
            write_quoted(print.text, &mut json);
        }
        What::Print(print) => {
            json.push_str(",\"values\":{");
            for (index, (name, value)) in print.values().enumerate() {
                if index > 0 {
                    json.push(',');
                }
                write_quoted(name.as_bytes(), &mut json);
                json.push(':');
                write_value(value, &mut json);
            }
            json.push('}');
        }
        What::Message(_, text) => {
            json.push_str(",\"text\":");
            write_quoted(text.as_bytes(), &mut json);
        }
        What::Lost { records, bytes } => json.push_str(&format!(",\"records\":{records},\"bytes\":{bytes}")),
        What::End { status, about } => {
            json.push_str(&format!(",\"status\":{status}"));
            for (name, value) in *about {
                json.push(',');
                write_quoted(name.as_bytes(), &mut json);
                json.push(':');
                // The counters of the probes are JSON themselves, and so are numbers.
                match serde_json::from_str::<serde_json::Value>(value) {
                    Ok(_) => json.push_str(value.trim()),
                    Err(_) => write_quoted(value.as_bytes(), &mut json),
                }
            }
        }
    }
    json.push('}');
    json
}

/// The JSON of a value.
pub fn write_value(value: &Value, json: &mut String) {
    match value {
        Value::Signed(number) => json.push_str(&number.to_string()),
        Value::Unsigned(number) => json.push_str(&number.to_string()),
        Value::Text(text) => write_quoted(text, json),
        Value::Memory(bytes) => {
            json.push('"');
            json.extend(bytes.iter().map(|byte| format!("{byte:02x}")));
            json.push('"');
        }
        Value::Object(text) => json.push_str(&object::json(text)),
        Value::Stack(frames) => {
            json.push('[');
            for (index, frame) in frames.iter().enumerate() {
                if index > 0 {
                    json.push(',');
                }
                write_quoted(frame, json);
            }
            json.push(']');
        }
        Value::Histogram(kind, counts) => {
            json.push('[');
            for (index, (from, to, count)) in buckets(*kind, counts).into_iter().enumerate() {
                let bound = |bound: Option<i64>| bound.map_or("null".to_string(), |bound| bound.to_string());
                let comma = if index > 0 { "," } else { "" };
                json.push_str(&format!("{comma}{{\"from\":{},\"to\":{},\"count\":{count}}}", bound(from), bound(to)));
            }
            json.push(']');
        }
        Value::Unreadable => json.push_str("null"),
    }
}

/// The buckets that have values: the lowest and the highest value of each (`None`: no bound), and its count.
pub fn buckets(kind: Histogram, counts: &[u64]) -> Vec<(Option<i64>, Option<i64>, u64)> {
    let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    filled
        .map(|(bucket, count)| {
            let (from, to) = bounds(kind, bucket, counts.len());
            (from, to, *count)
        })
        .collect()
}

/// The lowest and the highest value of a bucket.
pub fn bounds(kind: Histogram, bucket: usize, count: usize) -> (Option<i64>, Option<i64>) {
    /// The bucket of 0 in a logarithmic histogram.
    const ZERO: usize = 64;
    match kind {
        Histogram::Log => match bucket.checked_sub(ZERO) {
            Some(0) => (Some(0), Some(0)),
            Some(power) if power < 64 => {
                let from = 1i64 << (power - 1).min(62);
                (Some(from), Some(from.saturating_mul(2).saturating_sub(1)))
            }
            Some(_) => (None, None),
            None => {
                let from = 1i64.checked_shl((ZERO - 1 - bucket) as u32).unwrap_or(i64::MIN);
                let lowest = if from == i64::MIN { i64::MIN } else { from.saturating_mul(-2).saturating_add(1) };
                (Some(lowest), Some(from.wrapping_neg()))
            }
        },
        Histogram::Linear { low, width, .. } => {
            let at = |steps: usize| low.saturating_add(width.saturating_mul(steps as i64));
            match bucket {
                0 => (None, Some(low.saturating_sub(1))),
                _ if bucket + 1 == count => (Some(at(bucket - 1)), None),
                _ => (Some(at(bucket - 1)), Some(at(bucket).saturating_sub(1))),
            }
        }
    }
}

fn quoted_text(text: &str) -> String {
    quoted(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_their_bounds() {
        let log = |bucket| bounds(Histogram::Log, bucket, 128);
        assert_eq!(log(64), (Some(0), Some(0)));
        assert_eq!(log(65), (Some(1), Some(1)));
        assert_eq!(log(67), (Some(4), Some(7)));
        assert_eq!(log(63), (Some(-1), Some(-1)));
        assert_eq!(log(62), (Some(-3), Some(-2)));
        let all = (0..128).map(log).filter_map(|(from, _)| from);
        assert!(all.collect::<Vec<_>>().is_sorted());
        let linear = |bucket| bounds(Histogram::Linear { low: 0, high: 20, width: 10 }, bucket, 5);
        assert_eq!(
            [0, 1, 3, 4].map(linear),
            [(None, Some(-1)), (Some(0), Some(9)), (Some(20), Some(29)), (Some(30), None)]
        );
    }
}
