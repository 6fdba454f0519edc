// SPDX-License-Identifier: GPL-2.0-or-later

//! Converts trees to nondeterministic automata (Thompson's construction).
//!
//! If groups are needed, the steps also record what POSIX needs to prefer one way to match over another: marks. A mark
//! of height H is passed where a part of the pattern at depth H begins or ends. Of two ways to match, the one whose
//! part continues where the other's has ended has passed only higher marks since they diverged: see [`super::tagged`].

use super::error::ErrorKind;
use super::parse::{Node, Pattern};
use super::set::ByteSet;

/// Maximum number of steps of one pattern.
const MAX_STEPS: usize = 20_000;

/// Number of a step of an automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(u32);

impl StepId {
    /// The final step of every automaton, [`Step::Accept`].
    pub const ACCEPT: StepId = StepId(0);

    /// The number, for tables with an entry for each step.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A step of the automaton, with the steps that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Takes a byte of the set.
    Bytes(ByteSet, StepId),
    /// Either; the first is preferred in case of a tie.
    Split(StepId, StepId),
    /// Passes a mark of this height.
    Mark(u8, StepId),
    /// Stores the position in the tag.
    Tag(u16, StepId),
    /// Clears the positions of the tags `first..last`.
    Clear(u16, u16, StepId),
    /// Only at the string's start.
    Start(StepId),
    /// Only at the string's end.
    End(StepId),
    Accept,
}

/// A nondeterministic automaton.
#[derive(Debug)]
pub struct Nfa {
    /// The steps by their numbers.
    steps: Vec<Step>,
    /// The step that the automaton starts with.
    pub first: StepId,
    /// Tags: 0 is the start of the match, 2N - 1 and 2N start and end of group N. The match's end has none. 0 without
    /// groups.
    pub tags: u16,
    /// The pattern can require the end of the string (`$`).
    pub has_end: bool,
    /// Groups are needed: ways to match differ.
    pub has_marks: bool,
}

impl Nfa {
    /// The step of that number.
    pub fn step(&self, id: StepId) -> Step {
        self.steps[id.index()]
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The sets of bytes that steps take.
    pub fn byte_sets(&self) -> Vec<&ByteSet> {
        self.steps.iter().filter_map(|step| if let Step::Bytes(set, _) = step { Some(set) } else { None }).collect()
    }
}

/// Builds the automaton; with `groups`, one that also finds where they matched.
pub fn build(pattern: &Pattern, groups: bool) -> Result<Nfa, ErrorKind> {
    let tags = u16::try_from(pattern.groups * 2 + 1).map_err(|_| ErrorKind::TooLarge)?;
    let mut builder = Builder { steps: vec![Step::Accept], groups };
    let mut first = builder.node(&pattern.node, StepId::ACCEPT, 1)?;
    if groups {
        first = builder.push(Step::Tag(0, first))?;
    }
    let has = |test: fn(&Step) -> bool| builder.steps.iter().any(test);
    Ok(Nfa {
        first,
        tags: if groups { tags } else { 0 },
        has_end: has(|step| matches!(step, Step::End(_))),
        has_marks: has(|step| matches!(step, Step::Mark(..))),
        steps: builder.steps,
    })
}

struct Builder {
    steps: Vec<Step>,
    groups: bool,
}

type Built = Result<StepId, ErrorKind>;

impl Builder {
    fn push(&mut self, step: Step) -> Built {
        if self.steps.len() >= MAX_STEPS {
            return Err(ErrorKind::TooLarge);
        }
        let id = u32::try_from(self.steps.len()).map_err(|_| ErrorKind::TooLarge)?;
        self.steps.push(step);
        Ok(StepId(id))
    }

    /// The steps of a node at depth `height`, continuing at `next`.
    fn node(&mut self, node: &Node, next: StepId, height: u8) -> Built {
        match node {
            Node::Empty => Ok(next),
            Node::Bytes(set) => self.push(Step::Bytes(*set, next)),
            Node::Start => self.push(Step::Start(next)),
            Node::End => self.push(Step::End(next)),
            Node::Group(_, inner) if !self.groups => self.node(inner, next, height),
            Node::Group(number, inner) => {
                let tag = (*number * 2) as u16;
                let end = self.push(Step::Tag(tag, next))?;
                let inner = self.node(inner, end, height)?;
                self.push(Step::Tag(tag - 1, inner))
            }
            Node::Concatenation(nodes) => {
                // The length of a part determines what is left for the groups after it.
                let last = nodes.iter().rposition(|node| self.groups && first_group(node).is_some());
                let mut next = next;
                for (index, node) in nodes.iter().enumerate().rev() {
                    next = match last {
                        Some(last) if index <= last => self.part(node, next, height, false)?,
                        _ => self.node(node, next, height)?,
                    };
                }
                Ok(next)
            }
            Node::Alternation(nodes) => {
                let matters = self.groups && nodes.iter().any(|node| first_group(node).is_some());
                let mut first = None;
                for node in nodes.iter().rev() {
                    let branch =
                        if matters { self.part(node, next, height, false)? } else { self.node(node, next, height)? };
                    first = Some(match first {
                        None => branch,
                        Some(others) => self.push(Step::Split(branch, others))?,
                    });
                }
                Ok(first.unwrap_or(next))
            }
            Node::Repeat { node, least, most } => self.repeat(node, *least, *most, next, height),
        }
    }

    /// A node as a separate part between marks; `again`: its groups may have matched before.
    fn part(&mut self, node: &Node, next: StepId, height: u8, again: bool) -> Built {
        let height = deeper(height)?;
        let end = self.push(Step::Mark(height, next))?;
        let mut begin = self.node(node, end, height)?;
        if let Some((first, last)) = first_group(node).zip(last_group(node)).filter(|_| again) {
            begin = self.push(Step::Clear((first * 2 - 1) as u16, (last * 2 + 1) as u16, begin))?;
        }
        self.push(Step::Mark(height, begin))
    }

    fn repeat(&mut self, node: &Node, least: u32, most: Option<u32>, next: StepId, height: u8) -> Built {
        let marks = self.groups && first_group(node).is_some();
        let once = |builder: &mut Builder, next| match marks {
            true => builder.part(node, next, height, true),
            false => builder.node(node, next, height),
        };
        let mut first = match most {
            None => {
                let again = self.push(Step::Split(next, next))?;
                let body = once(self, again)?;
                self.steps[again.index()] = Step::Split(body, next);
                if least > 0 { body } else { self.optional(body, next, height, marks)? }
            }
            Some(most) => {
                let mut first = next;
                for number in (least + 1..=most).rev() {
                    let body = once(self, first)?;
                    first = if number == 1 {
                        self.optional(body, next, height, marks)?
                    } else {
                        self.push(Step::Split(body, next))?
                    };
                }
                first
            }
        };
        let copies = if most.is_none() { least.saturating_sub(1) } else { least };
        for _ in 0..copies {
            first = once(self, first)?;
        }
        Ok(first)
    }

    /// The first of several repetitions, or none. None counts as a separate part, so that an empty one is preferred to
    /// it.
    fn optional(&mut self, body: StepId, next: StepId, height: u8, marks: bool) -> Built {
        let none = if marks { self.push(Step::Mark(deeper(height)?, next))? } else { next };
        self.push(Step::Split(body, none))
    }
}

/// The height of a nested part. The maximum is 255.
fn deeper(height: u8) -> Result<u8, ErrorKind> {
    if height < 254 { Ok(height + 1) } else { Err(ErrorKind::TooDeep) }
}

/// The lowest group number within a node.
fn first_group(node: &Node) -> Option<u32> {
    match node {
        Node::Empty | Node::Bytes(_) | Node::Start | Node::End => None,
        Node::Group(number, _) => Some(*number),
        Node::Concatenation(nodes) | Node::Alternation(nodes) => nodes.iter().find_map(first_group),
        Node::Repeat { node, .. } => first_group(node),
    }
}

/// The highest group number within a node.
fn last_group(node: &Node) -> Option<u32> {
    match node {
        Node::Empty | Node::Bytes(_) | Node::Start | Node::End => None,
        Node::Group(number, inner) => last_group(inner).or(Some(*number)),
        Node::Concatenation(nodes) | Node::Alternation(nodes) => nodes.iter().rev().find_map(last_group),
        Node::Repeat { node, .. } => last_group(node),
    }
}
