// SPDX-License-Identifier: GPL-2.0-or-later

//! Runs the commands of a [`Recipe`](super::recipe::Recipe).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use super::recipe::{self, Argv};
use super::{BuildError, Stage, make};
use spile_abi::escape;
use spile_abi::say::say;
use spile_base::cache::{Cache, Key};
use spile_base::programs;

/// Why there is no module.
pub(super) enum Failure {
    /// An error of the user's script: Kbuild would report it too.
    Refused(BuildError),
    /// Only Kbuild can build it, or report what is wrong.
    Unable(String),
}

impl Failure {
    /// Why it failed, in one line.
    pub(super) fn reason(&self) -> String {
        match self {
            Failure::Refused(error) => {
                std::iter::once(error.to_string()).chain(error.notes()).collect::<Vec<_>>().join(": ")
            }
            Failure::Unable(reason) => reason.clone(),
        }
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Failure {
        Failure::Refused(error)
    }
}

/// Where and how commands run.
pub(super) struct Runner<'a> {
    pub(super) work: &'a Path,
    pub(super) directory: &'a Path,
    /// `NAME=VALUE`
    pub(super) environment: Vec<String>,
    pub(super) verbosity: u8,
    /// The commands that ran here.
    pub(super) stages: Mutex<Vec<Stage>>,
}

impl Runner<'_> {
    /// Adds a line to the times of `--vp`: a stage that began at `started` and ends now.
    pub(super) fn took(&self, what: &str, started: Instant) {
        let mut stages = self.stages.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        stages.push((what.to_string(), started.elapsed()));
    }
}

/// The output of a program that failed.
pub(super) struct FailedCommand {
    pub(super) program: String,
    pub(super) text: String,
}

/// The cache for an embedded unit's object.
pub(super) struct ObjectCache<'a> {
    pub(super) cache: &'a Cache,
    /// Key of the recipe.
    pub(super) key: &'a Key,
}

/// Runs commands one after the other until one fails.
pub(super) fn run_all(commands: &[Argv], name: &str, objects: &[String], runner: &Runner) -> Result<(), FailedCommand> {
    commands.iter().try_for_each(|words| run(&recipe::specialize(words, runner.work, name, objects), runner))
}

fn run(words: &[String], runner: &Runner) -> Result<(), FailedCommand> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let path = if program.contains('/') { runner.directory.join(program) } else { PathBuf::from(program) };
    let mut command = Command::new(path);
    make::environment(&mut command, runner.work);
    command.envs(runner.environment.iter().filter_map(|variable| variable.split_once('=')));
    command.args(arguments).current_dir(runner.directory).stdin(Stdio::null());
    let complaint = |text: String| FailedCommand { program: program.clone(), text };
    let started = Instant::now();
    let output = programs::output(&mut command).map_err(|error| complaint(error.to_string()))?;
    let made = words.iter().skip_while(|word| *word != "-o").nth(1).or(words.last());
    let made = made.and_then(|path| Path::new(path).file_name()).unwrap_or_default().to_string_lossy();
    runner
        .took(&format!("{} for {made}", Path::new(program).file_name().unwrap_or_default().to_string_lossy()), started);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if runner.verbosity >= 3 {
        say(&format!("  {}\n{}", escape::line(&words.join(" ")), escape::lines(&text)));
    }
    if output.status.success() { Ok(()) } else { Err(complaint(text)) }
}
