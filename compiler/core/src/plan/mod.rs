// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 3, first half: the resolved program to a plan: which routine runs where, with which memory, locks and formats.
//!
//! All decisions are made here; [`crate::emit`] writes the result as C.

mod ahead;
mod analysis;
pub mod code;
mod condition;
mod cost;
pub(crate) mod deferred;
mod embedded;
mod error;
pub mod frame;
mod functions;
mod globals;
mod handlers;
mod holds;
mod items;
mod limits;
pub mod locking;
pub mod memory;
mod merge;
mod metadata;
mod names;
mod parts;
mod restart;
mod routine;
pub mod stack;
mod storage;
pub mod stored_stacks;
mod tables;
pub mod writes;

use analysis::Analysis;
use code::{Item, ItemsId, OwnConstant, Routine, TableId};
pub use embedded::{Embedded, EmbeddedFunction, SourceText};
pub use error::InternalError;
use functions::Functions;
pub use globals::LockMode;
pub use limits::Limits;
pub use storage::{Global, Map, Storage};
use tables::Tables;
pub use tables::{EmbeddedExpression, ModuleSymbol};

use std::collections::{HashMap, HashSet};

use crate::program::{Attachment, Automaton, GlobalId, Privilege, Program};
use spile_abi::meta::Meta;
use spile_source::SourceMap;

/// What the driver knows about the module besides the program.
#[derive(Clone, Debug)]
pub struct ModuleInfo {
    /// Module name.
    pub module: String,
    /// The script's file name, or `<input>`.
    pub title: String,
    /// Release of the kernel that the module is for, as `uname -r` gives it.
    pub kernel_release: String,
    /// The script is compiled in guru mode (-g).
    pub guru: bool,
    /// What the script may see (--privilege).
    pub privilege: Privilege,
    /// Set by -D.
    pub limits: Limits,
    /// Further entries of the module's own information: name, value.
    pub modinfo: Vec<(String, String)>,
    /// Macros that embedded C sees: names and values.
    pub defines: Vec<(String, String)>,
}

/// The decisions for a whole module, which [`crate::emit`] writes as C.
#[derive(Debug)]
pub struct Plan {
    /// As given by the driver.
    pub info: ModuleInfo,
    /// MAXNESTING: calls of functions open at once before it is a run-time error.
    pub max_nesting: u32,
    /// Frame memory of each CPU, in bytes; more than [`frame::MOST`] is refused.
    pub frame_bytes: u64,
    /// Largest payload of an sprintf, in bytes; each CPU has a buffer of this size.
    pub scratch_bytes: u32,
    /// Largest payload of a record, in bytes.
    pub record_bytes: u32,
    /// How much the probes print.
    pub writes: writes::Writes,
    /// Arrays that probes use, and how each is locked, in the order of the script.
    pub locking: Vec<(String, locking::Locking)>,
    /// Globals that have a lock.
    pub lock_count: u32,
    /// Counters: numbers with a separate share on each CPU.
    pub counter_count: u32,
    /// Link-time address of `register_kprobe`; 0: no address of the kernel is used.
    pub anchor_address: u64,
    /// The declared globals, in script order.
    pub globals: Vec<Global>,
    /// Indexed by [`crate::program::TargetId`].
    pub targets: Vec<crate::program::Target>,
    /// Indexed by [`crate::program::ProgramId`].
    pub programs: Vec<crate::program::UserProgram>,
    /// See [`crate::program::Program`].
    pub unwinders: Vec<crate::program::UnwinderPlace>,
    /// Probes are for the session's own process and its descendants.
    pub follows: bool,
    /// Probes are for processes that begin.
    pub begins: bool,
    /// Symbols that module addresses are relative to.
    pub module_symbols: Vec<ModuleSymbol>,
    /// Guru mode: the code of the probed functions, each once.
    pub fingerprints: Vec<crate::program::Fingerprint>,
    /// Source lines of objects, by the targets' names.
    pub lines: Vec<(String, Vec<u8>)>,
    /// Records hold addresses that the loader has named.
    pub defers_names: bool,
    /// Stacks of user space are taken, or its addresses named.
    pub user_stacks: bool,
    /// Functions of the script, then entry handlers and handlers.
    pub routines: Vec<Routine>,
    /// One for each site, in the order of the program.
    pub probes: Vec<Probe>,
    /// Bytecode that the module interprets, in order.
    pub tables: Vec<(TableId, Vec<u8>)>,
    /// Parts of records, in order.
    pub items: Vec<(ItemsId, Vec<Item>)>,
    /// Of the objects in formats that the module interprets, by the numbers in the formats.
    pub descriptions: Vec<Vec<u8>>,
    /// Indexed by [`crate::program::RegexId`].
    pub regexes: Vec<crate::program::Regex>,
    /// Most registers of a pattern whose groups are used; 0: no script uses groups.
    pub match_registers: u32,
    /// Most groups of such a pattern, including the whole match; 0: no script uses groups.
    pub match_groups: u32,
    /// The script's embedded C.
    pub embedded: Embedded,
    /// What the loader reads from the module's `.spile.meta` section.
    pub meta: Meta,
}

/// One probe site.
#[derive(Debug)]
pub struct Probe {
    /// Canonical spelling of the probe point (pp(), listings).
    pub point: String,
    /// As the script wrote it (pn()).
    pub script_point: String,
    /// Probed function, or empty.
    pub function: String,
    /// Probed module, `kernel`, or empty.
    pub module: String,
    /// How it is attached and when it runs.
    pub attachment: Attachment,
    /// Name in C of the routine that a hit runs.
    pub handler: String,
    /// Values that differ between the probes that share a handler: indexed by [`code::Value::Own`] and the like.
    pub constants: Vec<OwnConstant>,
    /// Name in C of the routine that runs at the function's entry, for a return probe that saves values.
    pub entry_handler: Option<String>,
    /// How memory of the process that the handler reads is faulted in.
    pub paging: Paging,
    /// The same for the entry handler.
    pub entry_paging: Paging,
    /// Bytes that are saved for each call in flight.
    pub entry_bytes: u32,
    /// The handler only adds to counters, without a lock.
    pub counts_only: bool,
    /// The counter and the number added to it, if the handler does nothing else.
    pub adds: Option<(u32, i64)>,
    /// The handler takes no lock, is not charged for statements or steps, and sets its own location for what may fail.
    pub simple: bool,
    /// The same for the entry handler.
    pub entry_simple: bool,
    /// Estimated instructions of a run, including its entry handler.
    pub cost: u32,
    /// Bytes of kernel stack of its handlers, known once they are compiled; 0: at most MINSTACKSPACE.
    pub stack: u32,
    /// Words of the probed registers that the handler, or a return probe's entry handler, may read: bit N for word N.
    pub registers: u64,
    /// Locks that are taken for the handler: index and mode, ascending.
    pub locks: Vec<(u32, LockMode)>,
    /// The same for the entry handler.
    pub entry_locks: Vec<(u32, LockMode)>,
    /// The probe point's condition, if it can be evaluated without a hit.
    pub condition: Option<Condition>,
}

/// How memory of the process that a handler reads is faulted in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Paging {
    /// It is not.
    None,
    /// The routine of that name reads it first.
    Ahead(String),
    /// The handler ends where a page is missing, and runs again.
    Restart,
}

impl Paging {
    /// Name in C of the routine that runs first.
    pub fn ahead(&self) -> Option<&str> {
        match self {
            Paging::Ahead(symbol) => Some(symbol),
            Paging::None | Paging::Restart => None,
        }
    }
}

/// The probe point's condition, evaluated apart from a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Name in C of the routine that sets `filtered` if it does not hold.
    pub routine: String,
    /// Locks that are taken for it: index and mode, ascending.
    pub locks: Vec<(u32, LockMode)>,
}

/// Plans the module of a program.
///
/// # Errors
///
/// The program violates what elaboration guarantees.
pub fn plan(program: &Program, sources: &SourceMap, info: ModuleInfo) -> Result<Plan, InternalError> {
    let analysis = Analysis::of(program, &info.limits);
    let mut tables = Tables::new(sources, info.limits.string_bytes);
    let Functions { mut routines, embedded } = functions::plan(&analysis, &mut tables, sources)?;
    let function_count = routines.len();
    let probes = handlers::plan(&analysis, &mut tables, sources, &mut routines)?;
    let frame_bytes = frame_bytes(&analysis, &routines, function_count);
    code::keep_called(&mut routines, roots(&probes));
    let meta = metadata::plan(program, sources, &info, &mut tables, &analysis.globals.declared);
    let embedded = Embedded::of(program, sources, embedded, std::mem::take(&mut tables.expressions));
    let ends = code::asked_for_ends(&routines);
    let keeps_ends = |id: GlobalId| ends.contains(&id) || embedded.globals.contains(&id);
    let items = used_items(&routines, &probes, &mut tables);
    Ok(Plan {
        max_nesting: analysis.max_nesting,
        frame_bytes,
        scratch_bytes: tables.scratch_bytes,
        record_bytes: tables.record_bytes.max(writes::of_runtime(analysis.limits.string_bytes)),
        writes: writes::Writes::of(&probes, &routines, analysis.limits.string_bytes),
        locking: analysis.locking(),
        lock_count: analysis.lock_count(),
        counter_count: analysis.counter_count(),
        anchor_address: program.anchor_address.unwrap_or(0),
        globals: storage::with_ends(analysis.globals.declared, &keeps_ends),
        targets: program.targets.clone(),
        programs: program.programs.clone(),
        unwinders: program.unwinders.clone(),
        follows: program.follows,
        begins: program.begins,
        module_symbols: std::mem::take(&mut tables.module_symbols),
        fingerprints: program.fingerprints.clone(),
        lines: program.lines.clone(),
        defers_names: tables.defers_names,
        user_stacks: tables.user_stacks,
        tables: interpreted(&routines, &probes, &items, &mut tables),
        items,
        descriptions: tables.take_module_descriptions(),
        routines,
        probes,
        regexes: program.regexes.clone(),
        match_registers: tagged(program).map(|regex| u32::from(regex.registers)).max().unwrap_or(0),
        match_groups: tagged(program).map(spile_regex::Tagged::groups).max().unwrap_or(0),
        embedded,
        meta,
        info,
    })
}

/// Bytes of frame memory for each CPU. The first `function_count` routines are functions of the script.
fn frame_bytes(analysis: &Analysis, routines: &[Routine], function_count: usize) -> u64 {
    let size = |routine: &Routine| frame::size(routine, analysis.limits.string_bytes);
    let (functions, handlers) = routines.split_at(function_count);
    let by_symbol: HashMap<&str, u64> =
        functions.iter().map(|routine| (routine.symbol.as_str(), size(routine))).collect();
    // Embedded C has no frame memory.
    let functions: Vec<u64> =
        analysis.functions.iter().map(|name| by_symbol.get(name.symbol.as_str()).copied().unwrap_or(0)).collect();
    let handlers: Vec<u64> = handlers.iter().map(size).collect();
    frame::bytes(analysis.program, &functions, &handlers, analysis.max_nesting)
}

/// The routines that the runtime calls.
fn roots(probes: &[Probe]) -> HashSet<String> {
    let of = |probe: &Probe| {
        let condition = probe.condition.as_ref().map(|condition| condition.routine.clone());
        [
            Some(probe.handler.clone()),
            probe.entry_handler.clone(),
            condition,
            probe.paging.ahead().map(Into::into),
            probe.entry_paging.ahead().map(Into::into),
        ]
    };
    probes.iter().flat_map(of).flatten().collect()
}

/// The tables of parts for routines, and for probes that share one.
fn used_items(routines: &[Routine], probes: &[Probe], tables: &mut Tables) -> Vec<(ItemsId, Vec<Item>)> {
    let mut used = code::items(routines);
    let constants = probes.iter().flat_map(|probe| &probe.constants);
    used.extend(constants.filter_map(|constant| match constant {
        OwnConstant::Items(items) => Some(*items),
        OwnConstant::Long(_) | OwnConstant::Text(_) | OwnConstant::Table(_) => None,
    }));
    let all = (0..).map(ItemsId).zip(std::mem::take(&mut tables.items));
    all.filter(|(id, _)| used.contains(id)).collect()
}

/// The bytecode that the module interprets for routines, and for probes that share one.
fn interpreted(
    routines: &[Routine],
    probes: &[Probe],
    items: &[(ItemsId, Vec<Item>)],
    tables: &mut Tables,
) -> Vec<(TableId, Vec<u8>)> {
    let mut interpreted = code::interpreted(routines);
    interpreted.extend(items.iter().flat_map(|(_, items)| items).filter_map(|item| item.description));
    let constants = probes.iter().flat_map(|probe| &probe.constants);
    interpreted.extend(constants.filter_map(|constant| match constant {
        OwnConstant::Table(table) => Some(*table),
        OwnConstant::Long(_) | OwnConstant::Text(_) | OwnConstant::Items(_) => None,
    }));
    let all = (0..).map(TableId).zip(std::mem::take(&mut tables.tables));
    all.filter(|(id, _)| interpreted.contains(id)).collect()
}

/// Patterns whose groups are used.
fn tagged(program: &Program) -> impl Iterator<Item = &spile_regex::Tagged> {
    program.regexes.iter().filter_map(|regex| match &regex.automaton {
        Automaton::Tagged(tagged) => Some(tagged),
        Automaton::Plain(_) => None,
    })
}
