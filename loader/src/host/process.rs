// SPDX-License-Identifier: GPL-2.0-or-later

//! Processes by file descriptor (pidfd_open(2), Linux 5.3), which unlike a PID is never reused.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

/// A descriptor for the process with this PID, closed on exec. It becomes readable when the process ends.
pub fn open(number: u32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes two numbers and returns a new descriptor.
    let descriptor = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) })?;
    // SAFETY: the descriptor is new, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Sends a signal. An error: the process has ended, or may not be signalled.
pub fn signal(process: BorrowedFd<'_>, signal: Signal) -> Result<(), Errno> {
    // SAFETY: a descriptor that lives over the call, numbers, and no siginfo.
    let result =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal as libc::c_int, 0usize, 0) };
    Errno::result(result).map(drop)
}

/// Whether the process has ended; also true if the descriptor is not a process.
pub fn has_ended(process: BorrowedFd<'_>) -> bool {
    let mut descriptors = [PollFd::new(process, PollFlags::POLLIN)];
    poll(&mut descriptors, PollTimeout::ZERO) != Ok(0)
}

/// Whether the process runs as user `uid` and can never get other rights: all its UIDs are that one, it has one thread, and that
/// cannot gain new privileges (prctl(2)). So that user can send it any signal for as long as it lives.
pub fn is_permanent(process: &OwnedFd, uid: u32) -> bool {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let about = read(format!("/proc/self/fdinfo/{}", process.as_raw_fd()));
    // -1 for a process that has ended; missing for anything else.
    let Ok(number) = field(&about, "Pid:").parse::<u32>() else { return false };
    let status = || read(format!("/proc/{number}/status"));
    // Twice: what the status shows is the first thread's, of which there may have been others when it was read first. One that
    // is alone and bound makes none that is not.
    let is_bound = is_bound(&status(), uid) && is_bound_alone(&status(), uid);
    // Only if the process is still alive did the status that was read belong to it, and not to a new process with its
    // PID.
    is_bound && !has_ended(process.as_fd())
}

fn is_bound(status: &str, uid: u32) -> bool {
    let mut users = field(status, "Uid:").split_whitespace().map(|number| number.parse() == Ok(uid));
    (0..4).all(|_| users.next() == Some(true)) && field(status, "NoNewPrivs:") == "1"
}

fn is_bound_alone(status: &str, uid: u32) -> bool {
    is_bound(status, uid) && field(status, "Threads:") == "1"
}

/// The value after a key at the beginning of a line; empty if there is none.
pub fn field<'t>(text: &'t str, key: &str) -> &'t str {
    text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_by_its_descriptor() {
        let mut child = Command::new("sleep").arg("100").stdin(Stdio::null()).spawn().unwrap();
        let process = open(child.id()).unwrap();
        assert!(!has_ended(process.as_fd()));
        // It may gain privileges.
        assert!(!is_permanent(&process, nix::unistd::getuid().as_raw()));
        signal(process.as_fd(), Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        assert!(has_ended(process.as_fd()) && signal(process.as_fd(), Signal::SIGTERM) == Err(Errno::ESRCH));
        assert!(!is_permanent(&process, nix::unistd::getuid().as_raw()));
    }

    #[test]
    fn processes_that_are_bound_to_their_user() {
        let status = |users: &str, bound: u32| format!("Name:\tx\nUid:\t{users}\nNoNewPrivs:\t{bound}\n");
        assert!(is_bound(&status("5\t5\t5\t5", 1), 5));
        assert!(!is_bound(&status("5\t5\t5\t5", 0), 5) && !is_bound(&status("5\t5\t5\t5", 1), 6));
        assert!(!is_bound(&status("5\t0\t0\t0", 1), 5) && !is_bound(&status("5\t5\t5", 1), 5) && !is_bound("", 5));
        let of = |threads: u32| status("5\t5\t5\t5", 1) + &format!("Threads:\t{threads}\n");
        assert!(is_bound_alone(&of(1), 5) && !is_bound_alone(&of(2), 5) && !is_bound_alone(&of(1), 6));
        let file: OwnedFd = std::fs::File::open("/etc/passwd").unwrap().into();
        assert!(!is_permanent(&file, 0));
    }
}
