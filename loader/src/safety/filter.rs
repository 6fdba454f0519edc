// SPDX-License-Identifier: GPL-2.0-or-later

//! System call filter of the processes with root's rights: a list of the calls that they need; all others fail with
//! EPERM.
//!
//! A refused call fails instead of killing the process: its remaining task, removing a module, matters more. The list
//! has no call that starts a program, creates a process, connects anywhere, changes another process (except that the
//! guard may kill the user part), or changes user or group.
//!
//! The filter is built with the crate seccompiler, which depends only on libc and is maintained with Firecracker. By
//! hand it would be jump offsets counted by eye, for two architectures. It costs 20 KB.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::error::Error;

/// Calls that are allowed with any arguments.
const CALLS: &[libc::c_long] = &[
    // For the channel, files and the device.
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
    // For device nodes without devtmpfs, and for the directory of locks.
    libc::SYS_mknodat,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    // For modules.
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    // For memory, time, signals, and exit.
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

/// C libraries use these on architectures that have them.
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

/// Installs the filter for the calling thread, which must be the only one. `victim`: the process with this descriptor
/// may be killed. An error: the kernel has no seccomp filters.
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
        // With `-D` the user part becomes another process at some point.
        rules.insert(libc::SYS_dup3, vec![SeccompRule::new(vec![is(1, which)?])?]);
    }
    let architecture = std::env::consts::ARCH.try_into()?;
    let refusal = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, refusal, SeccompAction::Allow, architecture)?.try_into()
}

/// Runs it in a child process under the filter: whether it held there.
#[cfg(test)]
fn holds_under_filter(run: impl FnOnce() -> bool) -> bool {
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};
    // SAFETY: the child only makes system calls and allocates memory, which the C library allows after a fork.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => matches!(waitpid(child, None), Ok(WaitStatus::Exited(_, 0))),
        ForkResult::Child => {
            let good = apply(None).is_ok() && run();
            // SAFETY: ends this process without running the parent's exit handlers.
            unsafe { libc::_exit(i32::from(!good)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::holds_under_filter as filtered;
    use nix::errno::Errno;
    use nix::libc;
    use nix::unistd::fork;

    #[test]
    fn needed_calls_are_allowed() {
        assert!(filtered(|| {
            let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let entries = std::fs::read_dir("/sys").map(Iterator::count).unwrap_or_default();
            std::thread::sleep(std::time::Duration::from_millis(1));
            text.contains("Seccomp:\t2") && text.contains("NoNewPrivs:\t1") && entries > 1
        }));
    }

    /// openat2(2) is refused too: then paths are walked step by step.
    #[test]
    fn paths_of_others_are_opened_without_links_and_openat2() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), "x").unwrap();
        std::os::unix::fs::symlink(directory.path(), directory.path().join("link")).unwrap();
        let opened = || crate::userspace::locate::opened_of_four(directory.path());
        assert!(filtered(|| opened() == [true, false, true, false]));
    }

    #[test]
    fn other_calls_are_refused() {
        let refused = |result: nix::Result<()>| result == Err(Errno::EPERM);
        assert!(filtered(|| refused(nix::unistd::execv(c"/bin/true", &[c"true"]).map(drop))));
        // SAFETY: the child would end at once.
        assert!(filtered(|| refused(unsafe { fork() }.map(drop))));
        assert!(filtered(|| refused(nix::sys::signal::kill(nix::unistd::getpid(), None))));
        assert!(filtered(|| refused(nix::unistd::setresuid(1.into(), 1.into(), 1.into()))));
        assert!(filtered(|| std::os::unix::net::UnixStream::pair().is_err()));
        assert!(filtered(|| nix::sys::prctl::set_dumpable(true).is_err()));
        // SAFETY: an invalid system call number.
        assert!(filtered(|| Errno::result(unsafe { libc::syscall(4000) }) == Err(Errno::EPERM)));
    }
}
