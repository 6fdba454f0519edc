// SPDX-License-Identifier: GPL-2.0-or-later

//! Minimises an automaton: states are in blocks, which are split until all states of a block are equivalent.

use std::collections::HashMap;

use super::plain::{DEAD, MATCHED, Plain};

/// Merges equivalent states (after Hopcroft: the work grows little faster than the table).
pub fn smallest(plain: Plain) -> Plain {
    let width = plain.classes.count();
    let states = plain.at_end.len();
    let row = |state: usize| &plain.next[state * width..][..width];
    let mut blocks = Blocks::new(
        (0..states).map(|state| if state == usize::from(MATCHED) { 2 } else { usize::from(plain.at_end[state]) }),
    );
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
                // Only one half, the smaller one, needs to be processed.
                let smaller =
                    if !is_pending[old] && blocks.members(old).len() < blocks.members(new).len() { old } else { new };
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

/// The predecessors of each state.
struct Sources {
    width: usize,
    /// `[state * width + class]`: index into `states` of the first predecessor by a byte of the class; they end where
    /// the next ones start.
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

/// A partition of the states, refined step by step.
struct Blocks {
    /// By state.
    of: Vec<usize>,
    /// The states by block, marked ones at the front of their block.
    order: Vec<usize>,
    /// By state: its index in `order`.
    place: Vec<usize>,
    /// By block: its range of `order`, and the number of marked states.
    ranges: Vec<(std::ops::Range<usize>, usize)>,
    /// Blocks with marked states.
    touched: Vec<usize>,
}

impl Blocks {
    /// The initial partition, by the number of each state.
    fn new(numbers: impl Iterator<Item = usize>) -> Blocks {
        let numbers: Vec<usize> = numbers.collect();
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by_key(|&state| numbers[state]);
        let mut blocks = Blocks {
            of: vec![0; order.len()],
            place: vec![0; order.len()],
            ranges: Vec::new(),
            touched: Vec::new(),
            order,
        };
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

    /// Splits each block that is partly marked; returns (the old one, the new one).
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
