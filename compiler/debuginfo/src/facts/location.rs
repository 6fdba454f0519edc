// SPDX-License-Identifier: GPL-2.0-or-later

//! Where a variable is: operations on registers and memory that the caller can evaluate.

use crate::object::Address;

/// One step of a stack machine with 64-bit words; the result is the top of the stack at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Pushes the number.
    Const(i64),
    /// Pushes the register's value; number as in DWARF.
    Register(u16),
    /// Pushes the run-time address of a place in the object.
    Address(Address),
    /// Takes an address, gives the 1, 2, 4 or 8 bytes there, zero-extended.
    Deref(u8),
    /// The second plus the top; this and the following take two words and push one.
    Add,
    /// The second minus the top.
    Sub,
    /// The product.
    Mul,
    /// The second by the top, signed.
    Div,
    /// The remainder of that division.
    Mod,
    /// The top with its sign inverted.
    Neg,
    /// The top is an offset in the object's block of variables that each thread has; the current thread's address of it
    /// (DW_OP_form_tls_address).
    InThread,
    /// The top with all bits inverted.
    Not,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The second, shifted to the left by the top.
    Shl,
    /// The second, shifted to the right by the top, with zeros on the left.
    Shr,
    /// The second, shifted to the right by the top, with copies of the sign on the left.
    Shra,
    /// A copy of the top.
    Dup,
    /// Removes the top.
    Drop,
    /// A copy of the second.
    Over,
    /// The second becomes the top.
    Swap,
    /// The top moves below the two under it.
    Rot,
    /// A copy of the entry that far below the top; 0 is the top.
    Pick(u8),
    /// 1 where the second equals the top, else 0; this and the following compare signed numbers.
    Eq,
    /// The second is not the top.
    Ne,
    /// The second is less than the top.
    Lt,
    /// The second is greater than the top.
    Gt,
    /// The second is at most the top.
    Le,
    /// The second is at least the top.
    Ge,
}

/// Where an object is at one address of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In this register, from its least significant byte on.
    Register(u16),
    /// In memory, at the address that the operations give.
    Memory(Vec<Op>),
    /// Nowhere; the operations give its value.
    Value(Vec<Op>),
    /// Nowhere; these are its bytes, in memory order.
    Bytes(Vec<u8>),
    /// In parts, the first at the least significant end.
    Pieces(Vec<Piece>),
    /// A pointer that was optimised out, to a place in an object that is still there (DW_OP_implicit_pointer).
    Pointer {
        /// Where that object is.
        to: Box<Location>,
        /// Bytes.
        offset: i64,
    },
    /// It depends on the caller, which the return address shows at run time. All cases are values, or all are in memory.
    ByCaller {
        /// Address of the word on the stack that holds the return address.
        return_address: Vec<Op>,
        /// Return addresses, and the location for each.
        cases: Vec<(Vec<Address>, Location)>,
    },
}

/// A part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// None: the compiler has optimised this part out.
    pub location: Option<Location>,
    /// How many bits it has.
    pub bits: u64,
    /// Bits to skip in the location.
    pub first_bit: u64,
}
