// SPDX-License-Identifier: GPL-2.0-or-later

//! Resets what a process inherits from its parent, for the process with root's rights that outlives the caller's
//! ([`crate::safety::server`]). The caller chooses limits, priorities, the working directory, the cgroup and open
//! files; none of them may keep a module loaded or a file system mounted.

use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use nix::libc;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, dup2_stderr, dup2_stdin, dup2_stdout};

const CGROUPS: &str = "/sys/fs/cgroup";
const PROCESSES: &str = "cgroup.procs";
/// Limit of open files: the kernel has a maximum (fs.nr_open), so it cannot be infinite.
const MOST_FILES: libc::rlim_t = 1024;

/// The kernel's initial timer slack in nanoseconds (prctl(2)). The "default", which 0 would select, is inherited.
const TIMER_SLACK: u64 = 50_000;
/// Of ioprio_set(2), which the C library does not have.
const IOPRIO_WHO_PROCESS: usize = 1;

/// Must be called with root's rights, in a process with one thread. Closes all files but `kept`, and opens /dev/null in
/// place of the standard streams. Parts that the host does not have (cgroups, the OOM killer) are skipped.
pub fn from_caller(kept: &OwnedFd) {
    // Limits first: with the caller's the rest may fail.
    lift_limits();
    allow_time_stamps();
    leave_streams();
    close_all_but(kept);
    lift_priorities();
    // With the caller's slack the kernel could delay all timeouts.
    let _ = nix::sys::prctl::set_timerslack(TIMER_SLACK);
    leave_cgroup(Path::new(CGROUPS));
    // The process is small, and its task frees memory.
    let _ = write_to(Path::new("/proc/self/oom_score_adj"), b"-1000");
    // These cannot fail.
    let _ = chdir("/");
    umask(Mode::from_bits_truncate(0o077));
}

/// execve(2) keeps what a caller has chosen by PR_SET_TSC (prctl(2), x86): SIGSEGV at the instruction by which the C library
/// reads the clock. It would end all processes with root's rights, and leave the module.
fn allow_time_stamps() {
    // SAFETY: the arguments are numbers. Elsewhere than on x86 it fails, and there is nothing to allow.
    let _ = unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_ENABLE, 0, 0, 0) };
}

fn lift_limits() {
    let all = [
        libc::RLIMIT_CPU,
        libc::RLIMIT_FSIZE,
        libc::RLIMIT_DATA,
        libc::RLIMIT_STACK,
        libc::RLIMIT_AS,
        libc::RLIMIT_RSS,
        libc::RLIMIT_NPROC,
        libc::RLIMIT_MEMLOCK,
        libc::RLIMIT_LOCKS,
        libc::RLIMIT_SIGPENDING,
    ];
    let lifted = all.map(|which| (which, libc::RLIM_INFINITY));
    for (which, most) in lifted.into_iter().chain([(libc::RLIMIT_NOFILE, MOST_FILES), (libc::RLIMIT_CORE, 0)]) {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: reads one structure. If a security module forbids it, the old limit stays.
        let _ = unsafe { libc::setrlimit(which, &limit) };
    }
}

/// A reader of the caller's output must not wait for this process.
fn leave_streams() {
    if let Ok(null) = fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        // If this fails a stream stays open, but nothing is written to it.
        let _ = (dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null));
    }
}

/// Closes the files inherited from the caller, and the loader's own from before the fork.
fn close_all_but(kept: &OwnedFd) {
    close_all_but_these(&[kept.as_raw_fd()]);
}

/// The same, except for several descriptors.
pub fn close_all_but_these(kept: &[i32]) {
    let mut kept: Vec<u32> = kept.iter().map(|number| number.cast_unsigned()).filter(|number| *number > 2).collect();
    kept.sort_unstable();
    // The standard streams stay.
    let firsts = std::iter::once(3).chain(kept.iter().map(|number| number.saturating_add(1)));
    let lasts = kept.iter().map(|number| number - 1).chain(std::iter::once(u32::MAX));
    for (first, last) in firsts.zip(lasts).filter(|(first, last)| first <= last) {
        // SAFETY: nothing in this process uses the closed descriptors any more.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            close_listed(first..=last);
        }
    }
}

/// Before Linux 5.9.
fn close_listed(wanted: std::ops::RangeInclusive<u32>) {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| wanted.contains(descriptor)) {
        // SAFETY: as above. Closing the already closed descriptor of the directory is a harmless error.
        let _ = unsafe { libc::close(descriptor.cast_signed()) };
    }
}

fn lift_priorities() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` lives over the call.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &parameters) };
    // SAFETY: the arguments are numbers.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 0) };
    // With the caller's, this process could wait for the disk as long as others use it, or for memory of a full node.
    // Both get the default.
    // SAFETY: the arguments are numbers.
    let _ = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0usize, 0usize) };
    // SAFETY: as above; no nodes are given.
    let _ = unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_DEFAULT, 0usize, 0usize) };
    // SAFETY: a set of CPUs is plain bits; all zeros is the empty set.
    let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in 0..libc::CPU_SETSIZE as usize {
        // SAFETY: the set has CPU_SETSIZE bits.
        unsafe { libc::CPU_SET(cpu, &mut cpus) };
    }
    // SAFETY: `cpus` lives over the call. The kernel ignores CPUs that do not exist.
    let _ = unsafe { libc::sched_setaffinity(0, size_of_val(&cpus), &cpus) };
}

/// Moves the process to the root cgroup: one that the caller owns can be frozen, starved or killed. In every hierarchy
/// of version 1, or the single one of version 2.
fn leave_cgroup(top: &Path) {
    let one = top.join(PROCESSES);
    let each = || fs::read_dir(top).into_iter().flatten().flatten().map(|entry| entry.path().join(PROCESSES)).collect();
    let places: Vec<_> = if one.exists() { vec![one] } else { each() };
    // A hierarchy that refuses the process (a cpuset without CPUs) does not control it either.
    places.iter().for_each(|place| drop(write_to(place, b"0")));
}

/// Writes to a file of the kernel, which may not exist.
fn write_to(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread, because the setting belongs to one.
    #[test]
    fn the_clock_can_be_read() {
        let state = std::thread::spawn(|| {
            let mut state = 0;
            // SAFETY: the arguments are numbers.
            unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV, 0, 0, 0) };
            allow_time_stamps();
            // SAFETY: writes one number.
            unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut state, 0, 0, 0) };
            state
        });
        assert_eq!(state.join().unwrap(), libc::PR_TSC_ENABLE);
    }

    #[test]
    fn the_uppermost_cgroup_of_each_hierarchy() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name).join(PROCESSES);
        for name in ["cpu", "freezer"] {
            fs::create_dir(directory.path().join(name)).unwrap();
            fs::write(place(name), "").unwrap();
        }
        leave_cgroup(directory.path());
        assert_eq!(["cpu", "freezer"].map(|name| fs::read_to_string(place(name)).unwrap()), ["0", "0"]);
        fs::write(directory.path().join(PROCESSES), "").unwrap();
        fs::write(place("cpu"), "").unwrap();
        leave_cgroup(directory.path());
        assert_eq!(fs::read_to_string(place("cpu")).unwrap(), "", "version 2 has one, and these are its children");
        leave_cgroup(Path::new("/no/such/directory"));
    }
}
