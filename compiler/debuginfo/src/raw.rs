// SPDX-License-Identifier: GPL-2.0-or-later

//! Readers that are otherwise reached only through files, for fuzzing (compiler/fuzz).

use crate::error::Error;
use crate::object::{Elf, file, skeleton};
use crate::portable::format;
use crate::tables::{self, TableBytes, Tables};

/// The bytes of a file, unpacked if they are compressed. The error says what is wrong with them.
pub fn unpacked(packed: &[u8]) -> Option<Result<Vec<u8>, String>> {
    file::unpack(packed)
}

/// An index of debug information over the sections and symbols of `elf`, with these numbers in its tables, these strings,
/// and a valid checksum. `rows`: number of rows of each table, taken modulo a sensible limit.
pub fn index(elf: &Elf, rows: &[u8], contents: &[u8]) -> Result<Vec<u8>, Error> {
    let columns = format::COLUMNS;
    let mut rest = (columns.len() as u32).to_le_bytes().to_vec();
    let mut words = 0;
    for (table, columns) in columns.iter().enumerate() {
        let rows = u32::from(rows.get(table).copied().unwrap_or(3) % 16);
        rest.extend((*columns as u32).to_le_bytes());
        rest.extend(rows.to_le_bytes());
        words += *columns * rows as usize;
    }
    // Small numbers refer to existing rows and strings.
    let word = |at: usize| match contents.get(at).copied().unwrap_or(0) {
        byte @ 0..0xf0 => u32::from(byte % 32),
        byte => u32::from_le_bytes([byte, 0xff, 0xff, 0xff]) >> ((byte & 7) * 4),
    };
    rest.extend((0..words).flat_map(|at| word(at).to_le_bytes()));
    rest.extend(contents.get(words..).unwrap_or_default());
    let whole = tables::sealed(&rest);
    debug_assert!(Tables::open(TableBytes::Made(whole.clone()), &columns).is_some());
    skeleton::write(elf, tables::transposed(&whole, false))
}
