// SPDX-License-Identifier: GPL-2.0-or-later

//! Regular expressions: the pattern of `=~` to the automaton that the module runs.
//!
//! A pattern is parsed ([`parse`]), made an automaton of small steps ([`nfa`]), and that a deterministic one: for each byte
//! of the string one look into a table, whatever the pattern. One kind answers only whether the pattern matches ([`plain`]),
//! the other also where its groups did ([`tagged`]). Patterns that would need too large a table are refused. runtime-c/regex.c interprets the tables.

#![warn(missing_docs)]
#![allow(
    clippy::indexing_slicing,
    reason = "automata index their tables by their own numbers of states, steps and classes"
)]

mod budget;
mod error;
mod nfa;
mod parse;
mod plain;
mod set;
mod smallest;
mod tagged;
#[cfg(test)]
mod tests;

pub use budget::MAX_TRANSITIONS;
pub use error::{Error, ErrorKind};
pub use plain::{DEAD, MATCHED, Plain};
pub use set::Classes;
pub use tagged::{HERE, Tagged, UNSET};

/// Whether a pattern is one, if perhaps too large.
pub fn check(pattern: &[u8]) -> Result<(), Error> {
    parse::parse(pattern).map(|_| ())
}

/// Compiles a pattern, the value of the script's string, to tell whether it matches.
pub fn compile(pattern: &[u8]) -> Result<Plain, Error> {
    build(pattern, false, plain::build).map(smallest::smallest)
}

/// Compiles a pattern to tell where it and its groups match.
pub fn compile_groups(pattern: &[u8]) -> Result<Tagged, Error> {
    build(pattern, true, tagged::build)
}

fn build<T>(pattern: &[u8], groups: bool, automaton: fn(&nfa::Nfa) -> Result<T, ErrorKind>) -> Result<T, Error> {
    let whole = |kind| Error { kind, start: 0, end: pattern.len() };
    let parsed = parse::parse(pattern)?;
    let nfa = nfa::build(&parsed, groups).map_err(whole)?;
    automaton(&nfa).map_err(whole)
}
