//! Units and DIEs: parsed when asked for, found by offset.

use std::rc::Rc;

use gimli::{AttributeValue, DebugInfoOffset, UnitOffset};

use super::{DebugInfo, Entry, Error, Reader, Unit};

/// A DIE: its unit's number and its offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct DieRef {
    pub unit: usize,
    pub offset: usize,
}

/// Longest chain of origins and specifications that is followed.
const MAX_CHAIN: usize = 16;

impl DebugInfo {
    /// The unit of that number.
    pub(super) fn unit(&self, number: usize) -> Result<Rc<Unit>, Error> {
        if let Some(unit) = self.units.borrow().get(&number) {
            return Ok(unit.clone());
        }
        let header = self.headers.get(number).ok_or(Error::Damaged("no such unit"))?;
        let unit = Rc::new(self.dwarf.unit(*header)?);
        self.units.borrow_mut().insert(number, unit.clone());
        Ok(unit)
    }

    pub(super) fn entry(&self, unit: &Unit, offset: usize) -> Result<Entry, Error> {
        Ok(unit.entry(UnitOffset(offset))?)
    }

    /// The DIE that an attribute of a DIE in `unit` refers to.
    pub(super) fn referred(&self, unit: usize, value: AttributeValue<Reader>) -> Option<DieRef> {
        match value {
            AttributeValue::UnitRef(offset) => Some(DieRef { unit, offset: offset.0 }),
            AttributeValue::DebugInfoRef(offset) => self.global(offset),
            _ => None,
        }
    }

    fn global(&self, offset: DebugInfoOffset) -> Option<DieRef> {
        let start = |header: &gimli::UnitHeader<Reader>| header.debug_info_offset().map_or(usize::MAX, |start| start.0);
        let number = self.headers.partition_point(|header| start(header) <= offset.0).checked_sub(1)?;
        let unit = offset.to_unit_offset(self.headers.get(number)?)?;
        Some(DieRef { unit: number, offset: unit.0 })
    }

    /// An attribute of the DIE, or of the one it is a copy or a definition of.
    pub(super) fn attribute(&self, die: DieRef, name: gimli::DwAt) -> Result<Option<(usize, AttributeValue<Reader>)>, Error> {
        let mut die = die;
        for _ in 0..MAX_CHAIN {
            let unit = self.unit(die.unit)?;
            let entry = self.entry(&unit, die.offset)?;
            if let Some(value) = entry.attr_value(name) {
                return Ok(Some((die.unit, value)));
            }
            let origin = entry.attr_value(gimli::DW_AT_abstract_origin).or_else(|| entry.attr_value(gimli::DW_AT_specification));
            match origin.and_then(|origin| self.referred(die.unit, origin)) {
                Some(next) => die = next,
                None => return Ok(None),
            }
        }
        Err(Error::Damaged("abstract origins lead in a circle"))
    }

    /// DW_AT_name, own or inherited.
    pub(super) fn name(&self, die: DieRef) -> Result<Option<String>, Error> {
        let Some((unit, value)) = self.attribute(die, gimli::DW_AT_name)? else { return Ok(None) };
        let unit = self.unit(unit)?;
        let name = self.dwarf.attr_string(&unit, value)?;
        Ok(Some(String::from_utf8_lossy(name.slice()).into_owned()))
    }

    /// The DIE that DW_AT_type names, own or inherited.
    pub(super) fn type_of(&self, die: DieRef) -> Result<Option<DieRef>, Error> {
        let found = self.attribute(die, gimli::DW_AT_type)?;
        Ok(found.and_then(|(unit, value)| self.referred(unit, value)))
    }

    /// An unsigned constant attribute, own or inherited.
    pub(super) fn number(&self, die: DieRef, name: gimli::DwAt) -> Result<Option<u64>, Error> {
        Ok(self.attribute(die, name)?.and_then(|(_, value)| value.udata_value()))
    }

    /// Children of a DIE, with their tags.
    pub(super) fn children(&self, die: DieRef) -> Result<Vec<(gimli::DwTag, DieRef)>, Error> {
        let unit = self.unit(die.unit)?;
        let mut tree = unit.entries_tree(Some(UnitOffset(die.offset)))?;
        let mut children = tree.root()?.children();
        let mut found = Vec::new();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            found.push((entry.tag(), DieRef { unit: die.unit, offset: entry.offset().0 }));
        }
        Ok(found)
    }
}
