// SPDX-License-Identifier: GPL-2.0-or-later

//! The contents of a function's code: calls of other functions, inlined or not, and labels.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::Dwarf;
use super::by_name::LinkedNames;
use super::frame::FrameAddress;
use super::scan::Text;
use super::store::{Die, Entry, EntryError, Unit, die_at, flag, number};
use crate::facts::{CALL_LENGTH, Call, FunctionId, InlinedCode, Label, Op};
use crate::object::{Address, Transfer, transfers};

/// The code that calls are looked for in.
struct CallerCode {
    /// A body or an inlined copy.
    within: Die,
    /// Of a program the calls and jumps in it, and in the body around it, by the addresses behind them; read when first needed.
    program: Option<HashMap<u64, Transfer>>,
}

/// Nesting of blocks; deeper is damage.
const MAX_DEPTH: usize = 64;

impl Dwarf {
    /// The calls in the code of these entries, inlined code included, sorted by address.
    pub(super) fn calls_within(&self, dies: impl IntoIterator<Item = Die>) -> Result<Vec<Call>, EntryError> {
        let mut calls = Vec::new();
        for die in dies {
            let mut code = CallerCode { within: die, program: None };
            self.within(die, &mut |function, unit, entry| {
                calls.extend(self.call(function, unit, entry, &mut code)?);
                Ok(())
            })?;
        }
        calls.sort_by_key(|call| (call.address, call.callee, call.inlined));
        calls.dedup();
        Ok(calls)
    }

    /// Return addresses of the calls whose callee no entry names.
    pub(super) fn read_returns_of_unknown_calls(&self, id: FunctionId) -> Result<Vec<Address>, EntryError> {
        let mut found = Vec::new();
        let mut open: Vec<(Die, usize)> = self.copies(id)?.into_iter().map(|die| (die, 0)).collect();
        while let Some((die, depth)) = open.pop() {
            if depth > MAX_DEPTH {
                return Err(EntryError::at(die, "blocks without an end"));
            }
            let (unit, children) = self.children(die)?;
            for entry in children.iter() {
                match entry.tag() {
                    gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine => {
                        open.push((die_at(unit, entry.offset())?, depth + 1));
                    }
                    gimli::DW_TAG_call_site | gimli::DW_TAG_GNU_call_site => {
                        found.extend(self.unknown_call(unit, entry)?);
                    }
                    _ => {}
                }
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn unknown_call(&self, unit: &Unit, entry: &Entry) -> Result<Option<Address>, EntryError> {
        let named = [gimli::DW_AT_call_origin, gimli::DW_AT_abstract_origin]
            .into_iter()
            .any(|origin| entry.attr_value(origin).is_some());
        let tail = flag(entry, gimli::DW_AT_call_tail_call) || flag(entry, gimli::DW_AT_GNU_tail_call);
        let after = entry.attr_value(gimli::DW_AT_call_return_pc).or_else(|| entry.attr_value(gimli::DW_AT_low_pc));
        let (Some(value), false) = (after, named || tail) else { return Ok(None) };
        let after = self.store.sections_of(unit).attr_address(unit, value)?;
        Ok(after.and_then(|after| self.elf.address(after)))
    }

    /// Address of the stack word with the return address of the frame that the address (in the object's one address space)
    /// is in. Source: System V ABI, AMD64 supplement, 3.2.2. None where no frame description gives it by plain operations.
    pub(super) fn return_slot(&self, at: u64) -> Result<Option<Vec<Op>>, EntryError> {
        Ok(self.return_slot_around(at)?.0)
    }

    /// The same, and the addresses for which it is.
    pub(super) fn return_slot_around(&self, at: u64) -> Result<(Option<Vec<Op>>, Range<u64>), EntryError> {
        let (address, around) = self.frames.address_around(&self.store, at)?;
        let FrameAddress::Ops(mut ops) = address else { return Ok((None, around)) };
        ops.extend([Op::Const(self.store.machine.word().into()), Op::Sub]);
        Ok((Some(ops), around))
    }

    /// The labels in all copies of the function, sorted by address.
    pub(super) fn read_labels(&self, id: FunctionId) -> Result<Vec<Label>, EntryError> {
        let mut labels = Vec::new();
        for die in self.copies(id)?.into_iter().chain(self.instances_of(id)?) {
            if !self.instances.has_labels(&self.store, die)? {
                continue;
            }
            self.within(die, &mut |_, unit, entry| {
                labels.extend(self.label(unit, entry)?);
                Ok(())
            })?;
        }
        labels.sort_by_key(|label: &Label| label.address);
        labels.dedup();
        Ok(labels)
    }

    /// Calls `see` with the function and the entries of its own code, in a body or an inlined copy: those directly in it, in its
    /// blocks and in parts of it.
    fn within(
        &self,
        copy: Die,
        see: &mut dyn FnMut(FunctionId, &Unit, &Entry) -> Result<(), EntryError>,
    ) -> Result<(), EntryError> {
        let (unit, entry) = self.store.entry(copy)?;
        let function = self.store.reference_attr(unit, &entry, gimli::DW_AT_abstract_origin)?.unwrap_or(copy);
        self.within_block(FunctionId::of(function), copy, 0, see)
    }

    fn within_block(
        &self,
        function: FunctionId,
        die: Die,
        depth: usize,
        see: &mut dyn FnMut(FunctionId, &Unit, &Entry) -> Result<(), EntryError>,
    ) -> Result<(), EntryError> {
        if depth > MAX_DEPTH {
            return Err(EntryError::at(die, "blocks without an end"));
        }
        let (unit, children) = self.children(die)?;
        for entry in children.iter() {
            let is_part = self.is_part(function, unit, entry)?;
            if !is_part {
                see(function, unit, entry)?;
            }
            if is_part || entry.tag() == gimli::DW_TAG_lexical_block {
                self.within_block(function, die_at(unit, entry.offset())?, depth + 1, see)?;
            }
        }
        Ok(())
    }

    /// The call that an entry of the function's code describes. A call of a part of the function itself does not count.
    fn call(
        &self,
        function: FunctionId,
        unit: &Unit,
        entry: &Entry,
        code: &mut CallerCode,
    ) -> Result<Option<Call>, EntryError> {
        let inlined = entry.tag() == gimli::DW_TAG_inlined_subroutine;
        let origin = match entry.tag() {
            gimli::DW_TAG_call_site => gimli::DW_AT_call_origin,
            gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_GNU_call_site => gimli::DW_AT_abstract_origin,
            _ => return Ok(None),
        };
        let tail = flag(entry, gimli::DW_AT_call_tail_call) || flag(entry, gimli::DW_AT_GNU_tail_call);
        let Some(origin) = self.store.reference_attr(unit, entry, origin)? else { return Ok(None) };
        let Some(callee) = self.definition_of(origin)? else { return Ok(None) };
        if inlined {
            let address = self.address_of_instance(unit, entry)?;
            let copy = InlinedCode::of(die_at(unit, entry.offset())?);
            let call = |address| Call { callee, address, returns_to: address, inlined: Some(copy), tail: false };
            return Ok(address.map(call));
        }
        if callee == function && origin != callee.die() && self.is_body_of_part(origin)? {
            return Ok(None);
        }
        let after = entry.attr_value(gimli::DW_AT_call_return_pc).or_else(|| entry.attr_value(gimli::DW_AT_low_pc));
        let after = match after {
            Some(value) => self.store.sections_of(unit).attr_address(unit, value)?,
            None => None,
        };
        let Some(after) = after else { return Ok(None) };
        let at = self.call_before(after, tail, code)?.filter(|at| self.elf.is_code(*at));
        let Some(address) = at.and_then(|at| self.elf.address(at)) else { return Ok(None) };
        let returns_to = Address { offset: address.offset.saturating_add(after - at.unwrap_or(after)), ..address };
        Ok(Some(Call { callee, address, returns_to, inlined: None, tail }))
    }

    /// Where the call, or the jump, begins that is before an address; None: there is none.
    fn call_before(&self, after: u64, jump: bool, code: &mut CallerCode) -> Result<Option<u64>, EntryError> {
        if self.elf.is_of_kernel() {
            return Ok(after.checked_sub(CALL_LENGTH));
        }
        let found = match &mut code.program {
            Some(found) => found,
            unread => unread.insert(self.transfers_around(code.within)?),
        };
        Ok(found.get(&after).filter(|found| found.call != jump).map(|found| found.at))
    }

    /// The calls and jumps of the body that an entry is, or is in, by the addresses behind them.
    fn transfers_around(&self, die: Die) -> Result<HashMap<u64, Transfer>, EntryError> {
        let (mut unit, mut entry) = self.store.entry(die)?;
        if entry.tag() != gimli::DW_TAG_subprogram {
            let Some(around) = self.subprogram_around(die)? else { return Ok(HashMap::new()) };
            (unit, entry) = self.store.entry(around)?;
        }
        let bits = 8 * u32::from(self.store.machine.word());
        let sections = self.store.code.as_ref().unwrap_or(&self.elf).code_of_any_program();
        let mut found = HashMap::new();
        // Ranges of damaged debug information may be the same code again and again.
        let mut left: u64 = sections.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        for range in self.code_ranges(unit, &entry)? {
            let Some(rest) = left.checked_sub(range.end.saturating_sub(range.start)) else { break };
            left = rest;
            let bytes = sections.iter().find_map(|(start, bytes)| {
                let inside = |at: u64| at.checked_sub(*start).and_then(|inside| usize::try_from(inside).ok());
                bytes.get(inside(range.start)?..inside(range.end)?)
            });
            let read = transfers(bytes.unwrap_or_default(), range.start, bits);
            found.extend(read.into_iter().map(|transfer| (transfer.after, transfer)));
        }
        Ok(found)
    }

    fn is_body_of_part(&self, copy: Die) -> Result<bool, EntryError> {
        let chain = self.store.origins(copy)?;
        let name = chain.iter().find_map(|(_, unit, entry)| self.store.name(unit, entry)).unwrap_or_default();
        Ok(self.body(copy, &name)?.is_some_and(|body| body.is_part()))
    }

    /// The function that an entry names: the entry itself, its abstract origin, or the definition that it declares. The
    /// definition of a class's function specifies a declaration in the class.
    pub(super) fn definition_of(&self, die: Die) -> Result<Option<FunctionId>, EntryError> {
        let chain = self.store.origins(die)?;
        if let Some((last, ..)) = chain.iter().rev().find(|(.., entry)| !flag(entry, gimli::DW_AT_declaration)) {
            return Ok(Some(FunctionId::of(*last)));
        }
        let Some((last, unit, entry)) = chain.last() else { return Ok(None) };
        let name = entry.attr_value(gimli::DW_AT_name).and_then(|value| self.store.string(unit, value));
        let Some(name) = name else { return Ok(None) };
        let plain = |name: Text| {
            self.by_name.definitions.of(name, || {
                let external = self.try_index()?.functions_named(name).find(|function| function.external);
                Ok(external.map(|function| FunctionId::of(function.die)))
            })
        };
        // In C a linkage name is that of another function, or, in what gcc 10 declares for calls, the same.
        let Some(linked) = self.linkage_name(&chain).filter(|linked| *linked != name) else { return plain(name) };
        // Functions of other classes, and overloaded ones, have the same name. Those of unnamed namespaces are their unit's own.
        let named = self.linked_names(name)?;
        let Some(found) = named.get(linked) else { return plain(linked) };
        if let [(only, _)] = found[..] {
            return Ok(Some(FunctionId::of(only)));
        }
        let unit = self.store.slot_of(*last)?;
        let external = found.iter().find(|(_, external)| *external).map(|(die, _)| *die);
        for (die, _) in found {
            if self.store.slot_of(*die)? == unit {
                return Ok(Some(FunctionId::of(*die)));
            }
        }
        Ok(external.map(FunctionId::of))
    }

    /// The functions of a name by their linkage names: where they are, and whether other units can call them.
    fn linked_names(&self, name: Text) -> Result<Arc<LinkedNames>, EntryError> {
        if let Some(known) = self.by_name.linked(name) {
            return Ok(known);
        }
        let mut found = LinkedNames::default();
        for function in self.try_index()?.functions_named(name) {
            if let Some(linked) = self.linkage_name(&self.store.origins(function.die)?) {
                found.entry(linked).or_default().push((function.die, function.external));
            }
        }
        Ok(self.by_name.keep_linked(name, found))
    }

    fn label(&self, unit: &Unit, entry: &Entry) -> Result<Option<Label>, EntryError> {
        if entry.tag() != gimli::DW_TAG_label {
            return Ok(None);
        }
        let Some(value) = entry.attr_value(gimli::DW_AT_low_pc) else { return Ok(None) };
        let at = self.store.sections_of(unit).attr_address(unit, value)?.filter(|at| self.elf.is_code(*at));
        let Some(address) = at.and_then(|at| self.elf.address(at)) else { return Ok(None) };
        let chain = self.store.origins(die_at(unit, entry.offset())?)?;
        let name = chain.iter().find_map(|(_, unit, entry)| self.store.name(unit, entry));
        let line = chain.iter().find_map(|(_, _, entry)| number(entry, gimli::DW_AT_decl_line)).unwrap_or(0) as u32;
        Ok(name.map(|name| Label { name, line, address }))
    }
}
