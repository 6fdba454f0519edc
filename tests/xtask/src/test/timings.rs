// SPDX-License-Identifier: GPL-2.0-or-later

//! Where the time of a run is spent: `cargo xtask test --timings` prints it, and each run writes it to
//! target/test-timings.json.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The last steps that run sequentially.
const BEFORE: &str =
    "Before guests ran in parallel and one cargo command built everything, a run took 3135 s on two idle CPUs.";

/// The kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Building,
    Fixtures,
    Scripts,
    UnitTests,
    HostTest,
    /// A guest from start to end, with its tests.
    Guest,
    /// Up to its first test.
    Boot,
    GuestTest,
    Model,
    Attack,
    Demo,
}

impl Part {
    fn title(self) -> &'static str {
        match self {
            Part::Building => "building the programs and unit tests",
            Part::Fixtures => "building the test modules",
            Part::Scripts => "compiling scripts",
            Part::UnitTests => "unit tests",
            Part::HostTest => "tests on the host",
            Part::Guest => "guests, as a whole",
            Part::Boot => "of which: boots",
            Part::GuestTest => "of which: tests",
            Part::Model => "random programs",
            Part::Attack => "attack",
            Part::Demo => "demonstration",
        }
    }

    /// Included in another part.
    fn is_within(self) -> bool {
        matches!(self, Part::Boot | Part::GuestTest)
    }
}

struct Entry {
    part: Part,
    name: String,
    /// Since the run began.
    began: Duration,
    wall: Duration,
    processor: Duration,
}

/// Of one run.
pub struct Timings {
    began: Instant,
    entries: Mutex<Vec<Entry>>,
}

impl Timings {
    /// Begins now.
    pub fn new() -> Timings {
        Timings { began: Instant::now(), entries: Mutex::default() }
    }

    /// Since the run began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Records the end of a step.
    pub fn add(&self, part: Part, name: &str, began: Instant, processor: Duration) {
        self.add_until(part, name, began, Instant::now(), processor);
    }

    /// Records a step that has ended.
    pub fn add_until(&self, part: Part, name: &str, began: Instant, ended: Instant, processor: Duration) {
        let entry = Entry {
            part,
            name: name.to_string(),
            began: began.saturating_duration_since(self.began),
            wall: ended.saturating_duration_since(began),
            processor,
        };
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// One object for each, times in seconds.
    pub fn write(&self, path: &Path) -> Result<()> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = |time: Duration| (time.as_secs_f64() * 100.0).round() / 100.0;
        let list: Vec<serde_json::Value> = entries
            .iter()
            .map(|entry| {
                serde_json::json!({
                    "part": entry.part.title(), "name": entry.name, "began": seconds(entry.began),
                    "wall": seconds(entry.wall), "processor": seconds(entry.processor),
                })
            })
            .collect();
        let whole = serde_json::json!({ "wall": seconds(self.began.elapsed()), "entries": list });
        std::fs::write(path, format!("{whole:#}\n")).with_context(|| format!("writing {}", path.display()))
    }

    /// A line for each part and the sum.
    pub fn summary(&self) -> String {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts: BTreeMap<Part, (usize, Duration, Duration)> = BTreeMap::new();
        for entry in entries.iter() {
            let part = parts.entry(entry.part).or_default();
            *part = (part.0 + 1, part.1 + entry.wall, part.2 + entry.processor);
        }
        let mut text = format!("{:38} {:>6} {:>9} {:>11}\n", "", "count", "wall", "CPU");
        for (part, (count, wall, processor)) in &parts {
            text.push_str(&line(part.title(), &count.to_string(), *wall, *processor));
        }
        let processor =
            parts.iter().filter(|(part, _)| !part.is_within()).map(|(_, (_, _, processor))| *processor).sum();
        text.push_str(&line("the whole run", "", self.began.elapsed(), processor));
        text
    }

    /// docs/test-timings.md, for a run of the whole suite.
    pub fn page(&self, kernel: &str) -> String {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load: Vec<&str> = load.split_whitespace().take(3).collect();
        format!(
            "# Test times\n\n\
             Written by `cargo xtask test --timings`: {cpus} CPUs, kernel {kernel}, load at\n\
             the end {} (1, 5 and 15 minutes). Parts run in parallel, so their wall times add up to more than the run's. CPU\n\
             time includes child processes; on a busy machine only it is comparable.\n\n\
             {BEFORE}\n\n\
             ## By part\n\n```\n{}```\n\n## The most CPU time\n\n```\n{}```\n",
            load.join(", "),
            self.summary(),
            self.slowest(40)
        )
    }

    /// The entries with the most CPU time.
    pub fn slowest(&self, count: usize) -> String {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<&Entry> = entries.iter().collect();
        sorted.sort_by_key(|entry| std::cmp::Reverse(entry.processor));
        sorted
            .iter()
            .take(count)
            .map(|entry| line(&format!("{:?} {}", entry.part, entry.name), "", entry.wall, entry.processor))
            .collect()
    }
}

fn line(title: &str, count: &str, wall: Duration, processor: Duration) -> String {
    format!("{title:38} {count:>6} {:>7.1} s {:>9.1} s\n", wall.as_secs_f64(), processor.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_another_part_counts_once() {
        let timings = Timings::new();
        timings.add(Part::Guest, "1", Instant::now(), Duration::from_secs(20));
        timings.add(Part::GuestTest, "a/b", Instant::now(), Duration::from_secs(5));
        timings.add(Part::HostTest, "a/c", Instant::now(), Duration::from_secs(7));
        let summary = timings.summary();
        let last = summary.lines().last().expect("a line");
        assert!(last.starts_with("the whole run") && last.ends_with("27.0 s"), "{summary}");
        assert!(timings.slowest(1).contains("Guest 1"));
    }

    #[test]
    fn the_file_is_json() {
        let directory = tempfile::tempdir().expect("a directory");
        let timings = Timings::new();
        timings.add(Part::HostTest, "a/c", Instant::now(), Duration::from_millis(1500));
        timings.write(&directory.path().join("t.json")).expect("written");
        let text = std::fs::read_to_string(directory.path().join("t.json")).expect("read");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["entries"][0]["processor"], 1.5);
    }
}
