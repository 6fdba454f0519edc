// SPDX-License-Identifier: GPL-2.0-or-later

//! The DWARF of one object (vmlinux, a module): its functions, their variables, where those are, and their types.
//!
//! Nothing is read before it is asked for: [`DebugInfo::open`] looks at the units' headers; the first question by name
//! makes an index of all top-level names, in parallel; everything else parses the units it needs. Answers are owned
//! values, and ids ([`FunctionId`], [`TypeId`]) that are good for the object they came from. It knows nothing of
//! scripts.
//!
//! Damaged files give an [`Error`], or less than there should be; loops and nesting in them are bounded.
//!
//!     let debug = DebugInfo::open(Arc::new(Elf::open(path)?))?;
//!     for id in debug.find_functions(&FunctionPattern { name: "vfs_read".into(), ..Default::default() })? {
//!         let entry = debug.function(id)?.bodies[0].entry;
//!         let count = debug.variable(id, entry, "count")?;        // Location::Register(1): rdx
//!     }

mod available;
mod btf;
mod callers;
mod calls;
mod elf;
mod error;
mod export;
mod file;
mod frame;
mod functions;
mod globals;
mod image;
mod imprint;
mod index;
mod kept;
mod known;
mod line_table;
mod lines;
mod location;
mod portable;
mod prototypes;
#[doc(hidden)]
pub mod raw;
mod registers;
mod reserved;
mod scan;
mod scope;
mod shared;
mod skeleton;
mod store;
mod tables;
pub mod target;
#[cfg(test)]
mod tests;
mod type_name;
mod types;
mod variables;

use std::sync::{Arc, OnceLock};

use spile_abi::budget::Exceeded;

pub use available::Elsewhere;
pub use calls::{Call, InlinedCode, Label};
pub use elf::{Address, Anchor, Elf, Section, SectionId, Symbol};
pub use error::Error;
pub use functions::{Body, Function, FunctionId, FunctionPattern, InlinedInstance};
pub use imprint::{Imprint, Patched};
pub use lines::Statement;
pub use location::{Location, Op, Piece};
pub use registers::{RETURN_REGISTER, parameter_register};
pub use reserved::{Reason, Reserved};
pub use types::{BaseEncoding, FoundMember, Member, MemberBits, MemberError, Type, TypeId};
pub use variables::{FoundVariable, Unavailable, Variable};

use btf::Btf;
use callers::Callers;
use frame::Frames;
use functions::Instances;
use index::Index;
use known::Known;
use lines::Lines;
use portable::Portable;
use spile_base::cache::Cache;
use store::{Damage, Store};

/// Debug information of one object.
pub struct DebugInfo {
    store: Store,
    elf: Arc<Elf>,
    frames: Frames,
    index: OnceLock<Result<Index, Damage>>,
    /// What an earlier run has kept of all functions, and what this one has made.
    known: OnceLock<Option<Known>>,
    made: OnceLock<Known>,
    cache: Option<Arc<Cache>>,
    /// Where there is no DWARF.
    btf: Option<Arc<Btf>>,
    /// What has been taken along of an object that is not here.
    portable: Option<Portable>,
    instances: Instances,
    callers: Callers,
    lines: Lines,
}

impl DebugInfo {
    /// Fails with [`Error::NoDwarf`] where the object has neither DWARF nor BTF. `cache`: where an index is kept from run to
    /// run; `base`: the kernel, whose BTF that of a module is part of.
    pub fn open(elf: Arc<Elf>, cache: Option<Arc<Cache>>, base: Option<&Elf>) -> Result<DebugInfo, Error> {
        let portable = Portable::of(&elf);
        let (store, btf) = match Store::new(&elf) {
            Ok(store) => (store, None),
            Err(Error::NoDwarf { .. }) if portable.is_some() => (Store::empty(), None),
            Err(Error::NoDwarf { path }) => {
                let base = base.map_or(Ok(None), |base| Btf::of(base, None))?.map(Arc::new);
                let btf = Btf::of(&elf, base)?.ok_or(Error::NoDwarf { path })?;
                (Store::empty(), Some(Arc::new(btf)))
            }
            Err(error) => return Err(error),
        };
        let (instances, lines) = (Instances::new(store.slots.len()), Lines::new(store.slots.len()));
        let callers = Callers::new(store.slots.len());
        let (index, known, made) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(DebugInfo {
            store,
            elf,
            frames: Frames::default(),
            index,
            known,
            made,
            cache,
            instances,
            callers,
            lines,
            btf,
            portable,
        })
    }

    /// There is no DWARF: types and prototypes are known, and nothing of inlined functions, lines and locals.
    pub fn is_btf(&self) -> bool {
        self.btf.is_some()
    }

    /// It has been exported from where the object's debug information is: where variables are is not known.
    /// Where no probe may stand, as an exported index has it.
    pub fn reserved(&self) -> Option<Reserved> {
        self.portable.as_ref().map(Portable::reserved)
    }

    pub fn is_portable(&self) -> bool {
        self.portable.is_some()
    }

    fn try_index(&self) -> Result<&Index, Damage> {
        self.index
            .get_or_init(|| Index::open(&self.store, &self.elf, self.cache.as_deref()))
            .as_ref()
            .map_err(Clone::clone)
    }

    fn index(&self) -> Result<&Index, Error> {
        self.try_index().map_err(|damage| self.damaged(damage))
    }

    /// The file with the debug information.
    pub fn path(&self) -> &std::path::Path {
        self.elf.path()
    }

    /// The result, or that the file asks for too much.
    fn affordable<T>(&self, result: Result<T, Exceeded>) -> Result<T, Error> {
        result.map_err(|error| self.damaged(error.into()))
    }

    fn damaged(&self, damage: Damage) -> Error {
        store::damaged(&self.elf, damage)
    }
}
