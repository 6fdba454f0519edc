// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether a regular expression is found in a string: all ways are tried.

use crate::model::tree::{Atom, Pattern, Repeat};

/// Whether the pattern matches somewhere in the text.
pub fn is_found(pattern: &Pattern, text: &[u8]) -> bool {
    let starts = if pattern.from_start { 0..=0 } else { 0..=text.len() };
    starts.into_iter().any(|start| {
        let mut accept = |end: usize| !pattern.to_end || end == text.len();
        any_alternative(&pattern.alternatives, text, start, &mut accept)
    })
}

type Sequence = [(Atom, Repeat)];

/// Whether from `at` on some alternative matches such that `accept` takes its end.
fn any_alternative(
    alternatives: &[Vec<(Atom, Repeat)>],
    text: &[u8],
    at: usize,
    accept: &mut dyn FnMut(usize) -> bool,
) -> bool {
    alternatives.iter().any(|sequence| matches(sequence, text, at, accept))
}

fn matches(sequence: &Sequence, text: &[u8], at: usize, accept: &mut dyn FnMut(usize) -> bool) -> bool {
    match sequence {
        [] => accept(at),
        [(atom, repeat), rest @ ..] => repeated(atom, *repeat, rest, text, at, accept),
    }
}

fn repeated(
    atom: &Atom,
    repeat: Repeat,
    rest: &Sequence,
    text: &[u8],
    at: usize,
    accept: &mut dyn FnMut(usize) -> bool,
) -> bool {
    if repeat.least == 0 && matches(rest, text, at, accept) {
        return true;
    }
    if repeat.most == Some(0) {
        return false;
    }
    let once_less = Repeat { least: repeat.least.saturating_sub(1), most: repeat.most.map(|most| most - 1) };
    let enough = repeat.least == 0;
    let mut go_on = |end: usize| {
        // An atom that matches the empty string would be repeated forever.
        (end > at || !enough) && repeated(atom, once_less, rest, text, end, accept)
    };
    match atom {
        Atom::Group(alternatives) => any_alternative(alternatives, text, at, &mut go_on),
        _ => text.get(at).is_some_and(|byte| is_one(atom, *byte)) && go_on(at + 1),
    }
}

fn is_one(atom: &Atom, byte: u8) -> bool {
    match atom {
        Atom::Byte(own) => *own == byte,
        Atom::Any => true,
        Atom::Class(ranges, negated) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&byte)) != *negated,
        Atom::Group(_) => false,
    }
}
