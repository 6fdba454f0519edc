// SPDX-License-Identifier: GPL-2.0-or-later

//! What statements do with globals, and which functions they call: for locks, and for checking that an array does not
//! change under a `foreach`.

mod collect;
mod counter;
mod follow;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::command_text::Text;
use super::element_uses::{ElementUses, KnownValues, WholeArray};
use super::{Expr, Function, FunctionBody, FunctionId, GlobalId, LocalId, LongExpr, Program, Stmt};
use crate::builtin::Builtin;
use collect::Collector;
pub use counter::{CounterUpdate, counter_update};
use follow::CallFollower;
use spile_source::Span;

/// The strongest access to a global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Read, not changed.
    Read,
    /// An aggregate is only fed, a number only added to.
    Feed,
    /// Written, or an aggregate both fed and read.
    Write,
}

impl Access {
    /// Of both together.
    fn and(self, other: Access) -> Access {
        match (self, other) {
            (Access::Read, Access::Feed) | (Access::Feed, Access::Read) => Access::Write,
            _ => self.max(other),
        }
    }
}

/// Globals that some code uses, and how.
pub type Uses = BTreeMap<GlobalId, Access>;

/// Globals that a run of some code accesses, and how often at most: once or, [`OFTEN`], more than that.
pub type AccessCounts = BTreeMap<GlobalId, u8>;

/// More than once.
pub const OFTEN: u8 = 2;

fn add_accesses<K: Ord>(times: &mut BTreeMap<K, u8>, key: K, more: u8) {
    let times = times.entry(key).or_insert(0);
    *times = times.saturating_add(more).min(OFTEN);
}

/// What two pieces of code use together.
pub fn both(one: &Uses, other: &Uses) -> Uses {
    let mut uses = one.clone();
    merge(&mut uses, other);
    uses
}

/// What code does directly, without what it calls.
#[derive(Clone, Debug, Default)]
pub struct CodeSummary {
    /// Globals that it uses, and how.
    pub uses: Uses,
    /// Globals that a run of it accesses, and how often.
    pub accesses: AccessCounts,
    /// How often a run calls each function at most, as in [`AccessCounts`].
    called: BTreeMap<FunctionId, u8>,
    /// Sorted, each once.
    pub calls: Vec<FunctionId>,
    /// The first place that changes a global, other than by emptying it.
    pub changes: BTreeMap<GlobalId, Span>,
    /// Words of the probed registers that may be read: bit N for word N.
    pub registers: u64,
    /// Globals that embedded C declares as used.
    pub embedded: Vec<GlobalId>,
    /// Arrays of aggregates that it sorts by a result: the results are stored in the elements.
    pub sorted: BTreeSet<GlobalId>,
    /// Arrays of which it uses a few elements.
    element_uses: ElementUses,
    /// Locals that it writes.
    pub written: BTreeSet<LocalId>,
    /// What makes keys of arrays known.
    known: KnownValues,
    /// What makes locals known: parameters that are not changed.
    parameters: KnownValues,
    /// Its calls, with their arguments.
    sites: Vec<CallSite>,
    /// It prints, or uses a builtin for its effect.
    pub has_effects: bool,
    /// It has a loop.
    loops: bool,
    /// It uses builtins whose values may differ from one moment to the next.
    varies: bool,
    /// It reads memory, of the kernel or of the current process.
    reads_memory: bool,
    /// Whether it may change the probed registers.
    sets_registers: bool,
    /// Builtins that it calls, by name and number of arguments.
    pub builtins: BTreeMap<(&'static str, usize), &'static Builtin>,
    /// The commands that it makes the loader run.
    pub commands: Vec<Text>,
    /// It may store values elsewhere than in variables: in embedded C, or in memory that it writes.
    pub stores_elsewhere: bool,
}

/// A call of a function.
#[derive(Clone, Debug)]
struct CallSite {
    function: FunctionId,
    arguments: Vec<Expr>,
    span: Span,
}

/// Most calls that are followed from one call for the element that a function uses.
const MOST_FOLLOWED: u32 = 256;

impl CodeSummary {
    /// Of statements; calls are recorded, not followed.
    pub fn of(statements: &[Stmt]) -> CodeSummary {
        Collector::of(statements, KnownValues::default(), KnownValues::default())
    }

    /// Of an expression.
    pub fn of_long(expr: &LongExpr) -> CodeSummary {
        Collector::of_values(&[Expr::Long(expr.clone())])
    }

    /// The same for a handler that takes its stripes where that is known (lead_in.rs).
    pub fn of_handler<'s>(
        statements: impl IntoIterator<Item = &'s Stmt, IntoIter: Clone>,
        known: KnownValues,
    ) -> CodeSummary {
        Collector::of(statements, known, KnownValues::default())
    }

    fn of_function(function: &Function, statements: &[Stmt]) -> CodeSummary {
        let written = CodeSummary::of(statements).written;
        let parameters = (0..function.parameters as u32).map(LocalId);
        let known = KnownValues::with(parameters.filter(|parameter| !written.contains(parameter)).collect());
        Collector::of(statements, known.clone(), known)
    }

    /// The same for values that are evaluated before, such as those that a return probe saves at its function's entry.
    pub fn of_values(values: &[Expr]) -> CodeSummary {
        Collector::of_values(values)
    }

    /// What each function of a program does directly; for embedded C, what it declares.
    pub fn of_functions(program: &Program) -> Vec<CodeSummary> {
        let of = |function: &Function| match &function.body {
            FunctionBody::Script(statements) => CodeSummary::of_function(function, statements),
            FunctionBody::EmbeddedC(code) => Collector::of_embedded(code),
        };
        program.functions.iter().map(of).collect()
    }

    /// What this does, including everything that it calls; `functions`: the result of [`function_uses`].
    pub fn with_calls(&self, functions: &[Uses]) -> Uses {
        let mut uses = self.uses.clone();
        for callee in &self.calls {
            merge(&mut uses, &functions[callee.index()]);
        }
        uses
    }

    /// The same for what a run accesses; `functions`: the result of [`function_accesses`].
    pub fn accesses_with_calls(&self, functions: &[AccessCounts]) -> AccessCounts {
        let mut accesses = self.accesses.clone();
        for (callee, &calls) in &self.called {
            for (&global, &times) in &functions[callee.index()] {
                add_accesses(&mut accesses, global, calls.saturating_mul(times));
            }
        }
        accesses
    }

    /// Arrays of which a run uses a few elements, including what it calls; `functions`: what each does directly;
    /// `uses`: the result of [`function_uses`].
    pub fn element_uses_with_calls(&self, functions: &[CodeSummary], uses: &[Uses]) -> ElementUses {
        let mut element_uses = self.element_uses.clone();
        for site in &self.sites {
            for &array in uses[site.function.index()].keys() {
                let mut following = CallFollower { functions, uses, array, open: Vec::new(), left: MOST_FOLLOWED };
                let mut elements = Vec::new();
                match following.call(site, None, &mut elements) {
                    Some(()) => {
                        elements.into_iter().for_each(|keys| element_uses.called(array, keys, &self.known, site.span));
                    }
                    None => element_uses.uses_whole(array, WholeArray::Called(site.span)),
                }
            }
        }
        let sets_registers = |callee: &FunctionId| functions[callee.index()].sets_registers;
        if self.sets_registers || self.all_calls(functions).iter().any(sets_registers) {
            element_uses.registers_change();
        }
        element_uses
    }

    /// What makes keys of arrays known.
    pub fn known(&self) -> &KnownValues {
        &self.known
    }

    /// Whether it means something only in a hit of its own probe: apart from one there are no registers, nor a process whose
    /// memory may be read, and nothing tells when memory changes.
    pub fn needs_hit(&self) -> bool {
        self.registers != 0 || self.varies || self.reads_memory
    }

    /// By function: whether a handler may call it early, for a key (early.rs): it depends on its arguments, the task and
    /// memory, has no effect, and ends.
    pub fn early_functions(functions: &[CodeSummary]) -> Rc<[bool]> {
        let is_plain = |function: &CodeSummary| {
            let quiet = function.uses.is_empty() && !function.has_effects && !function.stores_elsewhere;
            quiet && !function.loops && !function.varies
        };
        let may_be_early = |(index, function): (usize, &CodeSummary)| {
            let callees = function.all_calls(functions);
            let recurses = |callee: &FunctionId| {
                callee.index() == index || functions[callee.index()].all_calls(functions).contains(callee)
            };
            is_plain(function) && callees.iter().all(|callee| is_plain(&functions[callee.index()]) && !recurses(callee))
        };
        functions.iter().enumerate().map(may_be_early).collect()
    }

    /// The registers that this reads, including everything that it calls.
    pub fn registers_with_calls(&self, functions: &[CodeSummary]) -> u64 {
        let callees = self.all_calls(functions);
        callees.iter().fold(self.registers, |registers, callee| registers | functions[callee.index()].registers)
    }

    /// The functions that this calls, directly and indirectly, each once.
    pub fn all_calls(&self, functions: &[CodeSummary]) -> Vec<FunctionId> {
        let mut found = Vec::new();
        let mut seen = vec![false; functions.len()];
        let mut open = self.calls.clone();
        while let Some(callee) = open.pop() {
            if !std::mem::replace(&mut seen[callee.index()], true) {
                found.push(callee);
                open.extend(&functions[callee.index()].calls);
            }
        }
        found
    }
}

/// What each function does, including everything that it calls.
pub fn function_uses(summaries: &[CodeSummary]) -> Vec<Uses> {
    let mut all: Vec<Uses> = summaries.iter().map(|summary| summary.uses.clone()).collect();
    // Until nothing changes: functions may call each other recursively.
    loop {
        let mut grown = false;
        for (index, summary) in summaries.iter().enumerate() {
            for callee in &summary.calls {
                let callee = all[callee.index()].clone();
                grown |= merge(&mut all[index], &callee);
            }
        }
        if !grown {
            return all;
        }
    }
}

/// What a run of each function accesses, including everything that it calls.
pub fn function_accesses(summaries: &[CodeSummary]) -> Vec<AccessCounts> {
    let mut all: Vec<AccessCounts> = summaries.iter().map(|summary| summary.accesses.clone()).collect();
    // As above; a recursive function does everything often.
    loop {
        let more: Vec<AccessCounts> = summaries.iter().map(|summary| summary.accesses_with_calls(&all)).collect();
        if more == all {
            return all;
        }
        all = more;
    }
}

/// Adds the contents of `more`; returns whether anything changed.
fn merge(uses: &mut Uses, more: &Uses) -> bool {
    let mut grown = false;
    for (&global, &access) in more {
        let before = uses.get(&global).copied();
        let after = before.map_or(access, |before| before.and(access));
        grown |= before != Some(after);
        uses.insert(global, after);
    }
    grown
}
