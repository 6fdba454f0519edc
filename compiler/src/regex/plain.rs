//! Whether a pattern matches, and nothing else: an ordinary deterministic automaton (subset construction, then the
//! smallest one by Moore's refinement).
//!
//! It looks for a match that begins anywhere, and is done at the first byte that ends one.

use std::collections::HashMap;

use super::error::ErrorKind;
use super::nfa::{Nfa, Step, StepId};
use super::set::Classes;
use super::{Budget, MAX_TRANSITIONS};

/// States are numbers; `next[state * classes + class]`. State [`DEAD`] cannot match any more, [`MATCHED`] has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    pub classes: Classes,
    pub next: Vec<u16>,
    /// By state: a string that ends here matches.
    pub at_end: Vec<bool>,
    pub start: u16,
}

pub const DEAD: u16 = 0;
pub const MATCHED: u16 = 1;

pub fn build(nfa: &Nfa) -> Result<Plain, ErrorKind> {
    let sets: Vec<_> = nfa.steps.iter().filter_map(|step| if let Step::Bytes(set, _) = step { Some(set) } else { None }).collect();
    let classes = Classes::new(sets);
    let mut budget = Budget::default();
    let mut states = States { nfa, ids: HashMap::new(), sets: Vec::new(), at_end: Vec::new(), seen: vec![0; nfa.steps.len()], pass: 0 };
    // The dead one and the one that has matched.
    states.sets.extend([Vec::new(), Vec::new()]);
    states.at_end.extend([false, true]);
    states.ids.insert((Vec::new(), false), DEAD);
    let start = states.state(&[], true, &mut budget)?;
    let mut next = vec![DEAD; classes.count()];
    next.resize(2 * classes.count(), MATCHED);
    let mut number = 2;
    while number < states.sets.len() {
        let from = states.sets[number].clone();
        for &sample in &classes.samples {
            budget.spend(from.len())?;
            let targets: Vec<StepId> = from
                .iter()
                .filter_map(|&step| match nfa.steps[step] {
                    Step::Bytes(set, target) if set.contains(sample) => Some(target),
                    _ => None,
                })
                .collect();
            next.push(states.state(&targets, false, &mut budget)?);
            if next.len() > MAX_TRANSITIONS {
                return Err(ErrorKind::TooLarge);
            }
        }
        number += 1;
    }
    Ok(smallest(Plain { classes, next, at_end: states.at_end, start }))
}

struct States<'n> {
    nfa: &'n Nfa,
    ids: HashMap<(Vec<StepId>, bool), u16>,
    /// The steps that take bytes, ascending.
    sets: Vec<Vec<StepId>>,
    at_end: Vec<bool>,
    /// By step: the last pass that came by.
    seen: Vec<u32>,
    pass: u32,
}

impl States<'_> {
    /// The state after these steps; a match may also begin here.
    fn state(&mut self, targets: &[StepId], at_start: bool, budget: &mut Budget) -> Result<u16, ErrorKind> {
        let (set, accepts) = self.closure(targets, at_start, false, budget)?;
        if accepts {
            return Ok(MATCHED);
        }
        let at_end = self.nfa.has_end && self.closure(targets, at_start, true, budget)?.1;
        if let Some(&id) = self.ids.get(&(set.clone(), at_end)) {
            return Ok(id);
        }
        let id = u16::try_from(self.sets.len()).map_err(|_| ErrorKind::TooLarge)?;
        self.sets.push(set.clone());
        self.at_end.push(at_end);
        self.ids.insert((set, at_end), id);
        Ok(id)
    }

    /// Steps that take a byte, reached from these without one, and whether the end of the pattern is.
    fn closure(&mut self, targets: &[StepId], at_start: bool, at_end: bool, budget: &mut Budget) -> Result<(Vec<StepId>, bool), ErrorKind> {
        self.pass += 1;
        let mut stack = targets.to_vec();
        stack.push(self.nfa.first);
        let mut set = Vec::new();
        let mut accepts = false;
        while let Some(step) = stack.pop() {
            budget.spend(1)?;
            if std::mem::replace(&mut self.seen[step], self.pass) == self.pass {
                continue;
            }
            match self.nfa.steps[step] {
                Step::Bytes(..) => set.push(step),
                Step::Split(first, second) => stack.extend([first, second]),
                Step::Mark(_, next) | Step::Tag(_, next) | Step::Clear(_, _, next) => stack.push(next),
                Step::Start(next) if at_start => stack.push(next),
                Step::End(next) if at_end => stack.push(next),
                Step::Start(_) | Step::End(_) => {}
                Step::Accept => accepts = true,
            }
        }
        set.sort_unstable();
        Ok((set, accepts))
    }
}

/// States that nothing tells apart become one (after Hopcroft: the work grows little faster than the table).
fn smallest(plain: Plain) -> Plain {
    let width = plain.classes.count();
    let states = plain.at_end.len();
    let row = |state: usize| &plain.next[state * width..][..width];
    let mut blocks = Blocks::new((0..states).map(|state| if state == usize::from(MATCHED) { 2 } else { usize::from(plain.at_end[state]) }));
    let sources = Sources::new(&plain.next, width);
    let mut pending: Vec<usize> = (0..blocks.ranges.len()).collect();
    let mut is_pending = vec![true; pending.len()];
    while let Some(target) = pending.pop() {
        is_pending[target] = false;
        let members = blocks.members(target).to_vec();
        for class in 0..width {
            for &member in &members {
                sources.of(member, class).iter().for_each(|&source| blocks.mark(source));
            }
            for (old, new) in blocks.split() {
                // What both of them together have told apart, one of them does.
                let smaller = if !is_pending[old] && blocks.members(old).len() < blocks.members(new).len() { old } else { new };
                is_pending.push(false);
                is_pending[smaller] = true;
                pending.push(smaller);
            }
        }
    }
    // DEAD and MATCHED keep their numbers: both are numbered first, and differ.
    let mut ids: HashMap<usize, usize> = HashMap::new();
    let block: Vec<usize> = (0..states)
        .map(|state| {
            let next = ids.len();
            *ids.entry(blocks.of[state]).or_insert(next)
        })
        .collect();
    let mut next = vec![DEAD; ids.len() * width];
    let mut at_end = vec![false; ids.len()];
    for state in 0..states {
        let id = block[state];
        at_end[id] = plain.at_end[state];
        for (class, &target) in row(state).iter().enumerate() {
            next[id * width + class] = block[usize::from(target)] as u16;
        }
    }
    Plain { next, at_end, start: block[usize::from(plain.start)] as u16, classes: plain.classes }
}

/// From which states a table leads to one.
struct Sources {
    width: usize,
    /// `[state * width + class]`: where in `states` its sources with a byte of the class begin; they end where the next ones begin.
    begins: Vec<usize>,
    states: Vec<usize>,
}

impl Sources {
    fn new(next: &[u16], width: usize) -> Sources {
        let cell = |index: usize| usize::from(next[index]) * width + index % width;
        let mut begins = vec![0; next.len() + 1];
        (0..next.len()).for_each(|index| begins[cell(index) + 1] += 1);
        (0..next.len()).for_each(|index| begins[index + 1] += begins[index]);
        let mut ends = begins.clone();
        let mut states = vec![0; next.len()];
        for index in 0..next.len() {
            states[ends[cell(index)]] = index / width;
            ends[cell(index)] += 1;
        }
        Sources { width, begins, states }
    }

    fn of(&self, state: usize, class: usize) -> &[usize] {
        let cell = state * self.width + class;
        &self.states[self.begins[cell]..self.begins[cell + 1]]
    }
}

/// States in blocks that get finer.
struct Blocks {
    /// By state.
    of: Vec<usize>,
    /// The states, those of a block together, those marked at its front.
    order: Vec<usize>,
    /// By state: where in `order` it is.
    place: Vec<usize>,
    /// By block: the part of `order`, and how many of it are marked.
    ranges: Vec<(std::ops::Range<usize>, usize)>,
    /// Blocks with marked states.
    touched: Vec<usize>,
}

impl Blocks {
    /// Blocks by the number of each state.
    fn new(numbers: impl Iterator<Item = usize>) -> Blocks {
        let numbers: Vec<usize> = numbers.collect();
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by_key(|&state| numbers[state]);
        let mut blocks =
            Blocks { of: vec![0; order.len()], place: vec![0; order.len()], ranges: Vec::new(), touched: Vec::new(), order };
        for place in 0..blocks.order.len() {
            let state = blocks.order[place];
            if place == 0 || numbers[blocks.order[place - 1]] != numbers[state] {
                blocks.ranges.push((place..place, 0));
            }
            let block = blocks.ranges.len() - 1;
            blocks.ranges[block].0.end += 1;
            blocks.of[state] = block;
            blocks.place[state] = place;
        }
        blocks
    }

    fn members(&self, block: usize) -> &[usize] {
        &self.order[self.ranges[block].0.clone()]
    }

    fn mark(&mut self, state: usize) {
        let block = self.of[state];
        let (range, marked) = &mut self.ranges[block];
        let (from, to) = (self.place[state], range.start + *marked);
        if from < to {
            return;
        }
        if *marked == 0 {
            self.touched.push(block);
        }
        *marked += 1;
        let other = self.order[to];
        self.order.swap(from, to);
        self.place[state] = to;
        self.place[other] = from;
    }

    /// Where some of a block are marked, those become a block of their own: (the old one, the new one).
    fn split(&mut self) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for old in std::mem::take(&mut self.touched) {
            let (range, marked) = &mut self.ranges[old];
            let count = std::mem::take(marked);
            if count == range.len() {
                continue;
            }
            let front = range.start..range.start + count;
            range.start = front.end;
            let new = self.ranges.len();
            self.order[front.clone()].iter().for_each(|&state| self.of[state] = new);
            self.ranges.push((front, 0));
            pairs.push((old, new));
        }
        pairs
    }
}
