// SPDX-License-Identifier: GPL-2.0-or-later

//! Numbers and strings as operands, and references to globals.

use std::rc::Rc;

use super::{ItemsId, LongId, TableId, TextId};
use crate::program::{BinaryOp, BitField, Comparison, GlobalId};

/// What a routine of several probes finds with the one that was hit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OwnConstant {
    /// A number; a format or location is one.
    Long(i64),
    /// The bytes of a string.
    Text(Vec<u8>),
    /// Bytecode that the module interprets.
    Table(TableId),
    /// Parts of a record.
    Items(ItemsId),
}

/// A global that holds a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NumberRef {
    /// Which of the program's.
    pub id: GlobalId,
    /// Name in C.
    pub symbol: Rc<str>,
    /// How it is read and written.
    pub access: NumberAccess,
}

/// How a global number is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberAccess {
    /// Each CPU has its own share of the sum: the counter's number.
    Counter(u32),
    /// Without a lock, by single loads and stores.
    Single,
    /// As an ordinary variable: under its lock, if it needs one.
    Plain,
}

/// A global that holds a string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextRef {
    /// Which of the program's.
    pub id: GlobalId,
    /// Name in C.
    pub symbol: Rc<str>,
}

/// An array or an aggregate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MapRef {
    /// Which of the program's.
    pub id: GlobalId,
    /// Name in C.
    pub symbol: Rc<str>,
    /// Each CPU counts its numbers separately.
    pub counted: bool,
    /// It has a lock for each stripe of elements.
    pub striped: bool,
}

/// An operator on two numbers that cannot fail: any but `/` and `%`, which are [`super::Instr::Divide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operator(BinaryOp);

impl Operator {
    /// `+`
    pub const ADD: Operator = Operator(BinaryOp::Add);
    /// `-`
    pub const SUBTRACT: Operator = Operator(BinaryOp::Subtract);
    /// `&`
    pub const BIT_AND: Operator = Operator(BinaryOp::BitAnd);
    /// `|`
    pub const BIT_OR: Operator = Operator(BinaryOp::BitOr);
    /// `<<`
    pub const SHIFT_LEFT: Operator = Operator(BinaryOp::ShiftLeft);

    /// None: `/` or `%`.
    pub fn of(op: BinaryOp) -> Option<Operator> {
        (!matches!(op, BinaryOp::Divide | BinaryOp::Modulo)).then_some(Operator(op))
    }

    /// The operator of the program.
    pub fn op(self) -> BinaryOp {
        self.0
    }
}

/// A number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A literal.
    Const(i64),
    /// A constant of the running probe.
    Own(u32),
    /// A variable of the routine.
    Long(LongId),
    /// A global that holds a number.
    Global(NumberRef),
    /// `-x`, wrapping.
    Negate(Box<Value>),
    /// `!x`: 1 or 0.
    Not(Box<Value>),
    /// `~x`.
    Complement(Box<Value>),
    /// `left op right`.
    Binary(Operator, Box<Value>, Box<Value>),
    /// Comparison of strings, bytewise.
    Compare(Comparison, Box<Text>, Box<Text>),
    /// `condition ? then : otherwise`.
    Conditional(Box<Value>, Box<Value>, Box<Value>),
    /// A link-time address of the kernel, relocated at run time or to this CPU's copy.
    KernelAddress {
        /// Link-time address.
        address: u64,
        /// It is that of a per-CPU variable.
        per_cpu: bool,
    },
    /// That many bytes after a symbol of a module: index into [`super::Plan::module_symbols`].
    ModuleAddress {
        /// Number of the symbol.
        symbol: u32,
        /// Bytes from the symbol on, modulo 2^64.
        offset: u64,
        /// It is that of a per-CPU variable.
        per_cpu: bool,
    },
    /// Word of struct pt_regs at this byte offset.
    Register(u32),
    /// Saved at the probed function's entry, at this offset in the instance's data.
    Saved(u32),
    /// The low bits of the value, that many, as a signed number.
    SignExtend(Box<Value>, u8),
    /// Some bits, zero-extended.
    Bits(Box<Value>, BitField),
    /// Bytes of the string.
    Length(Box<Text>),
}

/// A string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Text {
    /// These bytes, shorter than MAXSTRINGLEN.
    Literal(Vec<u8>),
    /// A constant of the running probe.
    Own(u32),
    /// A variable of the routine.
    Variable(TextId),
    /// A global that holds a string.
    Global(TextRef),
    /// As [`Value::Saved`]: an unsigned length, then the bytes.
    Saved(u32),
}

impl Value {
    /// `left op right`.
    pub fn binary(op: Operator, left: Value, right: Value) -> Value {
        Value::Binary(op, Box::new(left), Box::new(right))
    }
}
