// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions that several units of a program have, as inline ones and instances of templates in C++: the linker keeps one copy.
//! GNU ld gives its addresses to the descriptions of the others as well, so one place is found once for each unit.

use std::collections::BTreeSet;

use spile_debuginfo::Address;

/// The places that a point has found so far, each with what is there.
#[derive(Default)]
pub(super) struct Taken(BTreeSet<(Address, String, String, u32)>);

impl Taken {
    /// Whether the place of what has that name, file and line is found for the first time. Units may be compiled in different
    /// directories, so of the file only the last part counts.
    pub fn take(&mut self, name: &str, file: &str, line: u32, address: Address) -> bool {
        self.0.insert((address, name.to_string(), last_part(file).to_string(), line))
    }
}

/// By which of several symbols of one place is chosen, the lowest first: people write the one without underscores, and the short
/// one.
pub(super) fn rank(symbol: &str) -> (usize, usize) {
    (symbol.bytes().take_while(|byte| *byte == b'_').count(), symbol.len())
}

/// The name of a file without its directories.
pub(super) fn last_part(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}
