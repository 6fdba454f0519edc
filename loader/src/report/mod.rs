// SPDX-License-Identifier: GPL-2.0-or-later

//! Reports about a session: losses, skipped handlers, hits of the probes.

pub mod account;
pub mod budget;
pub mod exporter;
pub mod status;
mod targets;

use spile_abi::device::Counters;
use spile_abi::meta::Probe;

/// CPUs that a message names: hundreds would make a line of many kilobytes.
const NAMED_CPUS: usize = 8;

/// Records lost for lack of space, by CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// CPU, records, bytes; only CPUs that lost some.
    pub cpus: Vec<(u32, u64, u64)>,
}

impl Losses {
    /// The number of lost records of all CPUs.
    pub fn records(&self) -> u64 {
        self.cpus.iter().fold(0, |sum, (_, records, _)| sum.saturating_add(*records))
    }

    /// Each CPU, or those that have lost most and the sum of the others.
    fn by_cpu(&self) -> Vec<String> {
        let mut named = self.cpus.clone();
        named.sort_by_key(|(cpu, records, _)| (std::cmp::Reverse(*records), *cpu));
        let others = Losses { cpus: named.split_off(named.len().min(NAMED_CPUS)) };
        named.sort_unstable();
        let mut texts: Vec<String> =
            named.iter().map(|(cpu, records, bytes)| format!("CPU {cpu}: {records} ({bytes} bytes)")).collect();
        if !others.cpus.is_empty() {
            let cpus = if others.cpus.len() == 1 { "CPU" } else { "CPUs" };
            texts.push(format!("{} more {cpus}: {}", others.cpus.len(), others.records()));
        }
        texts
    }

    /// A message during the session or (`at_end`) for all of it. `ring_bytes`: the current size.
    pub fn text(&self, ring_bytes: u32, at_end: bool) -> String {
        // Twice the size, in whole MB.
        let advised = (u64::from(ring_bytes) * 2).div_ceil(1 << 20);
        let so_far = if at_end { "" } else { " so far" };
        format!(
            "{} records were lost{so_far} ({}); try a larger buffer than {} KB on each CPU: -s {advised}",
            self.records(),
            self.by_cpu().join(", "),
            ring_bytes >> 10,
        )
    }
}

/// The counters of one probe site: `hits` is the sum of the others.
pub fn account(probe: &Probe, counters: &Counters) -> String {
    let Counters {
        hits,
        handled,
        filtered,
        nested,
        lock_skipped,
        low_stack,
        stopped,
        sampled,
        errors,
        return_misses,
        lost_records,
        faulted_in,
        ..
    } = *counters;
    let parts = [
        ("handled", handled),
        ("filtered", filtered),
        ("nested", nested),
        ("locked", lock_skipped),
        ("low stack", low_stack),
        ("before start or after stop", stopped),
        ("sampled", sampled),
        ("return misses", return_misses),
    ];
    let mut text = format!("{} ({}): hits {hits}", probe.point, probe.place);
    let parts: Vec<String> =
        parts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name} {count}")).collect();
    if !parts.is_empty() {
        text.push_str(&format!(" = {}", parts.join(" + ")));
    }
    for (name, count) in [("errors", errors), ("records lost", lost_records), ("faulted in", faulted_in)] {
        if count > 0 {
            text.push_str(&format!(", {name} {count}"));
        }
    }
    let by = crate::report::account::mechanism(counters);
    if !by.is_empty() {
        text.push_str(&format!("; by {by}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe() -> Probe {
        Probe { point: "timer.s(1)".into(), script_point: "timer.s(1)".into(), place: "a.stp:1:1".into() }
    }

    #[test]
    fn losses_name_cpus_and_what_to_do() {
        let losses = Losses { cpus: vec![(0, 3, 120), (5, 4, 160)] };
        let text = losses.text(1 << 20, true);
        assert_eq!(
            text,
            "7 records were lost (CPU 0: 3 (120 bytes), CPU 5: 4 (160 bytes)); \
             try a larger buffer than 1024 KB on each CPU: -s 2"
        );
        assert!(losses.text(65_536, false).ends_with(
            "lost so far (CPU 0: 3 (120 bytes), CPU 5: 4 (160 bytes)); try a larger buffer than 64 KB on each CPU: -s 1"
        ));
    }

    #[test]
    fn of_many_cpus_those_with_most_losses_are_named() {
        let losses = Losses { cpus: (0..64).map(|cpu| (cpu, u64::from(cpu % 10), 100)).collect() };
        let text = losses.text(1 << 20, true);
        // Of the six that have lost 9 each, and of those that have lost 8, the first two.
        let named = "(CPU 8: 8 (100 bytes), CPU 9: 9 (100 bytes), CPU 18: 8 (100 bytes), CPU 19: 9 (100 bytes), \
                     CPU 29: 9 (100 bytes), CPU 39: 9 (100 bytes), CPU 49: 9 (100 bytes), CPU 59: 9 (100 bytes), \
                     56 more CPUs: 206)";
        assert!(text.starts_with("276 records were lost ") && text.contains(named), "{text}");
        let losses = Losses { cpus: losses.cpus.into_iter().take(9).collect() };
        assert!(losses.text(1 << 20, true).contains(", 1 more CPU: 0)"), "{losses:?}");
    }

    #[test]
    fn accounts_add_up() {
        let counters = Counters {
            hits: 13,
            handled: 7,
            nested: 1,
            stopped: 2,
            errors: 2,
            return_misses: 3,
            mechanism: 7,
            ..Counters::default()
        };
        assert_eq!(
            account(&probe(), &counters),
            "timer.s(1) (a.stp:1:1): hits 13 = handled 7 + nested 1 + before start or after stop 2 + return misses 3, errors 2; by timer"
        );
        assert_eq!(account(&probe(), &Counters::default()), "timer.s(1) (a.stp:1:1): hits 0");
    }
}
