// SPDX-License-Identifier: GPL-2.0-or-later

//! `kernel.data("SYMBOL").write` and `.rw`: hardware watchpoints on data of the kernel, on every CPU.

use std::rc::Rc;

use super::{Context, Form, Point, PointError, ProbeFamily, Resolver, Site};
use crate::program::{Attachment, Label, Mechanism, Place, Value};
use spile_debuginfo::Address;
use spile_debuginfo::target::Object;
use spile_source::Span;

/// The family of `kernel.data`.
pub(super) static FAMILY: ProbeFamily = ProbeFamily::new(
    &[
        Form { spelling: "kernel.data(string).write", doc: "a global variable of the kernel is written" },
        Form { spelling: "kernel.data(string).rw", doc: "a global variable of the kernel is read or written" },
        Form { spelling: "kernel.data(string).length(number).write", doc: "its first 1, 2, 4 or 8 bytes are written" },
        Form {
            spelling: "kernel.data(string).length(number).rw",
            doc: "its first 1, 2, 4 or 8 bytes are read or written",
        },
        Form { spelling: "kernel.data(number).write", doc: "data at an address of the running kernel is written" },
        Form { spelling: "kernel.data(number).rw", doc: "data at an address of the running kernel is read or written" },
        Form {
            spelling: "kernel.data(number).length(number).write",
            doc: "1, 2, 4 or 8 bytes at that address are written",
        },
        Form {
            spelling: "kernel.data(number).length(number).rw",
            doc: "1, 2, 4 or 8 bytes at that address are read or written",
        },
    ],
    resolve,
);

/// Bytes that a debug register can watch.
const LENGTHS: [u64; 4] = [8, 4, 2, 1];

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let asked = requested_length(point)?;
    let reads = point.has("rw");
    let (place, address, size) = match point.string("data") {
        None => {
            let address = point.number("data").map_or(0, |(address, _)| address as u64);
            (None, address, None)
        }
        Some((name, component)) => {
            let kernel = resolver
                .kernel()?
                .vmlinux()
                .map_err(|error| PointError::Target { component, error: Rc::new(error) })?;
            let Some(address) = kernel.symbol_address(&name) else {
                return Err(PointError::NotProbeable {
                    component,
                    name,
                    why: "the kernel has no variable of this name".into(),
                });
            };
            warn_of_several(&kernel, &name, component, resolver);
            if kernel.is_per_cpu(Address { section: None, offset: address }) {
                let why = "each CPU has its own copy of it: name one by its address".to_string();
                return Err(PointError::NotProbeable { component, name, why });
            }
            let target = resolver.target(&kernel)?;
            (Some(Place { target, symbol: None, address }), address, size_of(&kernel, &name))
        }
    };
    let length = fitting_length(point, asked, address, size)?;
    Ok(vec![Site {
        point: point.spelling(),
        function: String::new(),
        module: "kernel".into(),
        attachment: attachment(place, address, length, reads),
        context: Rc::new(WatchContext),
    }])
}

/// The argument of `.length`.
pub(super) fn requested_length(point: &Point) -> Result<Option<u64>, PointError> {
    match point.number("length") {
        None => Ok(None),
        Some((length, _)) if LENGTHS.iter().any(|known| *known as i64 == length) => Ok(Some(length as u64)),
        Some((_, component)) => {
            Err(PointError::Argument { component, expected: "a length of 1, 2, 4 or 8 bytes".into() })
        }
    }
}

/// How many bytes are watched: as many as asked for, else as fit into the variable. A debug register watches naturally aligned
/// bytes.
pub(super) fn fitting_length(
    point: &Point,
    asked: Option<u64>,
    address: u64,
    size: Option<u64>,
) -> Result<u32, PointError> {
    let fits = |length: &u64| address.is_multiple_of(*length) && size.is_none_or(|size| *length <= size);
    let length = match asked {
        Some(length) if address.is_multiple_of(length) => length,
        Some(length) => {
            let component = point.number("length").map_or(point.span(), |(_, span)| span);
            let expected = format!("a length that divides the address 0x{address:x}, as {length} does not");
            return Err(PointError::Argument { component, expected });
        }
        None => LENGTHS.into_iter().find(fits).unwrap_or(1),
    };
    Ok(length as u32)
}

static MECHANISM: Mechanism = Mechanism { anywhere: true, ..Mechanism::new("SPILE_PROBE_WATCH", Label::Word("watch")) };

/// A watchpoint on `length` bytes of data, for writes or, with `reads`, for reads and writes; without a place at an address
/// of the running kernel.
fn attachment(place: Option<Place>, address: u64, length: u32, reads: bool) -> Attachment {
    let attachment = match place {
        Some(place) => Attachment::new(&MECHANISM).at(place),
        None => Attachment::new(&MECHANISM).with("address", Value::Address(address)),
    };
    attachment.with("watch", Value::List(vec![Value::Number(length), reads.into()]))
}

/// Warns where several files have a static variable of that name: nothing tells which of them is meant.
pub(super) fn warn_of_several(object: &Object, name: &str, component: Span, resolver: &mut Resolver) {
    let Some(mut units) = object.debug().ok().and_then(|debug| debug.units_of_static(name).ok()) else { return };
    units.dedup();
    if units.len() > 1 {
        let other = "the symbol table has them without files: .data(ADDRESS) is any of them, and";
        let warning =
            super::several_statics(name, &units).at(component, "the first one of the symbol table is watched");
        let example = units.last().map_or("", String::as_str);
        resolver.warn(warning.note(format!("{other} &@var(\"{name}@{example}\") is the address of one")));
    }
}

/// Size of the variable, if debug information has it.
fn size_of(kernel: &Object, name: &str) -> Option<u64> {
    let debug = kernel.debug().ok()?;
    let found = debug.global(name, None).ok()?.ok()?;
    debug.size_of(found.type_id).ok()?
}

struct WatchContext;

impl Context for WatchContext {
    fn has_registers(&self) -> bool {
        true
    }

    fn place(&self) -> String {
        "a watchpoint, which may be hit anywhere".into()
    }
}
