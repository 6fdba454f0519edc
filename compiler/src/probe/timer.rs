//! `timer.*`: a handler every so often, on some CPU, in interrupt context.

use std::rc::Rc;

use super::{Form, NoContext, Point, PointError, ProbeFamily, Resolver, Site};
use crate::program::Attachment;

pub(super) static FAMILY: ProbeFamily = ProbeFamily {
    forms: &[
        Form { spelling: "timer.s(number)", doc: "every N seconds" },
        Form { spelling: "timer.sec(number)", doc: "every N seconds" },
        Form { spelling: "timer.ms(number)", doc: "every N milliseconds" },
        Form { spelling: "timer.msec(number)", doc: "every N milliseconds" },
        Form { spelling: "timer.us(number)", doc: "every N microseconds, 100 at least" },
        Form { spelling: "timer.usec(number)", doc: "every N microseconds, 100 at least" },
        Form { spelling: "timer.ns(number)", doc: "every N nanoseconds, 100000 at least" },
        Form { spelling: "timer.nsec(number)", doc: "every N nanoseconds, 100000 at least" },
        Form { spelling: "timer.hz(number)", doc: "N times a second" },
        Form { spelling: "timer.s(number).randomize(number)", doc: "every N seconds, give or take up to M" },
        Form { spelling: "timer.sec(number).randomize(number)", doc: "every N seconds, give or take up to M" },
        Form { spelling: "timer.ms(number).randomize(number)", doc: "every N milliseconds, give or take up to M" },
        Form { spelling: "timer.msec(number).randomize(number)", doc: "every N milliseconds, give or take up to M" },
        Form { spelling: "timer.us(number).randomize(number)", doc: "every N microseconds, give or take up to M" },
        Form { spelling: "timer.usec(number).randomize(number)", doc: "every N microseconds, give or take up to M" },
        Form { spelling: "timer.ns(number).randomize(number)", doc: "every N nanoseconds, give or take up to M" },
        Form { spelling: "timer.nsec(number).randomize(number)", doc: "every N nanoseconds, give or take up to M" },
    ],
    resolve,
};

/// Shortest and longest interval, in ns: 100 us and a day.
const RANGE: (i64, i64) = (100_000, 86_400_000_000_000);

fn resolve(point: &Point, _: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let component = &point.components[1];
    let (value, span) = point.number(&component.name).unwrap_or((0, component.span));
    let unit = match component.name.as_str() {
        "s" | "sec" => 1_000_000_000,
        "ms" | "msec" => 1_000_000,
        "us" | "usec" => 1_000,
        "ns" | "nsec" => 1,
        _ => return hz(point, value, span),
    };
    let (low, high) = ((RANGE.0 + unit - 1) / unit, RANGE.1 / unit);
    let period = value.checked_mul(unit).filter(|_| (low..=high).contains(&value));
    let period = period.ok_or(PointError::Range { component: span, low, high })?;
    let random = match point.number("randomize") {
        None => 0,
        Some((random, _)) if (0..=value).contains(&random) => random * unit,
        Some((_, component)) => return Err(PointError::Range { component, low: 0, high: value }),
    };
    Ok(site(point, period as u64, random as u64))
}

fn hz(point: &Point, value: i64, component: crate::source::Span) -> Result<Vec<Site>, PointError> {
    let (low, high) = (1, 1_000_000_000 / RANGE.0);
    if !(low..=high).contains(&value) {
        return Err(PointError::Range { component, low, high });
    }
    Ok(site(point, (1_000_000_000 / value) as u64, 0))
}

fn site(point: &Point, period: u64, random: u64) -> Vec<Site> {
    vec![Site {
        point: point.spelling(),
        function: String::new(),
        module: String::new(),
        attachment: Attachment::Timer { period, random },
        context: Rc::new(NoContext),
    }]
}
