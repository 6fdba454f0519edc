// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions of programs in Go by the table that they need at run time, `.gopclntab`: it is there when the symbol table has been
//! stripped, as in all of Debian's. Its layout is in Go's src/runtime/symtab.go (`pcHeader`, `functab`, `_func`).

/// Sections with the table of a program at a fixed address, and of one that can be moved.
pub const TABLES: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// Bytes that a function takes in a table, at least.
const LEAST_BYTES: usize = 24;
/// Functions that are taken: the largest programs have some 300,000.
const MOST: usize = 4 << 20;
/// Longest name that is taken, in bytes.
const LONGEST: usize = 4096;

/// A function: where it begins, its bytes, its name.
#[derive(Debug, PartialEq, Eq)]
pub struct Function<'t> {
    /// Link-time address.
    pub at: u64,
    /// Bytes of its code.
    pub size: u64,
    /// As in `main.(*T).Run`.
    pub name: &'t str,
}

/// Where the parts of a table are, by the version of its layout.
struct Layout {
    functions: u64,
    /// Added to the places of functions.
    start: u64,
    names: usize,
    entries: usize,
    /// Bytes of a number in an entry.
    width: usize,
}

/// The functions of a table; those whose names are damaged are left out. None: it is of a version that is not known, for 32-bit
/// programs, or damaged.
pub fn functions(table: &[u8]) -> Option<Vec<Function<'_>>> {
    let layout = layout(table)?;
    let entry = |index: usize, column: usize| {
        let at = index.checked_mul(2)?.checked_add(column)?.checked_mul(layout.width)?;
        number(table, layout.entries.checked_add(at)?, layout.width)
    };
    let count = usize::try_from(layout.functions).ok()?;
    // Each function takes more bytes: two places, and what describes it.
    if count > table.len() / LEAST_BYTES {
        return None;
    }
    // Two functions share no name: a table with longer ones was made to take memory.
    let mut left = table.len();
    let function = |index: usize| {
        let (at, next) = (entry(index, 0)?, entry(index.checked_add(1)?, 0)?);
        let described = layout.entries.checked_add(usize::try_from(entry(index, 1)?).ok()?)?;
        // The entry again, in an entry's width, then the name's place.
        let name = number(table, described.checked_add(layout.width)?, 4)?;
        let name = text(table, layout.names.checked_add(usize::try_from(name).ok()?)?)?;
        Some(Function { at: layout.start.checked_add(at)?, size: next.checked_sub(at)?, name })
    };
    let fits = |function: &Function| {
        let rest = left.checked_sub(function.name.len());
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    // They are sorted.
    let mut before = 0;
    let is_next = |function: &Function| {
        let fits = function.at >= before;
        before = function.at;
        fits
    };
    let with_code = (0..count).filter_map(function).filter(|function| function.size > 0);
    Some(with_code.take_while(is_next).take_while(fits).take(MOST).collect())
}

/// None: of a version before Go 1.16 or one that is not known yet, or for numbers that are not of 64 bits.
fn layout(table: &[u8]) -> Option<Layout> {
    let words = |index: usize| number(table, 8 + index * 8, 8);
    let place = |index: usize| usize::try_from(words(index)?).ok();
    if table.get(7) != Some(&8) {
        return None;
    }
    Some(match number(table, 0, 4)? {
        // Go 1.18 and 1.20.
        0xffff_fff0 | 0xffff_fff1 => Layout {
            functions: words(0)?,
            // Not yet known in a program that can be moved and is linked by another linker.
            start: words(2).filter(|start| *start != 0)?,
            names: place(3)?,
            entries: place(7)?,
            width: 4,
        },
        // Go 1.16.
        0xffff_fffa => Layout { functions: words(0)?, start: 0, names: place(2)?, entries: place(6)?, width: 8 },
        _ => return None,
    })
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(width)?)?;
    Some(found.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
}

fn text(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    let rest = rest.get(..LONGEST).unwrap_or(rest);
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(rest.get(..end)?).ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with main.main at 0x401000 and main.(*T).Run, 0x20 bytes further on, of 0x10 bytes.
    fn table(magic: u32, width: usize) -> Vec<u8> {
        let names = b"main.main\0main.(*T).Run\0";
        let header = 8 + 8 * 8;
        let entries = header + names.len();
        let described = entries + 5 * width;
        let start: u64 = 0x40_1000;
        let mut table = magic.to_le_bytes().to_vec();
        table.extend([0, 0, 1, 8]);
        let words: [u64; 8] = match width {
            4 => [2, 0, start, header as u64, 0, 0, 0, entries as u64],
            _ => [2, 0, header as u64, 0, 0, 0, entries as u64, 0],
        };
        words.iter().for_each(|word| table.extend(word.to_le_bytes()));
        table.extend(names);
        let base = if width == 4 { 0 } else { start };
        let places = [0_u64, 0x20, 0x30].map(|at| base + at);
        let rows = [(places[0], described), (places[1], described + width + 4)];
        for (at, place) in rows {
            table.extend(&at.to_le_bytes()[..width]);
            table.extend(&((place - entries) as u64).to_le_bytes()[..width]);
        }
        table.extend(&places[2].to_le_bytes()[..width]);
        for (at, name) in [(places[0], 0_u32), (places[1], 10)] {
            table.extend(&at.to_le_bytes()[..width]);
            table.extend(name.to_le_bytes());
        }
        table
    }

    #[test]
    fn functions_of_each_layout() {
        let expected = [
            Function { at: 0x40_1000, size: 0x20, name: "main.main" },
            Function { at: 0x40_1020, size: 0x10, name: "main.(*T).Run" },
        ];
        for (magic, width) in [(0xffff_fff0, 4), (0xffff_fff1, 4), (0xffff_fffa, 8)] {
            assert_eq!(functions(&table(magic, width)).expect("is one"), expected);
        }
    }

    #[test]
    fn damage_is_less_or_nothing() {
        assert!(functions(&table(0xffff_fffb, 4)).is_none());
        let whole = table(0xffff_fff1, 4);
        for length in 0..whole.len() {
            assert!(functions(&whole[..length]).is_none_or(|found| found.len() <= 2));
        }
        // A name for each function that is nearly all of the table.
        let mut long = vec![0; 4000];
        let table = table(0xffff_fff1, 4);
        long[..table.len()].copy_from_slice(&table);
        assert_eq!(functions(&long).expect("is one").len(), 2);
        long[72..3900].fill(b'x');
        let entries = 3904;
        long[8..16].copy_from_slice(&4_u64.to_le_bytes());
        long[64..72].copy_from_slice(&(entries as u64).to_le_bytes());
        for index in 0..5_u32 {
            let at = entries + index as usize * 8;
            long[at..at + 4].copy_from_slice(&index.to_le_bytes());
            long[at + 4..at + 8].copy_from_slice(&48_u32.to_le_bytes());
        }
        long[entries + 48..].fill(0);
        assert_eq!(functions(&long).expect("is one").len(), 1);
        let mut many = whole.clone();
        many[8..16].fill(0xff);
        assert!(functions(&many).is_none());
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            let _ = functions(&changed);
        }
    }
}
