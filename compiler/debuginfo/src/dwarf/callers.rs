// SPDX-License-Identifier: GPL-2.0-or-later

//! Values that a function's registers held at its entry, and that it has overwritten since: `DW_OP_entry_value`, computed from
//! the call site's parameters (DWARF 5, 3.4.2, and their GNU forms in DWARF 4) and the registers that calls preserve.
//!
//! The return address shows at run time which caller it was, if no jump can have led from there to the function by way of
//! another one. In the kernel that is known for functions that only their own unit can call, to which none of its functions jumps,
//! and that do not themselves jump by a pointer. In a program
//! the calls are those whose instructions have the function's address; whoever else calls it, in whichever file, returns to
//! another place. A jump to the function leaves the return address of a call of another function, unless it is the function itself
//! from which jumps lead there.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use gimli::{AttributeValue, Expression, Operation};
use rayon::prelude::*;
use spile_abi::budget::Budget;

use super::Dwarf;
use super::location::{EntryValues, Fault, Passed, Place};
use super::scope::Scopes;
use super::store::{Bytes, Die, Entry, EntryError, Store, Unit, die_at, flag};
use crate::facts::{CALL_LENGTH, FunctionId, Location, Op};
use crate::object::Address;

/// Call sites, read when first asked for.
pub(super) struct Callers {
    /// Those of each unit.
    units: Vec<OnceLock<Result<Calls, EntryError>>>,
    /// Those of all units of a program, by the address that is called; none in a kernel.
    direct: Arc<OnceLock<Result<DirectCalls, EntryError>>>,
}

/// Call sites, by the address that is called.
type DirectCalls = HashMap<u64, Vec<Die>>;

#[derive(Default)]
struct Calls {
    /// Callee and call site; sorted.
    sites: Vec<(Die, Die)>,
    /// Callee of a jump, which leaves no return address of its own; sorted.
    jumps: Vec<Die>,
}

/// A jump to another function: the callee, if an entry names it, and the address after the instruction.
type Jump = (Option<Die>, Option<u64>);

/// The code of a program, to see where its calls and jumps lead.
struct Code<'e>(Vec<(u64, &'e [u8])>);

impl Code<'_> {
    /// Where the instruction that ends before an address goes, if `opcode` is how it begins and a distance of four bytes follows
    /// (Intel SDM, CALL and JMP rel32).
    fn target(&self, after: u64, opcode: u8) -> Option<u64> {
        let at = after.checked_sub(CALL_LENGTH)?;
        let inside =
            |(start, bytes): &&(u64, &[u8])| at.checked_sub(*start).is_some_and(|inside| inside < bytes.len() as u64);
        let (start, bytes) = self.0.iter().find(inside)?;
        let instruction = bytes.get(usize::try_from(at - start).ok()?..)?.first_chunk::<{ CALL_LENGTH as usize }>()?;
        let [first, distance @ ..] = instruction;
        (*first == opcode).then(|| after.wrapping_add_signed(i32::from_le_bytes(*distance).into()))
    }
}

const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;

impl Callers {
    /// Nothing read yet, for this many units.
    pub fn new(units: usize) -> Callers {
        Callers { units: (0..units).map(|_| OnceLock::new()).collect(), direct: Arc::default() }
    }

    /// For the same file with nothing read of its units: the calls of a program stay known.
    pub fn again(&self, units: usize) -> Callers {
        Callers { direct: self.direct.clone(), ..Callers::new(units) }
    }

    fn unit(&self, store: &Store, slot: usize) -> Result<&Calls, EntryError> {
        let cell = self.units.get(slot).ok_or_else(|| EntryError { die: None, message: "no such unit".into() })?;
        cell.get_or_init(|| scan(store, slot)).as_ref().map_err(Clone::clone)
    }
}

/// Of a function whose entries of call sites include all its jumps to other functions (DWARF 5, 3.3.1.3). In units of gcc: clang
/// sets the attribute too, and leaves out jumps by tables in memory and to aliases (LLVM, DwarfDebug.cpp).
const LISTS_JUMPS: [gimli::DwAt; 4] = [
    gimli::DW_AT_call_all_calls,
    gimli::DW_AT_call_all_tail_calls,
    gimli::DW_AT_GNU_all_call_sites,
    gimli::DW_AT_GNU_all_tail_call_sites,
];

/// Nesting of blocks; deeper is damage.
const MAX_DEPTH: usize = 64;

/// One call that may have led to an address.
struct Caller {
    returns_to: u64,
    values: EntryValues,
}

/// No value is computed for a function that is called in more places.
const MAX_CALLERS: usize = 32;

/// Functions that are looked at for jumps that lead to the first of them.
const MAX_JUMPS: usize = 64;

impl Dwarf {
    /// A location that depends on what the caller passed, with one case for each caller.
    pub(super) fn by_caller(
        &self,
        place: &Place,
        expression: Expression<Bytes>,
    ) -> Result<Result<Location, Fault>, EntryError> {
        let missing = |why: &str| Ok(Err(Fault::Missing(why.into())));
        let Some(subprogram) = place.scopes.subprogram else { return Ok(Err(Fault::OfCaller)) };
        let Some(return_address) = self.return_slot(place.at)? else { return Ok(Err(Fault::OfCaller)) };
        let Some(callers) = self.callers(subprogram, place)? else {
            return missing("its value is only known at the function's entry, and not all of its callers are known");
        };
        if callers.is_empty() {
            return missing("its value is only known at the function's entry");
        }
        if callers.len() > MAX_CALLERS {
            return missing("its value is only known at the function's entry, and too many places call it");
        }
        let mut cases: Vec<(Vec<Address>, Location)> = Vec::new();
        let mut lost = None;
        for caller in &callers {
            let location = match (Place { entry_values: Some(&caller.values), ..*place }).translate(expression) {
                Ok(location @ (Location::Value(_) | Location::Memory(_))) => location,
                Err(Fault::EntryError(damage)) => return Err(damage),
                Err(fault) => {
                    lost = Some(fault);
                    continue;
                }
                Ok(_) => continue,
            };
            let Some(at) = self.elf.address(caller.returns_to) else { continue };
            match cases.iter_mut().find(|(_, same)| *same == location) {
                Some((places, _)) => places.push(at),
                None => cases.push((vec![at], location)),
            }
        }
        let values = cases.iter().filter(|(_, location)| matches!(location, Location::Value(_))).count();
        Ok(match cases.len() {
            0 => Err(lost.unwrap_or(Fault::OfCaller)),
            some if values == 0 || values == some => Ok(Location::ByCaller { return_address, cases }),
            _ => Err(Fault::OfCaller),
        })
    }

    /// The calls of a body; None: other code may call it too.
    fn callers(&self, subprogram: Die, place: &Place) -> Result<Option<Vec<Caller>>, EntryError> {
        let own = self.store.origins(subprogram)?;
        let external = own.iter().any(|(_, _, entry)| flag(entry, gimli::DW_AT_external));
        let Some(unwound) = self.frames.unwound(&self.store, place.at)? else { return Ok(Some(Vec::new())) };
        let Calls { sites, jumps } = self.callers.unit(&self.store, self.store.slot_of(subprogram)?)?;
        let code = self.code();
        let may_return = match code.0.is_empty() {
            // By a pointer: a jump to a function with a name is in `jumps`, if that is one of this unit.
            true => self.jumps_within(subprogram)?.iter().any(|(callee, _)| callee.is_none()),
            false => self.may_jump_to_itself(subprogram, &code)?,
        };
        if may_return {
            return Ok(None);
        }
        let called_in: Vec<Die> = if external || own.iter().any(|(die, _, _)| jumps.binary_search(die).is_ok()) {
            if code.0.is_empty() {
                return Ok(None);
            }
            self.read_direct_calls(&code);
            let Some(direct) = self.callers.direct.get() else { return Ok(None) };
            let direct = direct.as_ref().map_err(Clone::clone)?;
            let entry = self.body_entry(subprogram)?;
            entry.and_then(|entry| direct.get(&entry)).cloned().unwrap_or_default()
        } else {
            let of = |called: Die| {
                let first = sites.partition_point(|(origin, _)| *origin < called);
                let sites = sites.get(first..).unwrap_or_default().iter();
                sites.take_while(move |(origin, _)| *origin == called).map(|(_, site)| *site)
            };
            own.iter().flat_map(|(die, _, _)| of(*die)).collect()
        };
        let mut callers: Vec<Caller> = Vec::new();
        for site in called_in {
            if callers.len() > MAX_CALLERS {
                break;
            }
            let (unit, entry) = self.store.entry(site)?;
            let Some(after) = self.returns_to(unit, &entry)? else { continue };
            let mut values = self.passed(site, after, place.budget)?;
            values.retain_mut(|(_, ops)| match moved(ops, |register| unwound.register(register)) {
                Some(moved) => {
                    *ops = moved;
                    true
                }
                None => false,
            });
            // Of a function that several units have, one copy is kept, and each of the units may describe it: by its own.
            match callers.iter_mut().find(|caller| caller.returns_to == after) {
                Some(same) => same.values.0.retain(|value| values.contains(value)),
                None => callers.push(Caller { returns_to: after, values: EntryValues(values) }),
            }
        }
        Ok(Some(callers))
    }

    /// Reads the calls of all units of a program, once. Before loops that run on several threads: one that waits in such a loop may go
    /// on with a piece of another, and what its own thread is reading meanwhile is never read.
    pub(super) fn prepare_callers(&self) {
        self.read_direct_calls(&self.code());
    }

    fn read_direct_calls(&self, code: &Code) {
        if !code.0.is_empty() && self.callers.direct.get().is_none() {
            let direct = self.direct_calls(code);
            let _ = self.callers.direct.set(direct);
        }
    }

    fn code(&self) -> Code<'_> {
        Code(self.store.code.as_ref().unwrap_or(&self.elf).code_of_program())
    }

    /// The address after the instruction of a call site.
    fn returns_to(&self, unit: &Unit, site: &Entry) -> Result<Option<u64>, EntryError> {
        let after = site.attr_value(gimli::DW_AT_call_return_pc).or_else(|| site.attr_value(gimli::DW_AT_low_pc));
        Ok(after.map_or(Ok(None), |value| self.store.sections_of(unit).attr_address(unit, value))?)
    }

    /// The call sites of all units, by the address that the instruction calls.
    fn direct_calls(&self, code: &Code) -> Result<DirectCalls, EntryError> {
        let of_unit = |slot: usize| -> Result<Vec<(u64, Die)>, EntryError> {
            let mut found = Vec::new();
            for (_, site) in &self.callers.unit(&self.store, slot)?.sites {
                let (unit, entry) = self.store.entry(*site)?;
                let target = self.returns_to(unit, &entry)?.and_then(|after| code.target(after, CALL));
                found.extend(target.map(|target| (target, *site)));
            }
            Ok(found)
        };
        let units = (0..self.store.slots.len()).into_par_iter().map(of_unit);
        let mut direct = DirectCalls::new();
        for (target, site) in units.collect::<Result<Vec<_>, EntryError>>()?.into_iter().flatten() {
            direct.entry(target).or_default().push(site);
        }
        Ok(direct)
    }

    /// Whether a function may be reached from itself by jumps alone, or that is not known: then a return address says who called it,
    /// but not with what.
    fn may_jump_to_itself(&self, body: Die, code: &Code) -> Result<bool, EntryError> {
        let (mut seen, mut open) = (HashSet::from([body]), vec![body]);
        while let Some(from) = open.pop() {
            let (unit, entry) = self.store.entry(from)?;
            let lists_jumps = self.is_by_gcc(unit)? && LISTS_JUMPS.iter().any(|name| flag(&entry, *name));
            if seen.len() > MAX_JUMPS || !lists_jumps {
                return Ok(true);
            }
            for (callee, after) in self.jumps_within(from)? {
                let target = after.and_then(|after| code.target(after, JUMP));
                let (Some(callee), Some(target)) = (callee, target) else { return Ok(true) };
                let Some(function) = self.definition_of(callee)? else { return Ok(true) };
                let Some(to) = self.copy_entered_at(function, target)? else { return Ok(true) };
                if to == body {
                    return Ok(true);
                }
                if seen.insert(to) {
                    open.push(to);
                }
            }
        }
        Ok(false)
    }

    fn is_by_gcc(&self, unit: &Unit) -> Result<bool, EntryError> {
        let (unit, root) = self.store.entry(die_at(unit, gimli::UnitOffset(unit.header.header_size()))?)?;
        let producer = root.attr_value(gimli::DW_AT_producer).and_then(|value| self.store.string(unit, value));
        Ok(producer.is_some_and(|producer| producer.starts_with(b"GNU ")))
    }

    fn copy_entered_at(&self, function: FunctionId, at: u64) -> Result<Option<Die>, EntryError> {
        for copy in self.copies(function)? {
            if self.body_entry(copy)? == Some(at) {
                return Ok(Some(copy));
            }
        }
        Ok(None)
    }

    /// The jumps from a body to other functions, inlined code included.
    fn jumps_within(&self, body: Die) -> Result<Vec<Jump>, EntryError> {
        let (mut found, mut open) = (Vec::new(), vec![(body, 0)]);
        while let Some((die, depth)) = open.pop() {
            if depth > MAX_DEPTH {
                return Err(EntryError::at(die, "blocks without an end"));
            }
            let (unit, children) = self.children(die)?;
            for entry in children.iter() {
                let origin = match entry.tag() {
                    gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine => {
                        open.push((die_at(unit, entry.offset())?, depth + 1));
                        continue;
                    }
                    gimli::DW_TAG_call_site => gimli::DW_AT_call_origin,
                    gimli::DW_TAG_GNU_call_site => gimli::DW_AT_abstract_origin,
                    _ => continue,
                };
                if flag(entry, gimli::DW_AT_call_tail_call) || flag(entry, gimli::DW_AT_GNU_tail_call) {
                    found.push((self.store.reference_attr(unit, entry, origin)?, self.returns_to(unit, entry)?));
                }
            }
        }
        Ok(found)
    }

    /// The registers in which a call site passes known values, or the removed parameters whose values it knows, and those values
    /// in terms of the caller's registers.
    fn passed(&self, site: Die, after: u64, budget: &Budget) -> Result<Vec<(Passed, Vec<Op>)>, EntryError> {
        let subprogram = self.subprogram_around(site)?;
        let scopes = Scopes { own: Vec::new(), inner: Vec::new(), subprogram, is_entry: false };
        let (unit, children) = self.children(site)?;
        // The call is the last one before its return address.
        let place = self.place(unit, &scopes, after.saturating_sub(1), budget)?;
        let mut values = Vec::new();
        for entry in children.iter() {
            let (value, parameter) = match entry.tag() {
                gimli::DW_TAG_call_site_parameter => (gimli::DW_AT_call_value, gimli::DW_AT_call_parameter),
                gimli::DW_TAG_GNU_call_site_parameter => {
                    (gimli::DW_AT_GNU_call_site_value, gimli::DW_AT_abstract_origin)
                }
                _ => continue,
            };
            let Some(AttributeValue::Exprloc(value)) = entry.attr_value(value) else { continue };
            let passed = match entry.attr_value(gimli::DW_AT_location) {
                Some(AttributeValue::Exprloc(location)) => {
                    only_register(unit, location)?.map(|own| Passed::In(self.store.machine.register(own)))
                }
                _ => self.store.reference_attr(unit, entry, parameter)?.map(Passed::As),
            };
            let Some(passed) = passed else { continue };
            // The top of the stack at the end of the expression is the value, with or without DW_OP_stack_value.
            match (Place { unit, ..place }).translate(value) {
                Ok(Location::Memory(ops) | Location::Value(ops)) => values.push((passed, ops)),
                Ok(Location::Register(other)) => values.push((passed, vec![Op::Register(other)])),
                Err(Fault::EntryError(damage)) => return Err(damage),
                _ => {}
            }
        }
        Ok(values)
    }
}

/// The operations with other values for registers; None where one of those is lost.
fn moved<'r>(ops: &[Op], value: impl Fn(u16) -> Option<&'r [Op]>) -> Option<Vec<Op>> {
    let mut moved = Vec::new();
    for op in ops {
        match op {
            Op::Register(number) => moved.extend(value(*number)?),
            other => moved.push(*other),
        }
    }
    Some(moved)
}

/// The register, if the expression names a register and nothing else.
fn only_register(unit: &Unit, expression: Expression<Bytes>) -> Result<Option<u16>, EntryError> {
    let mut operations = expression.operations(unit.encoding());
    Ok(match (operations.next()?, operations.next()?) {
        (Some(Operation::Register { register }), None) => Some(register.0),
        _ => None,
    })
}

/// All call sites of a unit that name their callee.
fn scan(store: &Store, slot: usize) -> Result<Calls, EntryError> {
    let unit = store.unit(slot)?;
    let start = die_at(unit, gimli::UnitOffset(0))?;
    let mut found = Calls::default();
    let mut raw = unit.entries_raw(None)?;
    while !raw.is_empty() {
        let offset = raw.next_offset();
        let Some(abbreviation) = raw.read_abbreviation()? else { continue };
        let origin = match abbreviation.tag() {
            gimli::DW_TAG_call_site => gimli::DW_AT_call_origin,
            gimli::DW_TAG_GNU_call_site => gimli::DW_AT_abstract_origin,
            _ => {
                raw.skip_attributes(abbreviation.attributes())?;
                continue;
            }
        };
        let (mut called, mut jumps) = (None, false);
        for spec in abbreviation.attributes() {
            let value = raw.read_attribute(*spec)?.value();
            match spec.name() {
                name if name == origin => called = store.target(start, value).map(|(called, _)| called),
                gimli::DW_AT_call_tail_call | gimli::DW_AT_GNU_tail_call => {
                    jumps |= matches!(value, AttributeValue::Flag(true));
                }
                _ => {}
            }
        }
        let Some(called) = called else { continue };
        match jumps {
            true => found.jumps.push(called),
            false => found.sites.push((called, die_at(unit, offset)?)),
        }
    }
    found.sites.sort_unstable();
    found.jumps.sort_unstable();
    Ok(found)
}
