// SPDX-License-Identifier: GPL-2.0-or-later

//! Probe points.

use super::ast::Point;
use super::error::Problem;

/// A probe point of a script, and the variables that its handler can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    /// The probe point's text.
    pub text: String,
    /// The kind of place, which determines the variables.
    pub place: Place,
}

/// What a handler can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The entry of a function: `arg0`, `args.x`.
    Entry,
    /// The return of a function; `typed`: its return value is read by its type.
    Return {
        typed: bool,
    },
    /// A tracepoint: `args.x`.
    Tracepoint,
    /// A marker of a program: `arg0`.
    Marker,
    Other,
}

/// The point's parts.
struct Parts<'a> {
    point: &'a Point,
    rest: Vec<&'a str>,
    library: &'a dyn Fn(&str) -> Option<String>,
}

impl Parts<'_> {
    fn wrong(&self, form: &str) -> Problem {
        Problem::Syntax { message: format!("it is written {form}"), span: self.point.span }
    }

    fn no_counterpart(&self, what: &str, instead: &str) -> Problem {
        Problem::NoCounterpart { what: format!("`{what}`"), span: self.point.span, instead: instead.to_string() }
    }

    /// `MODULE:FUNCTION` or `FUNCTION` of the kernel.
    fn kernel_function(&self, suffix: &str) -> Result<String, Problem> {
        let (owner, name) = match self.rest.as_slice() {
            ["vmlinux", name] | [name] => ("kernel".to_string(), *name),
            [module, name] => (format!("module(\"{module}\")"), *name),
            _ => return Err(self.wrong("kprobe:FUNCTION or kprobe:MODULE:FUNCTION")),
        };
        if name.contains('+') {
            let instead = "a point inside a function is named by its line: kernel.statement(\"NAME@FILE:LINE\")";
            return Err(self.no_counterpart(name, instead));
        }
        Ok(format!("{owner}.function(\"{name}\"){suffix}"))
    }

    /// `PATH:FUNCTION` of a program.
    fn program_function(&self, suffix: &str) -> Result<String, Problem> {
        let (path, name) = match self.rest.as_slice() {
            // The language of the name: cpp.
            [path, name] | [path, "cpp", name] => (*path, *name),
            _ => return Err(self.wrong("uprobe:PATH:FUNCTION")),
        };
        if name.contains('+') || name.starts_with("0x") {
            let instead =
                "a point inside a function is named by its line: process(\"PATH\").statement(\"NAME@FILE:LINE\")";
            return Err(self.no_counterpart(name, instead));
        }
        Ok(format!("process(\"{}\").function(\"{name}\"){suffix}", with_path(path, self.library)))
    }
}

/// A library may be named without directory and version: `libc`.
fn with_path(path: &str, library: &dyn Fn(&str) -> Option<String>) -> String {
    let is_short = !path.contains('/') && path.starts_with("lib");
    is_short.then(|| library(path)).flatten().unwrap_or_else(|| path.to_string())
}

/// The script's point for one of bpftrace; `library`: see [`translate`](super::translate).
pub fn translate(point: &Point, library: &dyn Fn(&str) -> Option<String>) -> Result<Translated, Problem> {
    // A path has no colon, but the name of a C++ function has two at once.
    let text = point.text.replace("::", "\0");
    let rest: Vec<String> = text.split(':').map(|part| part.replace('\0', "::")).collect();
    let mut rest = rest.iter().map(String::as_str);
    let kind = rest.next().unwrap_or_default();
    let parts = Parts { point, rest: rest.collect(), library };
    let (text, place) = match kind {
        "BEGIN" | "begin" => ("begin".to_string(), Place::Other),
        "END" | "end" => ("end".to_string(), Place::Other),
        "kprobe" | "k" | "kfunc" | "fentry" | "f" => (parts.kernel_function(".call")?, Place::Entry),
        "kretprobe" | "kr" | "kretfunc" | "fexit" | "fr" => {
            (parts.kernel_function(".return")?, Place::Return { typed: !point.text.contains('*') })
        }
        "tracepoint" | "t" => (tracepoint(&parts)?, Place::Tracepoint),
        "rawtracepoint" | "rt" => (raw_tracepoint(&parts)?, Place::Tracepoint),
        "uprobe" | "u" => (parts.program_function(".call")?, Place::Entry),
        "uretprobe" | "ur" => (parts.program_function(".return")?, Place::Return { typed: false }),
        "usdt" | "U" => (marker(&parts)?, Place::Marker),
        "interval" | "i" => (interval(&parts)?, Place::Other),
        "profile" | "p" => (profile(&parts)?, Place::Other),
        "software" | "s" => (counter(&parts, 1, &SOFTWARE)?, Place::Other),
        "hardware" | "h" => (counter(&parts, 0, &HARDWARE)?, Place::Other),
        "watchpoint" | "w" => (watchpoint(&parts)?, Place::Other),
        "asyncwatchpoint" | "aw" | "iter" | "it" | "self" | "bench" | "test" => {
            let instead =
                "spile -l 'POINT' lists what can be probed; foreach over kernel lists is by @cast(...) in a handler";
            return Err(parts.no_counterpart(kind, instead));
        }
        _ => {
            let message = format!(
                "`{kind}` is no type of probes: kprobe, kretprobe, tracepoint, uprobe, interval, profile, BEGIN, END and others are"
            );
            return Err(Problem::Syntax { message, span: point.span });
        }
    };
    Ok(Translated { text, place })
}

fn tracepoint(parts: &Parts) -> Result<String, Problem> {
    match parts.rest.as_slice() {
        [category, event] => Ok(format!("kernel.trace(\"{category}:{event}\")")),
        _ => Err(parts.wrong("tracepoint:CATEGORY:EVENT")),
    }
}

fn raw_tracepoint(parts: &Parts) -> Result<String, Problem> {
    match parts.rest.as_slice() {
        [event] => Ok(format!("kernel.trace(\"{event}\")")),
        [_, event] => Ok(format!("kernel.trace(\"{event}\")")),
        _ => Err(parts.wrong("rawtracepoint:EVENT")),
    }
}

fn marker(parts: &Parts) -> Result<String, Problem> {
    match parts.rest.as_slice() {
        [path, name] => Ok(format!("process(\"{}\").mark(\"{name}\")", with_path(path, parts.library))),
        [path, provider, name] => {
            Ok(format!("process(\"{}\").provider(\"{provider}\").mark(\"{name}\")", with_path(path, parts.library)))
        }
        _ => Err(parts.wrong("usdt:PATH:PROVIDER:NAME")),
    }
}

/// `s:1` or `1s`, to a unit and a number.
fn period<'a>(parts: &'a Parts) -> Option<(&'a str, u64)> {
    match parts.rest.as_slice() {
        [unit, number] => number.parse().ok().map(|number| (*unit, number)),
        [both] => {
            let digits = both.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(both.len());
            let (number, unit) = both.split_at(digits);
            Some((if unit.is_empty() { "ns" } else { unit }, number.parse().ok()?))
        }
        _ => None,
    }
}

fn interval(parts: &Parts) -> Result<String, Problem> {
    match period(parts) {
        Some(("ns", number)) => Ok(format!("timer.ns({number})")),
        Some((unit @ ("us" | "ms" | "s" | "hz"), number)) => Ok(format!("timer.{unit}({number})")),
        Some(("m", number)) => Ok(format!("timer.s({})", number.saturating_mul(60))),
        _ => Err(parts.wrong("interval:s:1; units are us, ms, s and hz")),
    }
}

/// Samples of all CPUs, by the event `cpu-clock` of perf.
fn profile(parts: &Parts) -> Result<String, Problem> {
    let nanoseconds = match period(parts) {
        Some(("hz", number)) => return Ok(format!("perf.type(1).config(0).hz({number})")),
        Some(("ns", number)) => number,
        Some(("us", number)) => number.saturating_mul(1_000),
        Some(("ms", number)) => number.saturating_mul(1_000_000),
        Some(("s", number)) => number.saturating_mul(1_000_000_000),
        _ => return Err(parts.wrong("profile:hz:99; units are us, ms, s and hz")),
    };
    Ok(format!("perf.type(1).config(0).sample({nanoseconds})"))
}

/// An event of perf_event_open(2): names, number, and after how many events bpftrace samples by default.
type Event = (&'static [&'static str], u64, u64);

const SOFTWARE: [Event; 10] = [
    (&["cpu-clock", "cpu"], 0, 1_000_000),
    (&["task-clock"], 1, 1_000_000),
    (&["page-faults", "faults"], 2, 100),
    (&["context-switches", "cs"], 3, 1000),
    (&["cpu-migrations"], 4, 1),
    (&["minor-faults"], 5, 100),
    (&["major-faults"], 6, 1),
    (&["alignment-faults"], 7, 1),
    (&["emulation-faults"], 8, 1),
    (&["dummy"], 9, 1),
];

const HARDWARE: [Event; 10] = [
    (&["cpu-cycles", "cycles"], 0, 1_000_000),
    (&["instructions"], 1, 1_000_000),
    (&["cache-references"], 2, 1_000_000),
    (&["cache-misses"], 3, 1_000_000),
    (&["branch-instructions", "branches"], 4, 100_000),
    (&["branch-misses"], 5, 100_000),
    (&["bus-cycles"], 6, 100_000),
    (&["frontend-stalls"], 7, 1_000_000),
    (&["backend-stalls"], 8, 1_000_000),
    (&["ref-cycles"], 9, 1_000_000),
];

fn counter(parts: &Parts, kind: u64, events: &[Event]) -> Result<String, Problem> {
    let form = "software:EVENT:COUNT or hardware:EVENT:COUNT";
    let (name, count) = match parts.rest.as_slice() {
        [name] | [name, ""] => (*name, None),
        [name, count] => (*name, Some(count.parse::<u64>().map_err(|_| parts.wrong(form))?)),
        _ => return Err(parts.wrong(form)),
    };
    let event = events.iter().find(|(names, ..)| names.contains(&name));
    let (_, number, usual) = event.ok_or_else(|| {
        let names: Vec<&str> = events.iter().filter_map(|(names, ..)| names.first().copied()).collect();
        parts.wrong(&format!("with one of the events {}", names.join(", ")))
    })?;
    Ok(format!("perf.type({kind}).config({number}).sample({})", count.unwrap_or(*usual)))
}

fn watchpoint(parts: &Parts) -> Result<String, Problem> {
    match parts.rest.as_slice() {
        [address, length, mode] if address.starts_with("0x") => {
            match *mode {
                "w" => Ok(format!("kernel.data({address}).length({length}).write")),
                "rw" | "wr" | "r" => Ok(format!("kernel.data({address}).length({length}).rw")),
                _ => Err(parts
                    .no_counterpart(mode, "execution is probed by kernel.statement(ADDRESS).absolute, in guru mode")),
            }
        }
        _ => Err(parts.wrong("watchpoint:0xADDRESS:LENGTH:MODE")),
    }
}
