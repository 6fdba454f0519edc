// SPDX-License-Identifier: GPL-2.0-or-later

//! Clocks.

use super::{Builtin, builtin};

/// The builtins of this subject.
pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("gettimeofday_s" "gettimeofday_s" () -> Long [pure] "seconds since the epoch"),
    builtin!("gettimeofday_ms" "gettimeofday_ms" () -> Long [pure] "milliseconds since the epoch"),
    builtin!("gettimeofday_us" "gettimeofday_us" () -> Long [pure] "microseconds since the epoch"),
    builtin!("gettimeofday_ns" "gettimeofday_ns" () -> Long [pure] "nanoseconds since the epoch"),
    builtin!("ktime_get_ns" "ktime_get_ns" () -> Long [pure] "nanoseconds since boot, monotonic"),
    builtin!("jiffies" "jiffies" () -> Long [pure] "the kernel's variable of that name: it counts timer ticks, and begins five minutes before 32 bits are full"),
    builtin!("HZ" "HZ" () -> Long [pure] "timer ticks per second"),
    builtin!("get_cycles" "get_cycles" () -> Long [pure] "the CPU's cycle counter; 0 where there is none"),
    builtin!("ctime" "ctime" ("seconds": Long) -> String [fails pure] "seconds since the epoch as \"Wed Jun 30 21:49:08 1993\", UTC"),
    builtin!("local_clock_ns" "local_clock_ns" () -> Long [pure] "nanoseconds of this CPU's clock"),
    builtin!("cpu_clock_ns" "cpu_clock_ns" ("cpu": Long) -> Long [pure] "nanoseconds of a CPU's clock"),
    builtin!("local_clock_us" "local_clock_us" () -> Long [pure] "microseconds of this CPU's clock"),
    builtin!("cpu_clock_us" "cpu_clock_us" ("cpu": Long) -> Long [pure] "microseconds of a CPU's clock"),
    builtin!("local_clock_ms" "local_clock_ms" () -> Long [pure] "milliseconds of this CPU's clock"),
    builtin!("cpu_clock_ms" "cpu_clock_ms" ("cpu": Long) -> Long [pure] "milliseconds of a CPU's clock"),
    builtin!("local_clock_s" "local_clock_s" () -> Long [pure] "seconds of this CPU's clock"),
    builtin!("cpu_clock_s" "cpu_clock_s" ("cpu": Long) -> Long [pure] "seconds of a CPU's clock"),
];
