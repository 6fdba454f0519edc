// SPDX-License-Identifier: GPL-2.0-or-later

//! Messages and the session's end.

use super::{Builtin, builtin};

/// The builtins of this subject.
pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("log" "log" ("text": String) [] "prints a line"),
    builtin!("warn" "warn" ("text": String) [] "a warning on stderr"),
    builtin!("error" "error" ("text": String) [fails] "a run-time error: ends the handler, and the session when there are too many"),
    builtin!("exit" "exit" () [] "ends the session; this handler continues, no other starts"),
    builtin!("abort" "abort" () [fails] "ends the session and this handler at once"),
    builtin!("ftrace" "ftrace" ("text": String) [] "a line in the kernel's trace buffer"),
    builtin!("dump_stack" "dump_stack" () [guru] "the kernel's stack into its log"),
    builtin!("panic" "panic" ("text": String) [guru] "stops the machine with that message"),
    builtin!("raise" "raise" ("signal": Long) [guru fails] "sends a signal to the current process"),
    builtin!("mdelay" "mdelay" ("milliseconds": Long) [guru fails] "keeps the CPU busy for this time, one second at most"),
    builtin!("udelay" "udelay" ("microseconds": Long) [guru fails] "keeps the CPU busy for this time, one second at most"),
    builtin!("printk" "printk" ("level": Long, "text": String) [guru] "a line in the kernel's log"),
    builtin!("system" "system" ("command": String) [] "the loader runs a command in the background, as the user who started it"),
];
