// SPDX-License-Identifier: GPL-2.0-or-later

//! Which system calls the processes with root's rights may make: a list of what they need, all else is refused (EPERM).
//!
//! A refused call is an error and not the process's end: what it still has to do, to take a module out, is worth more
//! than a crash. None of the list starts a program, makes a process, connects to anything, or changes another process (the guard alone may
//! kill the user part), or changes users and groups.
//!
//! The program is made by the crate seccompiler, which has no dependency but libc and is kept with Firecracker: written by hand it
//! would be jumps counted by eye, for two architectures. It costs 20 KB.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::error::Error;

/// What needs no look at the arguments.
const CALLS: &[libc::c_long] = &[
    // The line, the files and the device.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_writev,
    libc::SYS_readv,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_openat,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_ppoll,
    libc::SYS_ioctl,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_getdents64,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_ftruncate,
    libc::SYS_memfd_create,
    // Of nodes where there is no devtmpfs, and of the directory of locks.
    libc::SYS_mknodat,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    // Modules.
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    // Memory, time, signals, the end.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_mprotect,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_uname,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_capget,
    libc::SYS_chdir,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// C libraries make these where the architecture has them.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_poll,
    libc::SYS_mknod,
    libc::SYS_mkdir,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[libc::c_long] = &[];

/// For good, of the calling thread; there must be no other. `victim`: by this descriptor a process may be killed. An error: the
/// kernel has no seccomp filters.
pub fn apply(victim: Option<BorrowedFd<'_>>) -> Result<(), Error> {
    let failed = |why: String| Error::System { doing: "restricting system calls", error: std::io::Error::other(why) };
    let program = program(victim).map_err(|error| failed(error.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|error| failed(error.to_string()))
}

fn program(victim: Option<BorrowedFd<'_>>) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        CALLS.iter().chain(OLD_CALLS).map(|call| (*call, Vec::new())).collect();
    let is =
        |argument: u8, value: u64| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    rules.insert(libc::SYS_prctl, vec![SeccompRule::new(vec![is(0, libc::PR_SET_NAME as u64)?])?]);
    if let Some(victim) = victim {
        let [which, signal] = [victim.as_raw_fd() as u64, libc::SIGKILL as u64];
        rules.insert(libc::SYS_pidfd_send_signal, vec![SeccompRule::new(vec![is(0, which)?, is(1, signal)?])?]);
        // With `-D` the user part is another process from some time on.
        rules.insert(libc::SYS_dup3, vec![SeccompRule::new(vec![is(1, which)?])?]);
    }
    let architecture = std::env::consts::ARCH.try_into()?;
    let refusal = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, refusal, SeccompAction::Allow, architecture)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    /// In a process of its own, under the filter; what it gives is its status.
    fn filtered(run: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child makes system calls alone, and what memory they take the C library makes available after a fork.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => matches!(waitpid(child, None), Ok(WaitStatus::Exited(_, 0))),
            ForkResult::Child => {
                let good = apply(None).is_ok() && run();
                // SAFETY: ends this process without what the parent has registered for its own end.
                unsafe { libc::_exit(i32::from(!good)) }
            }
        }
    }

    #[test]
    fn what_is_needed_is_allowed() {
        assert!(filtered(|| {
            let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let entries = std::fs::read_dir("/sys").map(Iterator::count).unwrap_or_default();
            std::thread::sleep(std::time::Duration::from_millis(1));
            text.contains("Seccomp:\t2") && text.contains("NoNewPrivs:\t1") && entries > 1
        }));
    }

    #[test]
    fn all_else_is_refused() {
        let refused = |result: nix::Result<()>| result == Err(Errno::EPERM);
        assert!(filtered(|| refused(nix::unistd::execv(c"/bin/true", &[c"true"]).map(drop))));
        // SAFETY: the child would end at once.
        assert!(filtered(|| refused(unsafe { fork() }.map(drop))));
        assert!(filtered(|| refused(nix::sys::signal::kill(nix::unistd::getpid(), None))));
        assert!(filtered(|| refused(nix::unistd::setresuid(1.into(), 1.into(), 1.into()))));
        assert!(filtered(|| std::os::unix::net::UnixStream::pair().is_err()));
        assert!(filtered(|| nix::sys::prctl::set_dumpable(true).is_err()));
        // SAFETY: a number that no kernel knows.
        assert!(filtered(|| Errno::result(unsafe { libc::syscall(4000) }) == Err(Errno::EPERM)));
    }
}
