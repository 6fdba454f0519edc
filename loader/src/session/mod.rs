// SPDX-License-Identifier: GPL-2.0-or-later

//! A session: from the module's device to the last line of its output. One loop, one place to wait, one exit.
//!
//! The loop is a separate thread: the calls that may take long, SPILE_START, SPILE_QUIET and SPILE_STOP, are made by
//! the first thread, and begin and end probes may print more than a ring holds, so the loop reads meanwhile. Everything
//! that ends a session only sets [`Ending::stop`].

pub mod arming;
pub mod background;
pub mod calls;
pub mod checks;
pub mod command;
pub mod daemon;
pub mod dispatch;
pub mod ending;
pub mod events;
pub mod expiry;
pub mod loading;
pub mod main_loop;
pub mod phase;
pub mod reading;
pub mod removal;
pub mod replaced;
pub mod signals;
pub mod starter;
pub mod summary;
pub mod system;
pub mod target;
pub mod watch;

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

use nix::errno::Errno;
use nix::libc;
use spile_abi::device::{Gate, SETUP_TASKS, SETUP_TIMED, Setup, State, USER_STACKS, ZONE_BYTES};

use crate::error::{Error, Exit};
use crate::host::stderr::say;
use crate::module::device::Device;
use crate::module::file::Description;
use crate::module::setting::{self, Value};
use crate::options::Options;
use crate::output::Sinks;
use crate::records::record::Reader;
use crate::records::recording::names::{Kept, KeptKernel, KeptNames};
use crate::records::recording::write::Recorder;
use crate::records::symbol::Kernel;
use crate::records::user::{Names, Users};
use crate::report::budget;
use crate::report::exporter::Exporter;
use crate::report::status;
use crate::session::calls::SignalOnDrop;
use crate::session::checks::Checks;
use crate::session::daemon::Waiting;
use crate::session::dispatch::Dispatcher;
use crate::session::ending::Ending;
use crate::session::events::Events;
use crate::session::main_loop::Session;
use crate::session::phase::Phase;
use crate::session::reading::Reading;
use crate::session::signals::{BlockedSignals, Signals};
use crate::session::starter::Starter;
use crate::session::system::Commands;
use crate::session::target::Target;
use crate::userspace::files::Files;
use crate::userspace::programs::Programs;
use crate::userspace::tables::{self, KnownTarget, LoadedTables};

/// The module of the session.
pub struct Subject<'s> {
    /// Name of the module.
    pub name: &'s str,
    /// Open for the whole session.
    pub device: &'s Device,
    /// The description of the module's records.
    pub description: &'s Description,
    /// Values for globals; none for a session that is already running.
    pub settings: &'s [(u32, Value)],
    /// Restricts the script's writes; `None`: no restriction.
    pub gate: Option<Gate>,
    /// The session is already running, detached.
    pub attached: bool,
    /// Starts commands, if another process does that.
    pub starter: Option<&'s Arc<Starter>>,
    /// Reports POLLHUP when the privileged process has exited; the session then ends.
    pub root: Option<BorrowedFd<'s>>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The exit status.
    pub exit: Exit,
    /// The session continues without this process.
    pub left: bool,
    /// Signals ended it.
    pub interrupted: bool,
}

/// Creates the rings of a module that has just been loaded.
pub fn set_up(device: &Device, options: &Options, target: &Target) -> Result<(), Error> {
    let ring_bytes = options.ring_bytes.unwrap_or(default_ring_bytes(device.info()?.cpus));
    let timed = if options.stats.is_some() || options.record { SETUP_TIMED } else { 0 };
    let flags = timed | if options.record { SETUP_TASKS } else { 0 };
    let (west, zone) = time_zone();
    device.set_up(Setup { ring_bytes, target: target.pid(), flags, west, zone })
}

/// The time zone of this process, now: seconds west of Greenwich, and the beginning of its name.
fn time_zone() -> (i32, [u8; ZONE_BYTES]) {
    const DAY: i64 = 24 * 60 * 60;
    // SAFETY: time(2) accepts a null pointer.
    let now = unsafe { libc::time(std::ptr::null_mut()) };
    // SAFETY: an all-zero `tm` is valid.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both arguments live over the call.
    let known = !unsafe { libc::localtime_r(&now, &mut parts) }.is_null() && !parts.tm_zone.is_null();
    // SAFETY: a name of the C library's, which nothing changes meanwhile.
    let name = if known { unsafe { CStr::from_ptr(parts.tm_zone) }.to_bytes() } else { b"UTC" };
    let mut zone = [0; ZONE_BYTES];
    for (to, from) in zone.iter_mut().zip(name.iter().take(ZONE_BYTES - 1)) {
        *to = *from;
    }
    let west = if known { -parts.tm_gmtoff } else { 0 };
    (west.clamp(-DAY, DAY) as i32, zone)
}

/// Runs the session of a loaded module, after [`set_up`], until it ends or is left. Once the device is closed, the
/// module can be removed.
pub fn run(
    subject: &Subject<'_>,
    options: &Options,
    target: Target,
    mut sinks: Sinks,
    signals: &Signals,
    waiting: Option<Waiting>,
) -> Result<End, Error> {
    let Subject { name, device, description, .. } = *subject;
    let info = device.info()?;
    let sites = info.probes as usize;
    if sites != description.meta.probes.len() {
        let what = format!("{sites} probes, its description has {}", description.meta.probes.len());
        return Err(Error::Strange { name: name.to_string(), what });
    }
    match configure(subject, options) {
        Err(Error::Device { errno: Errno::EINTR, .. }) if signals.is_stopping() => {
            say("NOTICE: interrupted before the script ran");
            return Ok(End { exit: Exit::Success, left: false, interrupted: true });
        }
        configured => configured?,
    }
    let info = device.info()?;
    let files = Files::new(device);
    let mut made = LoadedTables::default();
    let has_user_stacks = info.flags & USER_STACKS != 0;
    if has_user_stacks && !subject.attached {
        tables::prepare(device, ahead(options), &mut made, &|| signals.is_stopping());
    }
    let names = has_user_stacks.then(|| Box::new(Programs::new(&files)) as Box<dyn Names + '_>);
    let kept = Kept::default();
    let kernel = KeptKernel::new(device, &kept);
    let (kernel, names): (&dyn Kernel, _) = match options.record {
        true => (&kernel, names.map(|names| Box::new(KeptNames::new(names, &kept)) as Box<dyn Names + '_>)),
        false => (device, names),
    };
    let reader = Reader::new(
        &description.meta,
        &description.formats,
        Some(kernel),
        Users::new(names).until(signals::is_stopping),
    );
    let recorder = options.record.then(|| Recorder::new(&kept, &about(subject), &description.meta.encode()));
    let mut reading = Reading::new(device, &info, reader, options, recorder)?;
    // After the settings: its flags say whether there were any.
    let owner = device.owner()?;
    let is_ours = !subject.attached || owner.uid == nix::unistd::geteuid().as_raw();
    if subject.attached {
        reading.recover(&mut sinks);
    }
    let commands = Commands::of(&owner, is_ours, subject.starter.cloned());
    let returned = calls::event()?;
    let (calls, caller) = calls::pair(&returned);
    // A session that ended while detached.
    let has_ended = subject.attached && State::from_number(info.state) != Some(State::Running);
    let mut session = Session {
        subject,
        options,
        phase: Phase::starting(waiting),
        calls,
        events: Events { signals, root: subject.root },
        reading,
        output: Dispatcher::new(sinks, commands, options.verbose, options.no_warnings),
        ending: Ending::new(has_ended, options.detach),
        target,
        checks: Checks::new(subject, options),
        input: None,
    };
    let mut exporter = options.metrics_socket.as_deref().map(Exporter::open).transpose()?;
    let over = calls::event()?;
    // The calls are made by this, the process's first thread: begin and end probes run in it, and expect `current` to
    // be in the kernel's list of processes, which other threads are not.
    std::thread::scope(|scope| {
        let mut begun = Ok(());
        if let Some(exporter) = &mut exporter {
            let text = || status::ask(name, &description.meta, device, status::Form::Prometheus).unwrap_or_default();
            let over = over.as_fd();
            begun = thread(scope, move || exporter.serve(over, text)).map(drop);
        }
        if has_user_stacks && begun.is_ok() {
            let (files, over) = (&files, over.as_fd());
            begun = thread(scope, move || tables::serve(files, &mut made, over)).map(drop);
        }
        let reading = match begun.and_then(|()| thread(scope, move || session.run(&info))) {
            Ok(reading) => reading,
            Err(error) => {
                drop(SignalOnDrop(&over));
                return Err(Error::System { doing: "starting a thread", error });
            }
        };
        // From here on signals must wake the reading thread, even while a call arms thousands of probes.
        let blocked = BlockedSignals::new();
        caller.serve(device);
        drop(blocked);
        let end = reading.join();
        drop(SignalOnDrop(&over));
        end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What a recording says about its session.
fn about(subject: &Subject<'_>) -> [(&'static str, String); 5] {
    let clock = |id| {
        let time = nix::time::clock_gettime(id).unwrap_or(nix::sys::time::TimeSpec::new(0, 0));
        i128::from(time.tv_sec()) * 1_000_000_000 + i128::from(time.tv_nsec())
    };
    let (monotonic, real) = (clock(nix::time::ClockId::CLOCK_MONOTONIC), clock(nix::time::ClockId::CLOCK_REALTIME));
    let utsname = nix::sys::utsname::uname().ok();
    let host = |part: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
        utsname.as_ref().map(|name| part(name).to_string_lossy().into_owned()).unwrap_or_default()
    };
    [
        // Added to the time of a record, nanoseconds since 1970.
        ("realtime", (real - monotonic).to_string()),
        ("host", host(nix::sys::utsname::UtsName::nodename)),
        ("kernel", host(nix::sys::utsname::UtsName::version)),
        ("module", subject.name.to_string()),
        ("loader", env!("CARGO_PKG_VERSION").to_string()),
    ]
}

/// Passes the settings of the command line to the module: values of globals, the budget, the gate, and whether it
/// continues without a loader.
fn configure(subject: &Subject<'_>, options: &Options) -> Result<(), Error> {
    let device = subject.device;
    if !subject.attached {
        subject
            .settings
            .iter()
            .flat_map(|(index, value)| setting::pieces(*index, value))
            .try_for_each(|piece| device.set(piece))?;
        if let Some(wanted) = &options.budget {
            budget::keep(wanted, device, &subject.description.meta.probes)?;
        }
    }
    if let Some(gate) = subject.gate {
        device.set_gate(gate)?;
    }
    if options.keep || options.overwrite {
        device.keep(options.keep, options.overwrite)?;
    }
    Ok(())
}

/// Starts a thread. An error, not a panic: the caller's limits for processes or memory do not allow it.
fn thread<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    run: impl FnOnce() -> T + Send + 's,
) -> std::io::Result<ScopedJoinHandle<'s, T>> {
    std::thread::Builder::new().spawn_scoped(scope, run)
}

/// The process whose stacks will be taken, if known.
fn ahead(options: &Options) -> KnownTarget<'_> {
    match (options.command.as_deref(), options.pid) {
        (Some(command), _) => KnownTarget::Command(command),
        (None, Some(pid)) => KnownTarget::Process(pid.unsigned_abs()),
        (None, None) => KnownTarget::Nothing,
    }
}

/// 4 MB for each CPU, so that a single handler can print a long report; less, down to 1 MB, with many CPUs.
fn default_ring_bytes(cpus: u32) -> u32 {
    const ALL: u32 = 64 << 20;
    (ALL / cpus.max(1)).clamp(1 << 20, 4 << 20)
}
