// SPDX-License-Identifier: GPL-2.0-or-later

//! `begin`, `end`, `error` and `never`: the session itself.

use std::rc::Rc;

use super::{Form, NoContext, Point, PointError, ProbeFamily, Resolver, Site};
use crate::program::Attachment;

pub(super) static FAMILY: ProbeFamily = ProbeFamily {
    forms: &[
        Form { spelling: "begin", doc: "when the session starts, before any other probe is armed" },
        Form { spelling: "begin(number)", doc: "the same; lower numbers run first, plain begin is 0" },
        Form { spelling: "end", doc: "when the session ends, after all other probes are disarmed" },
        Form { spelling: "end(number)", doc: "the same; lower numbers run first, plain end is 0" },
        Form { spelling: "error", doc: "instead of end when run-time errors ended the session" },
        Form { spelling: "error(number)", doc: "the same; lower numbers run first" },
        Form { spelling: "never", doc: "checked like any other, never runs" },
    ],
    resolve,
};

fn resolve(point: &Point, _: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let name = point.components[0].name.as_str();
    let order = point.number(name).map_or(0, |(order, _)| order);
    let attachment = match name {
        "begin" => Attachment::Begin { order },
        "end" => Attachment::End { order },
        "error" => Attachment::Error { order },
        _ => Attachment::Never,
    };
    Ok(vec![Site {
        point: point.spelling(),
        function: String::new(),
        module: String::new(),
        attachment,
        context: Rc::new(NoContext),
    }])
}
