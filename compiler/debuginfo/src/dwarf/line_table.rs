// SPDX-License-Identifier: GPL-2.0-or-later

//! File and line of every address of an object's code, packed into the module that a script becomes and searched there
//! (`runtime-c/lines.c` reads it, and describes the same bytes).
//!
//!     base (u64)  counts of symbols, blocks, files and bytes of rows (u32 each)
//!     symbols: hash of the name, where it begins;  blocks: where the first row begins, where its bytes begin among the rows
//!     files: where the name begins among the names;  rows;  names, each with a NUL
//!
//! All numbers are little-endian; addresses are offsets from `base`. A row is a variable-length number (seven bits a byte,
//! lowest first) with the distance from the start of the previous row, then a second one: the difference of the lines as a
//! zigzag number, shifted over one bit that says whether a new file number follows. The first row of a block is relative to
//! file 0, line 0. Line 0 means no line: a gap, or the end.

use std::collections::HashMap;

use rayon::prelude::*;

use super::Dwarf;
use super::lines::{LineTables, Row, TableId, read_rows};
use crate::error::Error;
use crate::stored;
use crate::tables::{Tables, Writer};

/// Rows of a block, which one search reads sequentially.
const BLOCK: usize = 64;

const WHAT: &str = "line table";
/// One row, with the range of its bytes among the strings.
const COLUMNS: [usize; 1] = [1];

/// An address at which another line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    at: u64,
    file: u32,
    line: u32,
}

impl Dwarf {
    /// The packed table, from the cache or else made and stored there.
    pub(super) fn packed_lines(&self) -> Result<Vec<u8>, Error> {
        if let Some(tables) =
            stored::find(&self.elf, self.cache.as_deref(), WHAT).and_then(|bytes| Tables::open(bytes, &COLUMNS))
        {
            return Ok(tables.text(tables.get(0, 0, 0)).to_vec());
        }
        let table = self.make_line_table()?;
        let mut writer = Writer::new(&COLUMNS);
        let at = writer.text(&table);
        writer.row(0, &[at]);
        stored::keep(&self.elf, self.cache.as_deref(), WHAT, &writer.finish());
        Ok(table)
    }

    fn make_line_table(&self) -> Result<Vec<u8>, Error> {
        let of_units: Vec<(Vec<Row>, HashMap<u64, String>)> =
            self.units_with_lines().into_par_iter().map(|slot| self.rows_of(slot)).collect();
        let mut files: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut rows: Vec<(u64, u64, u32, u32)> = Vec::new();
        for (unit, names) in of_units {
            // Sorted: the same debug information gives the same table.
            let mut names: Vec<(u64, String)> = names.into_iter().collect();
            names.sort_unstable();
            let names: HashMap<u64, u32> = names
                .into_iter()
                .map(|(file, name)| {
                    let number = *numbers.entry(name).or_insert_with_key(|name| {
                        files.push(name.clone());
                        files.len() as u32 - 1
                    });
                    (file, number)
                })
                .collect();
            rows.extend(
                unit.iter().filter_map(|row| Some((row.range.start, row.range.end, *names.get(&row.file)?, row.line))),
            );
        }
        rows.par_sort_unstable();
        let starts = starts(&rows);
        let base = starts.first().map_or(0, |start| start.at);
        // Symbols are needed where the code may be placed anywhere: in modules.
        let mut symbols: Vec<(u32, u32)> = Vec::new();
        if self.elf.is_relocatable() {
            let all = self.elf.all_symbols()?.filter(|symbol| symbol.function && !symbol.name.is_empty());
            symbols.extend(all.filter_map(|symbol| {
                Some((hash(symbol.name.as_bytes()), u32::try_from(symbol.at.checked_sub(base)?).ok()?))
            }));
            symbols.sort_unstable();
            symbols.dedup();
            let pairs = symbols.iter().zip(symbols.iter().skip(1));
            let unclear: Vec<u32> = pairs.filter(|(one, next)| one.0 == next.0).map(|(one, _)| one.0).collect();
            symbols.retain(|symbol| unclear.binary_search(&symbol.0).is_err());
        }
        Ok(packed(base, &starts, &files, &symbols))
    }

    /// The first unit of each line table, in their order. Those that cannot be read have none.
    fn units_with_lines(&self) -> Vec<usize> {
        let units = 0..self.store.slots.len();
        let tables: Vec<_> =
            units.into_par_iter().map(|slot| self.store.unit(slot).ok().and_then(TableId::of)).collect();
        let mut known = LineTables::default();
        let is_new = |table: &Option<_>| table.is_some_and(|table| known.add(&self.store, table));
        tables.iter().map(is_new).enumerate().filter_map(|(slot, is_new)| is_new.then_some(slot)).collect()
    }

    /// The unit's rows that cover code, and the names of their files.
    fn rows_of(&self, slot: usize) -> (Vec<Row>, HashMap<u64, String>) {
        // A unit that cannot be read has no lines.
        let Ok(unit) = self.store.unit(slot) else { return Default::default() };
        let mut rows = read_rows(unit);
        rows.retain(|row| row.range.start < row.range.end && self.elf.is_code(row.range.start));
        let mut names = HashMap::new();
        for row in &rows {
            names.entry(row.file).or_insert_with(|| self.store.file_name(unit, row.file).unwrap_or_default());
        }
        (rows, names)
    }
}

/// The addresses at which lines begin; `rows` are (start, end, file, line), sorted.
fn starts(rows: &[(u64, u64, u32, u32)]) -> Vec<Start> {
    let mut starts: Vec<Start> = Vec::new();
    let mut end = None;
    let mut push = |start: Start| {
        if starts.last().is_some_and(|before| before.at == start.at) {
            starts.pop();
        }
        if starts.last().is_none_or(|before| (before.file, before.line) != (start.file, start.line)) {
            starts.push(start);
        }
    };
    for (from, to, file, line) in rows {
        if let Some(end) = end.filter(|end| end < from) {
            push(Start { at: end, file: 0, line: 0 });
        }
        push(Start { at: *from, file: *file, line: *line });
        end = end.max(Some(*to));
    }
    if let Some(end) = end {
        push(Start { at: end, file: 0, line: 0 });
    }
    starts
}

fn packed(base: u64, starts: &[Start], files: &[String], symbols: &[(u32, u32)]) -> Vec<u8> {
    let mut rows: Vec<u8> = Vec::new();
    let mut blocks: Vec<u32> = Vec::new();
    let reachable = starts.iter().filter(|start| start.at - base <= u64::from(u32::MAX)).collect::<Vec<_>>();
    for block in reachable.chunks(BLOCK) {
        let Some(first) = block.first() else { continue };
        blocks.extend([(first.at - base) as u32, rows.len() as u32]);
        let mut before = Start { at: first.at, file: 0, line: 0 };
        for start in block {
            number(&mut rows, start.at - before.at);
            let further = i64::from(start.line) - i64::from(before.line);
            let zigzag = ((further << 1) ^ (further >> 63)) as u64;
            number(&mut rows, zigzag << 1 | u64::from(start.file != before.file));
            if start.file != before.file {
                number(&mut rows, u64::from(start.file));
            }
            before = **start;
        }
    }
    let mut names: Vec<u8> = Vec::new();
    let mut places: Vec<u32> = Vec::new();
    for file in files {
        places.push(names.len() as u32);
        names.extend(file.bytes().filter(|byte| *byte != 0));
        names.push(0);
    }
    let mut bytes = base.to_le_bytes().to_vec();
    let counts = [symbols.len() as u32, blocks.len() as u32 / 2, places.len() as u32, rows.len() as u32];
    let numbers =
        counts.into_iter().chain(symbols.iter().flat_map(|(name, at)| [*name, *at])).chain(blocks).chain(places);
    bytes.extend(numbers.flat_map(u32::to_le_bytes));
    bytes.extend(rows);
    bytes.extend(names);
    bytes
}

fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// FNV-1a of 32 bits, as in `runtime-c/lines.c`.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the runtime does: looks up file and line of an address.
    fn find(bytes: &[u8], at: u32) -> Option<(String, u32)> {
        let word = |index: usize| u32::from_le_bytes(bytes[index * 4..index * 4 + 4].try_into().unwrap());
        let (symbols, blocks, files) = (word(2) as usize, word(3) as usize, word(4) as usize);
        let (first_block, first_file) = (6 + symbols * 2, 6 + symbols * 2 + blocks * 2);
        let rows = (first_file + files) * 4;
        let block = (0..blocks).rfind(|block| word(first_block + block * 2) <= at)?;
        let end = if block + 1 < blocks { word(first_block + block * 2 + 3) } else { word(5) } as usize;
        let mut next = rows + word(first_block + block * 2 + 1) as usize;
        let mut number = || {
            let (mut value, mut shift) = (0u64, 0);
            loop {
                let byte = bytes[next];
                next += 1;
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return (value, next);
                }
            }
        };
        let (mut place, mut file, mut line, mut found) = (u64::from(word(first_block + block * 2)), 0, 0i64, None);
        loop {
            place += number().0;
            if place > u64::from(at) {
                break;
            }
            let (step, mut after) = number();
            if step & 1 != 0 {
                (file, after) = number();
            }
            line += ((step >> 2) as i64) ^ -((step >> 1 & 1) as i64);
            found = Some((file, line));
            if after >= rows + end {
                break;
            }
        }
        let (file, line) = found.filter(|(_, line)| *line > 0)?;
        let name = rows + word(5) as usize + word(first_file + file as usize) as usize;
        let name = bytes[name..].split(|byte| *byte == 0).next()?;
        Some((String::from_utf8_lossy(name).into_owned(), line as u32))
    }

    #[test]
    fn every_row_is_found_again() {
        let files = ["a.c".to_string(), "include/b.h".to_string()];
        let rows: Vec<(u64, u64, u32, u32)> = (0..1000u64)
            .map(|n| (0x1000 + n * 3, 0x1000 + n * 3 + 2 + n % 2, (n / 7 % 2) as u32, (1 + n * 7919 % 5000) as u32))
            .collect();
        let bytes = packed(0x1000, &starts(&rows), &files, &[]);
        for (from, to, file, line) in rows {
            for at in from..to {
                assert_eq!(find(&bytes, (at - 0x1000) as u32), Some((files[file as usize].clone(), line)), "{at:#x}");
            }
        }
        // A gap after each row of even number, and nothing behind the last.
        assert_eq!(find(&bytes, 2), None);
        assert_eq!(find(&bytes, 1_000_000), None);
    }

    #[test]
    fn what_goes_on_is_one_row() {
        let starts = starts(&[(0, 4, 0, 7), (4, 8, 0, 7), (8, 9, 0, 8)]);
        assert_eq!(starts.iter().map(|start| (start.at, start.line)).collect::<Vec<_>>(), [(0, 7), (8, 8), (9, 0)]);
    }
}
