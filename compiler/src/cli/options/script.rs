// SPDX-License-Identifier: GPL-2.0-or-later

//! The script, and the language it is in.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use spile_core::plan::Limits;

use super::value::{assignment, language_version};
use crate::cli::limits;

/// The script, and the language it is in.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Script")]
pub struct ScriptOptions {
    /// The script, a file or - for standard input, and its arguments ($1, @1, ...); put -- before arguments that begin with -
    #[arg(value_name = "FILE", allow_negative_numbers = true)]
    pub words: Vec<OsString>,

    /// Text of the script
    // Of several words each is kept, so that a second one is told.
    #[arg(short = 'e', value_name = "SCRIPT", allow_hyphen_values = true)]
    pub text: Vec<String>,

    /// Text of another script, compiled together with the first
    #[arg(short = 'E', value_name = "SCRIPT", allow_hyphen_values = true)]
    pub more: Vec<String>,

    /// FILE is the name of an installed example (in spile/examples or systemtap/examples below $XDG_DATA_DIRS)
    #[arg(long, conflicts_with_all = ["text", "list", "variables", "list_lines"])]
    pub example: bool,

    /// Guru mode: the script may write kernel memory and contain C
    #[arg(short = 'g')]
    pub guru: bool,

    /// Set the initial value of a global variable
    #[arg(short = 'G', value_name = "NAME=VALUE", value_parser = assignment)]
    pub globals: Vec<(String, String)>,

    /// Set a limit (MAXACTION, MAXERRORS, MAXMAPENTRIES, MAXNESTING, MAXSKIPPED, MAXSTRINGLEN, MAXTRYLOCK and others), or define NAME for embedded C
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    pub defines: Vec<String>,

    /// Add a directory of library scripts
    #[arg(short = 'I', value_name = "DIR")]
    pub library: Vec<PathBuf>,

    /// Use the library scripts in DIR instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    pub tapset: Option<PathBuf>,

    /// Do not optimise: check and compile unused code too
    #[arg(short = 'u')]
    pub unoptimised: bool,

    /// Treat context variables that do not exist as 0
    #[arg(long)]
    pub skip_badvars: bool,

    /// A run-time error ends the handler silently, and not the script
    #[arg(long)]
    pub suppress_handler_errors: bool,

    /// Do not limit the time that handlers take, and allow 2147483647 statements in one run of a handler (needs -g)
    #[arg(long, requires = "guru")]
    pub suppress_time_limits: bool,

    /// Do not print globals that are written and never read at the end
    #[arg(long)]
    pub no_global_var_display: bool,

    /// Accept the language of SystemTap VERSION
    #[arg(long, value_name = "VERSION", value_parser = language_version)]
    pub compatible: Option<String>,

    /// Format of argstr in syscall.*: as in SystemTap's library, or as strace prints it
    #[arg(long, value_name = "FORM", value_parser = ["systemtap", "strace"], default_value = "systemtap")]
    pub syscall_style: String,
}

impl ScriptOptions {
    /// The script and its arguments; None if there is none.
    pub fn source(&self) -> Option<(Script, Vec<String>)> {
        let mut words = self.words.iter();
        let script = match self.text.is_empty() {
            false => Script::Text(self.text.concat()),
            true => match words.next()? {
                word if word == "-" => Script::Stdin,
                word => Script::File(PathBuf::from(word)),
            },
        };
        Some((script, words.map(|word| word.to_string_lossy().into_owned()).collect()))
    }

    /// Limits after all `-D`, and the names defined for embedded C; the message says which one is wrong.
    pub fn limits(&self) -> Result<(Limits, Vec<(String, String)>), String> {
        let mut limits = Limits::default();
        if self.suppress_handler_errors {
            (limits.suppress_errors, limits.max_skipped) = (true, i32::MAX as u32);
        }
        if self.suppress_time_limits {
            (limits.no_overload, limits.max_actions) = (true, i32::MAX as u32);
        }
        let others = limits::read(&self.defines, &mut limits)?;
        Ok((limits, others))
    }
}

/// The name of a script that is no file.
pub const INPUT: &str = "<input>";

impl Script {
    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            Script::File(path) => path.display().to_string(),
            Script::Stdin | Script::Text(_) => INPUT.into(),
        }
    }
}

/// Where the script's text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// The arguments of `-e`.
    Text(String),
}
