// SPDX-License-Identifier: GPL-2.0-or-later

//! Tables of 32-bit numbers and a heap of strings, in one run of bytes that is used in place: made in memory, or mapped
//! from the cache.
//!
//!     "spile tables 1\n\0"  CRC-32 of the rest  count of tables (u32)
//!     of each table: columns (u32), rows (u32);  then the tables, row by row;  then the strings, to the end
//!
//! All numbers are little-endian. A string is referred to by its offset among the strings, and begins with its length.
//! Reads out of range give 0 or an empty string: numbers from a file are never trusted.

use std::collections::HashMap;
use std::ops::Deref;

use rayon::prelude::*;
use spile_base::cache::Mapped;

const MAGIC: &[u8; 16] = b"spile tables 1\n\0";
/// No more are needed, and billions of empty ones would take too long.
const MAX_TABLES: usize = 64;
const FIXED: usize = MAGIC.len() + 8;

/// The bytes of tables.
#[derive(Debug)]
pub(crate) enum TableBytes {
    Made(Vec<u8>),
    Mapped(Mapped),
}

impl Deref for TableBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            TableBytes::Made(bytes) => bytes,
            TableBytes::Mapped(mapped) => mapped,
        }
    }
}

/// Tables of 32-bit numbers and a heap of strings, checked when they are opened.
#[derive(Debug)]
pub(crate) struct Tables {
    bytes: TableBytes,
    /// Of each table: where it begins, columns, rows.
    tables: Vec<(usize, usize, usize)>,
    texts: usize,
}

/// The tables' bytes column by column, all lowest bytes of a column first: similar bytes are adjacent, which compresses
/// better. `back`: the inverse. Bytes that are not a table stay unchanged.
pub(crate) fn transposed(bytes: &[u8], back: bool) -> Vec<u8> {
    let mut turned = bytes.to_vec();
    let tables = (number(bytes, MAGIC.len() + 4) as usize).min(MAX_TABLES);
    let mut start = FIXED.saturating_add(tables.saturating_mul(8));
    for table in 0..tables {
        let at = FIXED + table * 8;
        let (columns, rows) = (number(bytes, at) as usize, number(bytes, at + 4) as usize);
        let Some(length) = columns.checked_mul(4).and_then(|width| width.checked_mul(rows)) else { break };
        let range = start..start.saturating_add(length);
        let (Some(from), Some(to)) = (bytes.get(range.clone()), turned.get_mut(range)) else { break };
        let width = columns * 4;
        if width > 0 && rows > 0 {
            // A column of bytes is apart in the rows, and together in the other form.
            if back {
                for (column, together) in from.chunks_exact(rows).enumerate() {
                    let apart = to.get_mut(column..).unwrap_or_default().iter_mut().step_by(width);
                    apart.zip(together).for_each(|(place, byte)| *place = *byte);
                }
            } else {
                to.par_chunks_exact_mut(rows).enumerate().for_each(|(column, together)| {
                    let apart = from.get(column..).unwrap_or_default().iter().step_by(width);
                    together.iter_mut().zip(apart).for_each(|(place, byte)| *place = *byte);
                });
            }
        }
        start += length;
    }
    turned
}

/// Whether the bytes are intact tables.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.get(MAGIC.len() + 4..) else { return false };
    bytes.starts_with(MAGIC) && number(bytes, MAGIC.len()) == crc32fast::hash(rest)
}

/// The same of an entry's part, of which few pages are used: each piece of it is given back after the check.
pub(crate) fn is_mapped_whole(mapped: &Mapped) -> bool {
    if !mapped.starts_with(MAGIC) {
        return false;
    }
    let (written, mut found, mut skipped) = (number(mapped, MAGIC.len()), crc32fast::Hasher::new(), MAGIC.len() + 4);
    mapped.each_piece(|piece| {
        found.update(piece.get(skipped.min(piece.len())..).unwrap_or_default());
        skipped = skipped.saturating_sub(piece.len());
    });
    skipped == 0 && written == found.finalize()
}

#[inline]
fn number(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at.saturating_add(4)).and_then(|word| word.try_into().ok());
    word.map_or(0, u32::from_le_bytes)
}

impl Tables {
    /// None: these are other tables. `columns`: the expected number for each table.
    pub fn open(bytes: TableBytes, columns: &[usize]) -> Option<Tables> {
        if number(&bytes, MAGIC.len() + 4) as usize != columns.len() {
            return None;
        }
        let mut tables = Vec::new();
        let mut start = FIXED + columns.len() * 8;
        for (index, expected) in columns.iter().enumerate() {
            let at = FIXED + index * 8;
            let (columns, rows) = (number(&bytes, at) as usize, number(&bytes, at + 4) as usize);
            if columns != *expected {
                return None;
            }
            tables.push((start, columns, rows));
            start = start.checked_add(columns.checked_mul(rows)?.checked_mul(4)?)?;
        }
        (start <= bytes.len()).then_some(Tables { bytes, tables, texts: start })
    }

    /// As they are stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of rows of a table; 0 if there is no such table.
    #[inline]
    pub fn rows(&self, table: usize) -> usize {
        self.tables.get(table).map_or(0, |table| table.2)
    }

    /// A number; 0: there is no such place.
    #[inline]
    pub fn get(&self, table: usize, row: usize, column: usize) -> u32 {
        match self.tables.get(table) {
            Some((start, columns, rows)) if row < *rows && column < *columns => {
                number(&self.bytes, start + (row * columns + column) * 4)
            }
            _ => 0,
        }
    }

    /// The number in two columns, the lower half first.
    #[inline]
    pub fn get_wide(&self, table: usize, row: usize, column: usize) -> u64 {
        if let Some((start, columns, rows)) = self.tables.get(table)
            && row < *rows
            && column + 1 < *columns
        {
            let at = start + (row * columns + column) * 4;
            let word = self.bytes.get(at..at.saturating_add(8)).and_then(|word| word.try_into().ok());
            return word.map_or(0, u64::from_le_bytes);
        }
        u64::from(self.get(table, row, column)) | u64::from(self.get(table, row, column + 1)) << 32
    }

    /// The numbers of each row of a table with that many columns; nothing of another one.
    pub fn all<const COLUMNS: usize>(&self, table: usize) -> impl Iterator<Item = [u32; COLUMNS]> {
        let found = self.tables.get(table).filter(|(_, columns, _)| *columns == COLUMNS);
        let range = found.map_or(0..0, |(start, columns, rows)| *start..start + columns * rows * 4);
        let bytes = self.bytes.get(range).unwrap_or_default();
        bytes.chunks_exact(COLUMNS * 4).map(|row| std::array::from_fn(|column| number(row, column * 4)))
    }

    /// The text stored at that offset; empty: there is none.
    pub fn text(&self, at: u32) -> &[u8] {
        let start = self.texts.saturating_add(at as usize);
        let length = number(&self.bytes, start) as usize;
        self.bytes.get(start.saturating_add(4)..start.saturating_add(4).saturating_add(length)).unwrap_or_default()
    }

    /// The first row for which `before` is false; the table is sorted so that it is true for all rows before that.
    #[inline]
    pub fn first(&self, table: usize, before: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (0, self.rows(table));
        while low < high {
            let middle = low + (high - low) / 2;
            match before(middle) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// Builds tables.
pub(crate) struct Writer<'t> {
    columns: Vec<usize>,
    tables: Vec<Vec<u8>>,
    texts: Vec<u8>,
    /// Offsets of the strings stored so far.
    known: HashMap<&'t [u8], u32, foldhash::fast::RandomState>,
}

impl<'t> Writer<'t> {
    /// Empty tables, with this many columns each.
    pub fn new(columns: &[usize]) -> Writer<'t> {
        Writer {
            columns: columns.to_vec(),
            tables: vec![Vec::new(); columns.len()],
            texts: Vec::new(),
            known: HashMap::default(),
        }
    }

    /// Adds a row, of as many numbers as the table has columns.
    pub fn row(&mut self, table: usize, numbers: &[u32]) {
        if let Some(table) = self.tables.get_mut(table) {
            table.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
    }

    /// Stores a string, once; returns its offset.
    pub fn text(&mut self, text: &'t [u8]) -> u32 {
        let texts = &mut self.texts;
        *self.known.entry(text).or_insert_with(|| {
            let at = texts.len() as u32;
            texts.extend((text.len() as u32).to_le_bytes());
            texts.extend(text);
            at
        })
    }

    /// Number of rows of a table.
    pub fn rows(&self, table: usize) -> u32 {
        let width = self.columns.get(table).map_or(1, |columns| columns * 4);
        self.tables.get(table).map_or(0, |table| table.len() / width) as u32
    }

    /// The bytes, for [`Tables::open`].
    pub fn finish(self) -> Vec<u8> {
        self.filled().finish()
    }

    /// The same, before the bytes are put together: what was put in is no longer needed.
    pub fn filled(self) -> Filled {
        let mut head = (self.columns.len() as u32).to_le_bytes().to_vec();
        for (table, columns) in self.columns.iter().enumerate() {
            head.extend((*columns as u32).to_le_bytes());
            head.extend(self.rows(table).to_le_bytes());
        }
        Filled { head, tables: self.tables, texts: self.texts }
    }
}

/// The parts of finished tables.
pub(crate) struct Filled {
    head: Vec<u8>,
    tables: Vec<Vec<u8>>,
    texts: Vec<u8>,
}

impl Filled {
    /// The bytes, for [`Tables::open`].
    pub fn finish(self) -> Vec<u8> {
        let parts = || [&self.head].into_iter().chain(&self.tables).chain([&self.texts]);
        let mut whole = crc32fast::Hasher::new();
        parts().for_each(|part| whole.update(part));
        let mut bytes = Vec::with_capacity(FIXED + parts().map(Vec::len).sum::<usize>());
        bytes.extend(MAGIC);
        bytes.extend(whole.finalize().to_le_bytes());
        parts().for_each(|part| bytes.extend(part));
        bytes
    }
}

/// The bytes after their checksum.
pub(crate) fn sealed(rest: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(crc32fast::hash(rest).to_le_bytes());
    bytes.extend(rest);
    bytes
}

/// The two halves of a number, as [`Tables::get_wide`] reads them.
pub(crate) fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Vec<u8> {
        let mut writer = Writer::new(&[2, 1]);
        let (a, b) = (writer.text(b"alpha"), writer.text(b"beta"));
        assert_eq!(writer.text(b"alpha"), a);
        writer.row(0, &[a, 1]);
        writer.row(0, &[b, 2]);
        writer.row(1, &[7]);
        writer.finish()
    }

    #[test]
    fn what_is_put_is_found() {
        let bytes = made();
        assert!(is_whole(&bytes));
        let tables = Tables::open(TableBytes::Made(bytes.clone()), &[2, 1]).expect("of two tables");
        assert_eq!((tables.rows(0), tables.rows(1), tables.get(1, 0, 0)), (2, 1, 7));
        assert_eq!(tables.all(0).collect::<Vec<[u32; 2]>>(), [[tables.get(0, 0, 0), 1], [tables.get(0, 1, 0), 2]]);
        assert_eq!((tables.all::<1>(0).count(), tables.all::<1>(7).count()), (0, 0));
        assert_eq!(tables.text(tables.get(0, 1, 0)), b"beta");
        assert_eq!(tables.first(0, |row| tables.get(0, row, 1) < 2), 1);
        assert_eq!((tables.get(0, 9, 0), tables.get(5, 0, 0), tables.text(9999)), (0, 0, &b""[..]));
        assert!(Tables::open(TableBytes::Made(bytes.clone()), &[2]).is_none());
        assert!(Tables::open(TableBytes::Made(bytes), &[2, 2]).is_none());
    }

    #[test]
    fn turned_and_turned_back() {
        let bytes = made();
        let turned = transposed(&bytes, false);
        assert_ne!(turned, bytes);
        assert_eq!(transposed(&turned, true), bytes);
        for at in 0..bytes.len() {
            let mut damaged = turned.clone();
            damaged[at] ^= 0xff;
            assert!(!is_whole(&transposed(&damaged, true)), "{at}");
        }
    }

    #[test]
    fn damage_is_seen_and_does_no_harm() {
        let whole = made();
        for at in 0..whole.len() {
            assert!(!is_whole(&whole[..at]));
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            assert!(!is_whole(&bytes), "{at}");
            if let Some(tables) = Tables::open(TableBytes::Made(bytes), &[2, 1]) {
                (0..4).for_each(|row| drop(tables.text(tables.get(0, row, 0)).to_vec()));
            }
        }
    }
}
