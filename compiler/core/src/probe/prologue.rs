// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions that were compiled without optimisation: their variables are only on the stack, so that they have no value
//! before the function's first instructions have put it there. In optimised code that is so of parameters whose address is
//! taken.

use spile_debuginfo::{Address, Convention, DebugInfo, FoundVariable, FunctionId, Location, Op, Unavailable};

/// DWARF's numbers of the frame pointer and the stack pointer.
const FRAME_POINTER: u16 = 6;
const STACK_POINTER: u16 = 7;

/// Those of rbx and r12 to r15, which belong to the caller.
const OF_CALLER: [u16; 5] = [3, 12, 13, 14, 15];

/// Where parameters have their values that debug information places at a function's first instruction in a frame that does not
/// exist yet, or nowhere: None where there are no such ones, or the place is not reached once by all calls.
pub(super) fn prologue_end(debug: &DebugInfo, id: FunctionId, entry: Address) -> Option<Address> {
    let parameters = debug.parameters(id).unwrap_or_default();
    let is_late = |name: &str| {
        let found = debug.variable(id, entry, name);
        found.is_ok_and(|found| is_early(debug, id, &found) || is_put_there(debug, id, entry, name, &found))
    };
    let prologue = match parameters.iter().any(|parameter| is_late(&parameter.name)) {
        true => debug.prologue(id, entry).ok().flatten()?,
        false => return None,
    };
    prologue.is_passed_once.then_some(prologue.end)
}

/// Whether a parameter that is nowhere at a function's first instruction has a place behind the prologue of unoptimised code: LLVM
/// describes so what is passed by its address.
pub(super) fn is_put_there(
    debug: &DebugInfo,
    id: FunctionId,
    entry: Address,
    name: &str,
    found: &Result<FoundVariable, Unavailable>,
) -> bool {
    let is_there = |end| debug.variable(id, end, name).is_ok_and(|found| found.is_ok());
    matches!(found, Err(Unavailable::OptimizedOut))
        && debug.prologue(id, entry).ok().flatten().is_some_and(|prologue| is_there(prologue.end))
}

/// Whether a parameter, as debug information has it at a function's first instruction, is put there only later.
pub(super) fn is_early(debug: &DebugInfo, id: FunctionId, found: &Result<FoundVariable, Unavailable>) -> bool {
    match found {
        Ok(found) => {
            // Go passes values in registers that are a caller's in C.
            let in_pieces = matches!(found.location, Location::Pieces(_));
            let is_other = in_pieces && debug.convention(id).is_ok_and(|convention| convention == Convention::Unknown);
            is_below_frame(&found.location, !is_other)
        }
        // In a frame that is found by other means.
        Err(Unavailable::Unsupported(_)) => true,
        Err(_) => false,
    }
}

/// Whether the location is relative to the frame pointer, or below the stack pointer, or a pointer there is to it: neither is the
/// function's own before it has made its frame. Nor are a caller's registers, in which a part of a value may be later.
fn is_below_frame(location: &Location, are_callers: bool) -> bool {
    let ops = match location {
        Location::Memory(ops) => ops,
        Location::Pieces(pieces) => {
            // gcc has a number of two registers for the whole function where it is behind the first instructions.
            let is_put_later = |place: &Location| {
                is_below_frame(place, are_callers)
                    || are_callers && matches!(place, Location::Register(number) if OF_CALLER.contains(number))
            };
            return pieces.iter().filter_map(|piece| piece.location.as_ref()).any(is_put_later);
        }
        _ => return false,
    };
    let Some(Op::Register(register)) = ops.first() else { return false };
    let mut offset = 0i64;
    let mut last = 0i64;
    for op in ops.iter().skip(1) {
        match op {
            Op::Const(value) => last = *value,
            Op::Add => offset = offset.wrapping_add(std::mem::take(&mut last)),
            Op::Sub => offset = offset.wrapping_sub(std::mem::take(&mut last)),
            Op::Deref(_) => break,
            _ => return false,
        }
    }
    *register == FRAME_POINTER || *register == STACK_POINTER && offset < 0
}

#[cfg(test)]
mod tests {
    use spile_debuginfo::Piece;

    use super::*;

    #[test]
    fn what_is_in_no_frame_yet() {
        let at = |ops: &[Op]| is_below_frame(&Location::Memory(ops.to_vec()), true);
        // The canonical frame address is 8 bytes above the stack pointer there.
        assert!(at(&[Op::Register(7), Op::Const(8), Op::Add, Op::Const(-36), Op::Add]));
        assert!(at(&[Op::Register(6), Op::Const(-20), Op::Add]));
        // A C++ object that is passed by its address, which is stored there.
        assert!(at(&[Op::Register(7), Op::Const(8), Op::Add, Op::Const(-40), Op::Add, Op::Deref(8)]));
        assert!(!at(&[Op::Register(7), Op::Const(8), Op::Add, Op::Deref(8)]));
        // A parameter that is passed on the stack.
        assert!(!at(&[Op::Register(7), Op::Const(8), Op::Add]));
        assert!(!is_below_frame(&Location::Register(5), true));
        // In pieces, of which one is stored there.
        let piece = |location| Piece { location: Some(location), bits: 64, first_bit: 0 };
        let below = Location::Memory(vec![Op::Register(7), Op::Const(8), Op::Add, Op::Const(-16), Op::Add]);
        assert!(is_below_frame(&Location::Pieces(vec![piece(Location::Register(5)), piece(below)]), true));
        assert!(!is_below_frame(
            &Location::Pieces(vec![piece(Location::Register(5)), piece(Location::Register(4))]),
            true
        ));
        let of_caller = Location::Pieces(vec![piece(Location::Register(12)), piece(Location::Register(13))]);
        assert!(is_below_frame(&of_caller, true) && !is_below_frame(&of_caller, false));
    }
}
