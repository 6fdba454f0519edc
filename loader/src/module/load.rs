// SPDX-License-Identifier: GPL-2.0-or-later

//! Loads and removes modules, including leftovers of killed loaders.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::kmod::{DeleteModuleFlags, ModuleInitFlags, delete_module, finit_module, init_module};
use nix::libc;
use nix::sys::signal::Signal;
use spile_abi::device::{DEVICE_PREFIX, KEPT, OPENED, Owner, SERVICE, State};

use crate::error::{Error, NameOwner};
use crate::host::byte_lock;
use crate::host::kernel::is_module_name;
use crate::host::process;
use crate::host::stderr::say;
use crate::module::device::Device;

const CLASS: &str = "/sys/class/misc";
/// A device that was just closed may keep its module for a moment.
const REMOVE_TRIES: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);
const LOCK_TRIES: usize = 1000;
/// For a loader being killed: its exit is seen before its device is closed.
const IDLE_TRIES: usize = 600;
const IDLE_PAUSE: Duration = Duration::from_millis(50);

/// The lock file: a file of the kernel that has always existed and that only root may open (0200). Nothing is written
/// to it.
const LOCK: &str = "/sys/module/kernel/uevent";
/// Used if sysfs is read-only or does not have it: a directory created for root only.
const LOCK_DIRECTORY: &str = "/run/spile";

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

/// Held from counting what users' sessions take until the own device is open. Nobody waits for anything else with it, least
/// of all for a module to go: the kernel waits for whoever reads the module's files in sysfs then, however long he gets no
/// CPU time. Only root can open the lock file and block others.
#[derive(Debug)]
pub enum Lock {
    /// Until it is dropped.
    Held(Flock<fs::File>),
    /// Another spilerun held it until the timeout: leftovers stay.
    Busy,
    /// This host has no lock file.
    Missing,
}

impl Lock {
    /// Waits at most ten seconds.
    pub fn take() -> Lock {
        let Some(mut file) = open_lock() else { return Lock::Missing };
        for _ in 0..LOCK_TRIES {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Lock::Held(lock),
                Err((back, Errno::EAGAIN | Errno::EINTR)) => file = back,
                Err(_) => return Lock::Missing,
            }
            std::thread::sleep(PAUSE);
        }
        Lock::Busy
    }

    /// Whether no other loader can hold it.
    pub fn is_held(&self) -> bool {
        matches!(self, Lock::Held(_))
    }
}

/// Of one module name: held by who loads such a module, until its device is open, so that nobody mistakes it for a leftover;
/// and by who removes one. A byte of the lock file.
#[derive(Debug)]
pub struct NameLock {
    byte: i64,
    /// `None`: there is no lock file, so others may have it, too.
    file: Option<fs::File>,
}

/// Bytes of names begin behind all those of users' memory (`crowd::Share`).
const NAMES: i64 = 1 << 49;

impl NameLock {
    /// `None`: another loader has it. Where there is no lock file, nobody is kept out.
    pub fn take(name: &str) -> Option<NameLock> {
        let byte = NAMES + i64::from(hash(name));
        let Some(file) = open_lock() else { return Some(NameLock { byte, file: None }) };
        match byte_lock::lock(&file, byte) {
            Ok(()) => Some(NameLock { byte, file: Some(file) }),
            Err(errno) if byte_lock::is_taken(errno) => None,
            Err(_) => Some(NameLock { byte, file: None }),
        }
    }

    /// Waits at most ten seconds.
    fn wait(name: &str) -> Option<NameLock> {
        NameLock::wait_while(name, || true)
    }

    /// The same, as long as the condition holds.
    pub(crate) fn wait_while(name: &str, mut waits: impl FnMut() -> bool) -> Option<NameLock> {
        for _ in 0..LOCK_TRIES {
            let taken = NameLock::take(name);
            if taken.is_some() || !waits() {
                return taken;
            }
            std::thread::sleep(PAUSE);
        }
        None
    }

    fn is_of(&self, name: &str) -> bool {
        self.byte == NAMES + i64::from(hash(name))
    }
}

/// Claims begin behind the names.
const CLAIMS: i64 = 1 << 50;

/// Until this process ends, no user may start a module of this name. Those that are loading one may still do so: then it is
/// there as soon as the name's lock can be taken.
pub fn claim(name: &str) {
    if let Some(file) = open_lock()
        && byte_lock::lock(&file, CLAIMS + i64::from(hash(name))).is_ok()
    {
        let _stays_open = file.into_raw_fd();
    }
}

/// Whether a service that starts now has claimed the name. Asked with the name's lock held.
pub(crate) fn is_claimed(name: &str) -> bool {
    open_lock().is_some_and(|file| byte_lock::is_locked(&file, CLAIMS + i64::from(hash(name))))
}

/// FNV-1a. Two names of the same number share a lock, which does no harm.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Opens the lock file; `None`: there is none, or others may open it.
pub(crate) fn open_lock() -> Option<fs::File> {
    let file = fs::OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(LOCK).ok();
    file.filter(is_root_s_alone).or_else(|| open_lock_directory(Path::new(LOCK_DIRECTORY)))
}

/// A file in the directory: of a directory single bytes cannot be locked, so it is used only where it is read-only. Uses an
/// existing directory unchanged, unless others may open it.
fn open_lock_directory(path: &Path) -> Option<fs::File> {
    // It may exist, also on a read-only file system.
    let _ = fs::DirBuilder::new().mode(0o700).create(path);
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok().filter(is_root_s_alone)?;
    let mut file = fs::OpenOptions::new();
    file.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    Some(file.open(path.join("lock")).ok().filter(is_root_s_alone).unwrap_or(directory))
}

fn is_root_s_alone(file: &fs::File) -> bool {
    file.metadata().is_ok_and(|status| status.uid() == 0 && status.mode() & 0o077 == 0)
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
    if !candidates().iter().any(|candidate| candidate == name) {
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
        if lock.file.is_none() || !matches!(find_use(&name), Ok(Use::Leftover)) {
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
        if !candidates().iter().any(|candidate| candidate == name) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_that_others_cannot_open_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let [new, loose, link] = ["new", "loose", "link"].map(|name| directory.path().join(name));
        fs::DirBuilder::new().mode(0o755).create(&loose).unwrap();
        std::os::unix::fs::symlink("/root", &link).unwrap();
        assert!(open_lock_directory(&loose).is_none() && open_lock_directory(&link).is_none());
        assert_eq!(open_lock_directory(&new).is_some(), nix::unistd::geteuid().is_root());
        assert_eq!(fs::metadata(&new).unwrap().mode() & 0o777, 0o700);
        if nix::unistd::geteuid().is_root() {
            let (one, other) = (open_lock_directory(&new).unwrap(), open_lock_directory(&new).unwrap());
            byte_lock::lock(&one, 5).unwrap();
            assert!(byte_lock::lock(&other, 5).is_err_and(byte_lock::is_taken));
            assert!(
                byte_lock::is_locked(&other, 5) && !byte_lock::is_locked(&one, 5) && !byte_lock::is_locked(&other, 6)
            );
        }
    }
}
