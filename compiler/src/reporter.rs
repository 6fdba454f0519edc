// SPDX-License-Identifier: GPL-2.0-or-later

//! Everything that the compiler prints: diagnostics, warnings, the lines of `-v`, progress, and results on standard output.
//!
//! The reporter copies the options that affect messages, so that commands and passes need not read them.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::rc::Rc;

use spile_abi::escape;
use spile_abi::say::say;
use spile_base::progress::{Progress, ProgressHandle};
use spile_source::SourceMap;
use spile_source::diagnostic::{Code, Diagnostic, Severity, json, render};

use crate::cli::options::{Form, Options};
use crate::outcome::Outcome;

/// The work ended early with this exit status; the reason has been printed.
#[derive(Debug)]
pub struct Failed(pub u8);

/// The usual exit status after an error.
pub const WRONG: Failed = Failed(1);

/// Prints messages in the form selected by the options.
pub struct Reporter {
    form: Form,
    /// Messages begin as those of stap: programs that run it look for that.
    as_stap: bool,
    color: bool,
    /// `-w` was not given.
    warnings: bool,
    /// `-W`: warnings are errors.
    strict: bool,
    /// Of each of the five passes.
    verbosity: [u8; 5],
    /// Progress is shown: not where `-vvv` prints lines in between.
    progress: bool,
    /// For code that has no [`Progress`] of the current work.
    handle: Rc<RefCell<Option<ProgressHandle>>>,
    /// Warnings since pass 1, which are printed again when the module comes from the cache.
    recorded: String,
}

impl Reporter {
    /// A reporter as `options` ask for.
    pub fn new(options: &Options) -> Reporter {
        Reporter {
            form: options.message.diagnostics,
            as_stap: options.as_stap,
            color: options.message.colored(std::io::stderr().is_terminal()),
            warnings: !options.run.session.no_warnings,
            strict: options.message.strict,
            verbosity: [1, 2, 3, 4, 5].map(|pass| options.message.verbosity(pass)),
            progress: options.message.verbose < 3,
            handle: Rc::default(),
            recorded: String::new(),
        }
    }

    /// One diagnostic as text; `color`: with escape sequences.
    fn shown(&self, sources: &SourceMap, diagnostic: &Diagnostic, color: bool) -> String {
        match self.form {
            Form::Text if self.as_stap => {
                let message = diagnostic.stap.as_ref().unwrap_or(&diagnostic.message).clone();
                let said = Diagnostic { message, ..diagnostic.clone() };
                begun_as_stap(&said, &render::render(sources, &said, color))
            }
            Form::Text => render::render(sources, diagnostic, color),
            Form::Json => json::render(sources, diagnostic),
        }
    }

    /// Prints one diagnostic in the selected form.
    pub fn show(&self, sources: &SourceMap, diagnostic: &Diagnostic) {
        say(&self.shown(sources, diagnostic, self.color));
    }

    /// Prints the diagnostics of a pass. An error among them (with `-W` also a warning) ends the pass.
    pub fn diagnose(&self, sources: &SourceMap, pass: &str, diagnostics: &[Diagnostic]) -> Result<(), Failed> {
        let mut failed = false;
        for diagnostic in diagnostics {
            let warning = diagnostic.severity == Severity::Warning;
            failed |= !warning || self.strict;
            if !warning || self.warnings {
                self.show(sources, diagnostic);
            }
        }
        if failed {
            self.remark(&format!("{pass} failed."));
            return Err(WRONG);
        }
        Ok(())
    }

    /// Prints a line for people; nothing in JSON form, which contains only diagnostics.
    pub fn remark(&self, line: &str) {
        if self.form == Form::Text {
            say(&format!("{}\n", escape::lines(line)));
        }
    }

    /// Prints a line for people, but not with `-w`.
    pub fn notice(&self, line: &str) {
        if self.warnings {
            self.remark(line);
        }
    }

    /// For those that have no reporter: prints a line at once, under the same conditions.
    pub fn line_at_once(&self) -> fn(&str) {
        if self.form == Form::Text && self.warnings { spile_base::progress::line } else { |_| {} }
    }

    /// Prints a warning once, and records it for later uses of the module from the cache.
    pub fn warn(&mut self, warning: &str) {
        let line = format!("WARNING: {}\n", escape::lines(warning));
        if self.recorded.contains(&line) {
            return;
        }
        if self.warnings {
            say(&line);
        }
        self.recorded.push_str(&line);
    }

    /// Records diagnostics, replacing earlier ones.
    pub fn record(&mut self, sources: &SourceMap, diagnostics: &[Diagnostic]) {
        self.recorded = diagnostics.iter().map(|diagnostic| self.shown(sources, diagnostic, false)).collect();
    }

    /// What was recorded, as text to print.
    pub fn recorded(&self) -> &str {
        &self.recorded
    }

    /// Prints the warnings recorded when a module was built, but not with `-w`.
    pub fn repeat(&self, recorded: &str) {
        if self.warnings {
            say(recorded);
        }
    }

    /// Prints a mistake in the command line.
    pub fn usage(&self, message: &str) -> Failed {
        match self.form {
            Form::Text => {
                say(&format!("spile: {}\nTry 'spile --help' for more information.\n", escape::line(message)));
            }
            Form::Json => self.show(&SourceMap::new(), &Diagnostic::error(Code("E0502"), message)),
        }
        WRONG
    }

    /// Prints an error without a place in a script, with notes about it.
    pub fn fail(&self, message: impl Display, notes: &[String]) -> Failed {
        self.fail_as("E0500", message, notes)
    }

    /// As [`Reporter::fail`], without notes.
    pub fn error(&self, message: impl Display) -> Failed {
        self.fail(message, &[])
    }

    /// As [`Reporter::fail`], with a code of its own.
    pub fn fail_as(&self, code: &'static str, message: impl Display, notes: &[String]) -> Failed {
        let mut diagnostic = Diagnostic::error(Code(code), message.to_string());
        diagnostic.notes = notes.to_vec();
        self.show(&SourceMap::new(), &diagnostic);
        WRONG
    }

    /// Prints a line about a pass, with `-v` for any pass.
    pub fn pass(&self, line: impl FnOnce() -> String) {
        if self.verbosity.iter().any(|verbosity| *verbosity > 0) {
            self.remark(&line());
        }
    }

    /// Prints a line that SystemTap does not have, with `-v`. Called as `stap`, with `-vv`: what reads the lines of `-v` looks for
    /// each at the beginning of what is left.
    pub fn detail(&self, line: impl FnOnce() -> String) {
        if self.shows_details() {
            self.remark(&line());
        }
    }

    /// Whether [`Reporter::detail`] prints anything.
    pub fn shows_details(&self) -> bool {
        self.verbosity.iter().any(|verbosity| *verbosity > self.silent()) && self.form == Form::Text
    }

    /// How many `-v` print nothing of our own.
    fn silent(&self) -> u8 {
        u8::from(self.as_stap)
    }

    /// Prints why the cache could not be used, with `-v`.
    pub fn cache_notices(&self, cache: &spile_base::cache::Cache) {
        for notice in cache.take_notices() {
            self.detail(|| format!("NOTE: {notice}"));
        }
    }

    /// Prints what wildcards matched and cannot be probed: with `-v` some of it, with `-vv` all.
    pub fn left_out(&self, left_out: &[String]) {
        const SOME: usize = 20;
        let shown = match self.verbosity[1].saturating_sub(self.silent()) {
            0 => return,
            1 => SOME,
            _ => left_out.len(),
        };
        for line in left_out.iter().take(shown) {
            self.remark(&format!("not probed: {line}"));
        }
        if left_out.len() > shown {
            self.remark(&format!("not probed: {} more; -vv lists all", left_out.len() - shown));
        }
    }

    /// Shows `text` until the result is dropped, if the work takes long.
    pub fn progress(&self, text: &str) -> Progress {
        let progress = Progress::start(&escape::line(text), self.progress);
        *self.handle.borrow_mut() = progress.handle();
        progress
    }

    /// A function that replaces the text of the progress shown at the time it is called.
    pub fn progress_text(&self) -> Box<dyn Fn(&str)> {
        let handle = self.handle.clone();
        Box::new(move |text| {
            if let Some(handle) = &*handle.borrow() {
                handle.say(&escape::line(text));
            }
        })
    }
}

/// Prints lines about a kernel and its files on standard output, with control characters escaped: also the ends of lines that
/// are in names, which would begin a line of their own.
pub fn print_lines(lines: impl IntoIterator<Item = String>) -> Result<Outcome, Failed> {
    print_text(lines.into_iter().map(|line| escape::line(line.trim_end_matches('\n')).into_owned()))
}

/// What is written at once: standard output by itself writes each line, which takes longer than to find the functions of a
/// kernel.
const WRITTEN_AT_ONCE: usize = 16 << 20;

/// Prints source text on standard output, as it is.
pub fn print_text(texts: impl IntoIterator<Item = String>) -> Result<Outcome, Failed> {
    let mut out = std::io::stdout().lock();
    let mut buffer = Vec::new();
    for text in texts {
        buffer.extend_from_slice(text.trim_end_matches('\n').as_bytes());
        buffer.push(b'\n');
        if buffer.len() >= WRITTEN_AT_ONCE {
            out.write_all(&buffer).map_err(|error| unwritten(&error))?;
            buffer.clear();
        }
    }
    out.write_all(&buffer).and_then(|()| out.flush()).map_err(|error| unwritten(&error))?;
    Ok(Outcome::Done(ExitCode::SUCCESS))
}

/// Standard output cannot be written. A reader that has gone has seen enough.
fn unwritten(error: &std::io::Error) -> Failed {
    if error.kind() != std::io::ErrorKind::BrokenPipe {
        say(&format!("spile: writing standard output: {error}\n"));
    }
    WRONG
}

/// `1 probe`, `2 probes`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A diagnostic's text with stap's word for its kind at the beginning, and the code after the first line.
fn begun_as_stap(diagnostic: &Diagnostic, text: &str) -> String {
    let Code(code) = diagnostic.code;
    let (ours, theirs) = match diagnostic.severity {
        Severity::Warning => ("warning", "WARNING"),
        Severity::Error if code == "E0500" => ("error", "ERROR"),
        Severity::Error if code.starts_with("E00") => ("error", "parse error"),
        Severity::Error => ("error", "semantic error"),
    };
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first = first.replacen(&format!("{ours}[{code}]"), theirs, 1);
    format!("{first} [{code}]\n{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stap_begins_messages_in_its_words() {
        let shown = |diagnostic: Diagnostic, text: &str| begun_as_stap(&diagnostic, text);
        let wrong = Diagnostic::error(Code("E0101"), "type mismatch");
        assert_eq!(shown(wrong, "error[E0101]: type mismatch\n  x\n"), "semantic error: type mismatch [E0101]\n  x\n");
        let wrong = Diagnostic::error(Code("E0033"), "expected a statement");
        assert_eq!(
            shown(wrong, "\x1b[1merror[E0033]\x1b[0m: expected\n"),
            "\x1b[1mparse error\x1b[0m: expected [E0033]\n"
        );
        let warning = Diagnostic::warning(Code("W0101"), "never assigned");
        assert_eq!(shown(warning, "warning[W0101]: never assigned\n"), "WARNING: never assigned [W0101]\n");
    }
}
