// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 1: the user's scripts, and the library scripts that they need.

use std::path::Path;

use spile_abi::escape;
use spile_base::read;
use spile_core::elaborate;
use spile_core::library::{self, Library};
use spile_core::syscalls::Style;
use spile_debuginfo::target::Kernel;
use spile_source::{FileId, Origin};
use spile_syntax::{self as syntax, Configuration, Environment, ast};

use crate::cli::options::{Options, Script};
use crate::cli::{globals, places};
use crate::reporter::{Failed, Reporter};
use crate::session::Session;

/// The result of pass 1.
pub struct Parsed {
    /// The user's scripts first, then the library scripts that they need.
    pub scripts: Vec<ast::Script>,
    /// How many scripts the library has.
    pub library: usize,
}

/// The meaning of preprocessor conditionals and `$1` for `release`; `arguments`: the script's.
pub fn environment(options: &Options, release: &str, kernel: Option<&Kernel>, arguments: Vec<String>) -> Environment {
    Environment {
        kernel_release: kernel.map_or(release, Kernel::release).to_string(),
        arch: std::env::consts::ARCH.to_string(),
        config: kernel.map_or_else(Configuration::default, |kernel| Configuration::read_by(kernel.config_reader())),
        guru: options.script.guru,
        compatible: options.script.compatible.clone().unwrap_or_else(|| syntax::LANGUAGE_VERSION.into()),
        arguments,
        privilege: options.build.privilege().name().into(),
        runtime: "kernel".into(),
    }
}

/// Parses `script` and what `-E` adds to it, and selects library scripts.
pub fn parse(session: &mut Session, script: &Script, environment: &Environment) -> Result<Parsed, Failed> {
    let mut files = vec![read(session, script)?];
    for text in session.options.script.more.clone() {
        files.push(session.sources.add("<input>", text.into_bytes(), Origin::User));
    }
    let library = open_library(session, environment)?;
    let mut problems = Vec::new();
    let mut macros = library::LibraryMacros::default();
    let mut scripts = Vec::new();
    for file in files {
        let text = session.sources.file(file).bytes.clone();
        let macros = macros.for_text(&library, &text, &mut session.sources, environment, &mut problems);
        let macros = macros.map_err(|error| unreadable(session, &error))?;
        let (script, wrong) = syntax::parse(&mut session.sources, file, environment, macros);
        problems.extend(wrong);
        problems.extend(elaborate::check_text(&script, environment.guru));
        scripts.push(script);
    }
    let points = session.options.ask.listing().map_or_else(Vec::new, |listing| {
        // Errors in it are reported when it is listed.
        let file = session.sources.add("<input>", listing.into_bytes(), Origin::User);
        syntax::parse_probe_points(&mut session.sources, file).0
    });
    let request =
        library::LibraryRequest { scripts: &scripts, points: &points, all: session.options.ask.dumps_library() };
    let selected = library.select(&mut session.sources, environment, macros, request, &mut problems);
    scripts.extend(selected.map_err(|error| unreadable(session, &error))?);
    // A library script can read them for the user's: argv.
    problems.extend(syntax::unused_arguments(&scripts, environment));
    problems.extend(globals::assign(&mut session.sources, &mut scripts, &session.options.script.globals));
    session.reporter.diagnose(&session.sources, "Pass 1: parse", &problems)?;
    let count = library.count();
    session.offered = library.into_offered().into();
    Ok(Parsed { scripts, library: count })
}

/// Parses one script only for its errors, and returns its file.
pub fn check_syntax(session: &mut Session, script: &Script, environment: &Environment) -> Result<FileId, Failed> {
    let file = read(session, script)?;
    let library = open_library(session, environment)?;
    let mut problems = Vec::new();
    let macros = library
        .macros(&mut session.sources, environment, &mut problems)
        .map_err(|error| unreadable(session, &error))?;
    let (_, wrong) = syntax::parse(&mut session.sources, file, environment, &macros);
    problems.extend(wrong);
    session.reporter.diagnose(&session.sources, "Pass 1: parse", &problems)?;
    Ok(file)
}

/// Parses the probe points of an option.
pub fn probe_points(session: &mut Session, text: &str) -> Result<Vec<ast::ProbePoint>, Failed> {
    let file = session.sources.add("<input>", text.as_bytes().to_vec(), Origin::User);
    let (points, problems) = syntax::parse_probe_points(&mut session.sources, file);
    session.reporter.diagnose(&session.sources, "Pass 1: parse", &problems)?;
    Ok(points)
}

/// Reads the script's text.
pub fn read(session: &mut Session, script: &Script) -> Result<FileId, Failed> {
    let (name, bytes) = match script {
        Script::Text(text) => ("<input>".to_string(), text.clone().into_bytes()),
        Script::Stdin => {
            let bytes = read::read_bounded(std::io::stdin().lock(), read::MAX_TEXT)
                .map_err(|error| session.reporter.error(format!("reading the script from standard input: {error}")))?;
            ("<input>".to_string(), bytes)
        }
        Script::File(path) => {
            let reporter = &session.reporter;
            let note = format!("NOTE: {} is a pipe that nobody has opened for writing: waiting", path.display());
            let waits = || reporter.notice(&note);
            let bytes = read::bounded(path, read::MAX_TEXT, waits)
                .map_err(|error| session.reporter.error(format!("reading the script {}: {error}", path.display())))?;
            (path.display().to_string(), bytes)
        }
    };
    Ok(session.sources.add(name, bytes, Origin::User))
}

fn open_library(session: &Session, environment: &Environment) -> Result<Library, Failed> {
    let options = &session.options;
    let places = library::Places {
        instead: places::tapset(options),
        further: options.script.library.iter().filter(|path| is_there(path, &session.reporter)).cloned().collect(),
        release: environment.kernel_release.clone(),
        arch: environment.arch.clone(),
        syscall_style: if options.script.syscall_style == "strace" { Style::Strace } else { Style::SystemTap },
    };
    Library::open(&places, &session.cache()).map_err(|error| unreadable(session, &error))
}

/// As stap does, a directory of `-I` that does not exist is left out.
fn is_there(directory: &Path, reporter: &Reporter) -> bool {
    let is_there = directory.try_exists().unwrap_or(true);
    if !is_there {
        let name = directory.display().to_string();
        reporter.notice(&format!("WARNING: -I {}: there is no such directory", escape::line(&name)));
    }
    is_there
}

fn unreadable(session: &Session, error: &library::ReadError) -> Failed {
    session.reporter.error(format!("reading library scripts in {}: {}", error.path.display(), error.error))
}
