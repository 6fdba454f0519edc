// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds where a pattern and its groups match: a deterministic automaton with tags (after Laurikari) and POSIX groups:
//! of all matches the one that starts first, of those the longest, and within it each part of the pattern, from left to
//! right, as long as possible.
//!
//! A state is a set of configurations: the steps that the different ways to match have reached. Each has its tags in
//! registers; a transition moves registers and sets some to the position. If two ways meet at a step, one must be
//! chosen. As Okui and Suzuki show, it is enough to know for each two configurations the least mark each way has passed
//! since they diverged, and which one is ahead so far: the way that has passed only the higher marks is in a part that
//! continues where the other's has ended. Both are part of the state ([`Order`]), so nothing is compared at run time.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::budget::{Budget, MAX_TRANSITIONS};
use super::error::ErrorKind;
use super::nfa::{Nfa, Step, StepId};
use super::set::Classes;

/// The source of a register or tag: a register, or one of these.
pub type Source = u16;
/// The position: number of bytes consumed so far.
pub const HERE: Source = 0xffff;
/// No position: the group has not matched.
pub const UNSET: Source = 0xfffe;

/// Scratch register for cyclic moves.
const SPARE: Source = 0;
const MAX_REGISTERS: usize = 1_000;
/// The range of an offset.
const MAX_MOVES: usize = 65_000;
/// Number of states that differ only in their registers before a general one is made for all of them.
const MAX_ALIKE: usize = 6;

/// Tables of the module. States are numbers; in state 0 there is no match in progress and none can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// The equivalence classes of bytes.
    pub classes: Classes,
    /// `[state * classes + class]`: the state after a byte.
    pub next: Vec<u16>,
    /// As `next`: index into `moves` of the transition's moves: their number, then (to, source) each.
    pub actions: Vec<u16>,
    /// By state: index into `moves` of the sources of all tags if a match ends here; 0 if none does.
    pub accept: Vec<u16>,
    /// The same at the end of the string.
    pub at_end: Vec<u16>,
    /// Moves of registers, and sources of tags: `actions`, `accept` and `at_end` index into it.
    pub moves: Vec<u16>,
    /// The initial state.
    pub start: u16,
    /// As `actions`, before the first byte.
    pub start_action: u16,
    /// The number of registers.
    pub registers: u16,
    /// 0: start of the match; 2N - 1 and 2N: start and end of group N.
    pub tags: u16,
}

impl Tagged {
    /// The match and the pattern's groups.
    pub fn groups(&self) -> u32 {
        u32::from(self.tags).div_ceil(2)
    }
}

/// Builds the deterministic automaton that also finds the groups. Error: it would be too large.
pub fn build(nfa: &Nfa) -> Result<Tagged, ErrorKind> {
    let mut builder = Builder {
        nfa,
        classes: Classes::new(nfa.byte_sets()),
        budget: Budget::default(),
        states: vec![State::default()],
        alike: HashMap::new(),
        moves: vec![0],
        move_ids: HashMap::from([(vec![0], 0)]),
        registers: SPARE + 1,
        closure: Closure { best: vec![None; nfa.len()], ..Closure::default() },
    };
    let (start, start_action) = builder.follow(0, &[], true)?;
    let width = builder.classes.count();
    let mut next = vec![0; width];
    let mut actions = vec![0; width];
    let mut state = 1;
    while state < builder.states.len() {
        for class in 0..width {
            let byte = builder.classes.samples[class];
            builder.budget.spend(builder.states[state].shape.steps.len())?;
            let kernel = builder.kernel(state, byte);
            let (target, action) = builder.follow(state, &kernel, false)?;
            next.push(target);
            actions.push(action);
        }
        if next.len() > MAX_TRANSITIONS {
            return Err(ErrorKind::TooLarge);
        }
        state += 1;
    }
    let states = std::mem::take(&mut builder.states);
    let mut ends = |tags: fn(&State) -> &Option<Vec<Source>>| -> Result<Vec<u16>, ErrorKind> {
        states.iter().map(|state| tags(state).as_ref().map_or(Ok(0), |tags| builder.moves(tags.clone()))).collect()
    };
    let accept = ends(|state| &state.accept)?;
    let at_end = ends(|state| &state.at_end)?;
    let Builder { classes, moves, registers, .. } = builder;
    Ok(Tagged { classes, next, actions, accept, at_end, moves, start, start_action, registers, tags: nfa.tags })
}

/// The relation of two ways, the first and the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Order {
    /// The least marks they have passed since they diverged.
    least: (u8, u8),
    /// 1: the first is ahead; -1: the second; 0: no difference.
    ahead: i8,
}

impl Order {
    fn reversed(self) -> Order {
        Order { least: (self.least.1, self.least.0), ahead: -self.ahead }
    }
}

/// A state without its registers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Shape {
    /// Step and rank of each configuration, by step.
    steps: Vec<(StepId, u16)>,
    /// For each pair of them: (0, 1), (0, 2), (1, 2), (0, 3), ...
    orders: Vec<Order>,
    /// A match has ended: no later one is started.
    found: bool,
    accepts: bool,
    accepts_at_end: bool,
}

#[derive(Clone, Debug, Default)]
struct State {
    shape: Shape,
    /// Tags of each configuration.
    tags: Vec<Vec<Source>>,
    accept: Option<Vec<Source>>,
    at_end: Option<Vec<Source>>,
}

impl State {
    fn order(&self, first: usize, second: usize) -> Order {
        let index = |low: usize, high: usize| high * (high - 1) / 2 + low;
        if first < second {
            self.shape.orders[index(first, second)]
        } else {
            self.shape.orders[index(second, first)].reversed()
        }
    }

    fn vectors(&self) -> impl Iterator<Item = &Vec<Source>> {
        self.tags.iter().chain(&self.accept).chain(&self.at_end)
    }
}

struct Builder<'n> {
    nfa: &'n Nfa,
    classes: Classes,
    budget: Budget,
    states: Vec<State>,
    alike: HashMap<Shape, Vec<u16>>,
    moves: Vec<u16>,
    move_ids: HashMap<Vec<u16>, u16>,
    registers: u16,
    closure: Closure,
}

impl Builder<'_> {
    /// The configurations reached from a state with a byte: their number, and the step.
    fn kernel(&self, state: usize, byte: u8) -> Vec<(usize, StepId)> {
        let steps = self.states[state].shape.steps.iter().enumerate();
        steps
            .filter_map(|(origin, &(step, _))| match self.nfa.step(step) {
                Step::Bytes(set, target) if set.contains(byte) => Some((origin, target)),
                _ => None,
            })
            .collect()
    }

    /// The successor of `from`, and the moves. The tags of `new` are in terms of `from`'s registers.
    fn follow(&mut self, from: usize, kernel: &[(usize, StepId)], at_start: bool) -> Result<(u16, u16), ErrorKind> {
        let new = self.state_after(from, kernel, at_start)?;
        if new.shape.steps.is_empty() && new.accept.is_none() && new.at_end.is_none() {
            return Ok((0, 0));
        }
        let alike = self.alike.get(&new.shape).cloned().unwrap_or_default();
        self.budget.spend(alike.len() * new.vectors().map(Vec::len).sum::<usize>())?;
        let hosts = alike.iter().filter_map(|&id| Some((host(&self.states[usize::from(id)], &new)?, id)));
        if let Some((moves, id)) = hosts.min_by_key(|(moves, _)| moves.len()) {
            return Ok((id, self.action(moves)?));
        }
        let (state, moves) = if alike.len() < MAX_ALIKE { settle(new) } else { generalize(new) };
        let id = u16::try_from(self.states.len()).map_err(|_| ErrorKind::TooLarge)?;
        let used = state.vectors().flatten().filter(|&&source| source < UNSET).max();
        self.registers = self.registers.max(used.map_or(0, |register| register + 1));
        if usize::from(self.registers) > MAX_REGISTERS {
            return Err(ErrorKind::TooLarge);
        }
        self.alike.entry(state.shape.clone()).or_default().push(id);
        self.states.push(state);
        Ok((id, self.action(moves)?))
    }

    /// Orders simultaneous moves so that they can run one after the other.
    fn action(&mut self, moves: Vec<(Source, Source)>) -> Result<u16, ErrorKind> {
        self.budget.spend(moves.len())?;
        let sequence = in_sequence(moves);
        let pairs = sequence.iter().flat_map(|&(to, from)| [to, from]);
        self.moves(std::iter::once(sequence.len() as u16).chain(pairs).collect())
    }

    fn moves(&mut self, sequence: Vec<u16>) -> Result<u16, ErrorKind> {
        if let Some(&at) = self.move_ids.get(&sequence) {
            return Ok(at);
        }
        if self.moves.len() + sequence.len() > MAX_MOVES {
            return Err(ErrorKind::TooLarge);
        }
        let at = self.moves.len() as u16;
        self.moves.extend_from_slice(&sequence);
        self.move_ids.insert(sequence, at);
        Ok(at)
    }

    fn state_after(&mut self, from: usize, kernel: &[(usize, StepId)], at_start: bool) -> Result<State, ErrorKind> {
        let (nfa, state) = (self.nfa, &self.states[from]);
        let (closure, budget) = (&mut self.closure, &mut self.budget);
        let mut at_end = None;
        if nfa.has_end {
            closure.run(nfa, state, kernel, (at_start, true), budget)?;
            at_end =
                closure.best[StepId::ACCEPT.index()].map(|path| closure.tags(path, state, nfa, budget)).transpose()?;
        }
        closure.run(nfa, state, kernel, (at_start, false), budget)?;
        let accept = closure.best[StepId::ACCEPT.index()];
        let last_rank = accept.map_or(u16::MAX, |path| closure.rank(path));
        let mut reached: Vec<(StepId, u32)> = Vec::new();
        for &step in &closure.reached {
            let path = closure.best[step.index()].filter(|_| matches!(nfa.step(step), Step::Bytes(..)));
            // Once a match has ended, those that started later are irrelevant.
            reached.extend(path.filter(|&path| closure.rank(path) <= last_rank).map(|path| (step, path)));
        }
        reached.sort_unstable();
        let mut orders = Vec::new();
        // Without groups, all ways to match from one start are equal.
        let compared = if nfa.has_marks { reached.as_slice() } else { &[] };
        for (second, &(_, second_path)) in compared.iter().enumerate() {
            for &(_, first_path) in &compared[..second] {
                orders.push(closure.order(first_path, second_path, state, budget)?);
            }
        }
        let mut ranks: Vec<u16> = reached.iter().map(|&(_, path)| closure.rank(path)).collect();
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        sorted.dedup();
        // SANITY: each rank is among them.
        ranks.iter_mut().for_each(|rank| *rank = sorted.binary_search(rank).unwrap_or_default() as u16);
        let accept = accept.map(|path| closure.tags(path, state, nfa, budget)).transpose()?;
        let at_end = if nfa.has_end { at_end } else { accept.clone() };
        Ok(State {
            shape: Shape {
                steps: reached.iter().zip(ranks).map(|(&(step, _), rank)| (step, rank)).collect(),
                orders,
                found: state.shape.found || accept.is_some(),
                accepts: accept.is_some(),
                accepts_at_end: at_end.is_some(),
            },
            tags: reached.iter().map(|&(_, path)| closure.tags(path, state, nfa, budget)).collect::<Result<_, _>>()?,
            accept,
            at_end,
        })
    }
}

/// A way from a configuration, or from a new start, over steps that consume no byte.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// The preceding way; 0 for the first.
    before: u32,
    /// Number of the configuration; an invalid one: a new start.
    origin: usize,
    rank: u16,
    /// The least mark on the way.
    least: u8,
    /// The final step: its mark, and whether it is the second of two ways.
    height: u8,
    second: bool,
    step: StepId,
}

/// No mark.
const NONE: u8 = u8::MAX;

/// Best ways to all steps that can be reached without a byte.
#[derive(Default)]
struct Closure {
    paths: Vec<Path>,
    /// By step.
    best: Vec<Option<u32>>,
    reached: Vec<StepId>,
    queue: std::collections::VecDeque<StepId>,
    queued: Vec<bool>,
}

impl Closure {
    fn run(
        &mut self,
        nfa: &Nfa,
        state: &State,
        kernel: &[(usize, StepId)],
        (at_start, at_end): (bool, bool),
        budget: &mut Budget,
    ) -> Result<(), ErrorKind> {
        for step in self.reached.drain(..) {
            self.best[step.index()] = None;
        }
        self.queued.resize(nfa.len(), false);
        self.paths.clear();
        let new = state.shape.steps.iter().map(|&(_, rank)| rank + 1).max().unwrap_or(0);
        let root = Path {
            before: 0,
            origin: usize::MAX,
            rank: new,
            least: NONE,
            height: NONE,
            second: false,
            step: StepId::ACCEPT,
        };
        self.paths.push(root);
        let begin = (!state.shape.found).then_some((state.shape.steps.len(), nfa.first));
        for (origin, step) in kernel.iter().copied().chain(begin) {
            let rank = state.shape.steps.get(origin).map_or(new, |&(_, rank)| rank);
            self.offer(Path { origin, rank, step, ..root }, state, nfa, budget)?;
        }
        while let Some(step) = self.queue.pop_front() {
            self.queued[step.index()] = false;
            // SANITY: queued steps have been reached.
            let Some(before) = self.best[step.index()] else { continue };
            let path = Path { before, height: NONE, second: false, ..self.paths[before as usize] };
            match nfa.step(step) {
                Step::Bytes(..) | Step::Accept => {}
                Step::Split(first, second) => {
                    self.offer(Path { step: first, ..path }, state, nfa, budget)?;
                    self.offer(Path { step: second, second: true, ..path }, state, nfa, budget)?;
                }
                Step::Mark(height, next) => {
                    self.offer(Path { step: next, height, least: path.least.min(height), ..path }, state, nfa, budget)?;
                }
                Step::Tag(_, next) | Step::Clear(_, _, next) => {
                    self.offer(Path { step: next, ..path }, state, nfa, budget)?;
                }
                Step::Start(next) if at_start => self.offer(Path { step: next, ..path }, state, nfa, budget)?,
                Step::End(next) if at_end => self.offer(Path { step: next, ..path }, state, nfa, budget)?,
                Step::Start(_) | Step::End(_) => {}
            }
        }
        Ok(())
    }

    /// Accepts the way if it is the first to its step or better than the known one; its successors are then visited
    /// again.
    fn offer(&mut self, path: Path, state: &State, nfa: &Nfa, budget: &mut Budget) -> Result<(), ErrorKind> {
        budget.spend(1)?;
        let id = self.paths.len() as u32;
        self.paths.push(path);
        let step = path.step;
        match self.best[step.index()] {
            None => self.reached.push(step),
            Some(known) => {
                let (rank, known_rank) = (self.rank(id), self.rank(known));
                let better = match rank == known_rank {
                    true => {
                        nfa.has_marks
                            && (self.order(id, known, state, budget)?.ahead > 0 || self.is_superseded(known, budget)?)
                    }
                    false => rank < known_rank,
                };
                if !better {
                    self.paths.pop();
                    return Ok(());
                }
            }
        }
        self.best[step.index()] = Some(id);
        if !std::mem::replace(&mut self.queued[step.index()], true) {
            self.queue.push_back(step);
        }
        Ok(())
    }

    fn rank(&self, path: u32) -> u16 {
        self.paths[path as usize].rank
    }

    /// Compares two ways.
    fn order(&self, first: u32, second: u32, state: &State, budget: &mut Budget) -> Result<Order, ErrorKind> {
        budget.spend(1)?;
        if self.rank(first) != self.rank(second) {
            return Ok(Order { least: (0, 0), ahead: 0 });
        }
        let path = |id: u32| &self.paths[id as usize];
        let (from_first, from_second) = (path(first).origin, path(second).origin);
        if from_first != from_second {
            let before = state.order(from_first, from_second);
            let least = (before.least.0.min(path(first).least), before.least.1.min(path(second).least));
            return Ok(Order { least, ahead: by_marks(least).unwrap_or(before.ahead) });
        }
        // Go back to where they diverged; a way has a higher number than the one it continues.
        let (mut at, mut to) = ((first, second), (None, None));
        let mut least = (NONE, NONE);
        while at.0 != at.1 {
            budget.spend(1)?;
            if at.0 > at.1 {
                least.0 = least.0.min(path(at.0).height);
                to.0 = Some(path(at.0).second);
                at.0 = path(at.0).before;
            } else {
                least.1 = least.1.min(path(at.1).height);
                to.1 = Some(path(at.1).second);
                at.1 = path(at.1).before;
            }
        }
        let ahead = match to {
            // One continues from the other: a loop that consumes nothing.
            (None, _) => 1,
            (_, None) => -1,
            (Some(first), Some(second)) => by_marks(least).unwrap_or(if second && !first { 1 } else { -1 }),
        };
        Ok(Order { least, ahead })
    }

    /// Whether the way passes a step to which a better one is known by now.
    fn is_superseded(&self, mut path: u32, budget: &mut Budget) -> Result<bool, ErrorKind> {
        while path != 0 {
            budget.spend(1)?;
            if self.best[self.paths[path as usize].step.index()] != Some(path) {
                return Ok(true);
            }
            path = self.paths[path as usize].before;
        }
        Ok(false)
    }

    /// The tags at the end of a way, in terms of the state's registers.
    fn tags(&self, path: u32, state: &State, nfa: &Nfa, budget: &mut Budget) -> Result<Vec<Source>, ErrorKind> {
        budget.spend(usize::from(nfa.tags))?;
        let mut steps = Vec::new();
        let mut at = self.paths[path as usize].before;
        while at != 0 {
            budget.spend(1)?;
            steps.push(self.paths[at as usize].step);
            at = self.paths[at as usize].before;
        }
        let origin = state.tags.get(self.paths[path as usize].origin);
        let mut tags = origin.cloned().unwrap_or_else(|| vec![UNSET; usize::from(nfa.tags)]);
        for step in steps.into_iter().rev() {
            match nfa.step(step) {
                Step::Tag(tag, _) => tags[usize::from(tag)] = HERE,
                Step::Clear(first, last, _) => {
                    budget.spend(usize::from(last - first))?;
                    tags[usize::from(first)..usize::from(last)].fill(UNSET);
                }
                _ => {}
            }
        }
        Ok(tags)
    }
}

/// Which one is ahead, by the least marks only.
fn by_marks(least: (u8, u8)) -> Option<i8> {
    (least.0 != least.1).then_some(if least.0 > least.1 { 1 } else { -1 })
}

/// The moves that turn `new` into the state `there`; None if its registers are not enough.
fn host(there: &State, new: &State) -> Option<Vec<(Source, Source)>> {
    let mut moves: BTreeMap<Source, Source> = BTreeMap::new();
    for (registers, sources) in there.vectors().zip(new.vectors()) {
        for (&register, &source) in registers.iter().zip(sources) {
            if register >= UNSET {
                if register != source {
                    return None;
                }
                continue;
            }
            if *moves.entry(register).or_insert(source) != source {
                return None;
            }
        }
    }
    Some(moves.into_iter().filter(|&(to, from)| to != from).collect())
}

/// Adds `new` as a state: positions get registers, one for each tag; existing registers are unchanged.
fn settle(mut new: State) -> (State, Vec<(Source, Source)>) {
    let mut used: HashSet<Source> = new.vectors().flatten().copied().collect();
    used.insert(SPARE);
    let mut free = (SPARE + 1..UNSET).filter(|register| !used.contains(register));
    let mut moves = Vec::new();
    let count = new.tags.first().map_or(0, Vec::len);
    for tag in 0..count {
        if !new.tags.iter().any(|tags| tags[tag] == HERE) {
            continue;
        }
        // SANITY: there are fewer tags than registers.
        let register = free.next().unwrap_or(SPARE);
        moves.push((register, HERE));
        for tags in new.tags.iter_mut().filter(|tags| tags[tag] == HERE) {
            tags[tag] = register;
        }
    }
    (new, moves)
}

/// Adds `new` as a general state, in which every tag of every configuration has its own register: any state with the
/// same core can become it.
fn generalize(mut new: State) -> (State, Vec<(Source, Source)>) {
    let mut moves = Vec::new();
    let State { tags, accept, at_end, .. } = &mut new;
    for source in tags.iter_mut().chain(accept).chain(at_end).flatten() {
        let register = SPARE + 1 + moves.len() as u16;
        moves.push((register, *source));
        *source = register;
    }
    moves.retain(|&(to, from)| to != from);
    (new, moves)
}

/// Orders simultaneous moves, each to another register, so that each register is read before it is written.
fn in_sequence(mut moves: Vec<(Source, Source)>) -> Vec<(Source, Source)> {
    let mut readers: HashMap<Source, usize> = HashMap::new();
    moves.iter().for_each(|&(_, from)| *readers.entry(from).or_default() += 1);
    let writer: HashMap<Source, usize> = moves.iter().enumerate().map(|(index, &(to, _))| (to, index)).collect();
    let mut free: Vec<usize> = (0..moves.len()).rev().filter(|&index| !readers.contains_key(&moves[index].0)).collect();
    let mut is_done = vec![false; moves.len()];
    let mut sequence = Vec::with_capacity(moves.len());
    for start in 0..=moves.len() {
        while let Some(index) = free.pop() {
            let (to, from) = moves[index];
            sequence.push((to, from));
            is_done[index] = true;
            let left = readers.entry(from).or_default();
            *left = left.saturating_sub(1);
            free.extend(writer.get(&from).copied().filter(|&writer| *left == 0 && !is_done[writer]));
        }
        let Some(&(first, _)) = moves.get(start).filter(|_| !is_done[start]) else { continue };
        // Only cycles are left: save one register of this one for the move that reads it.
        let mut last = start;
        while moves[last].1 != first {
            last = writer[&moves[last].1];
        }
        moves[last].1 = SPARE;
        sequence.push((SPARE, first));
        free.push(start);
    }
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_at_once_become_a_sequence() {
        let run = |moves: Vec<(Source, Source)>| {
            let mut registers = [0, 10, 20, 30, 40];
            for (to, from) in in_sequence(moves) {
                registers[usize::from(to)] = if from == HERE { 99 } else { registers[usize::from(from)] };
            }
            registers[1..].to_vec()
        };
        assert_eq!(run(vec![(1, 2), (2, 3), (3, HERE)]), [20, 30, 99, 40]);
        assert_eq!(run(vec![(1, 2), (2, 1)]), [20, 10, 30, 40]);
        assert_eq!(run(vec![(1, 2), (2, 3), (3, 1), (4, 1)]), [20, 30, 10, 10]);
        assert_eq!(run(vec![(1, 2), (2, 1), (3, 4), (4, 3)]), [20, 10, 40, 30]);
    }
}
