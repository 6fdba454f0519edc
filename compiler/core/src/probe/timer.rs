// SPDX-License-Identifier: GPL-2.0-or-later

//! `timer.*`: a handler at intervals, on some CPU (`timer.profile`: on each), in interrupt context.

use std::rc::Rc;

use super::perf::{self, HIGHEST_FREQUENCY, Sample};
use super::{Form, NoContext, Point, PointError, ProbeFamily, Resolver, Site};
use crate::program::{Attachment, Label, Mechanism, Runs, Value};
use spile_source::Span;

/// The family of `timer`.
pub(super) static FAMILY: ProbeFamily = ProbeFamily {
    unconditional: true,
    ..ProbeFamily::new(
        &[
            Form { spelling: "timer.s(number)", doc: "every N seconds" },
            Form { spelling: "timer.sec(number)", doc: "every N seconds" },
            Form { spelling: "timer.ms(number)", doc: "every N milliseconds" },
            Form { spelling: "timer.msec(number)", doc: "every N milliseconds" },
            Form { spelling: "timer.us(number)", doc: "every N microseconds, 100 at least" },
            Form { spelling: "timer.usec(number)", doc: "every N microseconds, 100 at least" },
            Form { spelling: "timer.ns(number)", doc: "every N nanoseconds, 100000 at least" },
            Form { spelling: "timer.nsec(number)", doc: "every N nanoseconds, 100000 at least" },
            Form { spelling: "timer.hz(number)", doc: "N times a second" },
            Form { spelling: "timer.jiffies(number)", doc: "every N ticks of the kernel's timer" },
            Form { spelling: "timer.jiffies(number).randomize(number)", doc: "every N ticks, give or take up to M" },
            Form {
                spelling: "timer.profile",
                doc: "on every CPU, at each tick of the kernel's timer; the interrupted registers",
            },
            Form { spelling: "timer.profile.tick", doc: "on every CPU, at each tick of the kernel's timer" },
            Form {
                spelling: "timer.profile.freq.hz(number)",
                doc: "on every CPU, N times a second; the interrupted registers",
            },
            Form { spelling: "timer.s(number).randomize(number)", doc: "every N seconds, give or take up to M" },
            Form { spelling: "timer.sec(number).randomize(number)", doc: "every N seconds, give or take up to M" },
            Form { spelling: "timer.ms(number).randomize(number)", doc: "every N milliseconds, give or take up to M" },
            Form {
                spelling: "timer.msec(number).randomize(number)",
                doc: "every N milliseconds, give or take up to M",
            },
            Form { spelling: "timer.us(number).randomize(number)", doc: "every N microseconds, give or take up to M" },
            Form {
                spelling: "timer.usec(number).randomize(number)",
                doc: "every N microseconds, give or take up to M",
            },
            Form { spelling: "timer.ns(number).randomize(number)", doc: "every N nanoseconds, give or take up to M" },
            Form { spelling: "timer.nsec(number).randomize(number)", doc: "every N nanoseconds, give or take up to M" },
        ],
        resolve,
    )
};

/// Intervals in ns.
static TIMER: Mechanism = Mechanism { runs: Runs::Rarely, ..Mechanism::new("SPILE_PROBE_TIMER", Label::Word("timer")) };

/// Intervals in ticks of the kernel's timer.
static JIFFIES: Mechanism =
    Mechanism { runs: Runs::Rarely, ..Mechanism::new("SPILE_PROBE_JIFFIES", Label::Word("timer")) };

/// Every `period`, give or take a random time up to `random`.
fn interval_of(mechanism: &'static Mechanism, period: u64, random: u64) -> Attachment {
    let value = Value::List(vec![Value::Unsigned(period), Value::Unsigned(random)]);
    Attachment::new(mechanism).with("timer", value)
}

/// Shortest and longest interval, in ns: 100 us and a day.
const RANGE: (i64, i64) = (100_000, 86_400_000_000_000);

/// Shortest and longest interval in ticks.
const TICKS: (i64, i64) = (1, 1_000_000);

fn resolve(point: &Point, _: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let [_, component, ..] = point.components else { return Ok(Vec::new()) };
    let (value, span) = point.number(&component.name).unwrap_or((0, component.span));
    let unit = match component.name.as_str() {
        "s" | "sec" => 1_000_000_000,
        "ms" | "msec" => 1_000_000,
        "us" | "usec" => 1_000,
        "ns" | "nsec" => 1,
        "jiffies" => {
            let (period, random) = interval(point, value, span, TICKS)?;
            return Ok(site(point, interval_of(&JIFFIES, period as u64, random as u64)));
        }
        "profile" => return profile(point),
        _ => return hz(point, value, span),
    };
    let (value, random) = interval(point, value, span, ((RANGE.0 + unit - 1) / unit, RANGE.1 / unit))?;
    Ok(timer(point, (value * unit) as u64, (random * unit) as u64))
}

/// The interval and its random part, both in the given unit.
fn interval(point: &Point, value: i64, span: Span, (low, high): (i64, i64)) -> Result<(i64, i64), PointError> {
    if !(low..=high).contains(&value) {
        return Err(PointError::Range { component: span, low, high });
    }
    match point.number("randomize") {
        None => Ok((value, 0)),
        Some((random, _)) if (0..=value).contains(&random) => Ok((value, random)),
        Some((_, component)) => Err(PointError::Range { component, low: 0, high: value }),
    }
}

fn hz(point: &Point, value: i64, component: Span) -> Result<Vec<Site>, PointError> {
    let (low, high) = (1, 1_000_000_000 / RANGE.0);
    if !(low..=high).contains(&value) {
        return Err(PointError::Range { component, low, high });
    }
    Ok(timer(point, (1_000_000_000 / value) as u64, 0))
}

/// The kernel's clock event of perf, because only perf gives the registers at a tick.
fn profile(point: &Point) -> Result<Vec<Site>, PointError> {
    let sample = match point.number("hz") {
        None => Sample::Tick,
        Some((value, _)) if (1..=HIGHEST_FREQUENCY).contains(&value) => Sample::Frequency(value as u64),
        Some((_, component)) => return Err(PointError::Range { component, low: 1, high: HIGHEST_FREQUENCY }),
    };
    Ok(site(point, perf::event(perf::TYPE_SOFTWARE, perf::CPU_CLOCK, sample)))
}

fn timer(point: &Point, period: u64, random: u64) -> Vec<Site> {
    site(point, interval_of(&TIMER, period, random))
}

fn site(point: &Point, attachment: Attachment) -> Vec<Site> {
    let (function, module) = (String::new(), String::new());
    vec![Site { point: point.spelling(), function, module, attachment, context: Rc::new(NoContext) }]
}
