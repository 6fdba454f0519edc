//! Clocks.

use super::{Builtin, builtin};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("gettimeofday_s" "gettimeofday_s" () -> Long [pure] "seconds since the epoch"),
    builtin!("gettimeofday_ms" "gettimeofday_ms" () -> Long [pure] "milliseconds since the epoch"),
    builtin!("gettimeofday_us" "gettimeofday_us" () -> Long [pure] "microseconds since the epoch"),
    builtin!("gettimeofday_ns" "gettimeofday_ns" () -> Long [pure] "nanoseconds since the epoch"),
    builtin!("ktime_get_ns" "ktime_get_ns" () -> Long [pure] "nanoseconds since boot, monotonic"),
    builtin!("jiffies" "jiffies" () -> Long [pure] "timer ticks since boot"),
    builtin!("HZ" "HZ" () -> Long [pure] "timer ticks per second"),
    builtin!("get_cycles" "get_cycles" () -> Long [pure] "the CPU's cycle counter; 0 where there is none"),
];
