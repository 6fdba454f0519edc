// SPDX-License-Identifier: GPL-2.0-or-later

//! What an automaton may take: of the module's memory, and of the compiler's time.

use super::error::ErrorKind;

/// Most transitions of one table: each takes 2 bytes in the module.
pub const MAX_TRANSITIONS: usize = 65_000;

/// What building one automaton may cost, in steps looked at: well under a second.
pub struct Budget(usize);

impl Default for Budget {
    fn default() -> Budget {
        Budget(4_000_000)
    }
}

impl Budget {
    pub fn spend(&mut self, steps: usize) -> Result<(), ErrorKind> {
        self.0 = self.0.checked_sub(steps).ok_or(ErrorKind::TooLarge)?;
        Ok(())
    }
}
