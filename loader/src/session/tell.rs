// SPDX-License-Identifier: GPL-2.0-or-later

//! What records say, told: prints to one place, messages to the other, commands to the shell.

use std::collections::HashSet;

use crate::output::Sinks;
use crate::records::record::Said;
use crate::records::text::MAX_TEXT;
use crate::session::system::Commands;

/// Warnings remembered, so that each text is shown once.
const MAX_WARNINGS: usize = 1024;

/// What a record asks of the session beside being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It goes on.
    Nothing,
    /// The session has failed, though it may go on.
    Error,
    /// The gate before what the script writes may have been changed.
    Gate,
    /// The script has called `exit()`.
    Stop,
}

/// Shows records and messages, and each warning once.
#[derive(Debug)]
pub struct Teller {
    verbose: bool,
    no_warnings: bool,
    shown: HashSet<String>,
    /// Warnings that were shown before.
    repeated: u64,
}

impl Teller {
    /// `verbose` shows notices, and warnings every time; `no_warnings` shows none of these.
    pub fn new(verbose: bool, no_warnings: bool) -> Teller {
        Teller { verbose, no_warnings, shown: HashSet::new(), repeated: 0 }
    }

    /// Shows a warning of the loader's own.
    pub fn warn(&self, text: &str, sinks: &mut Sinks) {
        if !self.no_warnings {
            sinks.message(&format!("WARNING: {text}"));
        }
    }

    /// What is to be said of them at the end.
    pub fn repeated_warnings(&self) -> Option<String> {
        let text =
            || format!("Number of similar warning messages suppressed: {}. Rerun with -v to see them.", self.repeated);
        (self.repeated > 0).then(text)
    }

    /// Does what a record asks for; what else it means for the session.
    pub fn tell(&mut self, said: Said<'_>, sinks: &mut Sinks, commands: &mut Commands) -> After {
        match said {
            Said::Print { text, cut } => {
                sinks.print(text);
                if cut {
                    self.warn_once(format!("a print was longer than {} MB, and is cut", MAX_TEXT >> 20), sinks);
                }
            }
            Said::Warning(text) => self.warn_once(text, sinks),
            Said::Notice(text) => {
                if self.verbose {
                    sinks.message(&format!("NOTICE: {text}"));
                }
            }
            Said::Rewrite(text) => {
                sinks.message(&format!("REWRITE: {text}"));
                return After::Gate;
            }
            Said::System(command) => {
                // What was printed before it stands before what it prints.
                sinks.write();
                if let Err(text) = commands.run(&command) {
                    self.warn(&text, sinks);
                }
            }
            Said::Exit => return After::Stop,
            Said::Error(line) => {
                sinks.message(&format!("ERROR: {line}"));
                return After::Error;
            }
            Said::Damaged { text, why } => {
                sinks.print(text);
                sinks.message(&format!("ERROR: a record cannot be read: {why}"));
                return After::Error;
            }
        }
        After::Nothing
    }

    fn warn_once(&mut self, text: String, sinks: &mut Sinks) {
        if !self.verbose && self.shown.contains(&text) {
            self.repeated += 1;
            return;
        }
        self.warn(&text, sinks);
        if self.shown.len() < MAX_WARNINGS {
            self.shown.insert(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// What standard output and standard error get.
    fn told(mut teller: Teller, records: Vec<Said<'_>>) -> (String, String, Vec<After>) {
        let [(mut out_end, out), (mut err_end, err)] = [(); 2].map(|()| {
            let (read, write) = nix::unistd::pipe().unwrap();
            (std::fs::File::from(read), write)
        });
        let mut sinks = Sinks::new(out, err);
        let mut commands = Commands::default();
        let after = records.into_iter().map(|said| teller.tell(said, &mut sinks, &mut commands)).collect();
        if let Some(line) = teller.repeated_warnings() {
            teller.warn(&line, &mut sinks);
        }
        sinks.write();
        drop(sinks);
        let (mut out, mut err) = (String::new(), String::new());
        out_end.read_to_string(&mut out).unwrap();
        err_end.read_to_string(&mut err).unwrap();
        (out, err, after)
    }

    fn same_warnings() -> Vec<Said<'static>> {
        (0..3).map(|_| Said::Warning("same".into())).collect()
    }

    #[test]
    fn a_warning_is_shown_once() {
        let (_, err, _) = told(Teller::new(false, false), same_warnings());
        let suppressed = "WARNING: Number of similar warning messages suppressed: 2. Rerun with -v to see them.";
        assert_eq!(err, format!("WARNING: same\n{suppressed}\n"));
        assert_eq!(told(Teller::new(true, false), same_warnings()).1.lines().count(), 3);
        assert_eq!(told(Teller::new(false, true), same_warnings()).1, "");
    }

    #[test]
    fn only_prints_go_to_standard_output() {
        let records = vec![
            Said::Print { text: b"one\n", cut: false },
            Said::Error("bad".into()),
            Said::Notice("armed".into()),
            Said::Damaged { text: b"half\n", why: "kind 9".into() },
            Said::Exit,
        ];
        let (out, err, after) = told(Teller::new(true, false), records);
        assert_eq!(out, "one\nhalf\n");
        assert_eq!(err, "ERROR: bad\nNOTICE: armed\nERROR: a record cannot be read: kind 9\n");
        assert_eq!(after, [After::Nothing, After::Error, After::Nothing, After::Error, After::Stop]);
    }

    #[test]
    fn notices_are_for_those_who_ask() {
        assert_eq!(told(Teller::new(false, false), vec![Said::Notice("armed".into())]).1, "");
    }
}
