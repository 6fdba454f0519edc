// SPDX-License-Identifier: GPL-2.0-or-later

//! Options of stap that have no effect here but are accepted: programs that drive stap use them, and an error would
//! stop them. A note names the effect that a user might miss.
//!
//! Help, manual and completion leave them out.

use clap::{Arg, ArgAction, ArgMatches};

/// The note about `--prologue-searching`.
pub const PROLOGUE: &str = "not needed: parameters are read where debug information says they are; in code compiled without optimisation probe \
the line behind the prologue: .statement(\"function@file.c:LINE\")";

const INTERACTIVE: &str =
    "there is no prompt: the script is compiled and run as without it; a changed script takes a tenth of a second";

/// Name (one letter: a short option), whether it takes a value, and the note; None if nothing is missed.
const ACCEPTED: &[(&str, bool, &str)] = &[
    ("P", false, PROLOGUE),
    ("q", false, "no coverage is recorded; -p2 shows what of the library a script uses"),
    ("M", false, "the files that -b writes, one for each CPU, are never merged"),
    (
        "check-version",
        false,
        "nothing is compared; --compatible=VERSION has the script read in the language of an older version",
    ),
    ("i", false, INTERACTIVE),
    ("interactive", false, INTERACTIVE),
    // All errors of a pass are reported anyway.
    ("semantic-keep-going", false, ""),
    ("ldd", false, "symbols of the libraries that programs use are not carried along; -d FILE does that for a file"),
    ("sysenv", true, "not used: name programs and libraries by their full path in the script"),
    // Uprobes are part of every kernel that is served.
    ("save-uprobes", false, ""),
    (
        "target-namespaces",
        true,
        "ids are those of the host's namespaces; nsenter -t PID -p spilerun NAME.ko runs a module in others",
    ),
];

/// Names that `-D` gives SystemTap's runtime, and why they mean nothing here.
const DEFINES: &[(&str, &str)] = &[("STP_MAX_BUCKETS", "not used: a histogram has at most 128 buckets")];

/// Definitions for the command line.
pub fn arguments() -> impl Iterator<Item = Arg> {
    ACCEPTED.iter().map(|(name, takes_value, _)| {
        let arg = Arg::new(*name).hide(true);
        let mut letters = name.chars();
        let arg = match (letters.next(), letters.next()) {
            (Some(letter), None) => arg.short(letter),
            _ => arg.long(*name),
        };
        match (takes_value, *name) {
            (true, "sysenv") => arg.num_args(1).value_parser(variable).action(ArgAction::Append),
            (true, _) => arg.num_args(1).value_parser(clap::value_parser!(u32).range(1..)),
            (false, _) => arg.action(ArgAction::SetTrue),
        }
    })
}

/// `NAME=VALUE` of the environment.
fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_string()),
        _ => Err("expected NAME=VALUE".into()),
    }
}

/// Why these words are refused: `--sysenv` names variables of the system below `--sysroot`.
pub fn mistake(matches: &ArgMatches) -> Option<String> {
    let place = |name: &str| matches.indices_of(name).and_then(Iterator::last);
    let variables = matches.indices_of("sysenv").and_then(|mut places| places.next())?;
    let root = place("sysroot").filter(|root| *root < variables);
    root.is_none().then(|| "--sysenv: --sysroot has to come before it, whose variables these are".to_string())
}

/// A note, with the option's name, for each given option that would have had an effect.
pub fn notes(matches: &ArgMatches) -> Vec<String> {
    let given = |name: &str| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
    let noted = ACCEPTED.iter().filter(|(name, _, note)| !note.is_empty() && given(name));
    let options = noted.map(|(name, _, note)| format!("{}{name}: {note}", if name.len() == 1 { "-" } else { "--" }));
    let defined: Vec<&String> = matches.get_many("defines").into_iter().flatten().collect();
    let named = |name: &str| defined.iter().any(|define| define.split('=').next() == Some(name));
    let defines = DEFINES.iter().filter(|(name, _)| named(name)).map(|(name, note)| format!("-D {name}: {note}"));
    options.chain(defines).collect()
}
