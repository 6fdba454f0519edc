// SPDX-License-Identifier: GPL-2.0-or-later

//! `begin`, `end`, `error` and `never`: the session itself.

use std::rc::Rc;

use super::{Form, NoContext, Point, PointError, ProbeFamily, Resolver, Site};
use crate::program::{Attachment, Label, Mechanism, Runs, Value};

/// The family of `begin`, `end`, `error`, `never`.
pub(super) static FAMILY: ProbeFamily = ProbeFamily {
    unconditional: true,
    ..ProbeFamily::new(
        &[
            Form { spelling: "begin", doc: "when the session starts, before any other probe is armed" },
            Form { spelling: "begin(number)", doc: "the same; lower numbers run first, plain begin is 0" },
            Form { spelling: "end", doc: "when the session ends, after all other probes are disarmed" },
            Form { spelling: "end(number)", doc: "the same; lower numbers run first, plain end is 0" },
            Form { spelling: "error", doc: "instead of end if run-time errors ended the session" },
            Form { spelling: "error(number)", doc: "the same; lower numbers run first" },
            Form { spelling: "never", doc: "checked like any other, never runs" },
        ],
        resolve,
    )
};

const fn alone(kind: &'static str, word: &'static str) -> Mechanism {
    Mechanism { runs: Runs::Alone, ..Mechanism::new(kind, Label::Word(word)) }
}

static BEGIN: Mechanism = alone("SPILE_PROBE_BEGIN", "begin");
static END: Mechanism = alone("SPILE_PROBE_END", "end");
static ERROR: Mechanism = alone("SPILE_PROBE_ERROR", "error");
static NEVER: Mechanism = alone("SPILE_PROBE_NEVER", "never");

/// When the session ends; lower numbers first.
pub(crate) fn end(order: i64) -> Attachment {
    ordered(&END, order)
}

fn ordered(mechanism: &'static Mechanism, order: i64) -> Attachment {
    Attachment::new(mechanism).with("order", Value::Signed(order))
}

fn resolve(point: &Point, _: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let name = point.components.first().map_or("", |component| component.name.as_str());
    let order = point.number(name).map_or(0, |(order, _)| order);
    let attachment = match name {
        "begin" => ordered(&BEGIN, order),
        "end" => end(order),
        "error" => ordered(&ERROR, order),
        _ => Attachment::new(&NEVER),
    };
    Ok(vec![Site {
        point: point.spelling(),
        function: String::new(),
        module: String::new(),
        attachment,
        context: Rc::new(NoContext),
    }])
}
