// SPDX-License-Identifier: GPL-2.0-or-later

//! Counts the outcomes and reports them: a line for each test, and the output of those that failed.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};

use super::find::Test;
use super::judge::Observed;
use super::kept::{Kept, Key};

/// Before the name of a test that failed.
pub const FAILED: &str = "FAILED  ";

/// Shared by all tests of a run; lines of different tests do not mix.
pub struct Report {
    passed: AtomicUsize,
    failed: AtomicUsize,
    /// Everything is written there.
    log: Mutex<File>,
    /// Only failures are printed.
    brief: bool,
    kept: Kept,
    /// The release of the kernel that tests run on.
    kernel: String,
}

impl Report {
    /// Writes to `log`, which is replaced. `brief`: passed tests are only written there.
    pub fn new(log: &Path, brief: bool) -> Result<Report> {
        let file = File::create(log).with_context(|| format!("writing {}", log.display()))?;
        Ok(Report {
            passed: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            log: Mutex::new(file),
            brief,
            kept: Kept::nothing(),
            kernel: String::new(),
        })
    }

    /// Keeps what passes on this kernel, and knows what is kept.
    pub fn keep(&mut self, kept: Kept, kernel: &str) {
        (self.kept, self.kernel) = (kept, kernel.to_string());
    }

    /// The results of earlier runs.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// The key of what may depend on every file of the tree, by its name.
    pub fn key_of_tree(&self, name: &str) -> Option<Key> {
        self.kept.of_tree(name, &self.kernel)
    }

    /// Whether it has passed with this key before; it counts as passed then.
    pub fn has_passed(&self, key: Option<&Key>, name: &str) -> bool {
        let Some(passed) = key.and_then(|key| self.kept.passed(key)) else { return false };
        self.add(passed, 0);
        self.print(&format!("kept    {name}"));
        true
    }

    /// Keeps that it passed, with so many tests.
    pub fn note_passed(&self, key: Option<&Key>, name: &str, passed: usize) {
        if let Some(key) = key {
            self.kept.note(key, name, passed);
        }
    }

    /// Whether lines of tests that passed are left to the log.
    pub fn is_brief(&self) -> bool {
        self.brief
    }

    /// Counts tests that were reported in another way.
    pub fn add(&self, passed: usize, failed: usize) {
        self.passed.fetch_add(passed, Ordering::Relaxed);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }

    /// A failed test is run again: do not count it.
    pub fn take_back(&self) {
        self.failed.fetch_sub(1, Ordering::Relaxed);
    }

    /// Number of tests that passed.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::Relaxed)
    }

    /// Number of tests that failed.
    pub fn failed(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }

    fn write(&self, lines: &str, is_important: bool) {
        let mut log: MutexGuard<File> = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if is_important || !self.brief {
            println!("{lines}");
        }
        // A full disk does not change the tests' results.
        let _ = writeln!(log, "{lines}");
    }

    /// Lines about what passed.
    pub fn print(&self, lines: &str) {
        self.write(lines, false);
    }

    /// Lines about what failed.
    pub fn print_failure(&self, lines: &str) {
        self.write(lines, true);
    }

    /// The line of a single task, with its output if it failed.
    pub fn report_one(&self, name: &str, ok: bool, output: &str) {
        self.add(usize::from(ok), usize::from(!ok));
        match ok {
            true => self.print(&format!("ok      {name}")),
            false => self.print_failure(&format!("{FAILED}{name}\n{}", indented(&shortened(output, 40)))),
        }
    }

    /// The line of one test, and its faults with its output.
    pub fn report(&self, test: &Test, faults: &[String], observed: &Observed) {
        self.add(usize::from(faults.is_empty()), usize::from(!faults.is_empty()));
        if faults.is_empty() {
            self.print(&format!("ok      {}", test.name));
            return;
        }
        let mut lines = format!("{FAILED}{}\n", test.name);
        for fault in faults {
            lines.push_str(&format!("{}\n", indented(fault)));
        }
        for (what, text) in
            [("stdout", &observed.stdout), ("stderr", &observed.stderr), ("kernel log", &observed.dmesg)]
        {
            if !text.trim().is_empty() {
                lines.push_str(&format!("    {what}:\n{}\n", indented(&shortened(text, 15))));
            }
        }
        self.print_failure(lines.trim_end());
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("      {line}\n")).collect::<String>().trim_end().to_string()
}

/// The first and the last lines of a long text, at most this many of each.
fn shortened(text: &str, shown: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 2 * shown {
        return text.to_string();
    }
    let left_out = format!("... {} lines ...", lines.len() - 2 * shown);
    [&lines[..shown], &[left_out.as_str()], &lines[lines.len() - shown..]].concat().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_report_counts_and_logs_everything() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("test.log");
        let report = Report::new(&log, true).expect("a log");
        report.report_one("good", true, "");
        report.report_one("bad", false, "why");
        assert_eq!((report.passed(), report.failed()), (1, 1));
        assert_eq!(std::fs::read_to_string(log).expect("the log"), "ok      good\nFAILED  bad\n      why\n");
    }

    #[test]
    fn long_texts_are_cut_in_the_middle() {
        let text = (0..100).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
        assert_eq!(shortened(&text, 1), "0\n... 98 lines ...\n99");
        assert_eq!(shortened(&text, 50), text);
    }
}
