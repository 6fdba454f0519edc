// SPDX-License-Identifier: GPL-2.0-or-later

//! `kernel.data("SYMBOL").write` and `.rw`: hardware watchpoints on data of the kernel, on every CPU.

use std::rc::Rc;

use super::{Context, Form, Point, PointError, ProbeFamily, Resolver, Site};
use crate::program::{Attachment, Label, Mechanism, Place, Value};
use spile_debuginfo::Address;
use spile_debuginfo::target::Object;
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic};

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
    let site = |(address, length)| {
        let place = place.clone().map(|place| Place { address, ..place });
        Site {
            point: point.spelling(),
            function: String::new(),
            module: "kernel".into(),
            attachment: attachment(place, address, length, reads),
            context: Rc::new(WatchContext),
        }
    };
    Ok(watched(point, asked, address, size, resolver)?.into_iter().map(site).collect())
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

/// Debug registers that one point takes, of the four that there are.
const MOST_REGISTERS: usize = 2;

/// What is watched, each an address and a number of bytes: as many as asked for, else the variable, if that takes no more than two
/// debug registers. Each of them watches naturally aligned bytes.
pub(super) fn watched(
    point: &Point,
    asked: Option<u64>,
    address: u64,
    size: Option<u64>,
    resolver: &mut Resolver,
) -> Result<Vec<(u64, u32)>, PointError> {
    if let Some(length) = asked {
        if !address.is_multiple_of(length) {
            let component = point.number("length").map_or(point.span(), |(_, span)| span);
            let expected = format!("a length that divides the address 0x{address:x}, as {length} does not");
            return Err(PointError::Argument { component, expected });
        }
        return Ok(vec![(address, length as u32)]);
    }
    let mut parts = parts_of(address, size);
    let all: u64 = parts.iter().map(|(_, length)| u64::from(*length)).sum();
    if parts.len() > MOST_REGISTERS || size.is_some_and(|size| size > all) {
        parts.truncate(1);
        let watched = parts.first().map_or(0, |(_, length)| *length);
        let size = size.unwrap_or_default();
        let message = format!("only the first {watched} of {size} bytes are watched");
        let note = "a debug register watches at most 8 aligned bytes, and a point takes two of the four at most";
        let component = point.string("data").map_or(point.span(), |(_, span)| span);
        resolver.warn(Diagnostic::warning(Code("W0114"), message).at(component, "").note(note));
    }
    // They are spelled the same.
    if resolver.names_only() {
        parts.truncate(1);
    }
    Ok(parts)
}

/// The naturally aligned pieces of a variable, of which the first ones are enough; without a size the largest one there.
fn parts_of(address: u64, size: Option<u64>) -> Vec<(u64, u32)> {
    let fits = |at: u64, left: Option<u64>| {
        let fits = |length: &u64| at.is_multiple_of(*length) && left.is_none_or(|left| *length <= left);
        LENGTHS.into_iter().find(fits).unwrap_or(1)
    };
    let mut parts = Vec::new();
    let (mut at, mut left) = (address, size.filter(|size| *size > 0));
    while parts.len() <= MOST_REGISTERS {
        let length = fits(at, left);
        parts.push((at, length as u32));
        left = left.map(|left| left.saturating_sub(length));
        at = at.saturating_add(length);
        if left.is_none_or(|left| left == 0) {
            break;
        }
    }
    parts
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_variables() {
        assert_eq!(parts_of(0x1000, Some(4)), [(0x1000, 4)]);
        assert_eq!(parts_of(0x1000, Some(16)), [(0x1000, 8), (0x1008, 8)]);
        assert_eq!(parts_of(0x1004, Some(8)), [(0x1004, 4), (0x1008, 4)]);
        assert_eq!(parts_of(0x1001, Some(3)), [(0x1001, 1), (0x1002, 2)]);
        assert_eq!(parts_of(0x1000, Some(100)).len(), MOST_REGISTERS + 1);
        assert_eq!(parts_of(0x1008, None), [(0x1008, 8)]);
        assert_eq!(parts_of(0x1002, Some(0)), [(0x1002, 2)]);
    }
}
