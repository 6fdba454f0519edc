// SPDX-License-Identifier: GPL-2.0-or-later

//! The table of fingerprints (`struct spile_fingerprint`): the code of the functions that probes are in. As text it is several
//! times as long, and compilers take most of their time for it where a script has thousands of probes.

use spile_abi::sites::Fingerprint;

use super::{Address, Names, put};

/// Where the members are.
pub(super) struct Layout {
    size: usize,
    function: usize,
    target: usize,
    symbol: usize,
    address: usize,
    bytes: usize,
    length: usize,
    patched: usize,
    patched_count: usize,
}

impl Layout {
    /// From the numbers in the C text.
    pub(super) fn of(numbers: &[usize]) -> Result<Layout, String> {
        let &[size, function, target, symbol, address, bytes, length, patched, patched_count, span] = numbers else {
            return Err("the layout of fingerprints has another number of members".into());
        };
        let pointers = [function, symbol, address, bytes, patched].map(|at| (at, 8));
        let numbers = [target, length, patched_count].map(|at| (at, 4));
        let is_inside = |&(at, length): &(usize, usize)| at.saturating_add(length) <= size;
        if span != SPAN || !pointers.iter().chain(&numbers).all(is_inside) {
            return Err("the layout of fingerprints is not known here".into());
        }
        Ok(Layout { size, function, target, symbol, address, bytes, length, patched, patched_count })
    }
}

/// Two numbers of 32 bits.
const SPAN: usize = 8;

/// The table, apart from its object.
pub(super) struct CodeTable {
    pub(super) bytes: Vec<u8>,
    /// Addresses of names.
    pub(super) texts: Vec<Address>,
    /// Addresses in `contents`.
    pub(super) parts: Vec<Address>,
    /// Spans and code.
    pub(super) contents: Vec<u8>,
}

impl CodeTable {
    pub(super) fn of<'s>(
        layout: &Layout,
        fingerprints: &'s [Fingerprint],
        names: &mut Names<'s>,
    ) -> Result<CodeTable, String> {
        let code: usize = fingerprints.iter().map(|code| code.bytes.len() + SPAN * code.patched.len() + 3).sum();
        let mut table = CodeTable {
            bytes: vec![0; fingerprints.len() * layout.size],
            texts: Vec::new(),
            parts: Vec::new(),
            contents: Vec::with_capacity(code),
        };
        for (index, code) in fingerprints.iter().enumerate() {
            let start = index * layout.size;
            let number = |number: usize| u32::try_from(number).map_err(|error| error.to_string());
            let numbers = [
                (layout.target, code.target),
                (layout.length, number(code.bytes.len())?),
                (layout.patched_count, number(code.patched.len())?),
            ];
            for (member, value) in numbers {
                put(&mut table.bytes, start + member, &value.to_le_bytes());
            }
            put(&mut table.bytes, start + layout.address, &code.address.to_le_bytes());
            for (member, text) in [(layout.function, Some(&code.function)), (layout.symbol, code.symbol.as_ref())] {
                table.texts.extend(text.map(|text| ((start + member) as u64, names.place(text.as_bytes()))));
            }
            if !code.patched.is_empty() {
                table.contents.resize(table.contents.len().next_multiple_of(4), 0);
                table.parts.push(((start + layout.patched) as u64, table.contents.len() as i64));
                let numbers = code.patched.iter().flat_map(|(first, length)| [first, length]);
                table.contents.extend(numbers.flat_map(|number| number.to_le_bytes()));
            }
            table.parts.push(((start + layout.bytes) as u64, table.contents.len() as i64));
            table.contents.extend_from_slice(&code.bytes);
        }
        Ok(table)
    }
}
