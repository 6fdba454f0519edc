// SPDX-License-Identifier: GPL-2.0-or-later

//! Where a handler takes the stripes of each array that it uses: behind its lead-in if it knows the keys there; otherwise
//! before its first statement that uses the array, if it knows them then, although it has changed globals before. What it
//! holds by then it holds to its end, and stripes are taken in one order of arrays in all handlers ([`order`]), so runs are
//! still atomic, and never wait for each other in a circle. A hit that does not get the stripe is skipped if it has had no
//! effect, otherwise it waits longer and then fails (spile_context.late). A handler that has printed does not take stripes: what
//! is printed would not be in the order of the runs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::program::element_uses::{ElementUses, KnownValues, UsedElement, WholeArray};
use crate::program::uses::{Access, CodeSummary, Uses};
use crate::program::{GlobalId, LocalId, Probe, Stmt, StmtKind};

/// How a handler takes the stripes of an array.
#[derive(Clone, Debug)]
pub(super) struct Hold<'p> {
    /// The statement before which it takes them. None: the first one behind the lead-in.
    pub before: Option<&'p Stmt>,
    /// Position of the statement in the handler, from 1; 0 if there is none.
    pub position: u32,
    /// The handler has changed globals before.
    pub late: bool,
    /// Some runs do not get there.
    pub conditional: bool,
    /// The elements whose stripes it takes; or why it takes all of them.
    pub what: Result<Vec<UsedElement>, WholeArray>,
}

/// By array; none of timers, which take all of each array when they begin.
pub(super) type Holds<'p> = BTreeMap<GlobalId, Hold<'p>>;

/// What the program's functions do.
#[derive(Clone, Copy)]
pub(super) struct Functions<'a> {
    /// Each directly.
    pub summaries: &'a [CodeSummary],
    /// With what they call.
    pub uses: &'a [Uses],
}

/// How the handler would take the stripes of the arrays. `body`: behind the lead-in; `element_uses`: what is known there.
pub(super) fn of<'p>(
    probe: &'p Probe,
    body: &'p [Stmt],
    arrays: impl Iterator<Item = GlobalId>,
    element_uses: &ElementUses,
    functions: Functions,
) -> Holds<'p> {
    let mut finder: Option<(Finder, Vec<Step>)> = None;
    let hold = |array: GlobalId| {
        let first = |what| Hold { before: None, position: 0, late: false, conditional: false, what };
        if let Some(elements) = element_uses.of(array) {
            return (array, first(Ok(elements.to_vec())));
        }
        let why = element_uses.why_whole(array).unwrap_or(WholeArray::Registers);
        let (finder, steps) = finder.get_or_insert_with(|| {
            let mut positions = HashMap::new();
            number(body, &mut positions);
            let finder = Finder { locals: probe.locals.len() as u32, positions, functions };
            let steps = finder.steps(body);
            (finder, steps)
        });
        let found = finder.find(array, why, steps, &Before::default(), &After::default());
        (array, found.unwrap_or_else(|| first(Err(why))))
    };
    arrays.map(hold).collect()
}

/// Numbers the statements that each run executes at most once.
fn number(statements: &[Stmt], positions: &mut HashMap<*const Stmt, u32>) {
    for statement in statements {
        let position = positions.len() as u32 + 1;
        positions.insert(statement, position);
        match &statement.kind {
            StmtKind::Block(statements) => number(statements, positions),
            StmtKind::If { then, otherwise, .. } => {
                number(std::slice::from_ref(then), positions);
                otherwise.iter().for_each(|otherwise| number(std::slice::from_ref(otherwise), positions));
            }
            _ => {}
        }
    }
}

/// One statement of a handler.
struct Step<'p> {
    statement: &'p Stmt,
    /// Including what it calls.
    uses: Uses,
    written: BTreeSet<LocalId>,
    does: Before,
}

/// What a handler has done before a statement.
#[derive(Clone, Copy, Default)]
struct Before {
    /// It has changed globals.
    changes: bool,
    /// It has printed, or had effects elsewhere than in globals.
    acts: bool,
    /// It may have ended.
    leaves: bool,
}

impl Before {
    fn and(self, other: Before) -> Before {
        Before {
            changes: self.changes || other.changes,
            acts: self.acts || other.acts,
            leaves: self.leaves || other.leaves,
        }
    }
}

/// What a handler may change behind a statement.
#[derive(Clone, Default)]
struct After {
    written: BTreeSet<LocalId>,
    changed: BTreeSet<GlobalId>,
}

impl After {
    fn add(&mut self, steps: &[Step]) {
        for step in steps {
            self.written.extend(&step.written);
            self.changed.extend(step.uses.iter().filter(|(_, access)| **access != Access::Read).map(|(id, _)| *id));
        }
    }
}

struct Finder<'a> {
    locals: u32,
    positions: HashMap<*const Stmt, u32>,
    functions: Functions<'a>,
}

impl Finder<'_> {
    /// The statements, without blocks.
    fn steps<'p>(&self, statements: &'p [Stmt]) -> Vec<Step<'p>> {
        let mut found = Vec::new();
        for statement in statements {
            match &statement.kind {
                StmtKind::Block(inner) => found.extend(self.steps(inner)),
                _ => found.push(self.step(statement)),
            }
        }
        found
    }

    fn step<'p>(&self, statement: &'p Stmt) -> Step<'p> {
        let summary = CodeSummary::of(std::slice::from_ref(statement));
        let does = Before { leaves: leaves(statement), ..self.does(&summary) };
        Step { statement, uses: summary.with_calls(self.functions.uses), written: summary.written, does }
    }

    fn does(&self, summary: &CodeSummary) -> Before {
        let acts = |summary: &CodeSummary| summary.has_effects || summary.stores_elsewhere;
        let mut callees = summary.all_calls(self.functions.summaries).into_iter();
        Before {
            changes: summary.with_calls(self.functions.uses).values().any(|access| *access != Access::Read),
            acts: acts(summary) || callees.any(|callee| acts(&self.functions.summaries[callee.index()])),
            leaves: false,
        }
    }

    /// None: all stripes are to be taken at the beginning.
    fn find<'p>(
        &self,
        array: GlobalId,
        why: WholeArray,
        steps: &[Step<'p>],
        before: &Before,
        after: &After,
    ) -> Option<Hold<'p>> {
        let first = steps.iter().position(|step| step.uses.contains_key(&array))?;
        let (done, rest) = steps.split_at(first);
        let (step, behind) = rest.split_first()?;
        let before = done.iter().fold(*before, |before, step| before.and(step.does));
        if before.acts {
            return None;
        }
        let at = |what| Hold {
            before: Some(step.statement),
            position: self.positions.get(&std::ptr::from_ref(step.statement)).copied().unwrap_or_default(),
            late: before.changes,
            conditional: before.leaves,
            what,
        };
        let mut later = after.clone();
        later.add(behind);
        let mut changing = later.clone();
        changing.add(std::slice::from_ref(step));
        if let Some(elements) = self.elements(array, rest, changing) {
            return Some(at(Ok(elements)));
        }
        let only = behind.iter().all(|step| !step.uses.contains_key(&array));
        let nested = || match &step.statement.kind {
            StmtKind::If { condition, then, otherwise } if only => {
                let condition = CodeSummary::of_long(condition);
                if condition.with_calls(self.functions.uses).contains_key(&array) {
                    return None;
                }
                let before = Before { leaves: true, ..before.and(self.does(&condition)) };
                let branches = std::iter::once(then).chain(otherwise);
                let steps = branches.map(|branch| self.steps(std::slice::from_ref(branch)));
                let uses = |steps: &Vec<Step>| steps.iter().any(|step| step.uses.contains_key(&array));
                let using: Vec<Vec<Step>> = steps.filter(uses).collect();
                match using.as_slice() {
                    [steps] => self.find(array, why, steps, &before, &later),
                    _ => None,
                }
            }
            _ => None,
        };
        Some(nested().unwrap_or_else(|| at(Err(why))))
    }

    /// The elements that the steps use of an array, if their keys are known before them.
    fn elements(&self, array: GlobalId, steps: &[Step], changing: After) -> Option<Vec<UsedElement>> {
        let After { written, changed } = changing;
        let settled = (0..self.locals).map(LocalId).filter(|local| !written.contains(local)).collect();
        let known = KnownValues::with(settled).with_globals(Rc::new(changed));
        let summary = CodeSummary::of_handler(steps.iter().map(|step| step.statement), known);
        let uses = summary.element_uses_with_calls(self.functions.summaries, self.functions.uses);
        let elements = uses.of(array)?;
        let known = elements.iter().all(|element| !element.globals().contains(&array));
        known.then(|| elements.to_vec())
    }
}

/// Whether the statement may end the handler.
fn leaves(statement: &Stmt) -> bool {
    match &statement.kind {
        StmtKind::Next | StmtKind::Filter => true,
        StmtKind::Block(statements) => statements.iter().any(leaves),
        StmtKind::If { then, otherwise, .. } => leaves(then) || otherwise.as_deref().is_some_and(leaves),
        _ => false,
    }
}

/// An order of these arrays in which each handler takes them: those that it takes earlier come first, and those whose
/// values it needs for keys of others. Err: there is none, because of this array and the handler of that probe.
pub(super) fn order(holds: &[Holds], arrays: &BTreeSet<GlobalId>) -> Result<Vec<GlobalId>, (GlobalId, usize)> {
    let mut after: BTreeMap<GlobalId, BTreeMap<GlobalId, usize>> = BTreeMap::new();
    for (probe, holds) in holds.iter().enumerate() {
        let taken = || holds.iter().filter(|(array, _)| arrays.contains(array));
        for (&array, hold) in taken() {
            let needs = needed(hold);
            let earlier = |(other, before): &(&GlobalId, &Hold)| {
                before.position < hold.position || needs.contains(other) && **other != array
            };
            for (&other, _) in taken().filter(earlier) {
                after.entry(array).or_default().entry(other).or_insert(probe);
            }
        }
    }
    let mut order: Vec<GlobalId> = Vec::new();
    let mut left = arrays.clone();
    while !left.is_empty() {
        let waits = |array: &GlobalId| after.get(array).and_then(|others| others.iter().find(|it| left.contains(it.0)));
        match left.iter().copied().find(|array| waits(array).is_none()) {
            Some(next) => {
                left.remove(&next);
                order.push(next);
            }
            // All that are left wait for others of them. Going back from one to the next leads into a circle.
            None => {
                let mut at = left.iter().copied().next().unwrap_or(GlobalId(0));
                let mut probe = 0;
                for _ in 0..=left.len() {
                    if let Some((&other, &of)) = waits(&at) {
                        (at, probe) = (other, of);
                    }
                }
                return Err((at, probe));
            }
        }
    }
    Ok(order)
}

/// The globals of which the keys of held elements depend.
pub(super) fn needed(hold: &Hold) -> BTreeSet<GlobalId> {
    hold.what.iter().flatten().flat_map(UsedElement::globals).collect()
}
