// SPDX-License-Identifier: GPL-2.0-or-later

//! The symbols of one file by address and by name, as tables: made in memory, or mapped from the cache.

use object::SymbolFlags;
use object::elf::STT_GNU_IFUNC;
use rayon::prelude::*;

use crate::tables::{TableBytes, Tables, Writer, halves};

/// Address and size (two columns each), where the name begins in the file, its length, flags; by address, then name.
const ROWS: usize = 0;
/// Hash of a name, row; by hash.
const NAMES: usize = 1;
const COLUMNS: [usize; 2] = [7, 2];

const GLOBAL: u32 = 1;
const FUNCTION: u32 = 2;
const INDIRECT: u32 = 4;

/// A symbol, with its name as start and length in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Link-time address.
    pub at: u64,
    /// Size in bytes; 0 if it is not known.
    pub size: u64,
    /// Start and length of the name in the file.
    pub name: (u32, u32),
    /// Other files can refer to it.
    pub global: bool,
    /// It is a function.
    pub function: bool,
    /// It is an indirect function: its code says where the function is.
    pub indirect: bool,
}

/// Whether a symbol is that of an indirect function.
pub(super) fn is_indirect<'d>(symbol: &impl object::ObjectSymbol<'d>) -> bool {
    matches!(symbol.flags(), SymbolFlags::Elf { st_info, .. } if st_info.st_type() == STT_GNU_IFUNC)
}

/// The symbols, in order.
#[derive(Debug)]
pub(super) struct SymbolTable(Tables);

impl SymbolTable {
    /// Of these rows, in any order; `name`: the bytes of a row's name. None: there are more than tables can have.
    pub fn make<'n>(mut rows: Vec<Row>, name: impl Fn(&Row) -> &'n [u8] + Sync) -> Option<SymbolTable> {
        rows.par_sort_unstable_by(|a, b| a.at.cmp(&b.at).then_with(|| name(a).cmp(name(b))));
        let mut names: Vec<(u32, u32)> =
            rows.par_iter().enumerate().map(|(at, row)| (hash(name(row)), at as u32)).collect();
        names.par_sort_unstable();
        let mut writer = Writer::new(&COLUMNS);
        for row in &rows {
            let ([at, high], [size, large]) = (halves(row.at), halves(row.size));
            let flags = if row.global { GLOBAL } else { 0 } | if row.function { FUNCTION } else { 0 };
            let flags = flags | if row.indirect { INDIRECT } else { 0 };
            writer.row(ROWS, &[at, high, size, large, row.name.0, row.name.1, flags]);
        }
        names.iter().for_each(|(hash, row)| writer.row(NAMES, &[*hash, *row]));
        SymbolTable::of(TableBytes::Made(writer.finish()))
    }

    /// None: these are not tables of symbols.
    pub fn of(bytes: TableBytes) -> Option<SymbolTable> {
        Tables::open(bytes, &COLUMNS).map(SymbolTable)
    }

    /// The tables, to be stored.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The number of symbols.
    pub fn count(&self) -> usize {
        self.0.rows(ROWS)
    }

    /// The symbol of that number, by address; out of range one without a name.
    pub fn row(&self, row: usize) -> Row {
        let cell = |column| self.0.get(ROWS, row, column);
        let flags = cell(6);
        Row {
            at: self.0.get_wide(ROWS, row, 0),
            size: self.0.get_wide(ROWS, row, 2),
            name: (cell(4), cell(5)),
            global: flags & GLOBAL != 0,
            function: flags & FUNCTION != 0,
            indirect: flags & INDIRECT != 0,
        }
    }

    /// The number of symbols at or before the address.
    pub fn up_to(&self, at: u64) -> usize {
        self.0.first(ROWS, |row| self.0.get_wide(ROWS, row, 0) <= at)
    }

    /// Symbols that may have this name, by address: those whose names have its hash.
    pub fn candidates_named(&self, name: &[u8]) -> impl Iterator<Item = Row> {
        let wanted = hash(name);
        let first = self.0.first(NAMES, |row| self.0.get(NAMES, row, 0) < wanted);
        let same = (first..self.0.rows(NAMES)).take_while(move |row| self.0.get(NAMES, *row, 0) == wanted);
        same.map(|row| self.row(self.0.get(NAMES, row, 1) as usize))
    }
}

/// FNV-1a.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_address_and_by_name() {
        let file = b"onetwothree";
        let row = |at, name, global| Row { at, size: at + 1, name, global, function: !global, indirect: at == 5 };
        let (one, two, three) = (row(9, (0, 3), true), row(5, (3, 3), false), row(1 << 40, (6, 5), true));
        let again = row(7, (0, 3), false);
        let name = |row: &Row| &file[row.name.0 as usize..(row.name.0 + row.name.1) as usize];
        let made = SymbolTable::make(vec![one, two, three, again], name).unwrap();
        for table in [SymbolTable::of(TableBytes::Made(made.bytes().to_vec())).unwrap(), made] {
            assert_eq!((0..table.count()).map(|at| table.row(at)).collect::<Vec<_>>(), [two, again, one, three]);
            assert_eq!([4, 5, 8, 9, 1 << 40].map(|at| table.up_to(at)), [0, 1, 2, 3, 4]);
            assert_eq!(table.candidates_named(b"one").collect::<Vec<_>>(), [again, one]);
            assert_eq!(table.candidates_named(b"four").count(), 0);
            assert_eq!(table.row(9).name, (0, 0));
        }
        assert!(SymbolTable::of(TableBytes::Made(b"no tables".to_vec())).is_none());
    }
}
