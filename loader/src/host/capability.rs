// SPDX-License-Identifier: GPL-2.0-or-later

//! Capabilities of this thread, by capget(2) and capset(2).

use std::io;

use nix::errno::Errno;
use nix::libc;

/// Keeps the machine from its sleep by epoll(7), as a process with a file descriptor open may in other ways (CAP_BLOCK_SUSPEND).
/// Unlike others as harmless, no login gives it to users.
pub const BLOCK_SUSPEND: u64 = 1 << 36;

/// Masks, a bit for each capability (linux/capability.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sets {
    /// The effective set, which system calls are checked against.
    pub effective: u64,
    /// The permitted set.
    pub permitted: u64,
    /// The inheritable set.
    pub inheritable: u64,
}

/// `_LINUX_CAPABILITY_VERSION_3`: two words of each mask.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Words {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

impl Sets {
    /// The sets of the calling thread.
    pub fn own() -> io::Result<Sets> {
        let mut header = Header { version: VERSION, pid: 0 };
        let mut words = [Words::default(); 2];
        // SAFETY: the kernel reads the header and writes two Words, both of which live over the call.
        let result = unsafe { libc::syscall(libc::SYS_capget, std::ptr::from_mut(&mut header), words.as_mut_ptr()) };
        Errno::result(result)?;
        let [low, high] = words;
        let mask = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        Ok(Sets {
            effective: mask(low.effective, high.effective),
            permitted: mask(low.permitted, high.permitted),
            inheritable: mask(low.inheritable, high.inheritable),
        })
    }

    /// Sets the capabilities of this thread. Must be called before other threads are started.
    pub fn become_current(self) -> io::Result<()> {
        let mut header = Header { version: VERSION, pid: 0 };
        let word = |shift: u32| Words {
            effective: (self.effective >> shift) as u32,
            permitted: (self.permitted >> shift) as u32,
            inheritable: (self.inheritable >> shift) as u32,
        };
        let words = [word(0), word(32)];
        // SAFETY: the kernel reads the header and two Words, both of which live over the call.
        let result = unsafe { libc::syscall(libc::SYS_capset, std::ptr::from_mut(&mut header), words.as_ptr()) };
        Errno::result(result).map(drop).map_err(io::Error::from)
    }
}

/// Whether this program has privileges that its caller does not have (AT_SECURE of getauxval(3)).
pub fn is_elevated() -> bool {
    // SAFETY: reads the auxiliary vector that the kernel put on the stack.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_masks_are_those_of_proc() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let mask = |key: &str| {
            u64::from_str_radix(status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim(), 16).unwrap()
        };
        let own = Sets::own().unwrap();
        assert_eq!(own, Sets { effective: mask("CapEff:"), permitted: mask("CapPrm:"), inheritable: mask("CapInh:") });
        own.become_current().unwrap();
        assert!(!is_elevated());
    }
}
