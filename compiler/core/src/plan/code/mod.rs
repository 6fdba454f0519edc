// SPDX-License-Identifier: GPL-2.0-or-later

//! The steps of a handler or function: all that remains is to write them as C.
//!
//! A [`Value`] (a number) or [`Text`] (a string) has no effect and cannot fail; everything else is an [`Instr`] with its
//! result in a variable. The order of instructions is the language's: left to right.
//!
//! Numbers, strings and arrays are different types throughout, so that an instruction cannot take one for the other.

mod instr;
mod value;
mod walk;

pub use instr::*;
pub use value::*;
pub use walk::*;

use crate::program::{Type, id};

id!(/** A long of the routine: index into [`Routine::longs`]. */ LongId);
id!(/** A string reference of the routine: index into [`Routine::texts`]. */ TextId);
id!(/** MAXSTRINGLEN bytes of the routine's frame: index into [`Routine::buffers`]; or [`BufferId::RESULT`]. */ BufferId);
id!(/** A `foreach` of the routine: its iterator, and what that needs of the frame: index into [`Routine::iterators`]. */ IteratorId);
id!(/** A jump target of the routine. */ LabelId);
id!(/** A place that a run-time error names: index into the metadata's locations. */ LocationId);
id!(/** How the loader prints a record: index into the metadata's formats. */ FormatId);
id!(/** Bytecode that the module itself interprets: index into [`super::Plan::tables`]. */ TableId);
id!(/** Parts of a record as a table: in [`super::Plan::items`]. */ ItemsId);

impl BufferId {
    /// The caller's memory for the string that the routine returns.
    pub const RESULT: BufferId = BufferId(u32::MAX);
}

/// Set in an id that differs for each probe.
const OWN: u32 = 1 << 31;

macro_rules! own_ids {
    ($($id:ident)*) => {$(
        impl $id {
            /// One that differs for each probe: the number of that constant of the probe.
            pub fn own(constant: u32) -> $id {
                $id(constant | OWN)
            }

            /// The constant's number, if this is a constant of the probe.
            pub fn as_own(self) -> Option<u32> {
                (self.0 & OWN != 0).then_some(self.0 & !OWN)
            }
        }
    )*};
}

own_ids! { LocationId FormatId TableId ItemsId }

/// Leaves the routine: releases its frame and returns.
pub const OUT: LabelId = LabelId(0);

/// One C function.
#[derive(Debug)]
pub struct Routine {
    /// Name in C.
    pub symbol: String,
    /// What it is, for readers of the C text; may have several lines.
    pub comment: String,
    /// In argument order.
    pub parameters: Vec<Parameter>,
    /// None: no result.
    pub returns: Option<Type>,
    /// All longs by [`LongId`], parameters included ([`Variable::parameter`]).
    pub longs: Vec<Variable>,
    /// All string references by [`TextId`], parameters included.
    pub texts: Vec<Variable>,
    /// By [`BufferId`]: the variable that the buffer is for, as comments name it.
    pub buffers: Vec<String>,
    /// By [`IteratorId`].
    pub iterators: Vec<IteratorMemory>,
    /// How it gets memory for its buffers.
    pub frame: Frame,
    /// Its variables are in frame memory too, because the stack has no room for them.
    pub spilled: bool,
    /// The instructions, in order.
    pub code: Vec<Instr>,
}

impl Routine {
    /// It needs frame memory.
    pub fn has_frame(&self) -> bool {
        self.spilled || !self.buffers.is_empty() || self.iterators.iter().any(|iterator| iterator.bytes() > 0)
    }
}

/// A variable of a routine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Name in C.
    pub name: String,
    /// Declared as a parameter.
    pub parameter: bool,
}

/// A parameter of a routine: one of its variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// A number.
    Long(LongId),
    /// A string reference.
    Text(TextId),
}

/// Memory that one `foreach` needs besides the iterator itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IteratorMemory {
    /// Number of elements to sort or select; 0: none.
    pub order: u32,
    /// A histogram's buckets are copied.
    pub buckets: bool,
}

impl IteratorMemory {
    /// Bytes of frame memory.
    pub fn bytes(self) -> u64 {
        let buckets = if self.buckets { u64::from(crate::program::MAX_BUCKETS) * 8 } else { 0 };
        (u64::from(self.order) * 4).next_multiple_of(8) + buckets
    }
}

/// How the routine gets memory for its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// A handler: the first of the CPU's frame memory, always enough.
    Handler,
    /// A function: checked, and the nesting counted.
    Checked,
    /// A function without buffers that cannot nest too deep.
    None,
}

#[cfg(test)]
/// Routines for tests.
pub mod tests {
    use super::*;

    /// A routine that consists of calls.
    pub fn routine(symbol: &str, code: Vec<Instr>) -> Routine {
        Routine {
            symbol: symbol.into(),
            comment: String::new(),
            parameters: Vec::new(),
            returns: None,
            longs: Vec::new(),
            texts: Vec::new(),
            buffers: Vec::new(),
            iterators: Vec::new(),
            frame: Frame::None,
            spilled: false,
            code,
        }
    }
}
