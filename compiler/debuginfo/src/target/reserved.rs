// SPDX-License-Identifier: GPL-2.0-or-later

//! Where no probe may be placed in an object, as tables in the cache: searching the code of a whole kernel takes longer than
//! anything else about a listing.

use crate::stored;
use crate::tables::{Tables, Writer, halves};
use crate::{Elf, Reserved};
use spile_base::cache::Cache;

/// Start (two columns), length, number of the reason.
const COLUMNS: [usize; 1] = [4];

/// Changes with each change of how the places are found: what an earlier version has stored is not used then.
const RULES: u64 = fingerprint(&[
    include_bytes!("../object/bring_up.rs"),
    include_bytes!("../object/flow.rs"),
    include_bytes!("../object/patched.rs"),
    include_bytes!("../object/reserved.rs"),
]);

/// FNV-1a.
const fn fingerprint(texts: &[&[u8]]) -> u64 {
    let (mut hash, mut texts) = (0xcbf2_9ce4_8422_2325_u64, texts);
    while let Some((first, others)) = texts.split_first() {
        let mut bytes = *first;
        while let Some((byte, after)) = bytes.split_first() {
            hash = (hash ^ *byte as u64).wrapping_mul(0x0100_0000_01b3);
            bytes = after;
        }
        texts = others;
    }
    hash
}

/// Which of an object's places.
#[derive(Clone, Copy)]
pub(super) enum Which {
    /// Those in its tables.
    Tables,
    /// Those found in its code ([`Reserved::flow_of`]).
    Flow,
}

impl Which {
    fn what(self) -> String {
        let name = match self {
            Which::Tables => "reserved places",
            Which::Flow => "places in the code",
        };
        format!("{name} {RULES:x}")
    }
}

/// The places, if an earlier run has stored them.
pub(super) fn find(elf: &Elf, cache: Option<&Cache>, which: Which) -> Option<Reserved> {
    let tables = Tables::open(stored::find(elf, cache, &which.what())?, &COLUMNS)?;
    let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    Some(Reserved::from_rows(tables.all(0).map(|[low, high, length, reason]| (wide(low, high), length, reason))))
}

/// The same, or as `read` finds them, which is stored for the next run.
pub(super) fn open(
    elf: &Elf,
    cache: Option<&Cache>,
    which: Which,
    read: impl FnOnce() -> Option<Reserved>,
) -> Option<Reserved> {
    if let Some(found) = find(elf, cache, which) {
        return Some(found);
    }
    let made = read()?;
    let mut writer = Writer::new(&COLUMNS);
    for (at, length, reason) in made.rows() {
        let [low, high] = halves(at);
        writer.row(0, &[low, high, length, reason]);
    }
    stored::keep(elf, cache, &which.what(), &writer.finish());
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::vmlinux::installed;

    /// The second run finds what the first has stored; what other rules have found is not used.
    #[test]
    fn places_are_searched_once() {
        let Some(elf) = installed().map(|path| Elf::open(&path).expect("an ELF file")) else { return };
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("set");
        let settings =
            spile_base::cache::Settings { directory: Some(directory.path().into()), limit: 1 << 30, poisoned: false };
        let cache = Cache::open(&settings);
        for which in [Which::Tables, Which::Flow] {
            let read = || match which {
                Which::Tables => Reserved::of(&elf),
                Which::Flow => Reserved::flow_of(&elf),
            };
            assert!(find(&elf, Some(&cache), which).is_none());
            let first = open(&elf, Some(&cache), which, read).expect("tables");
            let again = open(&elf, Some(&cache), which, || None).expect("is stored");
            assert!(first.rows().eq(again.rows()) && first.rows().count() > 1000);
        }
        assert_ne!(fingerprint(&[b"a", b"b"]), fingerprint(&[b"a", b"c"]));
    }
}
