// SPDX-License-Identifier: GPL-2.0-or-later

//! A debugging information entry (DIE), whose attributes are read when they are asked for: most entries are asked for one or
//! two of them, and gimli's own entries allocate a list of all.

use std::sync::Arc;

use gimli::{
    Abbreviation, Abbreviations, AttributeValue, DwAt, DwTag, EndianSlice, EntriesRaw, LittleEndian, UnitOffset,
};

/// Bytes of a section. `'static` is true only as long as the [`Store`](super::store::Store) that gave them lives: it must not
/// get out of `debuginfo`, whose public values are all owned.
pub(super) type Bytes = EndianSlice<'static, LittleEndian>;
/// A parsed compilation unit.
pub(super) type Unit = gimli::Unit<Bytes>;

/// An entry; see [`Bytes`] for how long it may live.
#[derive(Clone)]
pub(super) struct Entry {
    /// Where its attributes are read.
    attributes: EntriesRaw<'static, Bytes>,
    abbreviation: &'static Abbreviation,
    offset: UnitOffset,
}

/// Entries of a unit, one after the other.
pub(super) struct Entries(EntriesRaw<'static, Bytes>);

impl Entry {
    /// The entry at an offset in the unit; None: a list of entries ends there.
    pub fn read(unit: &Unit, offset: UnitOffset) -> gimli::Result<Option<Entry>> {
        // Where the next one is does not matter, so its attributes are not read to find that.
        Entries::from(unit, Some(offset))?.begin()
    }

    pub fn offset(&self) -> UnitOffset {
        self.offset
    }

    pub fn tag(&self) -> DwTag {
        self.abbreviation.tag()
    }

    /// The value of its first attribute of that name.
    pub fn attr_value(&self, name: DwAt) -> Option<AttributeValue<Bytes>> {
        let specs = self.abbreviation.attributes();
        let at = specs.iter().position(|spec| spec.name() == name)?;
        let mut attributes = self.attributes.clone();
        attributes.skip_attributes(specs.get(..at)?).ok()?;
        Some(attributes.read_attribute(*specs.get(at)?).ok()?.value())
    }

    /// Calls `see` with each of its children, without theirs.
    pub fn each_child<E: From<gimli::Error>>(
        &self,
        unit: &Unit,
        mut see: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.abbreviation.has_children() {
            return Ok(());
        }
        let mut entries = Entries(self.attributes.clone());
        entries.0.skip_attributes(self.abbreviation.attributes())?;
        while let Some(child) = entries.read()? {
            let (sibling, has_children) = (child.sibling(), child.abbreviation.has_children());
            see(child)?;
            match sibling.filter(|_| has_children) {
                // Only forward: a backward reference would never end.
                Some(sibling) if sibling.0 >= entries.0.next_offset().0 => {
                    entries = Entries::from(unit, Some(sibling))?;
                }
                _ if has_children => skip_children(&mut entries.0)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn sibling(&self) -> Option<UnitOffset> {
        match self.attr_value(gimli::DW_AT_sibling)? {
            AttributeValue::UnitRef(offset) => Some(offset),
            _ => None,
        }
    }
}

impl Entries {
    /// All entries of the unit, each followed by its children.
    pub fn of(unit: &Unit) -> gimli::Result<Entries> {
        Entries::from(unit, None)
    }

    fn from(unit: &Unit, offset: Option<UnitOffset>) -> gimli::Result<Entries> {
        // SAFETY: the table is not changed and not freed before the store that has the unit, which no value with this lifetime
        // outlives; see `Bytes`.
        let abbreviations: &'static Abbreviations = unsafe { &*Arc::as_ptr(&unit.abbreviations) };
        Ok(Entries(unit.header.entries_raw(abbreviations, offset)?))
    }

    /// Calls `see` with the entries below the unit's first one, in their order, and with how deep each is, from 1 on; whether its
    /// children follow is what `see` gives. Each is read once at most, whatever siblings they name.
    pub fn below<E: From<gimli::Error>>(
        unit: &Unit,
        mut see: impl FnMut(&Entry, usize) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut entries = Entries::of(unit)?;
        let mut depth = usize::from(entries.read()?.is_some_and(|root| root.abbreviation.has_children()));
        while depth > 0 && !entries.0.is_empty() {
            let Some(entry) = entries.read()? else {
                depth -= 1;
                continue;
            };
            let follows = see(&entry, depth)?;
            match entry.sibling() {
                _ if !entry.abbreviation.has_children() => {}
                _ if follows => depth += 1,
                // Only forward: a backward reference would never end.
                Some(sibling) if sibling.0 >= entries.0.next_offset().0 => {
                    entries = Entries::from(unit, Some(sibling))?;
                }
                _ => skip_children(&mut entries.0)?,
            }
        }
        Ok(())
    }

    /// The next entry; None: there is none.
    pub fn next(&mut self) -> gimli::Result<Option<Entry>> {
        while !self.0.is_empty() {
            if let Some(entry) = self.read()? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// The next entry, whole; None: the list of entries ends.
    fn read(&mut self) -> gimli::Result<Option<Entry>> {
        let entry = self.begin()?;
        if let Some(entry) = &entry {
            self.0.skip_attributes(entry.abbreviation.attributes())?;
        }
        Ok(entry)
    }

    /// The next entry, without reading past it.
    fn begin(&mut self) -> gimli::Result<Option<Entry>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let offset = self.0.next_offset();
        let Some(abbreviation) = self.0.read_abbreviation()? else { return Ok(None) };
        Ok(Some(Entry { attributes: self.0.clone(), abbreviation, offset }))
    }
}

/// Skips the children of the entry that has just been read.
pub(super) fn skip_children(raw: &mut EntriesRaw<Bytes>) -> gimli::Result<()> {
    let mut depth = 1usize;
    while depth > 0 && !raw.is_empty() {
        match raw.read_abbreviation()? {
            None => depth -= 1,
            Some(abbreviation) => {
                raw.skip_attributes(abbreviation.attributes())?;
                depth += usize::from(abbreviation.has_children());
            }
        }
    }
    Ok(())
}
