// SPDX-License-Identifier: GPL-2.0-or-later

//! Import stubs of a file, with the functions that they call.

use std::collections::{BTreeSet, HashMap, HashSet};

use object::{Object, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _, RelocationTarget};
use spile_abi::stubs::{self, Code};

/// Stubs of one file that are looked at.
const MOST: u64 = 1 << 20;
/// Bytes of the names of all words that the dynamic linker fills, and for each of these.
const MOST_NAMES: usize = 64 << 20;
const SLOT: usize = 16;

/// Names and link-time addresses of a file's stubs.
pub(super) fn stubs_of<'d>(elf: &impl Object<'d>, code: Code) -> Vec<(String, u64)> {
    let slots = import_slots(elf);
    let mut found: Vec<(String, u64)> = Vec::new();
    let mut known = HashSet::new();
    // Of all sections together: any number of them may have these names.
    let mut left = MOST;
    for section in elf.sections() {
        let Ok(name) = section.name() else { continue };
        if !stubs::SECTIONS.contains(&name) {
            continue;
        }
        let Ok(bytes) = section.data() else { continue };
        let step = stubs::step(name, bytes);
        let most = (bytes.len() as u64).min(left);
        left -= most;
        for at in (0..most).step_by(step) {
            let stub = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
            let stub = stub.get(..stub.len().min(step)).unwrap_or_default();
            let Some(address) = section.address().checked_add(at) else { break };
            if let Some(name) = stubs::slot(stub, address, code).and_then(|slot| slots.get(&slot))
                // Beside .plt.sec the stubs in .plt only call the linker.
                && known.insert(name.as_str())
            {
                found.push((name.clone(), address));
            }
        }
    }
    found
}

/// Names of functions that the dynamic linker looks up.
pub(super) fn imported<'d>(elf: &impl Object<'d>) -> BTreeSet<String> {
    import_slots(elf).into_values().collect()
}

/// Words that the dynamic linker fills with addresses of functions: link-time address and name.
fn import_slots<'d>(elf: &impl Object<'d>) -> HashMap<u64, String> {
    let table = elf.dynamic_symbol_table();
    let relocations = elf.dynamic_relocations().into_iter().flatten();
    // All may have the same long name.
    let mut left = MOST_NAMES;
    let named = relocations.map_while(|(at, relocation)| {
        let RelocationTarget::Symbol(index) = relocation.target() else { return Some(None) };
        let symbol = table.as_ref().and_then(|table| table.symbol_by_index(index).ok());
        let Some(name) = symbol.and_then(|symbol| symbol.name().ok()) else { return Some(None) };
        left = left.checked_sub(name.len() + SLOT)?;
        Some(Some((at, name.to_string())))
    });
    named.flatten().collect()
}

/// The stubs in few bytes, for [`unpacked`].
pub(super) fn packed(stubs: &[(String, u64)]) -> Vec<u8> {
    stubs.iter().flat_map(|(name, at)| [&at.to_le_bytes(), name.as_bytes(), &[0]].concat()).collect()
}

pub(super) fn unpacked(mut bytes: &[u8]) -> Vec<(String, u64)> {
    let mut stubs = Vec::new();
    while let Some((at, rest)) = bytes.split_first_chunk::<8>() {
        let Some(end) = rest.iter().position(|byte| *byte == 0) else { break };
        let (name, behind) = rest.split_at(end);
        stubs.push((String::from_utf8_lossy(name).into_owned(), u64::from_le_bytes(*at)));
        bytes = behind.get(1..).unwrap_or_default();
    }
    stubs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_stubs_are_the_same() {
        let stubs = vec![("a".to_string(), 7), ("bc".to_string(), u64::MAX)];
        assert_eq!(unpacked(&packed(&stubs)), stubs);
        assert_eq!(unpacked(&packed(&stubs)[..12]), stubs[..1]);
    }
}
