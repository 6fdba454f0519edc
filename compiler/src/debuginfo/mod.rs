//! The DWARF of one object (vmlinux, a module): its functions, their variables, where those are, and their types.
//!
//! Nothing is read before it is asked for: [`DebugInfo::open`] looks at the units' headers; the first question by name
//! makes an index of all top-level names, in parallel; everything else parses the units it needs. Answers are owned
//! values, and ids ([`FunctionId`], [`TypeId`]) that are good for the object they came from. It knows nothing of
//! scripts.
//!
//! Damaged files give an [`Error`], or less than there should be; loops and nesting in them are bounded.
//!
//!     let debug = DebugInfo::open(Rc::new(Elf::open(path)?))?;
//!     for id in debug.find_functions(&FunctionPattern { name: "vfs_read".into(), ..Default::default() })? {
//!         let entry = debug.function(id)?.bodies[0].entry;
//!         let count = debug.variable(id, entry, "count")?;        // Location::Register(1): rdx
//!     }

mod elf;
mod error;
mod file;
mod frame;
mod functions;
mod globals;
mod index;
mod lines;
mod location;
mod registers;
mod scope;
mod store;
#[cfg(test)]
mod tests;
mod type_name;
mod types;
mod variables;

use std::cell::OnceCell;
use std::rc::Rc;

pub use elf::{Address, Anchor, Elf, Section, SectionId, Symbol};
pub use error::Error;
pub use functions::{Body, Function, FunctionId, FunctionPattern, InlinedInstance};
pub use lines::Statement;
pub use location::{Location, Op, Piece};
pub use registers::{RETURN_REGISTER, parameter_register};
pub use types::{BaseEncoding, FoundMember, Member, MemberBits, MemberError, Type, TypeId};
pub use variables::{FoundVariable, Unavailable, Variable};

use frame::Frames;
use functions::Instances;
use index::Index;
use lines::Lines;
use store::{Damage, Store};

/// Debug information of one object.
pub struct DebugInfo {
    store: Store,
    elf: Rc<Elf>,
    frames: Frames,
    index: OnceCell<Result<Index, Damage>>,
    instances: Instances,
    lines: Lines,
}

impl DebugInfo {
    /// Fails with [`Error::NoDwarf`] where the object has none.
    pub fn open(elf: Rc<Elf>) -> Result<DebugInfo, Error> {
        let store = Store::new(&elf)?;
        let (instances, lines) = (Instances::new(store.slots.len()), Lines::new(store.slots.len()));
        Ok(DebugInfo { store, elf, frames: Frames::default(), index: OnceCell::new(), instances, lines })
    }

    fn try_index(&self) -> Result<&Index, Damage> {
        self.index.get_or_init(|| Index::read(&self.store)).as_ref().map_err(Clone::clone)
    }

    fn index(&self) -> Result<&Index, Error> {
        self.try_index().map_err(|damage| self.damaged(damage))
    }

    fn damaged(&self, damage: Damage) -> Error {
        store::damaged(&self.elf, damage)
    }
}
