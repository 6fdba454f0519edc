// SPDX-License-Identifier: GPL-2.0-or-later

//! The lock of an entry that is being made: flock(2) on a file beside it, which says who has it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;

use crate::unfinished::Unfinished;

/// Between two tries.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// Tries until it is said that somebody is waited for.
const SILENT: u32 = 20;
/// Tries until the work is done here, beside a process that is stopped, and any other.
const STOPPED: u32 = 100;
const MOST: u32 = 6000;
/// The processes that this process's numbers are of.
const NAMESPACE: &str = "/proc/self/ns/pid";

/// The lock of an entry being made; the file is removed on drop.
pub struct Lock {
    path: PathBuf,
    _unfinished: Unfinished,
    _held: Flock<File>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Waits for the lock of `what`, by calling `pause` after each try; None: it is not to be had.
pub(super) fn take(path: PathBuf, what: &str, say: fn(&str), pause: &mut dyn FnMut()) -> Option<Lock> {
    let mut tries = 0;
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        // Its contents are those of whoever has the lock.
        let file = options.truncate(false).open(&path).ok()?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) if is_at(&held, &path) => {
                let _ = held.set_len(0).and_then(|()| (&*held).write_all(own().as_bytes()));
                return Some(Lock { _unfinished: Unfinished::new(&path), path, _held: held });
            }
            // The previous holder has removed the file that is now locked.
            Ok(_) => continue,
            Err((_, Errno::EINTR)) => continue,
            Err((file, Errno::EWOULDBLOCK)) => {
                tries += 1;
                let holder = if tries == SILENT || tries % STOPPED == 0 { Holder::of(file) } else { Holder::default() };
                if tries == SILENT {
                    say(&holder.waited_for(what));
                }
                if tries >= MOST || tries >= STOPPED && holder.stopped {
                    say(&format!("{what}: not waiting any longer"));
                    return None;
                }
            }
            Err(_) => return None,
        }
        pause();
    }
}

/// Whether the opened file is the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |state: std::io::Result<std::fs::Metadata>| state.ok().map(|state| (state.dev(), state.ino()));
    identity(file.metadata()) == identity(std::fs::symlink_metadata(path))
}

/// What a lock file says: the number of this process, and whose number it is.
fn own() -> String {
    let namespace = std::fs::read_link(NAMESPACE).unwrap_or_default();
    format!("{} {}", std::process::id(), namespace.display())
}

/// Who has a lock.
#[derive(Default)]
struct Holder {
    /// None: unknown here.
    process: Option<u32>,
    /// By a signal or a debugger.
    stopped: bool,
}

impl Holder {
    fn of(file: File) -> Holder {
        let mut text = String::new();
        let _ = file.take(100).read_to_string(&mut text);
        let namespace = std::fs::read_link(NAMESPACE).unwrap_or_default();
        let process = text.split_once(' ').filter(|(_, of)| Path::new(of) == namespace);
        let Some(process) = process.and_then(|(number, _)| number.parse().ok()) else { return Holder::default() };
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with(['T', 't']));
        Holder { process: Some(process), stopped: state == Some(true) }
    }

    fn waited_for(&self, what: &str) -> String {
        let who = match self.process {
            Some(process) => format!("process {process}"),
            None => "a process of another container or machine".to_string(),
        };
        let state = if self.stopped { " and is stopped" } else { "" };
        let most = if self.stopped { STOPPED } else { MOST } * PAUSE;
        format!("waiting for {who}, which makes {what}{state}; for {} seconds at most", most.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn said() -> Vec<String> {
        std::mem::take(&mut SAID.lock().unwrap())
    }

    #[test]
    fn nobody_waits_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.lock");
        let say = |line: &str| SAID.lock().unwrap().push(line.to_string());
        let first = take(path.clone(), "it", say, &mut || panic!("nobody has it")).unwrap();
        let mut pauses = 0;
        assert!(take(path.clone(), "it", say, &mut || pauses += 1).is_none());
        let own = std::process::id();
        let waiting = format!("waiting for process {own}, which makes it; for 600 seconds at most");
        assert_eq!((pauses, said()), (MOST - 1, vec![waiting.clone(), "it: not waiting any longer".into()]));

        // It is released while it is waited for.
        let (mut first, mut pauses) = (Some(first), 0);
        let release = &mut || {
            pauses += 1;
            first.take_if(|_| pauses == SILENT + 1);
        };
        drop(take(path.clone(), "it", say, release).unwrap());
        assert_eq!((pauses, said()), (SILENT + 1, vec![waiting]));
        assert!(!path.exists());

        // As of a process that is stopped.
        let mut sleep = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = nix::unistd::Pid::from_raw(sleep.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
        nix::sys::wait::waitpid(pid, Some(nix::sys::wait::WaitPidFlag::WUNTRACED)).unwrap();
        let held = take(path.clone(), "it", say, &mut || ()).unwrap();
        let namespace = std::fs::read_link(NAMESPACE).unwrap();
        std::fs::write(&path, format!("{pid} {}", namespace.display())).unwrap();
        let mut pauses = 0;
        assert!(take(path.clone(), "it", say, &mut || pauses += 1).is_none());
        let waiting = format!("waiting for process {pid}, which makes it and is stopped; for 10 seconds at most");
        assert_eq!((pauses, said()), (STOPPED - 1, vec![waiting, "it: not waiting any longer".into()]));
        std::fs::write(&path, format!("{pid} pid:[1]")).unwrap();
        assert!(take(path.clone(), "it", say, &mut || ()).is_none());
        assert!(said()[0].starts_with("waiting for a process of another container or machine, "));
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        drop(held);
    }
}
