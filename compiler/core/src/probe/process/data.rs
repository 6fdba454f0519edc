// SPDX-License-Identifier: GPL-2.0-or-later

//! `process("PATH").data("SYMBOL").write` and `.rw`: hardware watchpoints on data of programs.
//!
//! A process gets one where its program begins, with the threads and processes that it makes (runtime-c/user_watch.c).

use std::rc::Rc;

use super::event::{Programs, process_guard};
use super::named_values::NamedValues;
use super::objects;
use crate::probe::code::Scope;
use crate::probe::function::{described, in_each};
use crate::probe::watch::{requested_length, warn_of_several, watched};
use crate::probe::{Form, Point, PointError, ProbeFamily, Resolver, Site};
use crate::program::{Attachment, Label, Mechanism, Value};
use spile_debuginfo::Address;
use spile_debuginfo::target::Object;
use spile_source::diagnostic::suggest;

macro_rules! data {
    ($($owner:literal),*) => {
        [$(
            Form { spelling: concat!($owner, ".data(string).write"), doc: "a global variable of the program is written" },
            Form { spelling: concat!($owner, ".data(string).rw"), doc: "a global variable of the program is read or written" },
            Form {
                spelling: concat!($owner, ".data(string).length(number).write"),
                doc: "its first 1, 2, 4 or 8 bytes are written",
            },
            Form {
                spelling: concat!($owner, ".data(string).length(number).rw"),
                doc: "its first 1, 2, 4 or 8 bytes are read or written",
            },
            Form { spelling: concat!($owner, ".data(number).write"), doc: "data at an address of the process is written" },
            Form {
                spelling: concat!($owner, ".data(number).rw"),
                doc: "data at an address of the process is read or written",
            },
            Form {
                spelling: concat!($owner, ".data(number).length(number).write"),
                doc: "1, 2, 4 or 8 bytes at that address are written",
            },
            Form {
                spelling: concat!($owner, ".data(number).length(number).rw"),
                doc: "1, 2, 4 or 8 bytes at that address are read or written",
            },
        )*]
    };
}

static FORMS: [Form; 24] = data!("process(string)", "process(number)", "process");

/// The family of data in programs.
pub(in crate::probe) static FAMILY: ProbeFamily = ProbeFamily::new(&FORMS, resolve);

static MECHANISM: Mechanism =
    Mechanism { anywhere: true, ..Mechanism::new("SPILE_PROBE_USER_WATCH", Label::Word("watch")) };

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let objects = objects(point, resolver)?;
    in_each(&objects, |object| resolve_in(point, object, resolver))
}

fn resolve_in(point: &Point, object: &Rc<Object>, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let not_probeable = |why: &str| {
        let (component, name, why) = (point.span(), object.name().into(), why.to_string());
        PointError::NotProbeable { component, name, why }
    };
    let asked = requested_length(point)?;
    let (address, size, linked) = match point.string("data") {
        None => (point.number("data").map_or(0, |(address, _)| address as u64), None, false),
        Some((name, component)) => match object.data_symbol(&name) {
            Some(symbol) => {
                warn_of_several(object, &name, component, resolver);
                (symbol.address, Some(symbol.size), true)
            }
            None => {
                let all = object.data_symbols();
                let near = suggest::suggest(&name, all.iter().map(String::as_str));
                let there =
                    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
                let why = format!("{} has no symbol of a global variable of that name{there}", described(object));
                return Err(PointError::NotProbeable { component, name, why });
            }
        },
    };
    let watched = watched(point, asked, address, size, resolver)?;
    let start = object.mapped().entry_point();
    let offset = object.file_offset(Address { section: None, offset: start });
    let Some(offset) = offset.filter(|_| object.mapped().is_program()) else {
        return Err(not_probeable("it is a library: name the program that is to be watched"));
    };
    let scope = Scope::of(point);
    if scope.is_of_session() {
        resolver.follows();
    }
    let program = resolver.program(object);
    let site = |(address, length)| {
        let members = vec![
            Value::Number(length),
            point.has("rw").into(),
            Value::Number(program.0),
            Value::Unsigned(start),
            Value::Unsigned(offset),
            linked.into(),
            Value::Signed(scope.number()),
        ];
        let mut context = NamedValues::new("a watchpoint, which may be hit anywhere in the program".into());
        context.guard = process_guard(Programs::one(program), scope);
        context.has_registers = true;
        context.anywhere = true;
        context.object = Some(object.clone());
        Site {
            point: point.spelling(),
            function: String::new(),
            module: object.name().to_string(),
            attachment: Attachment::new(&MECHANISM)
                .with("address", Value::Address(address))
                .with("user_watch", Value::List(members)),
            context: Rc::new(context),
        }
    };
    Ok(watched.into_iter().map(site).collect())
}
