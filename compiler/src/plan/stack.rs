//! Kernel stack: how much of it a handler can use, with everything it calls, from what the C compiler says of each function
//! (`-fstack-usage`). Strings and iterators are not there but in frame memory ([`super::frame`]).
//!
//! Before a handler runs, the runtime looks whether MINSTACKSPACE bytes are left; so what is needed must be within that.

use std::collections::{HashMap, HashSet};

use super::code::{self, Instr, Routine};
use super::frame;

/// What the runtime and the kernel's functions that it calls need above and below a handler. The runtime's largest frame is
/// that of print_regs(), 840 bytes; most have less than 200 (6.1, gcc-12).
const RUNTIME: u64 = 1536;
/// For what is aligned, and for compilers that do not count the return address.
const CALL: u64 = 16;
/// Of the 16 KB that a task has (x86-64), the kernel has used some before a probe is hit.
pub const MOST: u32 = 12 << 10;

/// The need of the handler that needs most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// With the runtime's share.
    pub bytes: u32,
    /// Symbol and bytes of the function whose frame is the largest on the way.
    pub largest: (String, u32),
}

/// `usage`: what the compiler wrote. A function that it does not name was made part of its callers.
/// `max_nesting`: calls open at once at the most, where one can come back to itself.
pub fn need(routines: &[Routine], max_nesting: u32, usage: &str) -> Need {
    let frames = frames(usage);
    let by_symbol: HashMap<&str, usize> = routines.iter().enumerate().map(|(index, routine)| (routine.symbol.as_str(), index)).collect();
    let graph: Vec<Vec<usize>> = routines.iter().map(|routine| callees(&routine.code, &by_symbol)).collect();
    let frame = |index: usize| frames.get(routines[index].symbol.as_str()).map_or(0, |bytes| bytes + CALL);
    let (length, circle) = frame::longest(&graph, &frame);
    let largest = (0..routines.len()).max_by_key(|&index| frame(index));
    let deepest = length.into_iter().max().unwrap_or(0);
    // A circle's edge back counts nothing in the chain: the largest frame may be there once for each call, and the handler's.
    let called: HashSet<usize> = graph.iter().flatten().copied().collect();
    let handler = (0..routines.len()).filter(|index| !called.contains(index)).map(frame).max().unwrap_or(0);
    let repeated = if circle { u64::from(max_nesting) * largest.map_or(0, frame) + handler } else { 0 };
    let bytes = RUNTIME + deepest.max(repeated);
    let largest = largest.map_or((String::new(), 0), |index| (routines[index].symbol.clone(), to_u32(frame(index))));
    Need { bytes: to_u32(bytes), largest }
}

fn to_u32(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Lines `file:line:column:function<tab>bytes<tab>kind`. Parts of a function (`f.part.0`) count as the function.
fn frames(usage: &str) -> HashMap<&str, u64> {
    let mut frames: HashMap<&str, u64> = HashMap::new();
    for line in usage.lines() {
        let mut fields = line.split('\t');
        let (Some(place), Some(bytes)) = (fields.next(), fields.next().and_then(|bytes| bytes.parse::<u64>().ok())) else { continue };
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
    use super::super::code::{Callee, Outcome};
    use super::super::code::tests::routine;
    use super::*;

    fn calling(symbol: &str, calls: &[&str]) -> Routine {
        let call = |symbol: &&str| Instr::Call { callee: Callee::Routine(symbol.to_string()), arguments: Vec::new(), outcome: Outcome::None, location: None };
        routine(symbol, vec![Instr::Loop(calls.iter().map(call).collect())])
    }

    const USAGE: &str = "spile/script.c:3:1:f\t100\tstatic\nspile/script.c:9:1:g\t40\tdynamic,bounded\nspile/script.c:20:1:g.part.0\t24\tstatic\nscript.c:30:1:p\t8\tstatic\nnoise\n";

    #[test]
    fn chains_add_up() {
        let routines = [calling("f", &["g", "gone"]), calling("g", &[]), calling("p", &["f", "inlined"]), calling("inlined", &[])];
        let need = need(&routines, 3, USAGE);
        assert_eq!(u64::from(need.bytes), RUNTIME + (100 + CALL) + (64 + CALL) + (8 + CALL));
        assert_eq!(need.largest, ("f".to_string(), 100 + CALL as u32));
    }

    #[test]
    fn recursion_counts_for_each_call() {
        let routines = [calling("f", &["f"]), calling("p", &["f"])];
        assert_eq!(u64::from(need(&routines, 50, USAGE).bytes), RUNTIME + 50 * (100 + CALL) + (8 + CALL));
        assert_eq!(u64::from(need(&routines, 1, "").bytes), RUNTIME);
    }
}
