// SPDX-License-Identifier: GPL-2.0-or-later

//! Tables of an object's debug information in the cache: their keys, and for which objects they save time.

use sha2::{Digest, Sha256};

use crate::object::Elf;
use crate::tables::{self, TableBytes};
use spile_base::cache::{Cache, Entry, Key, Kind};

/// Version of the stored tables: to be raised with every change of their format, or of what is stored in them.
const VERSION: u32 = 12;

/// Bytes of `.debug_info`. Smaller objects are read as quickly as their tables would be.
const LARGE: u64 = 2 << 20;

/// The part of an entry that has the tables.
const PART: &str = "tables";

/// Whether storing tables of the object saves time.
pub(crate) fn is_large(elf: &Elf) -> bool {
    elf.section_size(".debug_info") >= LARGE
}

/// The key of the tables `what` of this object. None: it has no build-id, or is too small.
///
/// The build-id identifies the code; debug information of the same code can be laid out differently, as by tools that strip
/// or compress it.
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

/// The tables called `what` of the file, mapped from the cache; `None` if they are not there.
pub(crate) fn find(elf: &Elf, cache: Option<&Cache>, what: &str) -> Option<TableBytes> {
    let key = key(elf, what)?;
    cache?.map(Kind::Index, &key, PART, tables::is_mapped_whole).map(TableBytes::Mapped)
}

/// Stores the tables called `what` of the file in the cache.
pub(crate) fn keep(elf: &Elf, cache: Option<&Cache>, what: &str, bytes: &[u8]) {
    let (Some(key), Some(cache)) = (key(elf, what), cache) else { return };
    let about = format!("{what} of {}", elf.path().display());
    cache.put(Kind::Index, &key, &Entry::new(&about).with(PART, bytes));
}

const SYMBOLS: &str = "symbols";

/// Has the file's symbols in order: from the cache, or else sorted now and stored there.
pub(crate) fn symbols(elf: &Elf, cache: Option<&Cache>) {
    if key(elf, SYMBOLS).is_none() || cache.is_none() {
        return;
    }
    match find(elf, cache, SYMBOLS) {
        Some(bytes) => elf.adopt_symbols(bytes),
        None => {
            // A file whose symbols cannot be read says so when it is asked for one.
            if let Ok(bytes) = elf.symbol_tables() {
                keep(elf, cache, SYMBOLS, bytes);
            }
        }
    }
}
