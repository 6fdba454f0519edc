// SPDX-License-Identifier: GPL-2.0-or-later

//! Calls with fixed arguments: the print family and the `@` operators.

use super::{Builder, MAX_PROBLEMS, NodeResult, WithDepth, undo_deep};
use crate::ast::*;
use crate::error::SyntaxError;
use crate::token::AtOperator;
use spile_source::Span;

/// A print function.
struct PrintWord {
    name: &'static str,
    to_string: bool,
    newline: bool,
    lead: FirstArgument,
    /// Number of values after the format or delimiter.
    least: usize,
}

/// The first argument.
#[derive(Clone, Copy, PartialEq)]
enum FirstArgument {
    Value,
    Delimiter,
    Format,
    Char,
}

const PRINTS: &[PrintWord] = &[
    PrintWord { name: "print", to_string: false, newline: false, lead: FirstArgument::Value, least: 1 },
    PrintWord { name: "println", to_string: false, newline: true, lead: FirstArgument::Value, least: 0 },
    PrintWord { name: "printd", to_string: false, newline: false, lead: FirstArgument::Delimiter, least: 2 },
    PrintWord { name: "printdln", to_string: false, newline: true, lead: FirstArgument::Delimiter, least: 2 },
    PrintWord { name: "printf", to_string: false, newline: false, lead: FirstArgument::Format, least: 0 },
    PrintWord { name: "print_char", to_string: false, newline: false, lead: FirstArgument::Char, least: 1 },
    PrintWord { name: "sprint", to_string: true, newline: false, lead: FirstArgument::Value, least: 1 },
    PrintWord { name: "sprintln", to_string: true, newline: true, lead: FirstArgument::Value, least: 0 },
    PrintWord { name: "sprintd", to_string: true, newline: false, lead: FirstArgument::Delimiter, least: 2 },
    PrintWord { name: "sprintdln", to_string: true, newline: true, lead: FirstArgument::Delimiter, least: 2 },
    PrintWord { name: "sprintf", to_string: true, newline: false, lead: FirstArgument::Format, least: 0 },
];

/// Maximum number of values in one print call.
const MAX_PRINT_VALUES: usize = 32;

/// The names of the print functions.
pub fn print_words() -> impl Iterator<Item = &'static str> {
    PRINTS.iter().map(|word| word.name)
}

/// Whether a name is a print function and so cannot be a variable.
pub(super) fn is_print(name: &str) -> bool {
    PRINTS.iter().any(|word| word.name == name)
}

impl Builder<'_> {
    /// A call, or a print function.
    pub fn call(&self, left: usize, right: usize, name: Name, arguments: Vec<WithDepth<Expr>>) -> NodeResult<Expr> {
        let (arguments, depth) = undo_deep(arguments);
        let kind = match PRINTS.iter().find(|word| word.name == name.text) {
            Some(word) => self.print(word, name, arguments, self.span(left, right)),
            None => ExprKind::Call(name, arguments),
        };
        self.expr(left, right, kind, &[depth])
    }

    fn print(&self, word: &PrintWord, name: Name, mut arguments: Vec<Expr>, span: Span) -> ExprKind {
        let form = match word.lead {
            FirstArgument::Value => PrintForm::Plain,
            FirstArgument::Char => PrintForm::Char,
            FirstArgument::Delimiter | FirstArgument::Format => {
                let first = (!arguments.is_empty()).then(|| arguments.remove(0));
                let (text, text_span) = match first {
                    Some(Expr { kind: ExprKind::String(text), span }) => (text, span),
                    other => {
                        let span = other.map_or(span, |argument| argument.span);
                        let format = word.lead == FirstArgument::Format;
                        self.note(SyntaxError::PrintLiteral { span, name: name.text.clone(), format });
                        (Vec::new(), span)
                    }
                };
                match word.lead {
                    FirstArgument::Format => PrintForm::Format(text, text_span),
                    _ => PrintForm::Delimited(text),
                }
            }
        };
        let most = if word.lead == FirstArgument::Char { 1 } else { MAX_PRINT_VALUES };
        if !(word.least..=most).contains(&arguments.len()) {
            let (least, given) = (word.least, arguments.len());
            self.note(SyntaxError::PrintCount { span, name: name.text.clone(), least, most, given });
        }
        if let (PrintForm::Plain, [only]) = (&form, arguments.as_slice()) {
            self.take_histogram(only);
        }
        let print = Print { to_string: word.to_string, newline: word.newline, form, arguments, name };
        ExprKind::Print(Box::new(print))
    }

    /// `@operator(arguments)` used with keys or buckets, which only histograms have.
    pub fn at_indexable(
        &self,
        left: usize,
        right: usize,
        operator: AtOperator,
        arguments: Vec<WithDepth<Expr>>,
    ) -> NodeResult<Expr> {
        if !matches!(operator, AtOperator::HistLog | AtOperator::HistLinear) {
            self.note(SyntaxError::NotIndexable { span: self.span(left, right), name: operator.text() });
        }
        let made = self.at(left, right, operator, arguments)?;
        self.take_histogram(&made.node);
        Ok(made)
    }

    /// An `@` operator with its arguments.
    pub fn at(
        &self,
        left: usize,
        right: usize,
        operator: AtOperator,
        arguments: Vec<WithDepth<Expr>>,
    ) -> NodeResult<Expr> {
        let (arguments, depth) = undo_deep(arguments);
        let span = self.span(left, right);
        let kind = make(operator, arguments).unwrap_or_else(|wrong| {
            self.note(SyntaxError::AtArguments {
                span: wrong.unwrap_or(span),
                name: operator.text(),
                usage: usage(operator),
            });
            ExprKind::Number(0)
        });
        if matches!(kind, ExprKind::Histogram { .. }) && self.histograms.borrow().len() < MAX_PROBLEMS {
            self.histograms.borrow_mut().push(span);
        }
        self.expr(left, right, kind, &[depth])
    }
}

/// The syntax of an operator.
fn usage(operator: AtOperator) -> &'static str {
    match operator {
        AtOperator::Cast => "@cast(address, \"type\") or @cast(address, \"type\", \"module\")",
        AtOperator::Defined => "@defined(expression)",
        AtOperator::Entry => "@entry(expression)",
        AtOperator::Var => "@var(\"name\"), @var(\"name@file\") or @var(\"name@file\", \"module\")",
        AtOperator::Perf => "@perf(\"counter\")",
        AtOperator::Const => "@const(\"C expression\")",
        AtOperator::Enum => "@enum(\"NAME\")",
        AtOperator::EnumName => {
            "@enumname(value), @enumname(value, \"type\") or @enumname(value, \"type\", \"module\")"
        }
        AtOperator::ProbeWrite => "@probewrite(variable)",
        AtOperator::KernelRegister => "@kregister(number)",
        AtOperator::UserRegister => "@uregister(number)",
        AtOperator::KernelDeref => "@kderef(size, address), the size as a number",
        AtOperator::UserDeref => "@uderef(size, address), the size as a number",
        AtOperator::HistLog => "@hist_log(aggregate)",
        AtOperator::HistLinear => "@hist_linear(aggregate, low, high, width), the last three as numbers",
        AtOperator::Extract(Extractor::Variance) => {
            "@variance(aggregate) or @variance(aggregate, shift), the shift as a number"
        }
        AtOperator::Extract(Extractor::Count) => "@count(aggregate)",
        AtOperator::Extract(Extractor::Sum) => "@sum(aggregate)",
        AtOperator::Extract(Extractor::Min) => "@min(aggregate)",
        AtOperator::Extract(Extractor::Max) => "@max(aggregate)",
        AtOperator::Extract(Extractor::Average) => "@avg(aggregate)",
    }
}

/// The span of the wrong argument; `None` if their number is wrong.
type WrongArgument = Option<Span>;

fn make(operator: AtOperator, arguments: Vec<Expr>) -> Result<ExprKind, WrongArgument> {
    let mut arguments = Arguments(arguments.into_iter());
    let kind = match operator {
        AtOperator::Cast => ExprKind::Cast {
            value: arguments.value()?,
            type_name: arguments.text()?,
            module: arguments.optional_text()?,
        },
        AtOperator::Defined => ExprKind::Defined(arguments.value()?),
        AtOperator::Entry => ExprKind::Entry(arguments.value()?),
        AtOperator::Var => ExprKind::Var { name: arguments.text()?, module: arguments.optional_text()? },
        AtOperator::Perf => ExprKind::Perf(Some(arguments.text()?).filter(|name| !name.is_empty()).ok_or(None)?),
        AtOperator::Const => ExprKind::Const(arguments.text()?),
        AtOperator::Enum => ExprKind::Enum(arguments.text()?),
        AtOperator::EnumName => ExprKind::EnumName {
            value: arguments.value()?,
            type_name: arguments.optional_text()?,
            module: arguments.optional_text()?,
        },
        AtOperator::ProbeWrite => match *arguments.value()? {
            Expr { kind: ExprKind::Ident(name), .. } => ExprKind::ProbeWrite(name),
            other => return Err(Some(other.span)),
        },
        AtOperator::KernelRegister => ExprKind::Register { user: false, number: arguments.value()? },
        AtOperator::UserRegister => ExprKind::Register { user: true, number: arguments.value()? },
        AtOperator::KernelDeref => {
            ExprKind::Deref { user: false, size: arguments.literal()?, address: arguments.value()? }
        }
        AtOperator::UserDeref => {
            ExprKind::Deref { user: true, size: arguments.literal()?, address: arguments.value()? }
        }
        AtOperator::HistLog => {
            ExprKind::Histogram { linear: false, aggregate: arguments.value()?, parameters: Vec::new() }
        }
        AtOperator::HistLinear => ExprKind::Histogram {
            linear: true,
            aggregate: arguments.value()?,
            parameters: vec![arguments.number()?, arguments.number()?, arguments.number()?],
        },
        AtOperator::Extract(extractor) => {
            let aggregate = arguments.value()?;
            let shift = extractor == Extractor::Variance && !arguments.0.as_slice().is_empty();
            let parameters = if shift { vec![arguments.number()?] } else { Vec::new() };
            ExprKind::Extract { extractor, aggregate, parameters }
        }
    };
    match arguments.0.next() {
        None => Ok(kind),
        Some(extra) => Err(Some(extra.span)),
    }
}

/// The arguments of one call, consumed from the left.
struct Arguments(std::vec::IntoIter<Expr>);

impl Arguments {
    fn value(&mut self) -> Result<Box<Expr>, WrongArgument> {
        self.0.next().map(Box::new).ok_or(None)
    }

    /// A value that has to be a number as it is written.
    fn literal(&mut self) -> Result<Box<Expr>, WrongArgument> {
        let value = self.value()?;
        if matches!(value.kind, ExprKind::Number(_)) { Ok(value) } else { Err(Some(value.span)) }
    }

    fn text(&mut self) -> Result<Vec<u8>, WrongArgument> {
        match *self.value()? {
            Expr { kind: ExprKind::String(text), .. } => Ok(text),
            other => Err(Some(other.span)),
        }
    }

    fn optional_text(&mut self) -> Result<Option<Vec<u8>>, WrongArgument> {
        match self.0.as_slice().is_empty() {
            true => Ok(None),
            false => self.text().map(Some),
        }
    }

    fn number(&mut self) -> Result<i64, WrongArgument> {
        let value = self.value()?;
        let literal = match &value.kind {
            ExprKind::Number(number) => Some(*number),
            ExprKind::Unary(UnaryOp::Minus, operand) => match operand.kind {
                ExprKind::Number(number) => Some(number.wrapping_neg()),
                _ => None,
            },
            _ => None,
        };
        literal.ok_or(Some(value.span))
    }
}
