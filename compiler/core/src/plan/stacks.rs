// SPDX-License-Identifier: GPL-2.0-or-later

//! Stacks as values. A print leaves their addresses to the loader; a key, or a string that the script processes, contains
//! them in hex, and a string of the usual length would lose the outer frames: the root, which folded stacks need. Where a
//! program stores stacks, its strings are long enough for whole ones. A hit costs what its own stack takes; arrays and
//! frames take more memory.

use spile_abi::format::STACK_FRAMES;

use super::code::{Argument, Callee, Instr, Value, each};
use super::{Plan, Storage};
use crate::program::{Holds, Type};

/// `0x`, sixteen digits and a blank, or the end.
const FRAME: u32 = 19;
/// Size of a string that holds all frames.
pub const WHOLE: u32 = STACK_FRAMES * FRAME;
/// Most memory that the arrays of a program may take for that, in total.
const MOST: u64 = 64 << 20;

/// The string sizes to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// MAXSTRINGLEN.
    pub string_bytes: u32,
    /// Frames of a stack that fit.
    pub frames: u32,
}

impl Room {
    fn of(string_bytes: u32) -> Room {
        Room { string_bytes, frames: (string_bytes / FRAME).min(STACK_FRAMES) }
    }

    /// Whether the outermost frames of deep stacks are lost.
    pub fn cuts(self) -> bool {
        self.frames < STACK_FRAMES
    }
}

/// For a plan that stores stacks of any depth as values; None: it does not. `fixed`: the user has set MAXSTRINGLEN.
pub fn room(plan: &Plan, fixed: bool) -> Option<Room> {
    let now = plan.naming.limits.string_bytes;
    if !plan.routines.iter().any(|routine| keeps(&routine.code)) {
        return None;
    }
    if fixed || now >= WHOLE {
        return Some(Room::of(now));
    }
    let slots: u64 = plan.globals.iter().map(|global| strings_in(&global.storage)).sum();
    let affordable = MOST.checked_div(slots).unwrap_or(u64::MAX).min(WHOLE.into());
    Some(Room::of(u32::try_from(affordable).unwrap_or(WHOLE).max(now)))
}

/// Number of strings that an array has room for.
fn strings_in(storage: &Storage) -> u64 {
    let Storage::Map(map) = storage else { return 0 };
    let keys = map.keys.iter().filter(|key| **key == Type::String).count() as u64;
    let values = u64::from(matches!(map.holds, Holds::Value(Type::String)));
    u64::from(map.entries) * (keys + values)
}

fn keeps(code: &[Instr]) -> bool {
    let mut found = false;
    each(code, &mut |instr| {
        let Instr::Call { callee: Callee::Builtin(symbol), arguments, .. } = instr else { return };
        found |= match *symbol {
            "task_backtrace" => true,
            // A few of them fit in any case.
            "__stack_addresses" => {
                !matches!(arguments.get(2), Some(Argument::Long(Value::Const(most))) if (0..=26).contains(most))
            }
            _ => false,
        };
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_stack_fits() {
        assert!(!Room::of(WHOLE).cuts());
        assert_eq!(Room::of(512), Room { string_bytes: 512, frames: 26 });
        assert!(Room::of(512).cuts());
    }

    #[test]
    fn a_few_frames_need_no_room() {
        let call = |symbol, most| Instr::Call {
            callee: Callee::Builtin(symbol),
            arguments: [0, 0, most].map(|value| Argument::Long(Value::Const(value))).into(),
            outcome: super::super::code::Outcome::None,
            location: None,
        };
        assert!(keeps(&[call("__stack_addresses", -1)]) && keeps(&[Instr::Loop(vec![call("__stack_addresses", 27)])]));
        assert!(!keeps(&[call("__stack_addresses", 26), call("__stack_at", 27)]));
    }
}
