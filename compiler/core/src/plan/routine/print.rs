// SPDX-License-Identifier: GPL-2.0-or-later

//! Printing: records for the loader to format, and strings formatted in the module.

use std::sync::Arc;

use super::array::key;
use super::{Builder, Evaluated, ExprRef};
use crate::plan::code::*;
use crate::plan::deferred::{self, NamedAddress, Names, is_plain};
use crate::plan::error::{InternalError, Planned};
use crate::plan::tables;
use crate::program::{self, Expr, PrintPiece, StringExpr, StringKind};
use spile_abi::format::{Directive, Flags, Piece, Size};
use spile_source::Span;

/// Most bytes of one memory dump: a page.
const MAX_DUMP: u32 = 4096;

/// Whether the loader or the module formats the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Loader,
    Module,
}

/// No ring has room for a record of this size: the runtime, which adds lengths in 32 bits, will not find any.
const MOST_RECORD: u32 = 1 << 30;

/// What a print consists of.
struct Pieces {
    /// Of its format.
    pieces: Vec<Piece>,
    /// Of its payload.
    parts: Vec<Part>,
    /// Of the values among the pieces.
    names: Vec<String>,
    /// Bytes that the objects among the parts take at most.
    objects: u32,
}

impl Builder<'_, '_> {
    pub(super) fn print(&mut self, print: &program::Print, span: Span) -> Planned<()> {
        let Pieces { pieces, parts, names, objects } = self.pieces(print, Reader::Loader, span)?;
        if pieces.is_empty() {
            return Ok(());
        }
        let format = self.tables.format(&pieces, names);
        // May fail: memory that cannot be read, an aggregate without values.
        let may_fail = parts.iter().any(|part| matches!(part, Part::Memory { .. } | Part::Histogram { .. }));
        let location = may_fail.then(|| self.location(span));
        let objects = Value::Const(objects.min(MOST_RECORD).into());
        self.tables.record(&parts, &objects);
        self.push(Instr::Record { format, parts, objects, location });
        if may_fail {
            self.check();
        }
        Ok(())
    }

    /// The formatted text as a value.
    pub(super) fn format(&mut self, print: &program::Print, span: Span) -> Planned<Text> {
        let Pieces { pieces, parts, .. } = self.pieces(print, Reader::Module, span)?;
        match pieces.as_slice() {
            [] => return Ok(Text::Literal(Vec::new())),
            [Piece::Literal(bytes)] => return Ok(self.literal(bytes)),
            [Piece::Directive(directive)] if *directive == tables::plain_string() => {
                if let [Part::Text(text)] = parts.as_slice() {
                    return Ok(text.clone());
                }
            }
            _ => {}
        }
        let table = self.tables.format_table(&pieces);
        let (buffer, to) = self.temporary_text();
        let location = self.location(span);
        self.push(Instr::Format { table, parts, buffer, to, location });
        self.check();
        Ok(Text::Variable(to))
    }

    /// The bytecode's pieces and the payload's parts, with nested formats and objects expanded in place.
    fn pieces(&mut self, print: &program::Print, reader: Reader, span: Span) -> Planned<Pieces> {
        let program = self.analysis.program;
        let mut flat = Vec::new();
        deferred::flatten(program, &print.pieces, &mut flat);
        let named = |piece| if reader == Reader::Loader { deferred::names(program, piece) } else { None };
        let exprs: Vec<ExprRef> = flat.iter().flat_map(|piece| arguments(piece, named(piece))).collect();
        let mut results = self.in_order(&exprs)?.into_iter();
        let mut next = move || results.next().ok_or(InternalError::new("a print without an argument", span));
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut parts, mut names) = (Vec::new(), Vec::new());
        let mut objects: u32 = 0;
        for piece in &flat {
            if let PrintPiece::Directive { name, .. } = piece {
                names.push(name.clone());
            }
            match piece {
                PrintPiece::Literal(bytes) => match pieces.last_mut() {
                    Some(Piece::Literal(before)) => before.extend_from_slice(bytes),
                    _ if bytes.is_empty() => {}
                    _ => pieces.push(Piece::Literal(bytes.clone())),
                },
                PrintPiece::Directive {
                    argument: Expr::String(StringExpr { kind: StringKind::Pretty { description, .. }, .. }),
                    ..
                } if is_plain(piece) => {
                    let address = next()?.long(span)?;
                    let described = self.tables.described(description);
                    pieces.push(Piece::Pretty(Arc::clone(description)));
                    objects = objects.saturating_add(described.most);
                    parts.push(Part::Pretty { table: described.table, address });
                }
                PrintPiece::Directive {
                    argument: Expr::String(StringExpr { kind: StringKind::Chart(aggregate), .. }),
                    ..
                } if is_plain(piece) => {
                    let keys = aggregate.keys.iter().map(|_| Ok(key(next()?))).collect::<Planned<Vec<Key>>>()?;
                    let map = self.map_of(aggregate.global, &keys, span)?;
                    let histogram = self.histogram(aggregate.global, span)?;
                    let buckets = histogram.buckets();
                    pieces.push(Piece::Histogram(histogram, self.analysis.limits.chart));
                    parts.push(Part::Histogram { map, keys, buckets });
                }
                PrintPiece::Directive { directive, width, precision, .. } => {
                    if width.is_some() {
                        parts.push(Part::Long(next()?.long(span)?));
                    }
                    let dynamic = precision.is_some().then(|| next()?.long(span)).transpose()?;
                    parts.extend(dynamic.clone().map(Part::Long));
                    let Some(address) = named(piece) else {
                        pieces.push(Piece::Directive(directive.clone()));
                        parts.push(value_part(directive, next()?, dynamic, span)?);
                        continue;
                    };
                    pieces.push(Piece::Directive(self.naming_directive(directive, &address)));
                    parts.push(named_part(&address.of, &mut next, span)?);
                }
            }
        }
        Ok(Pieces { pieces, parts, names, objects })
    }

    /// The directive by which the loader prints the names of addresses; notes which symbols the loader needs.
    fn naming_directive(&mut self, directive: &Directive, names: &Names) -> Directive {
        let in_user = !matches!(
            names.of,
            NamedAddress::Address | NamedAddress::KernelText | NamedAddress::Stack { user: false, .. }
        );
        self.tables.user_stacks |= in_user;
        self.tables.defers_names |= !in_user;
        let flags = Flags { sharp: names.is_stored(), ..directive.flags };
        Directive { conversion: names.conversion as u8, flags, ..directive.clone() }
    }
}

/// The expressions that a piece evaluates, in the order of their results; `named`: its address is printed by name.
fn arguments<'p>(piece: &'p PrintPiece, named: Option<Names<'p>>) -> Vec<ExprRef<'p>> {
    let PrintPiece::Directive { width, precision, argument, .. } = piece else { return Vec::new() };
    let mut exprs: Vec<ExprRef> = width.iter().chain(precision).map(ExprRef::Long).collect();
    match (argument, named) {
        (Expr::String(StringExpr { kind: StringKind::Pretty { address, .. }, .. }), _) if is_plain(piece) => {
            exprs.push(ExprRef::Long(address));
        }
        (Expr::String(StringExpr { kind: StringKind::Chart(aggregate), .. }), _) if is_plain(piece) => {
            exprs.extend(aggregate.keys.iter().map(ExprRef::from));
        }
        (_, Some(names)) => exprs.extend(names.exprs.into_iter().map(ExprRef::from)),
        (_, None) => exprs.push(argument.into()),
    }
    exprs
}

/// The part of an address that the loader names; `next`: the results of its expressions.
fn named_part(of: &NamedAddress, next: &mut impl FnMut() -> Planned<Evaluated>, span: Span) -> Planned<Part> {
    Ok(match of {
        NamedAddress::Address => Part::Long(next()?.long(span)?),
        NamedAddress::UserAddress => Part::UserFrame(next()?.long(span)?),
        NamedAddress::UserStack => Part::UserStack,
        NamedAddress::Text => Part::Text(next()?.text(span)?),
        NamedAddress::KernelText => Part::StoredStack(next()?.text(span)?),
        NamedAddress::Stack { user, whole: true } => {
            Part::Stack { user: *user, first: Value::Const(0), most: Value::Const(-1) }
        }
        NamedAddress::Stack { user, whole: false } => {
            Part::Stack { user: *user, first: next()?.long(span)?, most: next()?.long(span)? }
        }
    })
}

/// The part of an ordinary directive; `dynamic`: its precision, if that is an argument.
fn value_part(directive: &Directive, value: Evaluated, dynamic: Option<Value>, span: Span) -> Planned<Part> {
    Ok(match directive.conversion {
        b's' => Part::Text(value.text(span)?),
        b'm' | b'M' => {
            let (bytes, most) = match (dynamic, directive.precision) {
                (Some(bytes), _) => (bytes, MAX_DUMP),
                (None, Size::Fixed(bytes)) => (Value::Const(i64::from(bytes)), bytes.min(MAX_DUMP)),
                _ => (Value::Const(1), 1),
            };
            Part::Memory { address: value.long(span)?, bytes, most, user: directive.flags.sharp }
        }
        _ => Part::Long(value.long(span)?),
    })
}
