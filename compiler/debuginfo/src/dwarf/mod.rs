// SPDX-License-Identifier: GPL-2.0-or-later

//! DWARF: the functions of one object, their variables with locations, and their types.
//!
//! [`Dwarf::open`] reads the units' headers. The first query by name builds an index of all top-level names, in parallel;
//! every other query parses only the units that it needs. Results are owned values.
//!
//! Damaged files give an [`Error`] or incomplete results; loops and nesting in them are bounded.

mod by_name;
mod callers;
mod calls;
mod entry;
mod export;
mod frame;
mod function_table;
mod functions;
mod globals;
mod index;
mod line_table;
mod lines;
mod location;
mod other_lines;
mod passing;
mod quick;
mod scan;
mod scope;
mod shared;
mod source;
mod split;
mod static_locals;
mod store;
mod types;
mod unit_places;
mod unit_types;
mod variables;

use std::sync::{Arc, OnceLock};

use by_name::ByName;
use callers::Callers;
use frame::Frames;
use function_table::FunctionTable;
use functions::Instances;
use index::Index;
use lines::Lines;
use spile_base::cache::Cache;
use store::{Die, EntryError, Store};

use crate::error::Error;
use crate::facts::{FunctionId, InlinedCode, TypeId};
use crate::object::Elf;
use crate::stored;

/// The DWARF of one object.
pub(crate) struct Dwarf {
    store: Store,
    elf: Arc<Elf>,
    frames: Arc<Frames>,
    by_name: Arc<ByName>,
    index: OnceLock<Result<Arc<Index>, EntryError>>,
    /// All functions, as an earlier run has stored them in the cache.
    cached_functions: OnceLock<Option<FunctionTable>>,
    /// All functions, as this run has read them.
    all_functions: OnceLock<FunctionTable>,
    cache: Option<Arc<Cache>>,
    instances: Instances,
    starts: scope::Starts,
    callers: Callers,
    lines: Lines,
    children_read: types::ChildrenRead,
    unit_types: unit_types::UnitTypes,
}

impl Dwarf {
    /// Fails with [`Error::NoDwarf`] where the object has none. `cache`: where tables are stored between runs.
    pub fn open(elf: Arc<Elf>, cache: Option<Arc<Cache>>) -> Result<Dwarf, Error> {
        Dwarf::with_code(elf, None, cache)
    }

    /// The same, of an object whose code is in another file.
    pub fn with_code(elf: Arc<Elf>, code: Option<Arc<Elf>>, cache: Option<Arc<Cache>>) -> Result<Dwarf, Error> {
        let store = Store::new(&elf, code, cache.as_deref())?;
        // Another time other files with its units may be there.
        let cache = cache.filter(|_| !store.is_split());
        stored::symbols(&elf, cache.as_deref());
        Ok(Dwarf::of(store, elf, cache))
    }

    /// The same file with nothing read of it but what concerns it as a whole.
    fn again(&self) -> Dwarf {
        Dwarf {
            frames: self.frames.clone(),
            by_name: self.by_name.clone(),
            index: self.index.clone(),
            callers: self.callers.again(self.store.slots.len()),
            ..Dwarf::of(self.store.again(), self.elf.clone(), self.cache.clone())
        }
    }

    fn of(store: Store, elf: Arc<Elf>, cache: Option<Arc<Cache>>) -> Dwarf {
        let units = store.slots.len();
        Dwarf {
            store,
            elf,
            frames: Arc::default(),
            by_name: Arc::default(),
            index: OnceLock::new(),
            cached_functions: OnceLock::new(),
            all_functions: OnceLock::new(),
            cache,
            instances: Instances::new(units),
            starts: scope::Starts::default(),
            callers: Callers::new(units),
            lines: Lines::new(units),
            children_read: types::ChildrenRead::new(units),
            unit_types: unit_types::UnitTypes::default(),
        }
    }

    fn try_index(&self) -> Result<&Index, EntryError> {
        self.index
            .get_or_init(|| Index::open(&self.store, &self.elf, self.cache.as_deref()).map(Arc::new))
            .as_ref()
            .map(|index| &**index)
            .map_err(Clone::clone)
    }

    fn index(&self) -> Result<&Index, Error> {
        self.try_index().map_err(|damage| self.failed(damage))
    }

    fn failed(&self, damage: EntryError) -> Error {
        store::damaged(&self.elf, damage)
    }
}

/// For tests of the whole crate.
#[cfg(test)]
impl Dwarf {
    /// Whether the table of all functions has been found or built.
    pub fn has_function_table(&self) -> bool {
        self.cached_functions.get().is_some_and(Option::is_some) || self.all_functions.get().is_some()
    }

    /// The function read from its entry, not from the table.
    pub fn read_entry(&self, id: FunctionId) -> crate::facts::Function {
        self.read_function(id).expect("is whole")
    }

    /// How many parts of the function are in its out-of-line copy.
    pub fn parts_of_body(&self, id: FunctionId) -> usize {
        let (unit, children) = self.children(self.copies(id).expect("is whole")[1]).expect("is whole");
        children.iter().filter(|entry| self.is_part(id, unit, entry).expect("is whole")).count()
    }
}

impl FunctionId {
    fn of(die: Die) -> FunctionId {
        FunctionId(die.0)
    }

    fn die(self) -> Die {
        Die(self.0)
    }
}

impl InlinedCode {
    fn of(die: Die) -> InlinedCode {
        InlinedCode(die.0)
    }

    fn die(self) -> Die {
        Die(self.0)
    }
}

impl TypeId {
    fn of(die: Die) -> TypeId {
        TypeId::new(die.0)
    }

    fn die(self) -> Die {
        Die(self.number)
    }
}
