// SPDX-License-Identifier: GPL-2.0-or-later

//! `--budget`: estimates and prints the cost of a script on this machine before it runs, and enforces the limit.
//!
//! The module arms all probes for a second and counts their hits without running handlers ([`Device::measure`]). A hit
//! costs the overhead of the probe's mechanism plus the compiler's estimate for its handler, both in instructions; the
//! module measures the time of an instruction on this machine. The result is an estimate, good for the order of
//! magnitude; `--stats` shows the actual times.

use spile_abi::device::{Counters, Measure};
use spile_abi::meta::Probe;

use crate::error::Error;
use crate::host::stderr::say;
use crate::module::device::Device;
use crate::report::account;

/// Time for which hits are counted.
const MILLISECONDS: u32 = 1000;
/// The smallest useful sampling rate.
const MOST_FACTOR: u32 = 1_000_000;
/// Number of probes printed, most expensive first.
const MAX_SHOWN: usize = 10;

/// Overhead of a hit outside its handler, in instructions, by [`account::mechanism`]: docs/bench-runtime.md, less the
/// handlers there; for interrupts and exceptions including their own cost.
const OVERHEAD: [(&str, u64); 13] = [
    ("", 1500),
    ("ftrace", 110),
    ("ftrace, all registers", 150),
    ("kprobe on ftrace", 220),
    ("kprobe", 250),
    ("kretprobe", 500),
    ("tracepoint", 100),
    ("timer", 1500),
    ("perf event", 2000),
    ("file", 1500),
    ("ftrace, return hooked", 400),
    ("uprobe", 2000),
    ("uprobe, return hooked", 3500),
];

/// `PERCENT[,sample]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Limit in percent of the time of all CPUs.
    pub percent: f64,
    /// Above it, handle one in N hits; else do not run the script.
    pub sample: bool,
}

impl Budget {
    /// Parses the value of `--budget`. The error is a message.
    pub fn parse(text: &str) -> Result<Budget, String> {
        let (percent, sample) = match text.split_once(',') {
            None => (text, false),
            Some((percent, "sample")) => (percent, true),
            Some((_, other)) => return Err(format!("'{other}' is not known: expected PERCENT or PERCENT,sample")),
        };
        let percent: f64 = percent.trim_end_matches('%').parse().map_err(|_| "PERCENT is a number".to_string())?;
        if !(0.000_1..=100.0).contains(&percent) {
            return Err("PERCENT is from 0.0001 to 100".to_string());
        }
        Ok(Budget { percent, sample })
    }
}

/// The cost of one probe: hits in a second, and the percentage of all CPUs' time outside and inside the handler.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Share {
    hits: f64,
    overhead: f64,
    handler: f64,
}

impl Share {
    fn all(&self) -> f64 {
        self.overhead + self.handler
    }
}

fn share(counters: &Counters, measure: &Measure) -> Share {
    let seconds = measure.nanoseconds.max(1) as f64 / 1e9;
    let hits = counters.hits as f64 / seconds;
    let overhead =
        OVERHEAD.iter().find(|(by, _)| *by == account::mechanism(counters)).map_or(0, |(_, overhead)| *overhead);
    // Picoseconds in a second, of one hundredth of all CPUs.
    let percent = |instructions: u64| {
        hits * instructions as f64 * f64::from(measure.picoseconds) / 1e10 / f64::from(measure.cpus.max(1))
    };
    Share { hits, overhead: percent(overhead), handler: percent(counters.cost.into()) }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Fits,
    /// One in N hits.
    Sample(u32),
    /// The percentage that the hits alone cost, if that is the reason.
    Refused(Option<f64>),
}

fn judge(budget: &Budget, shares: &[Share]) -> Verdict {
    let overhead: f64 = shares.iter().map(|share| share.overhead).sum();
    let handlers: f64 = shares.iter().map(|share| share.handler).sum();
    if overhead + handlers <= budget.percent {
        return Verdict::Fits;
    }
    if !budget.sample {
        return Verdict::Refused(None);
    }
    // A skipped hit costs about half of the overhead of a run.
    let idle = overhead / 2.0;
    let factor = ((overhead - idle + handlers) / (budget.percent - idle)).ceil();
    match factor > 1.0 && factor <= f64::from(MOST_FACTOR) {
        true => Verdict::Sample(factor as u32),
        false => Verdict::Refused(Some(idle)),
    }
}

/// The lines to print: the total cost, and the most expensive probes.
fn lines(budget: &Budget, probes: &[Probe], all: &[Counters], measure: &Measure, shares: &[Share]) -> Vec<String> {
    let sum: f64 = shares.iter().map(Share::all).sum();
    let hits: f64 = shares.iter().map(|share| share.hits).sum();
    let cpus = measure.cpus;
    let mut lines = vec![format!(
        "COST: about {sum:.2}% of the time of {cpus} CPUs, with {hits:.0} hits in a second; the budget is {}%",
        budget.percent
    )];
    let mut costly: Vec<(&Probe, &Counters, &Share)> = probes
        .iter()
        .zip(all)
        .zip(shares)
        .map(|((probe, counters), share)| (probe, counters, share))
        .filter(|(.., share)| share.hits > 0.0)
        .collect();
    costly.sort_by(|(.., a), (.., b)| b.all().total_cmp(&a.all()));
    for (probe, counters, share) in costly.iter().take(MAX_SHOWN) {
        let by = account::mechanism(counters);
        lines.push(format!(
            "COST:   {:.2}% {} ({}): {:.0} hits/s, about {} instructions in the handler{}{by}",
            share.all(),
            probe.point,
            probe.place,
            share.hits,
            counters.cost,
            if by.is_empty() { "" } else { "; by " },
        ));
    }
    if costly.len() > MAX_SHOWN {
        lines.push(format!("COST:   and {} probes that cost less", costly.len() - MAX_SHOWN));
    }
    lines
}

/// Counts the hits for a second, prints the cost, and makes the module sample if needed. Before [`Device::start`].
/// [`Error::OverBudget`]: the script must not run.
pub fn keep(budget: &Budget, device: &Device, probes: &[Probe]) -> Result<(), Error> {
    let measure = device.measure(MILLISECONDS)?;
    let all = device.counters(probes.len() as u32)?;
    let shares: Vec<Share> = all.iter().map(|counters| share(counters, &measure)).collect();
    lines(budget, probes, &all, &measure, &shares).iter().for_each(|line| say(line));
    let cost = shares.iter().map(Share::all).sum();
    match judge(budget, &shares) {
        Verdict::Fits => Ok(()),
        Verdict::Sample(factor) => {
            say(&format!(
                "WARNING: one in {factor} hits of each probe is handled on each CPU, the others are counted as sampled: multiply the script's counts by {factor}"
            ));
            device.sample(factor)
        }
        Verdict::Refused(least) => Err(Error::OverBudget { cost, budget: budget.percent, least }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(text: &str) -> Budget {
        Budget::parse(text).unwrap()
    }

    #[test]
    fn budgets_are_read() {
        assert_eq!(budget("5"), Budget { percent: 5.0, sample: false });
        assert_eq!(budget("0.5%,sample"), Budget { percent: 0.5, sample: true });
        for wrong in ["", "x", "0", "101", "nan", "5,samples", "5,"] {
            assert!(Budget::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_mechanism_has_its_cost() {
        let known: Vec<&str> = OVERHEAD.iter().map(|(by, _)| *by).collect();
        assert_eq!(known, spile_abi::device::MECHANISMS);
    }

    #[test]
    fn shares_are_of_all_cpus() {
        // 100,000 hits in half a second; 110 + 390 instructions of a nanosecond: 100 ms a second, of two CPUs.
        let counters = Counters { hits: 100_000, stopped: 100_000, mechanism: 1, cost: 390, ..Counters::default() };
        let measure = Measure { nanoseconds: 500_000_000, picoseconds: 1000, cpus: 2, ..Measure::default() };
        let share = share(&counters, &measure);
        assert!((share.all() - 5.0).abs() < 1e-9 && (share.overhead - 1.1).abs() < 1e-9, "{share:?}");
    }

    #[test]
    fn verdicts() {
        let shares = [Share { hits: 1.0, overhead: 2.0, handler: 9.0 }, Share::default()];
        assert_eq!(judge(&budget("11"), &shares), Verdict::Fits);
        assert_eq!(judge(&budget("10.9"), &shares), Verdict::Refused(None));
        // All hits cost 1, and handling all of them 10: a fourth is too many, a fifth just fits.
        assert_eq!(judge(&budget("3,sample"), &shares), Verdict::Sample(5));
        assert_eq!(judge(&budget("1,sample"), &shares), Verdict::Refused(Some(1.0)));
        assert_eq!(judge(&budget("0.5,sample"), &shares), Verdict::Refused(Some(1.0)));
    }
}
