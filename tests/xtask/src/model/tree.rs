// SPDX-License-Identifier: GPL-2.0-or-later

//! The scripts of the model as a tree: [`super::generate`] makes, [`super::write`] prints, [`super::interpret`] runs
//! and [`super::shrink`] reduces it. Independent of the compiler's tree.

/// Of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Long,
    Text,
}

/// A value at run time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Long(i64),
    Text(Vec<u8>),
}

impl Value {
    /// The value of an unassigned variable.
    pub fn unset(kind: Type) -> Value {
        match kind {
            Type::Long => Value::Long(0),
            Type::Text => Value::Text(Vec::new()),
        }
    }
}

/// Some globals, and functions and handlers that use them.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Indexed by the numbers in variables.
    pub globals: Vec<Global>,
    /// Each calls only itself and earlier ones.
    pub functions: Vec<Function>,
    /// In the order of the script.
    pub handlers: Vec<Handler>,
}

/// A global variable.
#[derive(Clone, Debug)]
pub struct Global {
    /// The kind of its value.
    pub kind: GlobalKind,
    /// Size of an array.
    pub size: Size,
}

/// Of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// As declared; else MAXMAPENTRIES.
    pub entries: Option<usize>,
    /// `%`: a full array drops its oldest element.
    pub wraps: bool,
}

/// The kind of a global variable.
#[derive(Clone, Debug)]
pub enum GlobalKind {
    Scalar { kind: Type, initial: Option<Value>, given: InitialValue },
    Array { keys: Vec<Type>, kind: Type },
    Aggregate { keys: Vec<Type>, histogram: Option<Histogram> },
}

/// The source of a scalar's initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialValue {
    /// From its declaration.
    InText,
    /// By `-G` of the compiler.
    ToCompiler,
    /// As NAME=VALUE of the loader.
    ToLoader,
}

/// A histogram of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Histogram {
    Log,
    Linear { low: i64, high: i64, width: i64 },
}

impl Global {
    /// Of the keys of its elements; none for a scalar.
    pub fn keys(&self) -> &[Type] {
        match &self.kind {
            GlobalKind::Scalar { .. } => &[],
            GlobalKind::Array { keys, .. } | GlobalKind::Aggregate { keys, .. } => keys,
        }
    }

    /// Whether it is an aggregate or an array of aggregates.
    pub fn is_aggregate(&self) -> bool {
        matches!(self.kind, GlobalKind::Aggregate { .. })
    }
}

/// A function of a script.
#[derive(Clone, Debug)]
pub struct Function {
    /// The first locals of the body.
    pub parameters: usize,
    /// Type of its result.
    pub returns: Type,
    /// Types are declared; else they are inferred.
    pub typed: bool,
    /// Its body.
    pub body: Body,
}

/// When a handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerKind {
    Begin,
    Event,
    /// As an event, but the compiler expects it rarely.
    Timer,
    End,
}

/// A probe with its handler.
#[derive(Clone, Debug)]
pub struct Handler {
    /// When it runs.
    pub when: HandlerKind,
    /// Prints its number, and catches errors. Else it prints nothing and has no errors.
    pub guarded: bool,
    /// Its body.
    pub body: Body,
}

/// Statements and the variables visible only to them.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Types of the local variables.
    pub locals: Vec<Type>,
    /// In order.
    pub statements: Vec<Statement>,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    Do(Expression),
    If(Expression, Vec<Statement>, Vec<Statement>),
    While(Expression, Vec<Statement>),
    For(Option<Expression>, Option<Expression>, Option<Expression>, Vec<Statement>),
    Foreach(Box<Foreach>),
    Break,
    Continue,
    Next,
    Return(Expression),
    /// A scalar, an aggregate, a whole array or an element.
    Delete(Variable),
    /// Elements of an array with these keys; None matches any key.
    DeleteSlice(usize, Vec<Option<Expression>>),
    /// The local receives the error message.
    Try(Vec<Statement>, Option<usize>, Vec<Statement>),
    Print(Print),
    /// The histogram of an aggregate.
    Chart(Variable),
    /// The variance of an aggregate, which need not agree to the last digit.
    Variance(Variable, u32),
    Block(Vec<Statement>),
}

/// A `foreach` loop.
#[derive(Clone, Debug)]
pub struct Foreach {
    /// Number of the global array.
    pub array: usize,
    /// Locals.
    pub keys: Vec<usize>,
    /// A local.
    pub value: Option<usize>,
    /// The sort mark, if there is one.
    pub sort: Option<Sort>,
    /// Keys that an element must have.
    pub slice: Option<Vec<Option<Expression>>>,
    /// Most iterations.
    pub limit: Option<Expression>,
    /// The statements of one iteration.
    pub body: Vec<Statement>,
}

/// The sort mark of a `foreach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// The sort key.
    pub by: SortBy,
    /// `-` instead of `+`.
    pub descending: bool,
}

/// The sort key of a `foreach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBy {
    Key(usize),
    /// The sort mark is at the value's variable.
    Value,
    /// The sort mark is at the array's name: by value, or by count.
    Array,
    Extracted(Extractor),
}

/// The extractors of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extractor {
    Count,
    Sum,
    Min,
    Max,
    Avg,
}

/// An expression.
#[derive(Clone, Debug)]
pub enum Expression {
    /// In hexadecimal, if so.
    Number(i64, bool),
    Text(Vec<u8>),
    Read(Variable),
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
    Ternary(Box<Expression>, Box<Expression>, Box<Expression>),
    In(Vec<Option<Expression>>, usize),
    Assign(Variable, Box<Expression>),
    /// `+=` and the like; the operator is arithmetic or [`Binary::Concat`].
    Update(Binary, Variable, Box<Expression>),
    Step(Step, Variable),
    /// `<<<`
    Feed(Variable, Box<Expression>),
    Call(usize, Vec<Expression>),
    Builtin(Builtin, Vec<Expression>),
    /// The print function that returns a string.
    Sprint(Box<Print>),
    Extract(Extractor, Variable),
    /// The samples in a bucket of the histogram.
    Bucket(Variable, Box<Expression>),
    /// `=~`, or `!~` if not to match.
    Match(Box<Expression>, Box<Pattern>, bool),
}

/// A variable that can be assigned.
#[derive(Clone, Debug)]
pub enum Variable {
    Local(usize),
    Global(usize),
    Element(usize, Vec<Expression>),
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Plus,
    Minus,
    Not,
    Complement,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
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
    Unequal,
    ShiftLeft,
    ShiftRight,
    ShiftRightLogical,
    Concat,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// `++` and `--`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    PreIncrement,
    PreDecrement,
    PostIncrement,
    PostDecrement,
}

/// Functions of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    Strlen,
    Substr,
    Isinstr,
    Strpos,
    Stringat,
    StrReplace,
    Strtol,
    Tokenize,
    TokenizeNext,
    Isdigit,
    Error,
    /// Of the thread; in a guest 0.
    Uid,
    /// Of the handler that runs.
    Pp,
    Probefunc,
}

/// A call of a print function.
#[derive(Clone, Debug)]
pub struct Print {
    /// Which one.
    pub form: Form,
    /// Its arguments after the format or delimiter.
    pub arguments: Vec<Expression>,
}

/// The print functions: `print`, `println`, `printd`, `printdln`, `printf`.
#[derive(Clone, Debug)]
pub enum Form {
    Plain,
    Line,
    Delimited(Vec<u8>),
    DelimitedLine(Vec<u8>),
    Formatted(Vec<Piece>),
}

/// Of a format.
#[derive(Clone, Debug)]
pub enum Piece {
    Text(Vec<u8>),
    Percent,
    Directive(Directive),
}

/// A directive of a format.
#[derive(Clone, Copy, Debug)]
pub struct Directive {
    /// One of `-`, `+`, ` `, `#`, `0`.
    pub flag: Option<u8>,
    /// The field width.
    pub width: Option<Width>,
    /// The precision.
    pub precision: Option<Width>,
    /// Of `diuoxXpcs`.
    pub conversion: u8,
}

/// A width or precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Fixed(usize),
    /// `*`: an argument before the value.
    Argument,
}

/// A regular expression. Alternatives of sequences.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// It begins with `^`.
    pub from_start: bool,
    /// It ends with `$`.
    pub to_end: bool,
    /// Each a sequence of atoms.
    pub alternatives: Vec<Vec<(Atom, Repeat)>>,
}

/// One element of a regular expression.
#[derive(Clone, Debug)]
pub enum Atom {
    Byte(u8),
    Any,
    /// Ranges; all other bytes, if negated.
    Class(Vec<(u8, u8)>, bool),
    Group(Vec<Vec<(Atom, Repeat)>>),
}

/// How often an atom repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// At least this often.
    pub least: usize,
    /// At most this often; None: no limit.
    pub most: Option<usize>,
}

impl Binary {
    /// Operators from numbers to a number.
    pub const ARITHMETIC: [Binary; 11] = [
        Binary::Add,
        Binary::Subtract,
        Binary::Multiply,
        Binary::Divide,
        Binary::Modulo,
        Binary::BitAnd,
        Binary::BitOr,
        Binary::BitXor,
        Binary::ShiftLeft,
        Binary::ShiftRight,
        Binary::ShiftRightLogical,
    ];
    /// Comparisons.
    pub const COMPARISONS: [Binary; 6] =
        [Binary::Less, Binary::Greater, Binary::LessEqual, Binary::GreaterEqual, Binary::Equal, Binary::Unequal];

    /// As scripts spell it.
    pub fn symbol(self) -> &'static str {
        match self {
            Binary::Or => "||",
            Binary::And => "&&",
            Binary::BitOr => "|",
            Binary::BitXor => "^",
            Binary::BitAnd => "&",
            Binary::Less => "<",
            Binary::Greater => ">",
            Binary::LessEqual => "<=",
            Binary::GreaterEqual => ">=",
            Binary::Equal => "==",
            Binary::Unequal => "!=",
            Binary::ShiftLeft => "<<",
            Binary::ShiftRight => ">>",
            Binary::ShiftRightLogical => ">>>",
            Binary::Concat => ".",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Modulo => "%",
        }
    }
}

impl Extractor {
    /// All of them.
    pub const ALL: [Extractor; 5] = [Extractor::Count, Extractor::Sum, Extractor::Min, Extractor::Max, Extractor::Avg];

    /// As scripts spell it.
    pub fn name(self) -> &'static str {
        match self {
            Extractor::Count => "@count",
            Extractor::Sum => "@sum",
            Extractor::Min => "@min",
            Extractor::Max => "@max",
            Extractor::Avg => "@avg",
        }
    }
}

impl Builtin {
    /// Its name, parameter types and result type.
    pub fn signature(self) -> (&'static str, &'static [Type], Type) {
        use Type::{Long, Text};
        match self {
            Builtin::Strlen => ("strlen", &[Text], Long),
            Builtin::Substr => ("substr", &[Text, Long, Long], Text),
            Builtin::Isinstr => ("isinstr", &[Text, Text], Long),
            Builtin::Strpos => ("strpos", &[Text, Text], Long),
            Builtin::Stringat => ("stringat", &[Text, Long], Long),
            Builtin::StrReplace => ("str_replace", &[Text, Text, Text], Text),
            Builtin::Strtol => ("strtol", &[Text, Long], Long),
            Builtin::Tokenize => ("tokenize", &[Text, Text], Text),
            Builtin::TokenizeNext => ("tokenize", &[Text], Text),
            Builtin::Isdigit => ("isdigit", &[Text], Long),
            Builtin::Uid => ("uid", &[], Long),
            Builtin::Pp => ("pp", &[], Text),
            Builtin::Probefunc => ("probefunc", &[], Text),
            // It has no result; this is not used.
            Builtin::Error => ("error", &[Text], Long),
        }
    }
}
