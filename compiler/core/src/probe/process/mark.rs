// SPDX-License-Identifier: GPL-2.0-or-later

//! `.mark("m")`, `.provider("p").mark("m")`: markers that programs have by `<sys/sdt.h>`, with their arguments as `$arg1` and so
//! on.

use std::rc::Rc;

use super::named_values::NamedValues;
use crate::probe::code::Code;
use crate::probe::function::{described, owner_of};
use crate::probe::location::{program_address, vector_register};
use crate::probe::registers::pt_regs_offset;
use crate::probe::{Point, PointError, Resolver, Site};
use crate::program::{BinaryOp, LongExpr};
use spile_base::glob;
use spile_debuginfo::target::Object;
use spile_debuginfo::{Marker, MarkerArgument, Operand};
use spile_source::Span;
use spile_source::diagnostic::suggest;

/// The markers that a point names; a `-` in the name stands for `__`, as in dtrace(1).
pub(super) fn resolve_in(point: &Point, object: &Rc<Object>, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let (name, component) = point.string("mark").unwrap_or((String::new(), point.span()));
    let wanted = name.replace('-', "__");
    let provider = point.string("provider").map(|(provider, _)| provider);
    let markers = object.markers();
    let fits = |marker: &&Marker| {
        let own = provider.as_ref().is_none_or(|provider| glob::matches(provider, &marker.provider));
        own && (glob::matches(&wanted, &marker.name) || glob::matches(&name, &marker.name))
    };
    if markers.iter().find(fits).is_none() {
        if let Some((wanted, component)) = point.string("provider")
            && !markers.is_empty()
            && !markers.iter().any(|marker| glob::matches(&wanted, &marker.provider))
        {
            let mut providers: Vec<&str> = markers.iter().map(|marker| marker.provider.as_str()).collect();
            providers.sort();
            providers.dedup();
            let why = format!("the providers of markers in {} are {}", described(object), providers.join(", "));
            return Err(PointError::NotProbeable { component, name: wanted, why });
        }
        return Err(nothing(object, &markers, name, component));
    }
    let code = Code::of(point, object, resolver)?;
    let (mut sites, mut refused) = (Vec::new(), None);
    for marker in markers.iter().filter(fits) {
        let attachment = code.at_marker(object, marker.address, marker.semaphore);
        let attachment = match attachment {
            Ok(attachment) => attachment,
            Err(why) => {
                resolver.skip(&marker.name, why);
                refused = Some(PointError::NotProbeable { component, name: marker.name.clone(), why: why.into() });
                continue;
            }
        };
        let from = provider.as_ref().map_or(String::new(), |_| format!(".provider(\"{}\")", marker.provider));
        sites.push(Site {
            point: format!("{}{from}.mark(\"{}\")", owner_of(object), marker.name),
            function: marker.name.clone(),
            module: object.name().to_string(),
            attachment,
            context: Rc::new(context(object, marker)),
        });
    }
    match refused.filter(|_| sites.is_empty()) {
        Some(refused) => Err(refused),
        None => Ok(sites),
    }
}

fn nothing(object: &Object, markers: &[Marker], name: String, component: Span) -> PointError {
    let near = suggest::suggest(&name, markers.iter().map(|marker| marker.name.as_str()));
    let why = match (markers.is_empty(), near.is_empty()) {
        (true, _) => format!("{} has no markers (no section .note.stapsdt)", described(object)),
        (_, true) => {
            let mut names: Vec<&str> = markers.iter().map(|marker| marker.name.as_str()).take(10).collect();
            names.dedup();
            format!("no marker of {} has this name; some are {}", described(object), names.join(", "))
        }
        _ => format!("no marker of {} has this name; did you mean {}?", described(object), near.join(", ")),
    };
    PointError::NotProbeable { component, name, why }
}

fn context(object: &Rc<Object>, marker: &Marker) -> NamedValues {
    let place = format!("marker {}.{} of {}", marker.provider, marker.name, object.name());
    let mut values = NamedValues::new(place);
    for (number, argument) in (1..).zip(&marker.arguments) {
        let value = match argument {
            Ok(argument) => value(argument, object.word() == 4)
                .ok_or_else(|| "it is in a register that a probe does not see".to_string()),
            Err(text) => Err(format!("the location of an argument is not supported: {text}")),
        };
        values.values.push((format!("arg{number}"), value));
    }
    values.texts = vec![("$$name", marker.name.clone()), ("$$provider", marker.provider.clone())];
    values.object = Some(object.clone());
    values.has_registers = true;
    values
}

fn binary(op: BinaryOp, left: LongExpr, right: LongExpr) -> LongExpr {
    LongExpr::binary(op, left, right, Span::none())
}

fn long(value: i64) -> LongExpr {
    LongExpr::constant(value, Span::none())
}

fn register(number: u16) -> Option<LongExpr> {
    match pt_regs_offset(number) {
        Some(offset) => Some(LongExpr::register(offset, Span::none())),
        None => vector_register(number),
    }
}

/// `narrow`: of a 32-bit program, whose sums of addresses have 32 bits.
fn value(argument: &MarkerArgument, narrow: bool) -> Option<LongExpr> {
    let bits = argument.size * 8;
    let value = match &argument.operand {
        Operand::Constant(value) => long(*value),
        Operand::Address { symbol, displacement } => {
            binary(BinaryOp::Add, program_address(*symbol)?, long(*displacement))
        }
        Operand::Register { number, first_bit: 0 } => register(*number)?,
        Operand::Register { number, first_bit } => {
            binary(BinaryOp::ShiftRightLogical, register(*number)?, long((*first_bit).into()))
        }
        Operand::Memory { base, index, displacement, symbol } => {
            let mut address = match symbol {
                Some(symbol) => binary(BinaryOp::Add, program_address(*symbol)?, long(*displacement)),
                None => long(*displacement),
            };
            if let Some(base) = base {
                address = binary(BinaryOp::Add, register(*base)?, address);
            }
            if let Some((index, scale)) = index {
                let index = binary(BinaryOp::Multiply, register(*index)?, long((*scale).into()));
                address = binary(BinaryOp::Add, address, index);
            }
            if narrow {
                address = LongExpr::bits(address, 0, 32, Span::none());
            }
            LongExpr::read_user(address, argument.size, Span::none())
        }
    };
    Some(match (bits, argument.signed) {
        (64, _) => value,
        (bits, true) => LongExpr::sign_extend(value, bits, Span::none()),
        (bits, false) => LongExpr::bits(value, 0, bits, Span::none()),
    })
}
