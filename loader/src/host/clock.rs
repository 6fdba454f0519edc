// SPDX-License-Identifier: GPL-2.0-or-later

//! The clock of record time stamps.

use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds, the clock of [`spile_abi::record::Record::time`].
pub fn now() -> u64 {
    // SANITY: the kernel always has this clock.
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(nix::sys::time::TimeSpec::new(0, 0));
    (time.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec() as u64)
}
