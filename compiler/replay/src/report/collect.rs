// SPDX-License-Identifier: GPL-2.0-or-later

//! What a report shows of a recording. However long that is, this is bounded.

use std::collections::BTreeMap;

use spile_abi::format::Histogram;
use spilerun::records::values::{Part, Value};

use crate::event::{Event, Print, Session, What};
use crate::folded::Stacks;
use crate::json;
use crate::read::{ReadError, Receiver};

/// Rows kept of one print statement: the last ones, in a ring.
const MOST_ROWS: usize = 4096;
/// Print statements.
const MOST_TABLES: usize = 64;
/// Of one histogram: times at which it was printed.
const MOST_TIMES: usize = 400;
const MOST_MESSAGES: usize = 200;
/// Bytes of the script's output.
const MOST_TEXT: usize = 32 << 10;
/// Bytes of a cell.
const MOST_CELL: usize = 200;

/// A value in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Sorted by value.
    Number(i128),
    /// Sorted by text.
    Text(String),
}

/// The values of one print statement.
#[derive(Debug)]
pub struct Table {
    /// Where it is.
    pub probe: String,
    /// Of its values.
    pub names: Vec<String>,
    /// Time and values; the last [`MOST_ROWS`].
    pub rows: std::collections::VecDeque<(u64, Vec<Cell>)>,
    /// All of them.
    pub count: u64,
}

impl Table {
    /// The numbers in a column, with their times.
    pub fn numbers(&self, column: usize) -> Vec<(u64, i128)> {
        let number = |(time, cells): &(u64, Vec<Cell>)| match cells.get(column) {
            Some(Cell::Number(number)) => Some((*time, *number)),
            _ => None,
        };
        self.rows.iter().filter_map(number).collect()
    }

    /// A timer prints it, so that its numbers are a series.
    pub fn is_series(&self) -> bool {
        self.probe.starts_with("timer.") && self.rows.len() >= 3
    }
}

/// A histogram, each time that it was printed.
#[derive(Debug)]
pub struct Histograms {
    /// As the script spells it, with the values in front of it.
    pub name: String,
    /// Its buckets.
    pub kind: Histogram,
    /// Time and counts.
    pub times: Vec<(u64, Vec<u64>)>,
}

/// Everything.
#[derive(Debug, Default)]
pub struct Collected {
    /// Facts about the session, by name.
    pub about: Vec<(String, String)>,
    /// Nanoseconds since 1970 when the clock of the records was 0.
    pub realtime: i128,
    /// First and last time.
    pub span: Option<(u64, u64)>,
    /// By kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// By format.
    tables: BTreeMap<(u32, String), Table>,
    histograms: BTreeMap<(u32, String), Histograms>,
    /// Of all prints.
    pub stacks: Stacks,
    /// Warnings and errors: kind and text.
    pub messages: Vec<(&'static str, String)>,
    /// By CPU: records and bytes lost.
    pub lost: BTreeMap<u16, (u64, u64)>,
    /// The counters of the probes.
    pub stats: Option<serde_json::Value>,
    /// Exit status.
    pub status: Option<i32>,
    /// The beginning of the script's output.
    pub text: Vec<u8>,
    /// There is more output.
    pub is_cut: bool,
    /// What was wrong with the recording.
    pub damage: Option<String>,
}

impl Collected {
    /// Prints with values that are neither histograms nor stacks.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.values()
    }

    /// By their name.
    pub fn histograms(&self) -> impl Iterator<Item = &Histograms> {
        self.histograms.values()
    }

    /// A fact.
    pub fn fact(&self, name: &str) -> &str {
        self.about.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Records lost on all CPUs.
    pub fn lost_records(&self) -> u64 {
        self.lost.values().fold(0, |sum, (records, _)| sum.saturating_add(*records))
    }

    fn print(&mut self, event: &Event<'_>, print: &Print<'_>) {
        let room = MOST_TEXT.saturating_sub(self.text.len());
        self.is_cut |= print.text.len() > room;
        self.text.extend_from_slice(print.text.get(..room).unwrap_or(print.text));
        let probe = event.probe.unwrap_or_default();
        let mut cells = Vec::new();
        let mut names = Vec::new();
        for (name, value) in print.values() {
            match value {
                Value::Histogram(kind, counts) => self.histogram(event, print, name, *kind, counts, &cells),
                Value::Stack(_) => {}
                other => {
                    names.push(name.to_string());
                    cells.push(cell(other));
                }
            }
        }
        let has_others = print.parts.iter().any(|part| matches!(part, Part::Value(Value::Histogram(..))));
        let key = (print.format, probe.to_string());
        if cells.is_empty() || has_others || (self.tables.len() >= MOST_TABLES && !self.tables.contains_key(&key)) {
            return;
        }
        let table = self.tables.entry(key).or_insert_with(|| Table {
            probe: probe.to_string(),
            names,
            rows: std::collections::VecDeque::new(),
            count: 0,
        });
        table.count += 1;
        if table.rows.len() >= MOST_ROWS {
            table.rows.pop_front();
        }
        table.rows.push_back((event.time, cells));
    }

    fn histogram(
        &mut self,
        event: &Event<'_>,
        print: &Print<'_>,
        name: &str,
        kind: Histogram,
        counts: &[u64],
        before: &[Cell],
    ) {
        let keys: Vec<String> = before
            .iter()
            .map(|cell| match cell {
                Cell::Number(number) => number.to_string(),
                Cell::Text(text) => text.clone(),
            })
            .collect();
        let name = if keys.is_empty() { name.to_string() } else { format!("{name}: {}", keys.join(", ")) };
        let key = (print.format, name.clone());
        if self.histograms.len() >= MOST_TABLES && !self.histograms.contains_key(&key) {
            return;
        }
        let all = self.histograms.entry(key).or_insert_with(|| Histograms { name, kind, times: Vec::new() });
        if all.times.len() >= MOST_TIMES {
            // Every other one is left out.
            let mut index = 0;
            all.times.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
        all.times.push((event.time, counts.to_vec()));
    }
}

/// How a table shows it.
pub fn cell(value: &Value) -> Cell {
    match value {
        Value::Signed(number) => Cell::Number((*number).into()),
        Value::Unsigned(number) => Cell::Number((*number).into()),
        Value::Text(text) => Cell::Text(cut(String::from_utf8_lossy(text).into_owned())),
        other => {
            let mut json = String::new();
            json::write_value(other, &mut json);
            Cell::Text(cut(json))
        }
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MOST_CELL {
        let end = (0..=MOST_CELL).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

impl Receiver for Collected {
    fn session(&mut self, session: &Session) -> Result<(), ReadError> {
        self.about.clone_from(&session.about);
        self.realtime = session.realtime;
        Ok(())
    }

    fn event(&mut self, _: &Session, event: &Event<'_>) -> Result<(), ReadError> {
        *self.counts.entry(event.what.kind()).or_default() += 1;
        let (first, _) = self.span.unwrap_or((event.time, event.time));
        self.span = Some((first.min(event.time), event.time.max(first)));
        self.stacks.add(event);
        match &event.what {
            What::Print(print) => self.print(event, print),
            What::Message(kind, text) => {
                if self.messages.len() < MOST_MESSAGES {
                    self.messages.push((kind, text.clone()));
                }
            }
            What::Lost { records, bytes } => drop(self.lost.insert(event.cpu, (*records, *bytes))),
            What::End { status, about } => {
                self.status = Some(*status);
                let stats = about.iter().find(|(name, _)| name == "stats");
                self.stats = stats.and_then(|(_, text)| serde_json::from_str(text).ok()).or(self.stats.take());
            }
        }
        Ok(())
    }

    fn counts(&mut self, json: &str) -> Result<(), ReadError> {
        // Those of the end are there later, if the recording has an end.
        self.stats = serde_json::from_str(json).ok().or(self.stats.take());
        Ok(())
    }

    fn pause(&mut self) -> Result<(), ReadError> {
        Ok(())
    }
}

/// Of sorted numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    /// Their number.
    pub count: usize,
    /// The least.
    pub min: i128,
    /// Half of them are at most this.
    pub p50: i128,
    /// 90 %
    pub p90: i128,
    /// 99 %
    pub p99: i128,
    /// The greatest.
    pub max: i128,
}

impl Percentiles {
    /// `None`: there are no numbers.
    pub fn of(mut numbers: Vec<i128>) -> Option<Percentiles> {
        numbers.sort_unstable();
        let at = |percent: usize| numbers.get((numbers.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Some(Percentiles {
            count: numbers.len(),
            min: *numbers.first()?,
            p50: at(50)?,
            p90: at(90)?,
            p99: at(99)?,
            max: *numbers.last()?,
        })
    }
}

/// The highest value of the bucket below which this share of the counts is.
pub fn percentile(kind: Histogram, counts: &[u64], percent: u64) -> Option<i64> {
    let all: u128 = counts.iter().map(|count| u128::from(*count)).sum();
    let wanted = (all * u128::from(percent)).div_ceil(100);
    let mut sum = 0;
    for (bucket, count) in counts.iter().enumerate() {
        sum += u128::from(*count);
        if *count > 0 && sum >= wanted {
            let (from, to) = json::bounds(kind, bucket, counts.len());
            return to.or(from);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_members() {
        let of = |numbers: &[i128]| Percentiles::of(numbers.to_vec());
        assert_eq!(of(&[]), None);
        let hundred: Vec<i128> = (1..=100).rev().collect();
        let expected = Percentiles { count: 100, min: 1, p50: 50, p90: 90, p99: 99, max: 100 };
        assert_eq!(of(&hundred), Some(expected));
        assert_eq!(of(&[7]).map(|found| (found.min, found.p99)), Some((7, 7)));
        let mut counts = vec![0; 128];
        (counts[65], counts[70]) = (99, 1);
        assert_eq!(percentile(Histogram::Log, &counts, 50), Some(1));
        assert_eq!(percentile(Histogram::Log, &counts, 100), Some(63));
        assert_eq!(percentile(Histogram::Log, &[], 50), None);
    }
}
