// SPDX-License-Identifier: GPL-2.0-or-later

//! Object files: the bytes of one, compressed or not; its sections, symbols, build-id and code; and a file that stands for
//! another one.
//!
//! The tables of an ELF file are read with the `object` crate, here and nowhere else in this crate.

mod boot_image;
mod bring_up;
mod call_sites;
mod code_sum;
pub(crate) mod demangle;
mod dynamic;
mod elf;
mod elf_writer;
pub(crate) mod file;
mod flow;
pub(crate) mod go;
mod import_stubs;
mod imports;
mod indirect;
mod markers;
mod narrow;
mod notes;
mod patched;
mod reserved;
mod returns;
pub(crate) mod skeleton;
mod symbol_table;
mod thread_local;
mod thread_parts;
mod unsteppable;
mod unwinder;

pub(crate) use call_sites::{Transfer, transfers};
pub use code_sum::{CodeSum, code_sum};
pub use demangle::{demangled, last_part, without_arguments};
pub use elf::{Address, CodeSymbol, DataSymbol, Elf, Section, SectionId, Symbol, SymbolOffset};
pub(crate) use elf::{Contents, is_raw_btf};
pub(crate) use flow::{Edges, EntryPoints, Flow};
pub use markers::{Marker, MarkerArgument, Operand};
pub use patched::{FunctionCode, Patched};
pub use reserved::{Reason, Reserved, is_unlisted};
pub use returns::Returning;
pub use thread_local::{FARTHEST, ThreadBlock};
pub use unwinder::{Unwinder, reads_callers};
