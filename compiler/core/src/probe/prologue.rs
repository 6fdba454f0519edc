// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions that were compiled without optimisation: their variables are only on the stack, so that they have no value
//! before the function's first instructions have put it there.

use spile_debuginfo::{Address, DebugInfo, FunctionId, Location, Op};

/// DWARF's numbers of the frame pointer and the stack pointer.
const FRAME_POINTER: u16 = 6;
const STACK_POINTER: u16 = 7;

/// What a function does before its first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prologue {
    /// Nothing that a probe would have to wait for.
    None,
    /// It puts its parameters where the debug information has them; then comes this instruction.
    Until(Address),
}

/// By whether the debug information places parameters at the first instruction in a frame that does not exist yet.
pub(super) fn prologue(debug: &DebugInfo, id: FunctionId, entry: Address) -> Prologue {
    let parameters = debug.parameters(id).unwrap_or_default();
    let early = parameters.iter().any(|parameter| {
        let found = debug.variable(id, entry, &parameter.name);
        found.is_ok_and(|found| found.is_ok_and(|found| is_below_frame(&found.location)))
    });
    if !early {
        return Prologue::None;
    }
    let statements = debug.statements(id).unwrap_or_default();
    let after = statements.iter().map(|statement| statement.address);
    match after.filter(|at| at.section == entry.section && *at > entry).min() {
        Some(at) => Prologue::Until(at),
        None => Prologue::None,
    }
}

/// Whether the location is relative to the frame pointer, or below the stack pointer: neither is the function's own before it has
/// made its frame.
fn is_below_frame(location: &Location) -> bool {
    let Location::Memory(ops) = location else { return false };
    let Some(Op::Register(register)) = ops.first() else { return false };
    let mut offset = 0i64;
    let mut last = 0i64;
    for op in ops.iter().skip(1) {
        match op {
            Op::Const(value) => last = *value,
            Op::Add => offset = offset.wrapping_add(std::mem::take(&mut last)),
            Op::Sub => offset = offset.wrapping_sub(std::mem::take(&mut last)),
            _ => return false,
        }
    }
    *register == FRAME_POINTER || *register == STACK_POINTER && offset < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_frame_yet() {
        let at = |ops: &[Op]| is_below_frame(&Location::Memory(ops.to_vec()));
        // The canonical frame address is 8 bytes above the stack pointer there.
        assert!(at(&[Op::Register(7), Op::Const(8), Op::Add, Op::Const(-36), Op::Add]));
        assert!(at(&[Op::Register(6), Op::Const(-20), Op::Add]));
        // A parameter that is passed on the stack.
        assert!(!at(&[Op::Register(7), Op::Const(8), Op::Add]));
        assert!(!is_below_frame(&Location::Register(5)));
    }
}
