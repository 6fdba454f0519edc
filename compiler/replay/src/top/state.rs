// SPDX-License-Identifier: GPL-2.0-or-later

//! What is known of a running session, and what the user wants to see of it.

use std::collections::{BTreeMap, VecDeque};

use crate::counters;
use crate::event::{Event, Session, What};
use crate::read::{ReadError, Receiver};
use crate::report::{Cell, Collected};
use crate::top::globals::{self, Printed};

/// Rates that are remembered for the line beside a probe.
const MOST_RATES: usize = 60;
/// Lines of output.
const MOST_LINES: usize = 500;
/// Bytes of a line.
const MOST_LINE: usize = 2000;

/// A probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// Among all, in the order of the script.
    pub number: usize,
    /// A user has switched it off.
    pub off: bool,
    /// Attached, and not switched off.
    pub armed: bool,
    /// Its point.
    pub point: String,
    /// Hits so far.
    pub hits: u64,
    /// Hits that no handler has seen.
    pub missed: u64,
    /// Per second.
    pub rate: f64,
    /// Of a run of the handler, on average.
    pub cycles: u64,
    /// The last rates, the newest last.
    pub rates: VecDeque<u64>,
}

/// By what probes are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Per second.
    Rate,
    /// So far.
    Hits,
    /// Cycles of all runs.
    Cost,
    /// By name.
    Name,
}

impl Sort {
    /// The next one.
    pub fn next(self) -> Sort {
        match self {
            Sort::Rate => Sort::Hits,
            Sort::Hits => Sort::Cost,
            Sort::Cost => Sort::Name,
            Sort::Name => Sort::Rate,
        }
    }

    /// For the head.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Rate => "rate",
            Sort::Hits => "hits",
            Sort::Cost => "cost",
            Sort::Name => "name",
        }
    }
}

/// A printed value, with those printed before in the same place: of a scalar, or of the element with this key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Its numbers, the newest last.
    pub numbers: VecDeque<i128>,
    /// The last value, if that is a text.
    pub text: Option<String>,
    /// Of a global: the round in which it was printed last.
    round: u64,
}

impl Entry {
    fn add(&mut self, value: Cell) {
        match value {
            Cell::Number(number) => {
                if self.numbers.len() >= MOST_RATES {
                    self.numbers.pop_front();
                }
                self.numbers.push_back(number);
                self.text = None;
            }
            Cell::Text(text) => self.text = Some(text),
        }
    }

    fn last(&self) -> i128 {
        self.numbers.back().copied().unwrap_or(0)
    }
}

/// A global.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Global {
    /// Rounds of printing its elements.
    round: u64,
    elements: Values,
}

/// Values of one place and name, by key.
pub type Values = BTreeMap<String, Entry>;

/// Keys of one array.
const MOST_KEYS: usize = 1000;

/// The session.
#[derive(Debug)]
pub struct State {
    /// Everything, for a report.
    pub collected: Collected,
    /// By their order in the script.
    pub probes: Vec<Probe>,
    /// Values by the place that prints them and their name.
    pub values: BTreeMap<(u32, String), Values>,
    /// Globals by name; of an aggregate one for each extractor.
    pub globals: BTreeMap<String, Global>,
    /// The last lines of output.
    pub lines: VecDeque<String>,
    /// The end of the output that is not a line yet.
    partial: String,
    /// When the counters were read: time, the last two.
    counted: Option<std::time::Instant>,
    /// The session is over.
    pub over: bool,
}

impl State {
    /// Before anything has happened.
    pub fn new() -> State {
        State {
            collected: Collected::default(),
            probes: Vec::new(),
            values: BTreeMap::new(),
            globals: BTreeMap::new(),
            lines: VecDeque::new(),
            partial: String::new(),
            counted: None,
            over: false,
        }
    }

    /// Adds a line of output.
    pub fn line(&mut self, line: &str) {
        if self.lines.len() >= MOST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line.chars().take(MOST_LINE).collect());
    }

    fn output(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text).into_owned();
        let mut parts = text.split('\n');
        if let Some(first) = parts.next() {
            let room = MOST_LINE.saturating_sub(self.partial.len());
            self.partial.extend(first.chars().take(room));
        }
        for part in parts {
            let line = std::mem::replace(&mut self.partial, part.chars().take(MOST_LINE).collect());
            self.line(&line);
        }
    }

    /// The counters of all probes; `seconds` since the last ones.
    fn count(&mut self, json: &str, seconds: Option<f64>) {
        let Ok(stats) = serde_json::from_str::<serde_json::Value>(json) else { return };
        let Some(probes) = stats.get("probes").and_then(serde_json::Value::as_array) else { return };
        self.probes.resize_with(probes.len(), Probe::default);
        for (number, (known, probe)) in self.probes.iter_mut().zip(probes).enumerate() {
            known.number = number;
            known.armed = counters::number(probe, "armed") > 0;
            let hits = counters::number(probe, "hits");
            known.point = probe.get("point").and_then(serde_json::Value::as_str).unwrap_or_default().to_string();
            if let Some(seconds) = seconds {
                known.rate = hits.saturating_sub(known.hits) as f64 / seconds.max(0.001);
                if known.rates.len() >= MOST_RATES {
                    known.rates.pop_front();
                }
                known.rates.push_back(known.rate as u64);
            }
            known.hits = hits;
            known.cycles = counters::cycles(probe);
            known.missed = counters::missed(probe);
        }
    }

    /// The probes as they are to be shown; `wanted`: a part of their names.
    pub fn shown(&self, sort: Sort, reverse: bool, wanted: &str) -> Vec<&Probe> {
        let mut probes: Vec<&Probe> = self
            .probes
            .iter()
            .filter(|probe| probe.point.contains(wanted) && !probe.point.starts_with(globals::POINT))
            .collect();
        match sort {
            Sort::Rate => probes.sort_by(|one, other| other.rate.total_cmp(&one.rate)),
            Sort::Hits => probes.sort_by_key(|probe| std::cmp::Reverse(probe.hits)),
            Sort::Cost => {
                let cost = |probe: &Probe| u128::from(probe.hits) * u128::from(probe.cycles);
                probes.sort_by_key(|probe| std::cmp::Reverse(cost(probe)));
            }
            Sort::Name => probes.sort_by(|one, other| one.point.cmp(&other.point)),
        }
        if reverse {
            probes.reverse();
        }
        probes
    }

    /// The greatest values, those of globals first: name and key, and their numbers.
    pub fn top(&self, most: usize, wanted: &str) -> Vec<(String, &Entry)> {
        let mut all: Vec<(String, &Entry)> = Vec::new();
        let globals = self.globals.iter().map(|(name, global)| {
            // Elements of the last round but one, too: that of the last may be under way.
            let is_there = |entry: &Entry| entry.round + 1 >= global.round;
            (name, global.elements.iter().filter(|(_, entry)| is_there(entry)).collect::<Vec<_>>())
        });
        let values = self.values.iter().map(|((_, name), values)| (name, values.iter().collect()));
        for (name, mut entries) in globals.chain(values) {
            entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.last()));
            // Every place gets some of the room.
            let share = (most / (self.values.len() + self.globals.len()).max(1)).max(1);
            let named = entries.into_iter().take(share).map(|(key, entry)| {
                let label = if key.is_empty() { name.clone() } else { format!("{name} {key}") };
                (label, entry)
            });
            all.extend(named.filter(|(label, _)| label.contains(wanted)));
        }
        all
    }

    /// What an added probe prints.
    fn global(&mut self, printed: Printed) {
        let Some((key, value)) = printed.element else {
            // The extractors of an aggregate have names of their own behind its.
            let is_of = |name: &str| name.split(' ').next() == Some(&printed.name);
            for (_, global) in self.globals.iter_mut().filter(|(name, _)| is_of(name)) {
                global.round += 1;
                let round = global.round;
                global.elements.retain(|_, entry| entry.round + MOST_RATES as u64 >= round);
            }
            return;
        };
        let global = self.globals.entry(printed.name).or_default();
        if global.elements.len() >= MOST_KEYS && !global.elements.contains_key(&key) {
            return;
        }
        let entry = global.elements.entry(key).or_default();
        entry.round = global.round;
        entry.add(value);
    }

    fn print(&mut self, event: &Event<'_>) {
        let What::Print(print) = &event.what else { return };
        self.output(print.text);
        let (mut key, mut numbers) = (Vec::new(), Vec::new());
        for (name, value) in print.values() {
            match crate::report::cell(value) {
                Cell::Number(number) => numbers.push((name, number)),
                Cell::Text(text) => key.push(text),
            }
        }
        let key = key.join(" ");
        for (name, number) in numbers {
            let place = (print.format, name.to_string());
            if self.values.len() >= 64 && !self.values.contains_key(&place) {
                continue;
            }
            let values = self.values.entry(place).or_default();
            if values.len() >= MOST_KEYS && !values.contains_key(&key) {
                continue;
            }
            values.entry(key.clone()).or_default().add(Cell::Number(number));
        }
    }
}

impl Receiver for State {
    fn session(&mut self, session: &Session) -> Result<(), ReadError> {
        self.collected.session(session)
    }

    fn event(&mut self, session: &Session, event: &Event<'_>) -> Result<(), ReadError> {
        if let What::Print(print) = &event.what
            && let Some(printed) = globals::printed(print.parts)
        {
            self.global(printed);
            return Ok(());
        }
        self.collected.event(session, event)?;
        match &event.what {
            What::Print(_) => self.print(event),
            What::Message(kind, text) => self.line(&format!("{}: {text}", kind.to_uppercase())),
            What::Lost { .. } => {}
            What::End { about, .. } => {
                self.over = true;
                if let Some((_, json)) = about.iter().find(|(name, _)| name == "stats") {
                    self.count(json, None);
                }
            }
        }
        Ok(())
    }

    fn counts(&mut self, json: &str) -> Result<(), ReadError> {
        self.collected.counts(json)?;
        let now = std::time::Instant::now();
        let seconds = self.counted.replace(now).map(|before| now.duration_since(before).as_secs_f64());
        self.count(json, seconds);
        Ok(())
    }

    fn pause(&mut self) -> Result<(), ReadError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(hits: [u64; 2]) -> String {
        let probe = |point: &str, hits| {
            format!("{{\"point\":\"{point}\",\"hits\":{hits},\"nested\":1,\"cycles\":{{\"avg\":10}}}}")
        };
        format!("{{\"probes\":[{},{}]}}", probe("b", hits[0]), probe("a", hits[1]))
    }

    #[test]
    fn rates_are_differences_and_probes_are_sorted() {
        let mut state = State::new();
        state.count(&stats([5, 100]), None);
        state.count(&stats([25, 110]), Some(2.0));
        assert_eq!((state.probes[0].rate, state.probes[1].rate, state.probes[0].missed), (10.0, 5.0, 1));
        let names = |sort, reverse, wanted: &str| -> String {
            state.shown(sort, reverse, wanted).iter().map(|probe| probe.point.as_str()).collect()
        };
        assert_eq!(names(Sort::Rate, false, ""), "ba");
        assert_eq!(names(Sort::Rate, true, ""), "ab");
        assert_eq!(names(Sort::Hits, false, ""), "ab");
        assert_eq!(names(Sort::Cost, false, ""), "ab");
        assert_eq!(names(Sort::Name, false, "b"), "b");
        state.count("not JSON", Some(1.0));
    }

    #[test]
    fn elements_that_are_gone_are_not_shown() {
        let mut state = State::new();
        let printed = |name: &str, element: Option<(&str, i128)>| Printed {
            name: name.to_string(),
            element: element.map(|(key, number)| (key.to_string(), Cell::Number(number))),
        };
        let shown = |state: &State| -> Vec<String> { state.top(9, "").into_iter().map(|(label, _)| label).collect() };
        state.global(printed("a", None));
        state.global(printed("a @count", Some(("x", 1))));
        state.global(printed("a @count", Some(("y", 2))));
        state.global(printed("n", Some(("", 3))));
        assert_eq!(shown(&state), ["a @count y", "a @count x", "n"]);
        for _ in 0..2 {
            state.global(printed("a", None));
            state.global(printed("a @count", Some(("x", 1))));
        }
        assert_eq!(shown(&state), ["a @count x", "n"]);
        (0..2 * MOST_RATES).for_each(|_| state.global(printed("a", None)));
        assert!(state.globals["a @count"].elements.is_empty());
        (0..2 * MOST_KEYS as i128).for_each(|key| state.global(printed("b", Some((&key.to_string(), key)))));
        assert_eq!(state.globals["b"].elements.len(), MOST_KEYS);
    }

    #[test]
    fn output_is_kept_by_lines() {
        let mut state = State::new();
        state.output(b"a\nb");
        state.output(b"c\n\n");
        assert_eq!(state.lines, ["a", "bc", ""]);
        (0..2000).for_each(|_| state.output(b"x\n"));
        assert_eq!(state.lines.len(), MOST_LINES);
        state.output(&vec![b'y'; 1 << 20]);
        assert!(state.partial.len() <= MOST_LINE);
    }
}
