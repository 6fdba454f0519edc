// SPDX-License-Identifier: GPL-2.0-or-later

//! What a run has not finished when a signal ends it (^C, SIGTERM, SIGHUP, and SIGBUS of a file that shrinks): files and
//! directories under their temporary names, and programs that it has started. They are removed and ended, and then the process
//! ends by that signal.
//!
//! Other threads would go on writing meanwhile, and removing takes memory that one of them may have locked. So the handler
//! calls execve(2), which ends all threads and keeps the process: the program that goes on is the same one, called
//! [`NAME`], with the paths as arguments. Whoever waits for the process sees it end by the signal when all is done.

use std::ffi::{CString, OsString, c_char};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, kill, raise, sigaction};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tempfile::NamedTempFile;

/// The program's name (its first argument) when a signal has ended it and it removes what was not finished.
pub const NAME: &str = "spile-ended";
const NAME_FOR_KERNEL: &std::ffi::CStr = c"spile-ended";

/// Directories that begin like this are removed with what is in them. Earlier versions preserved `spile-` and six letters or
/// digits: none of those names does.
pub(crate) const SCRATCH_PREFIX: &str = "spile-run-";
const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// In place of a signal's number: the process is to end with status 1.
const FAILED: &std::ffi::CStr = c"0";
/// More at the same time are not removed.
const MOST: usize = 64;
/// timeout(1) sends its signal to the process and to the group: the second one that comes later than this is one.
const SAME: Duration = Duration::from_millis(300);
/// Killed programs hold their files for some milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Paths, as C strings; null: a free place. A handler may read one at any time, so they are never freed.
static PATHS: [AtomicPtr<c_char>; MOST] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST];
/// The process group of the programs, and the same as text; 0 and null: there is none.
static GROUP: AtomicI32 = AtomicI32::new(0);
static GROUP_TEXT: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());
/// The process that has the handlers; they do nothing in what it forks.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// A path that is removed if a signal ends the process while this lives.
#[derive(Debug)]
pub struct Unfinished {
    place: Option<usize>,
}

impl Unfinished {
    /// To be made before what is there.
    pub fn new(path: &Path) -> Unfinished {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let Ok(text) = CString::new(path.as_os_str().as_bytes()) else { return Unfinished { place: None } };
        let text = text.into_raw();
        let take = |place: &AtomicPtr<c_char>| {
            let free = std::ptr::null_mut();
            place.compare_exchange(free, text, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        Unfinished { place: PATHS.iter().position(take) }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(place) = self.place.and_then(|place| PATHS.get(place)) {
            place.store(std::ptr::null_mut(), Ordering::Release);
        }
    }
}

/// A file with a temporary name, which a signal that ends the process removes.
#[derive(Debug)]
pub struct NewFile {
    file: NamedTempFile<File>,
    _unfinished: Option<Unfinished>,
}

impl NewFile {
    /// In `directory`, with a name that begins with `prefix`; only its owner can read it.
    pub fn in_directory(directory: &Path, prefix: &str) -> io::Result<NewFile> {
        let mut unfinished = None;
        let create = |path: &Path| {
            unfinished = Some(Unfinished::new(path));
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
        };
        let file = tempfile::Builder::new().prefix(prefix).make_in(directory, create)?;
        Ok(NewFile { file, _unfinished: unfinished })
    }

    /// The open file.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Its temporary name.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives it its name, in place of what had it before.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        self.file.persist(path).map(drop).map_err(|error| error.error)
    }
}

/// Programs that are started from now on are in this process group, which a signal ends, too. 0: in none.
pub(crate) fn set_group(group: i32) {
    let text = CString::new(group.to_string()).unwrap_or_default().into_raw();
    GROUP_TEXT.store(text, Ordering::Release);
    GROUP.store(group, Ordering::Release);
}

/// From now on the signals do this, until somebody else handles them. One that is ignored stays ignored (nohup(1)); one that the
/// caller has blocked is not.
pub fn remove_at_signals() {
    OWNER.store(nix::unistd::getpid().as_raw(), Ordering::Relaxed);
    let all = signals();
    let action = SigAction::new(SigHandler::Handler(end_here), SaFlags::SA_RESTART, all);
    for signal in SIGNALS {
        // SAFETY: the handler calls what may be called in one.
        let before = unsafe { sigaction(signal, &action) };
        if let Ok(before) = before
            && matches!(before.handler(), SigHandler::SigIgn)
        {
            // SAFETY: as it was before.
            let _ = unsafe { sigaction(signal, &before) };
        }
    }
    let _ = all.thread_unblock();
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The handler: in any thread, at any point.
extern "C" fn end_here(signal: libc::c_int) {
    let number = match signal {
        libc::SIGINT => c"2",
        libc::SIGHUP => c"1",
        _ => c"15",
    };
    go_on_as_ended(number);
    // Nothing to remove, or no way to.
    // SAFETY: the default of a signal.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // It comes when the handler returns.
    // SAFETY: sends a signal to this thread.
    unsafe { libc::raise(signal) };
}

/// The signals that end a run, for handlers of others that call [`end_with_failure`]: they have to block these.
pub fn signals() -> SigSet {
    SIGNALS.into_iter().collect()
}

/// Removes and ends the same, and ends this process with status 1. In a handler of a signal; it does not return.
pub fn end_with_failure() {
    go_on_as_ended(FAILED);
    // SAFETY: it may be called there.
    unsafe { libc::_exit(1) };
}

/// Returns only if there is nothing to do, or if it is not possible; `number`: the signal's, as text.
fn go_on_as_ended(number: &std::ffi::CStr) {
    // SAFETY: getpid(2) cannot fail.
    let own = unsafe { libc::getpid() };
    if own != OWNER.load(Ordering::Relaxed) {
        return;
    }
    let group = GROUP.load(Ordering::Acquire);
    let mut arguments = [std::ptr::null::<c_char>(); MOST + 4];
    let mut count = 3;
    for path in &PATHS {
        let path = path.load(Ordering::Acquire);
        if let Some(argument) = arguments.get_mut(count).filter(|_| !path.is_null()) {
            *argument = path;
            count += 1;
        }
    }
    if group == 0 && count == 3 {
        return;
    }
    if group > 1 {
        // SAFETY: the group of the programs.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    let group = GROUP_TEXT.load(Ordering::Acquire).cast_const();
    let group = if group.is_null() { c"0".as_ptr() } else { group };
    for (place, argument) in arguments.iter_mut().zip([NAME_FOR_KERNEL.as_ptr(), number.as_ptr(), group]) {
        *place = argument;
    }
    // SAFETY: the C library's.
    let environment = unsafe { environ };
    // SAFETY: the arguments end with a null pointer, and no text of them is ever freed.
    unsafe { libc::execve(c"/proc/self/exe".as_ptr(), arguments.as_ptr(), environment) };
}

/// The program called [`NAME`]; `arguments` as given to the process: its name, a signal, a process group and paths. Ends by the
/// signal, or with status 1. The three signals are blocked, as in the handler.
pub fn end(arguments: Vec<OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter().skip(1);
    let mut number = || arguments.next().and_then(|word| word.to_str()?.parse::<i32>().ok());
    let (signal, group) = (number(), number().unwrap_or(0));
    let known = |number: i32| SIGNALS.into_iter().find(|known| *known as i32 == number);
    // None: FAILED.
    let Some(signal) = signal.and_then(|number| if number == 0 { Some(None) } else { known(number).map(Some) }) else {
        return ExitCode::FAILURE;
    };
    // The lock of the directory, which programs share, has come along.
    // SAFETY: nothing is open here but the streams.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    // Without it the second signal waits for the end.
    let _ = std::thread::Builder::new().spawn(end_at_the_next);
    end_programs(group);
    arguments.map(PathBuf::from).for_each(|path| remove(&path));
    if let Some(signal) = signal {
        end_by(signal);
    }
    ExitCode::FAILURE
}

/// Waits until no program of the group is left.
fn end_programs(group: i32) {
    if group <= 1 {
        return;
    }
    let group = Pid::from_raw(-group);
    let began = Instant::now();
    // One that was being started may have come into the group since.
    while kill(group, Signal::SIGKILL).is_ok() && began.elapsed() < PATIENCE {
        while waitpid(group, Some(WaitPidFlag::WNOHANG)).is_ok_and(|status| status != WaitStatus::StillAlive) {}
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes a file or a directory of this user's, unless somebody else has locked it meanwhile.
fn remove(path: &Path) {
    let began = Instant::now();
    let late = || began.elapsed() > PATIENCE;
    let open = || OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let own = nix::unistd::geteuid().as_raw();
    let is_own = |file: &File| file.metadata().is_ok_and(|state| state.uid() == own);
    let Some(mut file) = open().ok().filter(is_own) else { return };
    let lock = loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => break Some(lock),
            Err((same, nix::errno::Errno::EWOULDBLOCK)) if !late() => file = same,
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => return,
            // A file system without locks.
            Err(_) => break None,
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    // Who had the lock before may have removed the file, and somebody else has made another one.
    let same = |file: &File| {
        let identity = |state: io::Result<std::fs::Metadata>| state.ok().map(|state| (state.dev(), state.ino()));
        identity(file.metadata()) == identity(std::fs::symlink_metadata(path))
    };
    if lock.as_ref().is_some_and(|lock| !same(lock)) {
        return;
    }
    // Nothing else that somebody has moved to the place of a file.
    let is_scratch = path.file_name().is_some_and(|name| name.as_bytes().starts_with(SCRATCH_PREFIX.as_bytes()));
    let remove = || if is_scratch { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    while remove().is_err() && path.exists() && !late() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends this process by the signal.
fn end_by(signal: Signal) {
    let with = |handler| SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    for other in SIGNALS.into_iter().filter(|other| *other != signal) {
        // One that waits is gone.
        // SAFETY: no handler.
        let _ = unsafe { sigaction(other, &with(SigHandler::SigIgn)) };
    }
    // SAFETY: no handler.
    let _ = unsafe { sigaction(signal, &with(SigHandler::SigDfl)) };
    let _ = SigSet::from(signal).thread_swap_mask(SigmaskHow::SIG_UNBLOCK);
    let _ = raise(signal);
}

/// A thread: whoever sends a second signal does not want to wait.
fn end_at_the_next() {
    std::thread::sleep(SAME);
    let all = signals();
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set and the time are valid; nothing is told of the signal.
    while unsafe { libc::sigtimedwait(all.as_ref(), std::ptr::null_mut(), &raw const at_once) } > 0 {}
    if let Ok(signal) = all.wait() {
        end_by(signal);
    }
}
