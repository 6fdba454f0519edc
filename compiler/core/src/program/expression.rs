// SPDX-License-Identifier: GPL-2.0-or-later

//! Expressions. Numbers and strings are different types, so that no number can be in the place of a string:
//!
//! ```compile_fail,E0308
//! use spile_core::program::{LongExpr, StringExpr};
//! # let span = spile_source::Span::none();
//! let text = StringExpr::literal(b"x".to_vec(), span);
//! LongExpr::not(text, span);
//! ```
//!
//! Nor a string where a number belongs:
//!
//! ```compile_fail,E0308
//! use spile_core::program::{LongExpr, StringExpr};
//! # let span = spile_source::Span::none();
//! let text = StringExpr::literal(b"x".to_vec(), span);
//! StringExpr::concatenate(text, LongExpr::constant(1, span), span);
//! ```
//!
//! And an operator has operands of one type:
//!
//! ```compile_fail,E0308
//! use spile_core::program::{BinaryOp, LongExpr, StringExpr};
//! # let span = spile_source::Span::none();
//! let text = StringExpr::literal(b"x".to_vec(), span);
//! LongExpr::binary(BinaryOp::Add, LongExpr::constant(1, span), text, span);
//! ```
//!
//! With operands of the right types:
//!
//! ```
//! use spile_core::program::{BinaryOp, LongExpr, StringExpr};
//! # let span = spile_source::Span::none();
//! let text = || StringExpr::literal(b"x".to_vec(), span);
//! StringExpr::concatenate(text(), text(), span);
//! LongExpr::not(LongExpr::binary(BinaryOp::Add, LongExpr::constant(1, span), LongExpr::constant(2, span), span), span);
//! ```
//!
//! The type with which a variable, an element, a saved value or a function is used must agree with its declaration. `plan`
//! reports a mismatch as an internal error.

use super::{Element, EmbeddedC, FunctionId, GlobalId, Print, RegexId, SavedId, Slice, Type, Variable};
use crate::builtin::Builtin;
use spile_source::Span;
use spile_syntax::ast::{self, Extractor};

/// An expression of either type.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A number.
    Long(LongExpr),
    /// A string.
    String(StringExpr),
}

/// An expression whose value is a number.
#[derive(Clone, Debug)]
pub struct LongExpr {
    /// The expression with its operands.
    pub kind: LongKind,
    /// For run-time errors; starts at the operator or word.
    pub span: Span,
}

/// An expression whose value is a string.
#[derive(Clone, Debug)]
pub struct StringExpr {
    /// The expression with its operands.
    pub kind: StringKind,
    /// For run-time errors; starts at the operator or word.
    pub span: Span,
}

/// The expressions of the resolved program that are numbers.
#[derive(Clone, Debug)]
pub enum LongKind {
    /// A number known when the script is compiled.
    Const(i64),
    /// The value of a variable.
    Variable(Variable),
    /// Arithmetic, logic, comparison of numbers.
    Binary(BinaryOp, Box<LongExpr>, Box<LongExpr>),
    /// Comparison of strings: 1 or 0.
    Compare(Comparison, Box<StringExpr>, Box<StringExpr>),
    /// `-x`, wrapping.
    Negate(Box<LongExpr>),
    /// `!x`: 1 or 0.
    Not(Box<LongExpr>),
    /// `~x`.
    Complement(Box<LongExpr>),
    /// `condition ? then : otherwise`: only the chosen one is evaluated.
    Conditional(Box<LongExpr>, Box<LongExpr>, Box<LongExpr>),
    /// `text =~ pattern`: 1 or 0.
    Matches {
        /// The pattern.
        regex: RegexId,
        /// The string that is searched.
        text: Box<StringExpr>,
    },
    /// A call of a script's function; arguments in the order of its parameters. 0 if it returns nothing.
    Call(FunctionId, Vec<Expr>),
    /// One call into runtime-c. 0 if it returns nothing.
    Builtin(&'static Builtin, Vec<Expr>),
    /// `left = value`; the value of the whole is the new value.
    Assign(Box<LongPlace>, Box<LongExpr>),
    /// `left op= value`; `old`: the value of the whole is the one before (postfix `++`).
    Update {
        /// Read and written; its address and keys are evaluated once.
        left: Box<LongPlace>,
        /// An arithmetic or bitwise operator.
        op: BinaryOp,
        /// The right operand.
        value: Box<LongExpr>,
        /// The value of the whole is the one before the update.
        old: bool,
    },
    /// Prints to the trace output; 0.
    Print(Box<Print>),
    /// Word of the probed registers at this byte offset of struct pt_regs.
    Register {
        /// Bytes from the start of struct pt_regs.
        offset: u32,
    },
    /// The value saved at the function's entry.
    Saved(SavedId),
    /// The run-time address of the kernel's code or data with this link-time address; for a per-CPU variable, this CPU's
    /// copy.
    KernelAddress {
        /// Link-time address.
        address: u64,
        /// It is that of a per-CPU variable.
        per_cpu: bool,
    },
    /// The same for a module, relative to one of its symbols.
    ModuleAddress {
        /// Name of the module, with `_` for `-`.
        module: String,
        /// A symbol that is unique in the module.
        symbol: String,
        /// Bytes from the symbol on, modulo 2^64.
        offset: u64,
        /// It is that of a per-CPU variable.
        per_cpu: bool,
    },
    /// Fault-safe read, zero-extended.
    Read {
        /// Address at run time.
        address: Box<LongExpr>,
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
        /// In the address space of the current process, not the kernel's.
        user: bool,
    },
    /// Low `bits` of the value as a signed number.
    SignExtend(Box<LongExpr>, u8),
    /// `bits` bits from bit `first`, zero-extended.
    Bits {
        /// The number from which the bits are taken.
        value: Box<LongExpr>,
        /// Number of the lowest bit, 0 to 63.
        first: u8,
        /// How many, 1 to 64.
        bits: u8,
    },
    /// The value of an element; 0 if it is absent.
    Element(Element),
    /// `[keys] in array`.
    Contains {
        /// The array.
        global: GlobalId,
        /// One for each key; None: any.
        keys: Slice,
    },
    /// `aggregate <<< value`; the value of the whole is the right side's.
    Feed {
        /// The aggregate.
        aggregate: Element,
        /// The number that is added to it.
        value: Box<LongExpr>,
    },
    /// `@count`, `@sum` and the other extractors of one number.
    Extract {
        /// The aggregate.
        aggregate: Element,
        /// What is asked of it.
        extractor: Extractor,
    },
    /// Count of a histogram's bucket.
    Bucket {
        /// An aggregate with a histogram.
        aggregate: Element,
        /// Number of the bucket.
        index: Box<LongExpr>,
    },
    /// Whether a histogram has a bucket of that number: 1 or 0.
    HasBucket {
        /// An aggregate with a histogram.
        aggregate: Element,
        /// Number of the bucket.
        index: Box<LongExpr>,
    },
    /// Embedded C as an expression.
    EmbeddedC(EmbeddedC),
    /// Whether the function called last executed STAP_NEXT or [`LongKind::TakesNext`]: 1 or 0.
    TookNext,
    /// Says to the caller that the function is left by `next`; its value is 0.
    TakesNext,
}

/// The expressions of the resolved program that are strings.
#[derive(Clone, Debug)]
pub enum StringKind {
    /// The bytes of a string, without a terminating NUL.
    Literal(Vec<u8>),
    /// The value of a variable.
    Variable(Variable),
    /// `left . right`.
    Concatenate(Box<StringExpr>, Box<StringExpr>),
    /// `condition ? then : otherwise`: only the chosen one is evaluated.
    Conditional(Box<LongExpr>, Box<StringExpr>, Box<StringExpr>),
    /// A call of a script's function; arguments in the order of its parameters. "" if it returns nothing.
    Call(FunctionId, Vec<Expr>),
    /// One call into runtime-c. "" if it returns nothing.
    Builtin(&'static Builtin, Vec<Expr>),
    /// `left = value`; the value of the whole is the new value.
    Assign(Box<StringPlace>, Box<StringExpr>),
    /// `left .= value`; the value of the whole is the new value.
    Append(Box<StringPlace>, Box<StringExpr>),
    /// The text that a print would write.
    Format(Box<Print>),
    /// The value saved at the function's entry.
    Saved(SavedId),
    /// The object at the address as text, as `$x$$` prints it.
    Pretty {
        /// Address of the object at run time.
        address: Box<LongExpr>,
        /// Layout of the object, and how it is printed.
        description: std::sync::Arc<spile_abi::format::Pretty>,
    },
    /// The value of an element; "" if it is absent.
    Element(Element),
    /// The chart of an aggregate's histogram.
    Chart(Element),
    /// Embedded C as an expression.
    EmbeddedC(EmbeddedC),
}

/// What a number can be assigned to.
#[derive(Clone, Debug)]
pub enum LongPlace {
    /// A variable.
    Variable(Variable),
    /// An element of an array.
    Element(Element),
    /// Guru mode: memory, which takes the low `size` bytes of the value.
    Memory {
        /// It is that of the current process, not the kernel's.
        user: bool,
        /// Address of the storage unit at run time.
        address: LongExpr,
        /// Bytes of the storage unit: 1, 2, 4 or 8.
        size: u8,
        /// Only these bits of the storage unit are written.
        field: Option<BitField>,
        /// The value of the assignment is sign-extended from what was stored, else zero-extended.
        signed: bool,
    },
    /// Guru mode: a word of struct pt_regs. It is set to the low `size` bytes of the value, extended to 64 bits.
    Register {
        /// Bytes from the start of struct pt_regs.
        offset: u32,
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
        /// The value is sign-extended, else zero-extended.
        signed: bool,
    },
}

/// What a string can be assigned to.
#[derive(Clone, Debug)]
pub enum StringPlace {
    /// A variable.
    Variable(Variable),
    /// An element of an array.
    Element(Element),
}

/// Bits `first..first + bits` of the storage unit, counted from the least significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitField {
    /// Number of the lowest bit.
    pub first: u8,
    /// How many bits.
    pub bits: u8,
}

/// Operators on two numbers.
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
    /// A comparison: 1 or 0.
    Compare(Comparison),
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `>>>`
    ShiftRightLogical,
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

/// Comparisons, of two numbers or of two strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
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
}

impl BinaryOp {
    /// The right operand is evaluated only if the left one does not decide.
    pub fn may_skip_right(self) -> bool {
        matches!(self, BinaryOp::And | BinaryOp::Or)
    }

    /// The operator of the syntax tree; None: concatenation, which is of strings.
    pub fn of(op: ast::BinaryOp) -> Option<BinaryOp> {
        Some(match op {
            ast::BinaryOp::Or => BinaryOp::Or,
            ast::BinaryOp::And => BinaryOp::And,
            ast::BinaryOp::BitOr => BinaryOp::BitOr,
            ast::BinaryOp::BitXor => BinaryOp::BitXor,
            ast::BinaryOp::BitAnd => BinaryOp::BitAnd,
            ast::BinaryOp::Less => BinaryOp::Compare(Comparison::Less),
            ast::BinaryOp::Greater => BinaryOp::Compare(Comparison::Greater),
            ast::BinaryOp::LessEqual => BinaryOp::Compare(Comparison::LessEqual),
            ast::BinaryOp::GreaterEqual => BinaryOp::Compare(Comparison::GreaterEqual),
            ast::BinaryOp::Equal => BinaryOp::Compare(Comparison::Equal),
            ast::BinaryOp::NotEqual => BinaryOp::Compare(Comparison::NotEqual),
            ast::BinaryOp::ShiftLeft => BinaryOp::ShiftLeft,
            ast::BinaryOp::ShiftRight => BinaryOp::ShiftRight,
            ast::BinaryOp::ShiftRightLogical => BinaryOp::ShiftRightLogical,
            ast::BinaryOp::Concatenate => return None,
            ast::BinaryOp::Add => BinaryOp::Add,
            ast::BinaryOp::Subtract => BinaryOp::Subtract,
            ast::BinaryOp::Multiply => BinaryOp::Multiply,
            ast::BinaryOp::Divide => BinaryOp::Divide,
            ast::BinaryOp::Modulo => BinaryOp::Modulo,
        })
    }

    /// As scripts and C spell it; C has no `>>>`.
    pub fn text(self) -> &'static str {
        match self {
            BinaryOp::Or => "||",
            BinaryOp::And => "&&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::BitAnd => "&",
            BinaryOp::Compare(comparison) => comparison.text(),
            BinaryOp::ShiftLeft => "<<",
            BinaryOp::ShiftRight => ">>",
            BinaryOp::ShiftRightLogical => ">>>",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::Modulo => "%",
        }
    }
}

impl Comparison {
    /// As scripts and C spell it.
    pub fn text(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::Greater => ">",
            Comparison::LessEqual => "<=",
            Comparison::GreaterEqual => ">=",
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
        }
    }
}

impl Expr {
    /// The type of its value.
    pub fn ty(&self) -> Type {
        match self {
            Expr::Long(_) => Type::Long,
            Expr::String(_) => Type::String,
        }
    }

    /// What a run-time error names.
    pub fn span(&self) -> Span {
        match self {
            Expr::Long(expr) => expr.span,
            Expr::String(expr) => expr.span,
        }
    }

    /// The number, if it is one.
    pub fn long(self) -> Option<LongExpr> {
        match self {
            Expr::Long(expr) => Some(expr),
            Expr::String(_) => None,
        }
    }

    /// The string, if it is one.
    pub fn string(self) -> Option<StringExpr> {
        match self {
            Expr::String(expr) => Some(expr),
            Expr::Long(_) => None,
        }
    }

    /// The value of a variable that was declared with that type.
    pub fn variable(variable: Variable, ty: Type, span: Span) -> Expr {
        Expr::either(ty, LongKind::Variable(variable), StringKind::Variable(variable), span)
    }

    /// A call of a function whose result has that type; any type, where it returns nothing.
    pub fn call(function: FunctionId, arguments: Vec<Expr>, ty: Type, span: Span) -> Expr {
        match ty {
            Type::Long => LongExpr { kind: LongKind::Call(function, arguments), span }.into(),
            Type::String => StringExpr { kind: StringKind::Call(function, arguments), span }.into(),
        }
    }

    /// A call of a builtin; a number, if it returns nothing.
    pub fn builtin(builtin: &'static Builtin, arguments: Vec<Expr>, span: Span) -> Expr {
        match builtin.returns {
            None | Some(Type::Long) => LongExpr { kind: LongKind::Builtin(builtin, arguments), span }.into(),
            Some(Type::String) => StringExpr { kind: StringKind::Builtin(builtin, arguments), span }.into(),
        }
    }

    /// A value of that type, saved at the function's entry.
    pub fn saved(id: SavedId, ty: Type, span: Span) -> Expr {
        Expr::either(ty, LongKind::Saved(id), StringKind::Saved(id), span)
    }

    /// An element of an array of that type.
    pub fn element(element: Element, ty: Type, span: Span) -> Expr {
        match ty {
            Type::Long => LongExpr { kind: LongKind::Element(element), span }.into(),
            Type::String => StringExpr { kind: StringKind::Element(element), span }.into(),
        }
    }

    /// Embedded C whose value has that type.
    pub fn embedded(code: EmbeddedC, ty: Type, span: Span) -> Expr {
        match ty {
            Type::Long => LongExpr { kind: LongKind::EmbeddedC(code), span }.into(),
            Type::String => StringExpr { kind: StringKind::EmbeddedC(code), span }.into(),
        }
    }

    fn either(ty: Type, long: LongKind, string: StringKind, span: Span) -> Expr {
        match ty {
            Type::Long => LongExpr { kind: long, span }.into(),
            Type::String => StringExpr { kind: string, span }.into(),
        }
    }
}

impl From<LongExpr> for Expr {
    fn from(expr: LongExpr) -> Expr {
        Expr::Long(expr)
    }
}

impl From<StringExpr> for Expr {
    fn from(expr: StringExpr) -> Expr {
        Expr::String(expr)
    }
}

impl LongExpr {
    /// A number known when the script is compiled.
    pub fn constant(value: i64, span: Span) -> LongExpr {
        LongExpr { kind: LongKind::Const(value), span }
    }

    /// An operator on two numbers.
    pub fn binary(op: BinaryOp, left: LongExpr, right: LongExpr, span: Span) -> LongExpr {
        LongExpr { kind: LongKind::Binary(op, Box::new(left), Box::new(right)), span }
    }

    /// `!operand`.
    pub fn not(operand: LongExpr, span: Span) -> LongExpr {
        LongExpr { kind: LongKind::Not(Box::new(operand)), span }
    }

    /// Word of the probed registers at this byte offset of struct pt_regs.
    pub fn register(offset: u32, span: Span) -> LongExpr {
        LongExpr { kind: LongKind::Register { offset }, span }
    }

    /// Fault-safe read of this many bytes (1, 2, 4 or 8) of the kernel's memory.
    pub fn read(address: LongExpr, size: u8, span: Span) -> LongExpr {
        LongExpr { kind: LongKind::Read { address: Box::new(address), size, user: false }, span }
    }

    /// The same of the memory of the current process.
    pub fn read_user(address: LongExpr, size: u8, span: Span) -> LongExpr {
        LongExpr { kind: LongKind::Read { address: Box::new(address), size, user: true }, span }
    }

    /// So many bits from bit `first` on, zero-extended.
    pub fn bits(value: LongExpr, first: u8, bits: u8, span: Span) -> LongExpr {
        LongExpr { kind: LongKind::Bits { value: Box::new(value), first, bits }, span }
    }

    /// This many low bits, as a signed number.
    pub fn sign_extend(value: LongExpr, bits: u8, span: Span) -> LongExpr {
        LongExpr { kind: LongKind::SignExtend(Box::new(value), bits), span }
    }
}

impl StringExpr {
    /// The bytes of a string, without a terminating NUL.
    pub fn literal(bytes: Vec<u8>, span: Span) -> StringExpr {
        StringExpr { kind: StringKind::Literal(bytes), span }
    }

    /// `left . right`.
    pub fn concatenate(left: StringExpr, right: StringExpr, span: Span) -> StringExpr {
        StringExpr { kind: StringKind::Concatenate(Box::new(left), Box::new(right)), span }
    }

    /// The text of these pieces.
    pub fn format(print: Print, span: Span) -> StringExpr {
        StringExpr { kind: StringKind::Format(Box::new(print)), span }
    }
}
