// SPDX-License-Identifier: GPL-2.0-or-later

//! Options of stap that are refused, each with what to do instead.
//!
//! They are defined like other arguments of the command line, so that a script's line is read as stap reads it and the
//! reason can be printed; help, manual and completion leave them out.

use clap::{Arg, ArgAction, ArgMatches};

/// What to do instead of choosing another runtime.
pub const ONE_RUNTIME: &str = "scripts run only in the kernel; omit the option";
const SERVER: &str =
    "there is no compile server: compile with -p4 -m NAME on a build host and copy NAME.ko, which spilerun runs";
const BENCHMARK: &str = "it measured SystemTap; `cargo xtask bench` in the sources measures spile";

/// How an option takes its value.
#[derive(Clone, Copy)]
enum OptionArgument {
    Nothing,
    Maybe,
    Value,
}

/// Name (one letter: a short option), value, and the reason.
const REFUSED: &[(&str, OptionArgument, &str)] = &[
    ("use-server", OptionArgument::Maybe, SERVER),
    ("use-server-on-error", OptionArgument::Maybe, SERVER),
    ("use-http-server", OptionArgument::Value, SERVER),
    ("trust-servers", OptionArgument::Maybe, SERVER),
    ("client-options", OptionArgument::Nothing, SERVER),
    ("build-as", OptionArgument::Maybe, "compile as that user with -p4 -m NAME, and run spilerun NAME.ko as root"),
    ("dyninst", OptionArgument::Nothing, ONE_RUNTIME),
    ("bpf", OptionArgument::Nothing, ONE_RUNTIME),
    ("benchmark-sdt", OptionArgument::Nothing, BENCHMARK),
    ("benchmark-sdt-loops", OptionArgument::Value, BENCHMARK),
    ("benchmark-sdt-threads", OptionArgument::Value, BENCHMARK),
];

/// Definitions for the command line.
pub fn arguments() -> impl Iterator<Item = Arg> {
    REFUSED.iter().map(|(name, takes, _)| {
        let arg = Arg::new(*name).hide(true);
        let mut letters = name.chars();
        let arg = match (letters.next(), letters.next()) {
            (Some(letter), None) => arg.short(letter),
            _ => arg.long(*name),
        };
        match takes {
            OptionArgument::Nothing => arg.action(ArgAction::SetTrue),
            OptionArgument::Maybe => arg.num_args(0..=1).require_equals(true).default_missing_value(""),
            OptionArgument::Value => arg.num_args(1).allow_hyphen_values(true),
        }
    })
}

/// The reason for the first of them that is given, with its name.
pub fn reason(matches: &ArgMatches) -> Option<String> {
    let given = |name: &&(&str, OptionArgument, &str)| {
        matches.value_source(name.0) == Some(clap::parser::ValueSource::CommandLine)
    };
    let (name, _, reason) = REFUSED.iter().find(given)?;
    let dashes = if name.len() == 1 { "-" } else { "--" };
    Some(format!("{dashes}{name}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_what_to_do() {
        for (name, _, reason) in REFUSED {
            assert!(reason.len() > 30 && !reason.ends_with('.'), "{name}: {reason}");
        }
    }
}
