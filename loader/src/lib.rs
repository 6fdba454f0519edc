// SPDX-License-Identifier: GPL-2.0-or-later

//! spilerun: loads a module that spile built, streams what it prints, and takes it out again.
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

// What the compiler uses of it.
pub use module::file;
pub use service::conf;
pub use session::signals;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use nix::errno::Errno;
use spile_abi::device::{ENFORCE, Gate, OBSERVE};

use crate::error::{Error, Exit};
use crate::host::kernel::is_module_name;
use crate::host::stderr::say;
use crate::module::{device, gate, load, setting};
use crate::options::{Options, Task};
use crate::records::livepatch;
use crate::report::status;
use crate::safety::check;
use crate::safety::loaded::{Loaded, Stated};
use crate::safety::privilege::{Caller, Rank, Remover};
use crate::service::reserved;
use crate::session::{command, daemon};

/// The whole program. `arguments` begin with the program's name, which may be staprun's. Catches signals, and leaves them caught.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if !staprun::is_called(&arguments) {
        return as_spilerun(arguments);
    }
    staprun::take_name();
    if arguments.get(1).is_some_and(|word| word == staprun::SESSION) {
        arguments.remove(1);
        staprun::end_with_parent();
        signals::expect_passed_on();
        return as_spilerun(arguments);
    }
    let status = match staprun::translate(&arguments) {
        staprun::Asked::Arguments(arguments) => as_spilerun(arguments),
        staprun::Asked::Version => {
            // A closed reader has seen enough.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), staprun::version().as_bytes());
            ExitCode::SUCCESS
        }
        staprun::Asked::Wrong(why) => {
            say(&format!("ERROR: staprun: {why}; try staprun -h"));
            ExitCode::FAILURE
        }
    };
    if status == ExitCode::SUCCESS { status } else { ExitCode::FAILURE }
}

fn as_spilerun(arguments: Vec<OsString>) -> ExitCode {
    let caller = match Caller::find() {
        Ok(caller) => caller,
        Err(error) => return told(&error),
    };
    let is_service = arguments.get(1).is_some_and(|word| word == "service");
    let shown: Vec<OsString> = arguments.iter().map(|word| spile_abi::escape::bytes(word.as_bytes()).into()).collect();
    let service = |words: Vec<OsString>| service::Service::parse(words.into_iter().skip(1));
    let result = match is_service {
        true => service(arguments).map(|service| serve(&service, caller.as_ref())),
        false => Options::parse(arguments).map(|options| perform(&options, caller.as_ref())),
    };
    // A mistake is told of the words as they are shown: a line end in one would begin a line of ours.
    let result = result.map_err(|told| match is_service {
        true => service(shown).err().unwrap_or(told),
        false => Options::parse(shown).err().unwrap_or(told),
    });
    match result {
        Ok(Ok(exit)) => exit.code(),
        Ok(Err(error)) => told(&error),
        Err(told) => {
            let text = told.render().to_string();
            match spile_abi::escape::lines(&text) == text {
                // Help and version go to standard output, mistakes to standard error; a closed one is nobody's concern.
                true => drop(told.print()),
                // It names words that were given.
                false => text.lines().for_each(say),
            }
            if told.use_stderr() { Exit::Usage.code() } else { Exit::Success.code() }
        }
    }
}

fn told(error: &Error) -> ExitCode {
    say(&format!("ERROR: {error}"));
    error.exit().code()
}

/// `spilerun service ...`
fn serve(service: &service::Service, caller: Option<&Caller>) -> Result<Exit, Error> {
    if caller.is_some() {
        return Err(Error::NotAllowed { what: "services", group: "root" });
    }
    match service.perform()? {
        service::Step::Done(exit) => Ok(exit),
        service::Step::Run(arguments) => perform(&Options { service: true, ..service::options(arguments)? }, None),
    }
}

/// What takes more rights than the caller may have.
fn privileged<T>(caller: Option<&Caller>, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    match caller {
        Some(caller) => caller.as_root(run),
        None => run(),
    }
}

fn require(caller: Option<&Caller>, rank: Rank, what: &'static str) -> Result<(), Error> {
    caller.map_or(Ok(()), |caller| caller.require(rank, what))
}

fn perform(options: &Options, caller: Option<&Caller>) -> Result<Exit, Error> {
    match &options.task {
        Task::Remove(name) => {
            let least = if name == "*" { Rank::Sys } else { Rank::Usr };
            require(caller, least, "ending sessions")?;
            let own = caller.filter(|caller| caller.rank < Rank::Sys).map(Caller::uid);
            if own.is_some() {
                require_own(caller, name)?;
            }
            privileged(caller, || {
                check::may_load_modules()?;
                load::remove_leftover(name, own)
            })?;
            Ok(Exit::Success)
        }
        Task::Run(module) => run(Path::new(module), options, caller),
        Task::Attach(name) => attach(name, options, caller),
        Task::Status(name, form) => {
            require(caller, Rank::Usr, "looking at sessions")?;
            let text = privileged(caller, || status_text(name, *form))?;
            // A closed reader has seen enough.
            let _ = std::io::Write::write_all(&mut std::io::stdout(), spile_abi::escape::lines(&text).as_bytes());
            Ok(Exit::Success)
        }
        Task::Gate { name, mode, expires, harmless_c } => {
            require(caller, Rank::Sys, "changing other sessions")?;
            privileged(caller, || change_gate(name, *mode, *expires, *harmless_c))
        }
    }
}

/// Refuses what only root and the owner of that session may. Without a caller: it is root, or the kernel will say.
fn require_own(caller: Option<&Caller>, name: &str) -> Result<(), Error> {
    let Some(caller) = caller else { return Ok(()) };
    let owner = caller.as_root(|| look(name)?.owner())?;
    match owner.uid == caller.uid() {
        true => Ok(()),
        false => Err(Error::OtherOwner { name: name.to_string(), uid: owner.uid }),
    }
}

/// The module's file: for members of spileusr and spilesys an approved one.
fn find(module: &Path, caller: Option<&Caller>) -> Result<file::File, Error> {
    match caller {
        Some(caller) if caller.rank < Rank::Dev => {
            caller.require(Rank::Usr, "running a module")?;
            match caller.read_approved(module) {
                Ok((path, image)) => file::File::of(path, image),
                // Read with the caller's own rights.
                Err(Error::NotApproved { .. }) if caller.rank == Rank::Sys => {
                    let file = file::File::find(module)?;
                    let enforced = caller.as_root(|| Ok(check::enforcement()))?;
                    check::is_vouched_for(&file, enforced, || caller.trusted_keys())?;
                    Ok(file)
                }
                Err(error) => Err(error),
            }
        }
        _ => privileged(caller, || file::File::find(module)),
    }
}

/// `-D`: in the process that goes on. The error of the other one is its status.
fn background(options: &Options) -> Result<Result<Option<daemon::Waiting>, Exit>, Error> {
    Ok(match options.daemon.then(daemon::begin).transpose()? {
        Some(daemon::Fork::Parent(exit)) => Err(exit),
        Some(daemon::Fork::Child(waiting)) => Ok(Some(waiting)),
        None => Ok(None),
    })
}

fn run(module: &Path, options: &Options, caller: Option<&Caller>) -> Result<Exit, Error> {
    let mut file = find(module, caller)?;
    caller.map_or(Ok(()), |caller| reserved::may_start(caller, &file))?;
    privileged(caller, || {
        check::belongs_here(&file)?;
        livepatch::is_not_patched(&file.description.meta)?;
        check::may_load_modules()?;
        check::signature_will_do(&file)
    })?;
    let mut settings = setting::parse(&options.settings, &file.description.meta.settings)?;
    settings
        .extend(options.remote.iter().flat_map(|remote| setting::of_remote(remote, &file.description.meta.settings)));
    let gate = wanted_gate(options, &file)?;
    let waiting = match background(options)? {
        Ok(waiting) => waiting,
        Err(exit) => return Ok(exit),
    };
    if options.rename {
        file.rename(std::process::id())?;
        caller.map_or(Ok(()), |caller| reserved::may_use(caller, &file.description.meta.name))?;
    }
    let remover = caller.map(|caller| Remover::begin(caller, &file.description.meta.name)).transpose()?;
    let signals = signals::Signals::catch()?;
    let sinks = output::Sinks::open(options, cpus())?;
    // Held until the module's device is open: a module that another spilerun has just loaded is not a leftover.
    let lock = privileged(caller, || Ok(load::Lock::take()))?;
    privileged(caller, || {
        load::remove_leftovers(&lock, options.verbose);
        load::name_is_free(&file.description.meta.name)
    })?;
    let target = command::Target::prepare(options)?;
    let stated = match caller {
        Some(caller) => caller.stated(&lock)?,
        None => Stated { service: options.service, ..Stated::default() },
    };
    let loaded = privileged(caller, || Loaded::load(&file, &stated, remover)).map_err(|error| stated.limited(error))?;
    let opened = privileged(caller, || device::Device::open(&loaded.name));
    let result = opened.and_then(|device| {
        if caller.is_some_and(|caller| device.owner().is_ok_and(|owner| owner.uid != caller.uid())) {
            let what = "it does not say whose it is".to_string();
            return Err(Error::Strange { name: loaded.name.clone(), what });
        }
        session::set_up(&device, options, &target).map_err(|error| stated.limited(error))?;
        drop(lock);
        caller.map_or(Ok(()), Caller::drop)?;
        let subject = session::Subject {
            name: &loaded.name,
            device: &device,
            description: &file.description,
            settings: &settings,
            gate,
            attached: false,
        };
        session::run(&subject, options, target, sinks, &signals, waiting)
    });
    finish(loaded, result)
}

/// `-A`: goes on with a session that nobody reads. What its records mean the module says itself.
fn attach(name: &str, options: &Options, caller: Option<&Caller>) -> Result<Exit, Error> {
    require(caller, Rank::Usr, "attaching to sessions")?;
    privileged(caller, check::may_load_modules)?;
    // Before anything is opened for it; the session may still be exchanged for another one's, which the kernel then refuses.
    require_own(caller, name)?;
    let waiting = match background(options)? {
        Ok(waiting) => waiting,
        Err(exit) => return Ok(exit),
    };
    let name = name.strip_suffix(".ko").unwrap_or(name);
    let remover = caller.map(|caller| Remover::begin(caller, name)).transpose()?;
    let signals = signals::Signals::catch()?;
    let sinks = output::Sinks::open(options, cpus())?;
    let device = privileged(caller, || load::attach(name))?;
    remover.as_ref().map_or(Ok(()), Remover::loading)?;
    let description = file::Description::decode(Path::new(name), &device.meta()?)?;
    caller.map_or(Ok(()), Caller::drop)?;
    let subject = session::Subject {
        name,
        device: &device,
        description: &description,
        settings: &[],
        gate: None,
        attached: true,
    };
    // Whatever goes wrong here is no reason to end what runs there.
    let end = session::run(&subject, options, command::Target::None, sinks, &signals, waiting)?;
    drop(device);
    finish(Loaded::attached(name, remover), Ok(end))
}

/// What the options say about what the script may write; `None`: nothing.
fn wanted_gate(options: &Options, file: &file::File) -> Result<Option<Gate>, Error> {
    if options.gate.is_none() {
        return Ok(None);
    }
    let meta = &file.description.meta;
    check::gate_fits(&options.gate, meta)?;
    let gate = options.gate.gate().map_err(|why| Error::Setting { given: check::GATE_OPTIONS.to_string(), why })?;
    if !meta.ungated.is_empty() && !options.gate.harmless_c {
        say(&format!(
            "WARNING: what {} writes by C of its own is not held back: {}",
            meta.name,
            meta.ungated.join(", ")
        ));
    }
    Ok(Some(gate))
}

/// Opens a module's device beside its loader.
fn look(name: &str) -> Result<device::Device, Error> {
    let name = name.strip_suffix(".ko").unwrap_or(name);
    match is_module_name(name) && Path::new("/sys/module").join(name).exists() {
        true => device::Device::look(name).map_err(|error| match error {
            // It is somebody else's.
            Error::Node { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
                Error::NotLoaded { name: name.to_string() }
            }
            error => error,
        }),
        false => Err(Error::NotLoaded { name: name.to_string() }),
    }
}

fn status_text(name: &str, form: status::Form) -> Result<String, Error> {
    let device = look(name)?;
    let description = file::Description::decode(Path::new(name), &device.meta()?)?;
    status::ask(name, &description.meta, &device, form)
}

fn change_gate(name: &str, mode: u32, expires: Option<u64>, harmless_c: bool) -> Result<Exit, Error> {
    let device = look(name)?;
    let description = file::Description::decode(Path::new(name), &device.meta()?)?;
    if mode == OBSERVE && !harmless_c {
        check::can_only_observe(&description.meta)?;
    }
    let mut gate = device.gate()?.gate;
    gate.mode = mode;
    gate.expires = expires.unwrap_or(gate.expires);
    // What happens from now on is told anew.
    gate.tell = gate.tell.max(gate::TELL);
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

/// Unloaded first, then told: also when the session went wrong. A panic unloads by Drop.
fn finish(loaded: Loaded, result: Result<session::End, Error>) -> Result<Exit, Error> {
    if let Ok(session::End { exit, left: true }) = result {
        loaded.leave();
        return Ok(exit);
    }
    let removed = loaded.remove();
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
