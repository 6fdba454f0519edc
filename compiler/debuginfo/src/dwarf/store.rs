// SPDX-License-Identifier: GPL-2.0-or-later

//! The DWARF of one object, and its units, each parsed when first asked for.
//!
//! An entry (DIE) is known by its offset in `.debug_info`, [`Die`]. gimli's values borrow the sections' bytes; here they
//! are stored together with those bytes, in one value that threads can share.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gimli::{Abbreviations, AttributeValue, DebugInfoOffset, DwAt, Reader, Section, SectionId, UnitOffset};

use smallvec::SmallVec;

use super::shared;
use super::split::{self, Skeleton, Split};
use crate::error::Error;
use crate::facts::MAX_CHAIN;
use crate::facts::registers::Machine;
use crate::object::Elf;
use crate::stored;
use crate::tables::{Tables, Writer};
use spile_base::cache::Cache;

pub(super) use super::entry::{Bytes, Entry, Unit};
pub(super) use super::unit_places::{Die, EntryError, Slot};
use super::unit_places::{Part, after, check_count, load, number_of, slot};

/// Bytes read of a name or path: thousands of entries may refer to one string of a megabyte.
const MAX_TEXT: usize = 4096;
/// Elements of a list that are always read: few lists are longer.
const FREE_STEPS: usize = 64;
/// Steps to all others, of a small file: a second or two.
const MOST_STEPS: u64 = 1 << 25;
/// And for each byte of entries and strings: a script may ask for all variables at thousands of statements.
const STEPS_RATIO: u64 = 16;
/// All names that are listed are at most this many times as long as the entries and the strings: a name may be the end of another
/// one, which an entry for each byte of a long one would be too.
const NAMES_RATIO: u64 = 8;

/// Code is decoded as often at most, and of a small file as many bytes: a second or two.
const CODE_RATIO: u64 = 4;
const LEAST_CODE: u64 = 64 << 20;

/// Entries that together describe one thing, each with its unit: few have more than two.
pub(super) type Origins<'s> = SmallVec<[(Die, &'s Unit, Entry); 2]>;

thread_local! {
    /// The unit that was found last, of any store: mostly the next entry is in it too.
    static LAST_SLOT: Cell<usize> = const { Cell::new(0) };
}

/// Start and end of each unit: the headers of thousands are a page each of a large file.
const UNITS: [usize; 1] = [2];
const WHAT: &str = "units";

/// What may be used from several threads at once.
pub(super) struct Store {
    /// The file's sections.
    pub dwarf: Arc<gimli::Dwarf<Bytes>>,
    /// `.debug_frame`.
    pub debug_frame: gimli::DebugFrame<Bytes>,
    /// `.eh_frame`.
    pub eh_frame: gimli::EhFrame<Bytes>,
    /// Link-time address of `.eh_frame`; None if the file has none.
    pub eh_frame_start: Option<u64>,
    /// What the object was compiled for.
    pub machine: Machine,
    /// It is of a program or library, not of a kernel.
    pub is_program: bool,
    /// The units, sorted by their start.
    pub slots: Vec<Slot>,
    /// Where each of them begins: searched for every entry that is read, while a slot is large.
    starts: Arc<[u32]>,
    /// Tables of abbreviations.
    abbreviations: Mutex<AbbreviationTables>,
    /// Where entries are that are not in this file's `.debug_info`, sorted by their numbers.
    parts: Vec<Part>,
    /// The part with the entries that several files share (`.gnu_debugaltlink`).
    shared: Option<u32>,
    /// What skeletons of units name that was not found.
    missing: Vec<String>,
    type_units: OnceLock<Result<HashMap<u64, Die>, EntryError>>,
    /// Bytes of names that were listed, and how many may be.
    listed: AtomicU64,
    most_listed: u64,
    /// Steps that were made in long lists, and how many may be.
    steps_in_lists: AtomicU64,
    most_steps: u64,
    /// Bytes of code that have been decoded for what entries say of functions.
    decoded: AtomicU64,
    /// What `Bytes` point into, apart from the file itself.
    _owned: Arc<Vec<Vec<u8>>>,
    /// The file with the code, of a program whose debug information is in another one.
    pub code: Option<Arc<Elf>>,
}

/// Tables of abbreviations.
#[derive(Default)]
struct AbbreviationTables {
    /// By the number of the first entry of their part, and their offset in its section. None: a thread is parsing it.
    parsed: HashMap<(u32, usize), Option<Arc<Abbreviations>>>,
    /// For each part, the bytes of its tables.
    bytes: HashMap<u32, u64>,
}

impl AbbreviationTables {
    /// Counts a table that nobody has asked for; an error if all of the part's have more bytes than twice its section. Tables do
    /// not overlap: units with ever later offsets into one long table would each have most of it.
    fn charge(&mut self, (part, offset): (u32, usize), section: &Bytes) -> Result<(), gimli::Error> {
        let used = self.bytes.entry(part).or_default();
        let left = (section.len() as u64).saturating_mul(2).saturating_sub(*used);
        let mut table = *section;
        table.skip(offset)?;
        let (bytes, ended) = table_bytes(table, left);
        // Also one that is damaged, which each of its units asks for, has been read.
        *used += bytes;
        ended?;
        self.parsed.insert((part, offset), None);
        Ok(())
    }
}

/// How many bytes of the table of abbreviations (DWARF 5, 7.5.3) were read, `most` at most; an error if it has more, or does not end.
fn table_bytes(mut table: Bytes, most: u64) -> (u64, Result<(), gimli::Error>) {
    let all = table.len().min(usize::try_from(most).unwrap_or(usize::MAX));
    let ended = table.truncate(all).and_then(|()| skip_table(&mut table));
    ((all - table.len().min(all)) as u64, ended)
}

fn skip_table(table: &mut Bytes) -> Result<(), gimli::Error> {
    while table.read_uleb128()? != 0 {
        table.read_uleb128()?;
        table.read_u8()?;
        loop {
            let attribute = table.read_uleb128()?;
            let form = table.read_uleb128()?;
            if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                table.read_sleb128()?;
            }
            if (attribute, form) == (0, 0) {
                break;
            }
        }
    }
    Ok(())
}

impl Store {
    /// The caller keeps `elf` for as long as the store. `code`: the file with the code, of a program whose debug information is
    /// in another one. `cache`: where the places of the units are stored between runs.
    pub fn new(elf: &Arc<Elf>, code: Option<Arc<Elf>>, cache: Option<&Cache>) -> Result<Store, Error> {
        if !elf.has_section(".debug_info") {
            return Err(Error::NoDwarf { path: elf.path().into() });
        }
        let machine = if elf.is_narrow() { Machine::I386 } else { Machine::X86_64 };
        let mut owned = Vec::new();
        let mut load = |section: SectionId| load(elf, section.name(), &mut owned);
        let mut dwarf = gimli::Dwarf::load(&mut load)?;
        let mut debug_frame = gimli::DebugFrame::from(load(SectionId::DebugFrame)?);
        let mut frames = load(SectionId::EhFrame)?;
        let mut eh_frame_start = elf.section_start(".eh_frame");
        // The section is loaded with the code, so a file with debug information alone has it without its contents.
        if let Some(code) = code.as_ref().filter(|_| frames.is_empty()) {
            frames = self::load(code, SectionId::EhFrame.name(), &mut owned)?;
            eh_frame_start = code.section_start(".eh_frame");
        }
        let mut eh_frame = gimli::EhFrame::from(frames);
        debug_frame.set_address_size(machine.word());
        eh_frame.set_address_size(machine.word());
        let mut parts = Vec::new();
        let own = number_of(dwarf.debug_info.reader().len()).map_err(|damage| damaged(elf, damage))?;
        let mut shared = None;
        let mut next = own;
        if let Some(file) = shared::open(elf)? {
            let sections = gimli::Dwarf::load(|section| self::load(&file, section.name(), &mut owned))?;
            let sections = Arc::new(sections);
            dwarf.sup = Some(sections.clone());
            shared = Some(own);
            next = after(next, sections.debug_info.reader().len()).map_err(|damage| damaged(elf, damage))?;
            parts.push(Part { start: own, info_start: own, sections, types: false, _file: Some(file) });
        }
        let dwarf = Arc::new(dwarf);
        if !dwarf.debug_types.reader().is_empty() {
            parts.push(Part { start: next, info_start: 0, sections: dwarf.clone(), types: true, _file: None });
        }
        let mut store = Store {
            dwarf,
            debug_frame,
            eh_frame,
            eh_frame_start,
            machine,
            is_program: !elf.is_of_kernel(),
            slots: Vec::new(),
            starts: Arc::default(),
            parts,
            shared,
            missing: Vec::new(),
            type_units: OnceLock::new(),
            abbreviations: Mutex::default(),
            listed: AtomicU64::new(0),
            most_listed: 0,
            steps_in_lists: AtomicU64::new(0),
            most_steps: 0,
            decoded: AtomicU64::new(0),
            _owned: Arc::default(),
            code,
        };
        // What is shared may be in another file the next time.
        let cache = cache.filter(|_| store.shared.is_none());
        store.slots = match stored::find(elf, cache, WHAT).and_then(|bytes| Tables::open(bytes, &UNITS)) {
            Some(tables) => {
                let cell = |row, column| tables.get(0, row, column);
                (0..tables.rows(0)).map(|row| Slot::at(cell(row, 0), cell(row, 1))).collect()
            }
            None => store.find_units(elf, cache).map_err(|damage| damaged(elf, damage))?,
        };
        if store.is_program {
            store.join_split(elf, &mut owned).map_err(|damage| damaged(elf, damage))?;
        }
        store._owned = Arc::new(owned);
        // All units of a package have the same strings.
        let strings = store.parts.iter().map(|part| part.sections.debug_str.reader().len()).max().unwrap_or(0);
        let entries = store.parts.iter().map(Part::length).sum::<usize>();
        let own = store.dwarf.debug_info.reader().len() + store.dwarf.debug_str.reader().len();
        let length = (own + entries + strings) as u64;
        store.most_listed = length.saturating_mul(NAMES_RATIO).max(16 << 20);
        store.most_steps = length.saturating_mul(STEPS_RATIO).max(MOST_STEPS);
        store.starts = store.slots.iter().map(|slot| slot.start).collect();
        Ok(store)
    }

    /// The same file with none of its units parsed.
    pub fn again(&self) -> Store {
        Store {
            dwarf: self.dwarf.clone(),
            debug_frame: self.debug_frame,
            eh_frame: self.eh_frame,
            eh_frame_start: self.eh_frame_start,
            machine: self.machine,
            is_program: self.is_program,
            slots: self.slots.iter().map(Slot::again).collect(),
            starts: self.starts.clone(),
            abbreviations: Mutex::default(),
            parts: self.parts.clone(),
            shared: self.shared,
            missing: self.missing.clone(),
            type_units: OnceLock::new(),
            listed: AtomicU64::new(0),
            most_listed: self.most_listed,
            steps_in_lists: AtomicU64::new(0),
            most_steps: self.most_steps,
            decoded: AtomicU64::new(0),
            _owned: self._owned.clone(),
            code: self.code.clone(),
        }
    }

    /// Where the units are, by their headers; stored for the next run.
    fn find_units(&self, elf: &Elf, cache: Option<&Cache>) -> Result<Vec<Slot>, EntryError> {
        let slots = self.read_headers()?;
        let mut writer = Writer::new(&UNITS);
        slots.iter().for_each(|slot| writer.row(0, &[slot.start, slot.end]));
        stored::keep(elf, cache, WHAT, &writer.finish());
        Ok(slots)
    }

    fn read_headers(&self) -> Result<Vec<Slot>, EntryError> {
        let mut slots = Vec::new();
        let mut headers = self.dwarf.units();
        while let Some(header) = headers.next()? {
            slots.extend(slot(header, self.machine)?);
            check_count(&slots)?;
        }
        for part in &self.parts {
            part.read_headers(self.machine, &mut slots)?;
        }
        Ok(slots)
    }

    /// The part that the entry is in; None: the file's own `.debug_info`.
    fn part(&self, die: Die) -> Option<&Part> {
        let after = self.parts.partition_point(|part| part.start <= die.0);
        self.parts.get(after.checked_sub(1)?)
    }

    /// Bytes of all line tables, those of split units included.
    pub fn line_bytes(&self) -> u64 {
        let bytes = |dwarf: &gimli::Dwarf<Bytes>| dwarf.debug_line.reader().len() as u64;
        self.parts.iter().map(|part| bytes(&part.sections)).fold(bytes(&self.dwarf), u64::saturating_add)
    }

    /// The sections that the unit with this entry is in.
    pub fn sections(&self, start: Die) -> &gimli::Dwarf<Bytes> {
        self.part(start).map_or(&self.dwarf, |part| &part.sections)
    }

    /// The same of a unit.
    pub fn sections_of(&self, unit: &Unit) -> &gimli::Dwarf<Bytes> {
        match self.parts.is_empty() {
            true => &self.dwarf,
            false => die_at(unit, UnitOffset(0)).map_or(&self.dwarf, |start| self.sections(start)),
        }
    }

    /// The entry that an offset from the start of its section names, in an entry at `from`.
    fn in_section(&self, from: Die, offset: usize) -> Option<Die> {
        let start = self.part(from).map_or(0, |part| part.info_start);
        offset.checked_add(start as usize).and_then(|at| u32::try_from(at).ok()).map(Die)
    }

    /// The entry that a value in the unit that begins at `unit` refers to, if it is a reference; and whether it leads out of
    /// the unit.
    pub fn target(&self, unit: Die, value: AttributeValue<Bytes>) -> Option<(Die, bool)> {
        match value {
            AttributeValue::UnitRef(offset) => Some((Die(unit.0.checked_add(u32::try_from(offset.0).ok()?)?), false)),
            AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => Some((self.in_section(unit, offset)?, true)),
            AttributeValue::DebugInfoRefSup(DebugInfoOffset(offset)) => {
                let at = offset.checked_add(self.shared? as usize)?;
                Some((Die(u32::try_from(at).ok()?), true))
            }
            _ => None,
        }
    }

    /// Index of the unit that the entry is in.
    pub fn slot_of(&self, die: Die) -> Result<usize, EntryError> {
        let has = |index: &usize| self.slots.get(*index).is_some_and(|slot| (slot.start..slot.end).contains(&die.0));
        let last = LAST_SLOT.get();
        if has(&last) {
            return Ok(last);
        }
        let index = self.starts.partition_point(|start| *start <= die.0).checked_sub(1).filter(has);
        let index = index.ok_or_else(|| EntryError::at(die, "in no unit"))?;
        LAST_SLOT.set(index);
        Ok(index)
    }

    /// The unit's place in the sections, and its header; an error if the index is out of range.
    pub(super) fn slot(&self, index: usize) -> Result<&Slot, EntryError> {
        self.slots.get(index).ok_or_else(|| EntryError { die: None, message: "no such unit".into() })
    }

    /// The unit's header, parsed at first use.
    pub fn header<'s>(&self, slot: &'s Slot) -> Result<&'s gimli::UnitHeader<Bytes>, EntryError> {
        let read = || match self.part(Die(slot.start)) {
            Some(part) => part.header(slot.start),
            None => self.dwarf.debug_info.header_from_offset(DebugInfoOffset(slot.start as usize)),
        };
        slot.header.get_or_init(read).as_ref().map_err(|error| EntryError::at(Die(slot.start), error.to_string()))
    }

    /// A unit by its index, parsed at first use.
    pub fn unit(&self, slot: usize) -> Result<&Unit, EntryError> {
        let slot = self.slot(slot)?;
        let header = *self.header(slot)?;
        let parse = || {
            let abbreviations = self.abbreviations_of(slot, &header)?;
            let sections = self.sections(Die(slot.start));
            let mut unit = gimli::Unit::new_with_abbreviations(sections, header, abbreviations)?;
            if let Some(skeleton) = &slot.skeleton {
                unit.copy_relocated_attributes(skeleton);
                unit.line_program = unit.line_program.or_else(|| skeleton.line_program.clone());
                unit.comp_dir = unit.comp_dir.or(skeleton.comp_dir);
            }
            Ok(Box::new(unit))
        };
        let unit = slot.unit.get_or_init(parse);
        unit.as_deref().map_err(|error| EntryError::at(Die(slot.start), error.to_string()))
    }

    /// The unit's table of abbreviations; parsed once, for any number of units can have the same long one.
    pub(super) fn abbreviations_of(
        &self,
        slot: &Slot,
        header: &gimli::UnitHeader<Bytes>,
    ) -> Result<Arc<Abbreviations>, gimli::Error> {
        let part = self.part(Die(slot.start)).map_or(0, |part| part.start);
        let key = (part, header.debug_abbrev_offset().0);
        let sections = self.sections(Die(slot.start));
        {
            let mut all = self.abbreviations.lock().unwrap_or_else(PoisonError::into_inner);
            match all.parsed.get(&key) {
                Some(Some(abbreviations)) => return Ok(abbreviations.clone()),
                Some(None) => {}
                None => all.charge(key, sections.debug_abbrev.reader())?,
            }
        }
        let abbreviations = sections.abbreviations(header)?;
        let mut all = self.abbreviations.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.parsed.entry(key).or_default().get_or_insert(abbreviations).clone())
    }

    /// The unit that an entry belongs to.
    pub fn unit_of(&self, die: Die) -> Result<&Unit, EntryError> {
        self.unit(self.slot_of(die)?)
    }

    /// The entry and its unit.
    pub fn entry(&self, die: Die) -> Result<(&Unit, Entry), EntryError> {
        let slot = self.slot_of(die)?;
        let unit = self.unit(slot)?;
        Ok((unit, entry_in(unit, die, UnitOffset((die.0 - self.slot(slot)?.start) as usize))?))
    }

    /// The entry that an attribute refers to.
    pub fn reference(&self, unit: &Unit, value: AttributeValue<Bytes>) -> Result<Option<Die>, EntryError> {
        match value {
            AttributeValue::UnitRef(offset) => Ok(Some(die_at(unit, offset)?)),
            AttributeValue::DebugTypesRef(signature) => match self.type_units()?.get(&signature.0) {
                Some(die) => Ok(Some(*die)),
                None => Err(EntryError { die: None, message: "a type in a unit of its own that is not there".into() }),
            },
            value => Ok(self.target(die_at(unit, UnitOffset(0))?, value).map(|(die, _)| die)),
        }
    }

    /// The types that have units of their own, by their signatures.
    fn type_units(&self) -> Result<&HashMap<u64, Die>, EntryError> {
        let read = || -> Result<HashMap<u64, Die>, EntryError> {
            let mut types = HashMap::new();
            for slot in &self.slots {
                if let gimli::UnitType::Type { type_signature, type_offset }
                | gimli::UnitType::SplitType { type_signature, type_offset } = self.header(slot)?.type_()
                {
                    let die = Die(slot.start.saturating_add(type_offset.0 as u32));
                    types.entry(type_signature.0).or_insert(die);
                }
            }
            Ok(types)
        };
        self.type_units.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// Whether types have units of their own.
    pub fn has_type_units(&self) -> bool {
        self.type_units().is_ok_and(|types| !types.is_empty())
    }

    /// A file with units of the program that was not found (`-gsplit-dwarf`).
    pub fn missing(&self) -> Option<&str> {
        self.missing.first().map(String::as_str)
    }

    /// Whether units of the program are in other files.
    pub fn is_split(&self) -> bool {
        !self.missing.is_empty() || self.slots.iter().any(|slot| slot.skeleton.is_some())
    }

    /// The unit with its first entry's ranges of code, and that entry: of a unit in a file of its own the program has them.
    pub fn root(&self, slot: usize) -> Result<(&Unit, Entry), EntryError> {
        let unit = match &self.slot(slot)?.skeleton {
            Some(skeleton) => skeleton,
            None => self.unit(slot)?,
        };
        let start = UnitOffset(unit.header.header_size());
        Ok((unit, entry_in(unit, die_at(unit, start)?, start)?))
    }

    /// Puts the units that are in files of their own in the place of their skeletons.
    fn join_split(&mut self, elf: &Elf, owned: &mut Vec<Vec<u8>>) -> Result<(), EntryError> {
        // A skeleton's addresses are there. clang writes it in DWARF 5 without skeletons, too.
        if !elf.has_section(".debug_addr") {
            return Ok(());
        }
        let budget = split::budget();
        let mut skeletons: Vec<Skeleton> = Vec::new();
        for index in 0..self.slots.len() {
            let header = self.header(self.slot(index)?)?;
            if header.version() >= 5 && !matches!(header.type_(), gimli::UnitType::Skeleton(_)) {
                continue;
            }
            let unit = self.unit(index)?;
            let Some(name) = unit.dwo_name()?.and_then(|name| self.string(unit, name)) else { continue };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            // Longer ones are no paths, and all units may have the same one.
            let directory = unit.comp_dir.map(|directory| directory.slice()).filter(|path| path.len() < MAX_TEXT);
            let directory = directory.map(text).unwrap_or_default();
            budget.bytes(name.len().saturating_add(directory.len()))?;
            skeletons.push(Skeleton { index, name: text(name), directory });
        }
        if skeletons.is_empty() {
            return Ok(());
        }
        let end = self.slots.iter().map(|slot| slot.end).max().unwrap_or(0);
        let (dwarf, code) = (self.dwarf.clone(), self.code.clone());
        let mut split = Split::new(&dwarf, elf, code.as_deref(), self.machine, end, owned, budget);
        let mut joined: Vec<usize> = Vec::new();
        for skeleton in &skeletons {
            let own = self.slots.get_mut(skeleton.index).and_then(|slot| slot.unit.take());
            let Some(Ok(unit)) = own else { continue };
            match split.find(skeleton, Arc::from(unit)) {
                true => joined.push(skeleton.index),
                false => self.missing.push(skeleton.name.clone()),
            }
        }
        let (parts, slots) = split.finish();
        let mut at = 0;
        self.slots.retain(|_| {
            at += 1;
            joined.binary_search(&(at - 1)).is_err()
        });
        self.slots.extend(slots);
        self.parts.extend(parts);
        check_count(&self.slots)
    }

    /// The entry that an attribute refers to; None: there is no such attribute.
    pub fn reference_attr(&self, unit: &Unit, entry: &Entry, name: DwAt) -> Result<Option<Die>, EntryError> {
        entry.attr_value(name).map_or(Ok(None), |value| self.reference(unit, value))
    }

    /// The text of an attribute, at most MAX_TEXT bytes of it.
    pub fn string(&self, unit: &Unit, value: AttributeValue<Bytes>) -> Option<&'static [u8]> {
        let text = self.sections_of(unit).attr_string(unit, value).ok()?.slice();
        Some(text.get(..MAX_TEXT).unwrap_or(text))
    }

    /// Charges the step to an element, counted from 0, of a list of ranges or locations: any number of entries can have the same
    /// long list.
    pub fn step_in_list(&self, number: usize) -> Result<(), EntryError> {
        if number < FREE_STEPS || self.steps_in_lists.fetch_add(1, Ordering::Relaxed) < self.most_steps {
            return Ok(());
        }
        let message =
            format!("lists of ranges and locations: more than the {} steps that are allowed", self.most_steps);
        Err(EntryError { die: None, message })
    }

    /// Whether so many bytes of the file's code may be decoded: any number of functions can have the same.
    pub fn may_decode(&self, bytes: u64, of: &Elf) -> bool {
        let most = (of.bytes().len() as u64).saturating_mul(CODE_RATIO).max(LEAST_CODE);
        self.decoded.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= most
    }

    /// Charges a name that is listed.
    pub fn list(&self, name: &[u8]) -> Result<(), EntryError> {
        let listed = self.listed.fetch_add(name.len() as u64, Ordering::Relaxed).saturating_add(name.len() as u64);
        match listed > self.most_listed {
            true => Err(EntryError { die: None, message: format!("names of more than {} bytes", self.most_listed) }),
            false => Ok(()),
        }
    }

    /// The entry's own DW_AT_name.
    pub fn name(&self, unit: &Unit, entry: &Entry) -> Option<String> {
        self.name_in_place(unit, entry).map(Cow::into_owned)
    }

    /// The same, where it is in the file.
    pub fn name_in_place(&self, unit: &Unit, entry: &Entry) -> Option<Cow<'static, str>> {
        Some(String::from_utf8_lossy(self.string(unit, entry.attr_value(gimli::DW_AT_name)?)?))
    }

    /// The entries that together describe one thing: the entry itself, then its abstract origin or specification, and so
    /// on.
    pub fn origins(&self, die: Die) -> Result<Origins<'_>, EntryError> {
        let (unit, entry) = self.entry(die)?;
        self.origins_of(die, unit, entry)
    }

    /// The same, of an entry that has been read.
    pub fn origins_of<'s>(&'s self, die: Die, unit: &'s Unit, entry: Entry) -> Result<Origins<'s>, EntryError> {
        let mut chain = Origins::new();
        let mut next = Some((die, unit, entry));
        while let Some((die, unit, entry)) = next {
            if chain.len() >= MAX_CHAIN {
                return Err(EntryError::at(die, "abstract origins without an end"));
            }
            let named = entry.attr_value(gimli::DW_AT_abstract_origin);
            next = match named.map_or(Ok(None), |value| self.referred(unit, value))? {
                Some(origin) => Some(origin),
                None => match entry.attr_value(gimli::DW_AT_specification) {
                    Some(value) => self.referred(unit, value)?,
                    None => None,
                },
            };
            chain.push((die, unit, entry));
        }
        Ok(chain)
    }

    /// The entry that an attribute refers to, read: mostly it is in the same unit.
    fn referred<'s>(
        &'s self,
        unit: &'s Unit,
        value: AttributeValue<Bytes>,
    ) -> Result<Option<(Die, &'s Unit, Entry)>, EntryError> {
        if let AttributeValue::UnitRef(offset) = value
            && offset.0 < unit.header.length_including_self()
        {
            let die = die_at(unit, offset)?;
            return Ok(Some((die, unit, entry_in(unit, die, offset)?)));
        }
        let Some(die) = self.reference(unit, value)? else { return Ok(None) };
        let (unit, entry) = self.entry(die)?;
        Ok(Some((die, unit, entry)))
    }

    /// Whether that is the path of the file; most are not, by their last part.
    pub fn is_file(&self, unit: &Unit, index: u64, path: &str) -> bool {
        let last = |path: &[u8]| path.iter().rev().take_while(|byte| **byte != b'/').count();
        let name = || {
            let file = unit.line_program.as_ref()?.header().file(index)?;
            self.string(unit, file.path_name())
        };
        let ends = |name: &[u8]| {
            let (length, wanted) = (last(name), last(path.as_bytes()));
            length == wanted && path.as_bytes().ends_with(name.get(name.len() - length..).unwrap_or_default())
        };
        // Others are replaced by a character of several bytes.
        let excluded = name().is_some_and(|name| name.is_ascii() && !ends(name));
        !excluded && self.file_name(unit, index).unwrap_or_default() == path
    }

    /// Path of file `index` of the unit's line table, relative to the top of the sources.
    pub fn file_name(&self, unit: &Unit, index: u64) -> Option<String> {
        let program = unit.line_program.as_ref()?;
        let header = program.header();
        let file = header.file(index)?;
        let text = |value| self.string(unit, value).map(String::from_utf8_lossy);
        let name = text(file.path_name())?;
        // Directory 0 is the compilation's, the kernel's build directory: names stay relative to it.
        let directory = match file.directory_index() {
            0 => None,
            _ => file.directory(header).and_then(text).filter(|directory| directory != "."),
        };
        let path = match directory {
            Some(directory) if !name.starts_with('/') => format!("{}/{name}", directory.trim_end_matches('/')).into(),
            _ => name,
        };
        let built_in = unit.comp_dir.map(|directory| String::from_utf8_lossy(directory.slice()));
        Some(shortened(&path, &built_in.unwrap_or_default()).to_string())
    }
}

/// Without the build directory, and without the path from there to the sources.
fn shortened<'p>(path: &'p str, built_in: &str) -> &'p str {
    let inside = path.strip_prefix(built_in).filter(|rest| !built_in.is_empty() && rest.starts_with('/'));
    let mut path = inside.map_or(path, |rest| rest.trim_start_matches('/'));
    while let Some(rest) = path.strip_prefix("./").or_else(|| path.strip_prefix("../")) {
        path = rest;
    }
    path
}

fn entry_in(unit: &Unit, die: Die, offset: UnitOffset) -> Result<Entry, EntryError> {
    let entry = Entry::read(unit, offset).map_err(|error| EntryError::at(die, error.to_string()))?;
    entry.ok_or_else(|| EntryError::at(die, "the end of a list instead of an entry"))
}

/// The offset in `.debug_info` of an entry of the unit.
pub(super) fn die_at(unit: &Unit, offset: UnitOffset) -> Result<Die, EntryError> {
    let offset = offset.to_debug_info_offset(&unit.header).and_then(|offset| u32::try_from(offset.0).ok());
    offset.map(Die).ok_or_else(|| EntryError { die: None, message: "a reference that leads out of the section".into() })
}

/// The error to report for damaged DWARF in the file.
pub(super) fn damaged(elf: &Elf, damage: EntryError) -> Error {
    let offset = damage.die.map(|die| u64::from(die.0));
    Error::Dwarf { path: elf.path().into(), offset, message: damage.message }
}

/// An attribute's unsigned number.
pub(super) fn number(entry: &Entry, name: DwAt) -> Option<u64> {
    entry.attr_value(name)?.udata_value()
}

/// The value of a DW_AT_const_value that is a number: forms of fixed size, as gcc writes numbers that are not negative, have
/// no sign.
pub(super) fn constant(value: &AttributeValue<Bytes>) -> Option<i64> {
    value.udata_value().map(|value| value as i64).or_else(|| value.sdata_value())
}

/// Whether the entry has this attribute, and it is true.
pub(super) fn flag(entry: &Entry, name: DwAt) -> bool {
    matches!(entry.attr_value(name), Some(AttributeValue::Flag(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_abbreviations_are_read_as_far_as_they_may_be() {
        let bytes = |bytes: &'static [u8]| Bytes::new(bytes, gimli::LittleEndian);
        let table = bytes(&[1, 0x11, 0, 3, 8, 0, 0, 0, 9, 9]);
        assert!(matches!(table_bytes(table, 100), (8, Ok(()))));
        assert!(matches!(table_bytes(table, 8), (8, Ok(()))));
        assert!(matches!(table_bytes(table, 7), (7, Err(_))));
        // One abbreviation without an end.
        let endless = [vec![1, 0x11, 0], [3, 8].repeat(1 << 20)].concat().leak();
        assert!(matches!(table_bytes(bytes(endless), 1000), (990..=1000, Err(_))));
    }

    #[test]
    fn paths_begin_at_the_top_of_the_sources() {
        assert_eq!(shortened("/b/linux/fs/x.c", "/b/linux"), "fs/x.c");
        assert_eq!(shortened("/b/linux-2/fs/x.c", "/b/linux"), "/b/linux-2/fs/x.c");
        assert_eq!(shortened("../../../fs/x.c", "/b/linux"), "fs/x.c");
        assert_eq!(shortened("./fs/x.c", ""), "fs/x.c");
    }
}
