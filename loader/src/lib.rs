//! spilerun: loads a module that spile built, streams what it prints, and takes it out again.
//!
//! One run: [`options`] -> [`file`](mod@file) (the `.ko` and what it says of itself) -> [`check`] (refusals, before any harm) ->
//! [`load`] -> [`device`] -> [`session`] (one poll loop: [`ring`], [`merge`], [`record`], [`format`](mod@format), [`tell`],
//! [`output`])
//! -> unloaded, whatever happened. Nothing is shared with the compiler but the crate spile-abi.
//!
//! Exit status: 0 when all went well, else as [`error::Exit`] says.

pub mod account;
pub mod accounts;
pub mod check;
pub mod clock;
pub mod command;
pub mod daemon;
pub mod device;
pub mod elf;
pub mod error;
pub mod file;
pub mod format;
pub mod gate;
pub mod histogram;
pub mod input;
pub mod load;
pub mod merge;
pub mod notify;
pub mod options;
pub mod output;
pub mod payload;
pub mod pretty;
pub mod quick;
pub mod record;
pub mod report;
pub mod ring;
pub mod rotate;
pub mod service;
pub mod session;
pub mod setting;
pub mod signals;
pub mod status;
pub mod system;
pub mod tell;
pub mod text;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use spile_abi::device::Gate;

use crate::error::{Error, Exit};
use crate::options::{Options, Task};

/// The whole program. `arguments` begin with the program's name. Catches signals, and leaves them caught.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let result = match arguments.get(1).is_some_and(|word| word == "service") {
        true => service::Service::parse(arguments.into_iter().skip(1)).map(|service| serve(&service)),
        false => Options::parse(arguments).map(|options| perform(&options)),
    };
    match result {
        Ok(Ok(exit)) => exit.code(),
        Ok(Err(error)) => {
            report::say(&format!("ERROR: {error}"));
            error.exit().code()
        }
        Err(told) => {
            // Help and version go to standard output, mistakes to standard error; a closed one is nobody's concern.
            let _ = told.print();
            if told.use_stderr() { Exit::Usage.code() } else { Exit::Success.code() }
        }
    }
}

/// `spilerun service ...`
fn serve(service: &service::Service) -> Result<Exit, Error> {
    match service.perform()? {
        service::Step::Done(exit) => Ok(exit),
        service::Step::Run(arguments) => perform(&service::options(arguments)?),
    }
}

fn perform(options: &Options) -> Result<Exit, Error> {
    match &options.task {
        Task::Remove(name) => {
            check::may_load_modules()?;
            load::remove_leftover(name)?;
            Ok(Exit::Success)
        }
        Task::Run(module) => run(Path::new(module), options),
        Task::Attach(name) => attach(name, options),
        Task::Status(name, form) => tell_status(name, *form),
        Task::Gate { name, mode, expires } => change_gate(name, *mode, *expires),
    }
}

fn run(module: &Path, options: &Options) -> Result<Exit, Error> {
    let mut file = file::File::find(module)?;
    check::belongs_here(&file)?;
    check::may_load_modules()?;
    check::signature_will_do(&file)?;
    let mut settings = setting::parse(&options.settings, &file.description.meta.settings)?;
    settings.extend(options.remote.iter().flat_map(|remote| setting::of_remote(remote, &file.description.meta.settings)));
    let gate = wanted_gate(options, &file)?;
    let waiting = match options.daemon.then(daemon::begin).transpose()? {
        Some(daemon::Fork::Parent(exit)) => return Ok(exit),
        Some(daemon::Fork::Child(waiting)) => Some(waiting),
        None => None,
    };
    if options.rename {
        file.rename(std::process::id())?;
    }
    let signals = signals::Signals::catch()?;
    let sinks = output::Sinks::open(options, cpus())?;
    // Held until the module's device is open: a module that another spilerun has just loaded is not a leftover.
    let lock = load::Lock::take();
    load::remove_leftovers(&lock, options.verbose);
    check::name_is_free(&file.description.meta.name)?;
    let target = command::Target::prepare(options)?;
    let loaded = load::Loaded::load(&file)?;
    let result = device::Device::open(&loaded.name).and_then(|device| {
        drop(lock);
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
fn attach(name: &str, options: &Options) -> Result<Exit, Error> {
    check::may_load_modules()?;
    let waiting = match options.daemon.then(daemon::begin).transpose()? {
        Some(daemon::Fork::Parent(exit)) => return Ok(exit),
        Some(daemon::Fork::Child(waiting)) => Some(waiting),
        None => None,
    };
    let signals = signals::Signals::catch()?;
    let sinks = output::Sinks::open(options, cpus())?;
    let name = name.strip_suffix(".ko").unwrap_or(name);
    let device = load::attach(name)?;
    let description = file::Description::decode(Path::new(name), &device.meta()?)?;
    let subject = session::Subject { name, device: &device, description: &description, settings: &[], gate: None, attached: true };
    // Whatever goes wrong here is no reason to end what runs there.
    let end = session::run(&subject, options, command::Target::None, sinks, &signals, waiting)?;
    drop(device);
    finish(load::Loaded::attached(name), Ok(end))
}

/// What the options say about what the script may write; `None`: nothing.
fn wanted_gate(options: &Options, file: &file::File) -> Result<Option<Gate>, Error> {
    if options.gate.is_none() {
        return Ok(None);
    }
    let wrong = |why: String| Error::Setting { given: "--dry-run, --expires, --rewrites, --only".to_string(), why };
    match file.description.meta.guru {
        true => options.gate.gate().map(Some).map_err(wrong),
        false => Err(wrong("the script writes nothing: it was compiled without -g".to_string())),
    }
}

/// Opens a module's device beside its loader.
fn look(name: &str) -> Result<device::Device, Error> {
    let name = name.strip_suffix(".ko").unwrap_or(name);
    match file::is_module_name(name) && Path::new("/sys/module").join(name).exists() {
        true => device::Device::look(name),
        false => Err(Error::NotLoaded { name: name.to_string() }),
    }
}

fn tell_status(name: &str, form: status::Form) -> Result<Exit, Error> {
    let device = look(name)?;
    let description = file::Description::decode(Path::new(name), &device.meta()?)?;
    let info = device.info()?;
    let counters = (0..info.probes).map(|probe| device.counters(probe)).collect::<Result<Vec<_>, _>>()?;
    let known = status::Known { name, meta: &description.meta, info, gate: device.gate()?, counters: &counters };
    // A closed reader has seen enough.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), known.text(form).as_bytes());
    Ok(Exit::Success)
}

fn change_gate(name: &str, mode: u32, expires: Option<u64>) -> Result<Exit, Error> {
    let device = look(name)?;
    let mut gate = device.gate()?.gate;
    gate.mode = mode;
    gate.expires = expires.unwrap_or(gate.expires);
    // What happens from now on is told anew.
    gate.tell = gate.tell.max(gate::TELL);
    device.set_gate(gate)?;
    Ok(Exit::Success)
}

/// Unloaded first, then told: also when the session went wrong. A panic unloads by Drop.
fn finish(loaded: load::Loaded, result: Result<session::End, Error>) -> Result<Exit, Error> {
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
