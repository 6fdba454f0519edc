// SPDX-License-Identifier: GPL-2.0-or-later

//! The print family: arguments and format strings to pieces.

use super::{Lowered, Lowering};
use crate::elaborate::error::LiteralError;
use crate::elaborate::format::{self, MAX_SIZE, Piece};
use crate::elaborate::unit::Unit;
use crate::program::{Directive, Expr, LongExpr, Print, PrintPiece, StringExpr, StringKind};
use spile_abi::format::{Flags, Size};
use spile_syntax as syntax;
use spile_syntax::ast::{self, PrintForm};

impl Lowering<'_, '_> {
    pub(super) fn lower_print(&mut self, unit: &Unit, print: &ast::Print) -> Lowered<Print> {
        let mut pieces = Vec::new();
        match &print.form {
            PrintForm::Plain => {
                for argument in &print.arguments {
                    pieces.push(named(plain(self.lower(unit, argument)?), argument));
                }
            }
            PrintForm::Char => {
                for argument in &print.arguments {
                    let value = self.lower(unit, argument)?;
                    pieces.push(PrintPiece::Directive {
                        directive: directive(b'c'),
                        width: None,
                        precision: None,
                        argument: value,
                        name: name(argument),
                    });
                }
            }
            PrintForm::Delimited(delimiter) => {
                for (index, argument) in print.arguments.iter().enumerate() {
                    if index > 0 {
                        pieces.push(PrintPiece::Literal(delimiter.clone()));
                    }
                    pieces.push(named(plain(self.lower(unit, argument)?), argument));
                }
            }
            PrintForm::Format(text, span) => {
                let parsed =
                    format::parse(text).map_err(|error| LiteralError::Format { kind: error.kind, span: *span })?;
                let mut arguments = print.arguments.iter();
                let missing = LiteralError::FormatArguments { wanted: 0, given: print.arguments.len(), span: *span };
                for piece in parsed {
                    pieces.push(match piece {
                        Piece::Literal(bytes) => PrintPiece::Literal(bytes),
                        Piece::Directive { directive, .. } => {
                            let mut next = || arguments.next().ok_or(missing.clone());
                            let width = if directive.width == Size::Star { Some(next()?) } else { None };
                            let precision = if directive.precision == Size::Star { Some(next()?) } else { None };
                            let argument = next()?;
                            let width = width.map(|width| self.lower_long(unit, width)).transpose()?;
                            let precision = precision.map(|precision| self.lower_long(unit, precision)).transpose()?;
                            let (directive, too_much) = within_a_record(directive);
                            let too_much = too_much.map(|bytes| LongExpr::constant(bytes.into(), *span));
                            let (value, name) = (self.lower(unit, argument)?, name(argument));
                            PrintPiece::Directive {
                                directive,
                                width,
                                precision: precision.or(too_much),
                                argument: value,
                                name,
                            }
                        }
                    });
                }
            }
        }
        if print.newline {
            pieces.push(PrintPiece::Literal(b"\n".to_vec()));
        }
        Ok(Print { pieces })
    }
}

/// The directive with sizes that a record can have. With the number of bytes of a memory dump that cannot be made: that is an error
/// when it is printed, as one that is given by `*`.
fn within_a_record(directive: Directive) -> (Directive, Option<u32>) {
    let fitting = |size| match size {
        Size::Fixed(size) => Size::Fixed(size.min(MAX_SIZE)),
        other => other,
    };
    match directive.precision {
        Size::Fixed(bytes) if bytes > MAX_SIZE && b"mM".contains(&directive.conversion) => {
            (Directive { width: fitting(directive.width), precision: Size::Star, ..directive }, Some(bytes))
        }
        precision => (Directive { width: fitting(directive.width), precision: fitting(precision), ..directive }, None),
    }
}

/// A directive without flags, width or precision.
pub(super) fn directive(conversion: u8) -> Directive {
    Directive { conversion, flags: Flags::default(), width: Size::None, precision: Size::None }
}

/// Longer expressions are no names.
const LONGEST_NAME: usize = 64;

/// The name of a value in recordings: the expression, without what marks `$variables` and calls of functions without
/// arguments.
fn name(argument: &ast::Expr) -> String {
    let text = syntax::print::expr(argument);
    let name = text.trim_matches('$');
    let name = name.strip_suffix("()").unwrap_or(name);
    if name.len() > LONGEST_NAME || name.contains('\n') { String::new() } else { name.to_string() }
}

fn named(mut piece: PrintPiece, argument: &ast::Expr) -> PrintPiece {
    if let PrintPiece::Directive { name: unnamed, .. } = &mut piece {
        *unnamed = name(argument);
    }
    piece
}

/// A value as print shows it.
pub(super) fn plain(argument: Expr) -> PrintPiece {
    let conversion = match argument {
        Expr::String(StringExpr { kind: StringKind::Literal(bytes), .. }) => return PrintPiece::Literal(bytes),
        Expr::String(_) => b's',
        Expr::Long(_) => b'd',
    };
    PrintPiece::Directive {
        directive: directive(conversion),
        width: None,
        precision: None,
        argument,
        name: String::new(),
    }
}
