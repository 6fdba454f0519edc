// SPDX-License-Identifier: GPL-2.0-or-later

//! The tree of a script as written: nothing is resolved, every node has its span.
//!
//! Macros and `%( %)` conditionals are already expanded (see [`super::preprocess`]), as are braces in probe points.

use std::collections::BTreeSet;

use spile_source::{FileId, Span};

/// An identifier and its span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its text.
    pub text: String,
    /// Its span.
    pub span: Span,
}

/// One file.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The file.
    pub file: FileId,
    /// Its top-level items.
    pub items: Vec<Item>,
    /// Numbers of the script arguments (`$1`, `@1`) used in the text; 0 for their count (`$#`).
    pub arguments: BTreeSet<u32>,
}

/// A top-level item of a script.
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
    /// Its span.
    pub span: Span,
}

/// One probe point.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbePoint {
    /// Its components, in order.
    pub components: Vec<Component>,
    /// `?`: no error if it does not resolve.
    pub optional: bool,
    /// `!`: as `?`, and if it resolves, the points after it are skipped.
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
    /// The argument in parentheses after the name.
    pub argument: Option<Literal>,
    /// The name with its argument.
    pub span: Span,
}

/// A number or a string.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A number.
    Number(i64),
    /// Bytes, with escapes resolved.
    String(Vec<u8>),
}

/// One variable of a `global` declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    /// The name.
    pub name: Name,
    /// Visible only in its file.
    pub private: bool,
    /// `%`: a full array drops its oldest element.
    pub wrap: bool,
    /// `[size]`, 1 and up.
    pub size: Option<i64>,
    /// The initial value and its span.
    pub initial: Option<(Literal, Span)>,
    /// Its span.
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
    /// Visible only in its file.
    pub private: bool,
    /// The declared type.
    pub returns: Option<TypeName>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Overloads are tried in ascending order.
    pub priority: Option<i64>,
    /// Its body.
    pub body: FunctionBody,
    /// Its span.
    pub span: Span,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: Name,
    /// The declared type.
    pub type_name: Option<TypeName>,
}

/// The body of a function.
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
    /// Its span.
    pub span: Span,
}

/// Statements in braces.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its statements, in order.
    pub statements: Vec<Stmt>,
    /// Includes the braces.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// The kind of statement.
    pub kind: StmtKind,
    /// Its span.
    pub span: Span,
}

/// The kinds of statement.
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
        /// Runs if it is not 0.
        then: Box<Stmt>,
        /// Runs if it is 0.
        otherwise: Option<Box<Stmt>>,
    },
    /// `while (condition) body`
    While {
        /// Evaluated before each iteration.
        condition: Expr,
        /// The loop's body.
        body: Box<Stmt>,
    },
    /// `for (init; condition; step) body`
    For {
        /// Evaluated once before.
        init: Option<Expr>,
        /// Evaluated before each iteration.
        condition: Option<Expr>,
        /// Evaluated after each iteration.
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
        /// The statements that may fail.
        body: Block,
        /// The variable that receives the error message.
        message: Option<Name>,
        /// Runs after an error.
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
    /// The sort key.
    pub by: SortBy,
    /// Descending.
    pub descending: bool,
    /// Its span.
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
    /// The kind of expression.
    pub kind: ExprKind,
    /// Its span.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// 0..2^64-1 as written, wrapped to the signed value.
    Number(i64),
    /// Bytes, with escapes resolved.
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
    /// `++x`, `x--`.
    Step {
        /// 1 or -1.
        delta: i64,
        /// The result is the new value (prefix form).
        prefix: bool,
        /// The operand.
        target: Box<Expr>,
    },
    /// `condition ? then : otherwise`
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `[keys] in array`; the array may be a histogram.
    In(Vec<Index>, Box<Expr>),
    /// `left =~ "pattern"`; negated for `!~`.
    Matches {
        /// The left operand.
        left: Box<Expr>,
        /// The pattern, with escapes resolved.
        pattern: Vec<u8>,
        /// The pattern's span.
        pattern_span: Span,
        /// The operator is `!~`.
        negated: bool,
    },
    /// A call of the printf family.
    Print(Box<Print>),
    /// `@cast(e, "type", "module")`.
    Cast {
        /// The value.
        value: Box<Expr>,
        /// The named type.
        type_name: Vec<u8>,
        /// The module to search.
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
        /// The module to search.
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
        /// The named type.
        type_name: Option<Vec<u8>>,
        /// The module to search.
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
        /// The extractor.
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

/// Extractors of an aggregate.
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

/// Unary operators.
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

/// Binary operators.
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

/// Assignment operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`
    Set,
    /// `<<<`
    Aggregate,
    /// `+=` and the like, and `.=`.
    Compound(BinaryOp),
}

/// A call of the printf family: `print println printd printdln printf` and the forms with a leading `s`.
#[derive(Clone, Debug, PartialEq)]
pub struct Print {
    /// Returns the string (sprint, sprintf, ...) instead of printing it.
    pub to_string: bool,
    /// Ends with a newline (println, printdln, sprintln, sprintdln).
    pub newline: bool,
    /// Which form.
    pub form: PrintForm,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// The span of the name.
    pub name: Name,
}

/// The form of a print function.
#[derive(Clone, Debug, PartialEq)]
pub enum PrintForm {
    /// print, println: one argument, decimal or text, or a histogram.
    Plain,
    /// printd, printdln: the arguments separated by this.
    Delimited(Vec<u8>),
    /// printf, sprintf. The span is that of the first literal, including its quotes.
    Format(Vec<u8>, Span),
    /// print_char.
    Char,
}
