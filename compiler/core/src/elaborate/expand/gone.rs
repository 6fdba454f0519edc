// SPDX-License-Identifier: GPL-2.0-or-later

//! Documented probe points that a kernel cannot offer, and what it offers instead: takes a point as written, gives the
//! sentence for the diagnostic.
//!
//! Some names went with the functions that they stood for, some depend on how the kernel is built, and some are markers of
//! SystemTap itself.

use spile_syntax::ast::Component;

/// Name without `.return`; one that ends in a dot is a prefix. Second: what exists instead.
const GONE: &[(&str, &str)] = &[
    ("generic.fop.aio_read", "kernels since 4.1 read through generic.fop.read_iter"),
    ("generic.fop.aio_write", "kernels since 4.1 write through generic.fop.write_iter"),
    ("generic.fop.read", "kernels since 4.1 read through generic.fop.read_iter"),
    ("generic.fop.readv", "kernels since 4.1 read through generic.fop.read_iter"),
    ("generic.fop.sendfile", "kernels since 2.6.23 send through generic.fop.splice_read"),
    ("generic.fop.write", "kernels since 4.1 write through generic.fop.write_iter"),
    ("generic.fop.writev", "kernels since 4.1 write through generic.fop.write_iter"),
    ("generic.aop.writepages", "kernels since 6.3 have no such function: use kernel.trace(\"writeback:*\")"),
    ("ioscheduler.elv_add_request.kp", "kernels since 5.0 have no such function: use ioscheduler.elv_add_request"),
    (
        "ioscheduler.elv_next_request",
        "kernels since 5.0 have no such function: use ioscheduler_trace.elv_issue_request, for requests that go to the driver",
    ),
    (
        "ioscheduler_trace.elv_abort_request",
        "kernels since 2.6.39 have no such tracepoint: use ioscheduler_trace.elv_requeue_request, for requests that come back",
    ),
    (
        "ioscheduler_trace.unplug_timer",
        "kernels since 2.6.39 have no such tracepoint: use ioscheduler_trace.unplug_io, which is hit for all of them",
    ),
    ("nfs.fop.sendfile", "kernels since 2.6.23 send through generic.fop.splice_read"),
    (
        "nfs.proc3.commit",
        "kernels since 2.6.21 have no such function: use nfs.proc3.commit_setup and nfs.proc3.commit_done",
    ),
    ("nfsd.proc2.", "this kernel's server has no version 2 (CONFIG_NFSD_V2): use nfsd.proc3 and nfsd.proc4"),
    ("nfsd.close", "kernels since 4.2 have no such function: use nfsd.commit and kernel.function(\"filp_close\")"),
    ("scsi.ioentry.prepare", "kernels since 5.0 prepare every request in scsi.ioentry.mq_prep"),
    ("scsi.ioentry.scsilib", "kernels since 5.0 prepare every request in scsi.ioentry.mq_prep"),
    (
        "vfs.block_sync_page",
        "kernels since 2.6.39 have no such function: use ioscheduler_trace.unplug_io, which is hit when requests are released",
    ),
    ("stap.", "the translator has no such markers: --time-report shows how long each pass took"),
    (
        "staprun.",
        "the loader has no such markers: use syscall.init_module, syscall.finit_module and syscall.delete_module",
    ),
    ("stapio.", "the loader has no such markers: syscall.read and syscall.write see what it does"),
    (
        "python.",
        "scripts of Python are not probed: process(..).mark(..) sees the markers of an interpreter that is built with them",
    ),
    ("syscall.vm86_warning", "only 32-bit kernels have it: syscall.vm86old and syscall.vm86 do there"),
    ("syscall.tux", "no kernel has had it: syscall_any sees calls by number"),
    (
        "syscall.sysctl",
        "kernels since 5.5 have no such call: reads and writes of /proc/sys are syscall.read and syscall.write",
    ),
    (
        "syscall.sysctl32",
        "kernels since 5.5 have no such call: reads and writes of /proc/sys are syscall.read and syscall.write",
    ),
    (
        "syscall.pselect7",
        "the kernel has no such call: syscall.pselect6, and syscall.compat_pselect6 of 32-bit programs",
    ),
    ("syscall.compat_pselect7", "the kernel has no such call: syscall.compat_pselect6"),
    (
        "syscall.fadvise64_64",
        "only 32-bit kernels have it: syscall.fadvise64, and syscall.compat_fadvise64_64 of 32-bit programs",
    ),
    ("syscall.sigaction32", "only 32-bit programs have the call at all: syscall.sigaction"),
    ("syscall.timerfd", "kernels since 2.6.25 have syscall.timerfd_create"),
    ("syscall.bdflush", "kernels since 5.15 have no such call: syscall.sync and syscall.syncfs write what is dirty"),
    ("syscall.gethostname", "x86 has no such call: syscall.uname gives the name"),
];

/// What exists instead of a point with these components.
pub(super) fn instead(components: &[Component]) -> Option<&'static str> {
    let names: Vec<&str> = components.iter().map(|component| component.name.as_str()).collect();
    instead_of(&names.join("."))
}

fn instead_of(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix(".return").unwrap_or(name);
    let name = ["nd_syscall.", "dw_syscall.", "tp_syscall."]
        .iter()
        .find_map(|family| name.strip_prefix(family))
        .map_or_else(|| name.to_string(), |call| format!("syscall.{call}"));
    let fits = |gone: &str| if gone.ends_with('.') { name.starts_with(gone) } else { name == gone };
    GONE.iter().find(|(gone, _)| fits(gone)).map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_and_return_of_every_family() {
        assert_eq!(instead_of("generic.fop.read.return"), instead_of("generic.fop.read"));
        assert!(instead_of("nd_syscall.sysctl.return").is_some_and(|text| text.contains("/proc/sys")));
        assert!(instead_of("stap.pass1.end").is_some());
        assert!(instead_of("vfs.read").is_none() && instead_of("nfs.fop.read_iter").is_none());
    }

    #[test]
    fn each_is_there_once() {
        for (index, (name, _)) in GONE.iter().enumerate() {
            assert!(GONE[..index].iter().all(|(other, _)| other != name), "{name}");
        }
    }
}
