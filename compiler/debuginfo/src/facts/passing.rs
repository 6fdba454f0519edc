// SPDX-License-Identifier: GPL-2.0-or-later

//! What calling conventions ask about functions and types, besides what is said of these anyway.

use super::types::TypeId;
use crate::object::Address;

/// What a caller passes, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// None: the source gives it no name.
    pub name: Option<String>,
    /// Its type.
    pub type_id: TypeId,
}

/// Of a body that was compiled without optimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prologue {
    /// By this instruction it has stored its parameters.
    pub end: Address,
    /// Each call reaches it once: no jump comes before it or leads to it.
    pub is_passed_once: bool,
}

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// As in C.
    C,
    /// As Rust's own functions are.
    Rust,
    /// It is a function in Rust, which C may call.
    Either,
    /// In a way that nothing here knows: of Go, D and others.
    Unknown,
}

/// Of a type without typedefs and qualifiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypePassing {
    /// It is a class of C++ whose objects are passed and returned by their address, as those that cannot be copied byte by byte
    /// are (Itanium C++ ABI, 3.1.1). None: that is not known.
    pub by_address: Option<bool>,
    /// It is not an array but a vector, as `__m128`.
    pub vector: bool,
    /// Bytes that the declaration asks for, of the type or of a member; 0 if it does not.
    pub alignment: u64,
}
