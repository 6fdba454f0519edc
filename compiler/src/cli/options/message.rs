// SPDX-License-Identifier: GPL-2.0-or-later

//! What is printed beside the script's output.

use clap::{ArgAction, Args};

use super::value::pass_digits;
use crate::cli::report;

/// What is printed beside the script's output.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Messages and help")]
pub struct MessageOptions {
    /// Print more messages; may be repeated
    #[arg(short = 'v', action = ArgAction::Count)]
    pub verbose: u8,

    /// Print more messages of single passes: a digit for each of the five
    #[arg(long = "vp", value_name = "DIGITS", value_parser = pass_digits)]
    pub verbose_passes: Option<String>,

    /// Treat warnings as errors
    #[arg(short = 'W')]
    pub strict: bool,

    /// Use colours in messages
    #[arg(long, alias = "colour", value_name = "WHEN", value_parser = ["auto", "always", "never"], default_value = "auto", default_missing_value = "auto", num_args = 0..=1, require_equals = true)]
    pub color: String,

    /// Print messages as text, or as one JSON object per line
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    pub diagnostics: Form,

    /// Print at the end how long each stage took
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    pub time_report: Option<report::Form>,

    /// Explain the code of a message
    #[arg(long, value_name = "CODE")]
    pub explain: Option<String>,

    /// Print the script with its indentation and spacing corrected
    #[arg(long)]
    pub fmt: bool,

    /// Translate a bpftrace program and print the script; PROGRAM is its text, its file, or - for standard input
    #[arg(long, value_name = "PROGRAM", allow_hyphen_values = true)]
    pub from_bpftrace: Option<String>,

    /// Serve an editor by the Language Server Protocol on standard input and output
    #[arg(long)]
    pub language_server: bool,

    /// Print a completion script for a shell
    #[arg(long, value_name = "SHELL", value_enum)]
    pub completion: Option<clap_complete::Shell>,

    /// Print the manual page: man -l <(spile --man-page)
    #[arg(long)]
    pub man_page: bool,

    /// Print the version
    #[arg(short = 'V', long)]
    pub version: bool,
}

impl MessageOptions {
    /// How much pass `number` (1 to 5) says.
    pub fn verbosity(&self, number: usize) -> u8 {
        let digit =
            self.verbose_passes.as_ref().and_then(|digits| digits.as_bytes().get(number.checked_sub(1)?).copied());
        self.verbose.saturating_add(digit.map_or(0, |digit| digit.saturating_sub(b'0')))
    }

    /// Whether messages have colours, for a standard error that is a terminal or not.
    pub fn colored(&self, terminal: bool) -> bool {
        match self.color.as_str() {
            "always" => true,
            "never" => false,
            _ => terminal && std::env::var_os("NO_COLOR").is_none(),
        }
    }
}

/// How messages are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Text for people
    Text,
    /// A JSON object per line
    Json,
}
