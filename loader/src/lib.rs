// SPDX-License-Identifier: GPL-2.0-or-later

//! spilerun: loads a module that spile built, streams its output, and removes it.
//!
//! One run: [`options`] -> [`module::file`] (the `.ko` and its description) -> [`safety::check`] (refusals, before any harm) ->
//! [`safety::loaded`] -> [`module::device`] -> [`session`] (one poll loop over [`records`] and [`output`]) -> unloaded,
//! whatever happened. Nothing is shared with the compiler but the crate spile-abi.
//!
//! Each module uses only those above it in this list; `tests/layers.rs` checks that:
//!
//! | module | subject |
//! |---|---|
//! | [`host`], [`elf`] | questions to the host; sections of ELF files |
//! | [`error`] | errors and exit statuses |
//! | [`records`] | rings, records and their text |
//! | [`module`] | a module's file, device, gate and settings; in and out of the kernel |
//! | [`report`] | what is reported about a session: status, accounts, budget, metrics |
//! | [`options`] | the command line |
//! | [`output`] | files and streams that output goes to |
//! | [`safety`] | ranks, privileges, limits, signatures, refusals |
//! | [`session`] | one session, from start to end |
//! | [`service`] | services and their configuration |
//! | [`staprun`] | staprun's options |
//!
//! Exit status: 0 when all went well, else as [`error::Exit`] says.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod elf;
pub mod error;
pub mod host;
pub mod module;
pub mod options;
pub mod output;
pub mod records;
pub mod report;
pub mod safety;
pub mod service;
pub mod session;
pub mod staprun;
pub mod userspace;

// Re-exported for the compiler.
pub use module::file;
pub use service::conf;
pub use session::signals;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::prctl::set_no_new_privs;
use spile_abi::device::{ENFORCE, Gate, OBSERVE, USER_STACKS};
use spile_abi::meta::Probe;

use crate::error::{Error, Exit};
use crate::host::stderr::say;
use crate::module::{device, gate, setting};
use crate::options::{Options, Task};
use crate::records::livepatch;
use crate::report::status;
use crate::safety::check;
use crate::safety::landlock::{self, FileAccess};
use crate::safety::loaded::Loaded;
use crate::safety::ownership::Ownership;
use crate::safety::rights::{Rights, Start};
use crate::service::reserved;
use crate::session::starter::Starter;
use crate::session::{daemon, removal, target};

/// The whole program. `arguments` begin with the program's name, which may be staprun's. Catches signals, and leaves them caught.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    signals::heed_interrupts();
    signals::heed_children();
    if let Err(error) = host::limits::keep_to_them() {
        return report(&Error::System { doing: "keeping to the limits of this process", error });
    }
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    // Called before anything of the caller's except the arguments is read.
    let rights = match Rights::find(reserved::may_start) {
        Ok(rights) => rights,
        Err(error) => return report(&error),
    };
    if !staprun::is_called(&arguments) {
        return as_spilerun(arguments, &rights);
    }
    staprun::take_name();
    if arguments.get(1).is_some_and(|word| word == staprun::SESSION) {
        arguments.remove(1);
        staprun::end_with_parent();
        signals::expect_passed_on();
        return as_spilerun(arguments, &rights);
    }
    let status = match staprun::translate(&arguments) {
        staprun::Request::Arguments(arguments) => as_spilerun(arguments, &rights),
        staprun::Request::Version => {
            // Ignore a closed reader.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), staprun::version().as_bytes());
            ExitCode::SUCCESS
        }
        staprun::Request::Invalid(why) => {
            say(&format!("ERROR: staprun: {why}; try staprun -h"));
            ExitCode::FAILURE
        }
    };
    if status == ExitCode::SUCCESS { status } else { ExitCode::FAILURE }
}

/// Runs the action of `options` with the rights of the caller, prints messages, and returns the exit status.
pub fn execute(options: &Options) -> ExitCode {
    match Rights::find(reserved::may_start).and_then(|rights| perform(options, &rights)) {
        Ok(exit) => exit.code(),
        Err(error) => report(&error),
    }
}

fn as_spilerun(arguments: Vec<OsString>, rights: &Rights) -> ExitCode {
    let is_service = arguments.get(1).is_some_and(|word| word == "service");
    let shown: Vec<OsString> = arguments.iter().map(|word| spile_abi::escape::bytes(word.as_bytes()).into()).collect();
    let service = |words: Vec<OsString>| service::Service::parse(words.into_iter().skip(1));
    let result = match is_service {
        true => service(arguments).map(|service| serve(&service, rights)),
        false => Options::parse(arguments).map(|options| perform(&options, rights)),
    };
    // The message quotes the escaped words: a line end in one would begin a line of its own.
    let result = result.map_err(|mistake| match is_service {
        true => service(shown).err().unwrap_or(mistake),
        false => Options::parse(shown).err().unwrap_or(mistake),
    });
    match result {
        Ok(Ok(exit)) => exit.code(),
        Ok(Err(error)) => report(&error),
        Err(mistake) => {
            let text = mistake.render().to_string();
            match spile_abi::escape::lines(&text) == text {
                // Help and version go to standard output, mistakes to standard error; if it is closed, the text is
                // lost.
                true => drop(mistake.print()),
                // The text quotes arguments, so `say` escapes it.
                false => text.lines().for_each(say),
            }
            if mistake.use_stderr() { Exit::Usage.code() } else { Exit::Success.code() }
        }
    }
}

fn report(error: &Error) -> ExitCode {
    say(&format!("ERROR: {error}"));
    error.exit().code()
}

/// `spilerun service ...`
fn serve(service: &service::Service, rights: &Rights) -> Result<Exit, Error> {
    rights.require_root("services")?;
    match service.perform()? {
        service::Step::Done(exit) => Ok(exit),
        service::Step::Run(arguments) => perform(&Options { service: true, ..service::options(arguments)? }, rights),
    }
}

fn perform(options: &Options, rights: &Rights) -> Result<Exit, Error> {
    match &options.task {
        Task::Remove(name) => {
            rights.remove(name)?;
            Ok(Exit::Success)
        }
        Task::Run(module) => run(Path::new(module), options, rights),
        Task::Attach(name) => attach(name, options, rights),
        Task::Status(name, form) => {
            let text = status::ask_loaded(name, &rights.look(name)?, *form)?;
            // Ignore a closed reader.
            let _ = std::io::Write::write_all(&mut std::io::stdout(), spile_abi::escape::lines(&text).as_bytes());
            Ok(Exit::Success)
        }
        Task::Gate { name, mode, expires, harmless_c } => {
            rights.may_change()?;
            change_gate(&rights.look(name)?, name, *mode, *expires, *harmless_c)
        }
        Task::Switch { name, probe, off } => {
            rights.may_change()?;
            switch(&rights.look(name)?, name, probe, *off)
        }
    }
}

/// Switches a probe of a running session: one by its number, or all with this point.
fn switch(device: &device::Device, name: &str, probe: &str, off: bool) -> Result<Exit, Error> {
    let meta = file::decode_probes(Path::new(name), &device.meta(|| false)?)?;
    let number = probe.parse::<usize>().ok();
    let is_meant = |(index, known): &(usize, &Probe)| number == Some(*index) || known.point == probe;
    let none = || Error::NoProbe { name: name.to_string(), probe: probe.to_string() };
    let mut meant = meta.probes.iter().enumerate().filter(is_meant).peekable();
    if meant.peek().is_none() {
        return Err(none());
    }
    meant.try_for_each(|(index, _)| device.switch(index as u32, off)).map_err(|error| match error {
        // begin, end and error probes.
        Error::Device { errno: Errno::EOPNOTSUPP, .. } => none(),
        error => error,
    })?;
    Ok(Exit::Success)
}

/// Starts the process for commands if this one is to be restricted, and restricts this one.
fn starter(options: &Options, rights: &Rights) -> Result<Option<Arc<Starter>>, Error> {
    if !rights.is_split() {
        return Ok(None);
    }
    let starter = Starter::begin()?;
    set_no_new_privs().map_err(|errno| Error::System { doing: "giving up privileges", error: errno.into() })?;
    if options.daemon {
        rights.follow()?;
    }
    Ok(Some(Arc::new(starter)))
}

/// Restricts the user part to the paths of the session's output and those that it reads.
fn restrict(
    options: &Options,
    description: &file::Description,
    device: &device::Device,
    rights: &Rights,
) -> Result<(), Error> {
    if !rights.is_split() {
        return Ok(());
    }
    let user_stacks = device.info()?.flags & USER_STACKS != 0;
    let outputs = [options.output.as_deref(), options.metrics.as_deref(), options.metrics_socket.as_deref()];
    // A `%` in a name stands for the time or a number: allow the last directory without one.
    let fixed = |path: &&Path| !path.as_os_str().as_bytes().contains(&b'%');
    let directory = |path: &Path| match path.ancestors().skip(1).find(fixed) {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let directories: Vec<PathBuf> = outputs.into_iter().flatten().map(directory).collect();
    let mut paths: Vec<(&Path, FileAccess)> =
        directories.iter().map(|path| (path.as_path(), FileAccess::Keep)).collect();
    paths.extend([
        (Path::new("/dev/null"), FileAccess::Write),
        // Names for messages, and live patches that are loaded during the session.
        (Path::new("/etc/passwd"), FileAccess::Read),
        (Path::new("/sys/kernel/livepatch"), FileAccess::Read),
    ]);
    if description.meta.probes.iter().any(|probe| probe.point.starts_with("procfs(")) {
        // The module's own files, some of which do not exist yet.
        paths.push((Path::new("/proc/systemtap"), FileAccess::Write));
    }
    if user_stacks {
        // Programs and libraries, for tables and names: those that the caller may read, not all that root may.
        paths.push((Path::new("/"), FileAccess::Read));
    }
    let failed = |error| Error::System { doing: "restricting what can be opened", error };
    landlock::restrict(paths).map(drop).map_err(failed)
}

/// `-D`: in the process that continues. The error of the other one is its status.
fn background(options: &Options) -> Result<Result<Option<daemon::Waiting>, Exit>, Error> {
    Ok(match options.daemon.then(daemon::begin).transpose()? {
        Some(daemon::Fork::Parent(exit)) => Err(exit),
        Some(daemon::Fork::Child(waiting)) => Ok(Some(waiting)),
        None => Ok(None),
    })
}

fn run(module: &Path, options: &Options, rights: &Rights) -> Result<Exit, Error> {
    let mut file = rights.find_module(module)?;
    check::check_namespace(&file)?;
    livepatch::is_not_patched(&file.description.meta)?;
    if !rights.is_split() {
        check::may_load_modules()?;
    }
    check::check_signature(&file)?;
    let mut settings = setting::parse(&options.settings, &file.description.meta.settings)?;
    settings
        .extend(options.remote.iter().flat_map(|remote| setting::of_remote(remote, &file.description.meta.settings)));
    let gate = wanted_gate(options, &file)?;
    let waiting = match background(options)? {
        Ok(waiting) => waiting,
        Err(exit) => return Ok(exit),
    };
    let stdout = options.keeps_stdout.then(output::take_stdout).transpose()?;
    let starter = starter(options, rights)?;
    let rename = options.rename.then(std::process::id);
    if let Some(number) = rename {
        file.rename(number)?;
    }
    let signals = signals::Signals::catch()?;
    let sinks = output::Sinks::open(options, cpus(), stdout)?;
    let target = target::Target::prepare(options, starter.as_ref())?;
    let start = Start { rename, service: options.service, verbose: options.verbose };
    let name = file.description.meta.name.as_str();
    removal::wait_for_previous(name, rights, &signals);
    let (device, most_bytes) = session::loading::answering(&signals, || rights.load(&file, start))?;
    let loaded = Loaded::new(name, rights);
    // The device is closed when this is done.
    let run = |device: device::Device| {
        let ownership = Ownership { most_bytes, ..Ownership::default() };
        session::set_up(&device, options, &target).map_err(|error| ownership.limited(error))?;
        restrict(options, &file.description, &device, rights)?;
        let subject = session::Subject {
            name,
            device: &device,
            description: &file.description,
            settings: &settings,
            gate,
            attached: false,
            starter: starter.as_ref(),
            root: rights.line(),
        };
        session::run(&subject, options, target, sinks, &signals, waiting)
    };
    let result = run(device);
    finish(loaded, result, options, &signals)
}

/// `-A`: continues a session that nobody reads. The module itself has the description of its records.
fn attach(name: &str, options: &Options, rights: &Rights) -> Result<Exit, Error> {
    let waiting = match background(options)? {
        Ok(waiting) => waiting,
        Err(exit) => return Ok(exit),
    };
    let name = name.strip_suffix(".ko").unwrap_or(name);
    let stdout = options.keeps_stdout.then(output::take_stdout).transpose()?;
    let starter = starter(options, rights)?;
    let signals = signals::Signals::catch()?;
    let sinks = output::Sinks::open(options, cpus(), stdout)?;
    let device = rights.attach(name)?;
    let run = |device: device::Device| {
        let description = file::Description::decode(Path::new(name), &device.meta(|| signals.is_stopping())?)?;
        restrict(options, &description, &device, rights)?;
        let subject = session::Subject {
            name,
            device: &device,
            description: &description,
            settings: &[],
            gate: None,
            attached: true,
            starter: starter.as_ref(),
            root: rights.line(),
        };
        session::run(&subject, options, target::Target::None, sinks, &signals, waiting)
    };
    match run(device) {
        Ok(end) => finish(Loaded::new(name, rights), Ok(end), options, &signals),
        // An error here does not end the running session.
        Err(error) => {
            rights.leave();
            Err(error)
        }
    }
}

/// The options for the script's writes; `None`: none are given.
fn wanted_gate(options: &Options, file: &file::File) -> Result<Option<Gate>, Error> {
    if options.gate.is_none() {
        return Ok(None);
    }
    let meta = &file.description.meta;
    check::gate_fits(&options.gate, meta)?;
    let gate = options.gate.gate().map_err(|why| Error::Setting { given: check::GATE_OPTIONS.to_string(), why })?;
    if !meta.ungated.is_empty() && !options.gate.harmless_c {
        say(&format!(
            "WARNING: writes by embedded C of {} are not intercepted: {}",
            meta.name,
            meta.ungated.join(", ")
        ));
    }
    Ok(Some(gate))
}

fn change_gate(
    device: &device::Device,
    name: &str,
    mode: u32,
    expires: Option<u64>,
    harmless_c: bool,
) -> Result<Exit, Error> {
    let meta = file::decode_meta(Path::new(name), &device.meta(|| false)?)?;
    if mode == OBSERVE && !harmless_c {
        check::check_observes(&meta)?;
    }
    let mut gate = device.gate()?.gate;
    gate.mode = mode;
    gate.expires = expires.unwrap_or(gate.expires);
    // From now on the first writes are reported again.
    gate.tell = gate.tell.max(gate::REPORTED_WRITES);
    let expired = || Error::Expired { name: name.to_string() };
    if mode == ENFORCE && gate::has_expired(&gate) {
        return Err(expired());
    }
    device.set_gate(gate).map_err(|error| match error {
        Error::Device { errno: Errno::ETIME, .. } => expired(),
        error => error,
    })?;
    let now = device.gate()?.gate;
    match now.mode == mode && (mode == OBSERVE || !gate::has_expired(&now)) {
        true => Ok(Exit::Success),
        false => Err(expired()),
    }
}

/// Unloads first, then reports, also when the session failed. A panic unloads by Drop.
fn finish(
    loaded: Loaded<'_>,
    result: Result<session::End, Error>,
    options: &Options,
    signals: &signals::Signals,
) -> Result<Exit, Error> {
    if let Ok(session::End { exit, left: true, .. }) = result {
        loaded.leave();
        return Ok(exit);
    }
    let interrupted = result.as_ref().is_ok_and(|end| end.interrupted);
    // systemd ends all processes of a service together with the first.
    let removed = match options.service {
        true => loaded.remove(),
        false => removal::remove(loaded, interrupted, signals),
    };
    let end = result?;
    removed?;
    Ok(end.exit)
}

/// CPUs that can have a ring (nr_cpu_ids is at most this on machines that are not changed while they run).
fn cpus() -> u32 {
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok();
    let last = possible.as_deref().and_then(|list| list.trim().rsplit([',', '-']).next()?.parse::<u32>().ok());
    last.map_or(1, |last| last.saturating_add(1))
}
