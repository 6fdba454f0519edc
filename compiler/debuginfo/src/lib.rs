// SPDX-License-Identifier: GPL-2.0-or-later

//! Debug information of kernels and modules: the functions of one object, their variables with locations, and their types;
//! and where the files of a kernel are.
//!
//! An object's debug information may be DWARF, BTF or an exported index. Each is a module of its own (`dwarf`, `btf`,
//! `portable`) that implements the trait `source::Source` in terms of the types of `facts`; [`DebugInfo`] opens whichever
//! there is. They read files through `object`. [`target`] knows which files belong to a kernel release.
//!
//! Results are owned values, and ids ([`FunctionId`], [`TypeId`]) that are valid for the object they came from. Nothing
//! here knows of scripts. Damaged files give an [`Error`] or incomplete results; loops and nesting in them are bounded.
//!
//!     let debug = DebugInfo::open(Arc::new(Elf::open(path)?), None, None)?;
//!     for id in debug.find_functions(&FunctionPattern { name: "vfs_read".into(), ..Default::default() })? {
//!         let entry = debug.function(id)?.bodies[0].entry;
//!         let count = debug.variable(id, entry, "count")?;        // Location::Register(1): rdx
//!     }

mod btf;
mod debug_info;
mod dwarf;
mod error;
mod facts;
mod object;
mod portable;
#[doc(hidden)]
pub mod raw;
mod source;
mod stored;
mod symbols;
mod tables;
pub mod target;
#[cfg(test)]
mod tests;

pub use self::object::{
    Address, CodeSum, CodeSymbol, Elf, FARTHEST, FunctionCode, Marker, MarkerArgument, Operand, Patched, Reason,
    Reserved, Returning, Section, SectionId, Symbol, SymbolOffset, ThreadBlock, Unwinder, demangled, is_unlisted,
    last_part, reads_callers, without_arguments,
};
pub use debug_info::DebugInfo;
pub use error::Error;
pub use facts::registers::{RETURN_REGISTER, parameter_register};
pub use facts::{
    BaseEncoding, Body, Call, Convention, FoundMember, FoundVariable, Function, FunctionId, FunctionPattern,
    InlinedCode, InlinedInstance, Label, Location, Member, MemberBits, MemberError, Op, OtherLines, Passed, Piece,
    Prologue, Statement, Type, TypeId, TypePassing, Unavailable, Variable, VirtualBase, When, path_fits,
};
