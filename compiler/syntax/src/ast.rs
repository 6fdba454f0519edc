// SPDX-License-Identifier: GPL-2.0-or-later

//! The tree of a script as it was written: nothing is resolved, every node has its span.
//!
//! Macros and `%( %)` conditionals are gone by here (see [`super::preprocess`]); braces in probe points are expanded.

use std::collections::BTreeSet;

use spile_source::{FileId, Span};

/// An identifier and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

/// One file.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub file: FileId,
    pub items: Vec<Item>,
    /// Numbers of the script arguments (`$1`, `@1`) that the text uses; 0 for their count (`$#`).
    pub arguments: BTreeSet<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Probe(Probe),
    Alias(Alias),
    Global(Global),
    Function(Function),
    EmbeddedC(EmbeddedC),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    pub points: Vec<ProbePoint>,
    pub body: Block,
    /// From `probe` to the closing brace.
    pub span: Span,
}

/// `probe NAME = POINTS { prologue }`, `probe NAME += POINTS { epilogue }`, or `= ... { prologue }, { epilogue }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// Components of the new name; more than one name for a chain `probe A = B = points`.
    pub names: Vec<Vec<Component>>,
    pub points: Vec<ProbePoint>,
    pub prologue: Option<Block>,
    pub epilogue: Option<Block>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ProbePoint {
    pub components: Vec<Component>,
    /// `?`: absence is no error.
    pub optional: bool,
    /// `!`: as `?`, and where present the points after it are not looked at.
    pub sufficient: bool,
    /// `if (condition)`.
    pub condition: Option<Box<Expr>>,
    /// From the first component to the last.
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// May hold wildcards: `*`, `**`, `?`, `[...]`.
    pub name: String,
    pub argument: Option<Literal>,
    /// The name with its argument.
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Number(i64),
    /// Bytes, escapes done.
    String(Vec<u8>),
}

/// One variable of a `global` declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    pub name: Name,
    pub private: bool,
    /// `%`: a full array drops its oldest element.
    pub wrap: bool,
    /// `[size]`, 1 and up.
    pub size: Option<i64>,
    pub initial: Option<(Literal, Span)>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeName {
    Long,
    String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub name: Name,
    pub private: bool,
    pub returns: Option<TypeName>,
    pub parameters: Vec<Parameter>,
    pub priority: Option<i64>,
    pub body: FunctionBody,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: Name,
    pub type_name: Option<TypeName>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FunctionBody {
    Script(Block),
    EmbeddedC(EmbeddedC),
}

/// `%{ text %}`, without the brackets.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddedC {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub statements: Vec<Stmt>,
    /// With the braces.
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    Empty,
    Block(Block),
    Expr(Expr),
    If { condition: Expr, then: Box<Stmt>, otherwise: Option<Box<Stmt>> },
    While { condition: Expr, body: Box<Stmt> },
    For { init: Option<Expr>, condition: Option<Expr>, step: Option<Expr>, body: Box<Stmt> },
    Foreach(Box<Foreach>),
    Break,
    Continue,
    Next,
    Return(Option<Expr>),
    Delete(Expr),
    Try { body: Block, message: Option<Name>, handler: Block },
}

/// `foreach (value = [keys] in array[slice] @op+ limit e) body`.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreach {
    pub value: Option<Name>,
    pub keys: Vec<Name>,
    /// An [`ExprKind::Ident`], or an `@op` histogram expression.
    pub array: Expr,
    /// `[e, *]` after the array's name.
    pub slice: Option<Vec<Index>>,
    pub sort: Option<Sort>,
    pub limit: Option<Expr>,
    pub body: Stmt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub by: SortBy,
    pub descending: bool,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortBy {
    /// Index into the keys.
    Key(usize),
    Value,
    /// By an aggregate's extractor.
    Extractor(Extractor),
}

/// `e` or `*` in an index list.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    Expr(Expr),
    Any(Span),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// 0..2^64-1 as written, wrapped to the signed value.
    Number(i64),
    /// Bytes, escapes done.
    String(Vec<u8>),
    /// A local or global.
    Ident(String),
    /// `$name`, without members; `text` has the dollars: `$foo`, `$$vars`, `$return`.
    Target(String),
    /// `base->member`.
    Member(Box<Expr>, Name),
    /// `base[index, ...]`: an array element or a target dereference.
    Index(Box<Expr>, Vec<Index>),
    /// `base$` or `base$$`: 1 or 2 dollars.
    Pretty(Box<Expr>, u8),
    /// `&base`.
    AddressOf(Box<Expr>),
    Call(Name, Vec<Expr>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `left op right`.
    Assign(AssignOp, Box<Expr>, Box<Expr>),
    /// `++x`, `x--`: what is added, and whether the value is the new one.
    Step {
        delta: i64,
        prefix: bool,
        target: Box<Expr>,
    },
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `[keys] in array`; the array may be a histogram.
    In(Vec<Index>, Box<Expr>),
    /// `left =~ "pattern"`; negated for `!~`.
    Matches {
        left: Box<Expr>,
        pattern: Vec<u8>,
        pattern_span: Span,
        negated: bool,
    },
    Print(Box<Print>),
    /// `@cast(e, "type", "module")`.
    Cast {
        value: Box<Expr>,
        type_name: Vec<u8>,
        module: Option<Vec<u8>>,
    },
    Defined(Box<Expr>),
    Entry(Box<Expr>),
    /// `@var("name@file", "module")`.
    Var {
        name: Vec<u8>,
        module: Option<Vec<u8>>,
    },
    Perf(Vec<u8>),
    /// `@const("C text")`.
    Const(Vec<u8>),
    Enum(Vec<u8>),
    EnumName {
        value: Box<Expr>,
        type_name: Option<Vec<u8>>,
        module: Option<Vec<u8>>,
    },
    ProbeWrite(String),
    /// `@kregister(n)`, user: `@uregister(n)`.
    Register {
        user: bool,
        number: Box<Expr>,
    },
    /// `@kderef(size, address)`, user: `@uderef`.
    Deref {
        user: bool,
        size: Box<Expr>,
        address: Box<Expr>,
    },
    /// `@count(x)`, `@variance(x, shift)`.
    Extract {
        extractor: Extractor,
        aggregate: Box<Expr>,
        parameters: Vec<i64>,
    },
    /// `@hist_log(x)`, `@hist_linear(x, low, high, width)`.
    Histogram {
        linear: bool,
        aggregate: Box<Expr>,
        parameters: Vec<i64>,
    },
    EmbeddedC(EmbeddedC),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extractor {
    Count,
    Sum,
    Min,
    Max,
    Average,
    Variance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Plus,
    Minus,
    /// `!`
    Not,
    /// `~`
    Complement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    Equal,
    NotEqual,
    ShiftLeft,
    ShiftRight,
    /// `>>>`
    ShiftRightLogical,
    /// `.`
    Concatenate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`
    Set,
    /// `<<<`
    Aggregate,
    /// `+=` and the like, and `.=`.
    Compound(BinaryOp),
}

/// One of the printf family, by name: `print println printd printdln printf` and the forms with `s` before.
#[derive(Clone, Debug, PartialEq)]
pub struct Print {
    /// The result is a string (sprint, sprintf, ...); else it is printed.
    pub to_string: bool,
    /// Ends with a newline (println, printdln, sprintln, sprintdln).
    pub newline: bool,
    pub form: PrintForm,
    pub arguments: Vec<Expr>,
    /// The word itself.
    pub name: Name,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PrintForm {
    /// print, println: one argument, decimal or text, or a histogram.
    Plain,
    /// printd, printdln: the arguments with this between them.
    Delimited(Vec<u8>),
    /// printf, sprintf. The span is that of the first literal, quotes included.
    Format(Vec<u8>, Span),
    /// print_char.
    Char,
}
