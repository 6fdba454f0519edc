// SPDX-License-Identifier: GPL-2.0-or-later

//! Routines of several sites that behave the same are compiled once: `probe module("nfs").function("*") { ... }` has one
//! handler.
//!
//! [`identical`] merges routines that are equal, [`similar`] those that differ only in their constants. Names of
//! routines and comments do not count; names of variables do, because they are emitted.

mod constants;
mod identical;
mod similar;

pub(super) use identical::IdenticalHandlers;
pub(super) use similar::{Run, SimilarHandlers};

use super::code::{Frame, Instr, IteratorMemory, Parameter, Routine, Variable, without_comments};
use crate::program::Type;

/// The behaviour of a routine: everything except its symbol and its comments.
#[derive(PartialEq, Eq, Hash)]
struct Behaviour {
    parameters: Vec<Parameter>,
    returns: Option<Type>,
    longs: Vec<Variable>,
    texts: Vec<Variable>,
    buffers: Vec<String>,
    iterators: Vec<IteratorMemory>,
    frame: Frame,
    spilled: bool,
    code: Vec<Instr>,
}

impl Behaviour {
    fn of(routine: &Routine) -> Behaviour {
        Behaviour {
            parameters: routine.parameters.clone(),
            returns: routine.returns,
            longs: routine.longs.clone(),
            texts: routine.texts.clone(),
            buffers: routine.buffers.clone(),
            iterators: routine.iterators.clone(),
            frame: routine.frame,
            spilled: routine.spilled,
            code: without_comments(&routine.code),
        }
    }
}

/// Writes into the routine's comment how many other sites use it.
fn count_other_sites(routine: &mut Routine, more: usize) {
    if more > 0 {
        routine.comment.push_str(&format!(", and {more} more"));
    }
}
