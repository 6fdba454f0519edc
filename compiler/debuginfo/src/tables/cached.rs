// SPDX-License-Identifier: GPL-2.0-or-later

//! What is kept of an object's debug information from run to run: under which key, and which objects are worth it.

use sha2::{Digest, Sha256};

use super::TableBytes;
use crate::object::Elf;
use spile_base::cache::{Cache, Entry, Key, Kind};

/// Counts up with whatever changes what is kept.
const VERSION: u32 = 2;

/// An object with less `.debug_info` is read as quickly as what would be kept of it.
const LARGE: u64 = 2 << 20;

/// The part of an entry that has the tables.
const PART: &str = "tables";

/// Whether keeping something of the object saves time.
pub(crate) fn is_large(elf: &Elf) -> bool {
    elf.section_size(".debug_info") >= LARGE
}

/// `what` is kept of this object. None: nothing can be.
///
/// The build-id is that of the code; debug information of the same code can be laid out differently, as tools that strip or
/// compress it do.
fn key(elf: &Elf, what: &str) -> Option<Key> {
    if elf.build_id().is_empty() || !is_large(elf) {
        return None;
    }
    let mut hash = Sha256::new();
    hash.update(format!("debug information {VERSION} {what} {} ", elf.bytes().len()));
    hash.update(elf.build_id());
    for section in [".debug_info", ".debug_abbrev", ".debug_str", ".debug_rnglists", ".debug_ranges", ".symtab"] {
        hash.update(elf.section_size(section).to_le_bytes());
    }
    Some(Key::new(hash))
}

pub(crate) fn find(elf: &Elf, cache: Option<&Cache>, what: &str) -> Option<TableBytes> {
    let key = key(elf, what)?;
    cache?.map(Kind::Index, &key, PART, super::is_whole).map(TableBytes::Mapped)
}

pub(crate) fn keep(elf: &Elf, cache: Option<&Cache>, what: &str, bytes: &[u8]) {
    let (Some(key), Some(cache)) = (key(elf, what), cache) else { return };
    let about = format!("{what} of {}", elf.path().display());
    cache.put(Kind::Index, &key, &Entry::new(&about).with(PART, bytes));
}
