// SPDX-License-Identifier: GPL-2.0-or-later

//! Kernel stack: how much of it a handler can use, including everything it calls, from what the C compiler reports for each
//! function (`-fstack-usage`). Strings and sort buffers of iterators are in frame memory ([`super::frame`]); if the stack
//! has no room for the rest, variables are moved there too ([`spill`]).
//!
//! Before a handler runs, the runtime checks that this much is left of the current stack, or MINSTACKSPACE bytes if that is
//! more (runtime-c/stack_left.h).

use std::collections::{HashMap, HashSet};

use super::code::{self, Frame, Instr, Routine};
use super::frame;
use super::{Plan, Probe};

/// What the runtime and the kernel functions that it calls need above and below a handler. Measured on a stack that was
/// filled before each call (6.1, gcc-12): print_regs() takes 1128 bytes, `$file$` 688, a fault in user_string() 544, most
/// builtins less than 450.
const RUNTIME: u64 = 1536;
/// For alignment, and for compilers that do not count the return address.
const CALL: u64 = 16;
/// Of the 16 KB of a task (x86-64), the kernel has used some before a probe is hit.
pub const MOST: u32 = 12 << 10;

/// The stack need of the handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackNeed {
    /// By routine of the plan: with everything that it calls and the runtime's share.
    pub bytes: Vec<u32>,
    /// Symbol and bytes of the function whose frame is the largest.
    pub largest: (String, u32),
}

impl StackNeed {
    /// The largest need.
    pub fn most(&self) -> u32 {
        self.bytes.iter().copied().max().unwrap_or(0)
    }

    /// By probe: of its handlers, of what reads memory ahead of them, and of all conditions, which may be evaluated at the end of
    /// any of them.
    pub fn by_probe(&self, plan: &Plan) -> Vec<u32> {
        let by_symbol: HashMap<&str, u32> =
            plan.routines.iter().map(|routine| routine.symbol.as_str()).zip(self.bytes.iter().copied()).collect();
        let of = |symbol: &str| by_symbol.get(symbol).copied().unwrap_or(0);
        let conditions = plan
            .probes
            .iter()
            .filter_map(|probe| probe.condition.as_ref())
            .map(|condition| of(&condition.routine))
            .max()
            .unwrap_or(0);
        let of_probe = |probe: &Probe| {
            let others = [probe.entry_handler.as_deref(), probe.paging.ahead(), probe.entry_paging.ahead()];
            others.into_iter().flatten().map(of).fold(of(&probe.handler).max(conditions), u32::max)
        };
        plan.probes.iter().map(of_probe).collect()
    }
}

/// `usage`: the C compiler's report. A function that it does not list was inlined into its callers. `max_nesting`: most
/// calls open at once, if one can reach itself.
pub fn need(routines: &[Routine], max_nesting: u32, usage: &str) -> StackNeed {
    let frames = frames(usage);
    let by_symbol: HashMap<&str, usize> =
        routines.iter().enumerate().map(|(index, routine)| (routine.symbol.as_str(), index)).collect();
    let graph: Vec<Vec<usize>> = routines.iter().map(|routine| callees(&routine.code, &by_symbol)).collect();
    let frame = |index: usize| frames.get(routines[index].symbol.as_str()).map_or(0, |bytes| bytes + CALL);
    let (length, _) = frame::longest(&graph, &frame);
    let turning = turning(&graph);
    let bytes = (0..routines.len()).map(|index| {
        // The back edge of a cycle adds nothing to the chain: the largest frame may occur once for each call, and the
        // handler's.
        let called = reached(&graph, index);
        let circle = called.iter().any(|&callee| turning[callee]);
        let largest = called.into_iter().map(frame).max().unwrap_or(0);
        let repeated = if circle { u64::from(max_nesting) * largest + frame(index) } else { 0 };
        to_u32(RUNTIME + length[index].max(repeated))
    });
    let largest = (0..routines.len()).max_by_key(|&index| frame(index));
    let largest = largest.map_or((String::new(), 0), |index| (routines[index].symbol.clone(), to_u32(frame(index))));
    StackNeed { bytes: bytes.collect(), largest }
}

/// Moves the variables of routines with large frames from the stack to frame memory. False: there are none.
pub fn spill(plan: &mut Plan, usage: &str) -> bool {
    /// Smaller frames contain little more than registers saved around calls.
    const LARGE: u64 = 256;
    let frames = frames(usage);
    let string_bytes = plan.info.limits.string_bytes;
    let mut largest = 0;
    for routine in &mut plan.routines {
        if routine.spilled || frames.get(routine.symbol.as_str()).is_none_or(|bytes| *bytes < LARGE) {
            continue;
        }
        let before = frame::size(routine, string_bytes);
        routine.spilled = true;
        if routine.frame == Frame::None {
            routine.frame = Frame::Checked;
        }
        largest = largest.max(frame::size(routine, string_bytes) - before);
    }
    // The handler's, and those of all calls that can be open at once.
    plan.frame_bytes = plan.frame_bytes.saturating_add(largest.saturating_mul(u64::from(plan.max_nesting) + 1));
    largest > 0
}

/// By routine: whether a call can reach itself.
fn turning(graph: &[Vec<usize>]) -> Vec<bool> {
    // Without a cycle there is nothing to search for.
    if !frame::longest(graph, &|_| 1).1 {
        return vec![false; graph.len()];
    }
    (0..graph.len()).map(|index| reached(graph, index).contains(&index)).collect()
}

/// What is called from there, directly and indirectly; itself only if it is reached again.
fn reached(graph: &[Vec<usize>], from: usize) -> HashSet<usize> {
    let mut found = HashSet::new();
    let mut open = graph[from].clone();
    while let Some(index) = open.pop() {
        if found.insert(index) {
            open.extend(&graph[index]);
        }
    }
    found
}

fn to_u32(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Lines `file:line:column:function<tab>bytes<tab>kind`. Parts of a function (`f.part.0`) count towards the function.
fn frames(usage: &str) -> HashMap<&str, u64> {
    let mut frames: HashMap<&str, u64> = HashMap::new();
    for line in usage.lines() {
        let mut fields = line.split('\t');
        let (Some(place), Some(bytes)) = (fields.next(), fields.next().and_then(|bytes| bytes.parse::<u64>().ok()))
        else {
            continue;
        };
        let name = place.rsplit(':').next().unwrap_or(place);
        let name = name.split('.').next().unwrap_or(name);
        *frames.entry(name).or_default() += bytes;
    }
    frames
}

fn callees(code: &[Instr], by_symbol: &HashMap<&str, usize>) -> Vec<usize> {
    let mut found = Vec::new();
    code::calls(code, &mut |symbol| found.extend(by_symbol.get(symbol)));
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::super::code::tests::routine;
    use super::super::code::{Callee, Outcome};
    use super::*;

    fn calling(symbol: &str, calls: &[&str]) -> Routine {
        let call = |symbol: &&str| Instr::Call {
            callee: Callee::Routine(symbol.to_string()),
            arguments: Vec::new(),
            outcome: Outcome::None,
            location: None,
        };
        routine(symbol, vec![Instr::Loop(calls.iter().map(call).collect())])
    }

    const USAGE: &str = "spile/script.c:3:1:f\t100\tstatic\nspile/script.c:9:1:g\t40\tdynamic,bounded\nspile/script.c:20:1:g.part.0\t24\tstatic\nscript.c:30:1:p\t8\tstatic\nnoise\n";

    #[test]
    fn chains_add_up() {
        let routines =
            [calling("f", &["g", "gone"]), calling("g", &[]), calling("p", &["f", "inlined"]), calling("inlined", &[])];
        let need = need(&routines, 3, USAGE);
        assert_eq!(u64::from(need.most()), RUNTIME + (100 + CALL) + (64 + CALL) + (8 + CALL));
        assert_eq!(u64::from(need.bytes[1]), RUNTIME + 64 + CALL);
        assert_eq!(need.largest, ("f".to_string(), 100 + CALL as u32));
    }

    #[test]
    fn recursion_counts_for_each_call() {
        let routines = [calling("f", &["f"]), calling("p", &["f"])];
        assert_eq!(u64::from(need(&routines, 50, USAGE).bytes[1]), RUNTIME + 50 * (100 + CALL) + (8 + CALL));
        assert_eq!(u64::from(need(&routines, 1, "").most()), RUNTIME);
    }

    #[test]
    fn recursion_of_others_does_not_count() {
        let routines = [calling("f", &["f"]), calling("p", &["f"]), calling("g", &[])];
        let need = need(&routines, 50, USAGE);
        assert_eq!(u64::from(need.bytes[2]), RUNTIME + 64 + CALL);
        assert!(need.bytes[1] > need.bytes[2]);
    }
}
