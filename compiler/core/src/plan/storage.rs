// SPDX-License-Identifier: GPL-2.0-or-later

//! The globals of a module and how each is stored.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::Plan;
use super::code::{MapRef, NumberAccess, NumberRef, TextRef};
use super::globals::PerCpu;
use super::names::UniqueNames;
use crate::program::{Constant, Contents, GlobalId, Program, Type};
use spile_abi::meta;

/// A global that the program uses.
#[derive(Debug)]
pub struct Global {
    /// Its number in the program.
    pub id: GlobalId,
    /// As the script calls it.
    pub name: String,
    /// Name in C.
    pub symbol: String,
    /// How it is stored.
    pub storage: Storage,
    /// Commands of `system()` may depend on its initial value.
    pub in_commands: bool,
}

/// How a global is stored.
#[derive(Debug)]
pub enum Storage {
    /// A number or a string, and its value before any probe ran; None: 0 or "".
    Variable {
        /// Number or string.
        ty: Type,
        /// The value that the declaration gives.
        initial: Option<Constant>,
    },
    /// A table.
    Map(Map),
}

/// An array or an aggregate.
#[derive(Debug)]
pub struct Map {
    /// Its number among the maps of the module.
    pub index: u32,
    /// As the script calls it.
    pub name: String,
    /// Types of the keys; none for an aggregate that is not an array.
    pub keys: Vec<Type>,
    /// What the table, or each of its elements, contains.
    pub contents: Contents,
    /// Maximum number of elements; 1 for an aggregate that is not an array.
    pub entries: u32,
    /// The size is from the script.
    pub sized: bool,
    /// When the table is full, the oldest element is dropped.
    pub wrap: bool,
    /// Each CPU counts its numbers separately.
    pub counted: bool,
    /// It has a lock for each stripe of elements; the index of the lock for the whole array.
    pub striped: Option<u32>,
    /// Of an aggregate that is not an array: `@min` or `@max` is used, or may be.
    pub ends: bool,
}

impl Map {
    /// An aggregate that is not an array and records only what all aggregates do: handlers feed it without a call.
    pub fn is_fed_in_place(&self) -> bool {
        matches!(self.contents, Contents::Stats(stats) if !stats.variance && stats.histogram.is_none())
            && self.keys.is_empty()
    }
}

/// The globals, with the information whether each must record its least and greatest value.
pub(super) fn with_ends(mut globals: Vec<Global>, keeps: &dyn Fn(GlobalId) -> bool) -> Vec<Global> {
    for global in &mut globals {
        if let Storage::Map(map) = &mut global.storage {
            map.ends = keeps(global.id);
        }
    }
    globals
}

/// The globals of a program as the module has them.
pub(super) struct Globals {
    /// The declared globals, in script order.
    pub declared: Vec<Global>,
    /// All globals of the program, by [`GlobalId`].
    refs: Vec<GlobalRef>,
}

/// A global as instructions refer to it.
#[derive(Clone, Debug)]
pub(super) enum GlobalRef {
    Number(NumberRef),
    Text(TextRef),
    Map(MapRef),
}

/// The name of each global in the generated C.
fn symbols(program: &Program, used: &BTreeSet<GlobalId>) -> HashMap<GlobalId, Rc<str>> {
    let mut names = UniqueNames::default();
    let all = (0..program.globals.len()).map(|index| GlobalId(index as u32));
    // Used ones first: the names must not depend on globals that are not declared.
    let ordered = used.iter().copied().chain(all.filter(|id| !used.contains(id)));
    ordered.map(|id| (id, format!("global_{}", names.unique(&program.globals[id.index()].name)).into())).collect()
}

impl Globals {
    /// `used`: what the probes use. `shares`, `single_access`, `commands`: by global, as the analysis has them. `striped`:
    /// by global, the lock of an array with stripes. `map_entries`: of an array whose declaration gives no size.
    pub fn of(
        program: &Program,
        used: &BTreeSet<GlobalId>,
        shares: &[PerCpu],
        single_access: &[bool],
        striped: &[Option<u32>],
        commands: &[bool],
        map_entries: u32,
    ) -> Globals {
        let symbols = symbols(program, used);
        let all = (0..program.globals.len()).map(|index| GlobalId(index as u32));
        let refs = all.map(|id| {
            let symbol = symbols[&id].clone();
            match program.globals[id.index()].scalar() {
                Some(Type::Long) => {
                    let access = match (shares[id.index()], single_access[id.index()]) {
                        (PerCpu::Counter(counter), _) => NumberAccess::Counter(counter),
                        (_, true) => NumberAccess::Single,
                        (_, false) => NumberAccess::Plain,
                    };
                    GlobalRef::Number(NumberRef { id, symbol, access })
                }
                Some(Type::String) => GlobalRef::Text(TextRef { id, symbol }),
                None => GlobalRef::Map(MapRef {
                    id,
                    symbol,
                    counted: shares[id.index()] == PerCpu::Array,
                    striped: striped[id.index()].is_some(),
                }),
            }
        });
        let refs = refs.collect();
        let mut maps = 0..;
        let declared = used.iter().map(|&id| {
            let global = &program.globals[id.index()];
            let storage = match global.scalar() {
                Some(ty) => Storage::Variable { ty, initial: global.initial.clone() },
                None => Storage::Map(Map {
                    index: maps.next().unwrap_or(u32::MAX),
                    name: global.name.clone(),
                    keys: global.keys.clone(),
                    contents: global.contents,
                    entries: if global.is_array() { global.size.unwrap_or(map_entries) } else { 1 },
                    sized: global.size.is_some(),
                    wrap: global.wrap,
                    counted: shares[id.index()] == PerCpu::Array,
                    striped: striped[id.index()],
                    ends: true,
                }),
            };
            Global {
                id,
                name: global.name.clone(),
                symbol: symbols[&id].to_string(),
                storage,
                in_commands: commands[id.index()],
            }
        });
        Globals { declared: declared.collect(), refs }
    }

    /// The global with that id.
    pub fn get(&self, id: GlobalId) -> &GlobalRef {
        &self.refs[id.index()]
    }
}

/// Globals that may be set when the module is loaded: plain variables; not the library's private ones, and of several with
/// one name only the first.
pub(super) fn settable(globals: &[Global]) -> impl Iterator<Item = &Global> {
    let is_first = |at: usize, name: &str| !globals.iter().take(at).any(|before| before.name == name);
    globals.iter().enumerate().filter_map(move |(at, global)| {
        let is_plain = matches!(global.storage, Storage::Variable { .. });
        (is_plain && !global.name.starts_with("__") && is_first(at, &global.name)).then_some(global)
    })
}

/// What the loader may set of a global: its name, and the size of a string without its NUL.
pub(super) fn setting(global: &Global, string_bytes: u32) -> meta::Setting {
    let string_bytes = match global.storage {
        Storage::Variable { ty: Type::String, .. } => string_bytes.saturating_sub(1),
        _ => 0,
    };
    meta::Setting { name: global.name.clone(), string_bytes }
}

impl Plan {
    /// Globals in the order of [`Meta::settings`].
    pub fn settings(&self) -> impl Iterator<Item = &Global> {
        settable(&self.globals)
    }
}
