// SPDX-License-Identifier: GPL-2.0-or-later

//! Drops the rights that the process does not need: it reads files and talks over two pipes. Landlock refuses every
//! access to files but reading, a system call filter refuses to start programs, to talk to networks and to touch other
//! processes.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use spilerun::safety::landlock::{self, FileAccess};

/// System calls that a language server does not need. A list of those that it needs would depend on each C library's
/// threads and memory.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Of it the kernel does what the filter would refuse: opening, connecting, renaming.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_setpriority,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
    libc::SYS_ioprio_set,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsmount,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    // Also by descriptors that are open for reading.
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utimensat,
    libc::SYS_truncate,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
];

/// Since Linux 6.6, the same number everywhere.
const SYS_FCHMODAT2: libc::c_long = 452;

/// The same by their old names.
#[cfg(target_arch = "x86_64")]
const OLD_REFUSED: &[libc::c_long] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_REFUSED: &[libc::c_long] = &[];

/// Restricts this thread and those that it starts later, permanently. Features that the kernel lacks are left out.
pub fn confine() -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs()?;
    landlock::restrict([(Path::new("/"), FileAccess::Read)])?;
    let program = program().map_err(io::Error::other)?;
    match seccompiler::apply_filter(&program) {
        Err(error) if !Path::new("/proc/sys/kernel/seccomp").exists() => drop(error),
        other => other.map_err(io::Error::other)?,
    }
    Ok(())
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(OLD_REFUSED).map(|call| (*call, Vec::new())).collect();
    // Opening for writing is refused by the filter as well, for kernels without Landlock.
    let opens = |mode: i32| {
        let mask = SeccompCmpOp::MaskedEq(libc::O_ACCMODE as u64);
        SeccompRule::new(vec![SeccompCondition::new(2, SeccompCmpArgLen::Dword, mask, mode as u64)?])
    };
    rules.insert(libc::SYS_openat, vec![opens(libc::O_WRONLY)?, opens(libc::O_RDWR)?]);
    // Of other processes than this one: by the first it ends itself (abort(3)), by the other the C library asks for limits.
    for (call, own) in [(libc::SYS_tgkill, std::process::id()), (libc::SYS_prlimit64, 0)] {
        let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, own.into())?;
        rules.insert(call, vec![SeccompRule::new(vec![other])?]);
    }
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32), architecture)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_or_started() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, "x").unwrap();
        std::thread::scope(|scope| {
            // This confines only the new thread.
            let confined = scope.spawn(|| {
                confine().unwrap();
                let read = std::fs::read("/proc/self/status").is_ok() && std::fs::read(&path).is_ok();
                let started = std::process::Command::new("/bin/true").status().is_ok();
                let connected = std::net::UdpSocket::bind("127.0.0.1:0").is_ok();
                let written = std::fs::write(&path, "y").is_ok() || std::fs::remove_file(&path).is_ok();
                let thread = std::thread::spawn(|| std::fs::read_dir("/").is_ok()).join().unwrap_or_default();
                (read, started, connected, written, thread)
            });
            assert_eq!(confined.join().unwrap(), (true, false, false, false, true));
        });
    }

    /// What has the same effect as a refused call is refused, too.
    #[test]
    fn there_is_no_way_round() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, "x").unwrap();
        let parent = nix::unistd::getppid();
        let own = nix::unistd::getpid();
        std::thread::scope(|scope| {
            let confined = scope.spawn(|| {
                confine().unwrap();
                let file = std::fs::File::open(&path).unwrap();
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
                let refused =
                    |result: libc::c_long| result == -1 && nix::errno::Errno::last() == nix::errno::Errno::EPERM;
                let parameters = [0u8; 120];
                // SAFETY: the kernel is asked for nothing but whether it would do so.
                let by_ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_ptr()) };
                let ring = refused(by_ring);
                // SAFETY: signal 0 is none.
                let signal = refused(unsafe { libc::syscall(libc::SYS_tgkill, parent.as_raw(), parent.as_raw(), 0) });
                // SAFETY: as above; to itself it may.
                let itself = unsafe { libc::syscall(libc::SYS_tgkill, own.as_raw(), own.as_raw(), 0) };
                (
                    ring,
                    signal,
                    itself,
                    file.set_permissions(mode).is_err(),
                    file.set_modified(std::time::UNIX_EPOCH).is_err(),
                )
            });
            assert_eq!(confined.join().unwrap(), (true, true, 0, true, true));
        });
    }
}
