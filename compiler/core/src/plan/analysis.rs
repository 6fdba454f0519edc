// SPDX-License-Identifier: GPL-2.0-or-later

//! What planning a part needs to know about the whole program: which globals need a lock and how each is accessed, how deep
//! calls nest, what functions are called in C. Computed once, before any routine is planned.

use std::collections::BTreeSet;

use super::frame::{self, Nesting};
use super::globals::{self, LockMode, PerCpu};
use super::holds::{self, Hold, Holds};
use super::locking::Locking;
use super::names::{self, FunctionName};
use super::storage::Globals;
use super::{Limits, condition};
use crate::program::commands;
use crate::program::condition::filters;
use crate::program::element_uses::{EarlyValue, ElementUses, KnownValues, UsedElement};
use crate::program::lead_in;
use crate::program::uses::{self, Access, AccessCounts, CodeSummary, OFTEN, Uses};
use crate::program::{self, Attachment, Expr, GlobalId, LongExpr, Program, Registers, Stmt, Type};

/// See the module's description.
pub(super) struct Analysis<'p> {
    /// The program that is planned.
    pub program: &'p Program,
    /// Limits of its module.
    pub limits: &'p Limits,
    /// What each function does directly.
    function_summaries: Vec<CodeSummary>,
    /// The uses of globals by each function, including its callees.
    function_uses: Vec<Uses>,
    /// By probe: the direct uses of its handler.
    handler_summaries: Vec<CodeSummary>,
    /// By probe: how many statements behind its conditions are run before it takes stripes.
    lead_ins: Vec<usize>,
    /// By probe: the uses of globals by its handler, including its callees.
    handler_uses: Vec<Uses>,
    /// By probe: the uses of a return probe at its function's entry.
    entry_uses: Vec<Uses>,
    /// What conditions of probe points read.
    watched: BTreeSet<GlobalId>,
    /// By global: whether each CPU has its own share of it.
    shares: Vec<PerCpu>,
    /// By probe: how its handler takes the stripes of arrays that have them.
    holds: Vec<Holds<'p>>,
    /// By global: whether it is an array with a lock for each stripe.
    striped: Vec<bool>,
    /// Arrays that probes use, and how each is locked.
    locking: Vec<(String, Locking)>,
    /// By global: the index of its lock.
    locks: Vec<Option<u32>>,
    /// How deep calls nest.
    pub nesting: Nesting,
    /// MAXNESTING, or what the script needs.
    pub max_nesting: u32,
    /// How globals are stored.
    pub globals: Globals,
    /// By function.
    pub functions: Vec<FunctionName>,
    /// By probe: where the values saved at entry are stored.
    pub saved: Vec<SavedLayout>,
}

/// Where the values that a return probe saves at its function's entry are stored in the data of a kretprobe instance.
pub(super) struct SavedLayout {
    /// Type and byte offset, by [`program::SavedId`].
    pub places: Vec<(Type, u32)>,
    /// Size of all values.
    pub bytes: u32,
}

/// Stripes that a handler takes.
pub(super) enum Held<'a> {
    /// That of one element.
    Element(HeldElement<'a>),
    /// All of an array; late: as in [`HeldElement`].
    Whole { array: GlobalId, late: bool },
}

/// An element that a handler uses of a striped array.
pub(super) struct HeldElement<'a> {
    /// The array.
    pub array: GlobalId,
    /// The handler has had effects before.
    pub late: bool,
    /// Its keys, known when the stripe is taken.
    pub keys: &'a [Expr],
    /// Functions that the handler calls use it too: they look for it by its keys.
    pub called: bool,
    /// The handler may create it, for which an array that wraps then drops its oldest element.
    pub drops: bool,
    /// As in [`Instr::Hold`](super::code::Instr).
    pub several: Option<u32>,
    /// Parts of its keys that are computed early.
    pub early: Vec<&'a LongExpr>,
}

/// What functions and handlers use, before anything is decided about globals. The fields are those of [`Analysis`].
struct Summaries {
    function_summaries: Vec<CodeSummary>,
    function_uses: Vec<Uses>,
    lead_ins: Vec<usize>,
    handler_summaries: Vec<CodeSummary>,
    handler_uses: Vec<Uses>,
    entry_uses: Vec<Uses>,
}

impl Summaries {
    fn of(program: &Program) -> Summaries {
        let function_summaries = CodeSummary::of_functions(program);
        let function_uses = uses::function_uses(&function_summaries);
        let lead_ins: Vec<usize> = program.probes.iter().map(|probe| lead_in_of(probe, &function_summaries)).collect();
        let early = CodeSummary::early_functions(&function_summaries);
        let summary = |(probe, &lead_in): (&program::Probe, &usize)| {
            let after = filters(&probe.body) + lead_in;
            let known = lead_in::known(probe.body.split_at(after).1, probe.locals.len(), &function_summaries, &early);
            CodeSummary::of_handler(&probe.body, known)
        };
        let handler_summaries: Vec<CodeSummary> = program.probes.iter().zip(&lead_ins).map(summary).collect();
        let handler_uses = handler_summaries.iter().map(|summary| summary.with_calls(&function_uses)).collect();
        let at_entry = |probe: &program::Probe| CodeSummary::of_values(&probe.saved).with_calls(&function_uses);
        let entry_uses = program.probes.iter().map(at_entry).collect();
        Summaries { function_summaries, function_uses, lead_ins, handler_summaries, handler_uses, entry_uses }
    }
}

impl<'p> Analysis<'p> {
    /// Analyses the whole program.
    pub fn of(program: &'p Program, limits: &'p Limits) -> Analysis<'p> {
        let Summaries { function_summaries, function_uses, lead_ins, handler_summaries, handler_uses, entry_uses } =
            Summaries::of(program);
        let watched = condition::watched(program, &function_uses);
        let both: Vec<Uses> = handler_uses.iter().zip(&entry_uses).map(|(one, other)| uses::both(one, other)).collect();
        let shares = globals::shares(program, &both, &watched, limits);
        let all = || function_summaries.iter().chain(&handler_summaries);
        let sorted = all().flat_map(|summary| &summary.sorted).copied().collect();
        let contended = globals::contended(program, &both, &shares, &sorted);
        let element_uses: Vec<ElementUses> = handler_summaries
            .iter()
            .map(|summary| summary.element_uses_with_calls(&function_summaries, &function_uses))
            .collect();
        let striping = globals::Striping {
            entry_uses: &entry_uses,
            contended: &contended,
            shares: &shares,
            watched: &watched,
            whole_locks: limits.whole_locks,
        };
        let functions = holds::Functions { summaries: &function_summaries, uses: &function_uses };
        let holds_of = |(index, probe): (usize, &'p program::Probe)| {
            let body = probe.body.split_at(filters(&probe.body) + lead_ins[index]).1;
            let arrays = handler_uses[index].keys().copied().filter(|id| program.globals[id.index()].is_array());
            match globals::is_frequent(&probe.attachment) {
                true => holds::of(probe, body, arrays, &element_uses[index], functions),
                false => Holds::new(),
            }
        };
        let mut holds: Vec<Holds> = program.probes.iter().enumerate().map(holds_of).collect();
        let stripes = globals::striped(program, &striping, &mut holds);
        let striped: Vec<bool> = stripes.arrays.iter().map(Result::is_ok).collect();
        holds.iter_mut().for_each(|holds| holds.retain(|array, _| striped[array.index()]));
        let mut runs = runs(program, &function_summaries, &handler_summaries);
        for (handler, _) in holds.iter().enumerate().filter(|(_, holds)| holds.values().any(|it| it.position > 0)) {
            // A run has all its locks only after it has taken all stripes; single accesses may come before.
            runs[2 * handler].1.values_mut().for_each(|times| *times = OFTEN);
        }
        let single_access = globals::single_access(program, &runs, &contended, &watched);
        let locks = globals::locks(&contended, &single_access, &stripes.order);
        let stripe_locks: Vec<Option<u32>> =
            striped.iter().zip(&locks).map(|(&striped, &lock)| if striped { lock } else { None }).collect();
        let nesting = frame::nesting(program);
        let commands = commands::reached(program, &function_summaries, &function_uses, &handler_summaries);
        let used: BTreeSet<GlobalId> = both.into_iter().flat_map(Uses::into_keys).collect();
        let of = |id: GlobalId| {
            let (global, index) = (&program.globals[id.index()], id.index());
            let whole =
                holds.iter().enumerate().find_map(|(probe, holds)| Some((probe, holds.get(&id)?.what.as_ref().err()?)));
            let whole = whole.map(|(probe, why)| (probe, *why));
            let how = || globals::locking(global, shares[index], contended[index], &stripes.arrays[index], whole);
            global.is_array().then(|| (global.name.clone(), how()))
        };
        let locking = used.iter().copied().filter_map(of).collect();
        Analysis {
            globals: Globals::of(program, &used, &shares, &single_access, &stripe_locks, &commands, limits.map_entries),
            max_nesting: limits.max_nesting.unwrap_or(nesting.needed),
            functions: names::functions(program),
            saved: program.probes.iter().map(|probe| SavedLayout::of(&probe.saved, limits.string_bytes)).collect(),
            program,
            limits,
            function_summaries,
            function_uses,
            handler_summaries,
            lead_ins,
            handler_uses,
            entry_uses,
            watched,
            shares,
            holds,
            striped,
            locking,
            locks,
            nesting,
        }
    }

    /// Whether calls must be counted: a function can call itself, or the user has set MAXNESTING.
    pub fn counts_nesting(&self) -> bool {
        self.nesting.limited || self.limits.max_nesting.is_some()
    }

    /// Arrays that probes use, and how each is locked.
    pub fn locking(&self) -> Vec<(String, Locking)> {
        self.locking.clone()
    }

    /// Locks of the module.
    pub fn lock_count(&self) -> u32 {
        self.locks.iter().flatten().count() as u32
    }

    /// Counters of the module.
    pub fn counter_count(&self) -> u32 {
        self.shares.iter().filter(|shares| matches!(shares, PerCpu::Counter(_))).count() as u32
    }

    /// The locks of a probe's handler with their modes, ascending; without those of arrays of which it holds a stripe.
    pub fn handler_locks(&self, probe: usize) -> Vec<(u32, LockMode)> {
        let held: BTreeSet<u32> = self.holds[probe].keys().filter_map(|array| self.locks[array.index()]).collect();
        let mut locks = self.locks_for(&self.handler_uses[probe]);
        locks.retain(|(lock, _)| !held.contains(lock));
        locks
    }

    /// The stripes that a probe's handler takes before this statement, in their order. None: behind its lead-in.
    pub fn held(&self, probe: usize, before: Option<&Stmt>) -> impl Iterator<Item = Held<'_>> {
        let is_there = move |(_, hold): &(&GlobalId, &Hold)| match (hold.before, before) {
            (None, None) => true,
            (Some(statement), Some(before)) => std::ptr::eq(statement, before),
            _ => false,
        };
        let mut holds: Vec<(&GlobalId, &Hold)> = self.holds[probe].iter().filter(is_there).collect();
        holds.sort_by_key(|(array, _)| self.locks[array.index()]);
        holds.into_iter().flat_map(move |(&array, hold)| match &hold.what {
            Ok(elements) => self.held_elements(probe, array, elements, hold.late),
            Err(_) => vec![Held::Whole { array, late: hold.late }],
        })
    }

    fn held_elements<'a>(
        &'a self,
        probe: usize,
        array: GlobalId,
        elements: &'a [UsedElement],
        late: bool,
    ) -> Vec<Held<'a>> {
        let access = self.handler_uses[probe].get(&array).copied().unwrap_or(Access::Write);
        let drops = self.program.globals[array.index()].wrap && access != Access::Read;
        let of = |(index, element): (usize, &'a UsedElement)| {
            let UsedElement { keys, called, .. } = element;
            let last = index + 1 == elements.len();
            let several = (elements.len() > 1).then_some(if last { elements.len() as u32 } else { 0 });
            Held::Element(HeldElement {
                array,
                late,
                keys,
                called: *called,
                drops,
                several,
                early: element.early(several.is_some()),
            })
        };
        elements.iter().enumerate().map(of).collect()
    }

    /// Parts of the keys of elements that the handler computes early, behind its lead-in, each once.
    pub fn early(&self, probe: usize) -> Vec<(EarlyValue, &LongExpr)> {
        let known = self.known(probe);
        let mut found: Vec<(EarlyValue, &LongExpr)> = Vec::new();
        let early = |held| match held {
            Held::Element(element) => element.early,
            Held::Whole { .. } => Vec::new(),
        };
        for expr in self.held(probe, None).flat_map(early) {
            if let Some(value) = EarlyValue::of(expr, known)
                && found.iter().all(|(before, _)| *before != value)
            {
                found.push((value, expr));
            }
        }
        found
    }

    /// What is known when a probe's handler takes stripes.
    pub fn known(&self, probe: usize) -> &KnownValues {
        self.handler_summaries[probe].known()
    }

    /// How many statements behind a probe's conditions its handler runs before it takes stripes.
    pub fn lead_in(&self, probe: usize) -> usize {
        self.lead_ins[probe]
    }

    /// The locks of the code that a return probe runs at its function's entry, with their modes, ascending.
    pub fn entry_locks(&self, probe: usize) -> Vec<(u32, LockMode)> {
        self.locks_for(&self.entry_uses[probe])
    }

    /// The locks of a probe point's condition with their modes, ascending.
    pub fn condition_locks(&self, condition: &[Stmt]) -> Vec<(u32, LockMode)> {
        self.locks_for(&CodeSummary::of(condition).with_calls(&self.function_uses))
    }

    fn locks_for(&self, uses: &Uses) -> Vec<(u32, LockMode)> {
        let taken = uses.iter().filter_map(|(id, &access)| {
            let global = &self.program.globals[id.index()];
            let mode = match self.striped[id.index()] {
                true => LockMode::All,
                false => globals::mode(global, self.shares[id.index()], access),
            };
            Some((self.locks[id.index()]?, mode))
        });
        let mut taken: Vec<(u32, LockMode)> = taken.collect();
        taken.sort_unstable();
        taken
    }

    /// Whether a probe's handler may change the result of probe points' conditions.
    pub fn rearms(&self, probe: usize) -> bool {
        condition::rearms(&self.watched, &self.handler_uses[probe])
    }

    /// The same for the code that a return probe runs at its function's entry.
    pub fn rearms_at_entry(&self, probe: usize) -> bool {
        condition::rearms(&self.watched, &self.entry_uses[probe])
    }

    /// The words of the probed registers that a probe's routines read, where the attachment fetches them; bit N for word N.
    /// For a return probe, those read at the function's entry: at its return all are available.
    pub fn registers(&self, probe: usize) -> u64 {
        let program::Probe { attachment, saved, .. } = &self.program.probes[probe];
        match attachment.mechanism.registers {
            Registers::Return => CodeSummary::of_values(saved).registers_with_calls(&self.function_summaries),
            _ => self.handler_summaries[probe].registers_with_calls(&self.function_summaries),
        }
    }
}

impl SavedLayout {
    /// Longs take 8 bytes, strings a length and MAXSTRINGLEN bytes.
    fn of(saved: &[program::Expr], string_bytes: u32) -> SavedLayout {
        let mut bytes: u32 = 0;
        let places = saved
            .iter()
            .map(|expr| {
                let place = (expr.ty(), bytes);
                // This size or more is refused (frame::MOST_SAVED).
                bytes = bytes.saturating_add(match expr.ty() {
                    Type::Long => 8,
                    Type::String => (4 + string_bytes).next_multiple_of(8),
                });
                place
            })
            .collect();
        SavedLayout { places, bytes }
    }
}

fn lead_in_of(probe: &program::Probe, functions: &[CodeSummary]) -> usize {
    lead_in::length(probe.body.split_at(filters(&probe.body)).1, functions)
}

/// What each run accesses: of handlers, and of what return probes evaluate at their functions' entries.
fn runs<'p>(
    program: &'p Program,
    functions: &[CodeSummary],
    handlers: &[CodeSummary],
) -> Vec<(&'p Attachment, AccessCounts)> {
    let functions = uses::function_accesses(functions);
    let of = |(probe, handler): (&'p program::Probe, &CodeSummary)| {
        let entry = CodeSummary::of_values(&probe.saved).accesses_with_calls(&functions);
        [(&probe.attachment, handler.accesses_with_calls(&functions)), (&probe.attachment, entry)]
    };
    program.probes.iter().zip(handlers).flat_map(of).collect()
}
