// SPDX-License-Identifier: GPL-2.0-or-later

//! From the words of a command line to the work that remains after the command.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::time::Instant;

use spile_abi::escape;
use spile_abi::say::say;
use spile_base::programs;

use crate::cli::clock::processor_time;
use crate::cli::options::Options;
use crate::cli::report::peak_memory;
use crate::outcome::Outcome;
use crate::reporter::Failed;
use crate::session::Session;
use crate::{cli, command};

/// Executes a command line; `arguments` as given to the process. Prints messages.
pub fn main(arguments: Vec<OsString>) -> Outcome {
    let arguments = match command::ask::words(arguments) {
        Ok(arguments) => arguments,
        Err(outcome) => return outcome,
    };
    // A compiler for another host gets the rc file's words from the one that starts it.
    let has_words_of_rc = arguments.get(1).is_some_and(|word| word == command::MODULE_DIRECTORY);
    let words = match if has_words_of_rc { Ok(arguments) } else { cli::rc::with_options(arguments) } {
        Ok(words) => words,
        Err(message) => {
            say(&format!("spile: {}\n", escape::line(&message)));
            return Outcome::Done(ExitCode::FAILURE);
        }
    };
    let options = match Options::parse_words(words.clone()) {
        Ok(options) => options,
        Err(error) => {
            // Help and version are not errors, and go to standard output.
            let status = ExitCode::from(u8::from(error.use_stderr()));
            // The message quotes the escaped words: a line end in one would begin a line of its own.
            let shown = words.iter().map(|word| escape::bytes(word.as_bytes()).into()).collect();
            match Options::parse_words(shown).err().filter(|shown| shown.kind() == error.kind()) {
                Some(shown) => drop(shown.print()),
                None if error.use_stderr() => say(&format!("{}\n", escape::line(&error.to_string()))),
                None => drop(error.print()),
            }
            return Outcome::Done(status);
        }
    };
    let started = Instant::now();
    let mut session = Session::new(options);
    let outcome = command::perform(&mut session, &words);
    programs::done();
    if let Some(form) = session.options.message.time_report {
        say(&session.times.text(form, started.elapsed(), processor_time(), peak_memory()));
    }
    outcome.unwrap_or_else(|Failed(status)| {
        // With -k the directory is kept, to examine what did not compile.
        drop(session.take_directory());
        Outcome::Done(ExitCode::from(status))
    })
}
