// SPDX-License-Identifier: GPL-2.0-or-later

//! Source lines of a file, from its DWARF or that of its separate debug file. It is read when the first line of a file is
//! asked for, the tables of its units when they are needed. Any user may have written it: what is read and kept is bounded.
//!
//! Only with the feature `source`, which `spile` has; the static `spilerun` has none.

#[cfg(feature = "source")]
pub use dwarf::Lines;
#[cfg(not(feature = "source"))]
pub use none::Lines;

#[cfg(not(feature = "source"))]
mod none {
    use std::path::Path;

    use crate::userspace::image::Image;

    /// None of any file.
    #[derive(Debug, Default)]
    pub struct Lines;

    impl Lines {
        /// Of any file.
        pub fn of(_: &Image, _: &Path) -> Lines {
            Lines
        }

        /// Bytes of memory.
        #[allow(clippy::unused_self, reason = "as the other")]
        pub fn bytes(&self) -> usize {
            0
        }

        /// Not known.
        #[allow(clippy::unused_self, reason = "as the other")]
        pub fn find(&mut self, _: u64) -> Option<(Vec<u8>, u32)> {
            None
        }
    }
}

#[cfg(feature = "source")]
mod dwarf {
    use std::collections::{HashMap, HashSet};
    use std::path::{Path, PathBuf};

    use gimli::{
        AbbreviationsCacheStrategy, AttributeValue, DebugInfoOffset, DebugLineOffset, Dwarf, EndianArcSlice,
        LineProgramHeader, LittleEndian, Reader, Section as _, SectionId, Unit, UnitHeader, UnitType, constants,
    };

    use crate::userspace::image::{Elf, Image};
    use crate::userspace::symbols;

    type Slice = EndianArcSlice<LittleEndian>;

    /// Line information of more bytes than this in a file is not read.
    const MAX_DWARF: usize = 512 << 20;
    /// Nor that of a file with more units and ranges of addresses: all units may have the same list, and each range is kept. Empty
    /// ranges and other entries of the lists count, too.
    const MAX_RANGES: usize = 4 << 20;
    /// Nor with more abbreviations and attributes in all its tables. Tables of different units may overlap, and a table takes
    /// 40 times its bytes of memory. 256 MB of debug information have some 2 million.
    const MAX_ABBREVIATIONS: usize = 4 << 20;
    /// What a unit describes of itself has so many attributes at most, usually 20.
    const MOST_ATTRIBUTES: usize = 256;
    /// Largest table of lines of a unit, in bytes, and its largest header, which has the names of its files; since DWARF 5 only where
    /// they are. Of large units they have some megabytes, and some hundred KB.
    const MAX_PROGRAM: u64 = 32 << 20;
    const MAX_HEADER: u64 = 1 << 20;
    const MAX_HEADER_5: u64 = 512 << 10;
    /// Files and directories in it: a name of one byte takes 130 of memory.
    const MAX_FILES: usize = 64 << 10;
    /// Rows that are made from a table, also those that are dropped again.
    const MAX_ROWS: usize = 4 << 20;
    /// Bytes of tables that are kept; beyond it all are forgotten.
    const MOST_KEPT: usize = 256 << 20;
    /// The tables that are read have at most so many times the bytes of the section, and some more: units may share tables,
    /// and tables overlap.
    const READ_PER_BYTE: u64 = 16;
    const READ_BASE: u64 = 16 << 20;
    /// Longest name of a file that is shown.
    const MAX_NAME: usize = 4096;

    /// Source lines of a file; none if it has no debug information.
    #[derive(Debug, Default)]
    pub struct Lines {
        dwarf: Option<Dwarf<Slice>>,
        /// Of addresses, ascending, with the unit.
        ranges: Vec<(u64, u64, DebugInfoOffset)>,
        /// By its place in the section. `None`: it is damaged, or too large.
        tables: HashMap<usize, Option<LineTable>>,
        /// The unit that was asked for last: its abbreviations may take long.
        root: Option<(DebugInfoOffset, Root)>,
        /// Bytes of tables that may still be read.
        left: u64,
        bytes: usize,
    }

    #[derive(Debug)]
    struct LineTable {
        header: LineProgramHeader<Slice>,
        /// Ascending.
        rows: Vec<Row>,
    }

    impl LineTable {
        fn bytes(&self) -> usize {
            self.rows.capacity() * size_of::<Row>()
                + size_of_val(self.header.file_names())
                + size_of_val(self.header.include_directories())
        }
    }

    /// Valid up to the next one.
    #[derive(Clone, Copy, Debug)]
    struct Row {
        address: u64,
        file: u32,
        /// 0: none.
        line: u32,
    }

    impl Lines {
        /// Of the file at this path, or of its debug file.
        pub fn of(image: &Image, path: &Path) -> Lines {
            let own = image.with(lines).flatten();
            let lines = own.or_else(|| {
                let file = image.with(|elf| symbols::debug_file(elf, path)).flatten()?;
                Image::of(file).with(lines).flatten()
            });
            lines.unwrap_or_default()
        }

        /// `None`: it is damaged, or too large.
        fn from(mut dwarf: Dwarf<Slice>, bytes: usize) -> Option<Lines> {
            let abbreviations = abbreviations(&dwarf)?;
            dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
            let ranges = ranges(&dwarf, MAX_RANGES)?;
            let left = (dwarf.debug_line.reader().len() as u64).saturating_mul(READ_PER_BYTE).saturating_add(READ_BASE);
            let bytes =
                bytes + abbreviations * size_of::<gimli::Abbreviation>() + ranges.len() * size_of_val(ranges.first()?);
            Some(Lines { dwarf: Some(dwarf), ranges, tables: HashMap::new(), root: None, left, bytes })
        }

        /// What it takes of the memory: the debug information, and the tables that have been read.
        pub fn bytes(&self) -> usize {
            self.bytes + self.tables.values().flatten().map(LineTable::bytes).sum::<usize>()
        }

        /// File and line of the code at the address, as in the file.
        pub fn find(&mut self, address: u64) -> Option<(Vec<u8>, u32)> {
            /// Ranges of different units that begin before the address, and may contain it.
            const NESTED: usize = 16;
            let behind = self.ranges.partition_point(|(begin, ..)| *begin <= address);
            let before = self.ranges.get(..behind)?;
            let (.., unit) = *before.iter().rev().take(NESTED).find(|(_, end, _)| address < *end)?;
            let dwarf = self.dwarf.as_ref()?;
            if self.root.as_ref().is_none_or(|(known, _)| *known != unit) {
                self.root = Some((unit, Root::of(dwarf, dwarf.unit_header(unit).ok()?)?));
            }
            let (_, unit) = self.root.as_ref()?;
            let at = unit.lines?;
            if self.bytes() > self.bytes + MOST_KEPT {
                self.tables.clear();
            }
            let left = &mut self.left;
            let table = self.tables.entry(at.0).or_insert_with(|| table(dwarf, unit, at, left)).as_ref()?;
            let behind = table.rows.partition_point(|row| row.address <= address);
            let row = table.rows.get(behind.checked_sub(1)?)?;
            Some((unit.name_of(dwarf, &table.header, row.file)?, std::num::NonZero::new(row.line)?.get()))
        }
    }

    /// Their number; `None`: there are too many.
    fn abbreviations(dwarf: &Dwarf<Slice>) -> Option<usize> {
        let (mut left, mut known, mut units) = (MAX_ABBREVIATIONS, HashSet::new(), dwarf.units());
        // What follows a damaged unit is not read.
        while let Ok(Some(header)) = units.next() {
            let at = header.debug_abbrev_offset().0;
            if known.insert(at) {
                let mut table = dwarf.debug_abbrev.reader().clone();
                if table.skip(at).is_ok() {
                    count(&mut table, &mut left)?;
                }
            }
        }
        Some(MAX_ABBREVIATIONS - left)
    }

    /// Counts those of a table up to its end, or to where it is damaged. `None`: there are more than are left.
    fn count(table: &mut Slice, left: &mut usize) -> Option<()> {
        let mut charge = || {
            *left = left.checked_sub(1)?;
            Some(())
        };
        while table.read_uleb128().is_ok_and(|code| code != 0) {
            charge()?;
            let (_tag, _has_children) = (table.read_uleb128(), table.read_u8());
            let mut attributes = 0;
            while let (Ok(name), Ok(form)) = (table.read_uleb128(), table.read_uleb128())
                && (name, form) != (0, 0)
            {
                charge()?;
                attributes += 1;
                if attributes > MOST_ATTRIBUTES {
                    return None;
                }
                if form == u64::from(constants::DW_FORM_implicit_const.0) {
                    let _value = table.read_sleb128();
                }
            }
        }
        Some(())
    }

    /// Of all units, sorted; `None`: there are too many.
    fn ranges(dwarf: &Dwarf<Slice>, most: usize) -> Option<Vec<(u64, u64, DebugInfoOffset)>> {
        let (mut found, mut units, mut left) = (Vec::new(), dwarf.units(), most);
        while let Ok(Some(header)) = units.next() {
            left = left.checked_sub(1)?;
            let has_code = matches!(header.type_(), UnitType::Compilation | UnitType::Skeleton(_));
            let Some(at) = header.debug_info_offset().filter(|_| has_code) else { continue };
            // Those that cannot be read are passed over.
            let Some(unit) = Root::of(dwarf, header) else { continue };
            let mut add = |begin, end| {
                if begin < end {
                    found.push((begin, end, at));
                }
            };
            if let Some(list) = unit.ranges {
                let Ok(Some(mut list)) = dwarf.attr_ranges(&unit.unit, list) else { continue };
                // The iterator itself passes over empty ones, however many there are.
                while let Ok(Some(raw)) = list.next_raw() {
                    left = left.checked_sub(1)?;
                    let Ok(range) = list.convert_raw(raw) else { break };
                    if let Some(range) = range {
                        add(range.begin, range.end);
                    }
                }
            } else if let Some((begin, end)) = unit.range {
                add(begin, end);
            }
        }
        found.sort_unstable();
        Some(found)
    }

    /// What a unit says of itself. By hand: [`Unit::new`] reads its strings and the header of its table too, which may be of any
    /// length, and the same for all units.
    #[derive(Debug)]
    struct Root {
        unit: Unit<Slice>,
        directory: Option<AttributeValue<Slice>>,
        lines: Option<DebugLineOffset>,
        ranges: Option<AttributeValue<Slice>>,
        range: Option<(u64, u64)>,
    }

    impl Root {
        fn of(dwarf: &Dwarf<Slice>, header: UnitHeader<Slice>) -> Option<Root> {
            let (encoding, kind) = (header.encoding(), dwarf.file_type);
            let unit = Unit {
                abbreviations: dwarf.abbreviations(&header).ok()?,
                name: None,
                comp_dir: None,
                low_pc: 0,
                str_offsets_base: gimli::DebugStrOffsetsBase::default_for_encoding_and_file(encoding, kind),
                addr_base: gimli::DebugAddrBase(0),
                loclists_base: gimli::DebugLocListsBase::default_for_encoding_and_file(encoding, kind),
                rnglists_base: gimli::DebugRngListsBase::default_for_encoding_and_file(encoding, kind),
                line_program: None,
                dwo_id: None,
                header,
            };
            let mut root = Root { unit, directory: None, lines: None, ranges: None, range: None };
            let abbreviations = root.unit.abbreviations.clone();
            let header = root.unit.header.clone();
            let mut cursor = header.entries(&abbreviations);
            cursor.next_dfs().ok()?;
            let (mut low, mut high) = (None, None);
            for attribute in cursor.current()?.attrs() {
                let value = attribute.value();
                match (attribute.name(), value) {
                    (constants::DW_AT_comp_dir, value) => root.directory = Some(value),
                    (constants::DW_AT_stmt_list, AttributeValue::DebugLineRef(at)) => root.lines = Some(at),
                    (constants::DW_AT_low_pc, value) => low = Some(value),
                    (constants::DW_AT_high_pc, value) => high = Some(value),
                    (constants::DW_AT_ranges, value) => root.ranges = Some(value),
                    (_, AttributeValue::DebugStrOffsetsBase(base)) => root.unit.str_offsets_base = base,
                    (_, AttributeValue::DebugAddrBase(base)) => root.unit.addr_base = base,
                    (_, AttributeValue::DebugRngListsBase(base)) => root.unit.rnglists_base = base,
                    _ => {}
                }
            }
            let address = |value| dwarf.attr_address(&root.unit, value).ok().flatten();
            if let Some(low) = low.and_then(address) {
                let end = match high {
                    Some(AttributeValue::Udata(length)) => low.checked_add(length),
                    high => high.and_then(address),
                };
                root.range = end.map(|end| (low, end));
                root.unit.low_pc = low;
            }
            Some(root)
        }

        /// The text of an attribute, or more than that; at most so many bytes as a name has. Nothing is looked at.
        fn text(&self, dwarf: &Dwarf<Slice>, value: AttributeValue<Slice>) -> Option<Vec<u8>> {
            let (section, at) = match value {
                AttributeValue::DebugStrRef(at) => (dwarf.debug_str.reader(), at.0),
                AttributeValue::DebugLineStrRef(at) => (dwarf.debug_line_str.reader(), at.0),
                AttributeValue::DebugStrOffsetsIndex(index) => {
                    (dwarf.debug_str.reader(), dwarf.string_offset(&self.unit, index).ok()?.0)
                }
                AttributeValue::String(text) => return Some(text.bytes().iter().take(MAX_NAME).copied().collect()),
                _ => return None,
            };
            Some(section.bytes().get(at..)?.iter().take(MAX_NAME).copied().collect())
        }

        /// The path of a file of its table.
        fn name_of(&self, dwarf: &Dwarf<Slice>, header: &LineProgramHeader<Slice>, file: u32) -> Option<Vec<u8>> {
            use std::os::unix::ffi::{OsStrExt, OsStringExt};
            let text = |value| {
                let text = self.text(dwarf, value)?;
                Some(PathBuf::from(std::ffi::OsStr::from_bytes(text.split(|byte| *byte == 0).next()?)))
            };
            let file = header.file(file.into())?;
            // A directory of 0 is that of the unit.
            let inner = file.directory(header).filter(|_| file.directory_index() != 0).and_then(text);
            let outer = self.directory.clone().and_then(text);
            let parts = [outer, inner, text(file.path_name())];
            let path: PathBuf = parts.into_iter().flatten().filter(|part| !part.as_os_str().is_empty()).collect();
            let mut name = path.into_os_string().into_vec();
            name.truncate(MAX_NAME);
            Some(name)
        }
    }

    /// Reads the table of lines; `None`: it is damaged, or too large.
    fn table(dwarf: &Dwarf<Slice>, unit: &Root, at: DebugLineOffset, left: &mut u64) -> Option<LineTable> {
        // DWARF, "Line Number Program Header": the lengths of all, and of the header.
        let mut words = dwarf.debug_line.reader().clone();
        words.skip(at.0).ok()?;
        let (length, format) = words.read_initial_length().ok()?;
        let length = length as u64;
        *left = left.checked_sub(length).filter(|_| length <= MAX_PROGRAM)?;
        let version = words.read_u16().ok()?;
        // Sizes of addresses and of segment selectors.
        words.skip(if version >= 5 { 2 } else { 0 }).ok()?;
        let most = if version >= 5 { MAX_HEADER_5 } else { MAX_HEADER };
        words.read_length(format).ok().filter(|header| *header as u64 <= most)?;
        let program = dwarf.debug_line.program(at, unit.unit.header.address_size(), None, None).ok()?;
        let header = program.header();
        (header.file_names().len() + header.include_directories().len() <= MAX_FILES).then_some(())?;
        let (mut rows, mut all) = (program.rows(), Vec::<Row>::new());
        // Of the sequence of instructions.
        let (mut first, mut left) = (0, MAX_ROWS);
        while let Ok(Some((_, row))) = rows.next_row() {
            left = left.checked_sub(1)?;
            let address = row.address();
            let file = u32::try_from(row.file_index()).unwrap_or(u32::MAX);
            if !row.end_sequence() {
                all.push(Row { address, file, line: row.line().map_or(0, |line| line.get() as u32) });
                continue;
            }
            // Rows at its end have no code. One without code may be that of a function which the linker has left out.
            let ends = all.get(first).is_none_or(|first| first.address >= address);
            let empty = all.iter().skip(first).rev().take_while(|row| row.address >= address).count();
            all.truncate(if ends { first } else { all.len() - empty });
            if !ends {
                all.push(Row { address, file, line: 0 });
            }
            first = all.len();
        }
        all.truncate(first);
        all.shrink_to_fit();
        // The end of a sequence is before the begin of another one there. Of others at an address the last one counts.
        all.sort_by_key(|row| (row.address, row.line != 0));
        Some(LineTable { header: rows.header().clone(), rows: all })
    }

    fn lines(elf: &dyn Elf) -> Option<Lines> {
        elf.section(".debug_info")?;
        let mut left = MAX_DWARF;
        let load = |id: SectionId| -> Result<Slice, gimli::Error> {
            let data = elf
                .section(id.name())
                .map(|section| section.data)
                .filter(|data| data.len() <= left)
                .unwrap_or_default();
            left -= data.len();
            Ok(EndianArcSlice::new(data.into(), LittleEndian))
        };
        let dwarf = Dwarf::load(load).ok()?;
        Lines::from(dwarf, MAX_DWARF - left)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn dwarf(sections: &[(SectionId, Vec<u8>)]) -> Dwarf<Slice> {
            let load = |id: SectionId| -> Result<Slice, gimli::Error> {
                let data = sections.iter().find(|(name, _)| *name == id).map(|(_, data)| data.clone());
                Ok(EndianArcSlice::new(data.unwrap_or_default().into(), LittleEndian))
            };
            Dwarf::load(load).unwrap()
        }

        /// A unit of DWARF 4 with the table of abbreviations at this place, and what follows its header.
        fn unit(table: u32, rest: &[u8]) -> Vec<u8> {
            let length = 7 + rest.len() as u32;
            [&length.to_le_bytes()[..], &4_u16.to_le_bytes(), &table.to_le_bytes(), &[8], rest].concat()
        }

        /// So many units that share one list of so many ranges of so many bytes.
        fn units_with_one_list(units: usize, ranges: u64, bytes: u64) -> Dwarf<Slice> {
            // DW_TAG_compile_unit without children, DW_AT_ranges as DW_FORM_sec_offset.
            let abbreviations = vec![1, 0x11, 0, 0x55, 0x17, 0, 0, 0];
            let list = (1..=ranges).flat_map(|at| [at << 4, (at << 4) + bytes]).chain([0, 0]);
            let list: Vec<u8> = list.flat_map(u64::to_le_bytes).collect();
            let units = unit(0, &[1, 0, 0, 0, 0]).repeat(units);
            dwarf(&[
                (SectionId::DebugAbbrev, abbreviations),
                (SectionId::DebugInfo, units),
                (SectionId::DebugRanges, list),
            ])
        }

        #[test]
        fn ranges_that_units_share_count_for_each() {
            assert_eq!(ranges(&units_with_one_list(3, 5, 8), 18).map(|ranges| ranges.len()), Some(15));
            assert_eq!(ranges(&units_with_one_list(3, 5, 8), 17), None);
        }

        #[test]
        fn empty_ranges_that_units_share_count_for_each() {
            assert_eq!(ranges(&units_with_one_list(3, 5, 0), 18).map(|ranges| ranges.len()), Some(0));
            assert_eq!(ranges(&units_with_one_list(3, 5, 0), 17), None);
            // To look at all of them would take hours.
            assert_eq!(ranges(&units_with_one_list(100_000, 100_000, 0), MAX_RANGES), None);
        }

        #[test]
        fn tables_of_abbreviations_may_be_shared_but_not_overlap() {
            // DW_TAG_compile_unit without attributes, numbers 1 to 63: 5 bytes each.
            let table: Vec<u8> =
                (0..20_000_u32).flat_map(|at| [1 + (at % 63) as u8, 0x11, 0, 0, 0]).chain([0]).collect();
            let of = |units: Vec<u8>| dwarf(&[(SectionId::DebugAbbrev, table.clone()), (SectionId::DebugInfo, units)]);
            let shared = of(unit(0, &[1]).repeat(4000));
            assert_eq!(abbreviations(&shared), Some(20_000));
            let overlapping = of((0..2000).flat_map(|at| unit(5 * at, &[1])).collect());
            assert_eq!(abbreviations(&overlapping), None);
        }

        #[test]
        fn a_table_that_units_share_is_parsed_once() {
            let lines = Lines::from(units_with_one_list(1000, 1, 8), 0).unwrap();
            let dwarf = lines.dwarf.unwrap();
            let (mut units, mut tables) = (dwarf.units(), Vec::new());
            while let Some(header) = units.next().unwrap() {
                tables.push(dwarf.abbreviations(&header).unwrap());
            }
            let first = tables.first().unwrap();
            assert!(tables.len() == 1000 && tables.iter().all(|table| std::sync::Arc::ptr_eq(first, table)));
        }

        /// A table of DWARF 4 of so many files with names of one letter, with a row for 0x1000, line 7, of the first.
        fn one_row(files: usize) -> Vec<u8> {
            let names = [&b"dir\0\0"[..], &b"a\0\x01\0\0".repeat(files), &[0]].concat();
            // Lengths of instructions, default_is_stmt, line_base (-5), line_range, opcode_base.
            let header = [&[1, 1, 1, 0xfb, 14, 1][..], &names].concat();
            // DW_LNE_set_address, special opcodes (6 lines on; 14 bytes on), DW_LNE_end_sequence.
            let address = [&[0, 9, 2][..], &0x1000_u64.to_le_bytes()].concat();
            let program = [&address[..], &[6 + 5 + 1, 5 + 14 * 14 + 1], &[0, 1, 1]].concat();
            let rest = [&(header.len() as u32).to_le_bytes()[..], &header, &program].concat();
            [&(2 + rest.len() as u32).to_le_bytes()[..], &4_u16.to_le_bytes(), &rest].concat()
        }

        /// A unit for 0x1000 to 0x1010 in a directory with a name of so many bytes.
        fn in_directory(bytes: usize, table: Vec<u8>) -> Dwarf<Slice> {
            // DW_AT_comp_dir as DW_FORM_strp, DW_AT_low_pc, DW_AT_high_pc as DW_FORM_data1, DW_AT_stmt_list.
            let abbreviations = vec![1, 0x11, 0, 0x1b, 0x0e, 0x11, 0x01, 0x12, 0x0b, 0x10, 0x17, 0, 0, 0];
            let values = [&[1, 0, 0, 0, 0][..], &0x1000_u64.to_le_bytes(), &[0x10], &[0; 4]].concat();
            let text = [&b"/"[..], &vec![b'd'; bytes - 1], &[0]].concat();
            dwarf(&[
                (SectionId::DebugAbbrev, abbreviations),
                (SectionId::DebugInfo, unit(0, &values)),
                (SectionId::DebugStr, text),
                (SectionId::DebugLine, table),
            ])
        }

        #[test]
        fn a_name_is_made_when_it_is_asked_for_and_is_bounded() {
            let mut lines = Lines::from(in_directory(4, one_row(1)), 0).unwrap();
            assert_eq!(lines.find(0x1004), Some((b"/ddd/dir/a".to_vec(), 7)));
            assert_eq!([0xfff, 0x100e, 0x1010].map(|address| lines.find(address)), [None, None, None]);
            let mut lines = Lines::from(in_directory(1 << 20, one_row(10_000)), 0).unwrap();
            assert_eq!(lines.find(0x1004).unwrap().0.len(), MAX_NAME);
            let mut lines = Lines::from(in_directory(4, one_row(1 << 20)), 0).unwrap();
            assert_eq!(lines.find(0x1004), None, "a header of 5 MB");
            let mut lines = Lines::from(in_directory(4, one_row(MAX_FILES + 1)), 0).unwrap();
            assert_eq!(lines.find(0x1004), None, "a header of many files");
        }

        /// A table of DWARF 4 with one file and so many rows for 0x1000, with or without code in the last one.
        fn many_rows(rows: usize, has_code: bool) -> Vec<u8> {
            let mut table = one_row(1);
            let program = table.len() - 5;
            // The special opcode that advances neither the address nor the line.
            let more = vec![6; rows];
            table.splice(program..program + usize::from(!has_code) * 2, more);
            let length = table.len() as u32 - 4;
            table.splice(0..4, length.to_le_bytes());
            table
        }

        #[test]
        fn rows_that_are_dropped_take_no_memory() {
            let find = |table| {
                let mut lines = Lines::from(in_directory(4, table), 0).unwrap();
                let found = lines.find(0x1004).map(|(_, line)| line);
                let bytes = lines.bytes() - lines.bytes;
                let room = lines.tables.values().flatten().map(|table| table.rows.capacity() * size_of::<Row>()).sum();
                (found, bytes, room)
            };
            let (found, bytes, room): (_, _, usize) = find(many_rows(1 << 20, false));
            assert_eq!(found, None, "no row has code");
            assert!(room < 1 << 10 && bytes < 1 << 10, "{bytes}, {room}");
            let (found, bytes, room) = find(many_rows(1000, true));
            assert!(found.is_some() && room > 16_000 && bytes >= room, "{bytes}, {room}");
            let (found, bytes, room) = find(many_rows(MAX_ROWS, true));
            assert_eq!((found, bytes, room), (None, 0, 0), "more rows than are made");
        }

        #[test]
        fn names_of_one_byte_are_counted_one_by_one() {
            // DWARF 5: sizes of addresses and selectors, then as before; directories and files have only DW_LNCT_path, as DW_FORM_udata.
            let names = [&[1, 1, 0x0f, 0][..], &[1, 1, 0x0f, 0xa0, 0x8d, 0x06], &[0; 100_000]].concat();
            let header = [&[1, 1, 1, 0xfb, 14, 1][..], &names].concat();
            let rest = [&(header.len() as u32).to_le_bytes()[..], &header].concat();
            let table = [&(4 + rest.len() as u32).to_le_bytes()[..], &5_u16.to_le_bytes(), &[8, 0], &rest].concat();
            let dwarf = in_directory(4, table);
            let program = dwarf.debug_line.program(DebugLineOffset(0), 8, None, None).unwrap();
            assert_eq!(program.header().file_names().len(), 100_000);
            let mut lines = Lines::from(dwarf, 0).unwrap();
            assert_eq!((lines.find(0x1004), lines.bytes() - lines.bytes), (None, 0));
        }
    }
}

#[cfg(all(test, feature = "source"))]
mod tests {
    use super::*;
    use crate::userspace::image::Image;
    use std::fs::File;
    use std::path::Path;

    #[test]
    fn a_function_has_a_line() {
        let image = Image::of(File::open("/proc/self/exe").unwrap());
        let mut lines = Lines::of(&image, Path::new("/proc/self/exe"));
        // Of a crate that has line tables in every profile (Cargo.toml); its mangled name.
        assert_eq!(spile_abi::escape::json("\n"), "\\u000a");
        let name = b"6escape4json";
        let symbols = image.with(|elf| elf.symbols(false)).unwrap();
        let found = symbols.iter().find(|symbol| symbol.name.windows(name.len()).any(|part| part == name)).unwrap();
        let (file, line) = lines.find(found.address).unwrap();
        assert!(file.ends_with(b"escape.rs") && line > 0, "{}:{line}", file.escape_ascii());
    }
}
