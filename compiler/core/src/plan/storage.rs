// SPDX-License-Identifier: GPL-2.0-or-later

//! The globals of a module and how each is stored.

use super::Plan;
use super::analysis::Analysis;
use super::names::{Numbered, c_name};
use crate::program::{Constant, GlobalId, Holds, Type};
use spile_abi::meta;

/// A global that the program uses.
#[derive(Debug)]
pub struct Global {
    pub id: GlobalId,
    /// As the script calls it.
    pub name: String,
    pub symbol: String,
    pub storage: Storage,
}

/// How a global is held.
#[derive(Debug)]
pub enum Storage {
    /// `counter`: its number, if each CPU has its own share of the sum. `single_access`: it is used without a lock, by
    /// single loads and stores.
    Variable {
        ty: Type,
        initial: Option<Constant>,
        counter: Option<u32>,
        single_access: bool,
    },
    Map(Map),
}

/// An array or an aggregate.
#[derive(Debug)]
pub struct Map {
    /// Among the maps of the module.
    pub index: u32,
    pub name: String,
    pub keys: Vec<Type>,
    pub holds: Holds,
    pub entries: u32,
    /// The script gave the size.
    pub sized: bool,
    pub wrap: bool,
}

/// The globals that the module has, in the order of their declarations.
pub(super) fn used(analysis: &Analysis) -> Vec<Global> {
    let mut numbered = Numbered::default();
    let mut maps = 0;
    let used = analysis.used_globals().into_iter();
    used.map(|id| {
        let global = &analysis.program.globals[id.index()];
        let symbol = format!("global_{}{}", c_name(&global.name), numbered.suffix(&global.name));
        let storage = match global.scalar() {
            Some(ty) => Storage::Variable {
                ty,
                initial: global.initial.clone(),
                counter: analysis.counters[id.index()],
                single_access: analysis.single_access[id.index()],
            },
            None => {
                maps += 1;
                Storage::Map(Map {
                    index: maps - 1,
                    name: global.name.clone(),
                    keys: global.keys.clone(),
                    holds: global.holds,
                    entries: if global.is_array() { global.size.unwrap_or(analysis.limits.map_entries) } else { 1 },
                    sized: global.size.is_some(),
                    wrap: global.wrap,
                })
            }
        };
        Global { id, name: global.name.clone(), symbol, storage }
    })
    .collect()
}

/// Globals that may be set when the module is loaded: plain variables; not the library's private ones, and of several with
/// one name the first.
pub(super) fn settable(globals: &[Global]) -> impl Iterator<Item = &Global> {
    let is_first = |at: usize, name: &str| !globals.iter().take(at).any(|before| before.name == name);
    globals.iter().enumerate().filter_map(move |(at, global)| {
        let is_plain = matches!(global.storage, Storage::Variable { .. });
        (is_plain && !global.name.starts_with("__") && is_first(at, &global.name)).then_some(global)
    })
}

/// What the loader may set of a global: its name, and the room of a string without its NUL.
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
