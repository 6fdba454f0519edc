// SPDX-License-Identifier: GPL-2.0-or-later

//! Cleaning up after the process with root's rights is killed, or a user leaves a session behind.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigHandler, Signal};
use nix::unistd::{ForkResult, fork};

use crate::error::Error;
use crate::host::process::{self, field};
use crate::module::load;
use crate::safety::detached;
use crate::safety::filter;
use crate::safety::message::{self, Message};

/// Name of the process that removes a module in place of the root part.
const NAME: &std::ffi::CStr = c"spile-guard";
/// Milliseconds that the user part has to end its session, and between two checks.
const COURTESY: Duration = Duration::from_secs(5);
const GLANCE: u16 = 50;
/// A module of this name may have to be removed.
const LOADING: u32 = 1;
/// It is removed, or continues on purpose.
const DONE: u32 = 2;
/// The descriptor in this message is the new user part's.
const FOLLOW: u32 = 3;

/// A second process with root's rights, which removes the module if the root part dies.
#[derive(Debug)]
pub struct Guard {
    line: OwnedFd,
}

impl Guard {
    /// Forks the guard. The process must have root's rights, one thread, and nothing that the caller controls. `keeps`:
    /// sessions of user `uid` may outlive that user's presence. `user_part`: the process to end with the root part.
    pub fn begin(uid: u32, keeps: bool, user_part: &OwnedFd) -> Result<Guard, Error> {
        let failed = |error| Error::System { doing: "splitting off the process that removes the module", error };
        let (line, other) = message::line().map_err(failed)?;
        // SAFETY: there is one thread.
        match unsafe { fork() }.map_err(|errno| failed(errno.into()))? {
            ForkResult::Parent { .. } => Ok(Guard { line }),
            ForkResult::Child => {
                detached::close_all_but_these(&[other.as_raw_fd(), user_part.as_raw_fd()]);
                let _ = nix::sys::prctl::set_name(NAME);
                let done = filter::apply(Some(user_part.as_fd())).is_ok() && watch(&other, uid, keeps, user_part);
                // SAFETY: ends this process, whose copies of descriptors are closed.
                unsafe { libc::_exit(i32::from(!done)) }
            }
        }
    }

    /// Must be called before a module of this name is loaded.
    pub fn loading(&self, name: &str) -> Result<(), Error> {
        let lost = |error| Error::System { doing: "telling the process that removes the module", error };
        let message = Message { kind: LOADING, data: name.as_bytes().to_vec(), ..Message::default() };
        message.send(self.line.as_fd(), None).map_err(lost)
    }

    /// The user part is another process now.
    pub fn follow(&self, user_part: &OwnedFd) -> Result<(), Error> {
        let lost = |error| Error::System { doing: "telling the process that removes the module", error };
        let message = Message { kind: FOLLOW, ..Message::default() };
        message.send(self.line.as_fd(), Some(user_part.as_fd())).map_err(lost)
    }

    /// No module remains to be removed.
    pub fn done(&self) {
        // If the guard is gone, nothing is lost.
        let _ = Message { kind: DONE, ..Message::default() }.send(self.line.as_fd(), None);
    }
}

/// Waits for the end of the root part, and removes the module that it was loading.
fn watch(line: &OwnedFd, uid: u32, keeps: bool, user_part: &OwnedFd) -> bool {
    let mut name = None;
    while let Ok(Some((message, descriptor))) = Message::receive(line.as_fd()) {
        if let (FOLLOW, Some(process)) = (message.kind, &descriptor) {
            // The filter refers to the victim by descriptor number. Both descriptors are open, so dup2(2) does not
            // fail.
            // SAFETY: takes numbers; the second descriptor is closed by it.
            let _ = unsafe { libc::dup3(process.as_raw_fd(), user_part.as_raw_fd(), libc::O_CLOEXEC) };
            continue;
        }
        name = (message.kind == LOADING).then(|| String::from_utf8(message.data).ok()).flatten();
    }
    let Some(name) = name else { return true };
    end(user_part, &name);
    clear(&name, uid, keeps)
}

/// When the root part is gone, the user part ends its session, closes the module's device and waits until the module is
/// removed. If it does not (it may be stopped), it is killed.
fn end(user_part: &OwnedFd, name: &str) {
    let mut descriptors = [PollFd::new(user_part.as_fd(), PollFlags::POLLIN)];
    let begun = Instant::now();
    while begun.elapsed() < COURTESY {
        if poll(&mut descriptors, GLANCE) != Ok(0) || load::is_leftover(name) {
            return;
        }
    }
    // It may have ended meanwhile.
    let _ = process::signal(user_part.as_fd(), Signal::SIGKILL);
}

/// The session's loader is gone: removes its module if that is idle. Otherwise waits until the session's user is gone.
pub fn clear(name: &str, uid: u32, keeps: bool) -> bool {
    load::remove_idle(name) || keeps || wait_for_user(name, uid)
}

/// Between two checks for processes of the user.
const LOOK: std::time::Duration = std::time::Duration::from_secs(5);
/// The user is gone when this many checks in a row found no process.
const ABSENT: u32 = 2;
/// Name of the process that waits for its user to go.
const ATTENDANT: &std::ffi::CStr = c"spile-attend";

/// Ends the session that this user's loader has left, as soon as the user has no process any more.
pub fn wait_for_user(name: &str, uid: u32) -> bool {
    let owner = || load::owner(name).filter(|owner| owner.uid == uid);
    let Some(loaded) = owner().map(|owner| owner.loaded) else { return true };
    // One process for each session, however often its user attaches and detaches.
    let path = Path::new(ATTENDED).join(format!("{name}-{loaded}"));
    let lock = lock_alone(&path);
    if matches!(lock, Err(Errno::EAGAIN)) {
        return true;
    }
    let ended = wait_for_absence(name, uid, loaded);
    // An unlocked file does no harm.
    let _ = std::fs::remove_file(&path);
    ended
}

/// A directory that belongs to root, with a lock file for each session that has such a process.
const ATTENDED: &str = "/run/spile";

fn lock_alone(path: &Path) -> Result<Flock<std::fs::File>, Errno> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    // Errors show in the next step.
    let _ = std::fs::DirBuilder::new().mode(0o700).create(directory);
    let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno)
}

fn wait_for_absence(name: &str, uid: u32, loaded: u64) -> bool {
    // Signals at the end of a login must not end this process, which acts after it.
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        // SAFETY: sets no handler function.
        let _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigIgn) };
    }
    let _ = nix::sys::prctl::set_name(ATTENDANT);
    // The working directory may be on a file system that is unmounted after the login.
    let _ = std::env::set_current_dir("/");
    let mut absent = 0;
    loop {
        std::thread::sleep(LOOK);
        if !load::is_loaded(name) {
            return true;
        }
        absent = if is_present(uid) { 0 } else { absent + 1 };
        if absent >= ABSENT && load::end_unattended(name, loaded) {
            return true;
        }
    }
}

/// Whether the user has a process. Zombies and the processes that wait for the user do not count.
fn is_present(uid: u32) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = processes
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())));
    // It has ended meanwhile.
    numbered
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok())
        .any(|status| is_of(&status, uid))
}

/// Whether the process' real or effective UID is `uid`, by `/proc/PID/status`.
fn is_of(status: &str, uid: u32) -> bool {
    let value = |key: &str| field(status, key);
    let runs = !value("State:").starts_with(['Z', 'X']) && value("Name:").as_bytes() != ATTENDANT.to_bytes();
    runs && value("Uid:").split_whitespace().take(2).any(|number| number.parse() == Ok(uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_attendant_for_each_session() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("attended/ticks-1");
        let held = lock_alone(&path).unwrap();
        assert_eq!(lock_alone(&path).err(), Some(Errno::EAGAIN));
        assert!(lock_alone(&path.with_file_name("ticks-2")).is_ok());
        drop(held);
        assert!(lock_alone(&path).is_ok());
    }

    #[test]
    fn users_with_a_process_are_present() {
        let status = |name: &str, state: &str| format!("Name:\t{name}\nState:\t{state}\nUid:\t5\t6\t7\t7\n");
        let running = status("sh", "S (sleeping)");
        assert!(is_of(&running, 5) && is_of(&running, 6) && !is_of(&running, 7));
        assert!(!is_of(&status("sh", "Z (zombie)"), 5) && !is_of(&status("spile-attend", "S (sleeping)"), 5));
        assert!(is_present(nix::unistd::getuid().as_raw()) && !is_present(4_000_000_000));
    }
}
