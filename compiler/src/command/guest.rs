// SPDX-License-Identifier: GPL-2.0-or-later

//! `--guest`: the script, or a prebuilt module, runs in a disposable guest of its kernel.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use spile_base::progress::Progress;

use crate::cli::options::{Options, Script};
use crate::outcome::Outcome;
use crate::reporter::{Failed, Reporter};
use crate::session::Session;
use crate::target;

/// Whether a file is a program or a library, and no module: e_type, the number behind 16 bytes of an ELF file, is ET_EXEC or ET_DYN.
fn is_program(path: &Path) -> bool {
    let mut start = [0; 18];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start.starts_with(b"\x7fELF") && matches!(start, [.., 2 | 3, 0])
}

/// `--guest FILE.ko`: the module, and its GLOBAL=VALUE.
pub(super) fn prebuilt(options: &Options) -> Option<(PathBuf, Vec<String>)> {
    match options.script.source()? {
        (Script::File(path), settings) if options.run.guest && path.extension().is_some_and(|end| end == "ko") => {
            Some((path, settings))
        }
        _ => None,
    }
}

/// Reports of a prebuilt module whether it loads, is armed and unloads, on the kernel it was built for.
pub(super) fn test_module(session: &mut Session, module: &Path, settings: Vec<String>) -> Result<Outcome, Failed> {
    let file = spilerun::file::File::find(module).map_err(|error| session.reporter.error(error))?;
    let meta = &file.description.meta;
    target::warn_of_other_releases(&session.options.kernel.files(), &session.reporter, &meta.kernel_release);
    let targets: Vec<String> =
        meta.targets.iter().map(|target| target.name.clone()).filter(|name| !name.is_empty()).collect();
    // The loader and the kernel use this name, whatever its file is called.
    let directory = session.scratch()?;
    let named = directory.path().join(format!("{}.ko", meta.name));
    std::fs::write(&named, &file.image)
        .map_err(|error| session.reporter.error(format!("writing {}: {error}", named.display())))?;
    session.directory = Some(directory);
    run(session, &named, &targets, &meta.kernel_release, settings)
}

/// The process that writes the output in the format of `--format`, to standard output or the file of `-o`.
pub(super) fn live(session: &Session, output: Option<&Path>) -> Result<Option<spile_replay::Live>, Failed> {
    let format = session.options.run.format.filter(|format| *format != spile_replay::Format::Text);
    let live = format.map(|format| spile_replay::Live::start(format, output)).transpose();
    live.map_err(|error| session.reporter.error(format!("starting spile replay: {error}")))
}

/// Why the output could not be written.
#[derive(Clone, Default)]
struct Failure(Arc<Mutex<Option<std::io::Error>>>);

impl Failure {
    fn take(&self) -> Option<std::io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Ends the session when the output cannot be written, as the loader does on a host.
struct Watched {
    to: Box<dyn Write + Send>,
    failure: Failure,
}

impl Watched {
    fn check<T>(&self, result: std::io::Result<T>) -> std::io::Result<T> {
        result.map_err(|error| {
            let again = std::io::Error::from(error.kind());
            if error.kind() != std::io::ErrorKind::Interrupted {
                *self.failure.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                // It is passed on to the loader in the guest.
                let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGINT);
            }
            again
        })
    }
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes);
        self.check(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.to.flush();
        self.check(flushed)
    }
}

/// The progress that is shown until the guest starts the script.
#[derive(Clone)]
struct Booting(Arc<Mutex<Option<Progress>>>);

impl Booting {
    fn start(reporter: &Reporter) -> Booting {
        Booting(Arc::new(Mutex::new(Some(reporter.progress("booting a virtual machine")))))
    }

    fn show_in(&self, streams: &mut spile_guest::Streams) {
        let ready = self.clone();
        streams.ready = Box::new(move || ready.end());
    }

    fn end(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Runs a module in a guest. What the loader prints there is printed here; `-o` names a file here.
///
/// `targets`: the modules that it probes. `settings`: GLOBAL=VALUE, for a prebuilt module.
pub(super) fn run(
    session: &mut Session,
    module: &Path,
    targets: &[String],
    release: &str,
    settings: Vec<String>,
) -> Result<Outcome, Failed> {
    let kernel = spile_guest::Kernel::find(release).map_err(|error| session.reporter.error(error))?;
    let loader = std::env::current_exe().map_err(|error| session.reporter.error(error))?;
    let mut streams = spile_guest::Streams::inherit();
    let booting = Booting::start(&session.reporter);
    booting.show_in(&mut streams);
    if session.reporter.shows_details() {
        streams.resumed = Box::new(|| spile_abi::say::say("The virtual machine was resumed, not booted.\n"));
    }
    if std::env::var_os(spile_replay::top::COMMANDS).is_some() {
        streams.commands = Some(Box::new(std::io::stdin()));
    }
    let output = session.options.run.session.output.take();
    let live = live(session, output.as_deref())?;
    let recorded = session.options.run.session.record.take();
    if recorded.as_deref().is_some_and(|path| path == "-") && std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        return Err(session
            .reporter
            .usage("--record -: a recording is not text for a terminal: give a file, or a pipe"));
    }
    if live.is_some() || recorded.is_some() {
        // There it goes to standard output.
        session.options.run.session.record = Some("-".into());
    }
    if let Some(live) = &live {
        streams.stdout = Box::new(live.input().map_err(|error| session.reporter.error(error))?);
    } else if let Some(path) = output.or(recorded).filter(|path| path.as_os_str() != "-") {
        let file = spile_base::read::create(&path);
        let file = file.map_err(|error| session.reporter.error(format!("writing {}: {error}", path.display())))?;
        streams.stdout = Box::new(file);
    }
    let failure = Failure::default();
    let to = std::mem::replace(&mut streams.stdout, Box::new(std::io::sink()));
    streams.stdout = Box::new(Watched { to, failure: failure.clone() });
    // The symbols and unwind tables of programs are in the module.
    let mut objects: Vec<PathBuf> = session.options.kernel.files();
    objects.retain(|path| !is_program(path));
    let in_object = |name: &str| objects.iter().any(|path| spile_guest::module_name(&path.to_string_lossy()) == name);
    let file = spilerun::file::File::find(module).map_err(|error| session.reporter.error(error))?;
    let programs = file.description.meta.programs.iter().map(|program| PathBuf::from(&program.path)).collect();
    let options = session.options.loader_words().into_iter().map(|word| word.to_string_lossy().into_owned());
    let guest = spile_guest::Session {
        kernel,
        module: module.to_path_buf(),
        loader,
        arguments: options.chain(settings).collect(),
        rehearsal: prebuilt(&session.options).is_some(),
        command: session.options.run.session.command.clone(),
        modules: targets.iter().filter(|name| !in_object(name)).cloned().collect(),
        extra_modules: objects.clone(),
        programs,
        saved_states: session.options.build.cache_settings().of_guests(),
    };
    let ended = guest.run(streams);
    // If it did not boot.
    booting.end();
    let ended = ended.map_err(|error| match error {
        spile_guest::Error::NoModule { .. } => {
            let note = "-d FILE gives a module that was built elsewhere to the guest".to_string();
            session.reporter.fail(error, &[note]);
            Failed(spile_guest::TARGET_NOT_LOADED)
        }
        error => session.reporter.error(error),
    })?;
    drop(live);
    match failure.take() {
        // As in any pipeline: the reader has closed the pipe.
        Some(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let text = format!("the output cannot be written: {error}; the script was ended");
            session.reporter.error(text);
            return Err(Failed(spilerun::error::Exit::Output as u8));
        }
        _ => {}
    }
    match ended {
        spile_guest::SessionEnd::Exited(status) => {
            drop(session.take_directory());
            Ok(Outcome::Done(ExitCode::from(status.clamp(0, 255) as u8)))
        }
        spile_guest::SessionEnd::Died { console } => Err(session.reporter.fail("the guest's kernel died", &[console])),
        spile_guest::SessionEnd::Killed { console } => {
            let notes: Vec<String> = Some(console).filter(|console| !console.is_empty()).into_iter().collect();
            Err(session.reporter.fail("the virtual machine was killed, as it did not end after a signal", &notes))
        }
    }
}
