// SPDX-License-Identifier: GPL-2.0-or-later

//! Units of a program in files of their own (`-gsplit-dwarf`): each in the `.dwo` file that the compiler wrote, which its
//! skeleton in the program names, or all in a package (dwp(1)) beside the program. A unit belongs to the skeleton that has the same
//! number.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Abbreviations, Dwarf, DwarfPackage, DwoId, EndianSlice, LittleEndian, Section, SectionId, UnitHeader};
use spile_abi::budget::{Budget, Limits, USUAL};

use super::entry::{Bytes, Unit};
use super::unit_places::{EntryError, Part, Slot, after, load_all};
use crate::facts::registers::Machine;
use crate::object::Elf;

/// For the paths of 60,000 units, and the bytes of tables of abbreviations, each of which may be long and that of many units.
const LIMITS: Limits = Limits { bytes: 1 << 28, work: 1 << 30, ..USUAL };

/// A budget for the units of one program.
pub(super) fn budget() -> Budget {
    Budget::new("units in files of their own", LIMITS)
}

/// What a program has of a unit.
pub(super) struct Skeleton {
    /// The unit's index.
    pub index: usize,
    /// DW_AT_dwo_name.
    pub name: String,
    /// DW_AT_comp_dir.
    pub directory: String,
}

/// The units that were found so far.
pub(super) struct Split<'s> {
    dwarf: &'s Arc<Dwarf<Bytes>>,
    machine: Machine,
    owned: &'s mut Vec<Vec<u8>>,
    /// Directories of the program, and of the file with its debug information.
    beside: Vec<PathBuf>,
    package: Option<(DwarfPackage<Bytes>, Arc<Elf>)>,
    /// The units of the files that were opened, by file and number.
    opened: HashMap<PathBuf, HashMap<u64, usize>>,
    parts: Vec<Part>,
    slots: Vec<Slot>,
    /// The next number of an entry.
    next: u32,
    /// The last table of abbreviations, with its address and the bytes from there to the end of its section.
    abbreviations: Option<((usize, usize), Arc<Abbreviations>)>,
    budget: Budget,
}

impl<'s> Split<'s> {
    /// Nothing has been found yet. `elf`: the file with the skeletons; `code`: the program, if that is another one; `next`: the
    /// first number that no entry has.
    pub fn new(
        dwarf: &'s Arc<Dwarf<Bytes>>,
        elf: &Elf,
        code: Option<&Elf>,
        machine: Machine,
        next: u32,
        owned: &'s mut Vec<Vec<u8>>,
        budget: Budget,
    ) -> Split<'s> {
        let files: Vec<&Path> = std::iter::once(elf).chain(code).map(Elf::path).collect();
        let package = files.iter().find_map(|path| {
            let mut name = path.as_os_str().to_os_string();
            name.push(".dwp");
            open_package(Path::new(&name), owned)
        });
        let beside = files.iter().filter_map(|path| Some(path.parent()?.to_path_buf())).collect();
        let (opened, parts, slots) = (HashMap::new(), Vec::new(), Vec::new());
        Split { dwarf, machine, owned, beside, package, opened, parts, slots, next, abbreviations: None, budget }
    }

    /// Adds the skeleton's unit; false: it is not there, or its file is damaged.
    pub fn find(&mut self, skeleton: &Skeleton, unit: Arc<Unit>) -> bool {
        let Some(id) = unit.dwo_id else { return false };
        let index = self.in_package(id).or_else(|| self.in_file(skeleton, id));
        let Some(slot) = index.and_then(|index| self.slots.get_mut(index)) else { return false };
        slot.skeleton = Some(unit);
        true
    }

    /// The sections and the units, in the order of their numbers.
    pub fn finish(mut self) -> (Vec<Part>, Vec<Slot>) {
        if let Some((package, file)) = self.package.take() {
            for row in 1..=package.tu_index.unit_count() {
                if let Ok(sections) = package.tu_sections(row, self.dwarf) {
                    self.add(sections, &file);
                }
            }
        }
        // What no skeleton belongs to, of which the addresses are not known; types have none.
        let is_known = |slot: &Slot| -> bool { slot.skeleton.is_some() || !self.is_compilation(slot) };
        let known: Vec<bool> = self.slots.iter().map(is_known).collect();
        let slots = self.slots.into_iter().zip(known).filter_map(|(slot, known)| known.then_some(slot));
        (self.parts, slots.collect())
    }

    fn is_compilation(&self, slot: &Slot) -> bool {
        let part = self.parts.iter().rev().find(|part| part.start <= slot.start);
        let header = part.and_then(|part| part.header(slot.start).ok());
        header.is_some_and(|header| {
            matches!(header.type_(), gimli::UnitType::Compilation | gimli::UnitType::SplitCompilation(_))
        })
    }

    fn in_package(&mut self, id: DwoId) -> Option<usize> {
        let (package, file) = self.package.as_ref()?;
        let sections = package.find_cu(id, self.dwarf).ok().flatten()?;
        let file = file.clone();
        self.add(sections, &file).get(&id.0).copied()
    }

    /// Where the file may be: where the compiler wrote it, or beside the program.
    fn in_file(&mut self, skeleton: &Skeleton, id: DwoId) -> Option<usize> {
        let name = Path::new(&skeleton.name);
        let mut places = vec![Path::new(&skeleton.directory).join(name)];
        for directory in &self.beside {
            places.push(directory.join(name));
            places.extend(name.file_name().map(|file| directory.join(file)));
        }
        for place in places {
            if !self.opened.contains_key(&place) {
                self.budget.bytes(place.as_os_str().len()).ok()?;
                let units = match open(&place, self.dwarf, self.owned) {
                    Some((sections, file)) => self.add(sections, &file),
                    None => HashMap::new(),
                };
                self.opened.insert(place.clone(), units);
            }
            if let Some(index) = self.opened.get(&place).and_then(|units| units.get(&id.0)) {
                return Some(*index);
            }
        }
        None
    }

    /// Adds the units of a file, or of a part of a package; their indices by their numbers. None of one that is damaged: the others,
    /// and what is in the program itself, are read without it.
    fn add(&mut self, sections: Dwarf<Bytes>, file: &Arc<Elf>) -> HashMap<u64, usize> {
        let (slots, parts, next) = (self.slots.len(), self.parts.len(), self.next);
        self.add_whole(sections, file).unwrap_or_else(|_| {
            self.slots.truncate(slots);
            self.parts.truncate(parts);
            self.next = next;
            HashMap::new()
        })
    }

    fn add_whole(&mut self, mut sections: Dwarf<Bytes>, file: &Arc<Elf>) -> Result<HashMap<u64, usize>, EntryError> {
        // Names of files in the program's line tables, which these units have no others of.
        sections.debug_line_str = self.dwarf.debug_line_str;
        let sections = Arc::new(sections);
        let info_start = self.next;
        let mut units = HashMap::new();
        for types in [false, true] {
            let part =
                Part { start: self.next, info_start, sections: sections.clone(), types, _file: Some(file.clone()) };
            if part.length() == 0 {
                continue;
            }
            self.next = after(self.next, part.length())?;
            let first = self.slots.len();
            part.read_headers(self.machine, &mut self.slots)?;
            let found = self.slots.iter().enumerate().skip(first).filter(|_| !types);
            let found: Vec<(usize, u32)> = found.map(|(index, slot)| (index, slot.start)).collect();
            for (index, start) in found {
                let header = part.header(start)?;
                let id = match header.type_() {
                    gimli::UnitType::SplitCompilation(id) => Some(id),
                    // Before DWARF 5 an attribute has it.
                    _ => {
                        let abbreviations = self.abbreviations_of(&sections, &header)?;
                        Unit::new_with_abbreviations(&sections, header, abbreviations)?.dwo_id
                    }
                };
                units.extend(id.map(|id| (id.0, index)));
            }
            self.parts.push(part);
        }
        Ok(units)
    }

    /// Units that follow each other often have the same table.
    fn abbreviations_of(
        &mut self,
        sections: &Dwarf<Bytes>,
        header: &UnitHeader<Bytes>,
    ) -> Result<Arc<Abbreviations>, EntryError> {
        let section = sections.debug_abbrev.reader().slice();
        let table = section.get(header.debug_abbrev_offset().0..).unwrap_or_default();
        let key = (table.as_ptr().addr(), table.len());
        if let Some((_, abbreviations)) = self.abbreviations.as_ref().filter(|(last, _)| *last == key) {
            return Ok(abbreviations.clone());
        }
        self.budget.work(table.len())?;
        let abbreviations = sections.abbreviations(header)?;
        self.abbreviations = Some((key, abbreviations.clone()));
        Ok(abbreviations)
    }
}

/// The sections of a `.dwo` file.
fn open(path: &Path, parent: &Dwarf<Bytes>, owned: &mut Vec<Vec<u8>>) -> Option<(Dwarf<Bytes>, Arc<Elf>)> {
    let file = Arc::new(Elf::open_program(path).ok()?);
    let mut sections = Dwarf::load(|section| load_split(&file, section, owned)).ok()?;
    sections.make_dwo(parent);
    Some((sections, file))
}

fn open_package(path: &Path, owned: &mut Vec<Vec<u8>>) -> Option<(DwarfPackage<Bytes>, Arc<Elf>)> {
    let file = Arc::new(Elf::open_program(path).ok()?);
    let empty = EndianSlice::new(&[], LittleEndian);
    let load = |section| load_split(&file, section, owned).map_err(EntryError::from);
    let package = DwarfPackage::load(load, empty).ok()?;
    Some((package, file))
}

fn load_split(file: &Elf, section: SectionId, owned: &mut Vec<Vec<u8>>) -> Result<Bytes, crate::error::Error> {
    match section.dwo_name() {
        Some(name) => load_all(file, name, owned),
        None => Ok(EndianSlice::new(&[], LittleEndian)),
    }
}
