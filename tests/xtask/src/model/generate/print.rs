// SPDX-License-Identifier: GPL-2.0-or-later

//! Random prints and formats.

use super::{Generator, Scope};
use crate::model::tree::*;

/// `%d` or `%s`.
pub(super) fn plain_directive(kind: Type) -> Piece {
    let conversion = if kind == Type::Long { b'd' } else { b's' };
    Piece::Directive(Directive { flag: None, width: None, precision: None, conversion })
}

impl Generator {
    /// A print with some arguments.
    pub(super) fn print(&mut self, scope: &mut Scope, depth: usize) -> Print {
        match self.random.below(8) {
            0 => self.listed(scope, depth, Form::Plain, 1),
            1 => self.listed(scope, depth, Form::Line, 1),
            2 => {
                let delimiter = self.random.pick([",", ":", "", ", ", "%"]).as_bytes().to_vec();
                let form =
                    if self.random.one_in(2) { Form::Delimited(delimiter) } else { Form::DelimitedLine(delimiter) };
                self.listed(scope, depth, form, 2)
            }
            _ => self.formatted(scope, depth),
        }
    }

    fn listed(&mut self, scope: &mut Scope, depth: usize, form: Form, least: usize) -> Print {
        let arguments = (0..least + self.random.below(3))
            .map(|_| {
                let kind = self.kind();
                let argument = self.expression(scope, kind, depth);
                // This gives a type to arguments that have no other use.
                match (&argument, kind) {
                    (Expression::Read(_), Type::Long) => Expression::Unary(Unary::Plus, Box::new(argument)),
                    (Expression::Read(_), Type::Text) => {
                        Expression::Binary(Binary::Concat, Box::new(argument), Box::new(Expression::Text(Vec::new())))
                    }
                    _ => argument,
                }
            })
            .collect();
        Print { form, arguments }
    }

    fn formatted(&mut self, scope: &mut Scope, depth: usize) -> Print {
        let (mut pieces, mut arguments) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.random.below(3) {
            match self.random.below(6) {
                0 => pieces.push(Piece::Percent),
                1 | 2 => pieces
                    .push(Piece::Text(self.random.pick([" ", "x=", "[", "]", "\t", "end", "\""]).as_bytes().to_vec())),
                _ => {
                    let directive = self.directive();
                    for width in [directive.width, directive.precision].into_iter().flatten() {
                        if width == Width::Argument {
                            arguments.push(Expression::Number(self.random.between(1, 14), false));
                        }
                    }
                    arguments.push(self.argument(scope, directive.conversion, depth));
                    pieces.push(Piece::Directive(directive));
                }
            }
        }
        Print { form: Form::Formatted(pieces), arguments }
    }

    fn argument(&mut self, scope: &mut Scope, conversion: u8, depth: usize) -> Expression {
        match conversion {
            b's' => self.expression(scope, Type::Text, depth),
            b'c' => {
                // A letter.
                let low = Expression::Binary(
                    Binary::BitAnd,
                    self.boxed(scope, Type::Long, depth),
                    Box::new(Expression::Number(15, false)),
                );
                Expression::Binary(Binary::Add, Box::new(low), Box::new(Expression::Number(65, false)))
            }
            _ => self.expression(scope, Type::Long, depth),
        }
    }

    /// Only formats that the reference's tables define.
    fn directive(&mut self) -> Directive {
        let conversion = self.random.pick(*b"dddiuoxXpcsss");
        let flags: &[u8] = match conversion {
            b'd' | b'i' => b"-+ 0",
            b'u' => b"-0",
            b'o' | b'x' | b'X' => b"-#0",
            _ => b"-",
        };
        let flag = if self.random.one_in(2) { self.random.choose(flags).copied() } else { None };
        let width = self.width();
        // Zeros are either a number's or its field's.
        let precision = if flag == Some(b'0') || matches!(conversion, b'c' | b'p') { None } else { self.width() };
        // Zeros of a prefix look like those of a precision.
        let precision = if flag == Some(b'#') { None } else { precision };
        Directive { flag, width, precision, conversion }
    }

    fn width(&mut self) -> Option<Width> {
        match self.random.below(5) {
            0 => Some(Width::Argument),
            1 | 2 => Some(Width::Fixed(1 + self.random.below(24))),
            _ => None,
        }
    }
}
