//! Regular expressions: the pattern of `=~` to the automaton that the module runs.
//!
//! A pattern is parsed ([`parse`]), made an automaton of small steps ([`nfa`]), and that a deterministic one: for each byte
//! of the string one look into a table, whatever the pattern. It answers only whether the pattern matches ([`plain`]).
//! Patterns that would need too large a table are refused. runtime-c/regex.c interprets the tables.

mod error;
mod nfa;
mod parse;
mod plain;
mod set;
#[cfg(test)]
mod tests;

pub use error::{Error, ErrorKind};
pub use plain::{DEAD, MATCHED, Plain};
pub use set::Classes;

/// Most transitions of one table: each takes 2 bytes in the module.
pub const MAX_TRANSITIONS: usize = 65_000;

/// What building one automaton may cost, in steps looked at: well under a second.
struct Budget(usize);

impl Default for Budget {
    fn default() -> Budget {
        Budget(8_000_000)
    }
}

impl Budget {
    fn spend(&mut self, steps: usize) -> Result<(), ErrorKind> {
        self.0 = self.0.checked_sub(steps).ok_or(ErrorKind::TooLarge)?;
        Ok(())
    }
}

/// Compiles a pattern: the value of the script's string.
pub fn compile(pattern: &[u8]) -> Result<Plain, Error> {
    let whole = |kind| Error { kind, start: 0, end: pattern.len() };
    let parsed = parse::parse(pattern)?;
    let nfa = nfa::build(&parsed, false).map_err(whole)?;
    plain::build(&nfa).map_err(whole)
}
