// SPDX-License-Identifier: GPL-2.0-or-later

//! `perf.type(N).config(N)`: the kernel's performance events, counted on each CPU; the handler runs when one overflows.

use std::rc::Rc;

use super::code::Scope;
use super::function::in_each;
use super::process::event::contexts_in_processes;
use super::process::objects;
use super::{Context, Form, NoContext, Point, PointError, ProbeFamily, Resolver, Site};
use crate::program::{Attachment, Label, Mechanism, Value};
use spile_debuginfo::Address;

/// PERF_TYPE_SOFTWARE and PERF_COUNT_SW_CPU_CLOCK of include/uapi/linux/perf_event.h.
pub(super) const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
/// The tracepoint `ftrace:function`, in all kernels (TRACE_FN of kernel/trace/trace.h).
const EVERY_FUNCTION: u64 = 1;
/// Default event of `perf` probes, in nanoseconds of CPU time.
pub(super) const CPU_CLOCK: u64 = 0;

/// Of the kernel's kinds of events, the last that has a fixed number: PERF_TYPE_BREAKPOINT is 5, a PMU's own come after.
const MOST_TYPES: i64 = i32::MAX as i64;

/// kernel.perf_event_max_sample_rate as it is by default.
pub(super) const HIGHEST_FREQUENCY: i64 = 100_000;

static EVENT: Mechanism = Mechanism { anywhere: true, ..Mechanism::new("SPILE_PROBE_PERF", Label::Word("perf")) };

/// The same, only counted, for @perf("NAME"). The handler never runs.
static COUNTER: Mechanism = Mechanism { counts: true, ..Mechanism::new("SPILE_PROBE_PERF", Label::Word("perf")) };

/// The same, of each thread that runs a program.
static PROGRAM_COUNTER: Mechanism =
    Mechanism { counts: true, ..Mechanism::new("SPILE_PROBE_PROGRAM_COUNTER", Label::Word("perf")) };

/// How often an event runs the handler.
#[derive(Clone, Copy)]
pub(super) enum Sample {
    /// Once every that many events; for a clock, nanoseconds.
    Period(u64),
    /// That many times a second on each CPU.
    Frequency(u64),
    /// For a clock: at each tick of the kernel's timer.
    Tick,
}

/// An event on each CPU, by the kernel's numbers (perf_event_open(2)).
pub(super) fn event(event: u32, config: u64, sample: Sample) -> Attachment {
    let (sample, value) = match sample {
        Sample::Period(value) => ("SPILE_SAMPLE_PERIOD", value),
        Sample::Frequency(value) => ("SPILE_SAMPLE_FREQUENCY", value),
        Sample::Tick => ("SPILE_SAMPLE_TICK", 0),
    };
    let (event, config) = (Value::Number(event), Value::Unsigned(config));
    let value = Value::List(vec![event, config, Value::Constant(sample), Value::Unsigned(value)]);
    Attachment::new(&EVENT).with("perf", value)
}

fn counter(event: u32, config: u64, name: String) -> Attachment {
    let (event, config) = (Value::Number(event), Value::Unsigned(config));
    let value = Value::List(vec![event, config, Value::Constant("SPILE_SAMPLE_COUNTER"), Value::Number(0)]);
    Attachment::new(&COUNTER).of(name).with("perf", value)
}

/// Events between two runs if the script gives no number.
const DEFAULT_PERIOD: u64 = 1_000_000;

/// The family of `perf`.
pub(super) static FAMILY: ProbeFamily = ProbeFamily::new(
    &[
        Form {
            spelling: "perf.type(number).config(number)",
            doc: "once in 1000000 events of that kind on a CPU (perf_event_open(2) has the numbers)",
        },
        Form {
            spelling: "perf.type(number).config(number).sample(number)",
            doc: "once in N events on a CPU; of a clock, every N ns",
        },
        Form {
            spelling: "perf.type(number).config(number).hz(number)",
            doc: "N times a second on each CPU, if there are enough events",
        },
        Form {
            spelling: "perf.type(number).config(number).counter(string)",
            doc: "counts the events of each CPU for @perf(\"NAME\") in other probes; its own handler never runs",
        },
        Form {
            spelling: "perf.type(number).config(number).process(string).counter(string)",
            doc: "counts the events of each thread that runs that program, for @perf(\"NAME\") in probes of the program; its own handler never runs",
        },
        Form {
            spelling: "perf.type(number).config(number).process(string)",
            doc: "the same, where a process runs that program",
        },
        Form {
            spelling: "perf.type(number).config(number).process",
            doc: "the same, where the session's process runs, or one that descends from it",
        },
        Form {
            spelling: "perf.type(number).config(number).sample(number).process(string)",
            doc: "once in N events on a CPU, where a process runs that program",
        },
        Form {
            spelling: "perf.type(number).config(number).sample(number).process",
            doc: "the same, where the session's process runs, or one that descends from it",
        },
        Form {
            spelling: "perf.type(number).config(number).hz(number).process(string)",
            doc: "N times a second on each CPU, where a process runs that program",
        },
        Form {
            spelling: "perf.type(number).config(number).hz(number).process",
            doc: "the same, where the session's process runs, or one that descends from it",
        },
    ],
    resolve,
);

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let in_range = |name: &str, low: i64, high: i64| match point.number(name) {
        Some((value, component)) if !(low..=high).contains(&value) => Err(PointError::Range { component, low, high }),
        found => Ok(found.map(|(value, _)| value)),
    };
    let event_type = in_range("type", 0, MOST_TYPES)?.unwrap_or(0);
    // All 64 bits of a config have a meaning.
    let config = point.number("config").map_or(0, |(value, _)| value as u64);
    if (event_type, config) == (i64::from(TYPE_TRACEPOINT), EVERY_FUNCTION) {
        return Err(PointError::NotProbeable {
            component: point.span(),
            name: point.spelling(),
            why: "it is the tracepoint ftrace:function, which is hit by each call of each function of the kernel"
                .into(),
        });
    }
    if let Some((name, _)) = point.string("counter") {
        if point.has("process") {
            return program_counters(point, event_type as u32, config, &name, resolver);
        }
        return Ok(vec![site(point, counter(event_type as u32, config, name), Rc::new(NoContext))]);
    }
    let sample = match (in_range("sample", 1, i64::MAX)?, in_range("hz", 0, HIGHEST_FREQUENCY)?) {
        (Some(period), _) => Sample::Period(period as u64),
        (None, Some(frequency)) => Sample::Frequency(frequency as u64),
        (None, None) => Sample::Period(DEFAULT_PERIOD),
    };
    let contexts = match point.has("process") {
        false => vec![Rc::new(NoContext) as Rc<dyn Context>],
        true => contexts_in_processes(point, resolver)?,
    };
    let of = |context| site(point, event(event_type as u32, config, sample), context);
    Ok(contexts.into_iter().map(of).collect())
}

/// A counter for each of the programs, which a thread gets where its program begins (runtime-c/program_counter.c).
fn program_counters(
    point: &Point,
    event: u32,
    config: u64,
    name: &str,
    resolver: &mut Resolver,
) -> Result<Vec<Site>, PointError> {
    // Events of tracepoints go by waiting for all handlers, which a handler must not do.
    if event == TYPE_TRACEPOINT {
        return Err(PointError::NotProbeable {
            component: point.span(),
            name: name.into(),
            why:
                "events of tracepoints are not counted for each thread: count them in a probe of kernel.trace(\"...\")"
                    .into(),
        });
    }
    let objects = objects(point, resolver)?;
    in_each(&objects, |object| {
        let start = Address { section: None, offset: object.mapped().entry_point() };
        let Some(offset) = object.file_offset(start).filter(|_| object.mapped().is_program()) else {
            return Err(PointError::NotProbeable {
                component: point.span(),
                name: object.name().into(),
                why: "it is a library: name the program whose events are to be counted".into(),
            });
        };
        let scope = Scope::of(point);
        if scope.is_of_session() {
            resolver.follows();
        }
        let members = vec![
            Value::Number(event),
            Value::Unsigned(config),
            Value::Number(resolver.program(object).0),
            Value::Unsigned(offset),
            Value::Signed(scope.number()),
        ];
        let attachment = Attachment::new(&PROGRAM_COUNTER).of(name).with("program_counter", Value::List(members));
        Ok(vec![site(point, attachment, Rc::new(NoContext))])
    })
}

fn site(point: &Point, attachment: Attachment, context: Rc<dyn Context>) -> Site {
    Site { point: point.spelling(), function: String::new(), module: String::new(), attachment, context }
}
