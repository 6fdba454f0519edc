// SPDX-License-Identifier: GPL-2.0-or-later

//! The options: stap's, with a few of our own. Each file has those of one subject.

mod ask;
mod build;
mod kernel;
mod message;
mod run;
mod script;
#[cfg(test)]
mod tests;
mod value;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{CommandFactory, FromArgMatches, Parser};

pub use ask::{AskOptions, OutputFormat};
pub use build::BuildOptions;
pub use kernel::KernelOptions;
pub use message::{Form, MessageOptions};
pub use run::RunOptions;
pub use script::{INPUT, Script, ScriptOptions};
pub use value::{LONGEST_NAME, module_name};

use spile_core::elaborate::Privilege;

use super::{accepted, refused};

/// Compiles SystemTap scripts to kernel modules and runs them.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "spile",
    disable_version_flag = true,
    override_usage = "spile [OPTIONS] FILE [ARGUMENT]...\n       spile [OPTIONS] -e SCRIPT [ARGUMENT]...\n       spile [OPTIONS] -l PROBE | -L PROBE\n       spile ask [NAME [OPTIONS] | WORD...]\n       spile top|report [OPTIONS] FILE [ARGUMENT]...\n       spile replay [--format FORMAT] RECORDING",
    after_help = "spile ask lists ready-made scripts, spile ask NAME runs one; NAME --help shows its options and an example of its output, NAME --print \
prints the script. Run your own script named ask as ./ask.\n\
spile top shows a script in the terminal while it runs, spile report makes a page of what it prints or of a recording, spile replay prints a recording \
(--record) as text, JSON, CSV and others; each has --help.\n\
Options are also read from the file rc in $SYSTEMTAP_DIR or ~/.systemtap; they precede those of the command line.\n\
SYSTEMTAP_TAPSET sets the library (as --tapset), SYSTEMTAP_RUNTIME the runtime (as -R; SystemTap's own is not used), TMPDIR the \
directory for temporary files.\n\
Exit status: 0 the script ran and ended without an error; 1 the command line is wrong, the script has an error, could not be compiled, \
or ended with a run-time error; 10 with --guest: a module that the script probes could not be loaded there; others as for spilerun, see spilerun --help.\n\
The script's output goes to standard output (or -o), all messages to standard error."
)]
pub struct Options {
    /// The script.
    #[command(flatten)]
    pub script: ScriptOptions,
    /// The kernel.
    #[command(flatten)]
    pub kernel: KernelOptions,
    /// Questions.
    #[command(flatten)]
    pub ask: AskOptions,
    /// The module.
    #[command(flatten)]
    pub build: BuildOptions,
    /// The run.
    #[command(flatten)]
    pub run: RunOptions,
    /// Messages.
    #[command(flatten)]
    pub message: MessageOptions,
    /// Called as `stap`: the name by which other programs start it and look for it.
    #[arg(skip)]
    pub as_stap: bool,
    /// Notes about accepted options without effect.
    #[arg(skip)]
    pub notes: Vec<String>,
}

/// The command as help and completion show it, with the options that are refused.
pub fn command() -> clap::Command {
    // The last occurrence of an option counts: the command line overrides the rc file.
    Options::command().args_override_self(true).args(refused::arguments()).args(accepted::arguments())
}

/// Whether a program's path is that of `stap`.
pub fn is_stap(program: &OsStr) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "stap")
}

impl Options {
    /// Parses the words of a command line, including the program's name. The error prints itself: it is a mistake, or the
    /// output of -h and -V.
    pub fn parse_words(words: Vec<OsString>) -> Result<Options, clap::Error> {
        let mut command = command();
        let as_stap = words.first().is_some_and(|program| is_stap(program));
        let matches = command.try_get_matches_from_mut(words)?;
        if let Some(reason) = refused::reason(&matches) {
            return Err(command.error(clap::error::ErrorKind::ArgumentConflict, reason));
        }
        if let Some(mistake) = accepted::mistake(&matches) {
            return Err(command.error(clap::error::ErrorKind::ArgumentConflict, mistake));
        }
        let mut options = Options::from_arg_matches(&matches)?;
        options.as_stap = as_stap;
        options.notes = accepted::notes(&matches);
        if options.kernel.prologue_searching.as_ref().is_some_and(|when| when == "always") {
            options.notes.push(format!("--prologue-searching=always: {}", accepted::PROLOGUE));
        }
        if options.cannot_download() {
            options.notes.push("--download-debuginfo: nobody to ask: set DEBUGINFOD_URLS to debuginfod servers, or install the kernel's debug information (linux-image-RELEASE-dbg, or kernel-debuginfo)".into());
        }
        match options.unsupported_value() {
            Some(reason) => Err(command.error(clap::error::ErrorKind::InvalidValue, reason)),
            None => Ok(options),
        }
    }

    /// Why a value that stap accepts is refused here.
    fn unsupported_value(&self) -> Option<String> {
        let machine = std::env::consts::ARCH;
        if let Some(given) = self.build.architecture.as_ref().filter(|given| *given != machine) {
            return Some(format!(
                "-a {given}: only {machine}, this machine's architecture, is supported; compile on a {given} machine"
            ));
        }
        if let Some(mode) = self.build.mode.as_ref().filter(|mode| *mode != "kernel") {
            return Some(format!("--runtime={mode}: {}", refused::ONE_RUNTIME));
        }
        let privilege = self.build.privilege();
        if self.script.guru && privilege != Privilege::Dev {
            return Some(format!("-g with --privilege={}: guru mode is for stapdev only", privilege.name()));
        }
        if self.build.last_pass.is_none_or(|pass| pass == 5)
            && let Some(reason) = self.run.refused_by_loader()
        {
            return Some(reason);
        }
        if self.script.text.len() > 1 {
            return Some("-e: only one script can be given; -E adds the text of another one".into());
        }
        let questions = self.ask.questions();
        match questions.as_slice() {
            [first, second, ..] => Some(format!("{first} and {second}: one question at a time")),
            [question] if self.build.last_pass.is_some_and(|pass| pass < 5) => {
                Some(format!("-p1 to -p4 with {question}: nothing is compiled for it"))
            }
            _ => None,
        }
    }

    /// Downloads are asked for, and there is nobody to ask.
    fn cannot_download(&self) -> bool {
        let asked = self.kernel.download_debuginfo.as_ref().is_some_and(|when| when != "no");
        asked && std::env::var_os("DEBUGINFOD_URLS").is_none_or(|urls| urls.is_empty())
    }
}
