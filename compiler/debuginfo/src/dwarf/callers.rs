// SPDX-License-Identifier: GPL-2.0-or-later

//! Values that a function's registers held at its entry, and that it has overwritten since: `DW_OP_entry_value`, computed from
//! the call site's parameters (DWARF 5, 3.4.2, and their GNU forms in DWARF 4) and the registers that calls preserve.
//!
//! The return address shows at run time which caller it was. This works where all callers are known: for functions that
//! only their own unit can call.

use std::sync::OnceLock;

use gimli::{AttributeValue, Expression, Operation};
use spile_abi::budget::Budget;

use super::Dwarf;
use super::location::{EntryValues, Fault, Passed, Place};
use super::scope::Scopes;
use super::store::{Bytes, Die, EntryError, Store, Unit, die_at, flag};
use crate::facts::{Location, Op};
use crate::object::Address;

/// The call sites of each unit, read when first asked for.
pub(super) struct Callers(Vec<OnceLock<Result<Calls, EntryError>>>);

#[derive(Default)]
struct Calls {
    /// Callee and call site; sorted.
    sites: Vec<(Die, Die)>,
    /// Callee of a jump, which leaves no return address of its own; sorted.
    jumps: Vec<Die>,
}

impl Callers {
    /// Nothing read yet, for this many units.
    pub fn new(units: usize) -> Callers {
        Callers((0..units).map(|_| OnceLock::new()).collect())
    }

    fn unit(&self, store: &Store, slot: usize) -> Result<&Calls, EntryError> {
        let cell = self.0.get(slot).ok_or_else(|| EntryError { die: None, message: "no such unit".into() })?;
        cell.get_or_init(|| scan(store, slot)).as_ref().map_err(Clone::clone)
    }
}

/// One call that may have led to an address.
struct Caller {
    returns_to: u64,
    values: EntryValues,
}

/// No value is computed for a function with more callers.
const MAX_CALLERS: usize = 32;

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
        if callers.is_empty() || callers.len() > MAX_CALLERS {
            return missing("its value is only known at the function's entry");
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
        if own.iter().any(|(_, _, entry)| flag(entry, gimli::DW_AT_external)) {
            return Ok(None);
        }
        let Some(unwound) = self.frames.unwound(&self.store, place.at)? else { return Ok(Some(Vec::new())) };
        let Calls { sites, jumps } = self.callers.unit(&self.store, self.store.slot_of(subprogram)?)?;
        if own.iter().any(|(die, _, _)| jumps.binary_search(die).is_ok()) {
            return Ok(None);
        }
        let mut callers = Vec::new();
        for (called, _, _) in &own {
            let first = sites.partition_point(|(origin, _)| origin < called);
            for (_, site) in sites.get(first..).unwrap_or_default().iter().take_while(|(origin, _)| origin == called) {
                if callers.len() > MAX_CALLERS {
                    return Ok(Some(callers));
                }
                let (unit, entry) = self.store.entry(*site)?;
                let after =
                    entry.attr_value(gimli::DW_AT_call_return_pc).or_else(|| entry.attr_value(gimli::DW_AT_low_pc));
                let Some(after) = after.map_or(Ok(None), |value| self.store.dwarf.attr_address(unit, value))? else {
                    continue;
                };
                let mut values = self.passed(*site, after, place.budget)?;
                values.retain_mut(|(_, ops)| match moved(ops, |register| unwound.register(register)) {
                    Some(moved) => {
                        *ops = moved;
                        true
                    }
                    None => false,
                });
                callers.push(Caller { returns_to: after, values: EntryValues(values) });
            }
        }
        Ok(Some(callers))
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
