// SPDX-License-Identifier: GPL-2.0-or-later

//! How arrays are locked, and why some are as a whole: for who wants to know what a script costs on many CPUs.

use crate::program::same_key::More;

/// How handlers of armed probes exclude each other from an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locking {
    /// Nothing changes it while probes are armed.
    None,
    /// Each CPU has its own values.
    EachCpu,
    /// A handler takes the lock of the stripe that its element is in.
    Striped,
    /// A handler takes the lock of all of it.
    Whole(Reason),
}

/// Why an array has one lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `-D WHOLE_LOCKS`.
    Asked,
    /// When it is full, the element made first leaves, wherever that is.
    Wraps,
    /// The condition of a probe point reads it.
    Condition,
    /// The script's own C uses it.
    Embedded,
    /// What a return probe saves at its function's entry uses it: of the probe with that index.
    Entry(usize),
    /// Of the probe with that index: its handler uses more than one element known when it begins.
    Handler(usize, More),
    /// Its handler uses more arrays with stripes than it can hold.
    TooMany(usize),
    /// Only timers and files in /proc use it.
    Rare,
}
