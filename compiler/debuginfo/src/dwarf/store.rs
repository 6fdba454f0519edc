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

use gimli::{
    Abbreviations, AttributeValue, DebugInfoOffset, DwAt, EndianSlice, LittleEndian, Section, SectionId, UnitOffset,
};

use smallvec::SmallVec;
use spile_abi::budget::Exceeded;

use super::shared;
use crate::error::Error;
use crate::facts::MAX_CHAIN;
use crate::facts::registers::Machine;
use crate::object::{Contents, Elf};
use crate::stored;
use crate::tables::{Tables, Writer};
use spile_base::cache::Cache;

use super::entry::Entries;
pub(super) use super::entry::{Bytes, Entry, Unit};

/// Offset of an entry in `.debug_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Die(pub u32);

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

/// Units of a file: each takes 6 KB when it is parsed, and may be 30 bytes in the file. Linux 6.1 has 2,172, a program in Rust
/// with all its libraries 7,000.
const MAX_UNITS: usize = 1 << 16;

/// Entries that together describe one thing, each with its unit: few have more than two.
pub(super) type Origins<'s> = SmallVec<[(Die, &'s Unit, Entry); 2]>;

/// Where one unit is; its header and the unit when they have been parsed.
pub(super) struct Slot {
    /// Its range in `.debug_info`.
    pub start: u32,
    /// The end of the range, excluded.
    pub end: u32,
    header: OnceLock<Result<gimli::UnitHeader<Bytes>, gimli::Error>>,
    /// Apart: it is large, and of most units nothing is asked.
    unit: OnceLock<Result<Box<Unit>, gimli::Error>>,
}

thread_local! {
    /// The unit that was found last, of any store: mostly the next entry is in it too.
    static LAST_SLOT: Cell<usize> = const { Cell::new(0) };
}

/// Start and end of each unit: the headers of thousands are a page each of a large file.
const UNITS: [usize; 1] = [2];
const WHAT: &str = "units";

fn check_count(slots: &[Slot]) -> Result<(), EntryError> {
    match slots.len() > MAX_UNITS {
        true => Err(EntryError { die: None, message: format!("more than the {MAX_UNITS} units that are allowed") }),
        false => Ok(()),
    }
}

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
    /// Tables of abbreviations, by whether they are the shared file's, and their offset in its section.
    abbreviations: Mutex<HashMap<(bool, usize), Arc<Abbreviations>>>,
    /// Entries shared by several files are in another file (`.gnu_debugaltlink`): its sections, and the file. Its entries
    /// are numbered as if they followed this file's own.
    shared: Option<(Arc<gimli::Dwarf<Bytes>>, Arc<Elf>)>,
    /// The number of the first shared entry.
    shared_start: usize,
    type_units: OnceLock<Result<HashMap<u64, Die>, EntryError>>,
    /// Bytes of names that were listed, and how many may be.
    listed: AtomicU64,
    most_listed: u64,
    /// Steps that were made in long lists, and how many may be.
    steps_in_lists: AtomicU64,
    most_steps: u64,
    /// What `Bytes` point into, apart from the file itself.
    _owned: Arc<Vec<Vec<u8>>>,
    /// The file with the code, of a program whose debug information is in another one.
    pub code: Option<Arc<Elf>>,
}

/// Why an entry could not be read, before it is known which file it is of.
#[derive(Clone, Debug)]
pub(super) struct EntryError {
    /// The entry; None if the error is not about a single one.
    pub die: Option<Die>,
    /// The reason, in words.
    pub message: String,
}

impl From<gimli::Error> for EntryError {
    fn from(error: gimli::Error) -> EntryError {
        EntryError { die: None, message: error.to_string() }
    }
}

impl From<Exceeded> for EntryError {
    fn from(error: Exceeded) -> EntryError {
        EntryError { die: None, message: error.to_string() }
    }
}

impl EntryError {
    /// Damage of this entry.
    pub fn at(die: Die, message: impl Into<String>) -> EntryError {
        EntryError { die: Some(die), message: message.into() }
    }
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
        let mut load = |section: SectionId| load(elf, section, 0, &mut owned);
        let mut dwarf = gimli::Dwarf::load(&mut load)?;
        let mut debug_frame = gimli::DebugFrame::from(load(SectionId::DebugFrame)?);
        let mut frames = load(SectionId::EhFrame)?;
        let mut eh_frame_start = elf.section_start(".eh_frame");
        // The section is loaded with the code, so a file with debug information alone has it without its contents.
        if let Some(code) = code.as_ref().filter(|_| frames.is_empty()) {
            frames = self::load(code, SectionId::EhFrame, 0, &mut owned)?;
            eh_frame_start = code.section_start(".eh_frame");
        }
        let mut eh_frame = gimli::EhFrame::from(frames);
        debug_frame.set_address_size(machine.word());
        eh_frame.set_address_size(machine.word());
        let shared_start = dwarf.debug_info.reader().len();
        let shared = match shared::open(elf)? {
            Some(file) => {
                let before = |section| if section == SectionId::DebugInfo { shared_start } else { 0 };
                let sections = gimli::Dwarf::load(|section| self::load(&file, section, before(section), &mut owned))?;
                let sections = Arc::new(sections);
                dwarf.sup = Some(sections.clone());
                Some((sections, file))
            }
            None => None,
        };
        let mut store = Store {
            dwarf: Arc::new(dwarf),
            debug_frame,
            eh_frame,
            eh_frame_start,
            machine,
            is_program: !elf.is_of_kernel(),
            slots: Vec::new(),
            starts: Arc::default(),
            shared,
            shared_start,
            type_units: OnceLock::new(),
            abbreviations: Mutex::default(),
            listed: AtomicU64::new(0),
            most_listed: 0,
            steps_in_lists: AtomicU64::new(0),
            most_steps: 0,
            _owned: Arc::new(owned),
            code,
        };
        let all = [Some(&*store.dwarf), store.shared.as_ref().map(|(sections, _)| &**sections)];
        let lengths =
            all.into_iter().flatten().map(|dwarf| dwarf.debug_info.reader().len() + dwarf.debug_str.reader().len());
        let length = lengths.sum::<usize>() as u64;
        store.most_listed = length.saturating_mul(NAMES_RATIO).max(16 << 20);
        store.most_steps = length.saturating_mul(STEPS_RATIO).max(MOST_STEPS);
        // What is shared may be in another file the next time.
        let cache = cache.filter(|_| store.shared.is_none());
        store.slots = match stored::find(elf, cache, WHAT).and_then(|bytes| Tables::open(bytes, &UNITS)) {
            Some(tables) => {
                let cell = |row, column| tables.get(0, row, column);
                (0..tables.rows(0)).map(|row| Slot::at(cell(row, 0), cell(row, 1))).collect()
            }
            None => store.find_units(elf, cache).map_err(|damage| damaged(elf, damage))?,
        };
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
            slots: self.slots.iter().map(|slot| Slot::at(slot.start, slot.end)).collect(),
            starts: self.starts.clone(),
            abbreviations: Mutex::default(),
            shared: self.shared.clone(),
            shared_start: self.shared_start,
            type_units: OnceLock::new(),
            listed: AtomicU64::new(0),
            most_listed: self.most_listed,
            steps_in_lists: AtomicU64::new(0),
            most_steps: self.most_steps,
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
        if let Some((sections, _)) = &self.shared {
            let (mut at, end) = (self.shared_start, sections.debug_info.reader().len());
            while at < end {
                let header = sections.debug_info.header_from_offset(DebugInfoOffset(at))?;
                at = at.saturating_add(header.length_including_self()).max(at + 1);
                slots.extend(slot(header, self.machine)?);
                check_count(&slots)?;
            }
        }
        Ok(slots)
    }

    /// The sections that the unit with this entry is in.
    pub fn sections(&self, start: Die) -> &gimli::Dwarf<Bytes> {
        match &self.shared {
            Some((sections, _)) if start.0 as usize >= self.shared_start => sections,
            _ => &self.dwarf,
        }
    }

    /// The entry that an offset from the start of its section names, in an entry at `from`.
    fn in_section(&self, from: Die, offset: usize) -> Option<Die> {
        let shared = self.shared.is_some() && from.0 as usize >= self.shared_start;
        let start = if shared { self.shared_start } else { 0 };
        offset.checked_add(start).and_then(|at| u32::try_from(at).ok()).map(Die)
    }

    /// The entry that a value in the unit that begins at `unit` refers to, if it is a reference; and whether it leads out of
    /// the unit.
    pub fn target(&self, unit: Die, value: AttributeValue<Bytes>) -> Option<(Die, bool)> {
        match value {
            AttributeValue::UnitRef(offset) => Some((Die(unit.0.checked_add(u32::try_from(offset.0).ok()?)?), false)),
            AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => Some((self.in_section(unit, offset)?, true)),
            AttributeValue::DebugInfoRefSup(DebugInfoOffset(offset)) => {
                let at = offset.checked_add(self.shared_start).filter(|_| self.shared.is_some())?;
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
        let offset = DebugInfoOffset(slot.start as usize);
        let read = || self.sections(Die(slot.start)).debug_info.header_from_offset(offset);
        slot.header.get_or_init(read).as_ref().map_err(|error| EntryError::at(Die(slot.start), error.to_string()))
    }

    /// A unit by its index, parsed at first use.
    pub fn unit(&self, slot: usize) -> Result<&Unit, EntryError> {
        let slot = self.slot(slot)?;
        let header = *self.header(slot)?;
        let parse = || {
            let abbreviations = self.abbreviations_of(slot, &header)?;
            gimli::Unit::new_with_abbreviations(self.sections(Die(slot.start)), header, abbreviations).map(Box::new)
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
        let key = (slot.start as usize >= self.shared_start, header.debug_abbrev_offset().0);
        let parsed = |all: &Mutex<HashMap<_, Arc<Abbreviations>>>| {
            all.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
        };
        if let Some(abbreviations) = parsed(&self.abbreviations) {
            return Ok(abbreviations);
        }
        let abbreviations = self.sections(Die(slot.start)).abbreviations(header)?;
        let mut all = self.abbreviations.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.entry(key).or_insert(abbreviations).clone())
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
                None => {
                    let message = "a type in a unit of its own that is not there, or in .debug_types (-fdebug-types-section in DWARF 4)";
                    Err(EntryError { die: None, message: message.into() })
                }
            },
            value => Ok(self.target(die_at(unit, UnitOffset(0))?, value).map(|(die, _)| die)),
        }
    }

    /// The types that have units of their own, by their signatures.
    fn type_units(&self) -> Result<&HashMap<u64, Die>, EntryError> {
        let read = || -> Result<HashMap<u64, Die>, EntryError> {
            let mut types = HashMap::new();
            for slot in &self.slots {
                if let gimli::UnitType::Type { type_signature, type_offset } = self.header(slot)?.type_() {
                    let die = Die(slot.start.saturating_add(type_offset.0 as u32));
                    types.entry(type_signature.0).or_insert(die);
                }
            }
            Ok(types)
        };
        self.type_units.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// Of a program whose units are all only the skeletons of units in other files, the name of one of these.
    pub fn split_into(&self) -> Result<Option<String>, EntryError> {
        let mut name = None;
        for slot in 0..self.slots.len() {
            let unit = self.unit(slot)?;
            let Some(root) = Entries::of(unit)?.next()? else { continue };
            let other = root.attr_value(gimli::DW_AT_dwo_name).or_else(|| root.attr_value(gimli::DW_AT_GNU_dwo_name));
            let Some(other) = other else { return Ok(None) };
            name = self.string(unit, other).map(|text| String::from_utf8_lossy(text).into_owned()).or(name);
        }
        Ok(name)
    }

    /// The entry that an attribute refers to; None: there is no such attribute.
    pub fn reference_attr(&self, unit: &Unit, entry: &Entry, name: DwAt) -> Result<Option<Die>, EntryError> {
        entry.attr_value(name).map_or(Ok(None), |value| self.reference(unit, value))
    }

    /// The text of an attribute, at most MAX_TEXT bytes of it.
    pub fn string(&self, unit: &Unit, value: AttributeValue<Bytes>) -> Option<&'static [u8]> {
        let sections = self.sections(die_at(unit, UnitOffset(0)).ok()?);
        let text = sections.attr_string(unit, value).ok()?.slice();
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

/// None: of another kind.
fn slot(header: gimli::UnitHeader<Bytes>, machine: Machine) -> Result<Option<Slot>, EntryError> {
    let Some(DebugInfoOffset(start)) = header.debug_info_offset() else {
        return Ok(None);
    };
    let end = start.saturating_add(header.length_including_self());
    let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else {
        return Err(EntryError { die: None, message: "more than 4 GB of .debug_info".into() });
    };
    if header.address_size() != machine.word() {
        return Err(EntryError::at(Die(start), format!("a unit with addresses of {} bytes", header.address_size())));
    }
    Ok(Some(Slot { header: Ok(header).into(), ..Slot::at(start, end) }))
}

impl Slot {
    fn at(start: u32, end: u32) -> Slot {
        Slot { start, end, header: OnceLock::new(), unit: OnceLock::new() }
    }
}

/// A section's bytes after `before` zero bytes; what is not in the file itself is added to `owned`.
fn load(elf: &Elf, section: SectionId, before: usize, owned: &mut Vec<Vec<u8>>) -> Result<Bytes, Error> {
    let contents = match elf.debug_section(section.name())? {
        Contents::InFile(range) if before > 0 => {
            let mut moved = vec![0; before];
            moved.extend(elf.bytes().get(range).unwrap_or_default());
            Contents::Owned(moved)
        }
        Contents::Owned(contents) if before > 0 => {
            Contents::Owned(std::iter::repeat_n(0, before).chain(contents).collect())
        }
        contents => contents,
    };
    let bytes: &[u8] = match contents {
        Contents::InFile(range) => elf.bytes().get(range).unwrap_or_default(),
        Contents::Owned(contents) => {
            owned.push(contents);
            owned.last().map_or(&[], Vec::as_slice)
        }
    };
    // SAFETY: the bytes are those of a Vec's or map's allocation, which does not move when the Vec or map does. The Vec is
    // kept in the store unchanged, the map in its file, which the store or whoever has it keeps beside it; and no value with
    // this lifetime leaves `debuginfo`.
    let bytes: &'static [u8] = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
    Ok(EndianSlice::new(bytes, LittleEndian))
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
    fn paths_begin_at_the_top_of_the_sources() {
        assert_eq!(shortened("/b/linux/fs/x.c", "/b/linux"), "fs/x.c");
        assert_eq!(shortened("/b/linux-2/fs/x.c", "/b/linux"), "/b/linux-2/fs/x.c");
        assert_eq!(shortened("../../../fs/x.c", "/b/linux"), "fs/x.c");
        assert_eq!(shortened("./fs/x.c", ""), "fs/x.c");
    }
}
