// SPDX-License-Identifier: GPL-2.0-or-later

//! An estimate of the instructions that a run of a handler takes, from its code. With the hits that the loader has counted
//! it gives the share of the machine's time (`--budget`).
//!
//! The weights come from docs/bench-runtime.md, for handlers that do the thing once, less the constant cost of a run. Of
//! two branches the more expensive one counts. The iterations of a loop are not known: [`TURNS`] are assumed.

use std::cell::RefCell;
use std::collections::HashMap;

use super::code::{Callee, Instr, Key, MapOp, Part, Routine};

/// Assumed iterations of a loop.
const TURNS: u64 = 10;
/// Calls deeper than this are not followed: that ends recursion.
const MOST_DEPTH: u32 = 8;
/// An upper limit, whatever the sum.
const MOST: u64 = 1_000_000;

const PLAIN: u64 = 4;
const READ: u64 = 20;
const BUILTIN: u64 = 25;
/// A string is written or searched.
const STRING: u64 = 60;
const EMBEDDED: u64 = 50;
/// A stack is unwound.
const STACK: u64 = 3000;
const MAP: u64 = 80;
const TEXT_KEY: u64 = 60;
const FEED: u64 = 25;
/// A record is written here, and read, formatted and written out by the loader.
const RECORD: u64 = 280;
const PART: u64 = 35;
const OBJECT: u64 = 300;

/// The routines of a module.
pub struct CostEstimator<'r> {
    by_symbol: HashMap<&'r str, &'r Routine>,
    /// What calls at a depth cost: handlers of hundreds of probes call the same functions, which call each other.
    known: RefCell<HashMap<(&'r str, u32), u64>>,
}

impl<'r> CostEstimator<'r> {
    /// The routines, by their symbols.
    pub fn of(routines: &'r [Routine]) -> CostEstimator<'r> {
        let by_symbol = routines.iter().map(|routine| (routine.symbol.as_str(), routine)).collect();
        CostEstimator { by_symbol, known: RefCell::default() }
    }

    /// Instructions of a call of the routine of that name; 0: there is none.
    pub fn of_call(&self, symbol: &str) -> u32 {
        u32::try_from(self.call(symbol, 0).min(MOST)).unwrap_or(u32::MAX)
    }

    fn call(&self, symbol: &str, depth: u32) -> u64 {
        let Some(routine) = self.by_symbol.get(symbol).copied().filter(|_| depth < MOST_DEPTH) else { return 0 };
        let key = (routine.symbol.as_str(), depth);
        let known = self.known.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let cost = self.code(&routine.code, depth + 1);
            self.known.borrow_mut().insert(key, cost);
            cost
        })
    }

    fn code(&self, code: &[Instr], depth: u32) -> u64 {
        let sum = code.iter().fold(0u64, |sum, instr| sum.saturating_add(self.instr(instr, depth)));
        sum.min(MOST)
    }

    fn instr(&self, instr: &Instr, depth: u32) -> u64 {
        match instr {
            Instr::Comment(_) | Instr::Label(_) | Instr::Goto(_) | Instr::Filter => 0,
            Instr::SetLong(..)
            | Instr::SetText(..)
            | Instr::SetGlobalLong(..)
            | Instr::Count { .. }
            | Instr::SaveLong(..)
            | Instr::SetRegister(..)
            | Instr::IteratorLong(..)
            | Instr::Rearm
            | Instr::Check(_)
            | Instr::CheckCall { .. }
            | Instr::Charge { .. }
            | Instr::TakeNext(_)
            | Instr::SayNext
            | Instr::ReturnLong(_)
            | Instr::ReturnWritten(_) => PLAIN,
            Instr::Divide { .. } | Instr::Read { .. } | Instr::Write { .. } => READ,
            Instr::Copy { .. }
            | Instr::Concatenate { .. }
            | Instr::SetGlobalText(..)
            | Instr::SaveText(..)
            | Instr::IteratorText(..)
            | Instr::Catch { .. }
            | Instr::Match { .. }
            | Instr::ReturnText(_) => STRING,
            Instr::Call { callee: Callee::Builtin(symbol), .. }
                if symbol.contains("stack") || symbol.contains("backtrace") =>
            {
                STACK
            }
            Instr::Call { callee: Callee::Builtin(_), .. } => BUILTIN,
            Instr::Call { callee: Callee::Routine(symbol), .. } => BUILTIN + self.call(symbol, depth),
            Instr::Call { callee: Callee::Embedded(_), .. } => EMBEDDED,
            Instr::Record { parts, .. } | Instr::Format { parts, .. } => RECORD + parts.iter().map(part).sum::<u64>(),
            Instr::If { then, otherwise, .. } => PLAIN + self.code(then, depth).max(self.code(otherwise, depth)),
            Instr::Map { keys, op, .. } => map(keys, op),
            Instr::Hold { .. } => MAP,
            Instr::HoldWhole { .. } => 4 * MAP,
            Instr::Foreach(each) => MAP + TURNS * (STRING + self.code(&each.body, depth)),
            Instr::Loop(body) => TURNS * self.code(body, depth),
        }
    }
}

fn part(part: &Part) -> u64 {
    match part {
        Part::Long(_) => PART,
        Part::Text(_) => STRING,
        Part::Stack { .. } | Part::StoredStack(_) | Part::UserStack => STACK,
        Part::UserFrame(_) => OBJECT,
        Part::Items { objects, longs, .. } => u64::from(*objects) * OBJECT + u64::from(*longs) * PART,
        Part::Memory { .. } | Part::Pretty { .. } | Part::Histogram { .. } => OBJECT,
    }
}

fn map(keys: &[Key], op: &MapOp) -> u64 {
    let texts = keys.iter().filter(|key| matches!(key, Key::Text(_) | Key::TaskName)).count() as u64;
    // For a held element only creation and deletion cost more than an access.
    let found = match (keys, op) {
        ([] | [Key::Held(_)], _) if !matches!(op, MapOp::Delete | MapOp::SetLong(_) | MapOp::Add(..)) => PLAIN,
        ([], _) => PLAIN,
        _ => MAP,
    };
    let fed = if matches!(op, MapOp::Feed(_)) { FEED } else { PLAIN };
    found + fed + TEXT_KEY * texts
}

#[cfg(test)]
mod tests {
    use super::super::code::tests::routine;
    use super::super::code::{FormatId, Outcome, Value};
    use super::*;

    fn record() -> Instr {
        Instr::Record { format: FormatId(0), parts: Vec::new(), objects: Value::Const(0), location: None }
    }

    #[test]
    fn the_dearer_branch_counts_and_loops_turn() {
        let branches = Instr::If { condition: Value::Const(1), then: Vec::new(), otherwise: vec![record()] };
        let routines = [routine("once", vec![branches]), routine("often", vec![Instr::Loop(vec![record()])])];
        let costs = CostEstimator::of(&routines);
        assert_eq!(u64::from(costs.of_call("once")), PLAIN + RECORD);
        assert_eq!(u64::from(costs.of_call("often")), TURNS * RECORD);
        assert_eq!(costs.of_call("absent"), 0);
    }

    fn call(symbol: &str) -> Instr {
        let callee = Callee::Routine(symbol.into());
        Instr::Call { callee, arguments: Vec::new(), outcome: Outcome::None, location: None }
    }

    #[test]
    fn a_function_that_calls_itself_often_is_estimated_once() {
        // Without the kept costs these are 100^8 calls.
        let routines = [routine("again", (0..100).map(|_| call("again")).collect())];
        assert_eq!(u64::from(CostEstimator::of(&routines).of_call("again")), MOST);
    }

    #[test]
    fn recursion_and_deep_loops_end() {
        let mut deep = vec![record()];
        for _ in 0..40 {
            deep = vec![Instr::Loop(deep)];
        }
        let routines = [routine("again", vec![call("again"), call("again")]), routine("deep", deep)];
        let costs = CostEstimator::of(&routines);
        assert!(costs.of_call("again") > 0);
        assert_eq!(u64::from(costs.of_call("deep")), MOST);
    }
}
