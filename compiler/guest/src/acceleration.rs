// SPDX-License-Identifier: GPL-2.0-or-later

//! How a guest's instructions are executed.

/// The accelerator of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceleration {
    /// KVM.
    Kvm,
    /// Translation by qemu (TCG).
    Tcg,
    /// TCG with a clock that advances by 1 ns for each instruction executed: costs can be counted. One CPU.
    Counting,
    /// TCG with a thread for each CPU, so that they run at the same time. For qemu 8.1 and later
    /// ([`Guest::emulator`](super::Guest::emulator)), and probes that nothing hits while they are armed or disarmed:
    /// see below.
    Parallel,
}

impl Acceleration {
    /// The value of qemu's `-accel`.
    pub(super) fn argument(self) -> &'static str {
        match self {
            Acceleration::Kvm => "kvm",
            // Not thread=multi: until QEMU 8.1 a CPU may continue to execute an instruction that another CPU has
            // replaced (measured with 7.2: a bare kprobe on vfs_read, armed and disarmed under load, jumps to address
            // 0).
            Acceleration::Tcg | Acceleration::Counting => "tcg,thread=single",
            Acceleration::Parallel => "tcg,thread=multi",
        }
    }

    /// The value of qemu's `-cpu`.
    pub(super) fn processor(self) -> &'static str {
        match self {
            // A CPU without "fast" string instructions: the guest's kernel then copies and clears memory by eight
            // bytes at a time. TCG executes each of them like one byte. Nor does it walk a fifth level of page tables,
            // which few machines have.
            Acceleration::Tcg | Acceleration::Parallel => "max,erms=off,fsrm=off,la57=off",
            // The documented costs were counted with this one.
            Acceleration::Kvm | Acceleration::Counting => "max",
        }
    }

    /// The value of qemu's `-icount`.
    pub(super) fn counting(self) -> Option<&'static str> {
        (self == Acceleration::Counting).then_some("shift=0,sleep=off")
    }

    /// Name in the cache.
    pub(super) fn word(self) -> &'static str {
        match self {
            Acceleration::Kvm => "kvm",
            Acceleration::Tcg => "tcg",
            Acceleration::Counting => "counting",
            Acceleration::Parallel => "parallel",
        }
    }
}
