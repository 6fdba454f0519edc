// SPDX-License-Identifier: GPL-2.0-or-later

//! Stacks as values. A print leaves their addresses to the loader; a key, or a string that the script processes, contains
//! them in hex, and a string of the usual length would lose the outer frames: the root, which folded stacks need. Where a
//! program stores stacks, its strings are long enough for whole ones. A hit costs what its own stack takes; arrays and
//! frames take more memory.

use spile_abi::format::STACK_FRAMES;

use super::code::{Argument, Callee, Instr, Value, each};
use super::{Plan, Storage};
use crate::program::{Contents, Type};

/// `0x`, sixteen digits and a blank, or the end.
const FRAME: u32 = 19;
/// Of user space: `0x`, twelve digits, `@`, a file's number, `+`, an offset of up to ten digits, and a blank.
const USER_FRAME: u32 = 31;
/// Of a string without MAXSTRINGLEN.
const LEAST: u32 = 512;
/// What the arrays of a program may take for that, in all.
const MOST: u64 = 64 << 20;

/// The string sizes to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringSizes {
    /// MAXSTRINGLEN.
    pub string_bytes: u32,
    /// Frames of a stack that fit.
    pub frames: u32,
    /// MAXSTRINGLEN that all fit in.
    pub whole: u32,
}

impl StringSizes {
    fn of(string_bytes: u32, frame: u32) -> StringSizes {
        StringSizes { string_bytes, frames: (string_bytes / frame).min(STACK_FRAMES), whole: STACK_FRAMES * frame }
    }

    /// Whether the outermost frames of deep stacks are lost.
    pub fn cuts(self) -> bool {
        self.frames < STACK_FRAMES
    }
}

/// For a plan that stores stacks of any depth as values; None: it does not. `fixed`: the user has set MAXSTRINGLEN.
pub fn sizes(plan: &Plan, fixed: bool) -> Option<StringSizes> {
    let now = plan.naming.limits.string_bytes;
    let frame = plan.routines.iter().filter_map(|routine| keeps(&routine.code)).max()?;
    let whole = STACK_FRAMES * frame;
    if fixed || now >= whole {
        return Some(StringSizes::of(now, frame));
    }
    let slots: u64 = plan.globals.iter().map(|global| strings_in(&global.storage)).sum();
    let affordable = MOST.checked_div(slots).unwrap_or(u64::MAX).min(whole.into());
    Some(StringSizes::of(u32::try_from(affordable).unwrap_or(whole).max(now), frame))
}

/// Number of strings that an array has room for.
fn strings_in(storage: &Storage) -> u64 {
    let Storage::Map(map) = storage else { return 0 };
    let keys = map.keys.iter().filter(|key| **key == Type::String).count() as u64;
    let values = u64::from(matches!(map.contents, Contents::Value(Type::String)));
    u64::from(map.entries) * (keys + values)
}

/// The bytes of a frame in stacks that the code keeps; None: it keeps none of any depth.
fn keeps(code: &[Instr]) -> Option<u32> {
    let mut found = None;
    each(code, &mut |instr| {
        let Instr::Call { callee: Callee::Builtin(symbol), arguments, .. } = instr else { return };
        let (frame, bounded) = match *symbol {
            "task_backtrace" => (FRAME, None),
            "__stack_addresses" => (FRAME, arguments.get(1)),
            "__user_stack_addresses" => (USER_FRAME, arguments.get(1)),
            _ => return,
        };
        // A few of them fit anyway.
        let fits = i64::from(LEAST / frame);
        if !matches!(bounded, Some(Argument::Long(Value::Const(most))) if (0..=fits).contains(most)) {
            found = found.max(Some(frame));
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_stack_fits() {
        assert!(!StringSizes::of(STACK_FRAMES * FRAME, FRAME).cuts());
        assert_eq!(StringSizes::of(512, FRAME), StringSizes { string_bytes: 512, frames: 26, whole: 64 * 19 });
        assert!(StringSizes::of(512, FRAME).cuts());
    }

    #[test]
    fn a_few_frames_need_no_room() {
        let call = |symbol, most| Instr::Call {
            callee: Callee::Builtin(symbol),
            arguments: [0, most].map(|value| Argument::Long(Value::Const(value))).into(),
            outcome: super::super::code::Outcome::None,
            location: None,
        };
        assert_eq!(keeps(&[call("__stack_addresses", -1)]), Some(FRAME));
        assert_eq!(keeps(&[Instr::Loop(vec![call("__stack_addresses", 27)])]), Some(FRAME));
        assert_eq!(keeps(&[call("__stack_addresses", 26), call("__stack_at", 27)]), None);
        assert_eq!(keeps(&[call("__user_stack_addresses", 16)]), None);
        assert_eq!(keeps(&[call("__user_stack_addresses", 17), call("__stack_addresses", -1)]), Some(USER_FRAME));
    }
}
