// SPDX-License-Identifier: GPL-2.0-or-later

//! Loads and removes modules, including leftovers of killed loaders.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::kmod::{DeleteModuleFlags, ModuleInitFlags, delete_module, finit_module, init_module};
use nix::sys::signal::Signal;
use spile_abi::device::{DEVICE_PREFIX, KEPT, OPENED, Owner, SERVICE, State};

use crate::error::{Error, NameOwner};
use crate::host::kernel::is_module_name;
use crate::host::process;
use crate::host::stderr::say;
use crate::module::device::Device;
use crate::module::lock::NameLock;

const CLASS: &str = "/sys/class/misc";
/// A device that was just closed may keep its module for a moment.
const REMOVE_TRIES: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);
/// For a loader being killed: its exit is seen before its device is closed.
const IDLE_TRIES: usize = 600;
const IDLE_PAUSE: Duration = Duration::from_millis(50);

/// Whether a module of that name is loaded, or code of the kernel itself has the name.
pub fn is_loaded(name: &str) -> bool {
    Path::new("/sys/module").join(name).exists()
}

/// Whether a module can get this name. Leftovers must have been removed before.
pub fn name_is_free(name: &str) -> Result<(), Error> {
    if is_loaded(name) { Err(name_taken(name)) } else { Ok(()) }
}

/// The error for a module name that is in use, and by what.
pub fn name_taken(name: &str) -> Error {
    let by = match is_ours(name) {
        true if disarming(name).is_some() => NameOwner::Disarming,
        true => NameOwner::Session,
        // Built-in code has no initstate.
        false if Path::new("/sys/module").join(name).join("initstate").exists() => NameOwner::Module,
        false => NameOwner::Kernel,
    };
    Error::NameTaken { name: name.to_string(), by }
}

/// Loads a module with these parameters. `file`: a sealed file with the same bytes; `None`: the system has no sealed
/// files.
pub fn insert(file: Option<BorrowedFd<'_>>, bytes: &[u8], parameters: &str) -> Result<(), Errno> {
    let parameters = std::ffi::CString::new(parameters).map_err(|_| Errno::EINVAL)?;
    match file {
        Some(file) => finit_module(file, &parameters, ModuleInitFlags::empty()),
        None => init_module(bytes, &parameters),
    }
}

/// Removes an unused module.
pub(crate) fn remove(name: &str) -> Result<(), Error> {
    let failed = |errno| Error::Remove { name: name.to_string(), errno };
    // SANITY: names of modules contain no NUL (is_module_name).
    let c_name = std::ffi::CString::new(name).map_err(|_| failed(Errno::EINVAL))?;
    for _ in 0..REMOVE_TRIES {
        match delete_module(&c_name, DeleteModuleFlags::O_NONBLOCK) {
            // Already removed by another process (rmmod -f).
            Ok(()) | Err(Errno::ENOENT) => return Ok(()),
            Err(Errno::EAGAIN | Errno::EBUSY | Errno::EINTR) => std::thread::sleep(PAUSE),
            Err(errno) => return Err(failed(errno)),
        }
    }
    Err(failed(Errno::EBUSY))
}

/// The use of a spile module.
#[derive(Debug)]
enum Use {
    /// A loader has it open.
    Loader,
    /// No loader; its session continues.
    Detached,
    /// No loader: it was killed.
    Leftover,
    /// The same, and kprobes are still being unregistered: removing it would wait for that.
    Disarming,
}

/// Whether the module exists without a loader.
pub(crate) fn is_leftover(name: &str) -> bool {
    matches!(find_use(name), Ok(Use::Leftover | Use::Disarming))
}

/// How many probes of an ended session are still to be disarmed; `None`: all are, or it has not ended.
pub fn disarming(name: &str) -> Option<u32> {
    Device::look(name).ok()?.left_to_disarm()
}

/// Err: it does not respond as a spile module does. Nothing is opened that would pin the module: the caller of a
/// set-uid spilerun can stop it here.
fn find_use(name: &str) -> Result<Use, Error> {
    let info = Device::look(name)?.info()?;
    Ok(match State::from_number(info.state) {
        _ if info.flags & OPENED != 0 => Use::Loader,
        Some(State::Stopped) if info.flags & KEPT == 0 && info.armed > 0 => Use::Disarming,
        Some(State::Loaded | State::Ready) => Use::Leftover,
        // Its output may not have been read.
        Some(State::Stopped) if info.flags & KEPT == 0 => Use::Leftover,
        _ => Use::Detached,
    })
}

/// What uses the name of a service.
#[derive(Debug)]
pub enum Holder {
    /// Nothing that prevents the service from starting.
    Nobody,
    /// A session started by the service.
    Service {
        /// It is detached.
        detached: bool,
        /// Its probes are off; what they have written is still to be read.
        ended: bool,
    },
    /// A session of another process.
    Other(Owner),
}

/// What uses the module's name now.
pub fn holder(name: &str) -> Holder {
    let _lock = NameLock::wait(name);
    if !is_ours(name) {
        return Holder::Nobody;
    }
    let used = find_use(name);
    let asked = match &used {
        Ok(Use::Leftover | Use::Disarming) | Err(_) => return Holder::Nobody,
        Ok(Use::Detached | Use::Loader) => {
            Device::look(name).and_then(|device| Ok((device.owner()?, device.info()?.state)))
        }
    };
    match asked {
        Ok((owner, state)) if owner.uid == 0 && owner.flags & SERVICE != 0 => Holder::Service {
            detached: matches!(used, Ok(Use::Detached)),
            ended: State::from_number(state) != Some(State::Running),
        },
        Ok((owner, _)) => Holder::Other(owner),
        // It has just been removed.
        Err(_) => Holder::Nobody,
    }
}

/// Time limit for a loader to end its session, and for a module to be removed.
const COURTESY: Duration = Duration::from_secs(5);
const TAKE_OVER: Duration = Duration::from_secs(30);

/// Ends the session of this name, also of another loader: sends SIGTERM, and kills it if it does not exit.
pub fn take_over(name: &str) -> Result<(), Error> {
    let begun = Instant::now();
    let mut signalled = None;
    while begun.elapsed() < TAKE_OVER {
        if matches!(holder(name), Holder::Nobody) {
            remove_leftovers(None, false).iter().for_each(|line| say(line));
            if !Path::new("/sys/module").join(name).exists() {
                return Ok(());
            }
        }
        match remove_leftover(name, None) {
            Err(Error::InUse { .. }) => {
                let signal = if begun.elapsed() < COURTESY { Signal::SIGTERM } else { Signal::SIGKILL };
                if let Some(opener) = session_process(name)
                    && signalled != Some((opener, signal))
                {
                    send_signal(name, opener, signal);
                    signalled = Some((opener, signal));
                }
            }
            Err(Error::NotLoaded { .. }) | Ok(_) => return Ok(()),
            Err(_) => {}
        }
        std::thread::sleep(PAUSE * 5);
    }
    Err(Error::InUse { name: name.to_string() })
}

/// The process that has it open for a session.
fn session_process(name: &str) -> Option<u32> {
    let opener = owner(name)?.opener;
    (opener > 1).then_some(opener)
}

/// Signals that process if it still has the module's device open: then its pid cannot have been reused.
fn send_signal(name: &str, opener: u32, signal: Signal) {
    let Ok(process) = process::open(opener) else { return };
    if session_process(name) == Some(opener) {
        // If the process has gone meanwhile, all is well.
        let _ = process::signal(process.as_fd(), signal);
    }
}

/// The owner of that module's session; `None`: no session.
pub(crate) fn owner(name: &str) -> Option<Owner> {
    Device::look(name).and_then(|device| device.owner()).ok()
}

/// Whether the module that was loaded at that time is gone. What has its name now may be no module of spile.
pub(crate) fn is_another(name: &str, loaded: u64) -> bool {
    match Device::look(name).and_then(|device| device.owner()) {
        Ok(owner) => owner.loaded != loaded,
        // Otherwise it may be a passing error.
        Err(_) => !is_ours(name),
    }
}

/// Ends a detached session, if it is that one; false: it has a reader, or could not be removed.
pub(crate) fn end_unattended(name: &str, loaded: u64) -> bool {
    let Some(_lock) = NameLock::wait(name) else { return false };
    if is_another(name, loaded) {
        return true;
    }
    match find_use(name) {
        Ok(Use::Detached) => {
            let Ok(device) = Device::open(name) else { return false };
            // The output of its end probes is discarded.
            let stopped = device.keep(false, false).and_then(|()| device.stop()).is_ok();
            drop(device);
            // Otherwise it is removed when its probes are disarmed.
            stopped && disarming(name).is_none() && remove(name).is_ok()
        }
        Ok(Use::Leftover) => remove(name).is_ok(),
        Ok(Use::Loader | Use::Disarming) | Err(_) => false,
    }
}

/// Opens a module's device beside its loader.
pub fn look(name: &str) -> Result<Device, Error> {
    let name = name.strip_suffix(".ko").unwrap_or(name);
    match is_module_name(name) && Path::new("/sys/module").join(name).exists() {
        true => Device::look(name).map_err(|error| match error {
            // It is another user's.
            Error::Node { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
                Error::NotLoaded { name: name.to_string() }
            }
            error => error,
        }),
        false => Err(Error::NotLoaded { name: name.to_string() }),
    }
}

/// `-A NAME`: the device of a detached session.
pub fn attach(name: &str) -> Result<Device, Error> {
    let name = name.strip_suffix(".ko").unwrap_or(name);
    let _lock = NameLock::wait(name);
    if !is_ours(name) {
        return Err(Error::NotLoaded { name: name.to_string() });
    }
    match find_use(name)? {
        Use::Loader => Err(Error::InUse { name: name.to_string() }),
        Use::Leftover | Use::Disarming => Err(Error::NotRunning { name: name.to_string() }),
        Use::Detached => Device::open(name),
    }
}

/// Names of all loaded modules that have a spile device.
pub fn candidates() -> Vec<String> {
    let entries = fs::read_dir(CLASS).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix(DEVICE_PREFIX)?.to_string()));
    names.filter(|name| is_module_name(name) && Path::new("/sys/module").join(name).exists()).collect()
}

/// Whether a module of this name is loaded that has a spile device.
pub fn is_ours(name: &str) -> bool {
    candidates().iter().any(|candidate| candidate == name)
}

/// Removes the leftovers of killed loaders; returns the messages. `held`: the caller's own name. What cannot be removed
/// stays, and is reported with `verbose`. What another one removes is left to it.
pub fn remove_leftovers(held: Option<&NameLock>, verbose: bool) -> Vec<String> {
    let lines = candidates().into_iter().filter_map(|name| {
        let taken;
        let lock = match held.filter(|held| held.is_of(&name)) {
            Some(held) => held,
            None => {
                taken = NameLock::take(&name)?;
                &taken
            }
        };
        // Without a lock file it may be one that has just been loaded.
        if !lock.is_held() || !matches!(find_use(&name), Ok(Use::Leftover)) {
            return None;
        }
        match remove(&name) {
            Ok(()) => Some(format!("NOTICE: removed module {name}, which a killed spilerun had left")),
            Err(error) => verbose.then(|| format!("NOTICE: {error}")),
        }
    });
    lines.collect()
}

/// Removes that module if it is idle and its loader was killed; false: it stays.
pub(crate) fn remove_idle(name: &str) -> bool {
    let mut tries = 0;
    while tries < IDLE_TRIES {
        tries += 1;
        if !is_ours(name) {
            return false;
        }
        // Without the lock, a module that another loader has just loaded would look the same.
        if let Some(_lock) = NameLock::take(name) {
            match find_use(name) {
                Ok(Use::Leftover) if remove(name).is_ok() => return true,
                // Still held by the exiting loader, or by another one, which handles it.
                Ok(Use::Leftover | Use::Loader) => {}
                // The kernel ends that in any case.
                Ok(Use::Disarming) => tries = 0,
                Ok(Use::Detached) | Err(_) => return false,
            }
        }
        std::thread::sleep(IDLE_PAUSE);
    }
    false
}

/// `-d NAME`; `*` removes every leftover. `own`: only a session of this user. Waits until its probes are disarmed. Returns
/// the messages.
pub fn remove_leftover(name: &str, own: Option<u32>) -> Result<Vec<String>, Error> {
    if name == "*" {
        return Ok(remove_leftovers(None, true));
    }
    let name = name.strip_suffix(".ko").unwrap_or(name);
    let mut found = None;
    loop {
        // An apparent leftover may have just been loaded by another spilerun.
        let lock = NameLock::wait(name);
        if !is_ours(name) {
            // It may have been removed by another spilerun that waited, too.
            return if found.is_some() { Ok(Vec::new()) } else { Err(Error::NotLoaded { name: name.to_string() }) };
        }
        let Some(lock) = lock else { return Err(Error::Locked) };
        // The next one of this name is not meant.
        if found.is_some_and(|loaded| is_another(name, loaded)) {
            return Ok(Vec::new());
        }
        let loaded = Device::look(name)?.owner()?.loaded;
        match find_use(name)? {
            Use::Loader => return Err(Error::InUse { name: name.to_string() }),
            Use::Leftover => return remove(name).map(|()| Vec::new()),
            Use::Disarming => {}
            Use::Detached => {
                // Before it is opened: an open device pins the module, even while its process is stopped.
                let owner = Device::look(name)?.owner()?;
                if own.is_some_and(|own| own != owner.uid) {
                    return Err(Error::OtherOwner { name: name.to_string(), uid: owner.uid });
                }
                let device = Device::open(name)?;
                // Its end probes run; their output is discarded.
                device.keep(false, false)?;
                device.stop()?;
                drop(device);
                if disarming(name).is_none() {
                    return remove(name).map(|()| Vec::new());
                }
            }
        }
        found = Some(loaded);
        // Others may load theirs meanwhile.
        drop(lock);
        std::thread::sleep(IDLE_PAUSE);
    }
}
