// SPDX-License-Identifier: GPL-2.0-or-later

//! Frame memory: how deep calls nest, and how many bytes of strings are in use at once.

use super::code::Routine;
use crate::program::uses::CodeSummary;
use crate::program::{FunctionId, Program};

/// How deep calls nest.
pub(super) struct Nesting {
    /// Most calls that can be open at once: the longest chain, 10 more if a function can call itself.
    pub needed: u32,
    /// A function can call itself: the depth must be counted.
    pub limited: bool,
}

/// Calls of each function.
fn graph(program: &Program) -> Vec<Vec<usize>> {
    CodeSummary::of_functions(program)
        .into_iter()
        .map(|summary| summary.calls.into_iter().map(FunctionId::index).collect())
        .collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    Open,
    Done,
}

/// Longest weighted chain of calls from each function, including itself; and whether there is a cycle (whose back edge adds
/// nothing).
pub(super) fn longest(graph: &[Vec<usize>], weight: &dyn Fn(usize) -> u64) -> (Vec<u64>, bool) {
    let mut marks = vec![Mark::New; graph.len()];
    let mut length = vec![0u64; graph.len()];
    let mut circle = false;
    for start in 0..graph.len() {
        // (function, next callee): an explicit stack, since scripts may chain thousands of functions.
        let mut stack = vec![(start, 0)];
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        while let Some((function, next)) = stack.last_mut() {
            match graph[*function].get(*next) {
                Some(callee) => {
                    *next += 1;
                    match marks[*callee] {
                        Mark::New => {
                            marks[*callee] = Mark::Open;
                            stack.push((*callee, 0));
                        }
                        Mark::Open => circle = true,
                        Mark::Done => {}
                    }
                }
                None => {
                    let deepest = graph[*function].iter().map(|callee| length[*callee]).max().unwrap_or(0);
                    length[*function] = deepest.saturating_add(weight(*function));
                    marks[*function] = Mark::Done;
                    stack.pop();
                }
            }
        }
    }
    (length, circle)
}

pub(super) fn nesting(program: &Program) -> Nesting {
    let (length, limited) = longest(&graph(program), &|_| 1);
    let chain = length.into_iter().max().unwrap_or(0) as u32 + 1;
    Nesting { needed: if limited { chain + 10 } else { chain }, limited }
}

/// Most bytes of frame memory, and of any other per-CPU memory; more is refused. Far below the range of the 32 bits in
/// which the module has these sizes.
pub const MOST: u64 = 1 << 30;
/// Most bytes saved at a probed function's entry for its return: there are many instances.
pub const MOST_SAVED: u64 = 1 << 20;

/// Bytes of frame memory that one call of a routine takes, as the C compiler lays them out.
pub fn size(routine: &Routine, string_bytes: u32) -> u64 {
    let iterators = routine.iterators.iter().fold(0u64, |sum, iterator| sum.saturating_add(iterator.bytes()));
    let variables = if routine.spilled { spilled(routine) } else { 0 };
    (routine.buffers.len() as u64 * u64::from(string_bytes))
        .next_multiple_of(8)
        .saturating_add(iterators)
        .saturating_add(variables)
}

/// The iterator's own state (struct spile_iterator in runtime-c/script.h).
const ITERATOR: u64 = 64;

/// Bytes of a routine's variables in frame memory, if they are there; at least one.
fn spilled(routine: &Routine) -> u64 {
    8 * (routine.longs.len() as u64 + 1) + 16 * routine.texts.len() as u64 + ITERATOR * routine.iterators.len() as u64
}

/// Bytes of frame memory for each CPU, whatever the value: the driver refuses more than [`MOST`]. `functions` and
/// `handlers`: the size of one call of each; handlers are called by the runtime.
pub(super) fn bytes(program: &Program, functions: &[u64], handlers: &[u64], max_nesting: u32) -> u64 {
    let (length, circle) = longest(&graph(program), &|index| functions.get(index).copied().unwrap_or(0));
    let calls = if circle {
        u64::from(max_nesting).saturating_mul(functions.iter().copied().max().unwrap_or(0))
    } else {
        length.into_iter().max().unwrap_or(0)
    };
    handlers.iter().copied().max().unwrap_or(0).saturating_add(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_32_bits_are_told_as_they_are() {
        use super::super::code::IteratorMemory;
        let mut routine = super::super::code::tests::routine("p", Vec::new());
        routine.iterators = vec![IteratorMemory { order: 16_777_216, buckets: false }; 66];
        assert_eq!(size(&routine, 512), 66 * 16_777_216 * 4);
        let (length, _) = longest(&[vec![1], vec![]], &|_| u64::MAX / 2 + 1);
        assert_eq!(length, [u64::MAX, u64::MAX / 2 + 1]);
    }

    #[test]
    fn longest_chain_and_circles() {
        let (length, circle) = longest(&[vec![1, 2], vec![2], vec![]], &|_| 1);
        assert_eq!((length, circle), (vec![3, 2, 1], false));
        let (_, circle) = longest(&[vec![1], vec![0]], &|_| 1);
        assert!(circle);
        let (_, circle) = longest(&[vec![0]], &|_| 1);
        assert!(circle);
    }
}
