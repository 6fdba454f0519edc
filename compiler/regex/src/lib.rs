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

mod error;
mod nfa;
mod parse;
mod plain;
mod set;
mod smallest;
mod tagged;
#[cfg(test)]
mod tests;

pub use error::{Error, ErrorKind};
pub use plain::{DEAD, MATCHED, Plain};
pub use set::Classes;
pub use tagged::{HERE, Tagged, UNSET};

/// Most transitions of one table: each takes 2 bytes in the module.
pub const MAX_TRANSITIONS: usize = 65_000;

/// What building one automaton may cost, in steps looked at: well under a second.
struct Budget(usize);

impl Default for Budget {
    fn default() -> Budget {
        Budget(4_000_000)
    }
}

impl Budget {
    fn spend(&mut self, steps: usize) -> Result<(), ErrorKind> {
        self.0 = self.0.checked_sub(steps).ok_or(ErrorKind::TooLarge)?;
        Ok(())
    }
}

/// Whether a pattern is one, if perhaps too large.
pub fn check(pattern: &[u8]) -> Result<(), Error> {
    parse::parse(pattern).map(|_| ())
}

/// Compiles a pattern, the value of the script's string, to tell whether it matches.
pub fn compile(pattern: &[u8]) -> Result<Plain, Error> {
    build(pattern, false, plain::build)
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
