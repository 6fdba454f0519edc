// SPDX-License-Identifier: GPL-2.0-or-later

//! Regular expressions: compiles the pattern of `=~` to the automaton that the module runs.
//!
//! A pattern is parsed ([`parse`]), converted to a nondeterministic automaton ([`nfa`]), and that to a deterministic
//! one: one table lookup for each byte of the string, for any pattern. One kind only decides whether the pattern
//! matches ([`plain`]), the other also finds where its groups matched ([`tagged`]). Patterns that need too large a
//! table are rejected. runtime-c/regex.c interprets the tables.

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

/// Whether a pattern is valid, even if too large.
pub fn check(pattern: &[u8]) -> Result<(), Error> {
    parse::parse(pattern).map(|_| ())
}

/// Compiles a pattern, the value of the script's string, to an automaton that decides whether it matches.
pub fn compile(pattern: &[u8]) -> Result<Plain, Error> {
    build(pattern, false, plain::build).map(smallest::smallest)
}

/// Compiles a pattern to an automaton that also finds the match and its groups.
pub fn compile_groups(pattern: &[u8]) -> Result<Tagged, Error> {
    build(pattern, true, tagged::build)
}

fn build<T>(pattern: &[u8], groups: bool, automaton: fn(&nfa::Nfa) -> Result<T, ErrorKind>) -> Result<T, Error> {
    let whole = |kind| Error { kind, start: 0, end: pattern.len() };
    let parsed = parse::parse(pattern)?;
    let nfa = nfa::build(&parsed, groups).map_err(whole)?;
    automaton(&nfa).map_err(whole)
}
