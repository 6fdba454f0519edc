// SPDX-License-Identifier: GPL-2.0-or-later

//! The commands, one file for each subject. [`Command`] says which one is meant.

pub mod ask;
mod bpftrace;
mod cache;
mod check;
mod compile;
mod describe;
mod export;
mod format;
mod guest;
mod language_server;
mod lines;
mod list;
mod prepare;
mod remote;
mod resolve;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use spile_abi::escape;
use spile_core::plan::Limits;
use spile_debuginfo::target::Kernel;

use crate::cli::options::{LONGEST_NAME, Options, OutputFormat, Script, module_name};
use crate::cli::places::CacheMistake;
use crate::cli::{self, example, places};
use crate::outcome::Outcome;
use crate::passes::parse::{self, Parsed};
use crate::reporter::{Failed, Reporter};
use crate::session::Session;
use crate::target::{self, Target};

pub use remote::MODULE_DIRECTORY;

/// Commands that need no kernel and no script that compiles.
enum StandaloneCommand {
    Explain(String),
    Completion(clap_complete::Shell),
    ManPage,
    Format,
    FromBpftrace(String),
    LanguageServer,
    ProbeTypes,
    Servers,
    Cache(cli::cache::Action),
    /// `--guest FILE.ko`, and its GLOBAL=VALUE.
    Rehearse(PathBuf, Vec<String>),
}

impl StandaloneCommand {
    fn of(options: &Options) -> Option<StandaloneCommand> {
        let cache = || options.build.cache.or(options.build.clean_cache.then_some(cli::cache::Action::Prune));
        if let Some(code) = &options.message.explain {
            Some(StandaloneCommand::Explain(code.clone()))
        } else if let Some(shell) = options.message.completion {
            Some(StandaloneCommand::Completion(shell))
        } else if options.message.man_page {
            Some(StandaloneCommand::ManPage)
        } else if options.message.fmt {
            Some(StandaloneCommand::Format)
        } else if let Some(program) = &options.message.from_bpftrace {
            Some(StandaloneCommand::FromBpftrace(program.clone()))
        } else if options.message.language_server {
            Some(StandaloneCommand::LanguageServer)
        } else if options.ask.dump_probe_types {
            Some(StandaloneCommand::ProbeTypes)
        } else if options.ask.list_servers.is_some() {
            Some(StandaloneCommand::Servers)
        } else if let Some(action) = cache() {
            Some(StandaloneCommand::Cache(action))
        } else {
            guest::prebuilt(options).map(|(module, settings)| StandaloneCommand::Rehearse(module, settings))
        }
    }

    fn perform(self, session: &mut Session) -> Result<Outcome, Failed> {
        match self {
            StandaloneCommand::Explain(code) => describe::explain(&session.reporter, &code),
            StandaloneCommand::Completion(shell) => describe::completion(shell),
            StandaloneCommand::ManPage => describe::man_page(&session.reporter),
            StandaloneCommand::Format => format::format(session),
            StandaloneCommand::FromBpftrace(program) => bpftrace::translate(session, &program),
            StandaloneCommand::LanguageServer => language_server::serve(session),
            StandaloneCommand::ProbeTypes => list::probe_types(&session.options),
            StandaloneCommand::Servers => {
                session.reporter.notice("NOTE: there are no compile servers: spile compiles on this host");
                Ok(Outcome::Done(std::process::ExitCode::SUCCESS))
            }
            StandaloneCommand::Cache(action) => cache::perform(session, action),
            StandaloneCommand::Rehearse(module, settings) => {
                need_files(session)?;
                guest::test_module(session, &module, settings)
            }
        }
    }
}

/// Commands that examine one kernel: all but `-p1` to `-p5` compile nothing.
enum Command {
    Export(PathBuf),
    List(String),
    Lines,
    Resolve(OutputFormat),
    ProbeAliases,
    Functions,
    Compile,
}

impl Command {
    fn of(options: &Options) -> Command {
        if let Some(file) = &options.ask.export_index {
            Command::Export(file.clone())
        } else if let Some(points) = options.ask.listing() {
            Command::List(points)
        } else if !options.ask.list_lines.is_empty() {
            Command::Lines
        } else if let Some(form) = options.ask.resolve {
            Command::Resolve(form)
        } else if options.ask.dump_probe_aliases {
            Command::ProbeAliases
        } else if options.ask.dump_functions {
            Command::Functions
        } else {
            Command::Compile
        }
    }

    /// Whether it has a script of the user's.
    fn takes_script(&self) -> bool {
        matches!(self, Command::Resolve(_) | Command::Compile)
    }
}

/// What a compilation is for, as on the command line.
struct Job {
    limits: Limits,
    /// `-D` that are not limits: names and values for embedded C.
    defines: Vec<(String, String)>,
    /// `-m`
    name: Option<String>,
    /// The pass to stop after.
    last_pass: u8,
    target: Target,
    script: Script,
    arguments: Vec<String>,
}

impl Job {
    fn new(session: &Session, command: &Command) -> Result<Job, Failed> {
        let (options, reporter) = (&session.options, &session.reporter);
        let (limits, defines) = options.script.limits().map_err(|message| reporter.usage(&message))?;
        let name = options.build.module.as_deref().map(|name| shortened(name, reporter));
        let name = name.as_deref().map(module_name).transpose();
        let name = name.map_err(|message| reporter.usage(&message))?;
        let last_pass = target::last_pass(options, reporter)?;
        let target = Target::choose(options, reporter)?;
        warn_of_missing_files(session, target.kernel.as_ref());
        let taken = name
            .as_ref()
            .filter(|name| last_pass > 3 && target.kernel.as_ref().is_some_and(|kernel| kernel.has_module(name)));
        if let Some(name) = taken {
            reporter.notice(&format!("WARNING: -m {name}: kernel {} has a module or a part of this name, and cannot load another one beside it", target.release));
        }
        let asks = matches!(command, Command::List(_) | Command::ProbeAliases | Command::Functions);
        let given = options.script.source().filter(|_| !asks);
        let (script, arguments) = match given {
            Some(given) => given,
            None if command.takes_script() => return Err(no_script(reporter)),
            None => (Script::Text(String::new()), Vec::new()),
        };
        Ok(Job { limits, defines, name, last_pass, target, script, arguments })
    }

    /// Pass 1.
    fn parse(&mut self, session: &mut Session) -> Result<Parsed, Failed> {
        let arguments = std::mem::take(&mut self.arguments);
        let kernel = self.target.kernel.as_ref();
        let environment = parse::environment(&session.options, &self.target.release, kernel, arguments);
        let clock = cli::clock::Clock::start();
        let parsed = parse::parse(session, &self.script, &environment)?;
        session.times.add("parse", clock.elapsed());
        session.reporter.pass(|| {
            format!(
                "Pass 1: parsed user script and {} library scripts using {}, in {}.",
                parsed.library,
                cli::clock::memory(),
                clock.times()
            )
        });
        Ok(parsed)
    }
}

/// Executes the command line; `words` are all its words, including those of the rc file.
pub fn perform(session: &mut Session, words: &[OsString]) -> Result<Outcome, Failed> {
    if session.options.message.version {
        return describe::version();
    }
    if !session.options.run.remote.is_empty() && !session.options.ask.only_asks() {
        return remote::run(session, words);
    }
    for note in &session.options.notes {
        session.reporter.notice(&format!("NOTE: {note}"));
    }
    find_example(session)?;
    if session.options.ask.dumps_library() || session.options.ask.dump_probe_types {
        for number in 1..=session.options.script.words.len() {
            session.reporter.notice(&format!("WARNING: unused command line option ${number}/@{number}"));
        }
    }
    if let Some(simple) = StandaloneCommand::of(&session.options) {
        return simple.perform(session);
    }
    limit_resources(session)?;
    check_places(session)?;
    if let Some(form) = session.options.ask.check {
        need_files(session)?;
        return check::check(session, form);
    }
    if session.options.ask.prepare {
        return prepare::prepare(session);
    }
    let command = Command::of(&session.options);
    if matches!(command, Command::Export(_)) {
        need_files(session)?;
    }
    let mut job = Job::new(session, &command)?;
    if let Command::Export(file) = &command {
        return export::export(session, file, &job.target);
    }
    let parsed = job.parse(session)?;
    match command {
        Command::Export(file) => export::export(session, &file, &job.target),
        Command::List(points) => list::list(session, &points, &parsed.scripts, &job.target),
        Command::Lines => lines::list(session, &job.target),
        Command::Resolve(form) => resolve::resolve(session, form, &parsed.scripts, &job.target),
        Command::ProbeAliases => list::probe_aliases(session, &parsed.scripts),
        Command::Functions => list::functions(session, &parsed.scripts),
        Command::Compile => compile::compile(session, job, &parsed.scripts),
    }
}

/// A module's name that is not too long for the kernel.
fn shortened(name: &str, reporter: &Reporter) -> String {
    let name = name.strip_suffix(".ko").unwrap_or(name);
    let short = name.get(..LONGEST_NAME).unwrap_or(name);
    if short.len() < name.len() {
        reporter.notice(&format!("WARNING: Truncating module name to '{short}': the kernel takes no longer one"));
    }
    short.to_string()
}

fn no_script(reporter: &Reporter) -> Failed {
    reporter.usage("a script is missing: give a file, - or -e SCRIPT")
}

/// `--example NAME`: replaces the name by the example's path.
fn find_example(session: &mut Session) -> Result<(), Failed> {
    if !session.options.script.example {
        return Ok(());
    }
    let reporter = &session.reporter;
    let name =
        session.options.script.words.first_mut().ok_or_else(|| reporter.usage("--example: its name is missing"))?;
    *name = example::find(Path::new(name)).map_err(|message| reporter.usage(&message))?.into();
    Ok(())
}

/// `--rlimit-*`: for this process and the programs that it runs.
fn limit_resources(session: &Session) -> Result<(), Failed> {
    for (name, resource, value) in session.options.build.resources() {
        let set = nix::sys::resource::setrlimit(resource, value, value);
        set.map_err(|error| session.reporter.usage(&format!("{name}={value}: {error}")))?;
    }
    Ok(())
}

/// Checks the files of `-d`, where the answer would be another one without them.
fn need_files(session: &Session) -> Result<(), Failed> {
    match session.options.kernel.no_files().into_iter().find_map(|(path, why)| Some((path, why?))) {
        Some((path, why)) => Err(session.reporter.usage(&format!("-d {}: {why}", path.display()))),
        None => Ok(()),
    }
}

/// Says which of `-d` are left out, as SystemTap does.
fn warn_of_missing_files(session: &Session, kernel: Option<&Kernel>) {
    for (path, why) in session.options.kernel.no_files() {
        let is_known = |name: &str| name == "kernel" || kernel.is_none_or(|kernel| kernel.has_module(name));
        let why = match why {
            None if path.to_str().is_some_and(is_known) => continue,
            why => why.unwrap_or_else(|| "there is no such file, and no such module".into()),
        };
        let shown = path.display();
        let warning = match path.is_dir() {
            true => format!("WARNING: -d {shown} is left out: {why}"),
            false => format!("WARNING: missing unwind/symbol data for module '{shown}': {why}"),
        };
        session.reporter.notice(&warning);
    }
}

/// Checks the other files and directories of options that would be found out late, or be waited for.
fn check_other_files(session: &Session) -> Result<(), Failed> {
    let kernel = &session.options.kernel;
    if let Some(directory) = &kernel.sysroot
        && let Err(error) = std::fs::read_dir(directory)
    {
        let why = match error.kind() {
            ErrorKind::PermissionDenied => error.to_string(),
            _ => "there is no such directory".to_string(),
        };
        return Err(session.reporter.usage(&format!("--sysroot {}: {why}", directory.display())));
    }
    let build = &session.options.build;
    for (option, file) in [("--sign-key", &build.sign_key), ("--sign-cert", &build.sign_cert)] {
        // sign-file would wait for the writer of a pipe. A key may be a pkcs11: URI, which is no path.
        let special = |file: &&PathBuf| std::fs::metadata(file).is_ok_and(|metadata| !metadata.is_file());
        if let Some(file) = file.as_ref().filter(special) {
            return Err(session.reporter.usage(&format!("{option} {}: not a regular file", file.display())));
        }
    }
    if let Some(file) = &session.options.ask.export_index {
        // Before the kernel is read, which takes long.
        spile_base::read::can_be_replaced(file)
            .map_err(|error| session.reporter.usage(&format!("--export-index {}: {error}", file.display())))?;
    }
    Ok(())
}

/// Checks the directory of the cache.
fn check_cache(session: &Session) -> Result<(), Failed> {
    if !session.options.build.disable_cache {
        match places::cache_mistake() {
            Some(CacheMistake::Given(message)) => return Err(session.reporter.error(message)),
            Some(CacheMistake::Slow(message)) => {
                session.reporter.notice(&format!("WARNING: {}", escape::lines(&message)));
            }
            None => {}
        }
    }
    Ok(())
}

/// Checks the directories from the environment, and the files of options, before any pass.
fn check_places(session: &Session) -> Result<(), Failed> {
    check_other_files(session)?;
    check_cache(session)?;
    let temporary = places::temporary(&session.options).map_err(|error| session.reporter.error(error))?;
    for warning in temporary.warning.into_iter().chain(places::runtime_warning(&session.options)) {
        session.reporter.notice(&format!("WARNING: {}", escape::lines(&warning)));
    }
    Ok(())
}
