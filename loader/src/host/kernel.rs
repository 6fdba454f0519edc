// SPDX-License-Identifier: GPL-2.0-or-later

//! The running kernel's release and its CPUs, and valid names of modules.

use nix::libc;

/// The kernel's limit for module names (MODULE_NAME_LEN, including the NUL).
pub const MAX_NAME: usize = 56;

/// Whether it is a valid module name, as the kernel shows it.
pub fn is_module_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.len() < MAX_NAME && name.bytes().all(allowed)
}

/// Whether it is a valid kernel release, or empty.
pub fn is_release(release: &str) -> bool {
    !release.starts_with('.') && !release.bytes().any(|byte| byte == b'/' || !byte.is_ascii_graphic())
}

/// UTS release; empty if uname(2) fails.
pub fn running_release() -> String {
    nix::sys::utsname::uname().map(|names| names.release().to_string_lossy().into_owned()).unwrap_or_default()
}

/// At least the number of CPUs that this machine can have (`nr_cpu_ids`), at most 63 more.
///
/// From sched_getaffinity(2), which refuses a shorter mask: it needs no file.
pub fn possible_cpus() -> u32 {
    let mut mask = [0u64; MOST_CPUS / 64];
    let fits = |words: &usize| {
        // SAFETY: writes at most this many words, which the mask has.
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, words * size_of::<u64>(), mask.as_mut_ptr()) > 0 }
    };
    (1..MOST_CPUS / 64).find(fits).map_or(MOST_CPUS, |words| words * 64) as u32
}

/// Beyond what kernels are built for (NR_CPUS).
const MOST_CPUS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_cpus_are_few_more_than_there_are() {
        let configured = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
        let last: u32 = configured.trim().rsplit(['-', ',']).next().unwrap().parse().unwrap();
        assert_eq!(possible_cpus(), (last + 1).next_multiple_of(64));
    }
}
