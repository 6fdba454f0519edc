// SPDX-License-Identifier: GPL-2.0-or-later

//! `-D NAME=VALUE`: the limits that guard a script, with SystemTap's names and defaults.

use spile_abi::format::{Chart, STACK_FRAMES};
use spile_core::plan::Limits;

/// Names that [`read`] knows, for help and messages.
pub const NAMES: &str = "HIST_ELISION, HIST_WIDTH, INTERRUPTIBLE, KRETACTIVE, MAXACTION, MAXACTION_INTERRUPTIBLE, MAXBACKTRACE, MAXERRORS, MAXMAPENTRIES, MAXNESTING, \
     MAXSKIPPED, MAXSTACKBYTES, MAXSTACKWAIT, MAXSTRINGLEN, MAXTRACE, MAXTRYLOCK, MINSTACKSPACE, STP_ALIBI, STP_NO_OVERLOAD, STP_OVERLOAD_INTERVAL, STP_OVERLOAD_THRESHOLD, STRUCT_DEPTH, TRYLOCKDELAY, WHOLE_LOCKS";

/// Sizes and methods of SystemTap's runtime that ours does not have.
const WITHOUT_EFFECT: [&str; 17] = [
    "MAPHASHBIAS",
    "MAXUPROBES",
    "STAP_OVERRIDE_STUCK_CONTEXT",
    "STP_CTL_TIMER_INTERVAL",
    "STP_FORCE_STDOUT_TTY",
    "STP_MAXMEMORY",
    "STP_MAX_PROCFS_FILES",
    "STP_NO_BUILDID_CHECK",
    "STP_ON_THE_FLY_INTERVAL",
    "STP_PROCFS_BUFSIZE",
    "STP_RELAY_TIMER_INTERVAL",
    "STP_TIMELOCKDELAY",
    "STP_TIMELOCKTRIES",
    "STP_TIMING",
    "STP_TIME_SYNC_INTERVAL",
    "TASK_FINDER_MAP_ENTRY_ITEMS",
    "TASK_FINDER_VMA_ENTRY_ITEMS",
];

/// Whether SystemTap's runtime reads this name, and it has no meaning here: what it reports of itself, or one of the above.
pub fn is_of_systemtap(name: &str) -> bool {
    name.starts_with("DEBUG_") || WITHOUT_EFFECT.contains(&name)
}

/// SystemTap's MAXACTION_INTERRUPTIBLE, if not given, is this many times MAXACTION.
const INTERRUPTIBLE_FACTOR: u32 = 10;

/// Applies all `-D` to the limits; the error says which one is invalid. Returns those that are not limits: names and values
/// for embedded C.
///
/// With INTERRUPTIBLE=0 a handler may execute MAXACTION statements. Otherwise, and that is the default, it may execute
/// MAXACTION_INTERRUPTIBLE. Of our handlers those of begin, end and error probes run with interrupts on, and let others
/// run in between; all others run with interrupts off. The names mean the same budgets nevertheless.
pub fn read(defines: &[String], limits: &mut Limits) -> Result<Vec<(String, String)>, String> {
    let mut others = Vec::new();
    let (mut actions, mut interruptible_actions, mut interruptible) = (None, None, true);
    let (mut tries, mut delay) = (None, None);
    for define in defines {
        let (name, value) = define.split_once('=').unwrap_or((define, "1"));
        let number = |low: u64, high: u64| match value.parse::<u64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(format!("-D {define}: {name} is a number from {low} to {high}")),
        };
        let small = |low: u32, high: u32| number(low.into(), high.into()).map(|number| number as u32);
        let most = i32::MAX as u32;
        match name {
            // Negative: all rows.
            "HIST_ELISION" if value.starts_with('-') && is_number(value) => limits.chart.kept = None,
            "HIST_ELISION" => limits.chart.kept = Some(small(0, most)?.min(Chart::MOST.into()) as u8),
            "HIST_WIDTH" => limits.chart.columns = small(1, 255)? as u8,
            "INTERRUPTIBLE" => interruptible = small(0, 1)? == 1,
            "KRETACTIVE" => limits.active_returns = small(1, 1 << 20)?,
            "MAXACTION" => actions = Some(small(1, most)?),
            "MAXACTION_INTERRUPTIBLE" => interruptible_actions = Some(small(1, most)?),
            // The second is the name of older versions.
            "MAXBACKTRACE" | "MAXTRACE" => limits.stack_frames = small(1, STACK_FRAMES)?,
            "MAXERRORS" => limits.max_errors = small(0, most)?,
            "MAXMAPENTRIES" => limits.map_entries = small(1, 1 << 24)?,
            "MAXNESTING" => limits.max_nesting = Some(small(1, 200)?),
            "MAXSKIPPED" => limits.max_skipped = small(0, most)?,
            "MAXSTACKBYTES" => limits.kept_bytes = Some(small(4096, 1 << 30)?),
            "MAXSTACKWAIT" => limits.stack_wait = small(0, 10_000)?,
            "MAXSTRINGLEN" => limits.string_bytes = small(16, 65_536)?,
            "MAXTRYLOCK" => tries = Some(small(1, 1_000_000)?),
            "MINSTACKSPACE" => limits.least_stack = small(1024, 1 << 15)?,
            // Limits of the resolver.
            "STAP_CALLEE_MATCHALL" => {}
            // What --suppress-handler-errors defines in SystemTap.
            "STAP_SUPPRESS_HANDLER_ERRORS" => {
                (limits.suppress_errors, limits.max_skipped) = (true, i32::MAX as u32);
            }
            "STP_ALIBI" => limits.counts_only = true,
            "WHOLE_LOCKS" => limits.whole_locks = true,
            "STP_NO_OVERLOAD" => limits.no_overload = true,
            "STP_OVERLOAD_INTERVAL" => limits.overload_interval = number(1_000_000, 1 << 40)?,
            "STP_OVERLOAD_THRESHOLD" => limits.overload_threshold = number(1, 1 << 40)?,
            "STRUCT_DEPTH" => limits.struct_depth = Some(small(1, most)?),
            "TRYLOCKDELAY" => delay = Some(small(1, 1_000_000)?),
            _ if is_name(name) && !value.contains(['\n', '\r', '\\']) => {
                others.push((name.to_string(), value.to_string()));
            }
            _ => return Err(format!("-D {define}: neither a limit ({NAMES}) nor a name that can be defined for C")),
        }
    }
    limits.max_actions = statements_per_run(interruptible, interruptible_actions, actions, limits.max_actions);
    if tries.is_some() || delay.is_some() {
        let micros = u64::from(tries.unwrap_or(100)) * u64::from(delay.unwrap_or(10));
        // No wait may exceed the kernel's watchdogs.
        limits.lock_wait = (micros * 1000).min(1_000_000_000) as u32;
    }
    Ok(others)
}

/// How many statements a run of a handler may execute, from INTERRUPTIBLE, MAXACTION_INTERRUPTIBLE and MAXACTION; `most`:
/// if none of them is given.
fn statements_per_run(interruptible: bool, interruptible_actions: Option<u32>, actions: Option<u32>, most: u32) -> u32 {
    match (interruptible, interruptible_actions, actions) {
        (true, Some(actions), _) | (false, _, Some(actions)) => actions,
        (true, None, Some(actions)) => actions.saturating_mul(INTERRUPTIBLE_FACTOR).min(i32::MAX as u32),
        // Unless --suppress-time-limits has set more.
        (false, _, None) if most == Limits::default().max_actions => most / INTERRUPTIBLE_FACTOR,
        (_, _, None) => most,
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<i64>().is_ok()
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(defines: &[&str]) -> Result<Limits, String> {
        let mut limits = Limits::default();
        let defines: Vec<String> = defines.iter().map(ToString::to_string).collect();
        read(&defines, &mut limits).map(|_| limits)
    }

    #[test]
    fn statements_of_a_handler() {
        let actions = |defines: &[&str]| limits(defines).map(|limits| limits.max_actions);
        assert_eq!(actions(&[]), Ok(10_000));
        assert_eq!(actions(&["MAXACTION=7"]), Ok(70));
        assert_eq!(actions(&["MAXACTION=7", "MAXACTION_INTERRUPTIBLE=5"]), Ok(5));
        assert_eq!(actions(&["INTERRUPTIBLE=0"]), Ok(1000));
        assert_eq!(actions(&["INTERRUPTIBLE=0", "MAXACTION=7", "MAXACTION_INTERRUPTIBLE=5"]), Ok(7));
        assert_eq!(actions(&["MAXACTION=2147483647"]), Ok(2_147_483_647));
    }

    #[test]
    fn names_of_systemtap() {
        let errors =
            limits(&["STAP_SUPPRESS_HANDLER_ERRORS"]).map(|limits| (limits.suppress_errors, limits.max_skipped));
        assert_eq!(errors, Ok((true, i32::MAX as u32)));
        let known = ["DEBUG_MEM", "MAPHASHBIAS", "MAXACTON", "STP_TIMING", "STP_OVERLOAD"].map(is_of_systemtap);
        assert_eq!(known, [true, true, false, true, false]);
    }

    #[test]
    fn time_spent_waiting_for_a_lock() {
        let wait = |defines: &[&str]| limits(defines).map(|limits| limits.lock_wait);
        assert_eq!(wait(&[]), Ok(1_000_000));
        assert_eq!(wait(&["MAXTRYLOCK=1000"]), Ok(10_000_000));
        assert_eq!(wait(&["TRYLOCKDELAY=1", "MAXTRYLOCK=5"]), Ok(5_000));
        assert_eq!(wait(&["TRYLOCKDELAY=1000000", "MAXTRYLOCK=1000000"]), Ok(1_000_000_000));
    }

    #[test]
    fn charts() {
        let chart = |defines: &[&str]| limits(defines).map(|limits| (limits.chart.columns, limits.chart.kept));
        assert_eq!(chart(&[]), Ok((50, Some(2))));
        assert_eq!(chart(&["HIST_WIDTH=20", "HIST_ELISION=0"]), Ok((20, Some(0))));
        assert_eq!(chart(&["HIST_ELISION=-1"]), Ok((50, None)));
        assert_eq!(chart(&["HIST_ELISION=1000"]), Ok((50, Some(254))));
        assert!(chart(&["HIST_WIDTH=0"]).is_err() && chart(&["HIST_ELISION=-x"]).is_err());
    }

    #[test]
    fn frames_of_a_stack() {
        let frames = |defines: &[&str]| limits(defines).map(|limits| limits.stack_frames);
        assert_eq!(frames(&[]), Ok(128));
        assert_eq!(frames(&["MAXBACKTRACE=20"]), Ok(20));
        assert_eq!(frames(&["MAXTRACE=1"]), Ok(1));
        assert!(frames(&["MAXBACKTRACE=129"]).is_err() && frames(&["MAXTRACE=0"]).is_err());
    }

    #[test]
    fn mistakes_are_told() {
        assert_eq!(limits(&["MAXERRORS=x"]), Err("-D MAXERRORS=x: MAXERRORS is a number from 0 to 2147483647".into()));
        assert!(limits(&["MAXSTRINGLEN"]).is_err());
        assert!(limits(&["MAX-FOO=1"]).is_err_and(|message| message.contains("MAXTRYLOCK")));
        assert!(limits(&["FOO=1\n#error"]).is_err());
        assert!(limits(&["STP_NO_OVERLOAD"]).is_ok_and(|limits| limits.no_overload));
    }
}
