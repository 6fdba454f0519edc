// SPDX-License-Identifier: GPL-2.0-or-later

//! Dispatches decoded records: prints to the output, messages to standard error, commands to the shell.

use std::collections::HashSet;

use crate::output::{OutputError, Sinks};
use crate::records::record::Decoded;
use crate::records::text::MAX_TEXT;
use crate::session::system::Commands;

/// Number of warnings remembered, so that each text is printed once, and their bytes.
const MAX_WARNINGS: usize = 1024;
const MAX_WARNING_BYTES: usize = 1 << 20;
/// Messages about records that cannot be read. Further ones are counted.
const MAX_UNREADABLE: u64 = 10;

/// The effect of a record on the session, beside its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// None.
    Nothing,
    /// The session has failed, but may continue.
    Error,
    /// The gate for the script's writes may have changed.
    Gate,
    /// The script has called `exit()`.
    Stop,
}

/// Prints records and messages; each warning once unless verbose.
pub struct Dispatcher {
    /// Files and streams of the output and of messages.
    pub sinks: Sinks,
    /// Runs the commands of `system()`.
    pub commands: Commands,
    /// The closed output was reported.
    end_reported: bool,
    verbose: bool,
    no_warnings: bool,
    shown: HashSet<String>,
    /// Bytes of them.
    shown_bytes: usize,
    /// Warnings printed before.
    repeated: u64,
    /// Records that could not be read, and rings that held none.
    unreadable: u64,
}

impl Dispatcher {
    /// `verbose` prints notices and repeated warnings; `no_warnings` suppresses warnings.
    pub fn new(sinks: Sinks, commands: Commands, verbose: bool, no_warnings: bool) -> Dispatcher {
        Dispatcher {
            sinks,
            commands,
            end_reported: false,
            verbose,
            no_warnings,
            shown: HashSet::new(),
            shown_bytes: 0,
            repeated: 0,
            unreadable: 0,
        }
    }

    /// Why the output cannot be written any more; returned once.
    pub fn take_end(&mut self) -> Option<&OutputError> {
        let ended = self.sinks.ended().filter(|_| !self.end_reported);
        self.end_reported |= ended.is_some();
        ended
    }

    /// Prints a warning of the loader itself.
    pub fn warn(&mut self, text: &str) {
        if !self.no_warnings {
            self.sinks.message(&format!("WARNING: {text}"));
        }
    }

    /// Tells at the end of the session how many warnings were repeated, if any. The line is no warning itself: programs count those.
    pub fn count_repeated_warnings(&mut self) {
        if self.repeated > 0 && !self.no_warnings {
            self.sinks.message(&format!(
                "Number of similar warning messages suppressed: {}. Rerun with -v to see them.",
                self.repeated
            ));
        }
    }

    /// Reports data that is not a record: the first [`MAX_UNREADABLE`] times with its text.
    pub fn report_unreadable(&mut self, text: &str) {
        self.unreadable += 1;
        if self.unreadable <= MAX_UNREADABLE {
            self.sinks.message(&format!("ERROR: {text}"));
        }
    }

    /// Something could not be read.
    pub fn has_unreadable(&self) -> bool {
        self.unreadable > 0
    }

    /// Reports how many records, beside those reported, could not be read, if any.
    pub fn count_unreadable(&mut self) {
        let more = self.unreadable.saturating_sub(MAX_UNREADABLE);
        if more > 0 {
            self.sinks.message(&format!(
                "ERROR: {more} more records or buffers could not be read; the module or its memory is damaged"
            ));
        }
    }

    /// Writes the text of a record to the sinks, or runs its command; returns its effect on the session.
    pub fn dispatch(&mut self, decoded: Decoded<'_>) -> Effect {
        match decoded {
            Decoded::Print { text, cut } => {
                self.sinks.print(text);
                if cut {
                    self.warn_once(format!("a print was longer than {} MB, and is truncated", MAX_TEXT >> 20));
                }
            }
            Decoded::Warning(text) => self.warn_once(text),
            Decoded::Notice(text) => {
                if self.verbose {
                    self.sinks.message(&format!("NOTICE: {text}"));
                }
            }
            Decoded::Rewrite(text) => {
                self.sinks.message(&format!("REWRITE: {text}"));
                return Effect::Gate;
            }
            Decoded::System(command) => {
                // Flush earlier output before the command prints.
                self.sinks.write();
                if let Err(text) = self.commands.run(&command) {
                    self.warn(&text);
                }
            }
            Decoded::Task => {}
            Decoded::Exit => return Effect::Stop,
            Decoded::Error(line) => {
                self.sinks.message(&format!("ERROR: {line}"));
                return Effect::Error;
            }
            Decoded::Damaged { text, why } => {
                self.sinks.print(text);
                self.report_unreadable(&format!("a record cannot be read: {why}"));
                return Effect::Error;
            }
        }
        Effect::Nothing
    }

    fn warn_once(&mut self, text: String) {
        if !self.verbose && self.shown.contains(&text) {
            self.repeated += 1;
            return;
        }
        self.warn(&text);
        if self.shown.len() < MAX_WARNINGS && self.shown_bytes + text.len() <= MAX_WARNING_BYTES {
            self.shown_bytes += text.len();
            self.shown.insert(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// The contents of standard output and standard error.
    fn dispatched((verbose, no_warnings): (bool, bool), records: Vec<Decoded<'_>>) -> (String, String, Vec<Effect>) {
        let [(mut out_end, out), (mut err_end, err)] = [(); 2].map(|()| {
            let (read, write) = nix::unistd::pipe().unwrap();
            (std::fs::File::from(read), write)
        });
        let mut dispatcher = Dispatcher::new(Sinks::new(out, err), Commands::default(), verbose, no_warnings);
        let effects = records.into_iter().map(|decoded| dispatcher.dispatch(decoded)).collect();
        dispatcher.count_repeated_warnings();
        dispatcher.count_unreadable();
        dispatcher.sinks.write();
        drop(dispatcher);
        let (mut out, mut err) = (String::new(), String::new());
        out_end.read_to_string(&mut out).unwrap();
        err_end.read_to_string(&mut err).unwrap();
        (out, err, effects)
    }

    fn same_warnings() -> Vec<Decoded<'static>> {
        (0..3).map(|_| Decoded::Warning("same".into())).collect()
    }

    #[test]
    fn a_warning_is_shown_once() {
        let (_, err, _) = dispatched((false, false), same_warnings());
        let suppressed = "Number of similar warning messages suppressed: 2. Rerun with -v to see them.";
        assert_eq!(err, format!("WARNING: same\n{suppressed}\n"));
        assert_eq!(dispatched((true, false), same_warnings()).1.lines().count(), 3);
        assert_eq!(dispatched((false, true), same_warnings()).1, "");
    }

    #[test]
    fn only_prints_go_to_standard_output() {
        let records = vec![
            Decoded::Print { text: b"one\n", cut: false },
            Decoded::Error("bad".into()),
            Decoded::Notice("armed".into()),
            Decoded::Damaged { text: b"half\n", why: "kind 9".into() },
            Decoded::Exit,
        ];
        let (out, err, effects) = dispatched((true, false), records);
        assert_eq!(out, "one\nhalf\n");
        assert_eq!(err, "ERROR: bad\nNOTICE: armed\nERROR: a record cannot be read: kind 9\n");
        assert_eq!(effects, [Effect::Nothing, Effect::Error, Effect::Nothing, Effect::Error, Effect::Stop]);
    }

    #[test]
    fn unreadable_records_are_counted() {
        let damaged = |_| Decoded::Damaged { text: b"", why: "kind 9".into() };
        let (_, err, effects) = dispatched((false, false), (0..5000).map(damaged).collect());
        assert_eq!(err.lines().count(), 11);
        assert!(err.contains("\nERROR: 4990 more records or buffers could not be read; "), "{err}");
        assert_eq!(effects.len(), 5000);
        assert_eq!(dispatched((false, false), (0..10).map(damaged).collect()).1.lines().count(), 10);
    }

    #[test]
    fn notices_need_verbose() {
        assert_eq!(dispatched((false, false), vec![Decoded::Notice("armed".into())]).1, "");
    }
}
