// SPDX-License-Identifier: GPL-2.0-or-later

//! Looks at processes of any user: their files in /proc may be of any length, and may not answer. Both are bounded.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::signal::SigSet;
use spile_abi::bounded;

/// Processes that are looked at at the same time, or in vain, and how long one is waited for.
static LOOKING: AtomicUsize = AtomicUsize::new(0);
const MOST_LOOKING: usize = 4;
const PATIENCE: Duration = Duration::from_millis(500);

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

/// What a thread finds out within [`PATIENCE`]. For calls that wait for a process of any user: its `maps` and `map_files`
/// are read under the lock of its mappings, which it may hold for as long as it likes. A thread that waits in vain is left
/// alone until it returns, or this process ends; it reads no more lines.
pub fn in_time<T: Send + 'static>(look: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    within(&LOOKING, look)
}

fn within<T: Send + 'static>(
    looking: &'static AtomicUsize,
    look: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<T> {
    let more = |count| (count < MOST_LOOKING).then_some(count + 1);
    looking.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
    let (answer, answered) = mpsc::sync_channel(1);
    let late = Arc::new(AtomicBool::new(false));
    let of_thread = late.clone();
    let run = move || {
        // They would be handled when it returns.
        let _ = SigSet::all().thread_block();
        IS_LATE.set(Some(of_thread));
        let found = look();
        looking.fetch_sub(1, Ordering::Relaxed);
        let _ = answer.send(found);
    };
    if thread::Builder::new().stack_size(256 << 10).spawn(run).is_err() {
        looking.fetch_sub(1, Ordering::Relaxed);
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
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        assert_eq!(within(&COUNT, || Some(1)), Some(1));
        let (free, held) = mpsc::channel::<()>();
        let held = std::sync::Arc::new(std::sync::Mutex::new(held));
        for _ in 0..MOST_LOOKING {
            let held = held.clone();
            assert_eq!(within(&COUNT, move || held.lock().ok()?.recv().ok()), None);
        }
        assert_eq!(within(&COUNT, || Some(2)), None, "no more threads");
        (0..MOST_LOOKING).for_each(|_| free.send(()).unwrap());
        while within(&COUNT, || Some(3)) != Some(3) {
            thread::yield_now();
        }
    }

    #[test]
    fn a_look_that_is_given_up_reads_no_more() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
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
        assert_eq!(within(&COUNT, look), None);
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
