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
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
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
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_truncate,
    libc::SYS_openat2,
];

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
}
