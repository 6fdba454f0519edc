// SPDX-License-Identifier: GPL-2.0-or-later

//! Stacks as values. A print leaves their addresses to the loader; a key, or a string that the script processes,
//! contains them in hex, and a string of the usual length would lose the outer frames: the root, which folded stacks
//! need. Where a program stores stacks, its strings are long enough for whole ones. Elements of arrays have the usual
//! room, and longer strings are stored separately, each once (runtime-c/kept_text.c). The cost of a hit depends on its
//! own stack.

use super::code::{Argument, Callee, Instr, Value, each};
use super::{Plan, Storage};
use crate::program::{Contents, Type};

/// `0x`, sixteen digits and a blank, or the end.
const FRAME: u32 = 19;
/// Of user space: `0x`, twelve digits, `@`, a file's number, `+`, an offset of up to ten digits, and a blank.
const USER_FRAME: u32 = 31;
/// Of a string without MAXSTRINGLEN.
const LEAST: u32 = 512;
/// Memory for long strings: for each element as many frames beside it,
const FRAMES_KEPT: u64 = 48;
/// but at least and at most this many bytes.
const KEPT: (u64, u64) = (256 << 10, 32 << 20);

/// The string sizes to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringSizes {
    /// MAXSTRINGLEN.
    pub string_bytes: u32,
    /// Of a string in an element, and memory for longer ones; None: there are none.
    pub kept: Option<(u32, u32)>,
    /// Frames of a stack that fit.
    pub frames: u32,
    /// Frames that stacks can have.
    pub most: u32,
    /// MAXSTRINGLEN that all fit in.
    pub whole: u32,
}

impl StringSizes {
    fn of(string_bytes: u32, frame: u32, most: u32) -> StringSizes {
        let whole = most * frame;
        StringSizes { string_bytes, kept: None, frames: (string_bytes / frame).min(most), most, whole }
    }

    /// Whether the outermost frames of deep stacks are lost.
    pub fn cuts(self) -> bool {
        self.frames < self.most
    }
}

/// For a plan that stores stacks of any depth as values; None: it does not. `fixed`: the user has set MAXSTRINGLEN.
pub fn sizes(plan: &Plan, fixed: bool) -> Option<StringSizes> {
    let limits = &plan.info.limits;
    let frame = plan.routines.iter().filter_map(|routine| keeps(&routine.code)).max()?;
    let sizes = |bytes| StringSizes::of(bytes, frame, limits.stack_frames);
    let whole = sizes(limits.string_bytes).whole;
    if fixed || limits.string_bytes >= whole {
        return Some(sizes(limits.string_bytes));
    }
    let elements: u64 = plan.globals.iter().map(|global| elements_with_strings(&global.storage)).sum();
    let kept = (elements > 0).then(|| {
        let bytes = elements.saturating_mul(FRAMES_KEPT * u64::from(frame)).clamp(KEPT.0, KEPT.1);
        (limits.string_bytes, limits.kept_bytes.unwrap_or(u32::try_from(bytes).unwrap_or(u32::MAX)))
    });
    Some(StringSizes { kept, ..sizes(whole) })
}

/// Number of elements of an array with a string.
fn elements_with_strings(storage: &Storage) -> u64 {
    match storage {
        Storage::Map(map)
            if map.keys.contains(&Type::String) || matches!(map.contents, Contents::Value(Type::String)) =>
        {
            map.entries.into()
        }
        _ => 0,
    }
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
        assert!(!StringSizes::of(128 * FRAME, FRAME, 128).cuts());
        let usual = StringSizes::of(512, FRAME, 128);
        assert_eq!(usual, StringSizes { string_bytes: 512, kept: None, frames: 26, most: 128, whole: 128 * 19 });
        assert!(usual.cuts());
        assert!(!StringSizes::of(512, FRAME, 20).cuts());
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
