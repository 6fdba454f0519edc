// SPDX-License-Identifier: GPL-2.0-or-later

//! What debug information contains, whichever form it has: owned values, and ids that are valid for the object they came
//! from. A [`Source`](crate::source::Source) gives them.
//!
//! An id holds the number by which its source knows the thing: for DWARF the offset of the entry in `.debug_info`, for BTF
//! the number of the type, for an exported index the row of its table.

mod functions;
mod location;
mod passing;
pub(crate) mod registers;
mod types;
mod variables;

pub(crate) use functions::CALL_LENGTH;
pub use functions::path_fits;
pub use functions::{
    Body, Call, Function, FunctionId, FunctionPattern, InlinedCode, InlinedInstance, Label, Statement,
};
pub use location::{Location, Op, Piece};
pub use passing::{Convention, Passed, Prologue, TypePassing};
pub use types::{BaseEncoding, FoundMember, Member, MemberBits, MemberError, Type, TypeId, VirtualBase, When};
pub(crate) use types::{Extent, TypeTag};
pub use variables::{FoundVariable, OtherLines, Unavailable, Variable};

/// Longest chain of references (typedefs, qualifiers, abstract origins) that is followed; a longer one is a cycle.
pub(crate) const MAX_CHAIN: usize = 64;
