// SPDX-License-Identifier: GPL-2.0-or-later

//! The syntax tree of a bpftrace program.

use lalrpop_util::ParseError;
use spile_source::Span;

use super::error::{MAX_DEPTH, Problem, TOO_DEEP};
use super::lexer::Token;

/// A probe with its points.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Its probe points.
    pub points: Vec<Point>,
    /// The expression between slashes, if any.
    pub filter: Option<Expr>,
    /// The statements of its handler.
    pub body: Vec<Statement>,
}

/// One probe point, as written: `kprobe:vfs_read`.
#[derive(Clone, Debug)]
pub struct Point {
    /// As written, without blanks around it.
    pub text: String,
    /// Its place in the program.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `target op value;`, where op is `=`, `+=` and so on.
    Assign {
        target: Expr,
        op: &'static str,
        value: Expr,
    },
    Expr(Expr),
    If {
        condition: Expr,
        then: Vec<Statement>,
        otherwise: Option<Vec<Statement>>,
        negated: bool,
    },
    While {
        condition: Expr,
        body: Vec<Statement>,
    },
    /// `for ($x : from..to)`, without `to`.
    Range {
        variable: String,
        from: Expr,
        to: Expr,
        body: Vec<Statement>,
    },
    /// `for ($x : @map)`.
    Each {
        variable: String,
        map: Expr,
        body: Vec<Statement>,
    },
    Unroll {
        times: Expr,
        body: Vec<Statement>,
    },
    Break,
    Continue,
    /// A value has no meaning in a probe.
    Return,
    /// `let $x`: no value.
    Declare,
}

impl Statement {
    /// Whether it changes the map of this name.
    pub fn changes(&self, map: &str) -> bool {
        let changes = |expr: &Expr| expr.kind.changes(map);
        let any = |body: &[Statement]| body.iter().any(|statement| statement.changes(map));
        match self {
            Statement::Assign { target, value, .. } => {
                matches!(&target.kind, ExprKind::Map { name, .. } if name == map) || changes(target) || changes(value)
            }
            Statement::Expr(expr) => changes(expr),
            Statement::If { condition, then, otherwise, .. } => {
                changes(condition) || any(then) || otherwise.as_deref().is_some_and(any)
            }
            Statement::While { condition: first, body } | Statement::Unroll { times: first, body } => {
                changes(first) || any(body)
            }
            Statement::Range { from, to, body, .. } => changes(from) || changes(to) || any(body),
            Statement::Each { body, .. } => any(body),
            Statement::Break | Statement::Continue | Statement::Return | Statement::Declare => false,
        }
    }
}

/// An expression with its position.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its kind and operands.
    pub kind: ExprKind,
    /// Its place in the program.
    pub span: Span,
    /// The number of expressions inside each other.
    depth: usize,
}

/// The forms of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    Number(String),
    /// With its quotes and escapes, which are C's in both languages.
    Text(String),
    /// `$1`
    Parameter(u32),
    /// `$#`
    ParameterCount,
    /// `$x`
    Variable(String),
    /// `@x[keys]`; the name is empty for `@`.
    Map {
        name: String,
        keys: Vec<Expr>,
    },
    /// `comm`
    Name(String),
    Call {
        name: String,
        arguments: Vec<Expr>,
    },
    /// `base.name` and `base->name`
    Member {
        base: Box<Expr>,
        name: String,
    },
    /// `base.0`
    Field {
        base: Box<Expr>,
        number: usize,
    },
    Index {
        base: Box<Expr>,
        index: Box<Expr>,
    },
    Unary {
        op: &'static str,
        operand: Box<Expr>,
    },
    /// `++` and `--`
    Step {
        op: &'static str,
        before: bool,
        operand: Box<Expr>,
    },
    Binary {
        op: &'static str,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Ternary {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Cast {
        to: Type,
        operand: Box<Expr>,
    },
    SizeOf(Type),
    OffsetOf(Type, String),
    Tuple(Vec<Expr>),
}

/// A type as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// `struct sock`, `uint64`.
    pub name: String,
    /// The number of `*`.
    pub pointers: usize,
}

impl ExprKind {
    /// Whether its evaluation changes the map of this name.
    fn changes(&self, map: &str) -> bool {
        let is_map = |expr: &Expr| matches!(&expr.kind, ExprKind::Map { name, .. } if name == map);
        let own = match self {
            ExprKind::Step { operand, .. } => is_map(operand),
            ExprKind::Call { name, arguments } => {
                matches!(name.as_str(), "delete" | "clear" | "zero") && arguments.first().is_some_and(is_map)
            }
            _ => false,
        };
        own || self.children().any(|child| child.kind.changes(map))
    }

    /// Its parts.
    fn children(&self) -> Box<dyn Iterator<Item = &Expr> + '_> {
        match self {
            ExprKind::Map { keys: parts, .. } | ExprKind::Call { arguments: parts, .. } | ExprKind::Tuple(parts) => {
                Box::new(parts.iter())
            }
            ExprKind::Member { base: part, .. }
            | ExprKind::Field { base: part, .. }
            | ExprKind::Unary { operand: part, .. }
            | ExprKind::Step { operand: part, .. }
            | ExprKind::Cast { operand: part, .. } => Box::new(std::iter::once(&**part)),
            ExprKind::Index { base: left, index: right } | ExprKind::Binary { left, right, .. } => {
                Box::new([&**left, &**right].into_iter())
            }
            ExprKind::Ternary { condition, then, otherwise } => {
                Box::new([&**condition, &**then, &**otherwise].into_iter())
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}

impl Type {
    /// Whether it is a struct or union rather than a number.
    pub fn is_struct(&self) -> bool {
        self.name.starts_with("struct ") || self.name.starts_with("union ")
    }
}

impl Expr {
    /// The expression, unless it is deeper than the translation is made for.
    pub fn new(kind: ExprKind, span: Span) -> Result<Expr, ParseError<usize, Token, Problem>> {
        let depth = 1 + kind.children().map(|child| child.depth).max().unwrap_or(0);
        match depth > MAX_DEPTH {
            true => Err(ParseError::User { error: Problem::Syntax { message: TOO_DEEP.to_string(), span } }),
            false => Ok(Expr { kind, span, depth }),
        }
    }

    /// The keys that it is between `[` and `]`: a tuple is as many as it has fields.
    pub fn into_keys(self) -> Vec<Expr> {
        match self.kind {
            ExprKind::Tuple(fields) => fields,
            _ => vec![self],
        }
    }
}
