// SPDX-License-Identifier: GPL-2.0-or-later

//! Looks at processes of any user: their files in /proc may be of any length, and may not answer. Both are bounded.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::signal::SigSet;
use spile_abi::bounded;

/// How long a process is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// Processes that are looked at at the same time, or in vain: of one user; of all but root and this user, who have some for themselves.
const MOST_OF_USER: usize = 4;
const MOST_OF_OTHERS: usize = 32;
static LOOKING: Looking = Looking::new();

/// Looks that have not returned, by the user of their process.
#[derive(Debug)]
struct Looking {
    by_user: Mutex<BTreeMap<u32, usize>>,
}

impl Looking {
    const fn new() -> Looking {
        Looking { by_user: Mutex::new(BTreeMap::new()) }
    }

    fn by_user(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.by_user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False: there are too many.
    fn begin(&self, user: u32) -> bool {
        let is_other = |user: u32| user != 0 && user != nix::unistd::geteuid().as_raw();
        let mut by_user = self.by_user();
        let others: usize = by_user.iter().filter(|(user, _)| is_other(**user)).map(|(_, count)| count).sum();
        let count = by_user.entry(user).or_default();
        let is_allowed = *count < MOST_OF_USER && (!is_other(user) || others < MOST_OF_OTHERS);
        *count += usize::from(is_allowed);
        is_allowed
    }

    fn end(&self, user: u32) {
        let mut by_user = self.by_user();
        if let Some(count) = by_user.get_mut(&user) {
            *count = count.saturating_sub(1);
        }
        by_user.retain(|_, count| *count > 0);
    }
}

/// The real user id of a process. Not the owner of its directory: any process can make that root, by prctl(2).
fn user_of(process: u32) -> u32 {
    let mut user = None;
    lines(&format!("/proc/{process}/status"), |line| {
        user = line.strip_prefix("Uid:").and_then(|ids| ids.split_whitespace().next()?.parse().ok());
        user.is_none()
    });
    user.unwrap_or(u32::MAX)
}

/// Bytes that are read of a file in /proc, and of a line. A process may have a million mappings and mounts, each with a path of
/// megabytes.
const MOST_BYTES: u64 = 64 << 20;
const MOST_LINE: usize = 8 << 10;

thread_local! {
    /// Whether this thread's look is no longer waited for.
    static IS_LATE: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

fn is_late() -> bool {
    IS_LATE.with_borrow(|late| late.as_ref().is_some_and(|late| late.load(Ordering::Relaxed)))
}

/// What a thread finds out about a process within [`PATIENCE`]. For calls that wait for a process of any user: its `maps` and `map_files`
/// are read under the lock of its mappings, which it may hold for as long as it likes. A thread that waits in vain is left
/// alone until it returns, or this process ends; it reads no more lines. If too many wait so for processes of a user, others of
/// that user are not looked at.
pub fn in_time<T: Send + 'static>(process: u32, look: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    within(&LOOKING, user_of(process), look)
}

fn within<T: Send + 'static>(
    looking: &'static Looking,
    user: u32,
    look: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<T> {
    looking.begin(user).then_some(())?;
    let (answer, answered) = mpsc::sync_channel(1);
    let late = Arc::new(AtomicBool::new(false));
    let of_thread = late.clone();
    let run = move || {
        // They would be handled when it returns.
        let _ = SigSet::all().thread_block();
        IS_LATE.set(Some(of_thread));
        let found = look();
        looking.end(user);
        let _ = answer.send(found);
    };
    if thread::Builder::new().stack_size(256 << 10).spawn(run).is_err() {
        looking.end(user);
        return None;
    }
    let found = answered.recv_timeout(PATIENCE).ok().flatten();
    late.store(true, Ordering::Relaxed);
    found
}

/// Fails when nobody waits any more.
struct WhileWanted<R>(R);

impl<R: Read> Read for WhileWanted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if is_late() { Err(io::ErrorKind::TimedOut.into()) } else { self.0.read(buffer) }
    }
}

/// Calls with each line of a file in /proc, until `take` says no; very long ones are passed over. Whether it was read to its
/// end: false if it is too long, too.
pub fn lines(path: &str, take: impl FnMut(&str) -> bool) -> bool {
    File::open(path).is_ok_and(|file| lines_of(file, take))
}

fn lines_of(file: impl Read, mut take: impl FnMut(&str) -> bool) -> bool {
    bounded::lines(WhileWanted(file), MOST_BYTES, MOST_LINE, |line| take(&String::from_utf8_lossy(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_do_not_answer_are_given_up() {
        static COUNT: Looking = Looking::new();
        assert_eq!(within(&COUNT, 7, || Some(1)), Some(1));
        let (free, held) = mpsc::channel::<()>();
        let held = std::sync::Arc::new(std::sync::Mutex::new(held));
        for _ in 0..MOST_OF_USER {
            let held = held.clone();
            assert_eq!(within(&COUNT, 7, move || held.lock().ok()?.recv().ok()), None);
        }
        assert_eq!(within(&COUNT, 7, || Some(2)), None, "no more threads");
        let others = [0, 8, nix::unistd::geteuid().as_raw()];
        assert_eq!(others.map(|user| within(&COUNT, user, move || Some(user))), others.map(Some), "other users'");
        (0..MOST_OF_USER).for_each(|_| free.send(()).unwrap());
        while within(&COUNT, 7, || Some(3)) != Some(3) {
            thread::yield_now();
        }
    }

    #[test]
    fn users_share_the_looks_and_root_has_some() {
        let looking = Looking::new();
        let begun = (0..100 * MOST_OF_OTHERS as u32).filter(|at| looking.begin(1_000_000 + at)).count();
        assert_eq!((begun, looking.begin(7), looking.begin(0)), (MOST_OF_OTHERS, false, true));
        looking.end(1_000_000);
        assert_eq!((looking.begin(7), looking.begin(8)), (true, false));
        assert_eq!(user_of(std::process::id()), nix::unistd::getuid().as_raw());
        assert_eq!(user_of(0), u32::MAX);
    }

    #[test]
    fn a_look_that_is_given_up_reads_no_more() {
        static COUNT: Looking = Looking::new();
        let (tell, told) = mpsc::channel();
        // Lines without end: only that nobody waits any more ends it, before that many bytes.
        let look = move || {
            let mut count = 0_u64;
            let is_whole = bounded::lines(WhileWanted(io::repeat(b'\n')), u64::MAX, MOST_LINE, |_| {
                count += 1;
                true
            });
            tell.send((is_whole, count)).ok()
        };
        assert_eq!(within(&COUNT, 7, look), None);
        let (is_whole, count) = told.recv().unwrap();
        assert!(!is_whole && count > 0);
    }

    #[test]
    fn files_of_any_length_are_read_up_to_a_limit() {
        assert!(!lines_of(io::repeat(b'a'), |_| panic!("a line without an end")));
        let text = [&b"one\n"[..], &[b'a'; MOST_LINE + 1], b"\ntw\xff"].concat();
        let mut found = Vec::new();
        assert!(lines_of(text.as_slice(), |line| {
            found.push(line.to_string());
            true
        }));
        assert_eq!(found, ["one", "tw\u{fffd}"]);
    }
}
