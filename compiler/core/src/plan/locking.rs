// SPDX-License-Identifier: GPL-2.0-or-later

//! How arrays are locked, and why some are locked as a whole: reported to users, who want to know the cost on many
//! CPUs.

use crate::program::element_uses::WholeArray;

/// How handlers of armed probes exclude each other from an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locking {
    /// Nothing changes it while probes are armed.
    None,
    /// Each CPU has its own values.
    EachCpu,
    /// A handler takes the lock of the stripe that contains its element; how many there are, and a probe whose handler takes
    /// all of them, if there is one, with the reason.
    Striped(u32, Option<(usize, WholeArray)>),
    /// A handler takes the lock of the whole array.
    Whole(Reason),
}

/// Stripes of an array (SPILE_STRIPE_BITS and SPILE_WRAP_STRIPE_BITS of runtime-c/map.h).
pub(super) fn stripes(wrap: bool) -> u32 {
    if wrap { 16 } else { 64 }
}

/// Why an array has one lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `-D WHOLE_LOCKS`.
    Asked,
    /// The condition of a probe point reads it.
    Condition,
    /// The script's embedded C uses it.
    Embedded,
    /// A value that a return probe saves at its function's entry uses it; index of the probe.
    Entry(usize),
    /// The handler of the probe with that index uses more than one element known when it begins.
    Handler(usize, WholeArray),
    /// The handler of the probe with that index knows its key only after it has taken another array, before which other
    /// handlers take it.
    Order(usize),
    /// Its handler uses more striped arrays than it can hold.
    TooMany(usize),
    /// Only timers and files in /proc use it.
    Rare,
}
