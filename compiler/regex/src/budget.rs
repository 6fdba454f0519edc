// SPDX-License-Identifier: GPL-2.0-or-later

//! Limits of an automaton: memory in the module, and compile time.

use super::error::ErrorKind;

/// Maximum number of transitions of one table: each takes 2 bytes in the module.
pub const MAX_TRANSITIONS: usize = 65_000;

/// Maximum cost of building one automaton, in steps: well under a second.
pub struct Budget(usize);

impl Default for Budget {
    fn default() -> Budget {
        Budget(4_000_000)
    }
}

impl Budget {
    /// Charges this many steps. Error: more than are left.
    pub fn spend(&mut self, steps: usize) -> Result<(), ErrorKind> {
        self.0 = self.0.checked_sub(steps).ok_or(ErrorKind::TooLarge)?;
        Ok(())
    }
}
