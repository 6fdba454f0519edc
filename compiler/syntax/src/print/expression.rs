// SPDX-License-Identifier: GPL-2.0-or-later

//! Expressions as text, with the parentheses that precedence requires.

use super::{embedded, quote};
use crate::ast::*;
use crate::token::AtOperator;

/// Precedence, loosest first; the grammar's levels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Assignment,
    Or,
    And,
    BitOr,
    Xor,
    BitAnd,
    In,
    Compare,
    Shift,
    Concatenate,
    Add,
    Multiply,
    Unary,
    Step,
    Address,
    Suffixed,
}

impl Level {
    /// The level of the right operand of a left-associative operator of this level.
    fn tighter(self) -> Level {
        const ORDER: [Level; 16] = [
            Level::Assignment,
            Level::Or,
            Level::And,
            Level::BitOr,
            Level::Xor,
            Level::BitAnd,
            Level::In,
            Level::Compare,
            Level::Shift,
            Level::Concatenate,
            Level::Add,
            Level::Multiply,
            Level::Unary,
            Level::Step,
            Level::Address,
            Level::Suffixed,
        ];
        ORDER.into_iter().find(|level| *level > self).unwrap_or(Level::Suffixed)
    }
}

/// The expression as in a script, with only the parentheses that it needs.
pub(super) fn print(expr: &Expr) -> String {
    let mut out = String::new();
    write(&mut out, expr, Level::Assignment);
    out
}

/// The keys of an element, with their brackets.
pub(super) fn indexes(indexes: &[Index]) -> String {
    let index = |index: &Index| match index {
        Index::Expr(expr) => print(expr),
        Index::Any(_) => "*".to_string(),
    };
    indexes.iter().map(index).collect::<Vec<_>>().join(", ")
}

/// Name of the extractor without its `@`.
pub(super) fn extractor_name(extractor: Extractor) -> &'static str {
    AtOperator::Extract(extractor).text()
}

/// Writes an expression; parentheses are added if its level is below `level`.
fn write(out: &mut String, expr: &Expr, level: Level) {
    let own = level_of(&expr.kind);
    if own < level {
        out.push('(');
        write_bare(out, expr, own);
        out.push(')');
    } else {
        write_bare(out, expr, own);
    }
}

fn level_of(kind: &ExprKind) -> Level {
    match kind {
        ExprKind::Assign(..) | ExprKind::Conditional(..) => Level::Assignment,
        ExprKind::Binary(op, ..) => binary_level(*op),
        ExprKind::In(..) => Level::In,
        ExprKind::Matches { .. } => Level::Compare,
        ExprKind::Unary(..) => Level::Unary,
        ExprKind::Step { .. } => Level::Step,
        ExprKind::AddressOf(_) => Level::Address,
        _ => Level::Suffixed,
    }
}

fn binary_level(op: BinaryOp) -> Level {
    match op {
        BinaryOp::Or => Level::Or,
        BinaryOp::And => Level::And,
        BinaryOp::BitOr => Level::BitOr,
        BinaryOp::BitXor => Level::Xor,
        BinaryOp::BitAnd => Level::BitAnd,
        BinaryOp::Less
        | BinaryOp::Greater
        | BinaryOp::LessEqual
        | BinaryOp::GreaterEqual
        | BinaryOp::Equal
        | BinaryOp::NotEqual => Level::Compare,
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight | BinaryOp::ShiftRightLogical => Level::Shift,
        BinaryOp::Concatenate => Level::Concatenate,
        BinaryOp::Add | BinaryOp::Subtract => Level::Add,
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo => Level::Multiply,
    }
}

/// The operator's spelling.
pub fn binary_text(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Or => "||",
        BinaryOp::And => "&&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::BitAnd => "&",
        BinaryOp::Less => "<",
        BinaryOp::Greater => ">",
        BinaryOp::LessEqual => "<=",
        BinaryOp::GreaterEqual => ">=",
        BinaryOp::Equal => "==",
        BinaryOp::NotEqual => "!=",
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight => ">>",
        BinaryOp::ShiftRightLogical => ">>>",
        BinaryOp::Concatenate => ".",
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Modulo => "%",
    }
}

fn write_bare(out: &mut String, expr: &Expr, own: Level) {
    match &expr.kind {
        // Literals above 2^63-1 wrapped to negative values; print them as written.
        ExprKind::Number(number) => out.push_str(&(*number as u64).to_string()),
        ExprKind::String(text) => out.push_str(&quote(text)),
        ExprKind::Ident(name) | ExprKind::Target(name) => out.push_str(name),
        ExprKind::EmbeddedC(code) => out.push_str(&embedded(code)),
        ExprKind::Member(base, member) => {
            write(out, base, Level::Suffixed);
            out.push_str("->");
            out.push_str(&member.text);
        }
        ExprKind::Index(base, list) => {
            write(out, base, Level::Suffixed);
            out.push_str(&format!("[{}]", indexes(list)));
        }
        ExprKind::Pretty(base, dollars) => {
            write(out, base, Level::Suffixed);
            out.push_str(&"$".repeat(usize::from(*dollars)));
        }
        ExprKind::AddressOf(base) => {
            out.push('&');
            write(out, base, Level::Suffixed);
        }
        ExprKind::Call(name, arguments) => write_call(out, &name.text, &[], arguments),
        ExprKind::Unary(op, operand) => {
            let sign = match op {
                UnaryOp::Plus => '+',
                UnaryOp::Minus => '-',
                UnaryOp::Not => '!',
                UnaryOp::Complement => '~',
            };
            let mut text = String::new();
            write(&mut text, operand, Level::Unary);
            out.push(sign);
            // `- -x` is not `--x`.
            if text.starts_with(sign) {
                out.push(' ');
            }
            out.push_str(&text);
        }
        ExprKind::Binary(op, left, right) => {
            // `%` and a parenthesis would start a conditional, hence the spaces.
            // `=~` has the precedence of comparisons but does not chain with them.
            let chains = !matches!(left.kind, ExprKind::Matches { .. });
            write(out, left, if chains || own < Level::Compare { own } else { Level::Shift });
            out.push_str(&format!(" {} ", binary_text(*op)));
            write(out, right, own.tighter());
        }
        ExprKind::Assign(op, target, value) => {
            write(out, target, Level::Or);
            out.push_str(&match op {
                AssignOp::Set => " = ".to_string(),
                AssignOp::Aggregate => " <<< ".to_string(),
                AssignOp::Compound(op) => format!(" {}= ", binary_text(*op)),
            });
            write(out, value, Level::Assignment);
        }
        ExprKind::Step { delta, prefix, target } => {
            let sign = if *delta > 0 { "++" } else { "--" };
            if *prefix {
                out.push_str(sign);
            }
            write(out, target, Level::Address);
            if !*prefix {
                out.push_str(sign);
            }
        }
        ExprKind::Conditional(condition, then, otherwise) => {
            write(out, condition, Level::Or);
            out.push_str(" ? ");
            write(out, then, Level::Assignment);
            out.push_str(" : ");
            write(out, otherwise, Level::Assignment);
        }
        ExprKind::In(keys, array) => {
            match &keys[..] {
                [Index::Expr(key)] => write(out, key, Level::Compare),
                _ => out.push_str(&format!("[{}]", indexes(keys))),
            }
            out.push_str(" in ");
            write(out, array, Level::Suffixed);
        }
        ExprKind::Matches { left, pattern, negated, .. } => {
            write(out, left, Level::Shift);
            out.push_str(if *negated { " !~ " } else { " =~ " });
            out.push_str(&quote(pattern));
        }
        ExprKind::Print(print) => {
            let lead = match &print.form {
                PrintForm::Plain | PrintForm::Char => None,
                PrintForm::Delimited(text) | PrintForm::Format(text, _) => Some(quote(text)),
            };
            write_call(out, &print.name.text, lead.as_slice(), &print.arguments);
        }
        _ => write_operator(out, &expr.kind),
    }
}

/// `name(texts, arguments)`.
fn write_call(out: &mut String, name: &str, texts: &[String], arguments: &[Expr]) {
    let parts: Vec<String> = texts.iter().cloned().chain(arguments.iter().map(print)).collect();
    out.push_str(&format!("{name}({})", parts.join(", ")));
}

/// The `@` operators.
fn write_operator(out: &mut String, kind: &ExprKind) {
    let texts =
        |texts: &[&Option<Vec<u8>>]| texts.iter().copied().flatten().map(|text| quote(text)).collect::<Vec<_>>();
    let numbers = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>();
    let (operator, parts) = match kind {
        ExprKind::Cast { value, type_name, module } => {
            (AtOperator::Cast, [vec![print(value), quote(type_name)], texts(&[module])].concat())
        }
        ExprKind::Defined(value) => (AtOperator::Defined, vec![print(value)]),
        ExprKind::Entry(value) => (AtOperator::Entry, vec![print(value)]),
        ExprKind::Var { name, module } => (AtOperator::Var, [vec![quote(name)], texts(&[module])].concat()),
        ExprKind::Perf(name) => (AtOperator::Perf, vec![quote(name)]),
        ExprKind::Const(text) => (AtOperator::Const, vec![quote(text)]),
        ExprKind::Enum(name) => (AtOperator::Enum, vec![quote(name)]),
        ExprKind::EnumName { value, type_name, module } => {
            (AtOperator::EnumName, [vec![print(value)], texts(&[type_name, module])].concat())
        }
        ExprKind::ProbeWrite(name) => (AtOperator::ProbeWrite, vec![name.clone()]),
        ExprKind::Register { user: false, number } => (AtOperator::KernelRegister, vec![print(number)]),
        ExprKind::Register { user: true, number } => (AtOperator::UserRegister, vec![print(number)]),
        ExprKind::Deref { user: false, size, address } => (AtOperator::KernelDeref, vec![print(size), print(address)]),
        ExprKind::Deref { user: true, size, address } => (AtOperator::UserDeref, vec![print(size), print(address)]),
        ExprKind::Extract { extractor, aggregate, parameters } => {
            (AtOperator::Extract(*extractor), [vec![print(aggregate)], numbers(parameters)].concat())
        }
        ExprKind::Histogram { linear: false, aggregate, .. } => (AtOperator::HistLog, vec![print(aggregate)]),
        ExprKind::Histogram { linear: true, aggregate, parameters } => {
            (AtOperator::HistLinear, [vec![print(aggregate)], numbers(parameters)].concat())
        }
        // The others are not operators: see write_bare.
        _ => return,
    };
    out.push_str(&format!("@{}({})", operator.text(), parts.join(", ")));
}
