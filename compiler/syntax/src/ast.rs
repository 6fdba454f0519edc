// SPDX-License-Identifier: GPL-2.0-or-later

//! The tree of a script as it was written: nothing is resolved, every node has its span.
//!
//! Macros and `%( %)` conditionals are gone by here (see [`super::preprocess`]); braces in probe points are expanded.

use std::collections::BTreeSet;

use spile_source::{FileId, Span};

/// An identifier and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its text.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// One file.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The file.
    pub file: FileId,
    /// Its top-level items.
    pub items: Vec<Item>,
    /// Numbers of the script arguments (`$1`, `@1`) that the text uses; 0 for their count (`$#`).
    pub arguments: BTreeSet<u32>,
}

/// What stands at the top level of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A probe.
    Probe(Probe),
    /// A probe alias.
    Alias(Alias),
    /// A global variable.
    Global(Global),
    /// A function.
    Function(Function),
    /// C text.
    EmbeddedC(EmbeddedC),
}

/// `probe POINTS { body }`
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Its probe points.
    pub points: Vec<ProbePoint>,
    /// Its body.
    pub body: Block,
    /// From `probe` to the closing brace.
    pub span: Span,
}

/// `probe NAME = POINTS { prologue }`, `probe NAME += POINTS { epilogue }`, or `= ... { prologue }, { epilogue }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// Components of the new name; more than one name for a chain `probe A = B = points`.
    pub names: Vec<Vec<Component>>,
    /// Its probe points.
    pub points: Vec<ProbePoint>,
    /// Runs before the handlers of probes that use the alias.
    pub prologue: Option<Block>,
    /// Runs after the handlers of probes that use the alias.
    pub epilogue: Option<Block>,
    /// Where it stands.
    pub span: Span,
}

/// One probe point.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbePoint {
    /// Its components, in order.
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

/// One component of a probe point: `function("vfs_read")`.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// May hold wildcards: `*`, `**`, `?`, `[...]`.
    pub name: String,
    /// What stands in parentheses behind the name.
    pub argument: Option<Literal>,
    /// The name with its argument.
    pub span: Span,
}

/// A number or a string.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A number.
    Number(i64),
    /// Bytes, escapes done.
    String(Vec<u8>),
}

/// One variable of a `global` declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    /// The name.
    pub name: Name,
    /// Only its file sees it.
    pub private: bool,
    /// `%`: a full array drops its oldest element.
    pub wrap: bool,
    /// `[size]`, 1 and up.
    pub size: Option<i64>,
    /// The initial value, and where it stands.
    pub initial: Option<(Literal, Span)>,
    /// Where it stands.
    pub span: Span,
}

/// A type that a declaration can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeName {
    /// `long`
    Long,
    /// `string`
    String,
}

/// `function name:type (parameters) { body }`
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name.
    pub name: Name,
    /// Only its file sees it.
    pub private: bool,
    /// The type that the declaration gives it.
    pub returns: Option<TypeName>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Of overloads the lowest is tried first.
    pub priority: Option<i64>,
    /// Its body.
    pub body: FunctionBody,
    /// Where it stands.
    pub span: Span,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: Name,
    /// The type that the text names.
    pub type_name: Option<TypeName>,
}

/// What a function is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionBody {
    /// Statements of the language.
    Script(Block),
    /// C text.
    EmbeddedC(EmbeddedC),
}

/// `%{ text %}`, without the brackets.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddedC {
    /// Its text.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// Statements in braces.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its statements, in order.
    pub statements: Vec<Stmt>,
    /// With the braces.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it stands.
    pub span: Span,
}

/// What a statement can be.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `;`
    Empty,
    /// `{ ... }`
    Block(Block),
    /// An expression.
    Expr(Expr),
    /// `if (condition) then else otherwise`
    If {
        /// The condition.
        condition: Expr,
        /// What runs if it is not 0.
        then: Box<Stmt>,
        /// What runs if it is 0.
        otherwise: Option<Box<Stmt>>,
    },
    /// `while (condition) body`
    While {
        /// Asked before each round.
        condition: Expr,
        /// The loop's body.
        body: Box<Stmt>,
    },
    /// `for (init; condition; step) body`
    For {
        /// Runs once before.
        init: Option<Expr>,
        /// Asked before each round.
        condition: Option<Expr>,
        /// Runs after each round.
        step: Option<Expr>,
        /// The loop's body.
        body: Box<Stmt>,
    },
    /// `foreach (...) body`
    Foreach(Box<Foreach>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `next`
    Next,
    /// `return e`
    Return(Option<Expr>),
    /// `delete e`
    Delete(Expr),
    /// `try { body } catch (message) { handler }`
    Try {
        /// What may fail.
        body: Block,
        /// The variable that gets the error's message.
        message: Option<Name>,
        /// What runs after an error.
        handler: Block,
    },
}

/// `foreach (value = [keys] in array[slice] @op+ limit e) body`.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreach {
    /// The value.
    pub value: Option<Name>,
    /// The variables of its keys.
    pub keys: Vec<Name>,
    /// An [`ExprKind::Ident`], or an `@op` histogram expression.
    pub array: Expr,
    /// `[e, *]` after the array's name.
    pub slice: Option<Vec<Index>>,
    /// The order of the elements.
    pub sort: Option<Sort>,
    /// The limit.
    pub limit: Option<Expr>,
    /// Its body.
    pub body: Stmt,
}

/// The order of `foreach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// By what.
    pub by: SortBy,
    /// From the largest to the smallest.
    pub descending: bool,
    /// Where it stands.
    pub span: Span,
}

/// What `foreach` sorts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortBy {
    /// Index into the keys.
    Key(usize),
    /// By the value.
    Value,
    /// By an aggregate's extractor.
    Extractor(Extractor),
}

/// `e` or `*` in an index list.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    /// An expression.
    Expr(Expr),
    /// `*`
    Any(Span),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// What an expression can be.
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
    /// `name(arguments)`
    Call(Name, Vec<Expr>),
    /// `op e`
    Unary(UnaryOp, Box<Expr>),
    /// `left op right`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `left op right`.
    Assign(AssignOp, Box<Expr>, Box<Expr>),
    /// `++x`, `x--`: what is added, and whether the value is the new one.
    Step {
        /// 1 or -1.
        delta: i64,
        /// The value is the new one.
        prefix: bool,
        /// What is changed.
        target: Box<Expr>,
    },
    /// `condition ? then : otherwise`
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `[keys] in array`; the array may be a histogram.
    In(Vec<Index>, Box<Expr>),
    /// `left =~ "pattern"`; negated for `!~`.
    Matches {
        /// The operand on the left.
        left: Box<Expr>,
        /// The pattern, escapes done.
        pattern: Vec<u8>,
        /// Where the pattern stands.
        pattern_span: Span,
        /// It is `!~`.
        negated: bool,
    },
    /// One of the printf family.
    Print(Box<Print>),
    /// `@cast(e, "type", "module")`.
    Cast {
        /// The value.
        value: Box<Expr>,
        /// The type that the text names.
        type_name: Vec<u8>,
        /// Where the type or variable is looked for.
        module: Option<Vec<u8>>,
    },
    /// `@defined(e)`
    Defined(Box<Expr>),
    /// `@entry(e)`
    Entry(Box<Expr>),
    /// `@var("name@file", "module")`.
    Var {
        /// The name.
        name: Vec<u8>,
        /// Where the type or variable is looked for.
        module: Option<Vec<u8>>,
    },
    /// `@perf("counter")`
    Perf(Vec<u8>),
    /// `@const("C text")`.
    Const(Vec<u8>),
    /// `@enum("NAME")`
    Enum(Vec<u8>),
    /// `@enum_name(e, "type", "module")`
    EnumName {
        /// The value.
        value: Box<Expr>,
        /// The type that the text names.
        type_name: Option<Vec<u8>>,
        /// Where the type or variable is looked for.
        module: Option<Vec<u8>>,
    },
    /// `@probewrite(name)`
    ProbeWrite(String),
    /// `@kregister(n)`, user: `@uregister(n)`.
    Register {
        /// In user space.
        user: bool,
        /// The number.
        number: Box<Expr>,
    },
    /// `@kderef(size, address)`, user: `@uderef`.
    Deref {
        /// In user space.
        user: bool,
        /// The size in bytes.
        size: Box<Expr>,
        /// The address.
        address: Box<Expr>,
    },
    /// `@count(x)`, `@variance(x, shift)`.
    Extract {
        /// Which one.
        extractor: Extractor,
        /// The aggregate.
        aggregate: Box<Expr>,
        /// Its parameters.
        parameters: Vec<i64>,
    },
    /// `@hist_log(x)`, `@hist_linear(x, low, high, width)`.
    Histogram {
        /// It is `@hist_linear`.
        linear: bool,
        /// The aggregate.
        aggregate: Box<Expr>,
        /// Its parameters.
        parameters: Vec<i64>,
    },
    /// C text.
    EmbeddedC(EmbeddedC),
}

/// What can be asked of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extractor {
    /// `@count`
    Count,
    /// `@sum`
    Sum,
    /// `@min`
    Min,
    /// `@max`
    Max,
    /// `@avg`
    Average,
    /// `@variance`
    Variance,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `!`
    Not,
    /// `~`
    Complement,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `&`
    BitAnd,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    LessEqual,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `>>>`
    ShiftRightLogical,
    /// `.`
    Concatenate,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

/// Operators that assign.
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
    /// Which words of the family.
    pub form: PrintForm,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// The word itself.
    pub name: Name,
}

/// What a print function prints.
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
