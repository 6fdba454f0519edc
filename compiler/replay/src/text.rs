// SPDX-License-Identifier: GPL-2.0-or-later

//! What the script printed, as the session would have: text to the output, messages to standard error.

use std::io::Write;

use spile_abi::escape;
use spile_abi::say::say;

use crate::event::{Event, Session, What};
use crate::read::{ReadError, Receiver};

/// Writes text.
#[derive(Debug)]
pub struct Text<W> {
    to: W,
    /// By CPU: records lost so far.
    lost: Vec<(u16, u64)>,
    /// The output is a terminal: control characters are escaped.
    escapes: bool,
}

impl<W: Write> Text<W> {
    /// `escapes`: control characters in the script's output.
    pub fn new(to: W, escapes: bool) -> Text<W> {
        Text { to, lost: Vec::new(), escapes }
    }

    fn report_losses(&mut self) {
        let lost: u64 = std::mem::take(&mut self.lost).iter().fold(0, |sum, (_, records)| sum.saturating_add(*records));
        if lost > 0 {
            say(&format!("WARNING: {lost} records were lost when this was recorded: a larger buffer is -s MB\n"));
        }
    }

    /// After the last event.
    pub fn finish(mut self) -> Result<(), ReadError> {
        self.report_losses();
        Ok(self.to.flush()?)
    }
}

impl<W: Write> Receiver for Text<W> {
    fn session(&mut self, _: &Session) -> Result<(), ReadError> {
        self.report_losses();
        Ok(())
    }

    fn event(&mut self, _: &Session, event: &Event<'_>) -> Result<(), ReadError> {
        match &event.what {
            What::Print(print) if self.escapes => self.to.write_all(&escape::output(print.text))?,
            What::Print(print) => self.to.write_all(print.text)?,
            What::Message(kind @ ("warning" | "error" | "rewrite"), text) => {
                // In the order of the session.
                self.to.flush()?;
                say(&format!("{}: {}\n", kind.to_uppercase(), escape::line(text)));
            }
            // Notices need -v, and commands are not run again.
            What::Message(..) | What::End { .. } => {}
            What::Lost { records, .. } => match self.lost.iter_mut().find(|(cpu, _)| *cpu == event.cpu) {
                Some((_, lost)) => *lost = *records,
                None => self.lost.push((event.cpu, *records)),
            },
        }
        Ok(())
    }

    fn pause(&mut self) -> Result<(), ReadError> {
        Ok(self.to.flush()?)
    }
}
