// SPDX-License-Identifier: GPL-2.0-or-later

//! Limits of a module, and their defaults.

use spile_abi::format::Chart;

/// Limits of section 4.1 of the manual, each set by `-D NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// MAXSTRINGLEN: bytes of a string with its NUL.
    pub string_bytes: u32,
    /// Like `string_bytes`, for the room in an element of an array; longer strings are in memory of `kept_bytes`. None:
    /// there are no longer ones.
    pub slot_bytes: Option<u32>,
    /// MAXSTACKBYTES: memory for strings that are longer than elements; None: as arrays need.
    pub kept_bytes: Option<u32>,
    /// MAXBACKTRACE: frames of a stack.
    pub stack_frames: u32,
    /// MAXSTACKWAIT: ms that a task waits for the tables of its program, for stacks of user space.
    pub stack_wait: u32,
    /// MAXACTION_INTERRUPTIBLE, or MAXACTION where INTERRUPTIBLE is 0: statements of one handler run.
    pub max_actions: u32,
    /// MAXNESTING; None: the depth that the script needs, 10 more if a function calls itself.
    pub max_nesting: Option<u32>,
    /// MAXERRORS: run-time errors tolerated before the session ends.
    pub max_errors: u32,
    /// MAXMAPENTRIES: elements of an array whose declaration gives no size.
    pub map_entries: u32,
    /// MAXSKIPPED: skipped handler runs (for busy locks: of one CPU in a second) tolerated before the session ends.
    pub max_skipped: u32,
    /// `--suppress-handler-errors`: a run-time error only ends its handler and is counted.
    pub suppress_errors: bool,
    /// STP_NO_OVERLOAD: the time that handlers may take of a CPU is not limited.
    pub no_overload: bool,
    /// STP_OVERLOAD_INTERVAL: CPU cycles over which the time of handlers is summed; 0: the runtime's.
    pub overload_interval: u64,
    /// STP_OVERLOAD_THRESHOLD: CPU cycles of an interval that handlers of one CPU may take; 0: the runtime's.
    pub overload_threshold: u64,
    /// MAXTRYLOCK times TRYLOCKDELAY: ns that a handler waits for a lock whose holder makes no progress before it is skipped.
    pub lock_wait: u32,
    /// MINSTACKSPACE: bytes of kernel stack that a handler needs, else it is skipped.
    pub least_stack: u32,
    /// KRETACTIVE: calls in flight that a .return probe without .maxactive follows; 0: the runtime's.
    pub active_returns: u32,
    /// STRUCT_DEPTH: levels of nested structs and arrays that `$x$$` shows; None: all.
    pub struct_depth: Option<u32>,
    /// WHOLE_LOCKS: a handler that changes an array locks all of it.
    pub whole_locks: bool,
    /// HIST_WIDTH and HIST_ELISION: how histograms are drawn.
    pub chart: Chart,
    /// STP_ALIBI: handlers do nothing, only their hits are counted.
    pub counts_only: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            string_bytes: 512,
            slot_bytes: None,
            kept_bytes: None,
            stack_frames: spile_abi::format::STACK_FRAMES,
            stack_wait: 500,
            max_actions: 10_000,
            max_nesting: None,
            max_errors: 0,
            map_entries: 2048,
            max_skipped: 100,
            suppress_errors: false,
            no_overload: false,
            overload_interval: 0,
            overload_threshold: 0,
            lock_wait: 1_000_000,
            // Twice SystemTap's: the kernel functions that a handler calls need stack too.
            least_stack: 2048,
            active_returns: 0,
            struct_depth: None,
            whole_locks: false,
            chart: Chart::default(),
            counts_only: false,
        }
    }
}
