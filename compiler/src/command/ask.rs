// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile ask NAME`: an example by its question. It becomes an ordinary command line, or text to print.

use std::ffi::OsString;
use std::process::ExitCode;

use spile_abi::escape;
use spile_abi::say::say;
use spile_questions::line::{self, Action, OptionsOfSpile};

use super::describe;
use crate::cli::options;
use crate::outcome::Outcome;

/// The first word of such a command line.
const WORD: &str = "ask";

/// A command line as it is executed: `ask` is replaced by the script and its options. The error is what remains to be done
/// without one. Called as `stap`, `ask` is the name of a script, as `./ask` always is.
pub fn words(arguments: Vec<OsString>) -> Result<Vec<OsString>, Outcome> {
    let [program, word, rest @ ..] = arguments.as_slice() else { return Ok(arguments) };
    if word != WORD || options::is_stap(program) {
        return Ok(arguments);
    }
    match line::read(rest, &Known(options::command())) {
        Ok(Action::Run(words)) => Ok(std::iter::once(program.clone()).chain(words).collect()),
        Ok(Action::Text(text)) => Err(describe::print(text.as_bytes()).unwrap_or(Outcome::Done(ExitCode::FAILURE))),
        Err(message) => {
            say(&format!("spile: {}\n", escape::line(&message)));
            Err(Outcome::Done(ExitCode::FAILURE))
        }
    }
}

/// The definitions of spile's options.
struct Known(clap::Command);

impl OptionsOfSpile for Known {
    fn takes_value(&self, option: &str) -> Option<bool> {
        let long = option.strip_prefix("--");
        let short = option.chars().nth(1).filter(|_| long.is_none());
        let found = self.0.get_arguments().find(|argument| match long {
            Some(name) => argument.get_long_and_visible_aliases().is_some_and(|names| names.contains(&name)),
            None => short.is_some() && argument.get_short() == short,
        })?;
        let may_be_left_out = found.get_num_args().is_some_and(|values| values.min_values() == 0);
        Some(found.get_action().takes_values() && !found.is_require_equals_set() && !may_be_left_out)
    }

    fn names(&self) -> Vec<String> {
        let shown = self.0.get_arguments().filter(|argument| !argument.is_hide_set());
        shown.filter_map(|argument| argument.get_long()).map(|name| format!("--{name}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_options_take_the_next_word() {
        let known = Known(options::command());
        for (option, takes) in [
            ("-c", Some(true)),
            ("-T", Some(true)),
            ("-G", Some(true)),
            ("-v", Some(false)),
            ("--guest", Some(false)),
            ("--monitor", Some(false)),
            ("--remote", Some(true)),
            ("--no-such", None),
            ("-@", None),
        ] {
            assert_eq!(known.takes_value(option), takes, "{option}");
        }
        assert!(known.names().contains(&"--guest".to_string()));
    }

    #[test]
    fn a_question_has_no_option_of_spile() {
        let known = Known(options::command());
        for question in spile_questions::Questions::read().unwrap().all {
            for option in question.options {
                assert_eq!(
                    known.takes_value(&format!("--{}", option.name)),
                    None,
                    "{}: --{}",
                    question.name,
                    option.name
                );
            }
        }
    }

    #[test]
    fn words_become_a_command_line() {
        let given = |line: &str| words(line.split(' ').map(OsString::from).collect());
        let shown = |line: &str| {
            given(line)
                .ok()
                .map(|words| words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
        };
        let run = shown("spile ask threshold --over 10ms -o out").unwrap();
        assert_eq!(run.get(..6).unwrap(), ["spile", "-o", "out", "-G", "limit_us=10000", "-e"]);
        assert!(run.get(6).unwrap().contains("probe vfs.read.return"));
        // Nothing is asked.
        for line in ["spile ./ask", "spile -v ask", "stap ask threshold", "/usr/bin/stap ask"] {
            assert_eq!(shown(line).unwrap().join(" "), line);
        }
        let Err(Outcome::Done(status)) = given("spile ask threshold --ovr 10ms") else { panic!("it is executed") };
        assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::FAILURE));
    }
}
